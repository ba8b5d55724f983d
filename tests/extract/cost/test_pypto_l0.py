"""PyPTO's L0 chooser: its own answers, what it may choose, and the cost model built on it."""

import csv
from dataclasses import replace
from itertools import product as combinations
from math import floor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.extract.cost import CostVector, OpInstance, cost_model
from pypto_egg.extract.cost.l0 import drain_cycles
from pypto_egg.extract.cost.pypto_l0 import CLOSED, OPEN, Gates, choose
from pypto_egg.ir.dtype import BF16, FP4, FP16, FP32, INT8, INT32
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.types import TupleType, implicit_view, tensor_type, tile_type
from pypto_egg.target import load_target

A2A3, A5 = load_target("a2a3"), load_target("a5")

# Answers of PyPTO's own chooser (revision e2d0f78a), with its default gates ("closed") and with all
# gates open: the load, cube and drain cycles of the tile it chose, and its wall.
CHOICES = list(csv.DictReader(Path(__file__).with_name("pypto_l0_choices.csv").open()))
DTYPES = {"FP16": FP16, "FP32": FP32, "INT8": INT8}


@pytest.mark.parametrize("row", CHOICES, ids=lambda row: "-".join(list(row.values())[:6]))
def test_the_choice_is_pyptos(row):
    m, n, k = (int(row[axis]) for axis in "mnk")
    dtype = DTYPES[row["dtype"]]
    gates = OPEN if row["gates"] == "open" else CLOSED
    found = choose(m, n, k, dtype, dtype, FP32, load_target(row["target"]), gates=gates)
    assert [found.m, found.n, found.k] == [int(row[f"tile_{axis}"]) for axis in "mnk"]
    assert found.stationary == row["stationary"]
    assert found.accumulators == int(row["accumulators"])
    assert f"{found.load_cycles:.1f}" == row["load"]
    assert f"{found.cube_cycles:.0f}" == row["cube"]
    assert f"{found.drain_cycles:.1f}" == row["drain"]
    assert found.wall_cycles == int(row["wall"])


def test_all_published_choices_are_there():
    assert len(CHOICES) == 36


def test_padding_100_rows_to_112_shortens_the_wall():
    assert choose(100, 256, 512, FP16, FP16, FP32, A2A3).wall_cycles == 8367
    padded = choose(112, 256, 512, FP16, FP16, FP32, A2A3)
    assert (padded.m, padded.n, padded.k, padded.wall_cycles) == (112, 256, 64, 5090)


def test_no_tile_is_legal_for_odd_k_short_extents_and_narrow_operands():
    assert choose(64, 64, 40, FP16, FP16, FP32, A2A3) is None
    assert choose(64, 64, 40, FP16, FP16, FP32, A2A3, gates=OPEN) is None
    assert choose(8, 64, 64, FP16, FP16, FP32, A2A3) is None
    assert choose(64, 64, 64, FP4, FP4, FP32, A5) is None


def test_int32_accumulators_take_32_rows_on_a2a3():
    assert choose(48, 1024, 64, INT8, INT8, INT32, A2A3).n <= 512
    assert choose(48, 1024, 64, INT8, INT8, INT32, A5).m == 48


def test_a_k_block_may_be_partial_only_at_an_open_boundary():
    """240 = 3 * 80: with the boundary closed k divides K, open it may be 128 (and 112 are left)."""
    closed = choose(96, 128, 240, FP16, FP16, FP32, A2A3)
    opened = choose(96, 128, 240, FP16, FP16, FP32, A2A3, gates=Gates(k_boundary=True))
    assert 240 % closed.k == 0
    assert opened.wall_cycles <= closed.wall_cycles


def test_bias_windows_narrow_the_tile():
    """The bias table of a2a3 holds 256 words: one window of a product cut along K, 4 of 64 of a
    product whose columns are the inner loop."""
    free = choose(256, 1024, 128, FP16, FP16, FP32, A2A3, gates=OPEN)
    tied = choose(256, 1024, 128, FP16, FP16, FP32, A2A3, gates=Gates(True, True, True, True, True))
    slots = {"A": 2, "B": 1, "output": (4 if tied.rows_outer else 2) if tied.k == 128 else 1}
    assert tied.n * slots[tied.stationary] <= 256
    assert tied.wall_cycles >= free.wall_cycles
    only_output = Gates(bias_windows=True)
    held = choose(16, 512, 128, FP16, FP16, FP32, A2A3, gates=only_output)
    assert held.n * (4 if held.rows_outer else 2) <= 256 or held.k < 128


