"""The blocked form of NZ tensors: shapes, strides, folded leading axes, and what has none.

A tensor annotated `pl.NZ` states the order of its bytes in global memory and converts nothing
(N-001, N-002). Its logical shape `[.., R, C]` is the plain row-major tensor

    [B, C/c0, R/16, 16, c0]

of rank 5 in that order: c0 elements make a line of 32 bytes, 16 rows a fractal, fractals run
along the rows first and along the columns outside (N-005 to N-010). Source of the rules:
PyPTO, BlockNzTensorViews; pto-isa, `Layout::NZ` in pto_tile.hpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pypto_egg.errors import NzError
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.fold import (
    Dim,
    const_value,
    dim_add,
    dim_mul,
    dim_product,
    provably_equal,
    same_dims,
)
from pypto_egg.ir.types import FRACTAL_ROWS, TensorType, TupleType, Type, tensor_type
from pypto_egg.ops.site import show_dim, show_shape
from pypto_egg.ops.tensor_shape import packed_strides
from pypto_egg.source import Span

LINE_BITS = 256
BLOCKED_RANK = 5

Shape = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """The tensor that an error is about: its name, the tensor it is a view of, its place."""

    name: str
    span: Span | None = None
    root: str | None = None

    def error(self, problem: str, hint: str) -> NzError:
        """An error about this tensor, to be raised by the caller."""
        view = f" (a view of '{self.root}')" if self.root not in (None, self.name) else ""
        message = f"NZ tensor '{self.name}'{view} {problem}"
        return NzError(message, span=self.span, hint=hint)


_UNNAMED = Named("(unnamed)")


def c0_elems(dtype: DType, about: Named = _UNNAMED) -> int:
    """Elements in one line of 32 bytes: 256 / bits of the dtype.

    Raises:
        NzError: elements smaller than a byte, which this lowering does not cover (N-135, N-136),
            or elements without a byte order.
    """
    if dtype.bits < 8 or dtype.kind == "opaque":
        raise about.error(
            f"has elements of {dtype.name} ({dtype.bits} bits); NZ needs numbers of a whole "
            "number of bytes, 8 bits or more",
            "keep the tensor ND, or store it as a dtype of at least 8 bits",
        )
    return LINE_BITS // dtype.bits


def blocked_shape(shape: Sequence[Dim], dtype: DType, about: Named = _UNNAMED) -> Shape:
    """The shape `[B, C/c0, R/16, 16, c0]` of a tensor of logical shape `[.., R, C]`.

    All leading axes fold into B, which is 1 for rank 2 and may be symbolic for rank 3.

    Raises:
        NzError: rank below 2; R or C that is dynamic or no whole number of fractals; a dynamic
            leading extent of a rank above 3; elements smaller than a byte (N-086 to N-097,
            N-123, N-135).
    """
    c0 = c0_elems(dtype, about)
    if len(shape) < 2:
        raise about.error(
            f"has rank {len(shape)}, shape {show_shape(tuple(shape))}; rank 2 or more is needed, "
            "since the last two axes are the plane of fractals",
            "annotate a rank-1 tensor without pl.NZ",
        )
    rows = _whole(shape, -2, FRACTAL_ROWS, "rows", dtype, about)
    cols = _whole(shape, -1, c0, "columns", dtype, about)
    batch = _folded_extent(tuple(shape[:-2]), about)
    return (batch, cols // c0, rows // FRACTAL_ROWS, FRACTAL_ROWS, c0)


def _whole(
    shape: Sequence[Dim], axis: int, multiple: int, what: str, dtype: DType, about: Named
) -> int:
    """A static extent that is a whole number of fractals."""
    extent = const_value(shape[axis])
    if extent is None:
        raise about.error(
            f"has a dynamic number of {what}, {show_dim(shape[axis])}; it must be static to be "
            f"known as a multiple of {multiple}",
            f"give the {what} a fixed extent, a multiple of {multiple}",
        )
    if extent % multiple != 0:
        unit = "16-row fractal" if axis == -2 else "32-byte line"
        padded = -(-extent // multiple) * multiple
        raise about.error(
            f"of {dtype.name} has {extent} {what}; they must be a multiple of {multiple}, since "
            f"a part of a {unit} has no NZ form",
            f"make the {what} a multiple of {multiple}, for example {padded}, padding the data "
            "before it is packed",
        )
    return extent


def _folded_extent(leading: Shape, about: Named) -> Dim:
    if len(leading) == 1:
        return leading[0]
    for axis, dim in enumerate(leading):
        if const_value(dim) is None:
            raise about.error(
                f"of rank {len(leading) + 2} has the dynamic extent {show_dim(dim)} on axis "
                f"{axis}; the leading axes fold into one batch axis, so each must be static",
                "make the extent static, or give the tensor rank 3, whose batch may be dynamic",
            )
    return dim_product(leading)


def blocked_strides(shape: Sequence[Dim], dtype: DType, about: Named = _UNNAMED) -> Shape:
    """Strides in elements of the blocked form: `[C*R, R*c0, 16*c0, c0, 1]`.

    They are the row-major strides of the blocked shape; NZ has no stride rule of its own
    (N-007, N-012, N-013).

    Raises:
        NzError: the shape has no blocked form.
    """
    return packed_strides(blocked_shape(shape, dtype, about), TensorLayout.ND)


def matrix_of(window: Sequence[Dim]) -> tuple[Dim, Dim]:
    """Rows and columns of the tile that a blocked window `[b, c1, r1, 16, c0]` fills (N-025)."""
    b, c1, r1, r0, c0 = window
    return dim_mul(dim_mul(b, r1), r0), dim_mul(c1, c0)


def is_nz(kind: Type) -> bool:
    """True for the type of a tensor that is annotated NZ."""
    return isinstance(kind, TensorType) and kind.layout is TensorLayout.NZ


def has_nz(kind: Type) -> bool:
    """True for an NZ tensor and for a tuple that holds one."""
    if isinstance(kind, TupleType):
        return any(has_nz(item) for item in kind.items)
    return is_nz(kind)


def has_blocked_form(kind: TensorType) -> bool:
    """True if the shape is that of a blocked tensor.

    A logical shape may end in `[16, c0]` too (N-139); the marker of a function tells them apart.
    """
    tail = (FRACTAL_ROWS, LINE_BITS // kind.dtype.bits)
    return kind.rank == BLOCKED_RANK and kind.shape[-2:] == tail


def block_type(kind: Type, about: Named = _UNNAMED) -> Type:
    """The type with every NZ tensor in it in blocked form; other types as they are.

    Only the shape changes; strides stay implied by it (N-014).

    Raises:
        NzError: explicit strides, a partial valid shape, a distributed tensor, or a shape without
            a blocked form (N-085 to N-097, N-105, N-108).
    """
    if isinstance(kind, TupleType):
        return TupleType(tuple(block_type(item, about) for item in kind.items))
    if not isinstance(kind, TensorType) or not is_nz(kind):
        return kind
    _check_plain(kind, about)
    shape = blocked_shape(kind.shape, kind.dtype, about)
    assert kind.view is not None
    view = replace(kind.view, valid_shape=None)
    return tensor_type(shape, kind.dtype, view, kind.memref)


def _check_plain(kind: TensorType, about: Named) -> None:
    if kind.distributed:
        raise about.error(
            "is a distributed tensor, and remote loads have no NZ form",
            "pass it as an ordinary tensor, sliced by rank before the call, or keep it ND",
        )
    if kind.view is not None and kind.view.stride:
        raise about.error(
            f"states the strides {show_shape(kind.view.stride)}; its order follows from its "
            "shape alone",
            "drop the strides",
        )
    if not same_dims(kind.valid_shape, kind.shape):
        raise about.error(
            f"is valid only in {show_shape(kind.valid_shape)} of {show_shape(kind.shape)}; it "
            "must be valid as a whole",
            "give the valid extents to the load instead of the tensor",
        )


def fold_offsets(offsets: Sequence[Dim], extents: Sequence[Dim]) -> Dim:
    """The batch offset that offsets into the leading axes make: `g*E + e` (N-121).

    It is what a row-major address does, so it is exact for any coordinate (N-122). The extents of
    all axes but the first must be static.
    """
    if not offsets:
        return 0
    total = offsets[0]
    for offset, extent in zip(offsets[1:], extents[1:], strict=True):
        total = dim_add(dim_mul(total, extent), offset)
    return total


def fold_window(sizes: Sequence[Dim], extents: Sequence[Dim], about: Named) -> Dim:
    """The batch extent of a window over the leading axes.

    Raises:
        NzError: the window's planes do not follow each other in memory: behind its first axis
            of more than one plane some axis is not taken whole.
    """
    axis = 0
    while axis < len(sizes) and provably_equal(sizes[axis], 1):
        axis += 1
    if not same_dims(tuple(sizes[axis + 1 :]), tuple(extents[axis + 1 :])):
        raise about.error(
            f"is read in a window of {show_shape(tuple(sizes))} planes of "
            f"{show_shape(tuple(extents))}, which do not follow each other in memory",
            "take one plane at a time, or the axes behind the first one whole",
        )
    return dim_product(sizes[axis:])
