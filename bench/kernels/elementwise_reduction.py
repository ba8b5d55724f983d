# The layer norm chain over rows of 36 columns, fp32, and the sums and maxima of the columns of the
# result. 36 is what an 8100-token context leaves on its last 128-row page: 36 fp32 are no whole
# 32-byte blocks. A task takes 32 of the rows.
# Shape: pypto-lib, examples/intermediate/layer_norm.py (the chain and its 32-row tile), pypto,
# tests/st/runtime/framework_and_models/test_paged_attention.py (36 columns)
import pypto.language as pl


@pl.program
class ElementwiseReduction:
    @pl.function(type=pl.FunctionType.InCore)
    def norm(
        self,
        x: pl.Tensor[[128, 36], pl.FP32],
        gamma: pl.Tensor[[1, 36], pl.FP32],
        beta: pl.Tensor[[1, 36], pl.FP32],
        m0: pl.Scalar[pl.INDEX],
        block: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[128, 36], pl.FP32]],
        sums: pl.Out[pl.Tensor[[4, 36], pl.FP32]],
        peaks: pl.Out[pl.Tensor[[4, 36], pl.FP32]],
    ) -> tuple[
        pl.Tensor[[128, 36], pl.FP32], pl.Tensor[[4, 36], pl.FP32], pl.Tensor[[4, 36], pl.FP32]
    ]:
        xm = x[m0 : m0 + 32, :]
        total = pl.row_sum(xm)
        mean = pl.mul(total, 0.027777777777777776)
        centred = pl.row_expand_sub(xm, mean)
        square = pl.mul(centred, centred)
        squares = pl.row_sum(square)
        variance = pl.mul(squares, 0.027777777777777776)
        shifted = pl.add(variance, 0.00001)
        factor = pl.rsqrt(shifted)
        unit = pl.row_expand_mul(centred, factor)
        weighted = pl.col_expand_mul(unit, gamma)
        y = pl.col_expand_add(weighted, beta)
        column_sum = pl.col_sum(y)
        column_max = pl.col_max(y)
        out1 = pl.assemble(out, y, [m0, 0])
        sums1 = pl.assemble(sums, column_sum, [block, 0])
        peaks1 = pl.assemble(peaks, column_max, [block, 0])
        return out1, sums1, peaks1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[128, 36], pl.FP32],
        gamma: pl.Tensor[[1, 36], pl.FP32],
        beta: pl.Tensor[[1, 36], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 36], pl.FP32]],
        sums: pl.Out[pl.Tensor[[4, 36], pl.FP32]],
        peaks: pl.Out[pl.Tensor[[4, 36], pl.FP32]],
    ) -> tuple[
        pl.Tensor[[128, 36], pl.FP32], pl.Tensor[[4, 36], pl.FP32], pl.Tensor[[4, 36], pl.FP32]
    ]:
        for block, (o, s, p) in pl.range(0, 4, 1, init_values=(out, sums, peaks)):
            o1, s1, p1 = self.norm(x, gamma, beta, block * 32, block, o, s, p)
            ro, rs, rp = pl.yield_(o1, s1, p1)
        return ro, rs, rp
