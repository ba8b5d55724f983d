# DeepSeek V4 Flash, decode: output projection in 8 groups, [8, 8, 4096] x [8, 1024, 4096]
# transposed, bf16 to fp32, 4 requests x 2 tokens. A task makes 128 columns of two groups, K in steps
# of 256, as one batched accumulation. Here x and w hold 4 of the groups, 256 of the columns and 1024
# of K.
# Shape: pypto-lib, models/deepseek_v4_flash_mtp/decode_sparse_attn_csa.py
import pypto.language as pl


@pl.program
class GroupedOutputProj:
    @pl.function(type=pl.FunctionType.InCore)
    def project(
        self,
        x: pl.Tensor[[4, 8, 1024], pl.BF16],
        w: pl.Tensor[[4, 256, 1024], pl.BF16],
        g0: pl.Scalar[pl.INDEX],
        n0: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[4, 8, 256], pl.FP32]],
    ) -> pl.Tensor[[4, 8, 256], pl.FP32]:
        acc0 = pl.create_tensor([2, 8, 128], dtype=pl.FP32)
        for k0, (acc,) in pl.pipeline(0, 1024, 256, stage=2, init_values=(acc0,)):
            xk = x[g0 : g0 + 2, :, k0 : k0 + 256]
            wk = w[g0 : g0 + 2, n0 : n0 + 128, k0 : k0 + 256]
            acc1 = pl.matmul_acc(acc, xk, wk, b_trans=True)
            y = pl.yield_(acc1)
        out1 = pl.assemble(out, y, [g0, 0, n0])
        return out1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[4, 8, 1024], pl.BF16],
        w: pl.Tensor[[4, 256, 1024], pl.BF16],
        out: pl.Out[pl.Tensor[[4, 8, 256], pl.FP32]],
    ) -> pl.Tensor[[4, 8, 256], pl.FP32]:
        for g0, (o,) in pl.range(0, 4, 2, init_values=(out,)):
            for n0, (p,) in pl.range(0, 256, 128, init_values=(o,)):
                p1 = self.project(x, w, g0, n0, p)
                q = pl.yield_(p1)
            r = pl.yield_(q)
        return r
