# Both operands stored transposed: scores of a 100-token prompt (queries kept as [head size, tokens])
# against the last page of the KV cache, which holds 36 rows, head size 128, bf16 to fp32.
# M = 100 and N = 36 are both short of whole fractals, and each lies on the other axis of its load.
# Shape: pypto, tests/st/runtime/ops/test_matmul.py (both flags), pypto-lib,
# models/qwen3_14b/prefill_fwd.py (100 rows), pypto,
# tests/st/runtime/framework_and_models/test_paged_attention.py (36 rows)
import pypto.language as pl


@pl.program
class BothTransposed:
    @pl.function(type=pl.FunctionType.InCore)
    def scores(
        self,
        q_t: pl.Tensor[[128, 100], pl.BF16],
        k: pl.Tensor[[36, 128], pl.BF16],
    ) -> pl.Tensor[[100, 36], pl.FP32]:
        s = pl.matmul(q_t, k, a_trans=True, b_trans=True, out_dtype=pl.FP32)
        return s

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        q_t: pl.Tensor[[128, 100], pl.BF16],
        k: pl.Tensor[[36, 128], pl.BF16],
    ) -> pl.Tensor[[100, 36], pl.FP32]:
        s = self.scores(q_t, k)
        return s
