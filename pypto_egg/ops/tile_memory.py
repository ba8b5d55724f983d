"""tile.* loads, stores, moves and creation (PyPTO operator reference, data movement)."""

from __future__ import annotations

from dataclasses import replace

from pypto_egg.ir.dtype import BF16, FP8E8M0, FP16, FP32, UINT8
from pypto_egg.ir.enums import CompactMode, Mem, PadValue, TensorLayout, TileLayout
from pypto_egg.ir.expr import as_dim
from pypto_egg.ir.fold import provably_equal
from pypto_egg.ir.types import TensorType, TileType, Type, implicit_view, tile_type
from pypto_egg.ops.registry import Channel, Effect, Kwarg
from pypto_egg.ops.rules import Shape, is_full, mark_partial, plain_tile, tensor_with_valid
from pypto_egg.ops.site import Site, declare, dims, either, scalar, show_shape, tensor, tile
from pypto_egg.ops.tensor_memory import (
    ATOMIC,
    CI_KWARGS,
    RANDOM_KEYS,
    RANDOM_KWARGS,
    atomic_effect,
    check_atomic,
    check_ci,
    check_expansion,
    check_extents,
    check_random,
    element_read,
    element_write,
    index_query,
    kwarg_dtype,
    memref_handle,
)
from pypto_egg.ops.windows import (
    align_right,
    check_valid,
    check_window,
    clamp_to,
    demand_length,
    union_valid,
    window_of_valid,
)

TARGET = Kwarg("target_memory", "mem", None)
_BOXED = (Mem.Mat, Mem.Left, Mem.Right, Mem.Acc)
_SCALES = (Mem.LeftScale, Mem.RightScale)


def target_space(site: Site) -> Mem | None:
    """The `target_memory` keyword; None where the space is left to memory inference."""
    space = site.kwargs["target_memory"]
    return space if isinstance(space, Mem) else None


# --- load and store ----------------------------------------------------------------------------


def _load(site: Site) -> Type:
    source, offset, shape = site.tensor(0), site.dims(1), site.dims(2)
    space = target_space(site)
    _check_loadable(site, space)
    demand_length(site, 1, source.rank, "one offset a dimension")
    demand_length(site, 2, source.rank, "one extent a dimension")
    check_extents(site, 2, shape)
    given = site.dims(3) if site.given(3) else shape
    check_valid(site, 3 if site.given(3) else 2, given, shape)
    valid = _loaded_valid(site, source, offset, given)
    return _loaded(shape, source, space, valid)


def _check_loadable(site: Site, space: Mem | None) -> None:
    if space in (None, Mem.Vec, Mem.Mat):
        return
    assert space is not None
    hint = "load to pl.Mem.Mat and move the tile (pl.tile.move)"
    if space is Mem.Acc:
        hint = "create the accumulator with pl.tile.create; only the cube unit writes Acc"
    raise site.fault(f"target_memory is {space.name}; a load can fill Vec or Mat only", hint=hint)


def _loaded_valid(site: Site, source: TensorType, offset: Shape, given: Shape) -> Shape:
    clamp = bool(site.kwargs["clamp"])
    if not clamp:
        check_window(site, 1, offset, given, source.shape)
    limited = not is_full(source) or clamp
    valid = clamp_to(given, offset, source.valid_shape) if limited else given
    return clamp_to(valid, offset, source.shape) if clamp else valid


def _loaded(shape: Shape, source: TensorType, space: Mem | None, valid: Shape) -> TileType:
    row, col = TileLayout.row_major, TileLayout.col_major
    view = replace(implicit_view(shape, space), valid_shape=valid)
    if space is Mem.Mat:
        if len(shape) == 2 and shape[0] == 1:
            view = replace(view, blayout=row, slayout=TileLayout.none_box)
        elif source.layout is TensorLayout.DN:
            view = replace(view, blayout=row, slayout=col)
    return tile_type(shape, source.dtype, space, view)


def _store(site: Site) -> Type:
    source, offset, out = site.tile(0), site.dims(1), site.tensor(2)
    check_atomic(site, 2)
    part = site.dims(3) if site.given(3) else source.valid_shape
    if len(part) > out.rank or len(offset) > out.rank:
        raise site.error(
            1,
            f"has {len(offset)} elements and the window {len(part)}; the output has rank "
            f"{out.rank}",
        )
    if len(part) != out.rank or len(offset) != out.rank:
        return out
    check_window(site, 1, offset, part, out.shape)
    return tensor_with_valid(out, union_valid(site, 2, out, part, offset))


# --- move, create, extract ---------------------------------------------------------------------


