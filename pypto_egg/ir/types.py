"""Types of values: scalars, tensors in global memory, tiles on chip, tuples, arrays, handles.

Types are immutable and compare by value; dimensions are Python ints when static and scalar
expressions of dtype INDEX otherwise. Optional views are canonical: a view that says nothing
beyond the default is `None`, so two equal types are equal objects in the sense of `==`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import CompactMode, Mem, PadValue, TensorLayout, TileLayout

if TYPE_CHECKING:
    from pypto_egg.ir.expr import Expr


@dataclass(frozen=True, slots=True)
class Type:
    """Base of all types."""


@dataclass(frozen=True, slots=True)
class ScalarType(Type):
    """A scalar of some dtype: `pl.Scalar[pl.X]`."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class UnknownType(Type):
    """The type of operations without a result (`pl.UnknownType`)."""


@dataclass(frozen=True, slots=True)
class HandleType(Type):
    """An opaque handle that is only passed on, such as `pl.Ptr` or `pl.AsyncEvent`."""

    name: str


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """Several results of a call."""

    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class ArrayType(Type):
    """A small array of scalars held on the core (`pl.Array[N, pl.DT]`)."""

    extent: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class MemRef:
    """A buffer reference as printed inside a type; passed through, never interpreted."""

    args: tuple[str | int | Expr, ...]
    slots: int | None = None
    index: Expr | int | None = None


@dataclass(frozen=True, slots=True)
class TensorView:
    """How a tensor's bytes are read: the part that is valid, strides (elements), layout, padding.

    `valid_shape` is None when it equals the shape; empty `stride` means packed by the layout.
    """

    valid_shape: tuple[int | Expr, ...] | None = None
    stride: tuple[int | Expr, ...] = ()
    layout: TensorLayout = TensorLayout.ND
    pad: PadValue = PadValue.null


@dataclass(frozen=True, slots=True)
class TensorType(Type):
    """A tensor in global memory."""

    shape: tuple[int | Expr, ...]
    dtype: DType
    view: TensorView | None = None
    memref: MemRef | None = None
    distributed: bool = False

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def valid_shape(self) -> tuple[int | Expr, ...]:
        """The valid extents; the shape where no view narrows it."""
        if self.view is not None and self.view.valid_shape is not None:
            return self.view.valid_shape
        return self.shape

    @property
    def layout(self) -> TensorLayout:
        """The order in global memory; ND where no view says otherwise."""
        return self.view.layout if self.view is not None else TensorLayout.ND


@dataclass(frozen=True, slots=True)
class TileView:
    """Layout of a tile: valid extents, block and box order, box size in bytes, padding."""

    valid_shape: tuple[int | Expr, ...] | None = None
    stride: tuple[int | Expr, ...] = ()
    start_offset: Expr | None = None
    blayout: TileLayout = TileLayout.row_major
    slayout: TileLayout = TileLayout.none_box
    fractal: int = 512
    pad: PadValue = PadValue.null
    compact: CompactMode = CompactMode.null


def implicit_view(shape: tuple[int | Expr, ...], space: Mem | None) -> TileView:
    """The view of a tile whose annotation spells none (PyPTO language reference, TileView)."""
    row, col, none = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
    by_shape = row
    if len(shape) == 2:
        rows, cols = shape
        if isinstance(rows, int) and isinstance(cols, int) and cols == 1 and rows > 1:
            by_shape = col
    match space:
        case Mem.Mat | Mem.Left:
            return TileView(blayout=col, slayout=row, fractal=512)
        case Mem.Right:
            return TileView(blayout=by_shape, slayout=col, fractal=512)
        case Mem.Acc:
            return TileView(blayout=col, slayout=row, fractal=1024)
        case Mem.LeftScale:
            return TileView(blayout=row, slayout=row, fractal=32)
        case Mem.RightScale:
            return TileView(blayout=col, slayout=col, fractal=32)
        case _:
            return TileView(blayout=by_shape, slayout=none, fractal=512)


@dataclass(frozen=True, slots=True)
class TileType(Type):
    """A tile in an on-chip memory space.

    `shape` is the physical extent (elements); `view` is None when it is the implicit one for
    (shape, space). Build through `tile_type`, which keeps that canonical.
    """

    shape: tuple[int | Expr, ...]
    dtype: DType
    space: Mem | None = None
    view: TileView | None = None
    memref: MemRef | None = None

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def layout(self) -> TileView:
        """The view in force, implicit fields filled in."""
        return self.view if self.view is not None else implicit_view(self.shape, self.space)

    @property
    def valid_shape(self) -> tuple[int | Expr, ...]:
        """The valid extents; the physical ones where the view in force narrows nothing."""
        valid = self.layout.valid_shape
        return self.shape if valid is None else valid

    def with_view(self, **changes: Any) -> TileType:
        """The same tile with some fields of its view changed."""
        return tile_type(
            self.shape,
            self.dtype,
            self.space,
            replace(self.layout, **changes),
            self.memref,
        )


def tile_type(
    shape: tuple[int | Expr, ...],
    dtype: DType,
    space: Mem | None = None,
    view: TileView | None = None,
    memref: MemRef | None = None,
) -> TileType:
    """A tile type in canonical form: an implicit view and a full valid_shape become None."""
    if view is not None:
        if view.valid_shape is not None and tuple(view.valid_shape) == tuple(shape):
            view = replace(view, valid_shape=None)
        if view == implicit_view(shape, space):
            view = None
    return TileType(tuple(shape), dtype, space, view, memref)


def tensor_type(
    shape: tuple[int | Expr, ...],
    dtype: DType,
    view: TensorView | None = None,
    memref: MemRef | None = None,
    distributed: bool = False,
) -> TensorType:
    """A tensor type in canonical form: a view that only states defaults becomes None."""
    if view is not None:
        if view.valid_shape is not None and tuple(view.valid_shape) == tuple(shape):
            view = replace(view, valid_shape=None)
        if view == TensorView():
            view = None
    return TensorType(tuple(shape), dtype, view, memref, distributed)


FRACTAL_ROWS = 16
"""Rows of a fractal on the cube's side, whatever the dtype (PyPTO language reference, TileView)."""


def box_shape(view: TileView, dtype: DType) -> tuple[int, int]:
    """Rows and columns of one box (fractal) of a tile; (1, 1) for an unboxed tile.

    PyPTO language reference, TileView: a 1024-byte fractal is 16 x 16, a 32-byte one 16 x 2 or
    2 x 16, a 512-byte one 16 rows of 32 bytes (row_major) or its transpose (col_major).
    """
    if view.slayout is TileLayout.none_box:
        return (1, 1)
    if view.fractal == 1024:
        return (FRACTAL_ROWS, FRACTAL_ROWS)
    line = 2 if view.fractal == 32 else 256 // dtype.bits
    row_major = view.slayout is TileLayout.row_major
    return (FRACTAL_ROWS, line) if row_major else (line, FRACTAL_ROWS)
