"""The cube: products, accumulation, and the byte order in which `mad` writes accumulators.

M and K come from the valid region of the left operand, N from the right one's (C-124). Floats
accumulate in float32, integers in int32 with wrap-around.

An accumulator is written with the pitch of its valid rows, `ceil(M / 16) * 16`, whatever its
physical rows; who reads it through a view that is not compact steps by the physical rows and
sees other elements from the second column fractal on (C-152, C-270).

A cell of a `matmul_acc` accumulator that still holds the undefined pattern counts as zero: PyPTO
programs seed accumulators with `create_tensor`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pypto_egg.interp.layout import TileOrder, accumulator_pitch, storage_elems, tile_axes
from pypto_egg.interp.memory import Region, poisoned_buffer
from pypto_egg.interp.numbers import convert, widen
from pypto_egg.interp.poison import is_undefined
from pypto_egg.interp.site import OpSite, semantics
from pypto_egg.interp.values import (
    Shape,
    TensorValue,
    TileValue,
    Value,
    tensor_from,
)
from pypto_egg.ir.dtype import FP32, INT32, DType
from pypto_egg.ir.enums import Mem, TileLayout

ACCUMULATOR = TileOrder(TileLayout.col_major, TileLayout.row_major, 1024, (16, 16))
_SMALL_INTS = ("int8", "uint8")
MX_GROUP = 32


def product(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """`lhs @ rhs` in the accumulator's type: float32, or int32 that wraps."""
    with np.errstate(all="ignore"):
        if lhs.dtype.kind in "iu" and rhs.dtype.kind in "iu":
            # Sums of 8-bit products are exact in float64, where matmul is fast.
            small = lhs.dtype.name in _SMALL_INTS and rhs.dtype.name in _SMALL_INTS
            wide = np.float64 if small else np.int64
            total = np.matmul(lhs.astype(wide), rhs.astype(wide))
            return total.astype(np.int64).astype(np.int32)
        return np.matmul(convert(lhs, FP32), convert(rhs, FP32))


def accumulated(seed: np.ndarray, dtype: DType, addend: np.ndarray) -> np.ndarray:
    """`seed + addend`, where undefined cells of the seed count as zero."""
    start = np.where(is_undefined(seed, dtype), np.zeros((), dtype=seed.dtype), seed)
    with np.errstate(all="ignore"):
        total = widen(start) + widen(convert(addend, dtype) if dtype == INT32 else addend)
    return convert(total, dtype)


# --- tensors ---------------------------------------------------------------------------------


def _matrix(site: OpSite, index: int, transposed: bool) -> tuple[TensorValue, np.ndarray, Shape]:
    """An operand with its transpose flag applied: (tensor, all its elements, valid extents)."""
    tensor = site.tensor(index)
    values, valid = tensor.elements(), tensor.valid
    if transposed:
        values = np.swapaxes(values, -1, -2)
        valid = (*valid[:-2], valid[-1], valid[-2])
    return tensor, values, valid


def _tensor_product(site: OpSite, left: int, right: int) -> tuple[np.ndarray, Shape]:
    """The product of two tensor operands and its valid extents."""
    _, lhs, lhs_valid = _matrix(site, left, bool(site.kwarg("a_trans", False)))
    _, rhs, rhs_valid = _matrix(site, right, bool(site.kwarg("b_trans", False)))
    inner = rhs.shape[0] if rhs.ndim == 1 else rhs.shape[-2]
    if lhs.shape[-1] != inner:
        raise site.error(
            f"the inner extents differ: {site.operand(left)} has K = {lhs.shape[-1]}, "
            f"{site.operand(right)} has K = {inner}"
        )
    k = lhs_valid[-1]
    lhs = lhs[..., :k]
    rhs = rhs[:k] if rhs.ndim == 1 else rhs[..., :k, :]
    if not _batches_agree(lhs.shape[:-2], rhs.shape[:-2]):
        raise site.error(
            f"the batch extents {list(lhs.shape[:-2])} and {list(rhs.shape[:-2])} do not broadcast"
        )
    values = product(lhs, rhs)
    rows = lhs_valid[-2:-1] if lhs.ndim > 1 else ()
    cols = rhs_valid[-1:] if rhs.ndim > 1 else ()
    lead = values.shape[: values.ndim - len(rows) - len(cols)]
    return values, (*lead, *rows, *cols)


