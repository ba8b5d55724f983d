"""Constant folding of scalar expressions, and proofs about dimensions.

`fold` never changes a value: it folds integer arithmetic, comparisons and identities that hold
for every operand. A proof holds for every value of the variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pypto_egg.ir.affine import ARITHMETIC, DIVISION, Dim, bottom_up, difference, scalar_children
from pypto_egg.ir.affine import const_value as const_value
from pypto_egg.ir.dtype import BOOL, INDEX, DType
from pypto_egg.ir.expr import (
    BinOp,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    TupleExpr,
    UnOp,
    as_dim,
    as_expr,
)
from pypto_egg.ir.types import ScalarType

_SHIFT: dict[str, Callable[[int, int], int]] = {
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
# Integers up to these magnitudes are exact in the float type.
_EXACT_INT = {"FP16": 1 << 11, "BF16": 1 << 8, "FP32": 1 << 24}


def fold(expr: Expr) -> Expr:
    """The expression with constant parts evaluated and neutral operations removed.

    Integer results outside the range of their dtype, divisions by zero and float arithmetic stay
    as they are.
    """
    return bottom_up(expr, scalar_children, _fold_node)


def _fold_node(node: Expr, below: list[Expr]) -> Expr:
    match node:
        case BinOp():
            return _fold_binop(node.op, below[0], below[1], node.dtype)
        case UnOp():
            return _fold_unop(node.op, below[0], node.dtype)
        case Cast():
            return _fold_cast(below[0], node.dtype)
        case TupleExpr():
            return TupleExpr(tuple(below))
        case _:
            return node


def int_range(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer dtype."""
    if dtype.is_signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def _int_constant(value: int, dtype: DType) -> Expr | None:
    low, high = int_range(dtype)
    return ConstInt(value, dtype) if dtype.is_int and low <= value <= high else None


def _fold_binop(op: str, lhs: Expr, rhs: Expr, dtype: DType) -> Expr:
    constant = _fold_constants(op, lhs, rhs, dtype)
    if constant is not None:
        return constant
    neutral = _fold_neutral(op, lhs, rhs, dtype)
    if neutral is not None and neutral.type == ScalarType(dtype):
        return neutral
    return BinOp(op, lhs, rhs, dtype)


