"""Expressions from Python syntax: literals, names, scalar arithmetic (PyPTO language reference, 7).

An expression of Python literals alone stays a Python number until its place in the program says
which constant it is; everything else becomes an IR expression at once.
"""

from __future__ import annotations

import ast

from pypto_egg.ir.dtype import BOOL, DType
from pypto_egg.ir.expr import (
    BinOp,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    ConstNone,
    Expr,
    TupleExpr,
    UnOp,
    as_expr,
)
from pypto_egg.ir.types import ScalarType
from pypto_egg.text import literals, read_call, read_subscript
from pypto_egg.text.reader import Literal, Reader, closest, construct_name
from pypto_egg.text.write_type import print_type

BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
COMPARE: dict[type[ast.AST], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
UNARY: dict[type[ast.AST], str] = {ast.USub: "-", ast.Invert: "~", ast.Not: "not"}
_REFUSED: dict[type[ast.AST], str] = {
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
    ast.UAdd: "unary +",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}


def read_expr(reader: Reader, node: ast.expr) -> Expr:
    """The IR expression of a node; literals get PyPTO's default dtypes (INDEX, FP32, BOOL)."""
    return as_expr(read_value(reader, node))


def read_value(reader: Reader, node: ast.expr) -> Expr | Literal:
    """The IR expression of a node, or a Python number where it consists of literals only."""
    reader.deeper(node)
    value = _read_value(reader, node)
    reader.shallower()
    return value


def _read_value(reader: Reader, node: ast.expr) -> Expr | Literal:
    match node:
        case ast.Constant():
            return _constant(reader, node)
        case ast.Name():
            return _name(reader, node)
        case ast.BinOp():
            op = _operator(reader, node, node.op, BINARY)
            return _binary(reader, node, op, node.left, node.right)
        case ast.Compare():
            return _compare(reader, node)
        case ast.BoolOp():
            return _boolean(reader, node)
        case ast.UnaryOp():
            return _unary(reader, node)
        case ast.Call():
            return read_call.read_call(reader, node)
        case ast.Subscript():
            return read_subscript.read_subscript(reader, node)
        case ast.List() | ast.Tuple():
            return TupleExpr(tuple(read_expr(reader, item) for item in node.elts))
        case ast.Attribute():
            raise reader.fault(node, f"'{ast.unparse(node)}' is not a value")
    raise reader.fault(node, f"{construct_name(node)} is not part of the language")


def _operator(reader: Reader, node: ast.AST, op: ast.AST, table: dict[type[ast.AST], str]) -> str:
    spelled = table.get(type(op))
    if spelled is not None:
        return spelled
    refused = _REFUSED.get(type(op), type(op).__name__)
    known = " ".join(table.values())
    raise reader.fault(
        node, f"the operator {refused} is not part of the language (it has: {known})"
    )


def _constant(reader: Reader, node: ast.Constant) -> Expr | Literal:
    value = node.value
    if value is None:
        return ConstNone()
    if not isinstance(value, int | float):
        kind = "..." if value is Ellipsis else f"a {type(value).__name__} literal"
        raise reader.fault(node, f"{kind} is not a value of the language")
    try:
        return literals.check_literal(value)
    except literals.FoldError as error:
        raise reader.fault(node, str(error)) from None


def _name(reader: Reader, node: ast.Name) -> Expr | Literal:
    name = node.id
    var = reader.scope.lookup(name)
    if var is not None:
        return var
    if name in reader.program.symbols:
        symbol = reader.program.symbols[name]
        reader.program.in_bodies.setdefault(symbol, reader.span(node))
        return symbol
    if name in reader.program.constants:
        return reader.program.constants[name]
    raise reader.fault(node, f"undefined variable '{name}'", _undefined_hint(reader, name))


def _undefined_hint(reader: Reader, name: str) -> str | None:
    gone = reader.scope.gone.get(name)
    if gone is not None:
        return (
            f"'{name}' was defined on line {gone.line} inside a block that ended; "
            "yield it (pl.yield_) to use it afterwards"
        )
    return closest(name, reader.scope.names())


def _binary(
    reader: Reader, node: ast.AST, op: str, left: ast.expr, right: ast.expr
) -> Expr | Literal:
    return combine(reader, node, op, read_value(reader, left), read_value(reader, right))


def combine(
    reader: Reader, node: ast.AST, op: str, lhs: Expr | Literal, rhs: Expr | Literal
) -> Expr | Literal:
    """`lhs op rhs`: folded if both are literals, promoted as PyPTO promotes scalars otherwise."""
    if not isinstance(lhs, Expr) and not isinstance(rhs, Expr):
        return _folded(reader, node, op, lhs, rhs)
    left, right = as_expr(lhs), as_expr(rhs)
    left_dtype = _scalar_dtype(reader, node, op, left)
    right_dtype = _scalar_dtype(reader, node, op, right)
    if op in ("and", "or"):
        return _logical(reader, node, op, left, right)
    if _category(left_dtype) is None or _category(left_dtype) != _category(right_dtype):
        raise reader.mismatch(
            node,
            f"'{op}' cannot combine {left_dtype} and {right_dtype}",
            "both sides must be integers or both floats; write 2.0 for a float, or use pl.cast",
        )
    dtype = right_dtype if right_dtype.bits > left_dtype.bits else left_dtype
    result = BOOL if op in COMPARE.values() else dtype
    return BinOp(op, _promoted(left, dtype), _promoted(right, dtype), result)


def _folded(reader: Reader, node: ast.AST, op: str, lhs: Literal, rhs: Literal) -> Expr | Literal:
    if op in ("min", "max"):
        typed = (as_expr(lhs), as_expr(rhs))
        return combine(reader, node, op, *typed)
    try:
        return literals.fold_binary(op, lhs, rhs)
    except literals.FoldError as error:
        raise reader.fault(node, f"{lhs} {op} {rhs}: {error}") from None


def _scalar_dtype(reader: Reader, node: ast.AST, op: str, value: Expr) -> DType:
    if isinstance(value.type, ScalarType):
        return value.type.dtype
    hint = None
    if op in ("+", "-", "*", "/"):
        hint = f"on tensors and tiles use pl.{_NAMED[op]}"
    raise reader.mismatch(node, f"'{op}' needs scalars, got {print_type(value.type)}", hint)


_NAMED = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


def _logical(reader: Reader, node: ast.AST, op: str, left: Expr, right: Expr) -> Expr:
    for side in (left, right):
        if side.type != ScalarType(BOOL):
            raise reader.mismatch(node, f"'{op}' needs BOOL operands, got {side.type}")
    return BinOp(op, left, right, BOOL)


def _category(dtype: DType) -> str | None:
    if dtype.is_float:
        return "float"
    return "int" if dtype.is_int else None


def _promoted(value: Expr, dtype: DType) -> Expr:
    """The value in `dtype`; the 64-bit integers INDEX and INT64 mix without a cast."""
    assert isinstance(value.type, ScalarType)
    own = value.type.dtype
    if own == dtype or (own.is_index_like and dtype.is_index_like):
        return value
    return Cast(value, dtype)


def _compare(reader: Reader, node: ast.Compare) -> Expr | Literal:
    if len(node.ops) != 1:
        raise reader.fault(
            node, "a chained comparison is not part of the language", "join with 'and'"
        )
    op = _operator(reader, node, node.ops[0], COMPARE)
    return _binary(reader, node, op, node.left, node.comparators[0])


def _boolean(reader: Reader, node: ast.BoolOp) -> Expr | Literal:
    op = "and" if isinstance(node.op, ast.And) else "or"
    value = read_value(reader, node.values[0])
    for other in node.values[1:]:
        value = combine(reader, node, op, value, read_value(reader, other))
    return value


def _unary(reader: Reader, node: ast.UnaryOp) -> Expr | Literal:
    op = _operator(reader, node, node.op, UNARY)
    operand = read_value(reader, node.operand)
    if not isinstance(operand, Expr):
        try:
            return literals.fold_unary(op, operand)
        except literals.FoldError as error:
            raise reader.fault(node, f"{op}{operand}: {error}") from None
    dtype = _scalar_dtype(reader, node, op, operand)
    wanted = {"not": dtype == BOOL, "~": dtype.is_int, "-": dtype.is_int or dtype.is_float}[op]
    if not wanted:
        raise reader.mismatch(node, f"'{op}' cannot be applied to {dtype}")
    return UnOp(op, operand, dtype)


def typed_constant(reader: Reader, node: ast.AST, value: Literal, dtype: DType) -> Expr:
    """A literal as a constant of `dtype`: what `pl.const(value, dtype)` means.

    A constant of dtype BOOL that is written as a number stays one, since PyPTO prints it so.
    """
    if dtype.is_float:
        return ConstFloat(float(value), dtype)
    if isinstance(value, float):
        raise reader.mismatch(node, f"the float {value} cannot be a constant of {dtype}")
    if dtype == BOOL and isinstance(value, bool):
        return ConstBool(value)
    number = int(value)
    if dtype.is_int or dtype == BOOL:
        least = -(2 ** (dtype.bits - 1)) if dtype.is_signed else 0
        most = 2 ** (dtype.bits - 1) - 1 if dtype.is_signed else 2**dtype.bits - 1
        if not least <= number <= most:
            raise reader.mismatch(node, f"{number} is outside of {dtype} ({least}..{most})")
    return ConstInt(number, dtype)


def read_index(reader: Reader, node: ast.expr) -> Expr:
    """An integer scalar, as offsets, extents and loop bounds are."""
    value = read_expr(reader, node)
    kind = value.type
    if not isinstance(kind, ScalarType) or not kind.dtype.is_int:
        raise reader.mismatch(node, f"an integer scalar is needed here, got {print_type(kind)}")
    return value
