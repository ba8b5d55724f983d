"""Giving a value the type of the variable that receives it.

The annotation of a variable is authoritative (PyPTO language reference, annotation check): it
says how the bytes are read. A loop-carried accumulator whose variable forgot that its rows are
partly valid is read by its physical rows (C-270). Where the annotation states another byte
order, the value is moved, as memory-space inference will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pypto_egg.errors import InterpretError
from pypto_egg.interp.layout import TileOrder, is_blocked_nz, matrix_form, order_of
from pypto_egg.interp.numbers import wrap
from pypto_egg.interp.scalars import is_known
from pypto_egg.interp.values import Shape, TensorValue, TileValue, Value, blocked, new_tile
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.expr import Expr, Var
from pypto_egg.ir.types import ScalarType, TensorType, TileType, TupleType, Type


@dataclass(frozen=True, slots=True)
class Dims:
    """Evaluates the extents of types where the code runs."""

    value: Callable[[int | Expr], int]
    known: Callable[[Var], bool]

    def all(self, dims: tuple[int | Expr, ...]) -> Shape | None:
        """The extents, or None if one depends on a variable without a value here."""
        if not all(isinstance(d, int) or is_known(d, self.known) for d in dims):
            return None
        return tuple(d if isinstance(d, int) else self.value(d) for d in dims)


def conform(value: Value, kind: Type, name: str, dims: Dims) -> Value:
    """`value` as variable `name` of type `kind` holds it.

    Raises:
        InterpretError: the value's kind, shape or element type is not the variable's.
    """
    match kind:
        case ScalarType():
            return _scalar(value, kind, name)
        case TensorType():
            return _tensor(value, kind, name, dims)
        case TileType():
            return _tile(value, kind, name, dims)
        case TupleType() if isinstance(value, tuple) and len(value) == len(kind.items):
            pairs = zip(value, kind.items, strict=True)
            return tuple(conform(v, k, f"{name}[{i}]", dims) for i, (v, k) in enumerate(pairs))
        case _:
            return value


def _scalar(value: Value, kind: ScalarType, name: str) -> Value:
    if not isinstance(value, bool | int | float):
        raise InterpretError(f"'{name}' is a scalar of {kind.dtype}, its value is not")
    if isinstance(value, float) and not kind.dtype.is_float:
        raise InterpretError(f"'{name}' is a scalar of {kind.dtype}, its value {value} is a float")
    return wrap(value, kind.dtype)


def _check(
    value: TensorValue | TileValue, kind: TensorType | TileType, name: str, dims: Dims
) -> None:
    if value.dtype != kind.dtype:
        raise InterpretError(f"'{name}' has elements of {kind.dtype}, its value of {value.dtype}")
    shape = dims.all(kind.shape)
    if shape is not None and shape != value.shape:
        raise InterpretError(
            f"'{name}' has shape {list(shape)}, its value has shape {list(value.shape)}"
        )


def _valid(kind: TensorType | TileType, shape: Shape, dims: Dims) -> Shape | None:
    stated = dims.all(kind.valid_shape)
    if stated is None or len(stated) != len(shape):
        return None
    return tuple(max(0, min(v, s)) for v, s in zip(stated, shape, strict=True))


def _tensor(value: Value, kind: TensorType, name: str, dims: Dims) -> TensorValue:
    if not isinstance(value, TensorValue):
        raise InterpretError(f"'{name}' is a tensor, its value is not")
    _check(value, kind, name, dims)
    if kind.view is None or kind.view.valid_shape is None:
        return value
    valid = _valid(kind, value.shape, dims)
    return value if valid is None else replace(value, valid=valid)


def _tile(value: Value, kind: TileType, name: str, dims: Dims) -> TileValue:
    if not isinstance(value, TileValue):
        raise InterpretError(f"'{name}' is a tile, its value is not")
    _check(value, kind, name, dims)
    if kind.space is None and kind.view is None:
        return value
    view = kind.layout
    stated = _valid(kind, value.shape, dims)
    valid = value.valid if stated is None else stated
    order = order_of(view, kind.dtype)
    if order == value.order or _same_bytes(order, value.order, value.shape):
        return replace(value, pad=view.pad).viewed(valid, view.compact, kind.space)
    moved = new_tile(
        value.shape,
        value.dtype,
        order,
        valid,
        space=kind.space,
        pad=view.pad,
        compact=view.compact,
    )
    extent = tuple(min(a, b) for a, b in zip(value.valid, valid, strict=True))
    moved.region.prefix(extent).write(value.read(extent))
    return moved


def _same_bytes(a: TileOrder, b: TileOrder, shape: Shape) -> bool:
    """A single row or column has one order unless it is boxed."""
    return not a.boxed and not b.boxed and 1 in matrix_form(shape)


def as_declared(kind: Type, arg: Value) -> Value:
    """An argument of logical NZ shape in the blocked shape that a parameter declares (N-133)."""
    if not isinstance(kind, TensorType) or not isinstance(arg, TensorValue):
        return arg
    if declares_blocked(kind) and arg.layout is TensorLayout.NZ and len(arg.shape) != 5:
        return blocked(arg)
    return arg


def declares_blocked(kind: Type) -> bool:
    """True for the type of an NZ tensor in its physical rank-5 form."""
    if not isinstance(kind, TensorType) or kind.layout is not TensorLayout.NZ:
        return False
    tail = tuple(dim if isinstance(dim, int) else -1 for dim in kind.shape)
    return is_blocked_nz(tail, kind.dtype)
