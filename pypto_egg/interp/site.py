"""One execution of an operator: its evaluated operands and the result it must make.

Semantics functions receive an `OpSite`, register under the IR names they implement and return
the value of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pypto_egg.errors import InternalError, InterpretError
from pypto_egg.interp.layout import order_of
from pypto_egg.interp.scalars import is_known
from pypto_egg.interp.values import (
    ArrayValue,
    Scalar,
    Shape,
    Shaped,
    TensorValue,
    TileValue,
    Value,
    new_tensor,
    new_tile,
    tensor_from,
)
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.types import ScalarType, TensorType, TileType, Type


@dataclass(frozen=True, slots=True)
class Launch:
    """Where the code runs: block `block` of `blocks`, vector lane `lane`, on the core or not."""

    block: int = 0
    blocks: int = 1
    lane: int = 0
    on_core: bool = False


@dataclass(frozen=True)
class OpSite:
    """Evaluated operands of one call.

    Args:
        args: values in IR order; tuple operands are tuples of numbers.
        dim: evaluates an extent of a type.
        known: tells whether a variable has a value here.
        for_effect: the call's result is dropped, so it can only be meant as a write.
    """

    call: Call
    args: tuple[Value, ...]
    dim: Callable[[int | Expr], int]
    known: Callable[[Var], bool]
    launch: Launch
    for_effect: bool = False

    @property
    def op(self) -> str:
        """The operator's full name."""
        return self.call.op

    @property
    def name(self) -> str:
        """The operator's name without its namespace."""
        return self.call.op.split(".", 1)[1]

    @property
    def on_tiles(self) -> bool:
        """Whether it is a tile operator."""
        return self.call.op.startswith("tile.")

    def has(self, index: int) -> bool:
        """True if operand `index` was given (an absent one is an empty tuple)."""
        return index < len(self.args) and self.args[index] != ()

    def operand(self, index: int) -> str:
        """How the user names operand `index`, for messages."""
        given = self.call.args[index] if index < len(self.call.args) else None
        return f"'{given.name}'" if isinstance(given, Var) else f"operand {index}"

    def error(self, message: str, hint: str | None = None) -> InterpretError:
        """An error that names the operator and its place."""
        return InterpretError(f"{self.op}: {message}", span=self.call.span, hint=hint)

    def shaped(self, index: int) -> Shaped:
        """Operand `index` as a tensor or tile."""
        value = self.args[index]
        if isinstance(value, TensorValue | TileValue):
            return value
        raise self.error(f"{self.operand(index)} must be a tensor or a tile")

    def tile(self, index: int) -> TileValue:
        """Operand `index` as a tile."""
        value = self.args[index]
        if isinstance(value, TileValue):
            return value
        raise self.error(f"{self.operand(index)} must be a tile")

    def tensor(self, index: int) -> TensorValue:
        """Operand `index` as a tensor."""
        value = self.args[index]
        if isinstance(value, TensorValue):
            return value
        raise self.error(f"{self.operand(index)} must be a tensor")

    def array(self, index: int) -> ArrayValue:
        """Operand `index` as an array."""
        value = self.args[index]
        if isinstance(value, ArrayValue):
            return value
        raise self.error(f"{self.operand(index)} must be an array")

    def scalar(self, index: int) -> Scalar:
        """Operand `index` as a Python number."""
        value = self.args[index]
        if isinstance(value, bool | int | float):
            return value
        raise self.error(f"{self.operand(index)} must be a scalar")

    def is_scalar(self, index: int) -> bool:
        """Whether operand `index` is a number."""
        return isinstance(self.args[index], bool | int | float)

    def scalar_dtype(self, index: int) -> DType:
        """The element type that the program declares for a scalar operand."""
        kind = self.call.args[index].type
        if isinstance(kind, ScalarType):
            return kind.dtype
        raise self.error(f"{self.operand(index)} must be a scalar")

    def index(self, position: int) -> int:
        """Operand `position` as an int."""
        return int(self.scalar(position))

    def dims(self, index: int) -> Shape:
        """Operand `index`, a tuple of numbers, as ints."""
        value = self.args[index]
        if isinstance(value, tuple):
            return tuple(int(item) for item in value)
        raise self.error(f"{self.operand(index)} must be a list of sizes or offsets")

    def kwarg(self, name: str, default: object = None) -> object:
        """The keyword argument of that name, or `default`."""
        return self.call.kwarg(name, default)

    @property
    def result_dtype(self) -> DType:
        """The element type of the result."""
        kind = self.call.result_type
        if isinstance(kind, TensorType | TileType | ScalarType):
            return kind.dtype
        raise InternalError(f"{self.op} has no element type: {kind}")

    def result_tile_type(self) -> TileType:
        """The type of the result, which is a tile."""
        kind = self.call.result_type
        if isinstance(kind, TileType):
            return kind
        raise InternalError(f"{self.op} must have a tile type, has {kind}")

    def result_shape(self) -> Shape:
        """The physical extents that the call's type states."""
        kind = self.call.result_type
        if isinstance(kind, TensorType | TileType):
            return tuple(self.dim(d) for d in kind.shape)
        raise InternalError(f"{self.op} has no shape: {kind}")

    def stated_valid(self) -> Shape | None:
        """The valid extents that the call's type states, if its variables have values here."""
        kind = self.call.result_type
        assert isinstance(kind, TensorType | TileType)
        if not all(is_known(d, self.known) for d in kind.valid_shape):
            return None
        return tuple(max(0, self.dim(d)) for d in kind.valid_shape)

    def new_tile(
        self, valid: Shape, *, undefined: bool = False, kind: TileType | None = None
    ) -> TileValue:
        """A fresh tile of the call's result type (or of `kind`) with the given valid extents."""
        kind = kind or self.result_tile_type()
        view = kind.layout
        if view.start_offset is not None or view.stride:
            raise self.error("a tile view with stride or start_offset cannot be interpreted")
        shape = tuple(self.dim(d) for d in kind.shape)
        return new_tile(
            shape,
            kind.dtype,
            order_of(view, kind.dtype),
            tuple(min(v, s) for v, s in zip(valid, shape, strict=True)),
            space=kind.space,
            pad=view.pad,
            compact=view.compact,
            undefined=undefined,
        )

    def new(self, shape: Shape, valid: Shape, dtype: DType | None = None) -> Shaped:
        """A fresh poisoned result: a tile of the stated type, or a packed tensor value."""
        if not self.on_tiles:
            return new_tensor(shape, dtype or self.result_dtype, valid=valid)
        stated = self.result_shape()
        if stated != shape:
            raise self.error(
                f"the operands make a tile of shape {list(shape)}, its type says {list(stated)}"
            )
        return self.new_tile(valid)

    def filled(self, values: np.ndarray, shape: Shape, valid: Shape) -> Shaped:
        """A fresh result that holds `values` (the valid region) in the result's dtype."""
        result = self.new(shape, valid)
        result.region.prefix(result.valid).write(values)
        return result

    def item_of(self, kind: Type, values: np.ndarray) -> Shaped:
        """One element of a tuple result, fully valid, holding `values`."""
        if isinstance(kind, TensorType):
            return tensor_from(values, kind.dtype)
        assert isinstance(kind, TileType)
        tile = self.new_tile(values.shape, kind=kind)
        tile.region.write(values)
        return tile


Semantics = Callable[[OpSite], Value]
SEMANTICS: dict[str, Semantics] = {}


def semantics(*names: str) -> Callable[[Semantics], Semantics]:
    """Register a function as the meaning of the operators `names`."""

    def register(function: Semantics) -> Semantics:
        for name in names:
            if name in SEMANTICS:
                raise InternalError(f"operator {name} has two meanings")
            SEMANTICS[name] = function
        return function

    return register


def both(*names: str) -> tuple[str, ...]:
    """The tensor and tile forms of operators."""
    return tuple(f"{space}.{name}" for name in names for space in ("tensor", "tile"))
