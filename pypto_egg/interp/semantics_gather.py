"""Gather, scatter and their masked, row-wise and paged forms."""

from __future__ import annotations

import numpy as np

from pypto_egg.interp.numbers import convert, widen
from pypto_egg.interp.poison import poison_array
from pypto_egg.interp.semantics_compare import COMPARE, comparison
from pypto_egg.interp.semantics_elementwise import scalar_array
from pypto_egg.interp.site import OpSite, both, semantics
from pypto_egg.interp.values import Shape, Shaped, TensorValue, TileValue, Value, tensor_from
from pypto_egg.interp.windows import check_window
from pypto_egg.ir.types import TensorType, TileType, TupleType

# Columns that a mask pattern keeps: (first, step).
MASK_PATTERNS = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}


def indices(site: OpSite, position: int, extent: Shape, bound: int) -> np.ndarray:
    """The leading `extent` of an index operand as int64.

    Raises:
        InterpretError: an index lies outside 0..bound-1; names the operand and the index.
    """
    found = site.shaped(position).read(extent).astype(np.int64)
    wrong = (found < 0) | (found >= bound)
    if wrong.any():
        where = [int(i) for i in np.argwhere(wrong)[0]]
        raise site.error(
            f"{site.operand(position)} holds the index {int(found[wrong][0])} at {where}; "
            f"it must lie in 0..{bound - 1}"
        )
    return found


@semantics("tensor.gather")
def gather_tensor(site: OpSite) -> Value:
    """out[..., k, ...] = x[..., idx[..., k, ...], ...] along `dim`; flat numbers without `dim`."""
    source, index = site.tensor(0), site.tensor(1)
    rank = len(source.shape)
    dim = site.kwarg("dim")
    if dim is None:
        picks = indices(site, 1, index.valid, source.region.size)
        return site.filled(source.elements().reshape(-1)[picks], index.shape, index.valid)
    assert isinstance(dim, int)
    axis = dim % rank
    picks = indices(site, 1, index.valid, source.shape[axis])
    window = tuple(slice(None) if i == axis else slice(0, index.valid[i]) for i in range(rank))
    values = np.take_along_axis(source.elements()[window], picks, axis=axis)
    return site.filled(values, index.shape, index.valid)


@semantics("tile.gather")
def gather_tile(site: OpSite) -> Value:
    """Elements of the flattened source, by number."""
    source, index = site.tile(0), site.tile(1)
    flat = source.elements().reshape(-1)
    picks = indices(site, 1, index.valid, flat.size)
    return site.filled(flat[picks], index.shape, index.valid)


def _pattern(site: OpSite) -> tuple[int, int]:
    number = site.kwarg("mask_pattern")
    if number not in MASK_PATTERNS:
        raise site.error(f"mask_pattern {number} is not one of 1..7")
    assert isinstance(number, int)
    return MASK_PATTERNS[number]


