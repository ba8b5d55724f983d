"""Element addresses of tiles and of tensors in global memory, for every layout PyPTO prints.

Boxed tiles (PyPTO language reference, TileView; Ascend fractals): with a grid of BR x BC boxes of
br x bc elements, box (R, C) and position (r, c) inside it,

    NZ  col_major blocks, row_major inside:  ((C*BR + R)*br + r)*bc + c
    ZZ  row_major blocks, row_major inside:  ((R*BC + C)*br + r)*bc + c
    ZN  row_major blocks, col_major inside:  ((R*BC + C)*bc + c)*br + r
    NN  col_major blocks, col_major inside:  ((C*BR + R)*bc + c)*br + r

A tile of rank above two is stored as the matrix [product of the leading extents, last extent].
A tensor annotated NZ is `[B, C/c0, R/16, 16, c0]` in memory (N-006, N-007).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from pypto_egg.errors import InterpretError
from pypto_egg.interp.memory import NOWHERE
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import TileLayout
from pypto_egg.ir.types import FRACTAL_ROWS, TileView, box_shape

Axes = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class TileOrder:
    """The part of a tile's view that fixes its byte order."""

    blayout: TileLayout
    slayout: TileLayout
    fractal: int
    box: tuple[int, int]

    @property
    def boxed(self) -> bool:
        """Whether elements are stored box by box."""
        return self.slayout is not TileLayout.none_box

    @property
    def accumulator(self) -> bool:
        """NZ order of 16 x 16 boxes: what the cube writes, with a pitch of its own."""
        col, row = TileLayout.col_major, TileLayout.row_major
        return self.fractal == 1024 and (self.blayout, self.slayout) == (col, row)

    def transposed(self) -> TileOrder:
        """The order in which the same bytes are the transposed tile (NZ <-> ZN)."""
        rows, cols = self.box
        return TileOrder(_flip(self.blayout), _flip(self.slayout), self.fractal, (cols, rows))


def _flip(layout: TileLayout) -> TileLayout:
    if layout is TileLayout.row_major:
        return TileLayout.col_major
    return TileLayout.row_major if layout is TileLayout.col_major else layout


def order_of(view: TileView, dtype: DType) -> TileOrder:
    """The byte order that a tile view states for elements of `dtype`."""
    boxed = view.slayout is not TileLayout.none_box
    fractal = view.fractal if boxed else 512
    return TileOrder(view.blayout, view.slayout, fractal, box_shape(view, dtype))


