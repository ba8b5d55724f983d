"""Broadcasts of [M, 1] and [1, N] operands, on either side."""

from __future__ import annotations

import pytest
from firing import EXP, assert_fires, assert_silent, dynamic, matched, vector
from kernels import kernel, tensor

COLUMN, ROW = tensor([16, 1], "FP32"), tensor([1, 32], "FP32")
SAME = tensor([16, 32], "FP32")
WIDE = {"x": tensor(["D", 32], "FP32"), "v": tensor(["D", 1], "FP32")}

# rule: (a kernel on which it fires, a kernel close by on which it does not)
CASES = {
    "column-on-the-right-is-row-expand": (
        vector("z = pl.sub(x, c)\nreturn z", c=COLUMN),
        vector("z = pl.sub(c, x)\nreturn z", c=COLUMN),
    ),
    "row-on-the-right-is-col-expand": (
        vector("z = pl.sub(x, r)\nreturn z", r=ROW), vector("z = pl.sub(r, x)\nreturn z", r=ROW),
    ),
    "narrow-left-column-is-expanded-first": (
        vector("z = pl.sub(c, x)\nreturn z", c=COLUMN),
        vector("z = pl.sub(x, c)\nreturn z", c=COLUMN),
    ),
    "narrow-right-column-is-expanded-first": (
        kernel({"x": tensor([16, 32], "BF16"), "c": tensor([16, 1], "BF16")},
               "z = pl.sub(x, c)\nreturn z", tensor([16, 32], "BF16")),
        vector("z = pl.sub(c, x)\nreturn z", c=COLUMN),
    ),
    "narrow-right-row-is-expanded-first": (
        vector("z = pl.fmod(x, r)\nreturn z", r=ROW), vector("z = pl.sub(r, x)\nreturn z", r=ROW),
    ),
    "narrow-left-column-extents": (
        vector("z = pl.sub(c, x)\nreturn z", c=COLUMN),
        vector("z = pl.sub(x, y)\nreturn z", y=SAME),
    ),
    "narrow-left-row-is-expanded-first": (
        vector("z = pl.sub(r, x)\nreturn z", r=ROW), vector("z = pl.sub(x, r)\nreturn z", r=ROW),
    ),
    "row-expand-in-vec": (vector("z = pl.sub(x, c)\nreturn z", c=COLUMN), EXP),
    "row-expand-extents": (vector("z = pl.sub(x, c)\nreturn z", c=COLUMN), EXP),
    "row-expand-extents-from-the-vector": (vector("z = pl.sub(x, c)\nreturn z", c=COLUMN), EXP),
    "row-expand-extents-of-dynamic-rows": (
        dynamic(WIDE, "z = pl.sub(x, v)\nreturn z", tensor(["D", 32], "FP32")),
        vector("z = pl.sub(x, c)\nreturn z", c=COLUMN),
    ),
    "col-expand-in-vec": (vector("z = pl.sub(x, r)\nreturn z", r=ROW), EXP),
    "col-expand-extents": (vector("z = pl.sub(x, r)\nreturn z", r=ROW), EXP),
}  # fmt: skip


@pytest.mark.req("C-032", "C-036")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])


def test_a_narrow_operand_keeps_its_side() -> None:
    """c - x is not x - c: the executed results of both orders were compared."""
    left, right = CASES["narrow-left-column-is-expanded-first"]
    assert matched(left) != matched(right)
