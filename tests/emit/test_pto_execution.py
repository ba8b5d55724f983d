"""PTO text computes what its kernel computes: both are executed on the same inputs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from pto_runs import agree

import pypto_egg
from pypto_egg.bench.random_programs import sample
from pypto_egg.emit.pto_text import pto_text
from pypto_egg.errors import LoweringError, PtoTextError
from pypto_egg.text import parse

KERNELS = sorted((Path(__file__).parents[2] / "bench" / "kernels").glob("*.py"))
# Batches are cut into matrices by a pass of PyPTO's before this form.
BATCHED = {"batch_matmul", "grouped_output_proj"}

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
"""


def of_tiles(body: str, params: str = "x: pl.Tensor[[16, 64], pl.FP32]", y: str = "[16, 64]"):
    """A kernel of tiles that stores to `y`."""
    out = f"y: pl.Out[pl.Tensor[{y}, pl.FP32]]"
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return parse(f"{HEAD}    def f(self, {params}, {out}) -> pl.Tensor[{y}, pl.FP32]:\n{lines}")


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_kernels_of_models(path: Path) -> None:
    program = pypto_egg.optimize(path, verify=False).program
    if path.stem in BATCHED:
        with pytest.raises(PtoTextError, match="needs two static axes") as caught:
            pto_text(program)
        assert caught.value.code == "E411"
        return
    # The second of several heads or parts, as the kernel's caller counts them.
    agree(program, head=1, split=1)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    """Loops, branches, carried tiles and scalars, element writes: equal, or refused by name."""
    try:
        program = pypto_egg.optimize(sample(seed, 8), verify=False).program
    except LoweringError:
        return
    with suppress(PtoTextError):
        agree(program, seed)


L0 = """c0 = pl.tile.create([32, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc)
xm = pl.tile.load(x, [0, 0], [32, 128], target_memory=pl.Mem.Mat)
wm = pl.tile.load(w, [0, 0], [128, 64], target_memory=pl.Mem.Mat)
for ko, (c,) in pl.pipeline(0, 128, 32, stage=2, init_values=(c0,)):
    a = pl.tile.extract(xm, 0, ko, [32, 32], target_memory=pl.Mem.Left)
    b = pl.tile.extract(wm, ko, 0, [32, 64], target_memory=pl.Mem.Right)
    if ko == 0:
        first = pl.tile.matmul(a, b)
        phi = pl.yield_(first)
    else:
        acc = pl.tile.matmul_acc(c, a, b)
        phi = pl.yield_(acc)
    r = pl.yield_(phi)
o = pl.tile.store(r, [0, 0], y)
return o"""
CUBE = "x: pl.Tensor[[32, 128], pl.FP16], w: pl.Tensor[[128, 64], pl.FP16]"


def test_the_loop_that_cuts_a_product_for_l0_keeps_one_accumulator() -> None:
    """As PyPTO's AutoTileMatmulL0 makes it: the first round multiplies, the others add."""
    program = of_tiles(L0, CUBE, "[32, 64]")
    agree(program)
    text = pto_text(program)
    assert text.count("loc=acc") > 0
    assert [line for line in text.splitlines() if "alloc_tile" in line and "loc=acc" in line] == [
        line for line in text.splitlines() if "%c0_v = pto.alloc_tile" in line
    ]
    assert text.count("pto.tmatmul ") == text.count("pto.tmatmul.acc ") == 1
    # The branch is the program's own: no second one asks whether the round is the first.
    assert text.count("scf.if") == 1


def test_a_sum_over_two_loops_starts_in_the_first_round_of_both() -> None:
    agree(
        of_tiles(
            """c0 = pl.tile.create([32, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc)
for k0, (c,) in pl.range(0, 128, 64, init_values=(c0,)):
    xm = pl.tile.load(x, [0, k0], [32, 64], target_memory=pl.Mem.Mat)
    wm = pl.tile.load(w, [k0, 0], [64, 64], target_memory=pl.Mem.Mat)
    for ko, (d,) in pl.range(0, 64, 32, init_values=(c,)):
        a = pl.tile.extract(xm, 0, ko, [32, 32], target_memory=pl.Mem.Left)
        b = pl.tile.extract(wm, ko, 0, [32, 64], target_memory=pl.Mem.Right)
        acc = pl.tile.matmul_acc(d, a, b)
        q = pl.yield_(acc)
    r = pl.yield_(q)
o = pl.tile.store(r, [0, 0], y)
return o""",
            CUBE,
            "[32, 64]",
        )
    )


