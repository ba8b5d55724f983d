"""Views and shape operators: slice, reshape, transpose, reinterpretation, valid extents.

Views of global memory and of tiles alias their source. Tensor values that are not in global
memory are copied where PyPTO's lowering would make a new tile (transpose, reshape of a value).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from pypto_egg.interp.layout import (
    order_of,
    packed_axes,
    storage_elems,
    tile_axes,
)
from pypto_egg.interp.memory import NOWHERE, Region
from pypto_egg.interp.numbers import convert, widen
from pypto_egg.interp.poison import numpy_dtype
from pypto_egg.interp.semantics_transfer import store_into
from pypto_egg.interp.site import OpSite, both, semantics
from pypto_egg.interp.values import (
    Shape,
    TensorValue,
    TileValue,
    Value,
    new_tensor,
    tensor_from,
)
from pypto_egg.interp.windows import (
    check_boxes,
    check_nz_offset,
    check_window,
    is_box_packed,
    is_packed,
    reshaped_valid,
    union_valid,
    window_of_valid,
)
from pypto_egg.ir.enums import TensorLayout


@semantics("tensor.slice", "tile.slice")
def slice_op(site: OpSite) -> Value:
    """A window that aliases its source."""
    source = site.shaped(0)
    shape, offset = site.dims(1), site.dims(2)
    # A shape of lower rank covers the leading axes with extent 1.
    shape = (1,) * (len(offset) - len(shape)) + shape
    valid = window_of_valid(source, offset, shape)
    if site.has(3):
        valid = tuple(max(0, min(v, s)) for v, s in zip(site.dims(3), shape, strict=True))
    if site.kwarg("clamp", False):
        valid = tuple(
            max(0, min(v, size - o)) for v, size, o in zip(valid, source.shape, offset, strict=True)
        )
    inside = all(o + s <= size for o, s, size in zip(offset, shape, source.shape, strict=True))
    check_window(site, 0, source.shape, offset, shape if inside else valid)
    dropped = site.dims(4) if site.has(4) else ()
    if isinstance(source, TensorValue):
        check_nz_offset(site, 0, source, offset)
        return _slice_tensor(source, offset, shape, valid, dropped)
    return _slice_tile(site, source, offset, shape, valid, dropped)


def _overhanging(region: Region, offset: Shape, shape: Shape) -> Region:
    """A window whose invalid part may lie outside: those elements get addresses beyond the end.

    They are outside the valid extents and never read.
    """

    axes = []
    for axis, start, extent in zip(region.axes, offset, shape, strict=True):
        part = axis[start : start + extent]
        missing = np.full(extent - part.size, NOWHERE, dtype=np.int64)
        axes.append(np.concatenate([part, missing]) if missing.size else part)
    return Region(region.buffer, region.dtype, region.base, tuple(axes))


def _drop(region: Region, valid: Shape, dropped: Shape) -> tuple[Region, Shape]:
    """Remove axes of extent 1; their single address joins the base."""
    kept = [i for i in range(len(region.axes)) if i not in dropped]
    base = region.base + sum(int(region.axes[i][0]) for i in dropped)
    axes = tuple(region.axes[i] for i in kept)
    return Region(region.buffer, region.dtype, base, axes), tuple(valid[i] for i in kept)


def _slice_tensor(
    source: TensorValue, offset: Shape, shape: Shape, valid: Shape, dropped: Shape
) -> TensorValue:
    region = _overhanging(source.region, offset, shape)
    region, valid = _drop(region, valid, dropped)
    return replace(source, region=region, valid=valid)


def _slice_tile(
    site: OpSite, source: TileValue, offset: Shape, shape: Shape, valid: Shape, dropped: Shape
) -> TileValue:
    if source.order.boxed:
        check_boxes(site, 0, offset, source.order.box)
    region = _overhanging(source.region, offset, shape)
    spare = len(shape) - 2
    if dropped:
        # A tile keeps at least two axes.
        region, valid = _drop(region, valid, dropped[: max(0, spare)])
    whole = source.whole and shape == source.shape
    return replace(source, region=region, valid=valid, whole=whole)


@semantics("tensor.set_validshape", "tile.set_validshape")
def set_validshape(site: OpSite) -> Value:
    source = site.shaped(0)
    valid = (site.index(1), site.index(2))
    check_window(site, 0, source.shape, (0, 0), valid)
    if isinstance(source, TensorValue):
        return replace(source, valid=valid)
    return source.viewed(valid, source.compact, source.space)


@semantics("tensor.reshape")
def reshape_tensor(site: OpSite) -> Value:
    """The elements in row-major order under another shape.

    Packed global memory is aliased; an NZ tensor may only be flattened, to its raw byte order
    (N-101).
    """
    source, shape = site.tensor(0), site.dims(1)
    _check_count(site, source.shape, shape)
    valid = site.dims(2) if site.has(2) else reshaped_valid(site, source.shape, source.valid, shape)
    if source.layout is TensorLayout.NZ:
        if shape != (prod(source.shape),):
            raise site.error(
                f"the NZ tensor {site.operand(0)} of shape {list(source.shape)} can only be "
                f"reshaped to [{prod(source.shape)}], not to {list(shape)}"
            )
        region = replace(source.region, axes=packed_axes(shape))
        return TensorValue(region, valid, in_gm=source.in_gm)
    if source.in_gm and is_packed(source):
        region = Region(source.region.buffer, source.dtype, source.region.first, packed_axes(shape))
        return TensorValue(region, valid, in_gm=True)
    return tensor_from(source.elements().reshape(shape), source.dtype, valid)


def _check_count(site: OpSite, shape: Shape, new_shape: Shape) -> None:
    if prod(shape) != prod(new_shape):
        raise site.error(
            f"{site.operand(0)} of shape {list(shape)} has {prod(shape)} elements, the shape "
            f"{list(new_shape)} has {prod(new_shape)}"
        )


@semantics("tile.reshape")
def reshape_tile(site: OpSite) -> Value:
    """The same bytes under another shape and byte order."""
    source = site.tile(0)
    shape = site.result_shape()
    _check_count(site, source.shape, shape)
    if not is_box_packed(source):
        raise site.error(
            f"{site.operand(0)} is a window with gaps; its bytes have no other shape",
            hint="move it to a tile of its own first",
        )
    view = site.result_tile_type().layout
    order = order_of(view, source.dtype)
    if storage_elems(shape, order) > storage_elems(source.shape, source.order):
        raise site.error(f"whole boxes of {list(shape)} take more bytes than {site.operand(0)} has")
    valid = reshaped_valid(site, source.shape, source.valid, shape)
    region = Region(
        source.region.buffer, source.dtype, source.region.first, tile_axes(shape, order)
    )
    return replace(source, region=region, valid=valid, order=order)


@semantics("tensor.transpose")
def transpose_tensor(site: OpSite) -> Value:
    source = site.tensor(0)
    axis1, axis2 = _axes(site, len(source.shape))
    valid = list(source.valid)
    valid[axis1], valid[axis2] = valid[axis2], valid[axis1]
    given = site.dims(3) if site.has(3) else tuple(valid)
    if source.layout is TensorLayout.NZ:
        raise site.error(f"the NZ tensor {site.operand(0)} cannot be transposed (N-104)")
    if not source.in_gm:
        values = np.swapaxes(source.elements(), axis1, axis2)
        return tensor_from(values, source.dtype, given)
    return replace(
        source,
        region=source.region.swapped(axis1, axis2),
        valid=given,
        layout=_toggled(source.layout, {axis1, axis2}, len(source.shape)),
    )


def _toggled(layout: TensorLayout, axes: set[int], rank: int) -> TensorLayout:
    if axes != {rank - 2, rank - 1}:
        return layout
    return TensorLayout.ND if layout is TensorLayout.DN else TensorLayout.DN


def _axes(site: OpSite, rank: int) -> tuple[int, int]:
    axes = tuple(site.index(i) + (rank if site.index(i) < 0 else 0) for i in (1, 2))
    if not all(0 <= axis < rank for axis in axes):
        raise site.error(f"axes {site.index(1)}, {site.index(2)} do not exist in rank {rank}")
    return axes[0], axes[1]


@semantics("tile.transpose")
def transpose_tile(site: OpSite) -> Value:
    """A new tile; poison stays outside the transposed valid region."""
    source = site.tile(0)
    axis1, axis2 = _axes(site, len(source.shape))
    shape, valid = list(source.shape), list(source.valid)
    for sizes in (shape, valid):
        sizes[axis1], sizes[axis2] = sizes[axis2], sizes[axis1]
    return site.filled(np.swapaxes(source.read(), axis1, axis2), tuple(shape), tuple(valid))


@semantics("tile.transpose_view")
def transpose_view(site: OpSite) -> Value:
    """The same bytes read as the transpose: row and column order exchanged in both levels."""
    source = site.tile(0)
    rank = len(source.shape)
    valid = (*source.valid[:-2], source.valid[-1], source.valid[-2])
    return replace(
        source,
        region=source.region.swapped(rank - 2, rank - 1),
        valid=valid,
        order=source.order.transposed(),
    )


@semantics("tensor.view")
def view(site: OpSite) -> Value:
    """Global memory under other metadata: another packed shape, or DN for ND."""
    source = site.tensor(0)
    layout = site.kwarg("layout")
    if site.has(1) and site.dims(1) != source.shape:
        shape = site.dims(1)
        _check_count(site, source.shape, shape)
        if not is_packed(source):
            raise site.error(f"{site.operand(0)} is not packed; it has no view of another shape")
        region = Region(source.region.buffer, source.dtype, source.region.first, packed_axes(shape))
        valid = reshaped_valid(site, source.shape, source.valid, shape)
        source = replace(source, region=region, valid=valid)
    elif isinstance(layout, TensorLayout) and layout is not source.layout:
        source = _relaid(site, source, layout)
    if site.has(2):
        source = replace(source, valid=site.dims(2))
    return source


def _relaid(site: OpSite, source: TensorValue, layout: TensorLayout) -> TensorValue:
    if {layout, source.layout} != {TensorLayout.ND, TensorLayout.DN} or len(source.shape) < 2:
        raise site.error(f"{site.operand(0)} in {source.layout.value} has no {layout.value} view")
    rank = len(source.shape)
    valid = (*source.valid[:-2], source.valid[-1], source.valid[-2])
    region = source.region.swapped(rank - 2, rank - 1)
    return replace(source, region=region, valid=valid, layout=layout)


@semantics("tensor.reinterpret_view", "tile.reinterpret_view")
def reinterpret_view(site: OpSite) -> Value:
    """The same bytes as elements of another type."""
    source = site.shaped(0)
    if not (is_packed(source) if isinstance(source, TensorValue) else is_box_packed(source)):
        raise site.error(f"{site.operand(0)} is not packed")
    dtype = site.result_dtype
    shape = site.result_shape()
    old, new = numpy_dtype(source.dtype).itemsize, numpy_dtype(dtype).itemsize
    if prod(source.shape) * old != prod(shape) * new or source.region.first * old % new:
        raise site.error(
            f"{site.operand(0)} of {prod(source.shape) * old} bytes cannot be {list(shape)} "
            f"elements of {dtype.name}"
        )
    base = source.region.first * old // new
    if isinstance(source, TileValue):
        order = order_of(site.result_tile_type().layout, dtype)
        axes = tile_axes(shape, order)
    else:
        axes = packed_axes(shape)
    valid = site.stated_valid() or shape
    region = Region(source.region.buffer, dtype, base, axes)
    if isinstance(source, TileValue):
        return replace(source, region=region, valid=valid, order=order)
    return replace(source, region=region, valid=valid)


@semantics(*both("concat"))
def concat(site: OpSite) -> Value:
    """Two matrices side by side."""
    a, b = site.shaped(0), site.shaped(1)
    shape = (*a.shape[:-1], a.shape[-1] + b.shape[-1])
    if a.shape[:-1] != b.shape[:-1]:
        raise site.error(
            f"{site.operand(0)} of shape {list(a.shape)} and {site.operand(1)} of shape "
            f"{list(b.shape)} differ in rows"
        )
    rows = a.valid[:-1]
    if a.valid == a.shape:
        valid = (*rows, a.shape[-1] + b.valid[-1])
        values = np.concatenate([a.read(), b.read((*rows, b.valid[-1]))], axis=-1)
        return site.filled(values, shape, valid)
    values = np.concatenate([a.read((*rows, a.shape[-1])), b.read((*rows, b.shape[-1]))], axis=-1)
    return site.filled(values, shape, (*rows, shape[-1]))


@semantics("tensor.assemble")
def assemble_tensor(site: OpSite) -> Value:
    """The target with the source's valid region written at the offset.

    In place on handles of global memory (and for a call whose result is dropped); a new tensor
    otherwise.
    """
    target, source = site.tensor(0), site.shaped(1)
    offset = site.dims(2)
    extent = (1,) * (len(target.shape) - len(source.valid)) + source.valid
    check_window(site, 0, target.shape, offset, extent)
    check_nz_offset(site, 0, target, offset)
    if not (target.in_gm or site.for_effect):
        fresh = new_tensor(target.shape, target.dtype, valid=target.valid, layout=target.layout)
        fresh.region.write(target.elements())
        target = fresh
    if 0 not in extent:
        values = source.read().reshape(extent)
        store_into(target.region.window(offset, extent), values, site.kwarg("atomic"))
    return replace(target, valid=union_valid(target, offset, extent))


@semantics("tensor.expand_clone")
def expand_clone(site: OpSite) -> Value:
    """The input broadcast to the target's shape, written into a target in global memory."""
    source, target = site.tensor(0), site.tensor(1)
    for axis, (a, b) in enumerate(zip(source.shape, target.shape, strict=True)):
        if a not in (1, b):
            raise site.error(
                f"axis {axis} of {site.operand(0)} has {a} elements, the target has {b}"
            )
    values = convert(widen(source.elements()), site.result_dtype)
    values = np.broadcast_to(values, target.shape)
    if not target.in_gm:
        return tensor_from(np.ascontiguousarray(values), site.result_dtype)
    target.region.write(convert(values, target.dtype))
    return target


@semantics("tensor.dim")
def dim(site: OpSite) -> Value:
    shape = site.shaped(0).shape
    axis = site.index(1)
    if not -len(shape) <= axis < len(shape):
        raise site.error(f"axis {axis} does not exist in {site.operand(0)} of rank {len(shape)}")
    return shape[axis]
