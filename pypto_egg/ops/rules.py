"""What type rules share: broadcasting, valid regions, layouts of results.

Sources: PyPTO operator reference (dtype promotion, broadcasting, valid_shape, tile results).
"""

from __future__ import annotations

from dataclasses import replace

from pypto_egg.ir.dtype import FP32, INT32, DType
from pypto_egg.ir.enums import CompactMode, Mem, TensorLayout, TileLayout
from pypto_egg.ir.fold import Dim, provably_equal, provably_unequal, same_dims
from pypto_egg.ir.types import (
    TensorType,
    TensorView,
    TileType,
    implicit_view,
    tensor_type,
    tile_type,
)
from pypto_egg.ops.site import Site, show_dim, show_shape

Shape = tuple[Dim, ...]


def broadcast(site: Site, first: int, second: int) -> Shape:
    """The right-aligned NumPy broadcast of two operands' shapes.

    Raises:
        TypeCheckError: two dimensions are neither provably equal nor 1.
    """
    a, b = site.shaped(first).shape, site.shaped(second).shape
    return broadcast_shapes(site, first, second, a, b)


def broadcast_shapes(site: Site, first: int, second: int, a: Shape, b: Shape) -> Shape:
    """The broadcast of two shapes that belong to operands `first` and `second`."""
    rank = max(len(a), len(b))
    left = (1,) * (rank - len(a)) + a
    right = (1,) * (rank - len(b)) + b
    result: list[Dim] = []
    for x, y in zip(left, right, strict=True):
        if x == 1 or provably_equal(x, y):
            result.append(y)
        elif y == 1:
            result.append(x)
        else:
            raise site.error(
                second,
                f"has shape {show_shape(b)}, which does not broadcast with {show_shape(a)} of "
                f"{site.label(first)}: {show_dim(y)} against {show_dim(x)}",
                hint="dimensions must be provably equal, or 1 on one side",
            )
    return tuple(result)


def demand_same_shape(site: Site, first: int, second: int) -> None:
    """Refuse two operands whose shapes are not provably equal."""
    a, b = site.shaped(first).shape, site.shaped(second).shape
    if not same_dims(a, b):
        raise site.error(
            second,
            f"has shape {show_shape(b)}, but {site.label(first)} has {show_shape(a)}; "
            f"{site.name} does not broadcast",
            hint="expand the smaller one first (row_expand, col_expand)",
        )


def demand_equal_dim(site: Site, second: int, what: str, got: Dim, needed: Dim) -> None:
    """Refuse a dimension that provably differs from the one needed."""
    if provably_unequal(got, needed):
        raise site.error(second, f"has {what} {show_dim(got)}; {show_dim(needed)} is needed")


def fresh_tensor(shape: Shape, dtype: DType, valid: Shape | None = None) -> TensorType:
    """A plain packed ND tensor, as operators make them."""
    return tensor_type(shape, dtype, None if valid is None else TensorView(valid_shape=valid))


def plain_valid(operand: TensorType) -> Shape | None:
    """The valid shape that a result takes from this operand; a distributed one gives none."""
    return None if operand.distributed else operand.valid_shape


def shared_valid(a: TensorType, b: TensorType) -> Shape | None:
    """The valid shape of an elementwise result: kept if both operands agree, else full."""
    agree = same_dims(a.shape, b.shape) and same_dims(a.valid_shape, b.valid_shape)
    return a.valid_shape if agree else None


def is_full(operand: TensorType | TileType) -> bool:
    """True if the whole extent is provably valid."""
    return same_dims(operand.shape, operand.valid_shape)


def tensor_with_valid(operand: TensorType, valid: Shape) -> TensorType:
    """The same tensor with another valid region."""
    view = replace(operand.view or TensorView(), valid_shape=valid)
    return tensor_type(operand.shape, operand.dtype, view, operand.memref, operand.distributed)


def accumulator_dtype(operand: DType) -> DType:
    """The dtype in which the cube unit accumulates products of this one."""
    return FP32 if operand.is_float else INT32


# --- tiles -------------------------------------------------------------------------------------


def like_tile(
    source: TileType,
    shape: Shape,
    dtype: DType,
    space: Mem | None,
    valid: Shape | None,
) -> TileType:
    """A tile with the layout of `source`: its block and box order, pad and compactness.

    The box size in bytes is that of the new space (PyPTO operator reference, tile result types).
    """
    given = source.layout
    view = replace(
        implicit_view(shape, space),
        valid_shape=valid,
        blayout=given.blayout,
        slayout=given.slayout,
        pad=given.pad,
        compact=given.compact,
    )
    return tile_type(shape, dtype, space, view)


def plain_tile(
    shape: Shape, dtype: DType, space: Mem | None, valid: Shape | None = None
) -> TileType:
    """A tile in the implicit layout of its space."""
    return tile_type(shape, dtype, space, replace(implicit_view(shape, space), valid_shape=valid))


def mark_partial(tile: TileType) -> TileType:
    """A boxed tile marked compact if its valid rows are not provably all of its rows."""
    if tile.layout.slayout is TileLayout.none_box or tile.rank < 2:
        return tile
    full = provably_equal(tile.valid_shape[-2], tile.shape[-2])
    return tile if full else tile.with_view(compact=CompactMode.normal)


def swap_last(shape: Shape) -> Shape:
    """The shape with its last two dimensions exchanged."""
    return (*shape[:-2], shape[-1], shape[-2])


def swap_axes(shape: Shape, first: int, second: int) -> Shape:
    """The shape with two dimensions exchanged."""
    dims = list(shape)
    dims[first], dims[second] = dims[second], dims[first]
    return tuple(dims)


FRACTAL_LAYOUTS = (TensorLayout.NZ, TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)


def refuse_fractal(site: Site, index: int, hint: str) -> None:
    """Refuse a tensor whose bytes in global memory are in a fractal order."""
    layout = site.tensor(index).layout
    if layout in FRACTAL_LAYOUTS:
        raise site.error(
            index,
            f"has layout {layout.name} and shape {show_shape(site.tensor(index).shape)}, which "
            f"{site.name} cannot address",
            hint=hint,
        )
