# Qwen3-14B, decode: attention of one request over one 128-row page of the KV cache, heads of 128,
# bf16. Five query heads share a KV head; a task handles one KV head, main launches eight.
# Shape: pypto-lib, models/qwen3_14b/constants.py (5 x 128 x 128 for both products)
import pypto.language as pl


@pl.program
class AttentionBlock:
    @pl.function(type=pl.FunctionType.InCore)
    def attend(
        self,
        q: pl.Tensor[[40, 128], pl.BF16],
        k: pl.Tensor[[1024, 128], pl.BF16],
        v: pl.Tensor[[1024, 128], pl.BF16],
        head: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[40, 128], pl.BF16]],
    ) -> pl.Tensor[[40, 128], pl.BF16]:
        qh = q[head * 5 : head * 5 + 5, :]
        kh = k[head * 128 : head * 128 + 128, :]
        vh = v[head * 128 : head * 128 + 128, :]
        scores = pl.matmul(qh, kh, b_trans=True, out_dtype=pl.FP32)
        scaled = pl.mul(scores, 0.08838834764831845)
        highest = pl.row_max(scaled)
        shifted = pl.row_expand_sub(scaled, highest)
        power = pl.exp(shifted)
        total = pl.row_sum(power)
        weights = pl.row_expand_div(power, total)
        rounded = pl.cast(weights, target_type=pl.BF16, mode="rint")
        mixed = pl.matmul(rounded, vh, out_dtype=pl.FP32)
        mixed_bf16 = pl.cast(mixed, target_type=pl.BF16, mode="rint")
        out1 = pl.assemble(out, mixed_bf16, [head * 5, 0])
        return out1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        q: pl.Tensor[[40, 128], pl.BF16],
        k: pl.Tensor[[1024, 128], pl.BF16],
        v: pl.Tensor[[1024, 128], pl.BF16],
        out: pl.Out[pl.Tensor[[40, 128], pl.BF16]],
    ) -> pl.Tensor[[40, 128], pl.BF16]:
        for head, (o,) in pl.range(0, 8, 1, init_values=(out,)):
            o1 = self.attend(q, k, v, head, o)
            r = pl.yield_(o1)
        return r