def accumulator_pitch(valid_rows: int) -> int:
    """Rows that `mad` leaves between column fractals of an accumulator (C-152, C-270)."""
    return max(1, -(-valid_rows // FRACTAL_ROWS)) * FRACTAL_ROWS


def matrix_form(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of the matrix in which a tile of any rank is stored."""
    if not shape:
        return (1, 1)
    return (prod(shape[:-1]), shape[-1])


def storage_elems(shape: tuple[int, ...], order: TileOrder) -> int:
    """Elements that a tile occupies: whole boxes."""
    rows, cols = matrix_form(shape)
    box_rows, box_cols = order.box
    return -(-rows // box_rows) * box_rows * (-(-cols // box_cols) * box_cols)


@lru_cache(maxsize=4096)
def tile_axes(shape: tuple[int, ...], order: TileOrder, pitch: int | None = None) -> Axes:
    """The address summands of each axis of a tile.

    Args:
        pitch: rows between column fractals, for an accumulator whose reader or writer does not
            use the physical rows; rows beyond it have no address.
    """
    rows, cols = matrix_form(shape)
    row_part, col_part = _matrix_axes(rows, cols, order, pitch)
    if len(shape) <= 1:
        return (col_part,)[: len(shape)]
    return (*_split_rows(row_part, shape), col_part)


def _matrix_axes(
    rows: int, cols: int, order: TileOrder, pitch: int | None
) -> tuple[np.ndarray, np.ndarray]:
    r = np.arange(rows, dtype=np.int64)
    c = np.arange(cols, dtype=np.int64)
    if not order.boxed:
        if order.blayout is TileLayout.col_major:
            return r, c * rows
        return r * cols, c
    br, bc = order.box
    if pitch is not None:
        row_part = np.where(r < pitch, r * bc, NOWHERE)
        return row_part, (c // bc) * (pitch * bc) + c % bc
    grid_rows, grid_cols = -(-rows // br), -(-cols // bc)
    by_rows = order.blayout is TileLayout.row_major
    box_row = (grid_cols if by_rows else 1) * br * bc
    box_col = (1 if by_rows else grid_rows) * br * bc
    row_step, col_step = (bc, 1) if order.slayout is TileLayout.row_major else (1, br)
    return (r // br) * box_row + (r % br) * row_step, (c // bc) * box_col + (c % bc) * col_step


def _split_rows(row_part: np.ndarray, shape: tuple[int, ...]) -> Axes:
    """The row summands spread over the leading axes of a tile of rank above two."""
    leading = shape[:-1]
    if len(leading) == 1:
        return (row_part,)
    grid = row_part.reshape(leading)
    axes = []
    total = np.zeros((1,) * len(leading), dtype=np.int64)
    for position in range(len(leading)):
        index = tuple(slice(None) if i == position else 0 for i in range(len(leading)))
        axis = grid[index]
        axes.append(axis)
        form = [1] * len(leading)
        form[position] = axis.size
        total = total + axis.reshape(form)
    if not np.array_equal(np.broadcast_to(total, leading), grid):
        raise InterpretError(
            f"a tile of shape {list(shape)} cannot be boxed: its pages of {shape[-2]} rows are "
            "not a whole number of boxes",
            hint="flatten the tile to two axes or align the page rows to the box",
        )
    return tuple(axes)


def packed_axes(shape: tuple[int, ...]) -> Axes:
    """Row-major (ND) address summands."""
    strides = [prod(shape[i + 1 :]) for i in range(len(shape))]
    return strided_axes(shape, tuple(strides))


def strided_axes(shape: tuple[int, ...], strides: tuple[int, ...]) -> Axes:
    """Address summands of a strided tensor."""
    return tuple(
        np.arange(extent, dtype=np.int64) * stride
        for extent, stride in zip(shape, strides, strict=True)
    )


def dn_axes(shape: tuple[int, ...]) -> Axes:
    """Address summands of a packed DN tensor: the last two axes column-major."""
    if len(shape) < 2:
        return packed_axes(shape)
    *lead, rows, cols = shape
    strides = [prod(lead[i + 1 :]) * rows * cols for i in range(len(lead))]
    return strided_axes(shape, (*strides, 1, rows))


def line_elems(dtype: DType) -> int:
    """c0: elements in one 32-byte line (N-005)."""
    return 256 // dtype.bits


def is_blocked_nz(shape: tuple[int, ...], dtype: DType) -> bool:
    """True for the physical rank-5 form `[B, C/c0, R/16, 16, c0]` of an NZ tensor (N-010)."""
    return len(shape) == 5 and shape[-2:] == (FRACTAL_ROWS, line_elems(dtype))


def blocked_nz_shape(shape: tuple[int, ...], dtype: DType) -> tuple[int, ...]:
    """The blocked form of a logical NZ shape; leading axes fold into the batch (N-006, N-120)."""
    c0 = line_elems(dtype)
    rows, cols = shape[-2:]
    return (prod(shape[:-2]), cols // c0, rows // FRACTAL_ROWS, FRACTAL_ROWS, c0)


def nz_axes(shape: tuple[int, ...], dtype: DType) -> Axes:
    """Address summands of an NZ tensor, logical or already blocked (N-006 to N-013).

    Raises:
        InterpretError: the last two extents are not whole fractals (N-086, N-087).
    """
    if is_blocked_nz(shape, dtype):
        return packed_axes(shape)
    c0 = line_elems(dtype)
    if len(shape) < 2 or shape[-2] % FRACTAL_ROWS or shape[-1] % c0:
        raise InterpretError(
            f"an NZ tensor of {dtype.name} must be whole fractals of {FRACTAL_ROWS} x {c0}; "
            f"its shape is {list(shape)}"
        )
    *lead, rows, cols = shape
    leading = strided_axes(
        tuple(lead), tuple(prod(lead[i + 1 :]) * rows * cols for i in range(len(lead)))
    )
    r = np.arange(rows, dtype=np.int64)
    c = np.arange(cols, dtype=np.int64)
    return (*leading, r * c0, (c // c0) * (rows * c0) + c % c0)
