"""Boxes and L0 schedules of the sizes that people run, chosen together, against all there are.

The judge is PyPTO's own wall (`pypto_l0`): the boxes that `optimize` searches, powers of two up to
256 beside the least legal one, hold the best schedule of all boxes; and it is never slower than
the choice of PyPTO's chooser, which takes the operands unboxed or in their least boxes.
"""

from __future__ import annotations

import pytest

from pypto_egg import load_target
from pypto_egg.bench.workloads import Workload, workloads
from pypto_egg.extract.cost.pypto_l0 import OPEN, choose, wall_vectors
from pypto_egg.ir.dtype import DTYPES
from pypto_egg.l0 import CubeProduct, schedules

SEARCHED = (16, 32, 64, 128, 256)
EVERY = tuple(range(16, 257, 16))
TARGET = load_target("a2a3")
ELEMENTS = 16_000_000
"""Results of more elements are left out, for the time that all their boxes would take."""
# The schedules' walls are sums of fractions, the chooser's are whole cycles.
ONE_CYCLE = 1.0


def round_up(extent: int, step: int) -> int:
    return -(-extent // step) * step


def boxed(size: Workload, m: int, n: int) -> CubeProduct:
    lhs, rhs = DTYPES[size.dtype_a], DTYPES[size.dtype_b]
    acc = TARGET.cube_accumulator(lhs, rhs)
    assert acc is not None
    valid = (size.m, size.n, size.k)
    turned = (size.a_trans, size.b_trans)
    return CubeProduct(valid, (m, n, size.k), lhs, rhs, acc, turned, leaves=True)


def shortest_wall(size: Workload, boxes: tuple[int, ...]) -> float:
    """The least wall over all schedules of all extents to which these boxes round."""
    steps = boxed(size, size.m, size.n).steps
    rows, cols = (
        sorted({round_up(extent, box) for box in boxes if box % step == 0})
        for extent, step in ((size.m, steps[0]), (size.n, steps[1]))
    )
    walls = []
    for product in (boxed(size, m, n) for m in rows for n in cols):
        walls.append(wall_vectors(product, schedules(product, TARGET), TARGET).sum(axis=1).min())
    return float(min(walls))


def has_schedules(size: Workload) -> bool:
    lhs, rhs = (DTYPES[name] for name in (size.dtype_a, size.dtype_b))
    if not size.is_product or min(lhs.bits, rhs.bits) < 8 or size.m * size.n > ELEMENTS:
        return False
    if TARGET.cube_accumulator(lhs, rhs) is None:
        return False
    return size.k % boxed(size, size.m, size.n).steps[2] == 0


SIZES = {
    (s.m, s.n, s.k, s.dtype_a, s.dtype_b, s.a_trans, s.b_trans): s
    for s in workloads()
    if has_schedules(s)
}


def test_most_sizes_are_compared() -> None:
    assert len(SIZES) >= 80


@pytest.mark.parametrize("size", SIZES.values(), ids=lambda size: size.name)
def test_no_other_box_has_a_shorter_schedule(size: Workload) -> None:
    assert shortest_wall(size, SEARCHED) == pytest.approx(shortest_wall(size, EVERY))


@pytest.mark.parametrize("size", SIZES.values(), ids=lambda size: size.name)
def test_pyptos_chooser_has_no_shorter_one(size: Workload) -> None:
    least = boxed(size, size.m, size.n)
    steps = least.steps
    for m, n in ((size.m, size.n), (round_up(size.m, steps[0]), round_up(size.n, steps[1]))):
        theirs = choose(m, n, size.k, least.lhs, least.rhs, least.acc, TARGET, gates=OPEN)
        # It counts in fractals of 16 for every dtype; Mat has lines of 32 elements for INT8.
        if theirs is not None and theirs.m % steps[0] == 0 and theirs.n % steps[1] == 0:
            assert shortest_wall(size, SEARCHED) <= theirs.wall_cycles + ONE_CYCLE
