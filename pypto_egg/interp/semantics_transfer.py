"""Moves between global memory and tiles and between tiles: load, store, move, extract, insert.

A load reads global memory in the valid window only; a store writes the valid region only.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from pypto_egg.interp.layout import is_blocked_nz
from pypto_egg.interp.memory import Region
from pypto_egg.interp.numbers import convert, widen
from pypto_egg.interp.poison import is_float_array
from pypto_egg.interp.site import OpSite, semantics
from pypto_egg.interp.values import Scalar, Shape, TensorValue, TileValue, Value
from pypto_egg.interp.windows import (
    check_boxes,
    check_nz_offset,
    check_window,
    is_packed,
    matrix_valid,
    union_valid,
    window_of_valid,
)
from pypto_egg.ir.enums import AtomicType, Mem, TensorLayout
from pypto_egg.ir.types import FRACTAL_ROWS


def blocked_window(region: Region) -> Region:
    """A window of a blocked NZ tensor, [B, C1, R1, 16, c0], with its axes as [B, R1, 16, C1, c0].

    Row-major order of the result is that of the logical planes.
    """
    b, c1, r1, r0, c0 = region.axes
    return Region(region.buffer, region.dtype, region.base, (b, r1, r0, c1, c0))


@semantics("tile.load")
def load(site: OpSite) -> Value:
    tensor = site.tensor(0)
    offset, window = site.dims(1), site.dims(2)
    asked = site.dims(3) if site.has(3) else window
    valid = _load_valid(site, tensor, offset, window, asked)
    check_window(site, 0, tensor.shape, offset, valid)
    check_nz_offset(site, 0, tensor, offset)
    region = tensor.region.window(offset, valid)
    shape = site.result_shape()
    if tensor.layout is TensorLayout.NZ and is_blocked_nz(tensor.shape, tensor.dtype):
        return _load_blocked(site, region, shape)
    if len(shape) == len(window):
        if shape != window:
            raise site.error(f"a window of {list(window)} cannot make a tile of {list(shape)}")
        tile_valid = valid
    else:
        tile_valid = _flattened(site, window, valid, shape)
    tile = site.new_tile(tile_valid)
    tile.region.prefix(tile_valid).write(region.read().reshape(tile_valid))
    return tile


def _load_valid(
    site: OpSite, tensor: TensorValue, offset: Shape, window: Shape, asked: Shape
) -> Shape:
    """The given window cut to the tensor's valid region (and to its extents with clamp)."""
    if not len(offset) == len(window) == len(asked) == len(tensor.shape):
        raise site.error(
            f"offsets {list(offset)}, shapes {list(window)} and valid shapes {list(asked)} must "
            f"have the rank of {site.operand(0)}, shape {list(tensor.shape)}"
        )
    valid = tuple(max(0, min(a, w)) for a, w in zip(asked, window, strict=True))
    seen = window_of_valid(tensor, offset, window)
    valid = tuple(min(v, s) for v, s in zip(valid, seen, strict=True))
    if not site.kwarg("clamp", False):
        return valid
    return tuple(
        max(0, min(v, size - o)) for v, size, o in zip(valid, tensor.shape, offset, strict=True)
    )


def _flattened(site: OpSite, window: Shape, valid: Shape, shape: Shape) -> Shape:
    """Valid extents of an N-D window kept as a matrix (FlattenTileNdTo2D)."""
    if len(shape) != 2 or (prod(window[:-1]), window[-1]) != shape:
        raise site.error(f"a window of {list(window)} cannot make a tile of {list(shape)}")
    flat = matrix_valid(site, window, valid)
    if prod(flat) != prod(valid):
        raise site.error(f"the valid window {list(valid)} is not a prefix of {list(window)}")
    return flat


