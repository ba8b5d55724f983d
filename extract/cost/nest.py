"""A product with operands in L1 as a nest of L0 tiles, in order of execution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pypto_egg.extract.cost.pypto_l0 import L0Choice
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.types import TileType

Cut = tuple[int, int]
"""Start and extent of a tile on one axis."""


@dataclass(frozen=True, slots=True)
class Nest:
    """A product cut into L0 tiles."""

    op: str
    lhs: TileType
    rhs: TileType
    valid: tuple[int, int, int]
    tile: L0Choice
    lhs_there: bool
    rhs_there: bool

    def windows(self) -> Iterator[tuple[Cut, Cut, Cut]]:
        """The cuts in rows, columns and K of each tile, in order of execution."""
        m, n, k = self.valid
        rows, cols, deep = _cuts(m, self.tile.m), _cuts(n, self.tile.n), _cuts(k, self.tile.k)
        outer, inner = (rows, cols) if self.tile.rows_outer else (cols, rows)
        for one in outer:
            for other in inner:
                row, col = (one, other) if self.tile.rows_outer else (other, one)
                for block in deep:
                    yield row, col, block

    def moved(
        self, row: Cut, col: Cut, deep: Cut
    ) -> Iterator[tuple[Mem, TileType, tuple[Cut, Cut]]]:
        """The operands that have to come from L1, with their windows."""
        if not self.lhs_there:
            yield Mem.Left, self.lhs, (row, deep)
        if not self.rhs_there:
            yield Mem.Right, self.rhs, (deep, col)


def _cuts(extent: int, by: int) -> list[Cut]:
    return [(start, min(by, extent - start)) for start in range(0, extent, by)]
