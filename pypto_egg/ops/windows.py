"""Windows into shapes: bounds, the valid part of a slice, of a union, of a reshape.

Valid regions are boxes that start at the origin, so a union or a reshape of them exists only in
the cases stated here (PyPTO operator reference, slice / assemble / reshape).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.expr import Call, dims_of
from pypto_egg.ir.fold import (
    Dim,
    const_value,
    dim_add,
    dim_max,
    dim_min,
    dim_mul,
    dim_product,
    dim_sub,
    provably_equal,
    provably_le,
    provably_lt,
    provably_unequal,
    same_dims,
)
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.ops.rules import Shape, is_full
from pypto_egg.ops.site import Site, show_dim, show_shape


def align_right(dims: Shape, rank: int, filler: Dim) -> Shape:
    """The list padded in front to `rank` elements; longer lists are returned as they are."""
    return (filler,) * (rank - len(dims)) + dims


def demand_length(site: Site, index: int, needed: int, why: str) -> None:
    """Refuse a list operand that has not `needed` elements."""
    found = len(site.dims(index))
    if found != needed:
        raise site.error(index, f"has {found} elements; {needed} are needed ({why})")


def check_window(site: Site, offset_index: int, offset: Shape, extent: Shape, whole: Shape) -> None:
    """Refuse a window that provably starts before 0 or ends beyond `whole`."""
    for axis, (start, size, limit) in enumerate(zip(offset, extent, whole, strict=True)):
        if provably_lt(start, 0):
            raise site.error(
                offset_index,
                f"is negative on axis {axis}: {show_dim(start)}",
                hint="offsets count from the start of the operand",
            )
        if provably_lt(limit, dim_add(start, size)):
            raise site.error(
                offset_index,
                f"puts a window of {show_dim(size)} at {show_dim(start)} on axis {axis}, beyond "
                f"the extent {show_dim(limit)}",
                hint="shrink the window, give a smaller valid_shape, or use clamp=True on a read",
            )


def check_valid(site: Site, index: int, valid: Shape, shape: Shape) -> None:
    """Refuse a valid shape that provably leaves 0 <= valid <= shape."""
    if len(valid) != len(shape):
        raise site.error(index, f"has {len(valid)} elements; the shape has {len(shape)}")
    for axis, (part, limit) in enumerate(zip(valid, shape, strict=True)):
        if provably_lt(part, 0) or provably_lt(limit, part):
            raise site.error(
                index,
                f"is {show_dim(part)} on axis {axis}; allowed: 0 to {show_dim(limit)}",
            )


def remaining(limit: Dim, start: Dim) -> Dim:
    """What is left of an extent, itself at least 0, from `start` on; at least 0."""
    return limit if provably_equal(start, 0) else dim_max(dim_sub(limit, start), 0)


def window_of_valid(
    source: TensorType | TileType, offset: Shape, extent: Shape, clamp: bool
) -> Shape:
    """The valid part of a window: `min(max(V - offset, 0), extent)` where V limits it.

    A fully valid source limits nothing unless `clamp` is set.
    """
    if is_full(source) and not clamp:
        return extent
    return tuple(map(_window_extent, source.valid_shape, source.shape, offset, extent))


def _window_extent(valid: Dim, whole: Dim, start: Dim, size: Dim) -> Dim:
    """The valid extent of one axis of a window; `0 <= valid <= whole` always holds."""
    if provably_equal(start, 0) and provably_le(whole, size):
        return valid
    return dim_min(remaining(valid, start), size)


def clamp_to(window: Shape, offset: Shape, limits: Shape) -> Shape:
    """The window cut to what the limits leave of it."""
    return tuple(
        dim_min(size, remaining(limit, start))
        for size, limit, start in zip(window, limits, offset, strict=True)
    )


def union_valid(
    site: Site, target_index: int, target: TensorType | TileType, part: Shape, offset: Shape
) -> Shape:
    """The valid region of `target` after a window of valid extent `part` is written at `offset`.

    Raises:
        TypeCheckError: the union is not a box from the origin, as a gap or an L-shape is not.
    """
    valid = target.valid_shape
    if is_full(target) or any(provably_le(size, 0) for size in part):
        return valid
    ends = tuple(map(dim_add, offset, part))
    if all(map(provably_le, ends, valid)):
        return valid
    at_origin = all(provably_equal(start, 0) for start in offset)
    if at_origin and all(map(provably_le, valid, part)):
        return part
    return _grown(site, target_index, valid, part, offset, ends)


def _grown(site: Site, index: int, valid: Shape, part: Shape, offset: Shape, ends: Shape) -> Shape:
    """The union where the window extends the valid region along one axis."""
    spanning = [
        provably_equal(start, 0) and provably_equal(size, have)
        for start, size, have in zip(offset, part, valid, strict=True)
    ]
    growing = [axis for axis, spans in enumerate(spanning) if not spans]
    if len(growing) > 1:
        raise site.error(
            index,
            f"is valid in {show_shape(valid)}; a window of {show_shape(part)} at "
            f"{show_shape(offset)} would leave an L-shaped valid region",
            hint="write whole rows or whole columns of the valid region",
        )
    axis = growing[0]
    if provably_lt(valid[axis], offset[axis]):
        raise site.error(
            index,
            f"is valid up to {show_dim(valid[axis])} on axis {axis}; a window that starts at "
            f"{show_dim(offset[axis])} would leave a gap",
            hint="write the windows in order, each next to the valid region",
        )
    return (*valid[:axis], dim_max(valid[axis], ends[axis]), *valid[axis + 1 :])


def reshape_valid(site: Site, source: TensorType | TileType, shape: Shape) -> Shape:
    """The valid region of a reshaped operand.

    Full stays full and empty becomes zeros; unit dimensions come and go freely; otherwise the
    valid elements must be the first ones in flat order.

    Raises:
        TypeCheckError: the valid region has no box form in the new shape.
    """
    valid = source.valid_shape
    if is_full(source):
        return shape
    if any(provably_le(dim, 0) for dim in valid):
        return (0,) * len(shape)
    mapped = _through_units(source.shape, valid, shape)
    if mapped is None:
        mapped = _flat_prefix(source.shape, valid, shape)
    if mapped is None:
        raise site.error(
            0,
            f"is valid in {show_shape(valid)} of {show_shape(source.shape)}, which is no box in "
            f"{show_shape(shape)}",
            hint="pad it first (fillpad), or reshape so that rows stay rows",
        )
    return mapped


def _through_units(old: Shape, valid: Shape, new: Shape) -> Shape | None:
    kept = [(size, part) for size, part in zip(old, valid, strict=True) if size != 1]
    wanted = [size for size in new if size != 1]
    if not same_dims([size for size, _ in kept], wanted):
        return None
    parts = iter([part for _, part in kept])
    return tuple(1 if size == 1 else next(parts) for size in new)


def _flat_prefix(old: Shape, valid: Shape, new: Shape) -> Shape | None:
    """The valid region in the new shape if it is the first elements in flat order."""
    axis = next((i for i, part in enumerate(valid) if not provably_equal(part, 1)), len(valid) - 1)
    if not same_dims(old[axis + 1 :], valid[axis + 1 :]):
        return None
    tail, whole = _constant_product(old[axis + 1 :]), const_value(old[axis])
    if tail is None or whole is None:
        return None
    for position in reversed(range(len(new))):
        found = _prefix_at(valid[axis], whole, tail, new, position)
        if found is not None:
            return found
    return None


def _prefix_at(part: Dim, whole: int, tail: int, new: Shape, position: int) -> Shape | None:
    after, here = _constant_product(new[position + 1 :]), const_value(new[position])
    if after is None or here is None:
        return None
    if isinstance(part, int):
        count = part * tail
        fits = count % after == 0 and count // after <= here
        head: Dim = count // after
    else:
        fits = tail % after == 0 and whole * (tail // after) <= here
        head = dim_mul(part, tail // after)
    return ((1,) * position + (head,) + new[position + 1 :]) if fits else None


def _constant_product(dims: Sequence[Dim]) -> int | None:
    values = [const_value(dim) for dim in dims]
    known = [value for value in values if value is not None]
    return math.prod(known) if len(known) == len(values) else None


def check_element_count(site: Site, source: Shape, target: Shape, index: int) -> None:
    """Refuse a reshape that provably changes the number of elements."""
    have, want = _constant_product(source), _constant_product(target)
    if have is not None and want is not None and provably_unequal(have, want):
        raise site.error(
            index,
            f"{show_shape(target)} has {want} elements, {show_shape(source)} of {site.label(0)} "
            f"has {have}",
        )


def fills_matrix(load: Call, shape: Shape) -> bool:
    """Whether a 2-D tile of `shape` is what a load of more dimensions fills.

    After FlattenTileNdTo2D a window [.., r, c] fills the matrix [product of all but c, c]; after
    BlockNzTensorViews a window [b, c1, r1, 16, c0] of an NZ tensor fills [b * r1 * 16, c1 * c0]
    (N-020, N-025). Dynamic extents may be any number.
    """
    source, window = load.args[0].type, dims_of(load.args[2])
    if len(shape) != 2 or len(window) < 3 or not isinstance(source, TensorType):
        return False
    forms = [(dim_product(window[:-1]), window[-1])]
    if source.layout is TensorLayout.NZ and len(window) == 5:
        batch, c1, r1, rows, c0 = window
        forms.append((dim_product((batch, r1, rows)), dim_mul(c1, c0)))
    return any(not any(map(provably_unequal, form, shape)) for form in forms)