def ceil_div(value, by):
    return -(-value // by)


def by_enumeration(mnk, dtype, target, gates):
    """The shortest wall over every tile of every allowed regime, written out tile by tile."""
    (M, N, K), size, l0 = mnk, dtype.bytes, target.l0
    fractal, passes = 32 // size, l0.fp32_passes if size == 4 else 1
    regimes = [("output", 1)]
    if gates.double_accumulator:
        regimes.append(("output", 2))
    for kind, allowed in (("A", gates.a_stationary), ("B", gates.b_stationary)):
        if allowed:
            regimes += [(kind, 1), (kind, 2)] if gates.double_accumulator else [(kind, 1)]
    walls = {}
    for (kind, dbc), m, n, k in combinations(
        regimes, range(16, M + 1, 16), range(16, N + 1, 16), range(16, K + 1, 16)
    ):
        depth_a, depth_b = {"output": (2, 2), "A": (1, 2), "B": (2, 1)}[kind]
        if size * depth_a * m * k > 65536 or size * depth_b * k * n > 65536:
            continue
        if 4 * dbc * m * n > target.memory["Acc"].usable_bytes:
            continue
        if (kind != "output" or dbc == 2) and k != K:
            continue
        if K % k and not (gates.k_boundary and K % 16 == 0):
            continue
        rows, cols = ceil_div(M, m), ceil_div(N, n)
        once_a, once_b = (
            size * M * K / l0.left_bytes_per_cycle,
            size * K * N / l0.right_bytes_per_cycle,
        )
        held_a, held_b = once_a + once_b * rows, once_a * cols + once_b
        rows_outer = kind == "A" or (kind == "output" and held_a <= held_b)
        if dbc == 2 and (N // n if rows_outer else M // m) < 2:
            continue
        load = {"A": held_a, "B": held_b, "output": min(held_a, held_b)}[kind]
        if k < K:
            load = once_a * cols + once_b * rows
        deep = sum(ceil_div(min(k, K - at), fractal) for at in range(0, K, k))
        cube = (
            rows
            * cols
            * (ceil_div(K, k) * l0.issue_cycles + passes * ceil_div(m, 16) * deep * ceil_div(n, 16))
        )
        odd = ceil_div(n, 8)
        while odd % 2 == 0:
            odd //= 2
        row = max(l0.drain_row_cycles, 4 * n / l0.drain_bytes_per_cycle)
        drain = rows * cols * (l0.drain_fixed_cycles + m * (row + l0.drain_odd_cycles * (odd - 1)))
        compute = max(load, cube)
        wall = compute + drain
        if dbc == 2:
            wall = max(compute, drain) + min(compute, drain) / (rows * cols)
        walls[kind, dbc, m, n, k] = floor(wall + 0.5)
    base = {key: wall for key, wall in walls.items() if key[:2] == ("output", 1)}
    if not base:
        return None, walls
    whole = ("output", 1, M, N, K)
    if base.get(whole) == min(base.values()):
        return {min(base.values()), min(walls.values())}, walls
    return {min(walls.values())}, walls


@given(
    st.tuples(st.integers(10, 150), st.integers(10, 200), st.integers(1, 10).map(lambda k: 16 * k)),
    st.sampled_from([FP16, FP32, INT8]),
    st.builds(Gates, *[st.booleans()] * 4),
    st.sampled_from([A2A3, A5]),
)
@settings(max_examples=40)
def test_the_wall_is_the_shortest_of_all_regimes_and_tiles(mnk, dtype, gates, target):
    found = choose(*mnk, dtype, dtype, FP32, target, gates=gates)
    shortest, walls = by_enumeration(mnk, dtype, target, gates)
    if shortest is None:
        assert found is None
        return
    assert found.wall_cycles in shortest
    key = (found.stationary, found.accumulators, found.m, found.n, found.k)
    assert walls[key] == found.wall_cycles


def tile(rows, cols, dtype, space, valid=None):
    shape = (rows, cols)
    return tile_type(shape, dtype, space, replace(implicit_view(shape, space), valid_shape=valid))


def matmul(m, n, k, dtype=BF16, op="tile.matmul", valid_m=None):
    lhs = tile(m, k, dtype, Mem.Mat, valid_m and (valid_m, k))
    rhs = tile(k, n, dtype, Mem.Mat)
    out = tile(m, n, FP32, Mem.Acc, valid_m and (valid_m, n))
    operands = (out, lhs, rhs) if op.endswith("_acc") else (lhs, rhs)
    return OpInstance(op, operands, {}, out)


def store(m, n):
    out = tensor_type((m, n), FP32)
    return OpInstance("tile.store", (tile(m, n, FP32, Mem.Acc), TupleType(()), out), {}, out)


model = cost_model("pypto_l0")
boxes = st.integers(1, 16).map(lambda n: 16 * n)


@given(boxes, boxes, boxes, st.sampled_from([A2A3, A5]))
@settings(max_examples=40)
def test_a_product_and_its_store_cost_the_wall_together(m, n, k, target):
    price = model.price(matmul(m, n, k), target)
    drain = model.price(store(m, n), target)
    wall = choose(m, n, k, BF16, BF16, FP32, target, gates=OPEN).wall_cycles
    assert drain == CostVector(fixpipe=drain_cycles((m, n), (m, n), FP32, target))
    assert (price + drain).total == pytest.approx(wall)


@given(boxes, boxes, boxes, st.sampled_from([A2A3, A5]))
@settings(max_examples=40)
def test_accumulating_costs_the_compute_part_only(m, n, k, target):
    gates = Gates(a_stationary=True, b_stationary=True, k_boundary=True)
    price = model.price(matmul(m, n, k, op="tile.matmul_acc"), target)
    found = choose(m, n, k, BF16, BF16, FP32, target, gates=gates)
    assert price.total == pytest.approx(max(found.load_cycles, found.cube_cycles))
    assert price.cube == pytest.approx(found.cube_cycles)


@pytest.mark.req("K-02", "C-130")
@pytest.mark.parametrize("box", [112, 128, 160])
def test_boxing_costs_nothing(box):
    smallest = model.price(matmul(112, 256, 512, valid_m=100, op="tile.matmul_acc"), A2A3)
    assert model.price(matmul(box, 256, 512, valid_m=100, op="tile.matmul_acc"), A2A3) == smallest


@pytest.mark.parametrize("target", [A2A3, A5])
def test_operands_in_l0_and_other_ops_cost_what_mte2_mad_says(target):
    first = cost_model("mte2_mad")
    lhs, rhs = tile(64, 64, BF16, Mem.Left), tile(64, 64, BF16, Mem.Right)
    in_l0 = OpInstance("tile.matmul", (lhs, rhs), {}, tile(64, 64, FP32, Mem.Acc))
    vector = tile(64, 64, FP32, Mem.Vec)
    for op in (in_l0, store(64, 64), OpInstance("tile.exp", (vector,), {}, vector)):
        assert model.price(op, target) == first.price(op, target)
