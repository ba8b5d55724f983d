# Qwen3-14B, decode: attention of five query heads over 512 cached keys, in pages of 128 rows, with
# the running maximum, sum and output of an online softmax carried from page to page. Heads of 128,
# bf16 operands, fp32 statistics; a task handles one of the eight KV heads, main launches two.
# Shape: pypto-lib, models/qwen3_14b/constants.py (5 x 128 x 128 a page), decode_layer_a8w8.py
# (online softmax)
import pypto.language as pl


@pl.program
class FlashAttention:
    @pl.function(type=pl.FunctionType.InCore)
    def attend(
        self,
        q: pl.Tensor[[10, 128], pl.BF16],
        k: pl.Tensor[[1024, 128], pl.BF16],
        v: pl.Tensor[[1024, 128], pl.BF16],
        head: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[10, 128], pl.FP32]],
    ) -> pl.Tensor[[10, 128], pl.FP32]:
        qh = q[head * 5 : head * 5 + 5, :]
        highest0 = pl.full([5, 1], dtype=pl.FP32, value=-1e30)
        total0 = pl.full([5, 1], dtype=pl.FP32, value=0.0)
        mixed0 = pl.full([5, 128], dtype=pl.FP32, value=0.0)
        for row, (highest, total, mixed) in pl.range(
            0, 512, 128, init_values=(highest0, total0, mixed0)
        ):
            kp = k[head * 512 + row : head * 512 + row + 128, :]
            vp = v[head * 512 + row : head * 512 + row + 128, :]
            scores = pl.matmul(qh, kp, b_trans=True, out_dtype=pl.FP32)
            scaled = pl.mul(scores, 0.08838834764831845)
            page_highest = pl.row_max(scaled)
            highest1 = pl.maximum(highest, page_highest)
            shifted = pl.row_expand_sub(scaled, highest1)
            power = pl.exp(shifted)
            page_total = pl.row_sum(power)
            rise = pl.sub(highest, highest1)
            fade = pl.exp(rise)
            faded_total = pl.mul(total, fade)
            total1 = pl.add(faded_total, page_total)
            rounded = pl.cast(power, target_type=pl.BF16, mode="rint")
            page_mixed = pl.matmul(rounded, vp, out_dtype=pl.FP32)
            faded_mixed = pl.row_expand_mul(mixed, fade)
            mixed1 = pl.add(faded_mixed, page_mixed)
            highest2, total2, mixed2 = pl.yield_(highest1, total1, mixed1)
        y = pl.row_expand_div(mixed2, total2)
        out1 = pl.assemble(out, y, [head * 5, 0])
        return out1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        q: pl.Tensor[[10, 128], pl.BF16],
        k: pl.Tensor[[1024, 128], pl.BF16],
        v: pl.Tensor[[1024, 128], pl.BF16],
        out: pl.Out[pl.Tensor[[10, 128], pl.FP32]],
    ) -> pl.Tensor[[10, 128], pl.FP32]:
        for head, (o,) in pl.range(0, 2, 1, init_values=(out,)):
            o1 = self.attend(q, k, v, head, o)
            r = pl.yield_(o1)
        return r
