# Two chained products, ([256, 128] x [128, 256]) rounded to bf16 x [256, 64], fp32 out.
# The first product's 256 rows do not fit L0C at once; a task makes 64 rows of the result, and the
# rounded rows in between stay on chip.
# Shape: pypto, examples/advanced/02_auto_tile_matmul.py
import pypto.language as pl


@pl.program
class ChainedProduct:
    @pl.function(type=pl.FunctionType.InCore)
    def chain(
        self,
        a: pl.Tensor[[256, 128], pl.BF16],
        b: pl.Tensor[[128, 256], pl.BF16],
        c: pl.Tensor[[256, 64], pl.BF16],
        m0: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[256, 64], pl.FP32]],
    ) -> pl.Tensor[[256, 64], pl.FP32]:
        rows = a[m0 : m0 + 64, :]
        ab = pl.matmul(rows, b, out_dtype=pl.FP32)
        ab_bf16 = pl.cast(ab, target_type=pl.BF16, mode="rint")
        abc = pl.matmul(ab_bf16, c, out_dtype=pl.FP32)
        out1 = pl.assemble(out, abc, [m0, 0])
        return out1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[256, 128], pl.BF16],
        b: pl.Tensor[[128, 256], pl.BF16],
        c: pl.Tensor[[256, 64], pl.BF16],
        out: pl.Out[pl.Tensor[[256, 64], pl.FP32]],
    ) -> pl.Tensor[[256, 64], pl.FP32]:
        for m0, (o,) in pl.range(0, 256, 64, init_values=(out,)):
            o1 = self.chain(a, b, c, m0, o)
            r = pl.yield_(o1)
        return r
