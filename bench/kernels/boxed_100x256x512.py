# Qwen3-14B, prefill: a prompt of 100 tokens, bf16 to fp32, [100, 256] x [256, 512] in column tiles
# of 256. 100 rows are no whole number of fractals. The authors cut them in 64-row tiles, the last
# one with 36 valid rows; as one tile of 112 they take a single pass through L0.
# Shape: pypto-lib, models/qwen3_14b/prefill_fwd.py (100 rows, K step 256, N tile 256)
import pypto.language as pl


@pl.program
class Boxed100x256x512:
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self,
        a: pl.Tensor[[100, 256], pl.BF16],
        b: pl.Tensor[[256, 512], pl.BF16],
        out: pl.Out[pl.Tensor[[100, 512], pl.FP32]],
    ) -> pl.Tensor[[100, 512], pl.FP32]:
        for n0, (o,) in pl.range(0, 512, 256, init_values=(out,)):
            bn = b[:, n0 : n0 + 256]
            y = pl.matmul(a, bn, out_dtype=pl.FP32)
            o1 = pl.assemble(o, y, [0, n0])
            r = pl.yield_(o1)
        return r

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[100, 256], pl.BF16],
        b: pl.Tensor[[256, 512], pl.BF16],
        out: pl.Out[pl.Tensor[[100, 512], pl.FP32]],
    ) -> pl.Tensor[[100, 512], pl.FP32]:
        r = self.product(a, b, out)
        return r