def _move(site: Site) -> Type:
    source, space = site.tile(0), target_space(site)
    if space in _SCALES:
        return _move_scale(site, source, space)
    view = replace(
        implicit_view(source.shape, space),
        valid_shape=source.layout.valid_shape,
        pad=source.layout.pad,
        compact=source.layout.compact,
    )
    if space is Mem.Vec:
        given = source.layout
        view = replace(view, blayout=given.blayout, slayout=given.slayout)
    if space is Mem.Right:
        view = replace(view, blayout=TileLayout.row_major)
    blayout, slayout = site.kwargs["blayout"], site.kwargs["slayout"]
    if isinstance(blayout, TileLayout):
        view = replace(view, blayout=blayout)
    if isinstance(slayout, TileLayout):
        view = replace(view, slayout=slayout)
    if view.slayout is TileLayout.none_box:
        # Compactness is about the pitch of boxes; plain rows have none.
        view = replace(view, compact=CompactMode.null)
    return tile_type(source.shape, source.dtype, space, view)


def _move_scale(site: Site, source: TileType, space: Mem | None) -> TileType:
    site.demand_rank(0, 2)
    site.demand_dtype(0, (UINT8, FP8E8M0))
    if source.space not in (None, Mem.Mat):
        raise site.error(
            0,
            f"is in {source.space.name}; a scale buffer is filled from Mat",
            hint="load it to Mat",
        )
    return plain_tile(source.shape, FP8E8M0, space, source.layout.valid_shape)


def _create(site: Site) -> Type:
    shape, space = site.constant_dims(0), target_space(site)
    check_extents(site, 0, shape)
    view = implicit_view(shape, space)
    if site.kwargs["transpose"]:
        _demand_mat(site, "transpose", shape)
        view = replace(view, blayout=TileLayout.row_major, slayout=TileLayout.col_major)
    if site.kwargs["flat_layout"]:
        _demand_mat(site, "flat_layout", shape)
        view = replace(view, blayout=TileLayout.row_major, slayout=TileLayout.none_box)
    if site.kwargs["compact"]:
        if space not in _BOXED:
            where = "no space" if space is None else space.name
            raise site.fault(
                f"compact=True with target_memory {where}; only boxed tiles (Mat, Left, Right, "
                "Acc) can be compact",
                hint="drop compact, or create the accumulator in pl.Mem.Acc",
            )
        view = replace(view, compact=CompactMode.normal)
    return tile_type(shape, kwarg_dtype(site), space, view)


def _demand_mat(site: Site, flag: str, shape: Shape) -> None:
    if target_space(site) is not Mem.Mat or len(shape) != 2:
        raise site.fault(
            f"{flag}=True needs target_memory=pl.Mem.Mat and a 2-D shape, got {show_shape(shape)}"
        )


def _extract(site: Site) -> Type:
    site.demand_rank(0, 2)
    site.demand_int(1, 2)
    source, space, shape = site.tile(0), target_space(site), site.constant_dims(3)
    demand_length(site, 3, 2, "an extract is 2-D")
    offset = (as_dim(site.args[1]), as_dim(site.args[2]))
    check_window(site, 3, offset, shape, source.shape)
    valid = tuple(
        size if provably_equal(have, whole) else limited
        for have, whole, size, limited in zip(
            source.valid_shape,
            source.shape,
            shape,
            window_of_valid(source, offset, shape, False),
            strict=True,
        )
    )
    view = replace(implicit_view(shape, space), valid_shape=valid)
    if space in (Mem.Left, Mem.Right):
        view = replace(view, blayout=TileLayout.row_major)
    return mark_partial(tile_type(shape, source.dtype, space, view))


def _assemble(site: Site) -> Type:
    target, source, offset = site.tile(0), site.tile(1), site.dims(2)
    demand_length(site, 2, target.rank, "one offset a dimension of the target")
    if source.rank > target.rank:
        raise site.error(1, f"has rank {source.rank}; the target has rank {target.rank}")
    narrowed = source.dtype == FP32 and target.dtype in (BF16, FP16)
    if source.dtype != target.dtype and not narrowed:
        raise site.error(
            1,
            f"has dtype {source.dtype.name}, the target {target.dtype.name}; allowed: the same "
            "dtype, or FP32 into BF16 or FP16",
            hint="cast the source first",
        )
    part = align_right(source.valid_shape, target.rank, 1)
    check_window(site, 2, offset, part, target.shape)
    return target.with_view(valid_shape=union_valid(site, 0, target, part, offset))


# --- elements and padding ----------------------------------------------------------------------


def _padded(site: Site, shape: Shape) -> TileType:
    source, pad = site.tile(0), site.kwargs["pad_value"]
    assert isinstance(pad, PadValue)
    space = source.space or Mem.Vec
    view = replace(source.layout, valid_shape=None, fractal=512, pad=pad)
    return tile_type(shape, source.dtype, space, view)


def _fillpad(site: Site) -> Type:
    return _padded(site, site.tile(0).shape)


def _fillpad_expand(site: Site) -> Type:
    shape = site.constant_dims(1)
    check_expansion(site, site.tile(0).shape, shape)
    return _padded(site, shape)


def _full(site: Site) -> Type:
    return plain_tile(site.constant_dims(0), kwarg_dtype(site), Mem.Vec)


