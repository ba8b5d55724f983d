# DeepSeek V4 Flash, decode: W8A8 query projection of 4 requests x 2 tokens, [8, 1024] x [1024, 32768],
# int8 to int32, scaled by a factor for each token (row) and each output channel (column), to bf16.
# A task makes 512 columns in steps of 128 along K; w holds 1024 of the model's 32768 columns.
# Shape: pypto-lib, models/deepseek_v4_flash_mtp/qkv_proj_rope.py
import pypto.language as pl


@pl.program
class Int8ProjScales:
    @pl.function(type=pl.FunctionType.InCore)
    def project(
        self,
        x: pl.Tensor[[8, 1024], pl.INT8],
        w: pl.Tensor[[1024, 1024], pl.INT8],
        x_scale: pl.Tensor[[8, 1], pl.FP32],
        w_scale: pl.Tensor[[1, 1024], pl.FP32],
        n0: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[8, 1024], pl.BF16]],
    ) -> pl.Tensor[[8, 1024], pl.BF16]:
        acc0 = pl.create_tensor([8, 512], dtype=pl.INT32)
        for k0, (acc,) in pl.pipeline(0, 1024, 128, stage=2, init_values=(acc0,)):
            xk = x[:, k0 : k0 + 128]
            wk = w[k0 : k0 + 128, n0 : n0 + 512]
            acc1 = pl.matmul_acc(acc, xk, wk)
            total = pl.yield_(acc1)
        wide = pl.cast(total, target_type=pl.FP32, mode="rint")
        by_token = pl.row_expand_mul(wide, x_scale)
        ws = w_scale[:, n0 : n0 + 512]
        by_channel = pl.col_expand_mul(by_token, ws)
        rounded = pl.cast(by_channel, target_type=pl.BF16, mode="rint")
        out1 = pl.assemble(out, rounded, [0, n0])
        return out1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[8, 1024], pl.INT8],
        w: pl.Tensor[[1024, 1024], pl.INT8],
        x_scale: pl.Tensor[[8, 1], pl.FP32],
        w_scale: pl.Tensor[[1, 1024], pl.FP32],
        out: pl.Out[pl.Tensor[[8, 1024], pl.BF16]],
    ) -> pl.Tensor[[8, 1024], pl.BF16]:
        for n0, (o,) in pl.range(0, 1024, 512, init_values=(out,)):
            o1 = self.project(x, w, x_scale, w_scale, n0, o)
            r = pl.yield_(o1)
        return r
