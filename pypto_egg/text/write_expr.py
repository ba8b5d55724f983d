"""Expressions as PyPTO prints them (PyPTO language reference, 7 and 8)."""

from __future__ import annotations

import keyword as python

from pypto_egg.errors import InternalError
from pypto_egg.ir.dtype import FP32, INDEX
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import (
    BinOp,
    Call,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    ConstNone,
    Expr,
    FunctionCall,
    Submit,
    TupleExpr,
    TupleItem,
    UnOp,
    Var,
)
from pypto_egg.ops import registry
from pypto_egg.text import dsl, write_value
from pypto_egg.text.style import Style

_COMPARE = 4
_UNARY = 11
_ATOM = 20
_PRECEDENCE = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _COMPARE),
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    **dict.fromkeys(("*", "/", "//", "%"), 10),
}


def print_expr(expr: Expr, *, prefix: str = "pl") -> str:
    """The text of one expression; variables print their own names."""
    return write_expr(Style(prefix), expr)


def write_expr(style: Style, expr: Expr) -> str:
    """The text of an expression in a style."""
    return _written(style, expr)[0]


def _written(style: Style, expr: Expr) -> tuple[str, int]:
    """The text and how tightly its outermost operator binds."""
    match expr:
        case Var():
            return style.name(expr), _ATOM
        case ConstInt() | ConstFloat() | ConstBool():
            return _constant(style, expr), _ATOM
        case ConstNone():
            return "None", _ATOM
        case BinOp():
            return _binary(style, expr)
        case UnOp():
            return _unary(style, expr)
        case Cast():
            operand = write_expr(style, expr.operand)
            return f"{style.prefix}.cast({operand}, {style.prefix}.{expr.dtype.name})", _ATOM
        case TupleExpr():
            return f"[{_listed(style, expr.items)}]", _ATOM
        case TupleItem():
            return f"{write_expr(style, expr.value)}[{expr.index}]", _ATOM
        case Call():
            return _call(style, expr), _ATOM
        case FunctionCall():
            return _function_call(style, expr), _ATOM
        case Submit():
            return _submit(style, expr), _ATOM
    raise InternalError(f"{type(expr).__name__} has no spelling in the language")


def _listed(style: Style, items: tuple[Expr, ...]) -> str:
    return ", ".join(write_expr(style, item) for item in items)


def _constant(style: Style, expr: ConstInt | ConstFloat | ConstBool) -> str:
    """A constant; the dtypes that a literal has by itself are left out."""
    text = write_value.write_number(expr.value)
    if isinstance(expr, ConstBool):
        return f"{style.prefix}.const({text}, {style.prefix}.BOOL)" if style.typed else text
    default = INDEX if isinstance(expr, ConstInt) else FP32
    if expr.dtype == default and not style.typed:
        return text
    return f"{style.prefix}.const({text}, {style.prefix}.{expr.dtype.name})"


def is_constant_tree(expr: Expr) -> bool:
    """Whether Python would fold the text of this expression: nothing but constants in it."""
    match expr:
        case ConstInt() | ConstFloat() | ConstBool():
            return True
        case BinOp():
            return is_constant_tree(expr.lhs) and is_constant_tree(expr.rhs)
        case UnOp():
            return is_constant_tree(expr.operand)
    return False


def _binary(style: Style, expr: BinOp) -> tuple[str, int]:
    if expr.op in ("min", "max"):
        sides = f"{write_expr(style, expr.lhs)}, {write_expr(style, expr.rhs)}"
        return f"{style.prefix}.{expr.op}({sides})", _ATOM
    if is_constant_tree(expr):
        style = style.with_typed()
    own = _PRECEDENCE[expr.op]
    left, left_binds = _written(style, expr.lhs)
    right, right_binds = _written(style, expr.rhs)
    # Python chains comparisons, so one inside of another keeps its parentheses on both sides.
    if left_binds < own or left_binds == own == _COMPARE:
        left = f"({left})"
    if right_binds <= own:
        right = f"({right})"
    return f"{left} {expr.op} {right}", own


def _unary(style: Style, expr: UnOp) -> tuple[str, int]:
    if is_constant_tree(expr):
        style = style.with_typed()
    own = _PRECEDENCE["not"] if expr.op == "not" else _UNARY
    operand, binds = _written(style, expr.operand)
    if binds < own:
        operand = f"({operand})"
    return f"not {operand}" if expr.op == "not" else f"{expr.op}{operand}", own


