"""Every legal schedule of a cube product, as columns of numbers.

Legality is that of PyPTO's L0 tile chooser (src/ir/transforms/utils/l0_tile_chooser.cpp): tiles of
whole fractals, L0A, L0B and L0C with the buffers that a schedule wants, whole K where an operand
stays or two accumulators take turns, and then two full tiles along the inner loop. Beyond PyPTO,
the order of the loops is free, tiles may be as tall as the box around M and as wide as that around
N, and the last block of K may be partial for every K.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pypto_egg.ir.dtype import DType
from pypto_egg.ir.types import FRACTAL_ROWS, Type
from pypto_egg.l0.schedule import DEPTHS, L0Schedule, Stationary
from pypto_egg.target.target import Target

Ints = NDArray[np.int64]
ACC_BYTES = 4
_KINDS: tuple[Stationary, ...] = ("output", "A", "B")
# Regimes in the order in which equal schedules are preferred: what stays, accumulators.
_REGIMES: tuple[tuple[Stationary, int], ...] = (
    ("output", 1), ("output", 2), ("A", 1), ("A", 2), ("B", 1), ("B", 2),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drain:
    """The operation that takes a tile of a result out of L0C.

    Args:
        operands: their types, with None in the place of the tile.
    """

    op: str
    operands: tuple[Type | None, ...]
    kwargs: tuple[tuple[str, object], ...]
    result: Type


@dataclass(frozen=True, slots=True)
class CubeProduct:
    """A product whose operands lie in Mat: what a schedule cuts up.

    Args:
        valid: M, N and K that are computed, in elements.
        physical: M, N and K of the tiles in Mat, whole fractals.
        turned: whether each operand is the transposed view of what lies in Mat.
        leaves: tiles of the result may leave L0C one by one; else it stays there as a whole.
        begins: the operation that the sum begins with; tile.matmul_acc has an accumulator already.
        drain: how tiles leave; None stands for a store of all bits.
    """

    valid: tuple[int, int, int]
    physical: tuple[int, int, int]
    lhs: DType
    rhs: DType
    acc: DType
    turned: tuple[bool, bool] = (False, False)
    leaves: bool = False
    begins: str = "tile.matmul"
    drain: Drain | None = None

    @property
    def steps(self) -> tuple[int, int, int]:
        """What m, n and k are multiples of: a tile of L0 starts at a whole box in Mat.

        Where L0 has the other fractal order, the boxes are squares of the longer side.
        """
        line = max(FRACTAL_ROWS, 256 // self.lhs.bits, 256 // self.rhs.bits)
        m = line if self.turned[0] else FRACTAL_ROWS
        n = FRACTAL_ROWS if self.turned[1] else line
        return m, n, line


@dataclass(frozen=True, eq=False)
class Schedules:
    """Schedules as columns of equal length; `kind` counts "output", "A", "B" from 0."""

    m: Ints
    n: Ints
    k: Ints
    kind: Ints
    accumulators: Ints
    rows_outer: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.m)

    def __getitem__(self, at: int) -> L0Schedule:
        return L0Schedule(
            int(self.m[at]), int(self.n[at]), int(self.k[at]), _KINDS[self.kind[at]],
            int(self.accumulators[at]), bool(self.rows_outer[at]),
        )  # fmt: skip

    def __iter__(self) -> Iterator[L0Schedule]:
        return (self[at] for at in range(len(self)))

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Schedules:
        """The schedules at these places, in their order."""
        return Schedules(
            self.m[rows], self.n[rows], self.k[rows],
            self.kind[rows], self.accumulators[rows], self.rows_outer[rows],
        )  # fmt: skip


@lru_cache(maxsize=4096)
def schedules(product: CubeProduct, target: Target) -> Schedules:
    """All legal schedules of a product, by regime, then the greatest m, n and k first.

    Of schedules that are the same program one is listed: the order of loops is stated as rows
    outermost where it changes nothing, and nothing "stays" of a product of one tile.
    """
    parts = [_regime(product, target, *regime) for regime in _REGIMES]
    return Schedules(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _regime(
    product: CubeProduct, target: Target, kind: Stationary, accumulators: int
) -> tuple[Ints | NDArray[np.bool_], ...]:
    m, n, k = _tiles(product, target, kind, accumulators)
    vm, vn, _ = product.valid
    one_row, one_column, whole = m >= vm, n >= vn, k >= product.physical[2]
    plain = kind == "output" and accumulators == 1
    found = []
    for rows_outer in {"output": (True, False), "A": (True,), "B": (False,)}[kind]:
        # The operand that the outer loop keeps would be loaded anew for each single tile.
        idle = (one_column & ~one_row) if rows_outer else (one_row & ~one_column)
        legal = ~(whole & idle)
        if not rows_outer:
            legal &= whole & ~(one_row & one_column)
        if not plain:
            legal &= ~(one_row & one_column)
        if accumulators == 2:
            legal &= ((vn // n) if rows_outer else (vm // m)) >= 2
        count = int(legal.sum())
        found.append((
            m[legal], n[legal], k[legal], np.full(count, _KINDS.index(kind)),
            np.full(count, accumulators), np.full(count, rows_outer),
        ))  # fmt: skip
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))


def _tiles(
    product: CubeProduct, target: Target, kind: Stationary, accumulators: int
) -> tuple[Ints, Ints, Ints]:
    """Tiles that fit L0A, L0B and L0C in this regime, by m, n, k."""
    pm, pn, pk = product.physical
    sm, sn, sk = product.steps
    depth = DEPTHS[kind]
    left, right, acc = (target.memory[s].usable_bytes for s in ("Left", "Right", "Acc"))
    lhs_room = left * 8 // (product.lhs.bits * depth[0])
    rhs_room = right * 8 // (product.rhs.bits * depth[1])
    acc_room = acc // (ACC_BYTES * accumulators)
    m, n, k = (_axis(*pair) for pair in ((sm, pm), (sn, pn), (sk, pk)))
    if not product.leaves:
        m, n = m[m == pm], n[n == pn]
    if kind != "output" or accumulators == 2:
        k = k[k == pk]
    m = m[m * sk <= lhs_room]
    n = n[n * sk <= rhs_room]
    align = target.alignment_rows_acc(product.acc)
    gm, gn = np.meshgrid(m, n, indexing="ij")
    fits = -(-gm // align) * align * gn <= acc_room
    gm, gn = gm[fits], gn[fits]
    deepest = np.minimum(lhs_room // gm, rhs_room // gn)
    counts = np.searchsorted(k, deepest, side="right")
    first = np.cumsum(counts) - counts
    at = np.arange(counts.sum()) - np.repeat(first, counts)
    tiles = np.repeat(gm, counts), np.repeat(gn, counts), k[at]
    return tiles[0][::-1], tiles[1][::-1], tiles[2][::-1]


def _axis(step: int, extent: int) -> Ints:
    """Multiples of `step` up to `extent`, which is one of them."""
    return np.arange(step, extent + 1, step, dtype=np.int64)