def _ci(site: Site) -> Type:
    shape, dtype = check_ci(site)
    return plain_tile(shape, dtype, Mem.Vec)


def _optional_valid(site: Site, index: int, shape: Shape) -> Shape | None:
    if not site.given(index):
        return None
    check_valid(site, index, site.dims(index), shape)
    return site.dims(index)


def _random(site: Site) -> Type:
    shape, dtype = check_random(site, 6)
    return plain_tile(shape, dtype, Mem.Vec, _optional_valid(site, 7, shape))


def _tri(site: Site) -> Type:
    shape = site.constant_dims(1)
    return plain_tile(shape, kwarg_dtype(site), Mem.Vec, _optional_valid(site, 2, shape))


def _declare_transfers() -> None:
    declare(
        "tile.load",
        (
            tensor("tensor"),
            dims("offsets"),
            dims("shapes"),
            dims("valid_shapes", optional=True),
        ),
        _load,
        "load",
        (TARGET, Kwarg("clamp", "bool", False), Kwarg("cache", "cache", None)),
        output_space="kwarg",
    )
    declare(
        "tile.store",
        (
            tile("tile", Mem.Vec, Mem.Acc),
            dims("offsets"),
            tensor("out", effect=atomic_effect),
            dims("shapes", optional=True),
        ),
        _store,
        "store",
        (ATOMIC,),
        reuses_input=2,
        channel=Channel.DMA,
        pure=False,
    )
    to_vec = Kwarg("target_memory", "mem", Mem.Vec, always=True)
    declare(
        "tile.move",
        (tile("tile"),),
        _move,
        "move",
        (
            to_vec,
            Kwarg("blayout", "tile_layout", None),
            Kwarg("slayout", "tile_layout", None),
        ),
        output_space="kwarg",
    )
    declare(
        "tile.extract",
        (tile("src"), scalar("index_row"), scalar("index_col"), dims("shape")),
        _extract,
        "extract",
        (to_vec,),
        output_space="kwarg",
    )
    declare(
        "tile.assemble",
        (tile("target", effect=Effect.READ_WRITE), tile("source"), dims("offset")),
        _assemble,
        "assemble",
        output_space="inherit",
        reuses_input=0,
        pure=False,
    )


def _declare_creation() -> None:
    kwargs = (
        Kwarg("dtype", "dtype"),
        TARGET,
        Kwarg("transpose", "bool", False),
        Kwarg("flat_layout", "bool", False),
        Kwarg("compact", "bool", False),
    )
    shape, valid = dims("shape"), dims("valid_shape", optional=True)
    declare(
        "tile.create",
        (shape,),
        _create,
        "create",
        kwargs,
        output_space="kwarg",
        instruction=False,
        pure=False,
    )
    filled, dtype = (shape, scalar("value", keyword="value")), (Kwarg("dtype", "dtype"),)
    declare("tile.full", filled, _full, "full", dtype, output_space=Mem.Vec)
    counted = (scalar("start"), shape)
    declare("tile.ci", counted, _ci, "misc", CI_KWARGS, output_space=Mem.Vec)
    drawn = (*RANDOM_KEYS, shape, valid)
    declare("tile.random", drawn, _random, "misc", RANDOM_KWARGS, output_space=Mem.Vec)
    upper = (*dtype, Kwarg("upper", "bool", False, always=True))
    triangle = (scalar("diagonal"), shape, valid)
    declare("tile.tri", triangle, _tri, "misc", upper, output_space=Mem.Vec)
    for name in ("get_block_idx", "get_block_num", "get_subblock_idx"):
        declare(f"tile.{name}", (), index_query, "query", instruction=False)
    declare(
        "tile.alloc",
        (either("memory_space"), either("size")),
        memref_handle,
        "misc",
        (Kwarg("pinned", "bool", False),),
        instruction=False,
        pure=False,
    )


def _declare_elements() -> None:
    declare("tile.read", (tile("tile", Mem.Vec), dims("indices")), element_read, "read")
    declare(
        "tile.write",
        (tile("tile", Mem.Vec, effect=Effect.READ_WRITE), dims("indices"), scalar("value")),
        element_write,
        "write",
        output_space=Mem.Vec,
        reuses_input=0,
        pure=False,
    )
    pad = (Kwarg("pad_value", "pad", PadValue.zero, always=True),)
    source, shape = tile("tile", Mem.Vec), dims("shape")
    declare("tile.fillpad", (source,), _fillpad, "fillpad", pad, output_space=Mem.Vec)
    expanded = (source, shape)
    declare("tile.fillpad_expand", expanded, _fillpad_expand, "fillpad", pad, output_space=Mem.Vec)
    declare(
        "tile.fillpad_inplace",
        (tile("tile", Mem.Vec, effect=Effect.READ_WRITE),),
        _fillpad,
        "fillpad",
        pad,
        output_space=Mem.Vec,
        reuses_input=0,
        pure=False,
    )


_declare_transfers()
_declare_creation()
_declare_elements()
