"""What the schedules of a cube product cost, all of them at once.

Each pipe's cycles are the sum over the instructions of the loops that a schedule stands for, in
the laws by which `mte2_mad` prices them: extracts into L0 by valid fractals, one issue and the
passes of each TMATMUL, one drain for each tile of the result. So they equal what pricing the
emitted loops gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pypto_egg.extract.cost.extents import ceil_div, round_up
from pypto_egg.extract.cost.l0 import (
    Floats,
    Ints,
    drain_row,
    k_fractal_elems,
    operand_cycles,
    passes_of,
)
from pypto_egg.extract.cost.model import PIPES, CostVector, OpInstance
from pypto_egg.ir.enums import Mem, TileLayout
from pypto_egg.ir.expr import as_expr, tuple_of
from pypto_egg.ir.types import TensorType, TileType, implicit_view, tile_type
from pypto_egg.l0 import CubeProduct, L0Schedule, Schedules
from pypto_egg.target import Target

Price = Callable[[OpInstance], CostVector]


def schedule_vectors(product: CubeProduct, among: Schedules, target: Target) -> NDArray[np.float64]:
    """Cycles of each schedule on each pipe: one row a schedule, columns as `PIPES`."""
    vectors = np.zeros((len(among), len(PIPES)))
    vectors[:, PIPES.index("mte1")] = load_cycles(product, among, target)
    vectors[:, PIPES.index("cube")] = cube_cycles(product, among, target)
    if product.leaves:
        vectors[:, PIPES.index("fixpipe")] = drained_cycles(product, among, target)
    return vectors


def grid(product: CubeProduct, among: Schedules) -> tuple[Ints, Ints]:
    """How many rows and columns of tiles hold valid elements."""
    return -(-product.valid[0] // among.m), -(-product.valid[1] // among.n)


def load_cycles(product: CubeProduct, among: Schedules, target: Target) -> Floats:
    """MTE1: each operand once, and again for each tile along the axis that it does not have,
    unless the loops keep it."""
    m, n, k = product.valid
    lhs, rhs = operand_cycles(
        round_up(m, target.fractal.rows), round_up(n, target.fractal.rows),
        round_up(k, target.c0_elems(product.lhs)), product.lhs.bits, product.rhs.bits, target,
    )  # fmt: skip
    rows, cols = grid(product, among)
    whole = among.k >= product.physical[2]
    lhs_times = np.where(whole & among.rows_outer, 1, cols)
    rhs_times = np.where(whole & ~among.rows_outer, 1, rows)
    loaded: Floats = lhs * lhs_times + rhs * rhs_times
    return loaded


def cube_cycles(product: CubeProduct, among: Schedules, target: Target) -> Floats:
    """The cube: an issue for each tile and block of K, and the passes over valid fractals."""
    m, n, k = product.valid
    rows, cols = grid(product, among)
    fractal = k_fractal_elems(target, product.lhs)
    whole, tail = k // among.k, k % among.k
    k_passes = whole * -(-among.k // fractal) + -(-tail // fractal)
    passes = passes_of(target, product.lhs) * ceil_div(m, 16) * ceil_div(n, 16) * k_passes
    issues = rows * cols * (whole + (tail > 0))
    cycles: Floats = issues * float(target.l0.issue_cycles) + passes
    return cycles


def drained_cycles(product: CubeProduct, among: Schedules, target: Target) -> Floats:
    """FIXPIPE: each tile of the result by itself, those at the edge by their own extents."""
    m, n, _ = product.valid
    total = np.zeros(len(among))
    for tall, down in ((among.m, m // among.m), (m % among.m, (m % among.m > 0).astype(np.int64))):
        for wide, across in (
            (among.n, n // among.n),
            (n % among.n, (n % among.n > 0).astype(np.int64)),
        ):
            total += down * across * _drain(tall, wide, target)
    return total


def _drain(rows: Ints, cols: Ints, target: Target) -> Floats:
    """Cycles to drain tiles of these valid extents; as `l0.drain_cycles` of tiles that fit L0C."""
    pairs, place = np.unique(np.stack([rows, cols]), axis=1, return_inverse=True)
    tall, wide = pairs
    step = target.l0.step
    parts = np.arange(step, max(step, round_up(int(wide.max(initial=step)), step)) + 1, step)
    across = -(-wide[:, None] // parts)
    each = across * (target.l0.drain_fixed_cycles + tall[:, None] * drain_row(parts, target))
    legal = parts <= -(-np.maximum(wide, 1)[:, None] // step) * step
    best: Floats = np.where(legal, each, np.inf).min(axis=1)
    return best[place.reshape(-1)]


def summed_prices(
    price: Price, product: CubeProduct, among: Schedules, target: Target
) -> NDArray[np.float64]:
    """As `schedule_vectors`, by what each instruction is said to cost."""
    prices = _Prices(price, product, target)
    return np.array([prices.of(schedule) for schedule in among]).reshape(-1, len(PIPES))


class _Prices:
    """Prices of the instructions of a product's schedules, each shape priced once."""

    def __init__(self, price: Price, product: CubeProduct, target: Target) -> None:
        self._price_of, self._product, self._target = price, product, target
        self._left = _in_mat(product, 0)
        self._right = _in_mat(product, 1)
        self._known: dict[tuple[str, int, int, int], NDArray[np.float64]] = {}
        self._tiles: dict[tuple[tuple[int, int], Mem], TileType] = {}

    def of(self, schedule: L0Schedule) -> NDArray[np.float64]:
        m, n, _ = self._product.valid
        whole = schedule.k >= self._product.physical[2]
        rows, cols = _stretches(m, schedule.m), _stretches(n, schedule.n)
        depths = _stretches(self._product.physical[2], schedule.k)
        total = np.zeros(len(PIPES))
        for tall, down in rows:
            for deep, blocks in depths:
                across = 1 if whole and schedule.rows_outer else sum(c for _, c in cols)
                total += down * blocks * across * self._price("left", tall, 0, deep)
        for wide, across in cols:
            for deep, blocks in depths:
                down = 1 if whole and not schedule.rows_outer else sum(r for _, r in rows)
                total += down * blocks * across * self._price("right", 0, wide, deep)
        for tall, down in rows:
            for wide, across in cols:
                for place, (deep, blocks) in enumerate(depths):
                    first = self._product.begins if place == 0 else "tile.matmul_acc"
                    if first == "tile.matmul" and blocks > 1:
                        # A pipeline overwrites a fresh accumulator in its first round.
                        first = "tile.matmul_acc"
                    block = self._price(first, tall, wide, deep)
                    if blocks > 1:
                        block = block + (blocks - 1) * self._price(
                            "tile.matmul_acc", tall, wide, deep
                        )
                    total += down * across * block
                if self._product.leaves:
                    total += down * across * self._price("drain", tall, wide, 0)
        return total

    def _price(self, what: str, tall: int, wide: int, deep: int) -> NDArray[np.float64]:
        key = (what, tall, wide, deep)
        if key not in self._known:
            vector = self._price_of(self._instruction(what, tall, wide, deep))
            self._known[key] = np.array([getattr(vector, pipe) for pipe in PIPES])
        return self._known[key]

    def _instruction(self, what: str, tall: int, wide: int, deep: int) -> OpInstance:
        """An instruction over a tile of these valid extents."""
        match what:
            case "left":
                return self._extract(self._left, (tall, deep), Mem.Left)
            case "right":
                return self._extract(self._right, (deep, wide), Mem.Right)
            case "drain":
                return self._drain(tall, wide)
        a, b = self._tile((tall, deep), Mem.Left), self._tile((deep, wide), Mem.Right)
        acc = self._tile((tall, wide), Mem.Acc)
        operands = {
            "tile.matmul": (a, b),
            "tile.matmul_acc": (acc, a, b),
            "tile.matmul_bias": (a, b, self._tile((1, wide), Mem.Bias)),
        }
        return OpInstance(what, operands[what], {}, acc)

    def _drain(self, tall: int, wide: int) -> OpInstance:
        acc, drain = self._tile((tall, wide), Mem.Acc), self._product.drain
        if drain is None:
            out = TensorType((tall, wide), self._product.acc)
            return OpInstance("tile.store", (acc, tuple_of((0, 0)).type, out), {}, out)
        operands = tuple(acc if operand is None else operand for operand in drain.operands)
        return OpInstance(drain.op, operands, dict(drain.kwargs), drain.result)

    def _extract(self, source: TileType, shape: tuple[int, int], space: Mem) -> OpInstance:
        zero, tile = as_expr(0).type, self._tile(shape, space)
        operands = (source, zero, zero, tuple_of(tile.shape).type)
        return OpInstance("tile.extract", operands, {"target_memory": space}, tile)

    def _tile(self, valid: tuple[int, int], space: Mem) -> TileType:
        """A tile in whole fractals."""
        key = (valid, space)
        if key not in self._tiles:
            rows, cols = (round_up(extent, self._target.fractal.rows) for extent in valid)
            rows = 1 if space is Mem.Bias else rows
            view = replace(implicit_view((rows, cols), space), valid_shape=valid)
            if space in (Mem.Left, Mem.Right):
                view = replace(view, blayout=TileLayout.row_major)
            dtypes = {Mem.Left: self._product.lhs, Mem.Right: self._product.rhs}
            dtype = dtypes.get(space, self._product.acc)
            self._tiles[key] = tile_type((rows, cols), dtype, space, view)
        return self._tiles[key]


