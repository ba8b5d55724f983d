"""Reductions, and the extents of their results."""

from __future__ import annotations

import pytest
from firing import EXP, assert_fires, assert_silent, dynamic, vector
from kernels import tensor

from pypto_egg import optimize
from pypto_egg.errors import LoweringError

WIDE = {"x": tensor(["D", 32], "FP32"), "v": tensor(["D", 1], "FP32")}

# rule: (a kernel on which it fires, a kernel close by on which it does not)
CASES = {
    "row-reduction-in-vec": (vector("m = pl.row_max(x)\nreturn m", (16, 1)), EXP),
    "row-reduction-extents": (
        vector("m = pl.row_max(x)\nreturn m", (16, 1)),
        vector("m = pl.col_max(x)\nreturn m", (1, 32)),
    ),
    "col-reduction-in-vec": (vector("m = pl.col_max(x)\nreturn m", (1, 32)), EXP),
    "col-reduction-extents": (
        vector("m = pl.col_max(x)\nreturn m", (1, 32)),
        vector("m = pl.row_max(x)\nreturn m", (16, 1)),
    ),
}  # fmt: skip


@pytest.mark.req("C-032", "C-036")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])


def test_a_reduction_of_dynamic_rows_is_refused() -> None:
    """Its scratch tile has constant extents."""
    text = dynamic(WIDE, "m = pl.row_max(x)\nreturn m", tensor(["D", 1], "FP32"))
    with pytest.raises(LoweringError) as caught:
        optimize(text)
    assert caught.value.code == "E401"
