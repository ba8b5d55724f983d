"""AccCompactValid: an accumulator with fewer valid than physical rows is declared compact."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg.ir.enums import CompactMode, Mem
from pypto_egg.ir.fold import provably_equal, provably_le
from pypto_egg.ir.program import Function
from pypto_egg.ir.types import FRACTAL_ROWS, TileType
from pypto_egg.ir.visit import definitions
from pypto_egg.verify.finding import Finding, Property


def check_acc_compact(function: Function) -> Iterator[Finding]:
    """Findings of AccCompactValid in one function (C-152, C-153, C-275).

    The matrix unit writes an accumulator with a pitch of its valid rows rounded up to 16; a
    reader of a tile that is not compact takes the physical rows instead. They agree if the valid
    rows are all rows, or if there is one block of rows only.
    """
    for var in definitions(function):
        tile = var.type
        if not isinstance(tile, TileType) or tile.space is not Mem.Acc or tile.rank < 2:
            continue
        rows, valid = tile.shape[-2], tile.valid_shape[-2]
        if provably_equal(rows, valid) or provably_le(rows, FRACTAL_ROWS):
            continue
        if tile.layout.compact is CompactMode.null:
            yield Finding(
                Property.ACC_COMPACT_VALID,
                f"accumulator '{var.name}' of function '{function.name}' has {rows} physical "
                f"rows, not all of them valid, but is not compact",
                var.span,
                "create it with compact=True and narrow it by tile.set_validshape",
            )
