"""Arithmetic on Python literals, which PyPTO does while it reads."""

from __future__ import annotations

import math

Number = int | float | bool

INT_MIN, INT_MAX = -(2**63), 2**64 - 1


class FoldError(ValueError):
    """Literals that have no value of a PyPTO constant; the message says why."""


def fold_binary(op: str, lhs: Number, rhs: Number) -> Number:
    """The literal that Python computes for `lhs op rhs`.

    Raises:
        FoldError: division by zero, a shift out of range, or a result that does not fit 64 bits.
    """
    if op in ("<<", ">>"):
        return _checked(_shift(op, lhs, rhs))
    if op in ("/", "//", "%") and rhs == 0:
        raise FoldError("division by zero")
    try:
        return _checked(_ARITHMETIC[op](lhs, rhs))
    except OverflowError:
        raise FoldError("the result is too large") from None


def fold_unary(op: str, value: Number) -> Number:
    """The literal that Python computes for `-value`, `~value` or `not value`."""
    if op == "not":
        return not value
    if op == "-":
        return _checked(-value)
    if isinstance(value, float):
        raise FoldError("~ needs an integer")
    return _checked(-int(value) - 1)


def check_literal(value: Number) -> Number:
    """The literal itself, if a PyPTO constant can hold it; FoldError otherwise."""
    return _checked(value)


def _shift(op: str, lhs: Number, rhs: Number) -> int:
    if isinstance(lhs, float) or isinstance(rhs, float):
        raise FoldError("a shift needs integers")
    if not 0 <= rhs < 64:
        raise FoldError(f"a shift by {rhs} bits is outside of 0..63")
    return int(lhs) << int(rhs) if op == "<<" else int(lhs) >> int(rhs)


_ARITHMETIC = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: bool(a and b),
    "or": lambda a, b: bool(a or b),
}


def _checked(value: Number) -> Number:
    if isinstance(value, float) and not math.isfinite(value):
        raise FoldError("the number is not finite")
    if not isinstance(value, float) and not INT_MIN <= value <= INT_MAX:
        raise FoldError("the integer does not fit 64 bits")
    return value
