"""BoxShape: boxed tiles hold whole fractals, and matmul operands agree in physical extents."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call
from pypto_egg.ir.fold import Dim, provably_unequal
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Eval, Stmt
from pypto_egg.ir.types import TileType, box_shape
from pypto_egg.ir.visit import definitions, walk
from pypto_egg.ops.registry import lookup
from pypto_egg.verify.finding import Finding, Property


def check_boxes(function: Function) -> Iterator[Finding]:
    """Findings of BoxShape in one function (C-125, C-126, C-138, C-145, C-171)."""
    for var in definitions(function):
        if isinstance(var.type, TileType):
            problem = broken_boxes(var.type)
            if problem is not None:
                message, hint = problem
                yield Finding(
                    Property.BOX_SHAPE,
                    f"tile '{var.name}' of function '{function.name}' {message}",
                    var.span,
                    hint,
                )
    for stmt in walk(function.body):
        if isinstance(stmt, Assign | Eval) and isinstance(stmt.value, Call):
            yield from _matmul_extents(function, stmt, stmt.value)


def broken_boxes(tile: TileType) -> tuple[str, str] | None:
    """What is wrong with a tile's physical extents and what to do, or None if nothing is.

    Rows and columns of a boxed tile are multiples of the box. Rows of Vec tiles and of tiles of
    one row are free (pto-isa, tile alignment). Leading dimensions are packed into the rows.
    """
    if tile.space is None or tile.rank < 2:
        return None
    box_rows, box_cols = box_shape(tile.layout, tile.dtype)
    if (box_rows, box_cols) == (1, 1):
        return None
    cols = tile.shape[-1]
    leading = [dim for dim in tile.shape[:-1] if isinstance(dim, int)]
    rows = math.prod(leading) if len(leading) == tile.rank - 1 else None
    free_rows = tile.space is Mem.Vec or rows == 1 or rows is None
    bad_rows = not free_rows and rows is not None and rows % box_rows != 0
    bad_cols = isinstance(cols, int) and cols % box_cols != 0
    if not bad_rows and not bad_cols:
        return None
    return (
        f"in {tile.space.value} has physical extents {_extents(rows, cols)}, not whole "
        f"{tile.dtype.name} boxes of {box_rows} rows and {box_cols} columns",
        f"allocate {_rounded(rows, box_rows, bad_rows)} x {_rounded(cols, box_cols, bad_cols)} "
        f"and keep the true extents as valid_shape",
    )


def _extents(rows: int | None, cols: Dim) -> str:
    return f"{_rounded(rows, 1, False)} x {_rounded(cols, 1, False)}"


def _rounded(extent: Dim | None, box: int, wrong: bool) -> str:
    if not isinstance(extent, int):
        return "a dynamic number of"
    return str(-(-extent // box) * box if wrong else extent)


def _matmul_extents(function: Function, stmt: Stmt, call: Call) -> Iterator[Finding]:
    """The pairs of physical extents that a matrix multiplication needs to be equal."""
    tiles = _operand_tiles(call)
    lhs, rhs, acc = tiles.get("lhs"), tiles.get("rhs"), tiles.get("acc")
    if lhs is None or rhs is None or lhs.rank < 2 or rhs.rank < 2:
        return
    pairs = [("K of lhs and rhs", lhs.shape[-1], rhs.shape[-2])]
    if acc is not None and acc.rank >= 2:
        # A one-row GEMV still accumulates into a whole block of rows.
        if "gemv" not in call.op:
            pairs.append(("M of the accumulator and lhs", acc.shape[-2], lhs.shape[-2]))
        pairs.append(("N of the accumulator and rhs", acc.shape[-1], rhs.shape[-1]))
    for what, left, right in pairs:
        if provably_unequal(left, right):
            yield Finding(
                Property.BOX_SHAPE,
                f"pl.{call.op} in function '{function.name}' needs equal physical extents for "
                f"{what}, got {left} and {right}",
                call.span or stmt.span,
                "align both tiles to the same multiple",
            )


def _operand_tiles(call: Call) -> dict[str, TileType]:
    """The tile operands of a `tile.*` matrix multiplication by name; empty for other operators."""
    decl = lookup(call.op)
    if decl is None or not call.op.startswith("tile."):
        return {}
    if not any(kind in call.op for kind in ("matmul", "gemv")):
        return {}
    named = zip(decl.operands, call.args, strict=False)
    return {o.name: a.type for o, a in named if isinstance(a.type, TileType)}
