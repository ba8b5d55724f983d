"""Statements that nothing needs: unused values, empty loops and empty branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, For, If, Stmt, with_fields
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import blocks_of, expressions_of, free_vars, type_vars, walk
from pypto_egg.ops.registry import OpDecl, lookup

Removable = Callable[[OpDecl], bool]


def without_dead_values(function: Function, removable: Removable) -> Function:
    """The function without unused tensors made by removable ops, and what that leaves empty.

    Args:
        removable: whether a call of this operator may go if nobody uses its result.
    """
    uses: Counter[Var] = Counter()
    for stmt in walk(function.body):
        uses.update(_used_by(stmt))
    return replace(function, body=_kept(function.body, uses, removable))


def is_pure_tensor_op(decl: OpDecl) -> bool:
    """Whether the op does nothing but make its result, a tensor."""
    no_writes = all(
        callable(operand.effect) or not operand.effect.writes for operand in decl.operands
    )
    return (
        decl.namespace == "tensor"
        and decl.channel is None
        and no_writes
        and (decl.pure or decl.family == "create")
    )


def is_view(decl: OpDecl) -> bool:
    """Whether the op only renames memory."""
    return decl.inherits_memory


def _used_by(stmt: Stmt) -> list[Var]:
    used = [var for expr in expressions_of(stmt) for var in free_vars(expr)]
    if isinstance(stmt, Assign):
        used.extend(type_vars(stmt.var.type))
    return used


def _kept(block: Block, uses: Counter[Var], removable: Removable) -> Block:
    kept: list[Stmt] = []
    for stmt in reversed(block):
        nested = {name: _kept(inner, uses, removable) for name, inner in blocks_of(stmt)}
        changed = any(inner is not getattr(stmt, name) for name, inner in nested.items())
        now = with_fields(stmt, **nested) if changed else stmt
        if _is_idle(now, uses, removable):
            uses.subtract(_used_by(stmt))
            continue
        kept.append(now)
    return block if len(kept) == len(block) and _same(kept, block) else tuple(reversed(kept))


def _same(kept: list[Stmt], block: Block) -> bool:
    return all(a is b for a, b in zip(reversed(kept), block, strict=True))


def _is_idle(stmt: Stmt, uses: Counter[Var], removable: Removable) -> bool:
    match stmt:
        case Assign(var, Call() as call):
            decl = lookup(call.op)
            if decl is None or not isinstance(var.type, TensorType) or uses[var] > 0:
                return False
            return removable(decl)
        case For():
            return not stmt.body and not stmt.results
        case If():
            return not stmt.then and not stmt.orelse and not stmt.results
        case _:
            return False
