"""Views that a device function takes as values.

PyPTO loads a slice, a reshape or a transpose of global memory where it is written down: a later
write to the memory does not change it (C-035). Only a view through which the function itself
writes stands for the memory (C-029).
"""

from __future__ import annotations

from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, Var
from pypto_egg.ir.flows import flows_of
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk
from pypto_egg.ops.registry import lookup

VIEWS = ("slice", "reshape", "view", "set_validshape", "reinterpret_view")


def snapshots(function: Function) -> frozenset[Var]:
    """The views and transposes of tensors that hold what their memory held when they were made.

    Empty for a function that writes no memory: there nothing can tell. A transpose is a tile of
    its own in any case.
    """
    sources: dict[Expr, list[Expr]] = {}
    views: dict[Var, str] = {}
    targets: list[Expr] = []
    for stmt in walk(function.body):
        for var, value in flows_of(stmt):
            sources.setdefault(var, []).extend(_passed_on(value))
        if isinstance(stmt, Assign) and _family(stmt.value) in (*VIEWS, "transpose"):
            views[stmt.var] = _family(stmt.value)
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                targets.extend(_written(part))
    if not targets:
        return frozenset()
    through: set[Expr] = set()
    while targets:
        target = targets.pop()
        if target not in through:
            through.add(target)
            targets.extend(sources.get(target, ()))
    return frozenset(v for v, kind in views.items() if kind == "transpose" or v not in through)


def _family(value: Expr) -> str:
    decl = lookup(value.op) if isinstance(value, Call) else None
    return decl.family if decl is not None and decl.namespace == "tensor" else ""


def _passed_on(value: Expr) -> tuple[Expr, ...]:
    """The variables whose memory an assigned expression stands for."""
    if not isinstance(value, Call):
        return (value,)
    return value.args[:1] if _family(value) in VIEWS else tuple(_written(value))


def _written(expr: Expr) -> list[Expr]:
    """The operands through which a call may write memory."""
    if isinstance(expr, FunctionCall | Submit):
        return [arg for arg in expr.args if isinstance(arg.type, TensorType)]
    decl = lookup(expr.op) if isinstance(expr, Call) else None
    if decl is None:
        return []
    assert isinstance(expr, Call)
    kwargs = dict(expr.kwargs)
    pairs = zip(decl.operands, expr.args, strict=False)
    return [arg for operand, arg in pairs if operand.effect_for(kwargs).writes]
