# Qwen3-14B, decode: RMSNorm of five live rows and the projection behind it, [5, 5120] fp32 times
# [5120, 1024] bf16. As the authors do it, only x * gamma feeds the product, and the factor 1 / rms
# is applied to its result; the row is too long for the vector buffer and goes in chunks of 256.
# Shape: pypto-lib, models/qwen3_14b/decode_fwd.py (norm and key projection)
import pypto.language as pl


@pl.program
class RmsnormMatmul:
    @pl.function(type=pl.FunctionType.InCore)
    def norm_project(
        self,
        x: pl.Tensor[[5, 5120], pl.FP32],
        gamma: pl.Tensor[[1, 5120], pl.FP32],
        w: pl.Tensor[[5120, 1024], pl.BF16],
        n0: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[5, 1024], pl.FP32]],
    ) -> pl.Tensor[[5, 1024], pl.FP32]:
        acc0 = pl.create_tensor([5, 256], dtype=pl.FP32)
        squares0 = pl.full([5, 1], dtype=pl.FP32, value=0.0)
        for k0, (acc, squares) in pl.range(0, 5120, 256, init_values=(acc0, squares0)):
            xk = x[:, k0 : k0 + 256]
            gk = gamma[:, k0 : k0 + 256]
            wk = w[k0 : k0 + 256, n0 : n0 + 256]
            square = pl.mul(xk, xk)
            part = pl.row_sum(square)
            squares1 = pl.add(squares, part)
            weighted = pl.col_expand_mul(xk, gk)
            weighted_bf16 = pl.cast(weighted, target_type=pl.BF16, mode="rint")
            acc1 = pl.matmul_acc(acc, weighted_bf16, wk)
            product, total = pl.yield_(acc1, squares1)
        mean = pl.mul(total, 0.0001953125)
        shifted = pl.add(mean, 0.000001)
        factor = pl.rsqrt(shifted)
        y = pl.row_expand_mul(product, factor)
        out1 = pl.assemble(out, y, [0, n0])
        return out1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[5, 5120], pl.FP32],
        gamma: pl.Tensor[[1, 5120], pl.FP32],
        w: pl.Tensor[[5120, 1024], pl.BF16],
        out: pl.Out[pl.Tensor[[5, 1024], pl.FP32]],
    ) -> pl.Tensor[[5, 1024], pl.FP32]:
        for n0, (o,) in pl.range(0, 1024, 256, init_values=(out,)):
            o1 = self.norm_project(x, gamma, w, n0, o)
            r = pl.yield_(o1)
        return r
