"""Casts, saturation, wrap-around and scalar expressions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.errors import InterpretError
from pypto_egg.interp.numbers import CAST_MODES, cast, convert, wrap
from pypto_egg.interp.scalars import binary, cast_scalar, evaluate, unary
from pypto_egg.ir.dtype import (
    BF16,
    BOOL,
    FP8E4M3FN,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT32,
)
from pypto_egg.ir.expr import BinOp, Cast, ConstBool, ConstFloat, ConstInt, UnOp

floats = st.floats(-60000, 60000, width=32)


def all_values(stored) -> np.ndarray:
    """Every finite value of a 16-bit float type, ascending."""
    with np.errstate(invalid="ignore"):
        values = np.arange(1 << 16, dtype=np.uint16).view(stored).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


GRIDS = {FP16: all_values(np.float16), BF16: all_values(ml_dtypes.bfloat16)}


def rounded_on_grid(x: float, grid: np.ndarray, mode: str) -> float:
    """The definition: neighbours of x on the grid, chosen by mode."""
    at = int(np.searchsorted(grid, x))
    if grid[min(at, grid.size - 1)] == x:
        return x
    below, above = grid[at - 1], grid[at]
    if mode == "floor":
        return below
    if mode == "ceil":
        return above
    if mode == "trunc":
        return below if x > 0 else above
    gap = (x - below) - (above - x)
    if gap:
        return below if gap < 0 else above
    return above if x > 0 else below


@pytest.mark.parametrize("dtype", [FP16, BF16], ids=str)
@pytest.mark.parametrize("mode", ["floor", "ceil", "trunc", "round"])
@settings(max_examples=60)
@given(x=floats)
def test_float_casts_round_to_the_neighbour_of_the_mode(dtype, mode, x):
    got = cast(np.array([x], np.float32), dtype, mode)
    assert float(got[0]) == rounded_on_grid(float(np.float32(x)), GRIDS[dtype], mode)


@pytest.mark.parametrize("mode", ["none", "rint"])
@given(x=floats)
def test_rint_is_nearest_even(mode, x):
    got = cast(np.array([x], np.float32), FP16, mode)
    assert got[0] == np.float16(np.float32(x))


@given(x=floats)
def test_odd_never_lands_on_an_even_neighbour_when_inexact(x):
    got = cast(np.array([x], np.float32), BF16, "odd")
    exact = float(got[0]) == float(np.float32(x))
    assert exact or int(got.view(np.uint16)[0]) & 1 == 1


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("none", [2, -2, 2, 3, -3]),
        ("rint", [2, -2, 2, 3, -3]),
        ("round", [3, -3, 2, 3, -3]),
        ("floor", [2, -3, 1, 2, -3]),
        ("ceil", [3, -2, 2, 3, -2]),
        ("trunc", [2, -2, 1, 2, -2]),
        ("odd", [3, -3, 1, 3, -3]),
    ],
)
def test_float_to_integer_modes(mode, expected):
    values = np.array([2.5, -2.5, 1.5, 2.75, -2.75], np.float32)
    assert cast(values, INT32, mode).tolist() == expected


def test_float_to_integer_saturates_and_nan_is_zero():
    values = np.array([300.0, -300.0, np.nan, np.inf, -np.inf], np.float32)
    assert cast(values, INT8, "rint").tolist() == [127, -128, 0, 127, -128]
    assert cast(values, UINT8, "rint").tolist() == [255, 0, 0, 255, 0]
    assert cast(values, INT64, "rint")[3] == np.iinfo(np.int64).max


def test_integer_narrowing_keeps_the_low_bits():
    assert cast(np.array([300, -300, 127], np.int32), INT8, "none").tolist() == [44, -44, 127]


def test_unknown_mode_is_refused_and_the_known_ones_are_listed():
    with pytest.raises(InterpretError) as caught:
        cast(np.zeros(1, np.float32), INT8, "nearest")
    assert all(mode in str(caught.value) for mode in CAST_MODES)


def test_conversion_to_bool_and_between_floats():
    assert convert(np.array([0, 2, -1], np.int32), BOOL).tolist() == [False, True, True]
    assert convert(np.array([1.0, 1000.0], np.float32), FP8E4M3FN).astype(float)[0] == 1.0


@pytest.mark.parametrize("dtype", [INT8, INT16, INT32, INT64, INDEX, UINT8, UINT32], ids=str)
@given(a=st.integers(-(2**63), 2**63 - 1), b=st.integers(-(2**63), 2**63 - 1))
def test_integer_scalars_wrap_like_the_machine(dtype, a, b):
    stored = np.dtype(("i" if dtype.is_signed else "u") + str(dtype.bytes))
    x, y = wrap(a, dtype), wrap(b, dtype)
    with np.errstate(over="ignore"):
        for op, function in (("+", np.add), ("-", np.subtract), ("*", np.multiply)):
            expected = function(np.array([x], stored), np.array([y], stored))[0]
            assert binary(op, x, y, dtype) == int(expected)


def test_scalar_division_floors_and_slash_truncates():
    assert binary("//", -7, 2, INT32) == -4
    assert binary("%", -7, 2, INT32) == 1
    assert binary("/", -7, 2, INT32) == -3
    assert binary("/", 1.0, 4.0, FP32) == 0.25


@pytest.mark.parametrize("op", ["//", "%", "/"])
def test_division_by_zero_is_an_error_that_shows_the_operands(op):
    with pytest.raises(InterpretError, match=rf"5 {op} 0"):
        binary(op, 5, 0, INT32)


def test_float_division_by_zero_is_infinite():
    assert binary("/", 1.0, 0.0, FP32) == float("inf")


def test_float_scalars_round_to_their_type():
    assert binary("+", 1.0, 2.0**-12, FP16) == 1.0
    assert unary("-", wrap(0.1, FP32), FP32) == -float(np.float32(0.1))


def test_scalar_casts():
    assert cast_scalar(300, INT8) == 44
    assert cast_scalar(-2.7, INT32) == -2
    assert cast_scalar(float("nan"), INT32) == 0


def test_logic_does_not_evaluate_what_is_decided():
    broken = BinOp("//", ConstInt(1), ConstInt(0), INDEX)
    guard = BinOp("and", ConstBool(False), BinOp("==", broken, ConstInt(0), BOOL), BOOL)
    assert evaluate(guard, lambda leaf: None) is False
    assert evaluate(UnOp("not", guard, BOOL), lambda leaf: None) is True


def test_long_chains_take_no_stack():
    chain = ConstInt(0, INT32)
    for _ in range(20000):
        chain = BinOp("+", chain, ConstInt(1, INT32), INT32)
    assert evaluate(chain, lambda leaf: None) == 20000


def test_cast_and_constants_take_their_dtype():
    assert evaluate(Cast(ConstInt(300), INT8), lambda leaf: None) == 44
    assert evaluate(ConstFloat(0.1, FP16), lambda leaf: None) == float(np.float16(0.1))
