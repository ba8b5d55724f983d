"""Loops that assemble a returned tensor, which can store its parts directly (C-042, C-043)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, For, Return, Stmt
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import expressions_of, free_vars, walk, yields_of


@dataclass(frozen=True)
class DirectOutput:
    """A created tensor that a loop fills part by part and the function returns.

    Args:
        seed: the variable of its `tensor.create`.
        carried: the iter_arg and the result of the loop.
        position: of the value in the return.
        out: what stands for the new Out parameter that takes its place.
    """

    seed: Var
    carried: tuple[Var, Var]
    position: int
    out: Var


def direct_outputs(function: Function) -> tuple[DirectOutput, ...]:
    """The returned tensors whose parts can go straight to memory.

    The seed must be undefined (what the parts do not cover may hold anything, A-12), the carry
    must serve the assemble alone, and nobody but the return may use the result.
    """
    uses: Counter[Var] = Counter()
    defined: dict[Var, Stmt] = {}
    for stmt in walk(function.body):
        uses.update(v for expr in expressions_of(stmt) for v in free_vars(expr))
        if isinstance(stmt, Assign):
            defined[stmt.var] = stmt
    loops = {
        r: (s, i) for s in function.body if isinstance(s, For) for i, r in enumerate(s.results)
    }
    returns = [stmt for stmt in function.body if isinstance(stmt, Return)]
    found = []
    for position, value in enumerate(returns[0].values if returns else ()):
        if not isinstance(value, Var) or value not in loops or uses[value] != 1:
            continue
        loop, carry = loops[value]
        seed, arg = loop.inits[carry], loop.iter_args[carry]
        if not isinstance(seed, Var) or uses[seed] != 1 or uses[arg] != 1:
            continue
        if _op(defined.get(seed)) != "tensor.create" or not _assembles(loop.body, carry, arg):
            continue
        assert isinstance(seed.type, TensorType)
        out = Var(f"ret{position}__out", seed.type)
        found.append(DirectOutput(seed, (arg, value), position, out))
    return tuple(found)


def _op(stmt: Stmt | None) -> str:
    return stmt.value.op if isinstance(stmt, Assign) and isinstance(stmt.value, Call) else ""


def _assembles(body: Block, carry: int, arg: Var) -> bool:
    """Whether the body yields for the carry an assemble into it, made in the body itself."""
    yields = yields_of(body)
    if not yields:
        return False
    yielded = yields[carry]
    for stmt in body:
        if isinstance(stmt, Assign) and stmt.var is yielded:
            call = stmt.value
            return _op(stmt) == "tensor.assemble" and isinstance(call, Call) and call.args[0] is arg
    return False