def _batches_agree(a: Shape, b: Shape) -> bool:
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(x == y or 1 in (x, y) for x, y in pairs)


@semantics("tensor.matmul")
def tensor_matmul(site: OpSite) -> Value:
    values, valid = _tensor_product(site, 0, 1)
    return tensor_from(convert(values, site.result_dtype), site.result_dtype, valid)


@semantics("tensor.matmul_acc")
def tensor_matmul_acc(site: OpSite) -> Value:
    """A new tensor: the operator has no effect at tensor level."""
    acc = site.tensor(0)
    values, valid = _tensor_product(site, 1, 2)
    if values.shape != acc.shape:
        raise site.error(
            f"the product has shape {list(values.shape)}, the accumulator {site.operand(0)} "
            f"{list(acc.shape)}"
        )
    if not (site.has(3) and site.scalar(3)):
        values = accumulated(acc.elements(), acc.dtype, values)
    both_valid = tuple(min(a, v) for a, v in zip(acc.valid, valid, strict=True))
    return tensor_from(convert(values, acc.dtype), acc.dtype, both_valid)


# --- tiles -----------------------------------------------------------------------------------


def _check_operands(site: OpSite, left: int, right: int) -> tuple[TileValue, TileValue]:
    lhs, rhs = site.tile(left), site.tile(right)
    if len(lhs.shape) < 2 or len(rhs.shape) < 2:
        raise site.error("both operands must have at least two axes")
    if lhs.shape[-1] != rhs.shape[-2]:
        raise site.error(
            f"the physical inner extents differ: {site.operand(left)} has K = {lhs.shape[-1]}, "
            f"{site.operand(right)} has K = {rhs.shape[-2]}"
        )
    _check_inner_order(site, left, lhs, Mem.Left, TileLayout.row_major)
    _check_inner_order(site, right, rhs, Mem.Right, TileLayout.col_major)
    return lhs, rhs


def _check_inner_order(
    site: OpSite, index: int, tile: TileValue, space: Mem, inner: TileLayout
) -> None:
    """The cube reads L0A by rows and L0B by columns of a box."""
    if tile.space is space and tile.order.slayout is not inner:
        raise site.error(
            f"{site.operand(index)} in {space.value} must have slayout {inner.value}, "
            f"has {tile.order.slayout.value}"
        )
    if (tile.space is Mem.Left and space is Mem.Right) or (
        tile.space is Mem.Right and (space is Mem.Left)
    ):
        raise site.error(
            f"{site.operand(index)} lies in {tile.space.value}, the cube takes it from "
            f"{space.value}"
        )


def _tile_product(site: OpSite, left: int, right: int) -> np.ndarray:
    """The valid part of the product of two tiles."""
    lhs, rhs = _check_operands(site, left, right)
    k = lhs.valid[-1]
    a = lhs.read()
    b = rhs.read((*rhs.valid[:-2], k, rhs.valid[-1]))
    if not _batches_agree(a.shape[:-2], b.shape[:-2]):
        raise site.error(
            f"the batch extents {list(a.shape[:-2])} and {list(b.shape[:-2])} do not broadcast"
        )
    return product(a, b)


def written_by_mad(tile: TileValue, valid_rows: int) -> Region:
    """The cells of an accumulator as `mad` addresses them for `valid_rows` rows."""
    if not (tile.whole and tile.order.accumulator and len(tile.shape) == 2):
        return tile.region
    axes = tile_axes(tile.shape, tile.order, accumulator_pitch(valid_rows))
    return replace(tile.region, axes=axes)


def _store_product(site: OpSite, values: np.ndarray) -> TileValue:
    """A fresh tile of the result type that holds a product."""
    result = site.new_tile(values.shape)
    if any(v > s for v, s in zip(values.shape, result.shape, strict=True)):
        raise site.error(
            f"a product of {list(values.shape)} does not fit a tile of {list(result.shape)}"
        )
    cells = written_by_mad(result, values.shape[-2]).prefix(values.shape)
    cells.write(convert(values, result.dtype))
    return result


@semantics("tile.matmul", "tile.batch_matmul", "tile.gemv")
def tile_matmul(site: OpSite) -> Value:
    return _store_product(site, _tile_product(site, 0, 1))


