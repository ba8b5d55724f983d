"""Which L0 schedules a cube product has."""

from __future__ import annotations

from itertools import product as combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg import load_target
from pypto_egg.extract.cost.pypto_l0 import CLOSED, OPEN, choose, pypto_choice
from pypto_egg.ir.dtype import BF16, FP32, INT8, INT32
from pypto_egg.l0 import CubeProduct, L0Schedule, schedules

TARGETS = [load_target("a2a3"), load_target("a5")]
PAIRS = [(BF16, FP32), (FP32, FP32), (INT8, INT32)]
BUFFERS = {"output": (2, 2), "A": (1, 2), "B": (2, 1)}


@st.composite
def products(draw, leaves=None):
    dtype, acc = draw(st.sampled_from(PAIRS))
    turned = (draw(st.booleans()), draw(st.booleans()))
    line = max(16, 256 // dtype.bits)
    m, n, k = (line * draw(st.integers(1, 10)) for _ in range(3))
    valid = (m - draw(st.integers(0, line - 1)), n - draw(st.integers(0, line - 1)), k)
    tiled = draw(st.booleans()) if leaves is None else leaves
    return CubeProduct(valid, (m, n, k), dtype, dtype, acc, turned, tiled)


def is_legal(product: CubeProduct, s: L0Schedule, target) -> bool:
    """PyPTO's conditions, spelled out for one schedule."""
    (vm, vn, _), (pm, pn, pk) = product.valid, product.physical
    if any(e % step for e, step in zip((s.m, s.n, s.k), product.steps, strict=True)):
        return False
    if not product.leaves and (s.m, s.n) != (pm, pn):
        return False
    left, right = BUFFERS[s.stationary]
    size = product.lhs.bits // 8
    rows = -(-s.m // target.alignment_rows_acc(product.acc)) * target.alignment_rows_acc(
        product.acc
    )
    if left * s.m * s.k * size > target.memory["Left"].usable_bytes:
        return False
    if right * s.k * s.n * size > target.memory["Right"].usable_bytes:
        return False
    if s.accumulators * rows * s.n * 4 > target.memory["Acc"].usable_bytes:
        return False
    if (s.stationary != "output" or s.accumulators == 2) and s.k != pk:
        return False
    inner = vn // s.n if s.rows_outer else vm // s.m
    return s.accumulators == 1 or inner >= 2


@settings(max_examples=30)
@given(products(), st.sampled_from(TARGETS))
def test_each_listed_schedule_is_legal_and_listed_once(product, target):
    listed = list(schedules(product, target))
    assert all(is_legal(product, s, target) for s in listed)
    assert len(set(listed)) == len(listed)


@settings(max_examples=15)
@given(products(), st.sampled_from(TARGETS))
def test_each_legal_tile_with_one_accumulator_is_listed(product, target):
    """Output-stationary schedules with one accumulator are all there is to a tile's legality."""
    pm, pn, pk = product.physical
    sm, sn, sk = product.steps
    axes = range(sm, pm + 1, sm), range(sn, pn + 1, sn), range(sk, pk + 1, sk)
    wanted = {tile for tile in combinations(*axes) if is_legal(product, L0Schedule(*tile), target)}
    listed = {
        (s.m, s.n, s.k)
        for s in schedules(product, target)
        if s.stationary == "output" and s.accumulators == 1
    }
    assert listed == wanted


@settings(max_examples=20)
@given(products(leaves=True), st.sampled_from(TARGETS))
def test_every_regime_appears_where_one_of_its_schedules_is_legal(product, target):
    pm, pn, pk = product.physical
    sm, sn, _ = product.steps
    listed = set(schedules(product, target))
    for kind, accumulators, outer in combinations(BUFFERS, (1, 2), (True, False)):
        if kind != "output" and outer != (kind == "A"):
            continue
        for m, n in combinations(range(sm, pm + 1, sm), range(sn, pn + 1, sn)):
            one_row, one_column = m >= product.valid[0], n >= product.valid[1]
            several = not (one_row and one_column)
            idle = one_column and not one_row if outer else one_row and not one_column
            found = L0Schedule(m, n, pk, kind, accumulators, outer)
            if several and not idle and is_legal(product, found, target):
                assert found in listed


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(256, 256, 256), (96, 160, 240), (16, 512, 128), (320, 320, 64)])
def test_what_pypto_would_choose_is_one_of_them(target, shape):
    product = CubeProduct(shape, shape, BF16, BF16, FP32, leaves=True)
    listed = schedules(product, target)
    at = pypto_choice(product, listed, target)
    expected = choose(*shape, BF16, BF16, FP32, target, gates=OPEN)
    assert at is not None
    assert expected is not None
    chosen = listed[at]
    assert (chosen.m, chosen.n, chosen.k) == (expected.m, expected.n, expected.k)
    assert (chosen.stationary, chosen.accumulators) == (
        expected.stationary, expected.accumulators,
    )  # fmt: skip


def test_pypto_with_gates_closed_is_within_the_space_too():
    product = CubeProduct((256, 256, 256), (256, 256, 256), BF16, BF16, FP32, leaves=True)
    expected = choose(256, 256, 256, BF16, BF16, FP32, TARGETS[0], gates=CLOSED)
    assert expected is not None
    tiles = {(s.m, s.n, s.k) for s in schedules(product, TARGETS[0])}
    assert (expected.m, expected.n, expected.k) in tiles


def test_k_that_is_no_multiple_of_the_block_has_a_peeled_tail():
    product = CubeProduct((16, 256, 80), (16, 256, 80), BF16, BF16, FP32)
    assert {s.k for s in schedules(product, TARGETS[0])} == {16, 32, 48, 64}


def test_a_product_that_fits_nowhere_has_none():
    small = TARGETS[0].with_(**{"memory.Acc.usable_bytes": 4096})
    product = CubeProduct((64, 64, 64), (64, 64, 64), BF16, BF16, FP32)
    assert len(schedules(product, small)) == 0
    by_tiles = CubeProduct((64, 64, 64), (64, 64, 64), BF16, BF16, FP32, leaves=True)
    listed = schedules(by_tiles, small)
    assert np.all(listed.m * listed.n <= 1024)
    assert len(listed) > 0
