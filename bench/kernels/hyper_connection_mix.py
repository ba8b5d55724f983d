# DeepSeek V4 Flash, decode: logits of the residual streams' mixing weights for 4 requests x 2 tokens,
# [8, 16384] x [24, 16384] transposed, fp32. M = 8 and N = 24 are both short of whole fractals and
# both are accumulated over K. As the authors cut it, four tasks take 4096 of K each, in steps of
# 256, and a vector task adds their partial sums in a fixed order.
# Shape: pypto-lib, models/deepseek_v4_flash_mtp/hc_pre.py
import pypto.language as pl


@pl.program
class HyperConnectionMix:
    @pl.function(type=pl.FunctionType.InCore)
    def partial_logits(
        self,
        x: pl.Tensor[[8, 16384], pl.FP32],
        w: pl.Tensor[[24, 16384], pl.FP32],
        split: pl.Scalar[pl.INDEX],
        partial: pl.Out[pl.Tensor[[32, 24], pl.FP32]],
    ) -> pl.Tensor[[32, 24], pl.FP32]:
        acc0 = pl.create_tensor([8, 24], dtype=pl.FP32)
        for k0, (acc,) in pl.pipeline(0, 4096, 256, stage=2, init_values=(acc0,)):
            xk = x[:, split * 4096 + k0 : split * 4096 + k0 + 256]
            wk = w[:, split * 4096 + k0 : split * 4096 + k0 + 256]
            acc1 = pl.matmul_acc(acc, xk, wk, b_trans=True)
            y = pl.yield_(acc1)
        partial1 = pl.assemble(partial, y, [split * 8, 0])
        return partial1

    @pl.function(type=pl.FunctionType.InCore)
    def combine(self, partial: pl.Tensor[[32, 24], pl.FP32]) -> pl.Tensor[[8, 24], pl.FP32]:
        p0 = partial[0:8, :]
        p1 = partial[8:16, :]
        p2 = partial[16:24, :]
        p3 = partial[24:32, :]
        s1 = pl.add(p0, p1)
        s2 = pl.add(s1, p2)
        s3 = pl.add(s2, p3)
        return s3

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[8, 16384], pl.FP32],
        w: pl.Tensor[[24, 16384], pl.FP32],
    ) -> pl.Tensor[[8, 24], pl.FP32]:
        partial0 = pl.create_tensor([32, 24], dtype=pl.FP32)
        for split, (p,) in pl.range(0, 4, 1, init_values=(partial0,)):
            p1 = self.partial_logits(x, w, split, p)
            partial = pl.yield_(p1)
        logits = self.combine(partial)
        return logits
