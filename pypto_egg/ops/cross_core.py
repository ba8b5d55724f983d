"""Operators between the cube core and the vector cores of one AI core (C-253 to C-269).

`aiv_shard` hands each vector lane half of a cube result; `aic_gather` hands both halves back.
"""

from __future__ import annotations

from pypto_egg.errors import TypeCheckError
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.fold import dim_floordiv, dim_mul, provably_equal
from pypto_egg.ir.types import TensorType, TileType, Type, UnknownType
from pypto_egg.ops.registry import Kwarg
from pypto_egg.ops.rules import Shape, fresh_tensor, plain_tile
from pypto_egg.ops.site import Rule, Site, declare, either, show_dim, show_shape, tile

SPLIT = Kwarg("split", "int")


def split_shape(site: Site, shards: bool) -> Shape:
    """The shape of one vector lane's half (aiv_shard), or of both halves (aic_gather).

    Raises:
        TypeCheckError: not 2-D, an unknown split, or an odd extent to halve.
    """
    operand, split = site.shaped(0), site.kwargs["split"]
    if isinstance(operand, TensorType) and operand.distributed:
        raise site.error(0, "is a distributed tensor; only on-core data can be split")
    if operand.rank != 2:
        raise _not_2d(site, operand)
    if split not in (1, 2):
        raise site.fault(f"split is {split}; allowed: 1 (UP_DOWN, rows), 2 (LEFT_RIGHT, columns)")
    axis = 0 if split == 1 else 1
    extent = operand.shape[axis]
    if shards and isinstance(extent, int) and extent % 2:
        raise site.error(0, f"has extent {extent} on axis {axis}; it cannot be halved")
    changed = dim_floordiv(extent, 2) if shards else dim_mul(extent, 2)
    return (changed, operand.shape[1]) if axis == 0 else (operand.shape[0], changed)


def _not_2d(site: Site, operand: TensorType | TileType) -> TypeCheckError:
    return site.error(
        0,
        f"has shape {show_shape(operand.shape)}; a split is defined on 2-D data only",
        hint="use pl.reshape to make it 2-D first",
    )


def _aiv_shard(site: Site) -> Type:
    return fresh_tensor(split_shape(site, shards=True), site.dtype(0))


def _aic_gather(site: Site) -> Type:
    return fresh_tensor(split_shape(site, shards=False), site.dtype(0))


def _split(shards: bool) -> Rule:
    """Half a tile in Vec for one vector lane, or the whole in Mat for the cube core (C-263)."""

    def rule(site: Site) -> Type:
        source = site.tile(0)
        shape = split_shape(site, shards)
        axis = 0 if site.kwargs["split"] == 1 else 1
        if not provably_equal(source.valid_shape[axis], source.shape[axis]):
            raise site.error(
                0,
                f"is valid in {show_dim(source.valid_shape[axis])} of "
                f"{show_dim(source.shape[axis])} on the split axis {axis}",
                hint="pad it first (fillpad), or split the other axis",
            )
        other = 1 - axis
        valid = [shape[0], shape[1]]
        valid[other] = source.valid_shape[other]
        return plain_tile(shape, source.dtype, Mem.Vec if shards else Mem.Mat, tuple(valid))

    return rule


def _nothing(site: Site) -> Type:
    """Pushes have no result; what a pop gives is stated by its annotation only."""
    return UnknownType()


def _declare_tensor_forms() -> None:
    source = (either("tensor"),)
    shard, gather = "tile.aiv_shard", "tile.aic_gather"
    declare("tensor.aiv_shard", source, _aiv_shard, "comm", (SPLIT,), lowers_to=shard)
    declare("tensor.aic_gather", source, _aic_gather, "comm", (SPLIT,), lowers_to=gather)


def _declare_tile_forms() -> None:
    kwargs = (SPLIT, Kwarg("lane_stride", "int", None))
    source = (tile("tile"),)
    declare("tile.aiv_shard", source, _split(shards=True), "comm", kwargs, output_space=Mem.Vec)
    declare("tile.aic_gather", source, _split(shards=False), "comm", (SPLIT,), output_space=Mem.Mat)
    for core in ("aiv", "aic"):
        push, pop = f"tile.tpush_to_{core}", f"tile.tpop_from_{core}"
        declare(push, source, _nothing, "comm", pure=False, open_kwargs=True)
        anything = (either("shape", optional=True),)
        declare(pop, anything, _nothing, "comm", pure=False, open_kwargs=True)


_declare_tensor_forms()
_declare_tile_forms()
