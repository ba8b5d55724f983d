"""What L0 schedules cost, and which of them are worth weighing."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg import load_target
from pypto_egg.extract.cost.l0_schedules import front, schedule_vectors, summed_prices
from pypto_egg.extract.cost.model import CostModel, cost_model
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.extract.cost.pypto_l0 import OPEN, choose, pypto_choice, wall_vectors
from pypto_egg.ir.dtype import BF16, FP32, INT8, INT32
from pypto_egg.l0 import CubeProduct, schedules
from pypto_egg.scheduling import worth_weighing

TARGETS = [load_target("a2a3"), load_target("a5")]
PAIRS = [(BF16, FP32), (FP32, FP32), (INT8, INT32)]


def priced_by(model, target):
    return lambda op: model.price(op, target)


@st.composite
def products(draw):
    dtype, acc = draw(st.sampled_from(PAIRS))
    line = max(16, 256 // dtype.bits)
    m, n, k = (line * draw(st.integers(1, 12)) for _ in range(3))
    valid = (m - draw(st.integers(0, line - 1)), n - draw(st.integers(0, line - 1)), k)
    return CubeProduct(valid, (m, n, k), dtype, dtype, acc, leaves=draw(st.booleans()))


@settings(max_examples=12)
@given(products(), st.sampled_from(TARGETS))
def test_the_closed_form_is_the_sum_of_the_prices_of_the_instructions(product, target):
    listed = schedules(product, target)
    summed = summed_prices(priced_by(cost_model("mte2_mad"), target), product, listed, target)
    np.testing.assert_allclose(schedule_vectors(product, listed, target), summed, rtol=1e-9)


def offered(product, target):
    """All schedules; of a result that leaves by tiles, not the one tile that is all of the box."""
    listed = schedules(product, target)
    one = (listed.m == product.physical[0]) & (listed.n == product.physical[1])
    return listed.take(~one) if product.leaves else listed


@settings(max_examples=25)
@given(products(), st.sampled_from(TARGETS), st.sampled_from(["mte2_mad", "pypto_l0", "roofline"]))
def test_leaving_out_dominated_schedules_never_loses_the_cheapest(product, target, name):
    """Brute force over all of them, alone and beside any other work on the pipes."""
    model = cost_model(name)
    everything = offered(product, target)
    kept = worth_weighing(product, model, target)
    assert kept.considered == len(everything)
    if not len(everything):
        return
    all_vectors = model.price_schedules(product, everything, target)
    rng = np.random.default_rng(0)
    for others in (np.zeros(7), *rng.uniform(0, 2 * all_vectors.max(), size=(8, 7))):
        if model.adds_up:
            assert kept.vectors.sum(axis=1).min() == all_vectors.sum(axis=1).min()
        else:
            busiest = (all_vectors + others).max(axis=1).min()
            assert (kept.vectors + others).max(axis=1).min() == busiest


@settings(max_examples=25)
@given(products(), st.sampled_from(TARGETS), st.integers(1, 4))
def test_the_cheapest_that_fits_beside_another_accumulator_is_kept(product, target, quarter):
    """Capacity is a matter of the whole kernel, so a schedule that takes less room stays."""
    model, everything = cost_model("mte2_mad"), offered(product, target)
    kept = worth_weighing(product, model, target)
    room = target.memory["Acc"].usable_bytes * quarter // 4
    fits = [4 * s.m * s.n * s.accumulators <= room for s in everything]
    if not any(fits):
        return
    wanted = schedule_vectors(product, everything, target)[fits].sum(axis=1).min()
    found = [
        v.sum() for s, v in zip(kept.schedules, kept.vectors, strict=True)
        if 4 * s.m * s.n * s.accumulators <= room
    ]  # fmt: skip
    assert min(found) == wanted


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    "shape",
    [(128, 128, 128), (256, 256, 256), (512, 512, 512), (16, 256, 512), (512, 128, 2048),
     (272, 272, 64), (320, 320, 64), (16, 512, 128), (256, 1024, 128), (96, 160, 240)],
)  # fmt: skip
def test_the_wall_of_pyptos_choice_is_the_one_that_pypto_computes(target, shape):
    product = CubeProduct(shape, shape, BF16, BF16, FP32, leaves=True)
    listed = schedules(product, target)
    at = pypto_choice(product, listed, target)
    expected = choose(*shape, BF16, BF16, FP32, target, gates=OPEN)
    assert at is not None
    assert expected is not None
    walls = wall_vectors(product, listed, target).sum(axis=1)
    assert walls[at] == pytest.approx(expected.wall_cycles, abs=1.0)
    assert walls.min() <= walls[at]


def test_a_model_of_ones_own_is_priced_by_its_instructions():
    class Slow(Mte2Mad):
        name: ClassVar[str] = "slow cube"

        def price(self, op, target):
            cost = super().price(op, target)
            return cost * 2.0 if op.op.startswith("tile.matmul") else cost

    product = CubeProduct((64, 256, 128), (64, 256, 128), BF16, BF16, FP32, leaves=True)
    listed = schedules(product, TARGETS[0])
    slow = Slow()
    assert slow.price_schedules(product, listed, TARGETS[0]) is None
    plain = schedule_vectors(product, listed, TARGETS[0])
    doubled = summed_prices(priced_by(slow, TARGETS[0]), product, listed, TARGETS[0])
    np.testing.assert_allclose(doubled.sum(axis=1) - plain.sum(axis=1), plain[:, 4])


def test_whether_a_model_adds_up_is_seen_from_what_it_overrides():
    class Whole(Mte2Mad):
        name: ClassVar[str] = "whole"

        def kernel_cost(self, kernel, target, cores=1):
            return CostModel.kernel_cost(self, kernel, target, cores)

    assert cost_model("mte2_mad").adds_up
    assert not cost_model("roofline").adds_up
    assert not cost_model("schedule").adds_up
    assert not Whole().adds_up


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30
    )
)
def test_the_front_is_what_nothing_dominates(rows):
    table = np.array(rows, dtype=float)
    kept = front(table[:, :2], table[:, 2:])
    assert len({rows[at] for at in kept}) == len(kept)
    for at, row in enumerate(rows):
        beaten = any(rows[k] != row and all(a <= b for a, b in zip(rows[k], row, strict=True))
                     for k in kept)  # fmt: skip
        assert beaten or row in {rows[k] for k in kept}, at
