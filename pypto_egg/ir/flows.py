"""Which variables may stand for the same value as another: through assignments, loops, branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pypto_egg.ir.expr import Expr, Var
from pypto_egg.ir.stmt import Assign, For, If, Stmt, While
from pypto_egg.ir.visit import yields_of


def flows_of(stmt: Stmt) -> list[tuple[Var, Expr]]:
    """Each variable that a statement binds with an expression whose value it may take over."""
    match stmt:
        case Assign(var, value):
            return [(var, value)]
        case For() | While():
            yields = yields_of(stmt.body)
            pairs = [*zip(stmt.iter_args, stmt.inits, strict=False)]
            pairs += zip(stmt.iter_args, yields, strict=False)
            pairs += zip(stmt.results, stmt.inits, strict=False)
            return [*pairs, *zip(stmt.results, yields, strict=False)]
        case If():
            arms = (yields_of(stmt.then), yields_of(stmt.orelse))
            return [pair for arm in arms for pair in zip(stmt.results, arm, strict=False)]
        case _:
            return []


def flow_graph(statements: Iterable[Stmt]) -> dict[Var, list[Var]]:
    """Each variable with the variables whose value it may take over directly."""
    graph: dict[Var, list[Var]] = {}
    for stmt in statements:
        for var, value in flows_of(stmt):
            if isinstance(value, Var):
                graph.setdefault(var, []).append(value)
    return graph


def sources_of(var: Var, graph: Mapping[Var, list[Var]]) -> list[Var]:
    """The variables that `var` may take its value from, those that only hand on left out."""
    found: list[Var] = []
    pending, seen = [var], {var}
    while pending:
        at = pending.pop()
        values = graph.get(at, ())
        if not values:
            found.append(at)
        pending.extend(v for v in reversed(values) if v not in seen)
        seen.update(values)
    return found
