"""Extents of a tile as plain numbers: rows and columns that are valid, and that are allocated."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pypto_egg.errors import InternalError
from pypto_egg.ir.enums import TileLayout
from pypto_egg.ir.expr import ConstInt, Expr
from pypto_egg.ir.types import TensorType, TileType, Type
from pypto_egg.target.tables import VectorShape

# What a physical extent that is only known at run time is priced as. Tiles of on-chip spaces are
# static, so this is met only in tensors whose extents are parameters.
SYMBOLIC_EXTENT = 128


def ceil_div(value: int, by: int) -> int:
    return -(-value // by)


def round_up(value: int, to: int) -> int:
    return ceil_div(value, to) * to


@dataclass(frozen=True, slots=True)
class Matrix:
    """A shaped value as `batch` matrices: valid and physical rows and columns, element width."""

    batch: int
    rows: int
    cols: int
    physical_rows: int
    physical_cols: int
    bits: int

    @property
    def elems(self) -> int:
        return self.batch * self.rows * self.cols

    @property
    def valid_bytes(self) -> float:
        return self.elems * self.bits / 8


def extents(shape: tuple[int | Expr, ...]) -> tuple[int, ...]:
    """The extents as ints; a symbolic one is `SYMBOLIC_EXTENT`."""
    return tuple(SYMBOLIC_EXTENT if e is None else e for e in map(_static, shape))


def _static(extent: int | Expr) -> int | None:
    if isinstance(extent, ConstInt):
        return extent.value
    return extent if isinstance(extent, int) else None


def matrix(shaped: Type, op: str) -> Matrix:
    """`shaped` (a tile or a tensor) as matrices; leading axes are the batch, rank 1 is one row.

    A valid extent that is only known at run time is priced as the physical one, an upper bound.
    """
    if not isinstance(shaped, TileType | TensorType):
        raise InternalError(f"{op}: expected a tile or tensor, got {shaped}")
    physical = extents(shaped.shape)
    valid = tuple(
        p if v is None else min(v, p)
        for v, p in zip(map(_static, shaped.valid_shape), physical, strict=True)
    )
    padded = (1,) * (2 - len(physical))
    physical, valid = padded + physical, padded + valid
    rows, cols = valid[-2:]
    physical_rows, physical_cols = physical[-2:]
    return Matrix(prod(valid[:-2]), rows, cols, physical_rows, physical_cols, shaped.dtype.bits)


def vector_shape(shaped: Type, op: str) -> VectorShape:
    """The work of a vector op over the valid part of `shaped`.

    It is contiguous if whole rows are valid or there is one row. A column-major unboxed tile,
    such as the result of a row reduction, is taken column by column.
    """
    tile = matrix(shaped, op)
    rows, cols, width = tile.rows, tile.cols, tile.physical_cols
    column = isinstance(shaped, TileType) and _by_column(shaped, width)
    if column:
        rows, cols, width = tile.cols, tile.rows, tile.physical_rows
    rows *= tile.batch
    return VectorShape(rows, cols, contiguous=rows <= 1 or cols == width, column=column)


def _by_column(tile: TileType, physical_cols: int) -> bool:
    view = tile.layout
    if view.slayout is not TileLayout.none_box:
        return False
    return view.blayout is TileLayout.col_major or physical_cols == 1
