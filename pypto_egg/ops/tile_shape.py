"""tile.* views, reshapes and transposes (PyPTO operator reference, data movement)."""

from __future__ import annotations

from dataclasses import replace

from pypto_egg.ir.enums import Mem, PadValue, TileLayout
from pypto_egg.ir.types import TileType, Type, tile_type
from pypto_egg.ops.registry import Kwarg
from pypto_egg.ops.rules import (
    Shape,
    is_full,
    like_tile,
    plain_tile,
    swap_axes,
    swap_last,
)
from pypto_egg.ops.site import Site, declare, declare_view, dims, scalar, tile
from pypto_egg.ops.tensor_memory import check_extents, dropped_axes, kwarg_dtype
from pypto_egg.ops.tensor_shape import check_concat, given_valid, reinterpreted
from pypto_egg.ops.windows import (
    align_right,
    check_element_count,
    check_valid,
    check_window,
    clamp_to,
    demand_length,
    reshape_valid,
    window_of_valid,
)

_FLIPPED = {
    TileLayout.row_major: TileLayout.col_major,
    TileLayout.col_major: TileLayout.row_major,
    TileLayout.none_box: TileLayout.none_box,
}


def _slice(site: Site) -> Type:
    source, shape, offset = site.tile(0), site.constant_dims(1), site.dims(2)
    demand_length(site, 1, source.rank, "one extent a dimension")
    demand_length(site, 2, source.rank, "one offset a dimension")
    check_extents(site, 1, shape)
    check_window(site, 2, offset, shape, source.shape)
    valid = _slice_valid(site, source, shape, offset)
    dropped = dropped_axes(site, 4, shape)
    kept = [axis for axis in range(len(shape)) if axis not in dropped]
    floor = min(2, source.rank)
    pad = site.kwargs["pad_value"]
    result = like_tile(
        source,
        align_right(tuple(shape[axis] for axis in kept), floor, 1),
        source.dtype,
        source.space,
        align_right(tuple(valid[axis] for axis in kept), floor, 1),
    )
    return result.with_view(pad=pad if isinstance(pad, PadValue) else PadValue.null)


def _slice_valid(site: Site, source: TileType, shape: Shape, offset: Shape) -> Shape:
    if not site.given(3):
        return window_of_valid(source, offset, shape, False)
    given = site.dims(3)
    check_valid(site, 3, given, shape)
    return given if is_full(source) else clamp_to(given, offset, source.valid_shape)


def _reshape(site: Site) -> Type:
    source, shape = site.tile(0), check_extents(site, 1, site.dims(1))
    check_element_count(site, source.shape, shape, 1)
    valid = reshape_valid(site, source, shape)
    return plain_tile(shape, source.dtype, source.space, valid)


def _reinterpret_view(site: Site) -> Type:
    source = site.tile(0)
    site.demand_rank_at_least(0, 1)
    if source.layout.slayout is not TileLayout.none_box:
        raise site.error(
            0,
            f"has slayout {source.layout.slayout.name}; only flat (none_box) tiles can be "
            "reinterpreted",
            hint="move it to Vec first",
        )
    axis = source.rank - 1
    if source.rank >= 2 and source.layout.blayout is TileLayout.col_major:
        axis = source.rank - 2
    shape, valid = reinterpreted(site, source, axis)
    return plain_tile(shape, kwarg_dtype(site), source.space, valid)


def _set_validshape(site: Site) -> Type:
    return site.tile(0).with_view(valid_shape=given_valid(site))


def _transpose(site: Site) -> Type:
    source = site.tile(0)
    first, second = site.axis(1, source.rank), site.axis(2, source.rank)
    if site.given(3):
        site.demand_same_dtype(0, 3)
    return plain_tile(swap_axes(source.shape, first, second), source.dtype, source.space)


def _transpose_view(site: Site) -> Type:
    site.demand_rank_at_least(0, 2)
    source = site.tile(0)
    shape, given = swap_last(source.shape), source.layout
    view = replace(
        given,
        valid_shape=swap_last(source.valid_shape),
        blayout=_FLIPPED[given.blayout],
        slayout=_FLIPPED[given.slayout],
    )
    return tile_type(shape, source.dtype, source.space, view)


def _concat(site: Site) -> Type:
    return plain_tile(check_concat(site), site.dtype(0), Mem.Vec)


def _declare() -> None:
    source, shape = tile("input"), dims("shape")
    sliced = (
        source,
        shape,
        dims("offset"),
        dims("valid_shape", optional=True),
        dims("drop_dims", optional=True),
    )
    declare_view("tile.slice", sliced, _slice, "slice", (Kwarg("pad_value", "pad", None),))
    declare_view("tile.reshape", (source, shape), _reshape, "reshape")
    declare_view(
        "tile.reinterpret_view",
        (tile("data"), dims("shape", optional=True, keyword="shape")),
        _reinterpret_view,
        "reinterpret_view",
        (Kwarg("dtype", "dtype"),),
    )
    valid = (tile("tile"), scalar("rows"), scalar("cols"))
    declare_view("tile.set_validshape", valid, _set_validshape, "set_validshape")
    declare_view("tile.transpose_view", (source,), _transpose_view, "transpose_view")
    transposed = (source, scalar("axis1"), scalar("axis2"), tile("tmp", optional=True))
    declare("tile.transpose", transposed, _transpose, "transpose", output_space="inherit")
    pair = (tile("src0", Mem.Vec), tile("src1", Mem.Vec))
    declare("tile.concat", pair, _concat, "concat", output_space=Mem.Vec)


_declare()
