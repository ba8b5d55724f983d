"""Look-up in the profiled vector tables: values that pto-isa measured, and widths in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.ir.dtype import BF16, FP16, FP32, INT8, INT32
from pypto_egg.target import load_target
from pypto_egg.target.tables import VectorShape

A2A3, A5 = load_target("a2a3").vector_table, load_target("a5").vector_table


def full(rows, cols):
    return VectorShape(rows, cols, contiguous=True)


# pto-isa tests/costmodel (profiled on the device) and its documented reference value of TADDS.
@pytest.mark.parametrize(
    ("op", "dtype", "rows", "cols", "cycles"),
    [
        ("TADDS", FP32, 32, 64, 57),
        ("TEXP", FP32, 64, 64, 159),
        ("TROWSUM", FP32, 64, 64, 492),
        ("TROWMAX", FP32, 64, 64, 480),
        ("TROWSUM", FP16, 64, 128, 495),
        ("TROWMAX", FP16, 64, 128, 481),
        ("TCOLSUM", FP32, 64, 64, 1263),
    ],
)
def test_profiled_ops_of_a2a3(op, dtype, rows, cols, cycles):
    assert round(A2A3.cycles(op, dtype, full(rows, cols), dtype)) == cycles


def test_a_width_between_two_rows_is_interpolated():
    low, high = (A2A3.cycles("TMUL", FP32, full(64, c), FP32) for c in (176, 208))
    assert A2A3.cycles("TMUL", FP32, full(64, 192), FP32) == pytest.approx((low + high) / 2)


def test_a_narrow_tile_costs_what_the_narrowest_profiled_one_does():
    narrow = A2A3.cycles("TROWMAX", FP32, full(64, 3), FP32)
    assert narrow == A2A3.cycles("TROWMAX", FP32, full(64, 8), FP32)


def test_a_wide_tile_follows_the_widest_line():
    assert A2A3.cycles("TMUL", FP32, full(10, 1000), FP32) == pytest.approx(0.0312 * 10000 + 43)


@given(st.sampled_from(["TMUL", "TSUB", "TADDS", "TROWSUM", "TCOLMAX"]), st.integers(1, 700))
def test_more_rows_never_cost_less(op, cols):
    costs = [A2A3.cycles(op, FP32, full(rows, cols), FP32) for rows in (1, 2, 64, 65)]
    assert costs == sorted(costs)


def test_dtypes_share_the_rows_of_their_width():
    assert A2A3.cycles("TMUL", BF16, full(8, 64), BF16) == A2A3.cycles(
        "TMUL", FP16, full(8, 64), FP16
    )
    assert A2A3.cycles("TMUL", INT32, full(8, 64), INT32) == A2A3.cycles(
        "TMUL", FP32, full(8, 64), FP32
    )


def test_what_was_not_profiled_has_no_cycles():
    assert A2A3.cycles("TADD", FP32, full(8, 64), FP32) is None
    assert A2A3.cycles("TMUL", INT8, full(8, 64), INT8) is None
    assert A5.cycles("TROWSUM", FP32, full(8, 64), FP32) is None
    assert A5.cycles("TCVT", FP32, full(8, 64), INT8) is None


def test_a5_lines_go_over_repeats():
    contiguous, rowwise = full(64, 64), VectorShape(64, 60, contiguous=False)
    assert A5.cycles("TADD", FP32, contiguous, FP32) == pytest.approx(1.2469671 * 64 + 55.073657)
    by_row = (1.8749443 * 1 + 2.8762808) * 64 + 44.344619
    assert A5.cycles("TADD", FP32, rowwise, FP32) == pytest.approx(by_row)


def test_a_falling_line_is_not_used():
    """The published 1D line of bf16 -> fp32 falls by 1.77 cycles a repeat and goes below zero."""
    costs = [A5.cycles("TCVT", BF16, full(rows, 64), FP32) for rows in (1, 64, 512)]
    assert costs == sorted(costs)
    assert costs[0] > 50
