"""Calls: built-in forms, functions of the program, asynchronous launches, operators."""

from __future__ import annotations

import ast
import keyword as python

from pypto_egg.errors import ParseError
from pypto_egg.ir.calls import bound_names
from pypto_egg.ir.dtype import DTYPES, TASK_ID
from pypto_egg.ir.expr import Cast, Expr, FunctionCall, Submit, Var, as_expr
from pypto_egg.ir.types import ScalarType, TensorType, TupleType, Type, UnknownType
from pypto_egg.text import read_expr, read_operator, read_type, values
from pypto_egg.text.reader import (
    ORCHESTRATION_FUNCTIONS,
    Literal,
    Reader,
    Signature,
    closest,
    language_path,
)
from pypto_egg.text.substitute import substitute_type

_STATEMENT_FORMS = {
    "yield_": "pl.yield_(...) ends a loop body or a branch; it is no expression",
    "range": "pl.range(...) stands in the header of a for loop",
    "parallel": "pl.parallel(...) stands in the header of a for loop",
    "unroll": "pl.unroll(...) stands in the header of a for loop",
    "pipeline": "pl.pipeline(...) stands in the header of a for loop",
    "while_": "pl.while_(...) stands in the header of a for loop",
    "cond": "pl.cond(...) is the first line of a pl.while_ loop",
    "spmd": "pl.spmd(...) stands in the header of a for loop or a with block",
    "split_aiv": "pl.split_aiv(...) stands in the header of a for loop",
    "at": "pl.at(...) stands in the header of a with block",
    "cluster": "pl.cluster(...) stands in the header of a with block",
    "scope": "pl.scope(...) stands in the header of a with block",
    "dynamic": 'pl.dynamic(...) stands at module level: M = pl.dynamic("M")',
    "func_attr": "pl.func_attr({...}) must be the first statement of a function",
    "static_assert": "pl.static_assert(...) is a statement of its own",
    "static_print": "pl.static_print(...) is a statement of its own",
}


def read_call(reader: Reader, node: ast.Call) -> Expr | Literal:
    """The expression of any call."""
    refuse_stars(reader, node)
    callee = called_function(reader, node.func)
    if callee is not None:
        return _function_call(reader, node, callee)
    path = language_path(reader, node.func)
    if path is None:
        raise _unknown_callee(reader, node)
    path = (*path[:-1], unescaped(path[-1]))
    match path:
        case ("const",):
            return _const(reader, node)
        case ("min",) | ("max",):
            return _min_max(reader, node, path[0])
        case ("submit",) | ("spmd_submit",):
            return _submit(reader, node, path[0])
        case ("tensor", "dim") | ("dim",):
            folded = _dim_symbol(reader, node)
            return folded or read_operator.read_operator(reader, node, path)
        case (name,) if name in _STATEMENT_FORMS or f"{name}_" in _STATEMENT_FORMS:
            raise reader.fault(node, _STATEMENT_FORMS.get(name) or _STATEMENT_FORMS[f"{name}_"])
        case ("cast",):
            return _cast(reader, node)
    return read_operator.read_operator(reader, node, path)


def unescaped(name: str) -> str:
    """An operator's own name: PyPTO appends an underscore to Python keywords."""
    bare = name.removesuffix("_")
    return bare if bare != name and python.iskeyword(bare) else name


def refuse_stars(reader: Reader, node: ast.Call) -> None:
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            raise reader.fault(arg, "a starred argument (*) is not part of the language")
    for keyword in node.keywords:
        if keyword.arg is None:
            raise reader.fault(keyword.value, "a ** argument is not part of the language")


_BUILTINS = {
    "abs": "use pl.abs on a tensor; scalars have no abs",
    "min": "use pl.min",
    "max": "use pl.max",
    "float": "use pl.cast(x, pl.FP32)",
    "int": "use pl.cast(x, pl.INT32)",
    "range": "use pl.range",
    "print": "use pl.static_print",
}


def _unknown_callee(reader: Reader, node: ast.Call) -> ParseError:
    name = ast.unparse(node.func)
    known = [f"pl.{name}", *reader.program.signatures]
    hint = _BUILTINS.get(name) or closest(name, reader.program.signatures)
    if hint is None and "." not in name and name.isidentifier():
        hint = f"operators are spelled {known[0]}(...), functions of the program self.{name}(...)"
    return reader.fault(
        node, f"'{name}' is not a function of the language or of this program", hint
    )


def called_function(reader: Reader, func: ast.expr) -> Signature | None:
    """The function of the program that `self.f`, or bare `f` outside of a class, names."""
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        if func.value.id != "self" or reader.scope.lookup("self") is not None:
            return None
        found = reader.program.signatures.get(func.attr)
        if found is None:
            hint = closest(func.attr, reader.program.signatures)
            raise reader.fault(func, f"this program has no function '{func.attr}'", hint)
        return found
    if isinstance(func, ast.Name) and not reader.program.in_class:
        return reader.program.signatures.get(func.id)
    return None


def _function_call(reader: Reader, node: ast.Call, callee: Signature) -> FunctionCall:
    args, kwargs, attrs = _arguments(reader, node, callee, node.args)
    results = _results(reader, callee, args)
    result: Type = UnknownType()
    if results:
        result = results[0] if len(results) == 1 else TupleType(results)
    return FunctionCall(callee.name, args, result, kwargs, attrs, reader.span(node))


