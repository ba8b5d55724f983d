# Mixture of experts, decode: the first product of each local expert, [8, 7168] x [7168, 4096],
# int8 to int32, over a weight [experts, K, N]. Every expert received 8 rows, the mean at 16 tokens
# a rank, 8 ranks, top-8 of 128 experts. One task makes 256 columns of all its experts; here the
# weight holds 4 of the rank's 16 experts, 512 of the 4096 columns and 1024 of the 7168 rows.
# Shape: pto-isa, kernels/manual/a2a3/dispatch_mega_combine
import pypto.language as pl


@pl.program
class GroupedProduct:
    @pl.function(type=pl.FunctionType.InCore)
    def grouped(
        self,
        x: pl.Tensor[[32, 1024], pl.INT8],
        w: pl.Tensor[[4, 1024, 512], pl.INT8],
        n0: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[32, 512], pl.INT32]],
    ) -> pl.Tensor[[32, 512], pl.INT32]:
        for e, (o,) in pl.range(0, 4, 1, init_values=(out,)):
            acc0 = pl.create_tensor([8, 256], dtype=pl.INT32)
            for k0, (acc,) in pl.pipeline(0, 1024, 256, stage=2, init_values=(acc0,)):
                xk = x[e * 8 : e * 8 + 8, k0 : k0 + 256]
                wk = w[e, k0 : k0 + 256, n0 : n0 + 256]
                acc1 = pl.matmul_acc(acc, xk, wk)
                y = pl.yield_(acc1)
            o1 = pl.assemble(o, y, [e * 8, n0])
            r = pl.yield_(o1)
        return r

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[32, 1024], pl.INT8],
        w: pl.Tensor[[4, 1024, 512], pl.INT8],
        out: pl.Out[pl.Tensor[[32, 512], pl.INT32]],
    ) -> pl.Tensor[[32, 512], pl.INT32]:
        for n0, (o,) in pl.range(0, 512, 256, init_values=(out,)):
            o1 = self.grouped(x, w, n0, o)
            r = pl.yield_(o1)
        return r
