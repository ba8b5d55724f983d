"""Calls of other functions in device code: they stay as they are, so their operands must exist."""

from __future__ import annotations

from collections.abc import Mapping

from pypto_egg.egraph.values import Local, Value
from pypto_egg.errors import LoweringError
from pypto_egg.ir.expr import Expr, FunctionCall, Submit, Var
from pypto_egg.ir.stmt import Stmt


def check_passed(value: Expr, values: Mapping[Var, Value], stmt: Stmt) -> None:
    """Nothing, unless a call is given a tensor that is computed here.

    Raises:
        LoweringError: it is; a computed tensor becomes tiles, which no other function can take.
    """
    if not isinstance(value, FunctionCall | Submit):
        return
    for arg in value.args:
        if isinstance(arg, Var) and isinstance(values.get(arg), Local):
            raise LoweringError(
                f"'{arg.name}' is computed on chip and passed to self.{value.name}; an InCore "
                "function can pass on global memory only",
                span=value.span or stmt.span,
                hint=f"inline '{value.name}' first, or call it from orchestration code",
            )
