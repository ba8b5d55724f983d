"""The boxes that are searched hold a cheapest one: other multiples of a fractal win nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.extract.cost.l0 import Product, drain_cycles, product_cycles
from pypto_egg.ir.dtype import FP16, FP32, INT8, INT32
from pypto_egg.target.target import Target, load_target

STEP, WIDEST = 16, 256
SEARCHED = (16, 32, 64, 128, 256)
TYPES = ((FP16, FP32), (INT8, INT32), (FP32, FP32))


def round_up(extent: int, multiple: int) -> int:
    return -(-extent // multiple) * multiple


def cheapest(
    shape: tuple[int, int, int], boxed: list[list[int]], types: int, target: Target
) -> float:
    """The least price of a product and its drain over physical extents that fit in Acc."""
    m, n, k = shape
    operand, acc = TYPES[types]
    room = target.memory["Acc"].usable_bytes // 4
    return min(
        (
            sum(product_cycles(Product(shape, (rows, cols, k), operand, operand, acc), target))
            + drain_cycles((m, n), (rows, cols), acc, target)
            for rows in boxed[0]
            for cols in boxed[1]
            if rows * cols <= room
        ),
        default=float("inf"),
    )


@pytest.mark.parametrize("name", ["a2a3", "a5"])
@given(
    st.integers(1, 300), st.integers(1, 400), st.sampled_from([32, 64, 128, 512]),
    st.integers(0, 2),
)  # fmt: skip
@settings(max_examples=30)
def test_powers_of_two_hold_a_cheapest_box(name: str, m: int, n: int, k: int, types: int) -> None:
    target = load_target(name)
    every = [
        list(range(round_up(e, STEP), max(WIDEST, round_up(e, STEP)) + 1, STEP)) for e in (m, n)
    ]
    searched = [sorted({round_up(e, box) for box in SEARCHED}) for e in (m, n)]
    best = cheapest((m, n, k), every, types, target)
    assert cheapest((m, n, k), searched, types, target) <= best * (1 + 1e-9)
