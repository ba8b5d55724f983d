"""Values carried by loops and merged by branches."""

from __future__ import annotations

import pytest
from firing import EXP, MATMUL, assert_fires, assert_silent, cube, vector
from kernels import calls, executed, loops, tensor
from products import accumulation

from pypto_egg import lower, optimize
from pypto_egg.ir.enums import Mem

LOOP = vector("""
for i, (c,) in pl.range(3, init_values=(x,)):
    d = pl.sin(c)
    r = pl.yield_(d)
return r""")  # fmt: skip
SPLIT_K = accumulation(40, 48, "FP16", False, False, "created")
PEELED = accumulation(40, 48, "FP16", False, False, "peeled")
BRANCH = vector("""
if n > 2:
    a = pl.exp(x)
    r = pl.yield_(a)
else:
    b = pl.neg(x)
    r = pl.yield_(b)
return r""", n="pl.Scalar[pl.INDEX]")  # fmt: skip
CUBE_BRANCH = cube("""
if n > 2:
    y = pl.matmul(a, b, out_dtype=pl.FP32)
    r = pl.yield_(y)
else:
    z = pl.matmul(c, b, out_dtype=pl.FP32)
    r = pl.yield_(z)
return r""", c=tensor([32, 64], "FP16"), n="pl.Scalar[pl.INDEX]")  # fmt: skip

CASES = {
    "demand-on-a-loop-result-crosses-the-carry": (LOOP, EXP),
    "demand-on-an-iter-arg-is-one-on-the-loop": (LOOP, EXP),
    "loop-extents-follow-the-yield": (LOOP, EXP),
    "loop-extents-follow-the-init": (LOOP, EXP),
    "carried-accumulators-stay-accumulators": (PEELED, LOOP),
    "seed-of-a-carried-accumulator-is-one": (SPLIT_K, PEELED),
    "demand-on-a-phi-is-one-on-both-arms": (BRANCH, LOOP),
    "phi-extents-follow-the-then-arm": (BRANCH, LOOP),
    "phi-extents-follow-the-else-arm": (BRANCH, LOOP),
    "accumulators-pass-branches": (CUBE_BRANCH, BRANCH),
}


@pytest.mark.req("C-022", "C-023", "C-038", "C-039", "C-151")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])
    assert_silent(rule, MATMUL)


@pytest.mark.req("C-150", "C-151")
@pytest.mark.parametrize("text", [SPLIT_K, PEELED], ids=["created", "peeled"])
def test_a_carried_sum_stays_in_l0c(text: str) -> None:
    for result in (lower(text, verify=True), optimize(text, verify=True)):
        (loop,) = loops(executed(result))
        assert {v.type.space for v in (*loop.iter_args, *loop.results)} == {Mem.Acc}
        assert calls(result, "tile.move") == []


def test_branches_of_products_meet_in_l0c() -> None:
    best = executed(optimize(CUBE_BRANCH, verify=True))
    (store,) = calls(best, "tile.store")
    assert store.args[0].type.space is Mem.Acc
