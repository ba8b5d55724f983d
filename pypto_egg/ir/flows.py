"""Which variables may stand for the same value as another: through assignments, loops, branches."""

from __future__ import annotations

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
