"""SplitIncoreOrch and NormalizedStmtStructure: what must have happened before lowering."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg.ir.enums import Level, LoopKind
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Eval, For, Scope, Stmt
from pypto_egg.ir.visit import children, expressions_of, subexpressions, walk
from pypto_egg.verify.finding import Finding, Property

# `with` regions that the outlining passes turn into functions of their own.
_OUTLINED = ("cluster", "spmd")


def check_structure(function: Function) -> Iterator[Finding]:
    """Findings of SplitIncoreOrch (C-005) and NormalizedStmtStructure (C-006) in one function."""
    for stmt in walk(function.body):
        region = _incore_region(stmt)
        if region is not None:
            yield Finding(
                Property.SPLIT_INCORE_ORCH,
                f"function '{function.name}' still contains the region {region}",
                stmt.span,
                "outline it into a function of type InCore that is called here",
            )
        for outer, call in _nested_calls(stmt):
            yield Finding(
                Property.NORMALIZED_STMT_STRUCTURE,
                f"function '{function.name}' has {_name(call)} nested in {outer}",
                getattr(call, "span", None) or stmt.span,
                "assign the inner result to a variable first and use that",
            )


def _incore_region(stmt: Stmt) -> str | None:
    match stmt:
        case For(kind=LoopKind.spmd):
            return "pl.spmd"
        case Scope() if stmt.kind in _OUTLINED:
            return f"pl.{stmt.kind}"
        case Scope(kind="at") if _level(stmt) is Level.CORE_GROUP:
            return "pl.at(level=pl.Level.CORE_GROUP)"
        case _:
            return None


def _level(scope: Scope) -> object:
    return dict(scope.kwargs).get("level", scope.args[0] if scope.args else None)


def _nested_calls(stmt: Stmt) -> Iterator[tuple[str, Expr]]:
    """Calls anywhere but as the whole right-hand side or as a statement of their own."""
    for expr in expressions_of(stmt):
        whole = isinstance(stmt, Assign | Eval) and _is_call(expr)
        outer = _name(expr) if whole else _place(stmt)
        for part in children(expr) if whole else (expr,):
            for call in filter(_is_call, subexpressions(part)):
                yield outer, call


def _is_call(expr: Expr) -> bool:
    return isinstance(expr, Call | FunctionCall | Submit)


def _name(call: Expr) -> str:
    if isinstance(call, Call):
        return f"pl.{call.op}"
    assert isinstance(call, FunctionCall | Submit)
    return f"self.{call.name}"


def _place(stmt: Stmt) -> str:
    if isinstance(stmt, Assign | Eval):
        return "a scalar expression"
    return f"a {type(stmt).__name__.lower()} statement"