def _load_blocked(site: OpSite, region: Region, shape: Shape) -> TileValue:
    values = blocked_window(region).read()
    batch, r1, r0, c1, c0 = values.shape
    tile_valid = (batch * r1 * r0, c1 * c0)
    if len(shape) != 2 or any(v > s for v, s in zip(tile_valid, shape, strict=True)):
        raise site.error(
            f"a blocked window of {list(region.shape)} cannot make a tile of {list(shape)}"
        )
    tile = site.new_tile(tile_valid)
    tile.region.prefix(tile_valid).write(values.reshape(tile_valid))
    return tile


def store_into(region: Region, values: np.ndarray, atomic: object) -> None:
    """Write values into a region, converted to its type; or add them to it."""
    if atomic in (AtomicType.Add, "Add"):
        with np.errstate(all="ignore"):
            values = widen(region.read()) + widen(convert(values, region.dtype))
    region.write(convert(values, region.dtype))


@semantics("tile.store")
def store(site: OpSite) -> Value:
    """The target with the tile's valid region written at the offset."""
    tile, target = site.tile(0), site.tensor(2)
    offset = site.dims(1)
    check_nz_offset(site, 2, target, offset)
    if 0 in tile.valid:
        return target
    region, written = _store_region(site, tile, target, offset)
    store_into(region, tile.read().reshape(region.shape), site.kwarg("atomic"))
    if written is None:
        return target
    return _with_valid(target, union_valid(target, offset, written))


def _with_valid(target: TensorValue, valid: Shape) -> TensorValue:
    return replace(target, valid=valid)


def _store_region(
    site: OpSite, tile: TileValue, target: TensorValue, offset: Shape
) -> tuple[Region, Shape | None]:
    """Where a tile's valid region goes, and the window it makes valid in the target."""
    if site.has(3):
        return _partition(site, tile, target, offset, site.dims(3))
    if len(offset) != len(target.shape):
        return _flat_target(site, tile, target, offset), None
    extent = (1,) * (len(offset) - len(tile.valid)) + tile.valid
    if len(extent) != len(offset):
        raise site.error(
            f"a tile of {list(tile.shape)} cannot be stored into {site.operand(2)} of shape "
            f"{list(target.shape)}"
        )
    check_window(site, 2, target.shape, offset, extent)
    return target.region.window(offset, extent), extent


def _flat_target(site: OpSite, tile: TileValue, target: TensorValue, offset: Shape) -> Region:
    """A target of higher rank addressed as the matrix [leading product, last]."""
    shape = (prod(target.shape[:-1]), target.shape[-1])
    if len(offset) != 2 or not is_packed(target):
        raise site.error(
            f"offsets {list(offset)} do not match the rank of {site.operand(2)}, shape "
            f"{list(target.shape)}"
        )
    check_window(site, 2, shape, offset, tile.valid)
    rows = np.arange(shape[0], dtype=np.int64) * shape[1]
    cols = np.arange(shape[1], dtype=np.int64)
    flat = Region(target.region.buffer, target.dtype, target.region.first, (rows, cols))
    return flat.window(offset, tile.valid)


def _partition(
    site: OpSite, tile: TileValue, target: TensorValue, offset: Shape, window: Shape
) -> tuple[Region, Shape | None]:
    """The target of a store with an explicit N-D window."""
    if target.layout is TensorLayout.NZ and is_blocked_nz(target.shape, target.dtype):
        check_window(site, 2, target.shape, offset, window)
        region = blocked_window(target.region.window(offset, window))
        if region.size != prod(tile.valid):
            raise site.error(
                f"a valid region of {list(tile.valid)} does not fill the window {list(window)}"
            )
        return region, window
    extent = _window_extent(site, tile, window)
    check_window(site, 2, target.shape, offset, extent)
    return target.region.window(offset, extent), extent