@semantics("tile.matmul_bias", "tile.gemv_bias")
def tile_matmul_bias(site: OpSite) -> Value:
    values = _tile_product(site, 0, 1)
    bias = site.tile(2).read((1, values.shape[-1]))
    accumulator = FP32 if values.dtype.kind == "f" else INT32
    with np.errstate(all="ignore"):
        return _store_product(site, values + convert(bias, accumulator))


@semantics("tile.matmul_acc", "tile.batch_matmul_acc", "tile.gemv_acc")
def tile_matmul_acc(site: OpSite) -> Value:
    acc = site.tile(0)
    values = _tile_product(site, 1, 2)
    rows = site.tile(1).shape[-2]
    if rows != acc.shape[-2] and site.name != "gemv_acc":
        raise site.error(
            f"the accumulator {site.operand(0)} has {acc.shape[-2]} physical rows, "
            f"{site.operand(1)} has {rows}"
        )
    overwrite = site.has(3) and bool(site.scalar(3))
    return _accumulate(site, acc, values, overwrite)


def _accumulate(site: OpSite, acc: TileValue, values: np.ndarray, overwrite: bool) -> TileValue:
    """Add a product to an accumulator, in place; one outside Acc is first moved there."""
    if any(v > s for v, s in zip(values.shape, acc.shape, strict=True)):
        raise site.error(
            f"a product of {list(values.shape)} does not fit the accumulator "
            f"{site.operand(0)} of {list(acc.shape)}"
        )
    home = acc if acc.order.accumulator else _moved_to_acc(acc, values.shape[-2])
    cells = written_by_mad(home, values.shape[-2]).prefix(values.shape)
    if not overwrite:
        values = accumulated(cells.read(), acc.dtype, values)
    cells.write(convert(values, acc.dtype))
    kind = site.result_tile_type()
    valid = tuple(min(a, v) for a, v in zip(acc.valid, values.shape, strict=True))
    return home.viewed(valid, kind.layout.compact, kind.space)


def _moved_to_acc(acc: TileValue, valid_rows: int) -> TileValue:
    """A copy in accumulator order: the move that memory-space inference will insert."""
    region = Region(
        poisoned_buffer(storage_elems(acc.shape, ACCUMULATOR), acc.dtype),
        acc.dtype,
        0,
        tile_axes(acc.shape, ACCUMULATOR),
    )
    moved = replace(acc, region=region, order=ACCUMULATOR, space=Mem.Acc, whole=True)
    rows = min(valid_rows, acc.valid[-2])
    extent = (*acc.valid[:-2], rows, acc.valid[-1])
    written_by_mad(moved, valid_rows).prefix(extent).write(acc.read(extent))
    return moved


# --- microscaling ----------------------------------------------------------------------------


def _scaled(values: np.ndarray, scales: np.ndarray, axis: int) -> np.ndarray:
    """FP8 values times their group's power of two; one scale for 32 elements of K."""
    spread = np.repeat(scales.astype(np.float32), MX_GROUP, axis=axis)
    window = tuple(slice(0, extent) for extent in values.shape)
    return values.astype(np.float32) * spread[window]


def _mx_product(site: OpSite, first: int) -> np.ndarray:
    lhs, rhs = site.tile(first), site.tile(first + 2)
    if lhs.shape[-1] != rhs.shape[-2]:
        raise site.error(
            f"the physical inner extents differ: K = {lhs.shape[-1]} and K = {rhs.shape[-2]}"
        )
    m, k = lhs.valid
    n = rhs.valid[1]
    groups = -(-k // MX_GROUP)
    a = _scaled(lhs.read(), site.tile(first + 1).read((m, groups)), axis=1)
    b = _scaled(rhs.read((k, n)), site.tile(first + 3).read((groups, n)), axis=0)
    with np.errstate(all="ignore"):
        return np.matmul(a, b)


@semantics("tile.matmul_mx")
def tile_matmul_mx(site: OpSite) -> Value:
    return _store_product(site, _mx_product(site, 0))


@semantics("tile.matmul_mx_bias")
def tile_matmul_mx_bias(site: OpSite) -> Value:
    values = _mx_product(site, 0)
    return _store_product(site, values + convert(site.tile(4).read((1, values.shape[-1])), FP32))


@semantics("tile.matmul_mx_acc")
def tile_matmul_mx_acc(site: OpSite) -> Value:
    return _accumulate(site, site.tile(0), _mx_product(site, 1), overwrite=False)
