"""Which variables may stand for the same value as another: through assignments, loops, branches."""

from __future__ import annotations

from pypto_egg.ir.expr import Expr, Var
from pypto_egg.ir.stmt import Assign, Block, For, If, Stmt, While, Yield


def flows_of(stmt: Stmt) -> list[tuple[Var, Expr]]:
    """Each variable that a statement binds with an expression whose value it may take over."""
    match stmt:
        case Assign(var, value):
            return [(var, value)]
        case For() | While():
            yields = _yields(stmt.body)
            pairs = [*zip(stmt.iter_args, stmt.inits, strict=False)]
            pairs += zip(stmt.iter_args, yields, strict=False)
            pairs += zip(stmt.results, stmt.inits, strict=False)
            return [*pairs, *zip(stmt.results, yields, strict=False)]
        case If():
            arms = (_yields(stmt.then), _yields(stmt.orelse))
            return [pair for arm in arms for pair in zip(stmt.results, arm, strict=False)]
        case _:
            return []


def _yields(block: Block) -> tuple[Expr, ...]:
    last = block[-1] if block else None
    return last.values if isinstance(last, Yield) else ()