def _window_extent(site: OpSite, tile: TileValue, window: Shape) -> Shape:
    """The N-D extents of a matrix tile's valid region inside an N-D window."""
    if len(tile.valid) == len(window):
        return tuple(min(v, w) for v, w in zip(tile.valid, window, strict=True))
    if len(tile.valid) != 2:
        raise site.error(f"a tile of {list(tile.shape)} does not fit the window {list(window)}")
    rows, cols = tile.valid
    lead = list(window[:-1])
    for axis in range(len(lead)):
        row = prod(lead[axis + 1 :])
        if rows % row == 0 and rows // row <= lead[axis]:
            return (*(1,) * axis, rows // row, *lead[axis + 1 :], min(cols, window[-1]))
    raise site.error(
        f"the valid region {list(tile.valid)} is not a prefix of the window {list(window)}"
    )


@semantics("tile.move")
def move(site: OpSite) -> Value:
    """The same logical tile in another space and byte order."""
    source = site.tile(0)
    result = site.new_tile(source.valid)
    if result.shape != source.shape:
        raise site.error(
            f"{site.operand(0)} has shape {list(source.shape)}, the result {list(result.shape)}"
        )
    values = source.read()
    if result.dtype.bits == source.dtype.bits and result.dtype != source.dtype:
        values = values.view(result.region.prefix(result.valid).read().dtype)
    result.region.prefix(result.valid).write(convert(values, result.dtype))
    return result


@semantics("tile.extract")
def extract(site: OpSite) -> Value:
    """A window of a tile, in the byte order of the destination space."""
    source = site.tile(0)
    offset = (site.index(1), site.index(2))
    shape = site.dims(3) if site.has(3) else site.result_shape()
    check_window(site, 0, source.shape, offset, shape)
    if source.order.boxed:
        check_boxes(site, 0, offset, _extract_step(site, source))
    valid = window_of_valid(source, offset, shape)
    result = site.new_tile(valid)
    values = source.region.window(offset, valid).read()
    result.region.prefix(valid).write(convert(values, result.dtype))
    return result


def _extract_step(site: OpSite, source: TileValue) -> tuple[int, int]:
    """What the offsets must be multiples of: a box, or a square one if boxes are transposed."""
    rows, cols = source.order.box
    target = site.result_tile_type()
    flips = target.space in (Mem.Left, Mem.Right) and (
        target.layout.slayout is not source.order.slayout
    )
    if not flips:
        return rows, cols
    side = max(FRACTAL_ROWS, rows, cols)
    return side, side


@semantics("tile.assemble")
def assemble(site: OpSite) -> Value:
    """The target tile with the source's valid region written at the offset, in place."""
    target, source = site.tile(0), site.tile(1)
    offset = site.dims(2)
    lead = len(target.shape) - len(source.valid)
    extent = (1,) * lead + source.valid
    check_window(site, 0, target.shape, offset, extent)
    if target.order.boxed:
        check_boxes(site, 0, offset, target.order.box)
    values = convert(source.read().reshape(extent), target.dtype)
    target.region.window(offset, extent).write(values)
    return target.viewed(union_valid(target, offset, extent), target.compact, target.space)


@semantics("tile.read", "tensor.read")
def read(site: OpSite) -> Value:
    source = site.shaped(0)
    index = site.dims(1)
    check_window(site, 0, source.shape, index, (1,) * len(index))
    return scalar_of(source.region.window(index, (1,) * len(index)).read())


def scalar_of(values: np.ndarray) -> Scalar:
    """The single element of an array as a Python number."""
    element = values.reshape(-1)[0]
    if values.dtype == np.bool_:
        return bool(element)
    return float(element) if is_float_array(values) else int(element)


@semantics("tile.write", "tensor.write")
def write(site: OpSite) -> Value:
    """The same tensor or tile with one element overwritten, in place."""
    target = site.shaped(0)
    index = site.dims(1)
    one = (1,) * len(index)
    check_window(site, 0, target.shape, index, one)
    value = np.asarray(site.scalar(2)).reshape(one)
    if value.dtype == np.float64:
        value = value.astype(np.float32)
    target.region.window(index, one).write(convert(value, target.dtype))
    return target
