# A fused linear layer, relu(x @ w + bias), 64 x 64 x 64, fp32 throughout, the bias one row.
# Shape: pypto, examples/intermediate/01_fused_linear.py
import pypto.language as pl


@pl.program
class BiasMatmul:
    @pl.function(type=pl.FunctionType.InCore)
    def linear(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        w: pl.Tensor[[64, 64], pl.FP32],
        bias: pl.Tensor[[1, 64], pl.FP32],
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        xw = pl.matmul(x, w)
        biased = pl.col_expand_add(xw, bias)
        y = pl.maximum(biased, 0.0)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        w: pl.Tensor[[64, 64], pl.FP32],
        bias: pl.Tensor[[1, 64], pl.FP32],
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        y = self.linear(x, w, bias)
        return y
