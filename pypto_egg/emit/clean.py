"""What lowering left without a purpose: views that no access needs, loops and branches that are
empty."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, For, If, Stmt
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import blocks_of, expressions_of, free_vars, type_vars, walk
from pypto_egg.ops.registry import lookup


def without_leftovers(function: Function) -> Function:
    """The function without unused views of global memory, empty loops and empty branches."""
    uses: Counter[Var] = Counter()
    for stmt in walk(function.body):
        uses.update(_used_by(stmt))
    return replace(function, body=_cleaned(function.body, uses))


def _used_by(stmt: Stmt) -> list[Var]:
    used = [var for expr in expressions_of(stmt) for var in free_vars(expr)]
    if isinstance(stmt, Assign):
        used.extend(type_vars(stmt.var.type))
    return used


def _cleaned(block: Block, uses: Counter[Var]) -> Block:
    kept: list[Stmt] = []
    for stmt in reversed(block):
        nested = {name: _cleaned(inner, uses) for name, inner in blocks_of(stmt)}
        changed = replace(stmt, **nested) if nested else stmt  # type: ignore[arg-type]
        if _is_idle(changed, uses):
            uses.subtract(_used_by(stmt))
            continue
        kept.append(changed)
    return tuple(reversed(kept))


def _is_idle(stmt: Stmt, uses: Counter[Var]) -> bool:
    match stmt:
        case Assign(var, Call() as call):
            decl = lookup(call.op)
            view = decl is not None and decl.inherits_memory and isinstance(var.type, TensorType)
            return view and uses[var] <= 0
        case For():
            return not stmt.body and not stmt.results
        case If():
            return not stmt.then and not stmt.orelse and not stmt.results
        case _:
            return False