@semantics(*both("gather_mask"))
def gather_mask(site: OpSite) -> Value:
    """The columns of a pattern, packed together; bits kept when `output_dtype` renames them."""
    source = site.shaped(0)
    first, step = _pattern(site)
    values = np.ascontiguousarray(source.read()[..., first::step])
    result = site.result_dtype
    if result.bits == source.dtype.bits:
        values = values.view(poison_array((1,), result).dtype)
    shape = (*source.shape[:-1], source.shape[-1] // step)
    return site.filled(convert(values, result), shape, values.shape)


@semantics(*both("scatter_mask"))
def scatter_mask(site: OpSite) -> Value:
    """The columns of the other operand spread over a pattern of the destination's columns."""
    source_at, target_at = (0, 1) if not site.on_tiles else (1, 0)
    source, target = site.shaped(source_at), site.shaped(target_at)
    first, step = _pattern(site)
    values = target.elements()
    spread = source.read()
    rows, cols = spread.shape
    if first + (cols - 1) * step >= target.shape[-1]:
        raise site.error(
            f"{cols} columns spread by {step} leave {site.operand(target_at)} of "
            f"{target.shape[-1]} columns"
        )
    values[:rows, first : first + cols * step : step] = convert(spread, target.dtype)
    return _updated(target, values)


def _updated(target: Shaped, values: np.ndarray) -> Value:
    """The destination with new contents: in place for tiles, a new tensor otherwise."""
    if isinstance(target, TileValue):
        target.region.write(values)
        return target
    return tensor_from(values, target.dtype, target.valid)


@semantics("tensor.scatter")
def scatter_tensor(site: OpSite) -> Value:
    """A copy of x with out[r, idx[r, k]] = src[r, k] along `dim`; the last index wins."""
    target, index, source = site.tensor(0), site.tensor(1), site.tensor(2)
    dim = site.kwarg("dim", -1)
    assert isinstance(dim, int)
    axis = dim % len(target.shape)
    picks = indices(site, 1, index.valid, target.shape[axis])
    values = target.elements()
    np.put_along_axis(values, picks, convert(source.read(index.valid), target.dtype), axis=axis)
    return tensor_from(values, target.dtype, target.valid)


@semantics("tile.scatter")
def scatter_tile(site: OpSite) -> Value:
    """dst.flat[idx[k, c]] = src[k, c], in place (C-180)."""
    target, source, index = site.tile(0), site.tile(1), site.tile(2)
    values = target.elements()
    picks = indices(site, 2, index.valid, values.size)
    flat = values.reshape(-1)
    flat[picks.reshape(-1)] = convert(source.read(index.valid), target.dtype).reshape(-1)
    target.region.write(flat.reshape(target.shape))
    return target


@semantics(*both("scatter_update"))
def scatter_update(site: OpSite) -> Value:
    """Row idx[i, j] replaced by source row i * s + j."""
    target, index, source = site.shaped(0), site.shaped(1), site.shaped(2)
    dim = site.kwarg("dim", -2)
    if dim not in (-2, len(target.shape) - 2):
        raise site.error(f"dim must be -2 (whole rows), not {dim}")
    values = target.elements()
    width = target.shape[-1]
    rows = values.reshape(-1, width)
    picks = indices(site, 1, index.shape, rows.shape[0]).reshape(-1)
    updates = source.elements().reshape(-1, width)
    if updates.shape[0] != picks.size:
        raise site.error(f"{picks.size} indices do not match {updates.shape[0]} source rows")
    rows[picks] = convert(updates, target.dtype)
    return _updated(target, rows.reshape(target.shape))


@semantics(*both("gather_compare"))
def gather_compare(site: OpSite) -> Value:
    """Column numbers (plus offset) of the elements that compare true, and how many a row has."""
    source = site.shaped(0)
    kernel = COMPARE[comparison(site)]
    offset, width = site.kwarg("offset", 0), site.kwarg("out_cols")
    assert isinstance(offset, int)
    assert isinstance(width, int)
    hits = kernel(widen(source.read()), widen(scalar_array(site, 1, source.dtype)))
    rows = hits.shape[0]
    kind = site.call.result_type
    assert isinstance(kind, TupleType)
    picks_type, count_type = kind.items
    assert isinstance(picks_type, TensorType | TileType)
    assert isinstance(count_type, TensorType | TileType)
    picks = poison_array((source.shape[0], width), picks_type.dtype)
    counts = poison_array((1, source.shape[0]), count_type.dtype)
    for row in range(rows):
        found = np.flatnonzero(hits[row])[:width] + offset
        picks[row, : found.size] = found
        counts[0, row] = found.size
    return site.item_of(picks_type, picks), site.item_of(count_type, counts)


@semantics("tile.gather_row", "tensor.gather_row")
def gather_row(site: OpSite) -> Value:
    """A window of global memory copied into an accumulator tile, transposed on request."""
    target, source = site.shaped(0), site.tensor(1)
    to, at, window = site.dims(2), site.dims(3), site.dims(4)
    extent = site.dims(5) if site.has(5) else window
    check_window(site, 1, source.shape, at, extent)
    values = convert(source.region.window(at, extent).read(), target.dtype)
    if site.kwarg("transpose", False):
        values, to = np.swapaxes(values, -1, -2), (*to[:-2], to[-1], to[-2])
    check_window(site, 0, target.shape, to, values.shape)
    if isinstance(target, TensorValue) and not target.in_gm:
        copy = tensor_from(target.elements(), target.dtype, target.valid)
        target = copy
    target.region.window(to, values.shape).write(values)
    return target


@semantics("tensor.paged_gather")
def paged_gather(site: OpSite) -> Value:
    """Rows of a paged source: row p = table[idx // block_size] * block_size + idx % block_size."""
    source, index, table = site.tensor(0), site.tensor(1), site.tensor(2)
    size, page = int(_number(site, "block_size")), int(_number(site, "size"))
    first, rows = int(_number(site, "col_off")), int(_number(site, "max_indices"))
    picks = index.read().astype(np.int64).reshape(-1)
    if picks.size > rows:
        raise site.error(f"{picks.size} indices are more than max_indices = {rows}")
    pages = table.elements().astype(np.int64).reshape(-1)
    values = poison_array((rows, page), source.dtype)
    for row, pick in enumerate(picks):
        block = int(pick) // size
        if not 0 <= block < pages.size:
            raise site.error(f"index {int(pick)} lies in block {block} of {pages.size}")
        line = int(pages[block]) * size + int(pick) % size
        check_window(site, 0, source.shape, (line, first), (1, page))
        values[row] = source.region.window((line, first), (1, page)).read()[0]
    valid = (picks.size, page)
    if site.kwarg("is_trans", False):
        values, valid = np.ascontiguousarray(values.T), valid[::-1]
    return tensor_from(values, source.dtype, valid)


def _number(site: OpSite, name: str) -> int | float:
    value = site.kwarg(name, 0)
    if isinstance(value, int | float):
        return value
    raise site.error(f"{name} must be a number, is {value!r}")


@semantics("tile.mgather")
def mgather(site: OpSite) -> Value:
    """Elements of flattened global memory, or whole rows (`coalesce="row"`), by number."""
    source, index = site.tensor(0), site.tile(1)
    shape = site.result_shape()
    if site.kwarg("coalesce", "elem") == "elem":
        picks = indices(site, 1, index.valid, source.region.size)
        return site.filled(source.elements().reshape(-1)[picks], shape, index.valid)
    picks = indices(site, 1, index.valid, source.shape[0]).reshape(-1)
    rows = source.elements().reshape(source.shape[0], -1)[picks]
    return site.filled(rows, shape, rows.shape)


@semantics("tile.mscatter")
def mscatter(site: OpSite) -> Value:
    """Elements of flattened global memory overwritten; whole rows when src is wider than idx."""
    source, index, target = site.tile(0), site.tile(1), site.tensor(2)
    values = target.region.read()
    updates = convert(source.read(), target.dtype)
    if source.shape == index.shape:
        picks = indices(site, 1, index.valid, values.size)
        values.reshape(-1)[picks] = updates
    else:
        picks = indices(site, 1, index.valid, target.shape[0]).reshape(-1)
        values.reshape(target.shape[0], -1)[picks] = updates
    target.region.write(values)
    return target