def _arguments(
    reader: Reader, node: ast.Call, callee: Signature, positional: list[ast.expr]
) -> tuple[tuple[Expr, ...], tuple[tuple[str, object], ...], tuple[tuple[str, object], ...]]:
    """Operands in the callee's order, keywords of the call itself, and its attributes."""
    names = [param.var.name for param in callee.params]
    given: dict[str, Expr] = {}
    for name, arg in zip(names, positional, strict=False):
        given[name] = read_expr.read_expr(reader, arg)
    kwargs: list[tuple[str, object]] = []
    attrs: tuple[tuple[str, object], ...] = ()
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg == "attrs":
            attrs = values.read_attributes(reader, keyword.value)
        elif keyword.arg in given:
            raise reader.fault(node, f"{callee.name}: parameter '{keyword.arg}' is given twice")
        elif keyword.arg in names:
            given[keyword.arg] = read_expr.read_expr(reader, keyword.value)
        else:
            kwargs.append((keyword.arg, values.read_attribute(reader, keyword.value)))
    if len(given) != len(names) or len(positional) > len(names):
        count = len(positional) + len(given) - min(len(positional), len(names))
        listed = ", ".join(names) or "none"
        raise reader.mismatch(
            node, f"{callee.name} takes {len(names)} arguments ({listed}), got {count}"
        )
    return tuple(given[name] for name in names), tuple(kwargs), attrs


def _results(reader: Reader, callee: Signature, args: tuple[Expr, ...]) -> tuple[Type, ...]:
    """What a call returns: the callee's types in the caller's scalars and extents."""
    declared = callee.returns or reader.program.derived_returns.get(callee.name, ())
    mapping = bound_names(callee.params, args)
    return tuple(substitute_type(result, mapping) for result in declared)


_SUBMIT_KEYWORDS = (
    "deps",
    "dumps",
    "core_num",
    "sync_start",
    "allow_early_resolve",
    "predicate",
)


def _submit(reader: Reader, node: ast.Call, kind: str) -> Submit:
    callee = called_function(reader, node.args[0]) if node.args else None
    if callee is None:
        raise reader.fault(node, f"pl.{kind} needs a function of the program first: self.kernel")
    args, kwargs, attrs = _arguments(reader, node, callee, node.args[1:])
    given = dict(kwargs)
    known = _SUBMIT_KEYWORDS if kind == "spmd_submit" else _only_submit()
    for name in given:
        if name not in known:
            raise reader.fault(
                node, f"pl.{kind} has no keyword '{name}' (it has: {', '.join(known)})"
            )
    if kind == "spmd_submit" and "core_num" not in given:
        raise reader.fault(node, "pl.spmd_submit needs core_num=N")
    ordered = tuple((name, given[name]) for name in known if name in given)
    result = TupleType((*_results(reader, callee, args), ScalarType(TASK_ID)))
    return Submit(kind, callee.name, args, result, ordered, attrs, reader.span(node))


def _only_submit() -> tuple[str, ...]:
    return tuple(name for name in _SUBMIT_KEYWORDS if name not in ("core_num", "sync_start"))


def _const(reader: Reader, node: ast.Call) -> Expr:
    if len(node.args) != 2 or node.keywords:
        raise reader.fault(node, "a typed constant is spelled pl.const(value, pl.DT)")
    value = read_expr.read_value(reader, node.args[0])
    if isinstance(value, Expr):
        raise reader.fault(node.args[0], "the value of pl.const must be a literal", "use pl.cast")
    return read_expr.typed_constant(reader, node, value, read_type.read_dtype(reader, node.args[1]))


def _min_max(reader: Reader, node: ast.Call, op: str) -> Expr | Literal:
    if len(node.args) != 2 or node.keywords:
        raise reader.fault(node, f"pl.{op} takes two scalars")
    sides = [as_expr(read_expr.read_value(reader, arg)) for arg in node.args]
    return read_expr.combine(reader, node, op, sides[0], sides[1])


def _cast(reader: Reader, node: ast.Call) -> Expr:
    """`pl.cast` of a scalar, or the cast operator on a tensor or tile."""
    arguments = read_operator.Arguments(reader, node)
    source = node.args[0] if node.args else arguments.keywords.get("input")
    if source is None or not isinstance(as_expr(arguments.value(source)).type, ScalarType):
        return read_operator.resolve(reader, node, ("cast",), arguments)
    target = arguments.keywords.get("target_type")
    if target is None and len(node.args) > 1:
        target = node.args[1]
    if target is None:
        raise reader.fault(node, "pl.cast needs a target dtype: pl.cast(x, pl.FP32)")
    for name in arguments.keywords:
        if name not in ("input", "target_type", "mode"):
            raise reader.fault(node, f"pl.cast of a scalar has no keyword '{name}'")
    dtype = read_type.read_dtype(reader, target)
    if dtype == DTYPES["TASK_ID"]:
        raise reader.mismatch(node, "a scalar cannot be cast to TASK_ID")
    return Cast(as_expr(arguments.value(source)), dtype)


def _dim_symbol(reader: Reader, node: ast.Call) -> Var | None:
    """The dynamic symbol that a dimension read stands for in orchestration code.

    PyPTO language reference, 7.3: such a read vanishes there; in device code it stays a call.
    """
    if reader.type not in ORCHESTRATION_FUNCTIONS or len(node.args) != 2 or node.keywords:
        return None
    if not isinstance(node.args[0], ast.Name):
        return None
    owner = as_expr(read_expr.read_value(reader, node.args[0]))
    axis = read_expr.read_value(reader, node.args[1])
    kind = owner.type
    if not isinstance(kind, TensorType) or isinstance(axis, Expr | float):
        return None
    if not -kind.rank <= axis < kind.rank:
        return None
    dim = kind.shape[axis]
    return dim if isinstance(dim, Var) and read_type.is_dim_symbol(reader, dim) else None
