"""Algebra that changes rounding, only where the caller allows it."""

from __future__ import annotations

import pytest
from firing import assert_fires, assert_silent, cube, vector
from kernels import executed, ops, tensor

from pypto_egg import optimize
from pypto_egg.rulesets.catalogue import ALTERNATIVES, LOWERING, OPT_IN
from pypto_egg.rulesets.reassociation import REASSOCIATION

SAME = tensor([16, 32], "FP32")
QUOTIENT = vector("a = pl.abs(x)\nb = pl.add(a, 1.0)\nr = pl.recip(b)\nz = pl.mul(y, r)\nreturn z",
                  y=SAME)  # fmt: skip
ROOT = vector("a = pl.abs(x)\nb = pl.add(a, 1.0)\ns = pl.sqrt(b)\nr = pl.recip(s)\nreturn r")
ROUND = "y = pl.matmul(a, b, out_dtype=pl.FP32)\nz = pl.cast(y, pl.FP16, mode='{}')\nreturn z"
NEAREST = cube(ROUND.format("round"), dtype="FP16")
FLOOR = cube(ROUND.format("floor"), dtype="FP16")

CASES = {
    "product-of-reciprocal-is-a-quotient": (QUOTIENT, ROOT),
    "reciprocal-of-a-square-root": (ROOT, QUOTIENT),
    "any-nearest-cast-is-the-drain": (NEAREST, FLOOR),
    "nearest-cast-drained-is-the-accumulator": (NEAREST, FLOOR),
}


@pytest.mark.parametrize("rule", CASES)
def test_fires_only_where_it_is_allowed(rule: str) -> None:
    assert_fires(rule, CASES[rule][0], reassociate=True)
    assert_silent(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1], reassociate=True)


def test_it_says_that_it_changes_rounding() -> None:
    assert REASSOCIATION.changes_rounding
    assert not any(r.changes_rounding for r in (*LOWERING, *ALTERNATIVES))
    assert all(r.changes_rounding for r in OPT_IN)


def test_the_opt_in_is_used() -> None:
    exact = executed(optimize(QUOTIENT, verify=True))
    loose = executed(optimize(QUOTIENT, verify=True, allow_reassociation=True))
    assert "tile.div" not in ops(exact)
    assert loose.cost.total <= exact.cost.total
    assert "tile.cast" in ops(optimize(NEAREST))
    assert "tile.cast" not in ops(optimize(NEAREST, allow_reassociation=True))
