"""Values of index expressions while a kernel is walked, on all cores at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pypto_egg.ir.expr import (
    BinOp,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    UnOp,
    Var,
)

Value = Any
"""A number, an array with one number for each core, or None where it is not known."""

_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "/": operator.truediv, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
    "min": np.minimum, "max": np.maximum, "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
_UNARY: Mapping[str, Callable[[Any], Any]] = {
    "-": operator.neg, "~": operator.invert, "not": np.logical_not,
}  # fmt: skip


def evaluate(expr: Expr | int, known: Mapping[Var, Value]) -> Value:
    """The value of a scalar expression, or None if a part of it is not known."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, ConstInt | ConstFloat | ConstBool):
        return expr.value
    if isinstance(expr, Var):
        return known.get(expr)
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    done: list[Value] = []
    while stack:
        node, ready = stack.pop()
        below = _operands(node)
        if below and not ready:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(below))
            continue
        values = [done.pop() for _ in below][::-1]
        done.append(_apply(node, values, known))
    return done[-1]


def _operands(node: Expr) -> tuple[Expr, ...]:
    match node:
        case BinOp():
            return (node.lhs, node.rhs)
        case UnOp() | Cast():
            return (node.operand,)
        case _:
            return ()


def _apply(node: Expr, values: list[Value], known: Mapping[Var, Value]) -> Value:
    if any(value is None for value in values):
        return None
    match node:
        case ConstInt() | ConstFloat() | ConstBool():
            return node.value
        case Var():
            return known.get(node)
        case BinOp() if node.op in ("//", "%", "/") and not np.all(values[1]):
            return None
        case BinOp() if node.op in _BINARY:
            return _BINARY[node.op](*values)
        case UnOp() if node.op in _UNARY:
            return _UNARY[node.op](*values)
        case Cast():
            return values[0]
        case _:
            return None


def first(value: Value) -> int | float | bool | None:
    """The value on the first core."""
    return value.flat[0].item() if isinstance(value, np.ndarray | np.generic) else value
