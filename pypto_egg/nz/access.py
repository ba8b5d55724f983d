"""Reads of NZ tensors in blocked coordinates: loads, slices, whole flattenings.

Calls come in with their logical operands and leave with blocked ones; the tensor operand itself
is exchanged with all other variables afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pypto_egg.errors import NzError
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import BinOp, Call, ConstInt, Expr, TupleExpr, dims_of, tuple_of
from pypto_egg.ir.fold import Dim, const_value, dim_product, fold, provably_equal, same_dims
from pypto_egg.ir.types import ScalarType, TensorType, TileType, implicit_view
from pypto_egg.nz.layout import (
    FRACTAL_ROWS,
    Named,
    block_type,
    c0_elems,
    fold_offsets,
    fold_window,
    matrix_of,
)
from pypto_egg.nz.proofs import PROVABLE_FORMS, Proofs
from pypto_egg.nz.row_gap import check_row_gap
from pypto_egg.ops.rules import Shape
from pypto_egg.ops.site import show_dim, show_shape
from pypto_egg.ops.windows import align_right
from pypto_egg.target.target import Target

_FORMS = f"provable are {', '.join(PROVABLE_FORMS)}"


@dataclass(frozen=True, slots=True)
class Access:
    """One use of an NZ tensor, still in logical coordinates.

    Args:
        kind: the logical type of the tensor.
        about: the tensor, for errors.
    """

    call: Call
    kind: TensorType
    about: Named
    proofs: Proofs
    target: Target

    @property
    def c0(self) -> int:
        return c0_elems(self.kind.dtype, self.about)

    def error(self, problem: str, hint: str) -> NzError:
        return self.about.error(problem, hint)

    def dims(self, index: int) -> Shape:
        """Operand `index` as dimensions; empty if it is absent."""
        if index >= len(self.call.args):
            return ()
        operand = self.call.args[index]
        return dims_of(operand) if isinstance(operand, TupleExpr) else ()

    def rebuilt(self, args: Sequence[Expr], result: TensorType | TileType) -> Call:
        """The call with other operands and an explicit type; all else is kept (N-026, N-035)."""
        return replace(self.call, args=tuple(args), result_type=result)


def blocked_offset(access: Access, offset: Dim, divisor: int, what: str) -> Dim:
    """A row or column offset in fractals or lines: the whole offset divided.

    A symbolic offset is divided as evaluated, in its own dtype. Arithmetic wraps, so nothing of
    it may be re-associated (N-077 to N-079).

    Raises:
        NzError: the offset is not provably a multiple of `divisor` and non-negative.
    """
    value = offset if isinstance(offset, int) else fold(offset)
    if isinstance(value, ConstInt):
        value = value.value
    if isinstance(value, int):
        _check_literal(access, value, divisor, what)
        return value // divisor
    assert isinstance(offset, Expr)
    shown = f"is addressed at {what} {show_dim(offset)}"
    if not access.proofs.is_multiple(offset, divisor):
        raise access.error(
            f"{shown}, which is not provably a multiple of {divisor}: "
            f"{access.proofs.unproven_multiple(offset, divisor)}",
            f"make the {what} a multiple of {divisor} in a provable form; {_FORMS}",
        )
    if not access.proofs.non_negative(offset):
        raise access.error(
            f"{shown}, which is not provably non-negative: {access.proofs.unproven_sign(offset)}",
            f"a negative {what} would be read as 0 without any error; {_FORMS} (a difference is "
            "not)",
        )
    return divided(offset, divisor)


def _check_literal(access: Access, value: int, divisor: int, what: str) -> None:
    if value < 0:
        raise access.error(
            f"is addressed at {what} {value}; offsets start at 0",
            f"count the {what} from the start of the tensor",
        )
    if value % divisor != 0:
        low = value // divisor * divisor
        raise access.error(
            f"is addressed at {what} {value}, inside a fractal; a {what} must be a multiple of "
            f"{divisor}",
            f"start at {low} or {low + divisor}",
        )


def divided(expr: Expr, divisor: int) -> Expr:
    """`expr // divisor` in the dtype of `expr`."""
    kind = expr.type
    assert isinstance(kind, ScalarType)
    return BinOp("//", expr, ConstInt(divisor, kind.dtype), kind.dtype)


def _blocked_extent(access: Access, extent: Dim, divisor: int, what: str) -> Dim:
    """A valid extent in fractals or lines; its sign does not matter (N-106, N-107)."""
    value = const_value(extent)
    if value is None:
        assert isinstance(extent, Expr)
        if access.proofs.is_multiple(extent, divisor):
            return divided(extent, divisor)
        raise access.error(
            f"is loaded with {show_dim(extent)} valid {what}, which may end inside a fractal: not "
            f"provably a multiple of {divisor}: "
            f"{access.proofs.unproven_multiple(extent, divisor)}",
            f"make the valid {what} a multiple of {divisor} in a provable form; {_FORMS}",
        )
    if value % divisor != 0:
        raise access.error(
            f"is loaded with {value} {what}; they must be a multiple of {divisor}, since a part "
            "of a fractal has no NZ form",
            f"load {-(-value // divisor) * divisor} {what}",
        )
    return value // divisor


def blocked_load(access: Access, tile: TileType) -> Call:
    """A `tile.load` in blocked coordinates; the tile stays the matrix it is (N-024 to N-026).

    Args:
        tile: the type of the loaded tile.

    Raises:
        NzError: another space than Mat, a window or an offset without a blocked form, or a row
            gap that pto-isa cannot count.
    """
    _check_load(access, tile)
    offsets, sizes = access.dims(1), access.dims(2)
    extents = access.kind.shape
    offset = _blocked_offsets(access, offsets)
    window = _blocked_window(access, sizes)
    if not same_dims(tile.shape, matrix_of(window)):
        raise access.error(
            f"is loaded in a window of {show_shape(sizes)} into a tile of "
            f"{show_shape(tile.shape)}; the tile must be the matrix "
            f"{show_shape(matrix_of(window))}",
            "flatten tiles to two axes before NZ views are blocked",
        )
    operands = [access.call.args[0], tuple_of(offset), tuple_of(window)]
    partition = window
    if access.dims(3):
        partition = _blocked_valid(access, sizes, access.dims(3), window)
        operands.append(tuple_of(partition))
    rows = const_value(extents[-2])
    assert rows is not None
    loaded = const_value(partition[2])
    blocks = const_value(partition[1])
    most = blocks if blocks is not None else const_value(window[1])
    assert most is not None
    check_row_gap(
        rows,
        None if loaded is None else loaded * FRACTAL_ROWS,
        most,
        access.target,
        access.about,
    )
    return access.rebuilt(operands, tile)


def _check_load(access: Access, tile: TileType) -> None:
    space = access.call.kwarg("target_memory")
    if space is not Mem.Mat:
        given = f"into {space.name}" if isinstance(space, Mem) else "without target_memory"
        raise access.error(
            f"is loaded {given}; an NZ tensor can be loaded to Mat only, as a cube operand",
            "use target_memory=pl.Mem.Mat, or keep the tensor ND where the vector unit reads it",
        )
    if access.call.kwarg("clamp"):
        raise access.error(
            "is loaded with clamp=True, which has no blocked form",
            "give the valid extents as valid_shape",
        )
    if tile.rank != 2:
        raise access.error(
            f"is loaded into a tile of rank {tile.rank}, {show_shape(tile.shape)}; a cube operand "
            "has two axes",
            "flatten tiles to two axes before NZ views are blocked",
        )
    view, needed = tile.layout, implicit_view(tile.shape, Mem.Mat)
    if (view.blayout, view.slayout, view.fractal) != (
        needed.blayout,
        needed.slayout,
        needed.fractal,
    ):
        raise access.error(
            "is loaded into a tile of another box order, which would re-order its bytes",
            "load it as it is stored (blayout col_major, slayout row_major, fractal 512)",
        )


def _blocked_offsets(access: Access, offsets: Shape) -> Shape:
    """`[batch, column block, row fractal, 0, 0]`."""
    for axis, start in enumerate(offsets[:-2]):
        value = const_value(start)
        if value is not None and value < 0:
            raise access.error(
                f"is addressed at {value} on axis {axis}; offsets start at 0",
                "count from the start of the tensor",
            )
    batch = fold_offsets(offsets[:-2], access.kind.shape[:-2])
    row = blocked_offset(access, offsets[-2], FRACTAL_ROWS, "row offset")
    col = blocked_offset(access, offsets[-1], access.c0, "column offset")
    return (batch, col, row, 0, 0)


def _blocked_window(access: Access, sizes: Shape) -> Shape:
    for what, size in (("rows", sizes[-2]), ("columns", sizes[-1])):
        if const_value(size) is None:
            raise access.error(
                f"is loaded with {show_dim(size)} {what}; the extents of a tile are static",
                "give the largest extent here and the run-time extent as valid_shape",
            )
    batch = fold_window(sizes[:-2], access.kind.shape[:-2], access.about)
    rows = _blocked_extent(access, sizes[-2], FRACTAL_ROWS, "rows")
    cols = _blocked_extent(access, sizes[-1], access.c0, "columns")
    return (batch, cols, rows, FRACTAL_ROWS, access.c0)


def _blocked_valid(access: Access, sizes: Shape, valid: Shape, window: Shape) -> Shape:
    batch = window[0]
    if not same_dims(valid[:-2], sizes[:-2]):
        batch = fold_window(valid[:-2], access.kind.shape[:-2], access.about)
    if not provably_equal(batch, 1) and not provably_equal(valid[-2], sizes[-2]):
        raise access.error(
            f"is loaded with {show_dim(valid[-2])} of {show_dim(sizes[-2])} rows of several "
            "planes; they are no prefix of the tile",
            "load one plane at a time, or all rows",
        )
    rows = _blocked_extent(access, valid[-2], FRACTAL_ROWS, "rows")
    cols = _blocked_extent(access, valid[-1], access.c0, "columns")
    return (batch, cols, rows, FRACTAL_ROWS, access.c0)


def blocked_slice(access: Access) -> Call:
    """A `tensor.slice` of leading axes in blocked coordinates, without drop_dims (N-127, N-128).

    Raises:
        NzError: a window on the plane of the last two axes, which is not contiguous in NZ order,
            or on leading axes that do not follow each other (N-100, N-129).
    """
    kind, offsets = access.kind, access.dims(2)
    sizes = align_right(access.dims(1), kind.rank, 1)
    whole = same_dims(sizes[-2:], kind.shape[-2:])
    if not whole or any(access.proofs.constant(start) != 0 for start in offsets[-2:]):
        raise access.error(
            f"of shape {show_shape(kind.shape)} is sliced to {show_shape(sizes[-2:])} at "
            f"{show_shape(offsets[-2:])} of its last two axes; such a window is not contiguous "
            "in NZ order",
            "make the stacking axis a leading one ([LAYERS, R, C]) and slice that, or load the "
            "window directly (tile.load)",
        )
    given = access.dims(3)
    if given and not same_dims(align_right(given, kind.rank, 1), sizes):
        raise access.error(
            f"is sliced with the valid extents {show_shape(given)} of {show_shape(sizes)}; it "
            "must be valid as a whole",
            "give the valid extents to the load instead",
        )
    if access.call.kwarg("clamp"):
        raise access.error(
            "is sliced with clamp=True, which has no blocked form", "slice inside the tensor"
        )
    batch = fold_window(sizes[:-2], kind.shape[:-2], access.about)
    result = block_type(access.call.type, access.about)
    plane = block_type(kind, access.about)
    assert isinstance(result, TensorType)
    assert isinstance(plane, TensorType)
    start = _blocked_offsets(access, (*offsets[:-2], 0, 0))
    operands = [access.call.args[0], tuple_of((batch, *plane.shape[1:])), tuple_of(start)]
    return access.rebuilt(operands, result)


def flattened_whole(access: Access) -> Call:
    """A `tensor.reshape` to one axis over all elements, unchanged: it walks the same memory
    (N-130).

    Raises:
        NzError: any other shape, whose elements lie elsewhere in NZ order (N-102).
    """
    kind, shape = access.kind, access.dims(1)
    valid = access.dims(2)
    flat = len(shape) == 1 and provably_equal(shape[0], dim_product(kind.shape))
    if flat and (not valid or same_dims(valid, shape)):
        return access.call
    raise access.error(
        f"of shape {show_shape(kind.shape)} is reshaped to {show_shape(shape)}; in NZ order only "
        f"the whole flattening to [{show_dim(dim_product(kind.shape))}] keeps its elements in "
        "place",
        "reshape the data before it is packed, or keep the tensor ND",
    )