def test_carried_tiles_may_change_places() -> None:
    """Both are overwritten at the end of a round, each with what the other one was."""
    agree(
        of_tiles(
            """a0 = pl.tile.load(x, [0, 0], [16, 64])
b0 = pl.tile.muls(a0, 3.0)
for i, (a, b) in pl.range(0, 3, 1, init_values=(a0, b0)):
    c = pl.tile.adds(b, 1.0)
    p, q = pl.yield_(c, a)
d = pl.tile.sub(p, q)
o = pl.tile.store(d, [0, 0], y)
return o"""
        )
    )


def test_what_a_loop_starts_from_is_still_there_behind_it() -> None:
    agree(
        of_tiles(
            """a0 = pl.tile.load(x, [0, 0], [16, 64])
for j in pl.range(0, 2, 1):
    for i, (a,) in pl.range(0, 3, 1, init_values=(a0,)):
        c = pl.tile.add(a, a)
        p = pl.yield_(c)
    d = pl.tile.sub(p, a0)
    o = pl.tile.store(d, [0, 0], y)
return y"""
        )
    )


@pytest.mark.parametrize("n", [0, 5])
def test_both_arms_leave_their_result_in_one_buffer(n: int) -> None:
    """Neither may destroy what the other, or the rest, still reads."""
    agree(
        of_tiles(
            """a = pl.tile.load(x, [0, 0], [16, 64])
if n > 3:
    b = pl.tile.neg(a)
    r = pl.yield_(b)
else:
    r = pl.yield_(a)
c = pl.tile.add(r, a)
d = pl.tile.add(c, r)
o = pl.tile.store(d, [0, 0], y)
return o""",
            "x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX]",
        ),
        n=n,
    )


def test_scalars_are_carried_as_values() -> None:
    agree(
        of_tiles(
            """a = pl.tile.load(x, [0, 0], [16, 64])
s0 = 1.5
for i, (s, k) in pl.range(0, 4, 1, init_values=(s0, n)):
    s1 = s * 2.0
    k1 = k + i
    t, m = pl.yield_(s1, k1)
b = pl.tile.muls(a, t)
if m > 8:
    u = pl.yield_(t)
else:
    u = pl.yield_(s0)
c = pl.tile.adds(b, u)
o = pl.tile.store(c, [0, 0], y)
return o""",
            "x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX]",
        ),
        n=3,
    )


def test_extents_of_the_run_time() -> None:
    agree(
        of_tiles(
            """a = pl.tile.load(x, [0, 0], [16, 64], [n, 64], target_memory=pl.Mem.Vec)
b = pl.tile.exp(a)
t = pl.tile.create([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
m = pl.tile.row_max(b, t)
c = pl.tile.row_expand_sub(b, m)
o = pl.tile.store(c, [0, 0], y)
return o""",
            "x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX]",
        ),
        n=5,
    )


def test_parts_are_put_into_a_tile_in_its_place() -> None:
    agree(
        of_tiles(
            """a = pl.tile.load(x, [0, 0], [16, 64])
h = pl.tile.slice(a, [8, 64], [8, 0])
g = pl.tile.muls(h, 2.0)
z = pl.tile.full([16, 64], dtype=pl.FP32, value=0.5)
b = pl.tile.assemble(z, g, [0, 0])
o = pl.tile.store(b, [0, 0], y)
return o"""
        )
    )


def test_a_value_that_is_destroyed_too_early_is_refused() -> None:
    program = of_tiles(
        """z = pl.tile.load(x, [0, 0], [16, 64])
h = pl.tile.load(x, [0, 0], [8, 64])
b = pl.tile.assemble(z, h, [8, 0])
c = pl.tile.add(b, z)
o = pl.tile.store(c, [0, 0], y)
return o"""
    )
    with pytest.raises(PtoTextError, match="'z', which is overwritten while it is still needed"):
        pto_text(program)
