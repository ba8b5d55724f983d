"""Expressions: scalars, index arithmetic, operator calls, calls of functions of the program.

Expressions are immutable and compare by value, except variables, which compare by identity:
two variables may share a name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto_egg.ir.dtype import BOOL, FP32, INDEX, DType
from pypto_egg.ir.types import ScalarType, TupleType, Type
from pypto_egg.source import Span


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """Base of all expressions; every concrete one has a `type`."""

    @property
    def type(self) -> Type:
        raise TypeError(f"{type(self).__name__} has no type")


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A variable: a name hint and a type. Identity, not the name, tells variables apart."""

    name: str
    var_type: Type
    span: Span | None = field(default=None, repr=False)

    @property
    def type(self) -> Type:
        return self.var_type


@dataclass(frozen=True, slots=True)
class ConstInt(Expr):
    """A whole number."""

    value: int
    dtype: DType = INDEX

    @property
    def type(self) -> Type:
        return ScalarType(self.dtype)


@dataclass(frozen=True, slots=True)
class ConstFloat(Expr):
    """A floating-point number."""

    value: float
    dtype: DType = FP32

    @property
    def type(self) -> Type:
        return ScalarType(self.dtype)


@dataclass(frozen=True, slots=True)
class ConstBool(Expr):
    """True or False."""

    value: bool

    @property
    def type(self) -> Type:
        return ScalarType(BOOL)


@dataclass(frozen=True, slots=True)
class ConstNone(Expr):
    """`None`: the invalid task id."""

    @property
    def type(self) -> Type:
        from pypto_egg.ir.dtype import TASK_ID

        return ScalarType(TASK_ID)


@dataclass(frozen=True, slots=True)
class BinOp(Expr):
    """A scalar operation; `op` is its Python spelling, or "min" / "max"."""

    op: str
    lhs: Expr
    rhs: Expr
    dtype: DType

    @property
    def type(self) -> Type:
        return ScalarType(self.dtype)


@dataclass(frozen=True, slots=True)
class UnOp(Expr):
    """`-x`, `~x` or `not x`."""

    op: str
    operand: Expr
    dtype: DType

    @property
    def type(self) -> Type:
        return ScalarType(self.dtype)


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """`pl.cast(x, pl.DT)` on a scalar."""

    operand: Expr
    dtype: DType

    @property
    def type(self) -> Type:
        return ScalarType(self.dtype)


@dataclass(frozen=True, slots=True)
class TupleExpr(Expr):
    """A list of scalar expressions, as shapes, offsets and indices are."""

    items: tuple[Expr, ...]

    @property
    def type(self) -> Type:
        return TupleType(tuple(item.type for item in self.items))


@dataclass(frozen=True, slots=True)
class TupleItem(Expr):
    """`t[i]`: one element of a tuple-valued variable."""

    value: Expr
    index: int

    @property
    def type(self) -> Type:
        owner = self.value.type
        assert isinstance(owner, TupleType)
        return owner.items[self.index]


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A call of a registered operator.

    Args:
        op: the IR name, for example "tensor.matmul"; an op that the registry does not know keeps
            the name it was written with (allowed outside InCore functions only).
        args: operands in IR order; an absent optional operand in the middle is an empty tuple.
        kwargs: keyword arguments in stored order; values are Python ints, floats, bools,
            strings, DTypes, enum members, or tuples of those.
        attrs: machine attributes, printed last as `attrs={...}`.
    """

    op: str
    args: tuple[Expr, ...]
    kwargs: tuple[tuple[str, object], ...]
    result_type: Type
    attrs: tuple[tuple[str, object], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> Type:
        return self.result_type

    def kwarg(self, name: str, default: object = None) -> object:
        """The value of keyword argument `name`, or `default`."""
        for key, value in self.kwargs:
            if key == name:
                return value
        return default


@dataclass(frozen=True, slots=True)
class FunctionCall(Expr):
    """`self.f(...)`: a call of another function of the program."""

    name: str
    args: tuple[Expr, ...]
    result_type: Type
    kwargs: tuple[tuple[str, object], ...] = ()
    attrs: tuple[tuple[str, object], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> Type:
        return self.result_type


@dataclass(frozen=True, slots=True)
class Submit(Expr):
    """`pl.submit(self.f, ...)` or `pl.spmd_submit(self.f, ...)`: an asynchronous launch."""

    kind: str
    name: str
    args: tuple[Expr, ...]
    result_type: Type
    kwargs: tuple[tuple[str, object], ...] = ()
    attrs: tuple[tuple[str, object], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> Type:
        return self.result_type


def as_expr(value: int | float | bool | Expr) -> Expr:
    """A Python number as a constant of PyPTO's default dtype for it; expressions unchanged."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return ConstBool(value)
    if isinstance(value, int):
        return ConstInt(value)
    return ConstFloat(value)


def as_dim(value: int | Expr) -> int | Expr:
    """A dimension in canonical form: constants are Python ints."""
    return value.value if isinstance(value, ConstInt) else value


def dims_of(value: Expr) -> tuple[int | Expr, ...]:
    """The elements of a shape or offset operand as dimensions."""
    assert isinstance(value, TupleExpr)
    return tuple(as_dim(item) for item in value.items)


def tuple_of(dims: tuple[int | Expr, ...]) -> TupleExpr:
    """A shape or offset operand from dimensions."""
    return TupleExpr(tuple(as_expr(dim) for dim in dims))
