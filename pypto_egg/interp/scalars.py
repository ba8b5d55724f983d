"""Scalar expressions with the wrap-around of their dtypes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from math import isfinite

from pypto_egg.errors import InternalError, InterpretError
from pypto_egg.interp.numbers import wrap
from pypto_egg.interp.values import Scalar
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.expr import (
    BinOp,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    ConstNone,
    Expr,
    UnOp,
    Var,
)

NO_TASK = -1
Lookup = Callable[[Expr], object]


def _divide(a: Scalar, b: Scalar) -> Scalar:
    """`/`: true division of floats, truncating division of integers."""
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_BINARY: Mapping[str, Callable[[Scalar, Scalar], Scalar]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "min": min,
    "max": max,
}


def binary(op: str, lhs: Scalar, rhs: Scalar, dtype: DType) -> Scalar:
    """The value of `lhs op rhs` in `dtype`.

    Raises:
        InterpretError: division by zero, or a shift by a negative count.
    """
    function = _BINARY.get(op)
    if function is None:
        raise InternalError(f"no semantics for the scalar operator {op}")
    if op in ("/", "//", "%") and rhs == 0:
        if isinstance(lhs, float) or isinstance(rhs, float):
            return _float_by_zero(lhs, op)
        raise InterpretError(f"{lhs} {op} 0: division of a scalar by zero")
    if op in ("<<", ">>") and not 0 <= rhs < 64:
        raise InterpretError(f"{lhs} {op} {rhs}: the shift count must lie in 0..63")
    return wrap(function(lhs, rhs), dtype)


def _float_by_zero(lhs: Scalar, op: str) -> float:
    if op == "/" and lhs and lhs == lhs:
        return float("inf") if lhs > 0 else float("-inf")
    return float("nan")


def unary(op: str, operand: Scalar, dtype: DType) -> Scalar:
    """The value of `-x`, `~x` or `not x` in `dtype`."""
    if op == "not":
        return not operand
    if op == "-":
        return wrap(-operand, dtype)
    if op == "~":
        return wrap(~int(operand), dtype)
    if op == "abs":
        return wrap(abs(operand), dtype)
    raise InternalError(f"no semantics for the scalar operator {op}")


def cast_scalar(value: Scalar, dtype: DType) -> Scalar:
    """`pl.cast` on a scalar: integers wrap, floats truncate towards zero."""
    if isinstance(value, float) and not dtype.is_float and not isfinite(value):
        return 0
    return wrap(value, dtype)


def constant(expr: Expr) -> Scalar | None:
    """The value of a constant expression node, or None for any other node."""
    match expr:
        case ConstBool(value):
            return value
        case ConstInt(value, dtype) | ConstFloat(value, dtype):
            return wrap(float(value) if dtype.is_float else value, dtype)
        case ConstNone():
            return NO_TASK
        case _:
            return None


def evaluate(expr: Expr, leaf: Lookup) -> object:
    """The value of an expression; `leaf` supplies variables and calls.

    Chains that lean to the left, as `a + b + c + ...` parses, take no stack depth.
    """
    spine: list[BinOp] = []
    while isinstance(expr, BinOp) and expr.op not in ("and", "or"):
        spine.append(expr)
        expr = expr.lhs
    value = _evaluate_node(expr, leaf)
    while spine:
        node = spine.pop()
        value = binary(node.op, _number(value), _number(evaluate(node.rhs, leaf)), node.dtype)
    return value


def _evaluate_node(expr: Expr, leaf: Lookup) -> object:
    known = constant(expr)
    if known is not None:
        return known
    match expr:
        case BinOp(op, lhs, rhs, _):
            left = bool(evaluate(lhs, leaf))
            decided = left if op == "or" else not left
            return left if decided else bool(evaluate(rhs, leaf))
        case UnOp(op, operand, dtype):
            return unary(op, _number(evaluate(operand, leaf)), dtype)
        case Cast(operand, dtype):
            return cast_scalar(_number(evaluate(operand, leaf)), dtype)
        case _:
            return leaf(expr)


def _number(value: object) -> Scalar:
    if isinstance(value, bool | int | float):
        return value
    raise InterpretError("a tensor or tile stands where a scalar is needed")


def dimension(dim: int | Expr, leaf: Lookup) -> int:
    """The value of an extent, offset or index."""
    if isinstance(dim, int):
        return dim
    return int(_number(evaluate(dim, leaf)))


def is_known(expr: int | Expr, known: Callable[[Var], bool]) -> bool:
    """True if every variable of a dimension expression is known."""
    pending: list[object] = [expr]
    while pending:
        item = pending.pop()
        match item:
            case Var():
                if not known(item):
                    return False
            case BinOp(_, lhs, rhs, _):
                pending += [lhs, rhs]
            case UnOp(_, operand, _) | Cast(operand, _):
                pending.append(operand)
            case Expr() if constant(item) is None:
                return False
            case _:
                pass
    return True
