"""Programs of the PyPTO language reference (14) with the canonical lines that it states."""

import pytest

from pypto_egg.text import parse, print_program

AXPBY = """\
# pypto.program: Axpby
import pypto.language as pl

@pl.program
class Axpby:
    @pl.function(type=pl.FunctionType.InCore, level=pl.Level.CHIP_DIE, role=pl.Role.SubWorker)
    def kernel(x: pl.Tensor[[32, 256], pl.FP16], y: pl.Tensor[[32, 256], pl.FP16], beta: pl.Scalar[pl.FP16]) -> pl.Tensor[[32, 256], pl.FP16]:
        xs: pl.Tensor[[32, 256], pl.FP16] = pl.tensor.muls(x, pl.const(0.5, pl.FP16))
        ys: pl.Tensor[[32, 256], pl.FP16] = pl.tensor.muls(y, beta)
        s: pl.Tensor[[32, 256], pl.FP16] = pl.tensor.add(xs, ys)
        r: pl.Tensor[[32, 256], pl.FP16] = pl.tensor.maximum(s, pl.const(0.0, pl.FP16))
        return r
    @pl.function(type=pl.FunctionType.Orchestration, level=pl.Level.CHIP, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[32, 256], pl.FP16], y: pl.Tensor[[32, 256], pl.FP16], beta: pl.Scalar[pl.FP16]) -> pl.Tensor[[32, 256], pl.FP16]:
        out: pl.Tensor[[32, 256], pl.FP16] = self.kernel(x, y, beta)
        return out
"""

SCALED_MATMUL = """\
import pypto.language as pl

@pl.program
class ScaledMatmul:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, q: pl.Tensor[[64, 128], pl.BF16], k: pl.Tensor[[96, 128], pl.BF16]) -> pl.Tensor[[64, 96], pl.FP32]:
        s = pl.matmul(q, k, b_trans=True, out_dtype=pl.FP32)
        r = pl.mul(s, 0.125)
        return r
"""

SPLIT_K = """\
@pl.program
class SplitK:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[64, 512], pl.BF16], b: pl.Tensor[[512, 64], pl.BF16]) -> pl.Tensor[[64, 64], pl.FP32]:
        a0 = a[:, 0:128]
        b0 = b[0:128, :]
        c0 = pl.matmul(a0, b0, out_dtype=pl.FP32)
        for ko, (acc,) in pl.range(128, 512, 128, init_values=(c0,)):
            ak = a[:, ko:ko + 128]          # one step of the sum
            bk = b[ko:ko + 128, :]
            nxt = pl.matmul_acc(acc, ak, bk)
            c = pl.yield_(nxt)              # c is the loop result
        return c
"""

SOFTMAX = """\
@pl.program
class Softmax:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[32, 64], pl.FP32]) -> pl.Tensor[[32, 64], pl.FP32]:
        m: pl.Tensor[[32, 1], pl.FP32] = pl.tensor.row_max(x)
        d: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.row_expand_sub(x, m)
        e: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.exp(d)
        z: pl.Tensor[[32, 1], pl.FP32] = pl.tensor.row_sum(e)
        p: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.row_expand_div(e, z)
        return p
"""

BRANCHY = """\
@pl.program
class Branchy:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[16, 64], pl.FP32]:
        y = pl.exp(x)
        if n % 2 == 0:
            t = pl.neg(y)
            w = pl.yield_(t)
        else:
            u = pl.add(y, 1.0)
            w = pl.yield_(u)
        for i, (acc,) in pl.range(n, init_values=(w,)):
            if i > 3:
                v = pl.mul(acc, 2.0)
                g = pl.yield_(v)
            else:
                g = pl.yield_(acc)
            res = pl.yield_(g)
        return res
"""

BLOCKS = """\
ROWS = pl.dynamic("ROWS")

@pl.program
class Blocks:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[ROWS, 128], pl.FP32], o: pl.Out[pl.Tensor[[ROWS, 128], pl.FP32]]) -> pl.Tensor[[ROWS, 128], pl.FP32]:
        for blk in pl.spmd(8):
            base = blk * 64
            for r, (cur,) in pl.pipeline(0, 64, 16, stage=2, init_values=(o,)):
                part = x[base + r:base + r + 16, :]
                act = pl.maximum(part, 0.0)
                upd = pl.assemble(cur, act, [base + r, 0])
                o = pl.yield_(upd)
        return o
"""

TILE_FORM = """\
@pl.program
class TileForm:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[64, 64], pl.BF16], w: pl.Tensor[[64, 64], pl.BF16], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> pl.Tensor[[64, 64], pl.FP32]:
        xm = pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        wm = pl.load(w, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        xl = pl.move(xm, target_memory=pl.Mem.Left)
        wr = pl.move(wm, target_memory=pl.Mem.Right)
        acc = pl.matmul(xl, wr)
        res = pl.store(acc, [0, 0], out)
        return res
"""

STATED = {
    SCALED_MATMUL: (
        "        s: pl.Tensor[[64, 96], pl.FP32] = pl.tensor.matmul(q, k, a_trans=False, "
        "b_trans=True, c_matrix_nz=False, out_dtype=pl.FP32)",
    ),
    SPLIT_K: (
        "            # one step of the sum",
        "            ak: pl.Tensor[[64, 128], pl.BF16] = pl.tensor.slice(a, [64, 128], [0, ko])",
        "            c: pl.Tensor[[64, 64], pl.FP32] = pl.yield_(nxt)",
    ),
    SOFTMAX: tuple(SOFTMAX.splitlines()[4:]),
    BRANCHY: (
        "            u: pl.Tensor[[16, 64], pl.FP32] = pl.tensor.adds(y, 1.0)",
        "            w: pl.Tensor[[16, 64], pl.FP32] = pl.yield_(u)",
        "                g: pl.Tensor[[16, 64], pl.FP32] = pl.yield_(acc)",
    ),
    BLOCKS: (
        'ROWS = pl.dynamic("ROWS")',
        "        for blk in pl.spmd(8):",
        "            for r, (cur,) in pl.pipeline(0, 64, 16, stage=2, init_values=(o,)):",
        "                part: pl.Tensor[[16, 128], pl.FP32] = "
        "pl.tensor.slice(x, [16, 128], [base + r, 0])",
        "                o_1: pl.Tensor[[ROWS, 128], pl.FP32] = pl.yield_(upd)",
        "        return o_1",
    ),
    TILE_FORM: (
        "        xl: pl.Tile[[64, 64], pl.BF16, pl.Mem.Left] = "
        "pl.tile.move(xm, target_memory=pl.Mem.Left)",
        "        acc: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(xl, wr)",
    ),
}


def test_elementwise_program_is_already_canonical() -> None:
    assert print_program(parse(AXPBY)) == AXPBY


@pytest.mark.parametrize("source", STATED, ids=lambda source: parse(source).name)
def test_stated_lines(source: str) -> None:
    printed = print_program(parse(source))
    lines = printed.split("\n")
    for line in STATED[source]:
        assert line in lines
    assert print_program(parse(printed)) == printed
