"""tensor.* reductions (PyPTO operator reference, tensor reductions)."""

from __future__ import annotations

from pypto_egg.ir.dtype import FP16, FP32, INT16, INT32, DType
from pypto_egg.ir.fold import provably_le
from pypto_egg.ir.types import ScalarType, TensorType, TileType, Type
from pypto_egg.ops.registry import Kwarg
from pypto_egg.ops.rules import Shape, fresh_tensor
from pypto_egg.ops.site import Rule, Site, declare, show_shape, tensor

ROW_MIN_DTYPES = (INT16, INT32, FP16, FP32)


def check_not_empty(site: Site, source: TensorType | TileType) -> None:
    """Refuse to reduce a provably empty valid region."""
    if any(provably_le(dim, 0) for dim in source.valid_shape):
        raise site.error(0, f"has the empty valid region {show_shape(source.valid_shape)}")


def _reduction(default_axis: int, result: DType | None, allowed: tuple[DType, ...] = ()) -> Rule:
    def rule(site: Site) -> Type:
        if allowed:
            site.demand_dtype(0, allowed)
        site.demand_rank_at_least(0, -default_axis)
        source = site.tensor(0)
        check_not_empty(site, source)
        axis = _axis(site, source.rank)
        return _reduced(site, source, axis, result or source.dtype)

    return rule


def _axis(site: Site, rank: int) -> int:
    axis = site.kwargs["axis"]
    assert isinstance(axis, int)
    if not -rank <= axis < rank:
        raise site.fault(f"axis is {axis}; allowed for rank {rank}: {-rank} to {rank - 1}")
    return axis % rank


def _reduced(site: Site, source: TensorType, axis: int, dtype: DType) -> Type:
    shape = _collapse(source.shape, axis, bool(site.kwargs["keep_dim"]))
    valid = _collapse(source.valid_shape, axis, bool(site.kwargs["keep_dim"]))
    return fresh_tensor(shape, dtype, valid) if shape else ScalarType(dtype)


def _collapse(shape: Shape, axis: int, keep_dim: bool) -> Shape:
    return (*shape[:axis], *((1,) if keep_dim else ()), *shape[axis + 1 :])


def _kwargs(axis: int) -> tuple[Kwarg, ...]:
    return (Kwarg("axis", "int", axis), Kwarg("keep_dim", "bool", True))


def _declare() -> None:
    source = (tensor("input"),)
    for name in ("max", "sum", "min", "prod"):
        allowed = ROW_MIN_DTYPES if name == "min" else ()
        row = _reduction(-1, None, allowed)
        declare(f"tensor.row_{name}", source, row, "row_reduce", _kwargs(-1))
        column, tile_op = _reduction(-2, None), f"tile.col_{name}"
        family = "col_reduce"
        declare(f"tensor.col_{name}", source, column, family, _kwargs(-2), lowers_to=tile_op)
    for name in ("argmax", "argmin"):
        declare(f"tensor.row_{name}", source, _reduction(-1, INT32), "arg_reduce", _kwargs(-1))
        declare(f"tensor.col_{name}", source, _reduction(-2, INT32), "arg_reduce", _kwargs(-2))


_declare()
