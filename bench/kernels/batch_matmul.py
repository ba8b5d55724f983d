# A batch of two products with the right operand stored transposed, [2, 16, 80] x [2, 48, 80],
# fp32. Rank 3 stays one batched operation, which a later pass unrolls.
# Shape: pypto, tests/st/runtime/ops/test_tensor_batch_matmul.py
import pypto.language as pl


@pl.program
class BatchMatmul:
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self,
        a: pl.Tensor[[2, 16, 80], pl.FP32],
        b: pl.Tensor[[2, 48, 80], pl.FP32],
    ) -> pl.Tensor[[2, 16, 48], pl.FP32]:
        c = pl.matmul(a, b, b_trans=True)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[2, 16, 80], pl.FP32],
        b: pl.Tensor[[2, 48, 80], pl.FP32],
    ) -> pl.Tensor[[2, 16, 48], pl.FP32]:
        c = self.product(a, b)
        return c
