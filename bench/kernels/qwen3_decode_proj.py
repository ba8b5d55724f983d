# Qwen3-14B, decode: key projection of five live requests, [5, 5120] x [5120, 1024], bf16 to fp32.
# One task makes 256 columns, as the authors cut it (16 x 256 x 256); main launches four of them.
# Shape: pypto-lib, models/qwen3_14b/decode_fwd.py
import pypto.language as pl


@pl.program
class Qwen3DecodeProj:
    @pl.function(type=pl.FunctionType.InCore)
    def project(
        self,
        x: pl.Tensor[[5, 5120], pl.BF16],
        w: pl.Tensor[[5120, 1024], pl.BF16],
        n0: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[5, 1024], pl.FP32]],
    ) -> pl.Tensor[[5, 1024], pl.FP32]:
        acc0 = pl.create_tensor([5, 256], dtype=pl.FP32)
        for k0, (acc,) in pl.pipeline(0, 5120, 256, stage=2, init_values=(acc0,)):
            xk = x[:, k0 : k0 + 256]
            wk = w[k0 : k0 + 256, n0 : n0 + 256]
            acc1 = pl.matmul_acc(acc, xk, wk)
            y = pl.yield_(acc1)
        out1 = pl.assemble(out, y, [0, n0])
        return out1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[5, 5120], pl.BF16],
        w: pl.Tensor[[5120, 1024], pl.BF16],
        out: pl.Out[pl.Tensor[[5, 1024], pl.FP32]],
    ) -> pl.Tensor[[5, 1024], pl.FP32]:
        for n0, (o,) in pl.range(0, 1024, 256, init_values=(out,)):
            o1 = self.project(x, w, n0, o)
            r = pl.yield_(o1)
        return r