def _call(style: Style, call: Call) -> str:
    """An operator call: operands, kwargs in stored order, machine attributes."""
    kwargs = list(call.kwargs)
    parts = _positional(style, call, kwargs)
    keywords = _keyword_operands(style, call)
    spelled = [
        f"{name}={write_value.write_value(style, value, quote=_quote(call))}"
        for name, value in kwargs
        if not (style.in_split and name == "split" and _is_shard(call))
    ]
    leaf = call.op.rsplit(".", 1)[-1]
    parts += keywords + spelled if leaf in dsl.OPERAND_BEFORE_KWARGS else spelled + keywords
    if call.attrs:
        parts.append(f"attrs={write_value.write_attributes(style, call.attrs)}")
    return f"{_operator(style, call.op)}({', '.join(parts)})"


def _quote(call: Call) -> str:
    return "'" if registry.lookup(call.op) is not None else '"'


def _is_shard(call: Call) -> bool:
    return call.op.endswith((".aiv_shard", ".aic_gather"))


def _operator(style: Style, op: str) -> str:
    """The spelling of an operator's name; a name that is a Python keyword gets an underscore."""
    head, _, leaf = op.rpartition(".")
    if python.iskeyword(leaf):
        leaf += "_"
    if head == "pl" or head.startswith("pl."):
        head = head.replace("pl", style.prefix, 1)
    elif not (head == "pld" or head.startswith("pld.")):
        head = f"{style.prefix}.{head}"
    return f"{head}.{leaf}"


def _positional(style: Style, call: Call, kwargs: list[tuple[str, object]]) -> list[str]:
    """The positional arguments; takes those kept among the kwargs out of them."""
    by_keyword = keyword_operands(call)
    parts = [
        _operand(style, call, index, arg)
        for index, arg in enumerate(call.args)
        if index not in by_keyword
    ]
    for name, value in list(kwargs):
        if name.startswith("#"):
            kwargs.remove((name, value))
            parts.insert(int(name[1:]), write_value.write_value(style, value))
    return parts


def _operand(style: Style, call: Call, index: int, arg: Expr) -> str:
    if index == 0 and call.op.endswith(".alloc") and isinstance(arg, ConstInt):
        return f"{style.prefix}.Mem.{list(Mem)[arg.value].name}"
    return write_expr(style, arg)


def keyword_operands(call: Call) -> dict[int, str]:
    """The operands that print as keywords, by position."""
    decl = registry.lookup(call.op)
    if decl is None:
        return {}
    extra = dsl.PRINTED_KEYWORDS.get(call.op, {})
    found = {}
    for index, operand in enumerate(decl.operands[: len(call.args)]):
        name = operand.keyword or extra.get(operand.name)
        if name is not None:
            found[index] = name
    return found


def _keyword_operands(style: Style, call: Call) -> list[str]:
    parts = []
    for index, name in keyword_operands(call).items():
        arg = call.args[index]
        if isinstance(arg, TupleExpr) and not arg.items and index < len(call.args) - 1:
            continue  # absent
        parts.append(f"{name}={_keyword_operand(style, call, arg)}")
    return parts


def _keyword_operand(style: Style, call: Call, arg: Expr) -> str:
    """The value of a keyword operand; a fill value takes its dtype from the `dtype` keyword."""
    if call.op.endswith(".full") and isinstance(arg, ConstInt | ConstFloat):
        return write_value.write_number(arg.value)
    return write_expr(style, arg)


def _function_call(style: Style, call: FunctionCall) -> str:
    callee = f"self.{call.name}" if style.in_program else call.name
    parts = [write_expr(style, arg) for arg in call.args]
    return f"{callee}({', '.join(parts + _call_keywords(style, call))})"


def _submit(style: Style, call: Submit) -> str:
    callee = f"self.{call.name}" if style.in_program else call.name
    parts = [callee, *(write_expr(style, arg) for arg in call.args)]
    parts += _call_keywords(style, call)
    return f"{style.prefix}.{call.kind}({', '.join(parts)})"


def _call_keywords(style: Style, call: FunctionCall | Submit) -> list[str]:
    parts = [f"{name}={write_value.write_value(style, value)}" for name, value in call.kwargs]
    if call.attrs:
        parts.append(f"attrs={write_value.write_attributes(style, call.attrs)}")
    return parts
