"""Reshapes of windows that have gaps between their rows.

A `tile.slice` of some of a tile's columns shares the tile's buffer, so its rows do not follow each
other; under another shape its bytes would be other elements (PyPTO operator reference, views).
"""

from __future__ import annotations

from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.flows import flows_of
from pypto_egg.ir.fold import same_dims
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import walk

_KEEPING = ("tile.slice", "tile.set_validshape", "tile.write", "tile.assemble")


def reshaped_gaps(function: Function) -> list[Var]:
    """The results of reshapes whose source has gaps, in program order."""
    gapped: set[Expr] = set()
    while True:
        size = len(gapped)
        for stmt in walk(function.body):
            gapped.update(var for var, value in flows_of(stmt) if _has_gaps(value, gapped))
        if len(gapped) == size:
            break
    return [
        stmt.var
        for stmt in walk(function.body)
        if isinstance(stmt, Assign) and isinstance(stmt.value, Call)
        and stmt.value.op == "tile.reshape" and stmt.value.args[0] in gapped
    ]  # fmt: skip


def _has_gaps(value: Expr, gapped: set[Expr]) -> bool:
    if not isinstance(value, Call):
        return value in gapped
    if value.op not in _KEEPING:
        return False
    return value.args[0] in gapped or (value.op == "tile.slice" and _cuts_columns(value))


def _cuts_columns(slice_: Call) -> bool:
    source, window = slice_.args[0].type, slice_.type
    assert isinstance(source, TileType)
    assert isinstance(window, TileType)
    one_row = all(extent == 1 for extent in window.shape[:-1])
    return not one_row and not same_dims(source.shape[1:], window.shape[1:])
