"""One schedule of a cube product: its tile, what stays in L0, and the order of the loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stationary = Literal["output", "A", "B"]

OPERANDS = {"tile.matmul": (0, 1), "tile.matmul_acc": (1, 2), "tile.matmul_bias": (0, 1)}
"""The products that schedules are stated for: positions of the left and the right operand."""

DEPTHS: dict[Stationary, tuple[int, int]] = {"output": (2, 2), "A": (1, 2), "B": (2, 1)}
"""Buffers of the left and of the right operand in L0: one for what stays, two for what streams
(PyPTO, l0_tile_chooser.cpp)."""


@dataclass(frozen=True, slots=True)
class L0Schedule:
    """A product cut into m x n tiles of its result, each a sum over blocks of k.

    Args:
        m, n, k: the tile, in elements; the last tile of each axis may be smaller (a peeled tail).
        stationary: what stays in L0: the output in L0C, the left operand (A) or the right one (B).
        accumulators: 1, or 2 so that one is drained while the other is filled (dbC).
        rows_outer: rows are the outer loop, so that the left operand can stay between column tiles.
    """

    m: int
    n: int
    k: int
    stationary: Stationary = "output"
    accumulators: int = 1
    rows_outer: bool = True

    def __str__(self) -> str:
        order = "rows outer" if self.rows_outer else "columns outer"
        buffers = "2 accumulators" if self.accumulators == 2 else "1 accumulator"
        return f"{self.m} x {self.n} x {self.k}, {self.stationary} stays, {buffers}, {order}"
