"""Reductions, over the valid region only.

Floats are summed and multiplied in float32 and rounded once; integers wrap. Row reductions work
on the last axis; column reductions on axis 0 of a tile and on the last but one of a tensor
(PyPTO operator reference, reductions). Scratch operands are not touched.
"""

from __future__ import annotations

import numpy as np

from pypto_egg.interp.numbers import convert, highest, lowest, widen
from pypto_egg.interp.semantics_transfer import scalar_of
from pypto_egg.interp.site import OpSite, both, semantics
from pypto_egg.interp.values import Shape, Value
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.types import ScalarType


def reduced(name: str, values: np.ndarray, axis: int, dtype: DType) -> np.ndarray:
    """`values` reduced along `axis`, which is kept with extent 1."""
    wide = widen(values)
    with np.errstate(all="ignore"):
        if name == "sum":
            return np.sum(wide, axis=axis, keepdims=True, dtype=wide.dtype)
        if name == "prod":
            return np.prod(wide, axis=axis, keepdims=True, dtype=wide.dtype)
        start = lowest(dtype) if name == "max" else highest(dtype)
        if wide.shape[axis] == 0:
            shape = list(wide.shape)
            shape[axis] = 1
            return np.full(shape, start, dtype=wide.dtype)
        function = np.max if name == "max" else np.min
        return function(wide, axis=axis, keepdims=True)


@semantics(*both(*(f"{a}_{r}" for a in ("row", "col") for r in ("sum", "max", "min", "prod"))))
def reduce_op(site: OpSite) -> Value:
    source = site.shaped(0)
    axis = _axis(site)
    name = site.name.split("_")[1]
    values = reduced(name, source.read(), axis, source.dtype)
    return _finish(site, values, axis)


@semantics(*both("row_argmax", "row_argmin", "col_argmax", "col_argmin"))
def arg_reduce_op(site: OpSite) -> Value:
    """The index of the first extreme element."""
    source = site.shaped(0)
    axis = _axis(site)
    if source.valid[axis] == 0:
        raise site.error(f"{site.operand(0)} has no valid element on axis {axis}")
    function = np.argmax if site.name.endswith("max") else np.argmin
    values = np.expand_dims(function(widen(source.read()), axis=axis), axis)
    return _finish(site, values, axis)


def _axis(site: OpSite) -> int:
    rank = len(site.shaped(0).shape)
    if site.on_tiles:
        return rank - 1 if site.name.startswith("row") else 0
    axis = site.kwarg("axis", -1 if site.name.startswith("row") else -2)
    assert isinstance(axis, int)
    position = axis + rank if axis < 0 else axis
    if not 0 <= position < rank:
        raise site.error(f"axis {axis} does not exist in {site.operand(0)} of rank {rank}")
    return position


def _one_at(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _finish(site: OpSite, values: np.ndarray, axis: int) -> Value:
    source = site.shaped(0)
    shape, valid = _one_at(source.shape, axis), _one_at(source.valid, axis)
    values = convert(values, site.result_dtype)
    if site.on_tiles or site.kwarg("keep_dim", True):
        return site.filled(values, shape, valid)
    if isinstance(site.call.result_type, ScalarType):
        return scalar_of(values)
    dropped = tuple(e for i, e in enumerate(shape) if i != axis)
    kept = tuple(e for i, e in enumerate(valid) if i != axis)
    return site.filled(values.reshape(kept), dropped, kept)
