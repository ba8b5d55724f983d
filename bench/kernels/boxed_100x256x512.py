# A prompt of 100 tokens, fp16 to fp32: M 100, N 256, K 512, that is [100, 512] x [512, 256]. 100
# rows are no whole number of fractals. PyPTO's L0 chooser has no tile that covers them, and cuts
# them in rows of 64 or 32; as one tile of 112 they take a single pass through L0.
# Shape: pypto-lib, models/qwen3_14b/prefill_fwd.py (100 rows, N tile 256, two K steps of 256)
import pypto.language as pl


@pl.program
class Boxed100x256x512:
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self,
        a: pl.Tensor[[100, 512], pl.FP16],
        b: pl.Tensor[[512, 256], pl.FP16],
        out: pl.Out[pl.Tensor[[100, 256], pl.FP32]],
    ) -> pl.Tensor[[100, 256], pl.FP32]:
        y = pl.matmul(a, b, out_dtype=pl.FP32)
        r = pl.assemble(out, y, [0, 0])
        return r

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[100, 512], pl.FP16],
        b: pl.Tensor[[512, 256], pl.FP16],
        out: pl.Out[pl.Tensor[[100, 256], pl.FP32]],
    ) -> pl.Tensor[[100, 256], pl.FP32]:
        r = self.product(a, b, out)
        return r