def _fold_constants(op: str, lhs: Expr, rhs: Expr, dtype: DType) -> Expr | None:
    if isinstance(lhs, ConstBool) and isinstance(rhs, ConstBool) and op in ("and", "or"):
        both = lhs.value and rhs.value
        return ConstBool(both if op == "and" else lhs.value or rhs.value)
    if isinstance(lhs, ConstFloat) and isinstance(rhs, ConstFloat) and op in _COMPARE:
        return ConstBool(_COMPARE[op](lhs.value, rhs.value))
    if not (isinstance(lhs, ConstInt) and isinstance(rhs, ConstInt)):
        return None
    if op in _COMPARE:
        return ConstBool(_COMPARE[op](lhs.value, rhs.value))
    if op in ARITHMETIC:
        return _int_constant(ARITHMETIC[op](lhs.value, rhs.value), dtype)
    if op in DIVISION and rhs.value != 0:
        return _int_constant(DIVISION[op](lhs.value, rhs.value), dtype)
    if op == "/" and rhs.value != 0 and lhs.value % rhs.value == 0:
        return _int_constant(lhs.value // rhs.value, dtype)
    if op in _SHIFT and 0 <= rhs.value < dtype.bits:
        return _int_constant(_SHIFT[op](lhs.value, rhs.value), dtype)
    return None


def _is_int(expr: Expr, value: int) -> bool:
    return isinstance(expr, ConstInt) and expr.value == value


def _fold_neutral(op: str, lhs: Expr, rhs: Expr, dtype: DType) -> Expr | None:
    """The operand that an operation with a neutral or absorbing integer leaves, if any."""
    if dtype == BOOL:
        return _fold_logic(op, lhs, rhs)
    if not dtype.is_int:
        return None
    if op in ("+", "-", "<<", ">>") and _is_int(rhs, 0):
        return lhs
    if op in ("*", "//", "/") and _is_int(rhs, 1):
        return lhs
    if (op == "+" and _is_int(lhs, 0)) or (op == "*" and _is_int(lhs, 1)):
        return rhs
    if op == "*" and (_is_int(lhs, 0) or _is_int(rhs, 0)):
        return ConstInt(0, dtype)
    if op == "%" and _is_int(rhs, 1):
        return ConstInt(0, dtype)
    if op in ("min", "max", "-") and lhs is rhs:
        return ConstInt(0, dtype) if op == "-" else lhs
    return None


def _fold_logic(op: str, lhs: Expr, rhs: Expr) -> Expr | None:
    if op not in ("and", "or"):
        return None
    absorbing = op == "or"
    for one, other in ((lhs, rhs), (rhs, lhs)):
        if isinstance(one, ConstBool):
            return one if one.value == absorbing else other
    return None


def _fold_unop(op: str, operand: Expr, dtype: DType) -> Expr:
    result: Expr | None = None
    match op, operand:
        case "-", ConstInt():
            result = _int_constant(-operand.value, dtype)
        case "~", ConstInt():
            low, _ = int_range(dtype)
            result = _int_constant(
                ~operand.value if low < 0 else ~operand.value % (1 << dtype.bits), dtype
            )
        case "-", ConstFloat():
            result = ConstFloat(-operand.value, dtype)
        case "not", ConstBool():
            result = ConstBool(not operand.value)
        case (("-" | "not" | "~"), UnOp()) if operand.op == op:
            result = operand.operand
        case _:
            pass
    return UnOp(op, operand, dtype) if result is None else result


def _fold_cast(operand: Expr, dtype: DType) -> Expr:
    if operand.type == ScalarType(dtype):
        return operand
    if isinstance(operand, ConstInt):
        if dtype.is_int:
            return _int_constant(operand.value, dtype) or Cast(operand, dtype)
        if abs(operand.value) <= _EXACT_INT.get(dtype.name, -1):
            return ConstFloat(float(operand.value), dtype)
    return Cast(operand, dtype)


def provably_equal(a: Dim, b: Dim) -> bool:
    """True if two dimensions are equal for every value of their variables."""
    return difference(a, b) == 0


def provably_unequal(a: Dim, b: Dim) -> bool:
    """True if two dimensions differ for every value of their variables."""
    gap = difference(a, b)
    return gap is not None and gap != 0


def provably_le(a: Dim, b: Dim) -> bool:
    """True if `a <= b` for every value of the variables; looks through pl.min and pl.max."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    return all(any(_le(x, y) for x in _operands("min", a)) for y in _operands("min", b))


def provably_lt(a: Dim, b: Dim) -> bool:
    """True if `a < b` for every value of the variables."""
    return provably_le(dim_add(a, 1), b)


def _le(a: Dim, b: Dim) -> bool:
    return all(any(_gap_le(x, y) for y in _operands("max", b)) for x in _operands("max", a))


def _gap_le(a: Dim, b: Dim) -> bool:
    gap = difference(a, b)
    return gap is not None and gap <= 0


def _operands(op: str, dim: Dim) -> list[Dim]:
    """The operands of nested `op` (min or max) operations, left to right."""
    found: list[Dim] = []
    stack: list[Dim] = [dim]
    while stack:
        node = stack.pop()
        if isinstance(node, BinOp) and node.op == op:
            stack += [as_dim(node.rhs), as_dim(node.lhs)]
        else:
            found.append(node)
    return found


def same_dims(a: Iterable[Dim], b: Iterable[Dim]) -> bool:
    """True if two shapes have the same rank and provably equal dimensions."""
    left, right = tuple(a), tuple(b)
    return len(left) == len(right) and all(map(provably_equal, left, right))


def _dim_op(op: str, a: Dim, b: Dim) -> Dim:
    return as_dim(fold(BinOp(op, as_expr(a), as_expr(b), INDEX)))


def dim_add(a: Dim, b: Dim) -> Dim:
    """`a + b`; a constant added to `x + constant` joins that constant."""
    if isinstance(b, int) and isinstance(a, BinOp) and a.op in ("+", "-"):
        tail = as_dim(a.rhs)
        if isinstance(tail, int):
            total = b + (tail if a.op == "+" else -tail)
            return _dim_op("+", a.lhs, total) if total >= 0 else _dim_op("-", a.lhs, -total)
    return _dim_op("+", a, b)


def dim_sub(a: Dim, b: Dim) -> Dim:
    """`a - b`, a constant if the variables cancel."""
    gap = difference(a, b)
    if gap is not None:
        return gap
    return dim_add(a, -b) if isinstance(b, int) and b < 0 else _dim_op("-", a, b)


def dim_mul(a: Dim, b: Dim) -> Dim:
    """`a * b`, a constant if both are."""
    return _dim_op("*", a, b)


def dim_floordiv(a: Dim, divisor: int) -> Dim:
    """`a // divisor` with the division rounded down."""
    return _dim_op("//", a, divisor)


def dim_ceildiv(a: Dim, divisor: int) -> Dim:
    """`a / divisor` rounded up."""
    return (
        -(-a // divisor) if isinstance(a, int) else dim_floordiv(dim_add(a, divisor - 1), divisor)
    )


def dim_round_up(a: Dim, multiple: int) -> Dim:
    """The smallest multiple of `multiple` that is at least `a`."""
    return dim_mul(dim_ceildiv(a, multiple), multiple)


def dim_min(a: Dim, b: Dim) -> Dim:
    """The smaller of two dimensions; one of them where the order is provable."""
    if provably_le(a, b):
        return a
    return b if provably_le(b, a) else _dim_op("min", a, b)


def dim_max(a: Dim, b: Dim) -> Dim:
    """The larger of two dimensions; one of them where the order is provable."""
    if provably_le(b, a):
        return a
    return b if provably_le(a, b) else _dim_op("max", a, b)


def dim_product(dims: Iterable[Dim]) -> Dim:
    """The product of dimensions, 1 for none."""
    total: Dim = 1
    for dim in dims:
        total = dim_mul(total, dim)
    return total
