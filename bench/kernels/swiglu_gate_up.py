# Qwen3-14B, decode: gate and up projection and their SwiGLU, [16, 5120] x [5120, 17408] twice, bf16.
# Both products read the same x and keep an accumulator each; a task makes 256 columns of the
# activation in steps of 128 along K. The weights here hold 512 of the model's 17408 columns.
# Shape: pypto-lib, models/qwen3_14b/decode_fwd.py (gate and up), models/qwen3_32b/decode.py (tile)
import pypto.language as pl


@pl.program
class SwigluGateUp:
    @pl.function(type=pl.FunctionType.InCore)
    def gate_up(
        self,
        x: pl.Tensor[[16, 5120], pl.BF16],
        w_gate: pl.Tensor[[5120, 512], pl.BF16],
        w_up: pl.Tensor[[5120, 512], pl.BF16],
        n0: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[16, 512], pl.BF16]],
    ) -> pl.Tensor[[16, 512], pl.BF16]:
        gate0 = pl.create_tensor([16, 256], dtype=pl.FP32)
        up0 = pl.create_tensor([16, 256], dtype=pl.FP32)
        for k0, (gate_acc, up_acc) in pl.pipeline(0, 5120, 128, stage=2, init_values=(gate0, up0)):
            xk = x[:, k0 : k0 + 128]
            wg = w_gate[k0 : k0 + 128, n0 : n0 + 256]
            wu = w_up[k0 : k0 + 128, n0 : n0 + 256]
            gate1 = pl.matmul_acc(gate_acc, xk, wg)
            up1 = pl.matmul_acc(up_acc, xk, wu)
            gate, up = pl.yield_(gate1, up1)
        negative = pl.neg(gate)
        power = pl.exp(negative)
        denominator = pl.add(power, 1.0)
        sigmoid = pl.recip(denominator)
        silu = pl.mul(gate, sigmoid)
        product = pl.mul(silu, up)
        rounded = pl.cast(product, target_type=pl.BF16, mode="rint")
        out1 = pl.assemble(out, rounded, [0, n0])
        return out1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 5120], pl.BF16],
        w_gate: pl.Tensor[[5120, 512], pl.BF16],
        w_up: pl.Tensor[[5120, 512], pl.BF16],
        out: pl.Out[pl.Tensor[[16, 512], pl.BF16]],
    ) -> pl.Tensor[[16, 512], pl.BF16]:
        for n0, (o,) in pl.range(0, 512, 256, init_values=(out,)):
            o1 = self.gate_up(x, w_gate, w_up, n0, o)
            r = pl.yield_(o1)
        return r
