"""Arrays, launch queries, synchronisation and task ids.

Execution is sequential, so barriers, flags and prefetches have nothing to do. Queries about the
machine answer with one cluster of one cube core and two vector cores.
"""

from __future__ import annotations

import numpy as np

from pypto_egg.interp.numbers import wrap
from pypto_egg.interp.poison import numpy_dtype
from pypto_egg.interp.scalars import NO_TASK
from pypto_egg.interp.site import OpSite, both, semantics
from pypto_egg.interp.values import ArrayValue, Value, new_tensor
from pypto_egg.ir.types import ArrayType

CLUSTERS = 1
VECTOR_CORES = 2

_NOTHING_TO_DO = (
    *("bar_v", "bar_m", "bar_all", "fence", "sync_src", "sync_dst", "sync_set", "sync_wait"),
    *("syncall", "cacheinvalid", "set_ffts"),
)
_PREFETCH = ("make_context", "session", "async_prefetch", "wait")


@semantics(
    *(f"system.{name}" for name in _NOTHING_TO_DO), *(f"prefetch.{name}" for name in _PREFETCH)
)
def nothing(site: OpSite) -> Value:
    return None


@semantics(*both("get_block_idx"))
def block_index(site: OpSite) -> Value:
    return site.launch.block


@semantics(*both("get_block_num"))
def block_count(site: OpSite) -> Value:
    return site.launch.blocks


@semantics(*both("get_subblock_idx"))
def lane_index(site: OpSite) -> Value:
    return site.launch.lane


@semantics("system.available_cluster_count")
def cluster_count(site: OpSite) -> Value:
    return CLUSTERS


@semantics("system.available_aiv_count")
def vector_core_count(site: OpSite) -> Value:
    return VECTOR_CORES


@semantics("system.task_invalid")
def invalid_task(site: OpSite) -> Value:
    return NO_TASK


@semantics("system.task_dummy")
def dummy_task(site: OpSite) -> Value:
    return 0


@semantics("system.task_is_valid")
def task_is_valid(site: OpSite) -> Value:
    return site.scalar(0) != NO_TASK


@semantics("array.create")
def create_array(site: OpSite) -> Value:
    kind = site.call.result_type
    assert isinstance(kind, ArrayType)
    return ArrayValue(np.zeros(kind.extent, dtype=numpy_dtype(kind.dtype)), kind.dtype)


def _slot(site: OpSite) -> int:
    index, extent = site.index(1), site.array(0).elements.size
    if not 0 <= index < extent:
        raise site.error(f"index {index} leaves {site.operand(0)} of {extent} elements")
    return index


@semantics("array.get_element")
def get_element(site: OpSite) -> Value:
    array = site.array(0)
    value = array.elements[_slot(site)]
    return float(value) if array.dtype.is_float else int(value)


@semantics("array.update_element")
def update_element(site: OpSite) -> Value:
    """The same array with one element overwritten, in place."""
    array = site.array(0)
    array.elements[_slot(site)] = wrap(site.scalar(2), array.dtype)
    return array


@semantics(*both("aiv_shard"))
def aiv_shard(site: OpSite) -> Value:
    """The half of a tile that belongs to the executing vector lane."""
    source = site.shaped(0)
    axis = 0 if _split(site) == 1 else 1
    half = source.shape[axis] // 2
    offset, extent = [0, 0], list(source.shape)
    offset[axis], extent[axis] = site.launch.lane * half, half
    valid = tuple(
        min(max(v - o, 0), e) for v, o, e in zip(source.valid, offset, extent, strict=True)
    )
    values = source.region.window(tuple(offset), valid).read()
    if site.on_tiles:
        return site.filled(values, tuple(extent), valid)
    result = new_tensor(tuple(extent), source.dtype, valid=valid)
    result.region.prefix(valid).write(values)
    return result


def _split(site: OpSite) -> int:
    split = site.kwarg("split", 1)
    number = {"UP_DOWN": 1, "LEFT_RIGHT": 2}.get(getattr(split, "name", ""), split)
    if number not in (1, 2):
        raise site.error(f"split {split!r} is neither UP_DOWN (1) nor LEFT_RIGHT (2)")
    return int(number)