def _in_mat(product: CubeProduct, axis: int) -> TileType:
    """An operand, as large as it is, in Mat."""
    extent, depth = product.physical[axis], product.physical[2]
    shape = (extent, depth) if axis == 0 else (depth, extent)
    view = implicit_view(shape, Mem.Mat)
    if product.turned[axis]:
        view = replace(view, blayout=TileLayout.row_major, slayout=TileLayout.col_major)
    dtype = product.lhs if axis == 0 else product.rhs
    return tile_type(shape, dtype, Mem.Mat, view)


def _stretches(extent: int, step: int) -> list[tuple[int, int]]:
    """(extent, how often) of the parts of an axis: full tiles, and a tail."""
    count, tail = divmod(extent, step)
    return [(size, times) for size, times in ((step, count), (tail, 1)) if size and times]


def front(vectors: NDArray[np.floating], ties: NDArray[np.floating]) -> Ints:
    """Places of the rows that no other row is at most as great as in every column.

    Args:
        vectors: one row a schedule.
        ties: further columns that count the same way, such as bytes.

    Of equal rows the first one stays. Places come in ascending order.
    """
    table = np.hstack([vectors, ties])
    table = table[:, np.ptp(table, axis=0) > 0] if len(table) else table
    if not table.shape[1]:
        return np.arange(min(len(table), 1))
    order = np.lexsort((*table.T[::-1], table.sum(axis=1)))
    kept = []
    while len(order):
        best = order[0]
        kept.append(best)
        rest = order[1:]
        order = rest[(table[rest] < table[best]).any(axis=1)]
    return np.sort(np.array(kept, dtype=np.int64))
