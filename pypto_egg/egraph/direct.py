"""Loops that assemble a returned tensor, which can store its parts directly (C-042, C-043)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, For, Return, Stmt
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import expressions_of, free_vars, walk, yields_of


@dataclass(frozen=True)
class DirectOutput:
    """A created tensor that loops fill part by part and the function returns.

    Args:
        seed: the variable of its `tensor.create`.
        carried: the iter_args and results of the loops.
        result: what is returned.
        position: of the value in the return.
        out: what stands for the new Out parameter that takes its place.
    """

    seed: Var
    carried: frozenset[Var]
    result: Var
    position: int
    out: Var


def direct_outputs(function: Function) -> tuple[DirectOutput, ...]:
    """The returned tensors whose parts can go straight to memory.

    The seed must be undefined (what the parts do not cover may hold anything, A-12), and each
    version of the tensor must serve the next one alone: an assemble into it, or a loop that
    carries it, until the return.
    """
    uses: Counter[Var] = Counter()
    for stmt in walk(function.body):
        uses.update(v for expr in expressions_of(stmt) for v in free_vars(expr))
    returned = _returned(function)
    found = []
    for stmt in function.body:
        if _op(stmt) != "tensor.create":
            continue
        assert isinstance(stmt, Assign)
        carried: set[Var] = set()
        last = _followed(stmt.var, function.body, uses, carried)
        if last is None or not carried or last not in returned:
            continue
        assert isinstance(stmt.var.type, TensorType)
        position = returned[last]
        out = Var(f"ret{position}__out", stmt.var.type)
        found.append(DirectOutput(stmt.var, frozenset(carried), last, position, out))
    return tuple(sorted(found, key=lambda direct: direct.position))


def _returned(function: Function) -> Mapping[Var, int]:
    returns = [stmt for stmt in function.body if isinstance(stmt, Return)]
    values = returns[0].values if returns else ()
    return {value: i for i, value in enumerate(values) if isinstance(value, Var)}


def _followed(var: Var, block: Block, uses: Counter[Var], carried: set[Var]) -> Var | None:
    """The last version of a tensor in a block; None if one of them has another use.

    Args:
        carried: takes the iter_args and results of the loops on the way.
    """
    while uses[var] == 1:
        user = next((stmt for stmt in block if _uses(stmt, var)), None)
        match user:
            case Assign(value=Call(op="tensor.assemble") as call) if call.args[0] is var:
                var = user.var
            case For():
                following = _through(user, var, uses, carried)
                if following is None:
                    return None
                var = following
            case _:
                # A return or the yield of this block, or what may not come between.
                return var
    return None


def _through(loop: For, var: Var, uses: Counter[Var], carried: set[Var]) -> Var | None:
    """What a loop makes of a tensor that it carries and assembles into."""
    if var not in loop.inits:
        return None
    at = loop.inits.index(var)
    arg, result = loop.iter_args[at], loop.results[at]
    last = _followed(arg, loop.body, uses, carried)
    if last is None or last is arg or yields_of(loop.body)[at] is not last:
        return None
    carried.update((arg, result))
    return result


def _uses(stmt: Stmt, var: Var) -> bool:
    return any(var in free_vars(expr) for expr in expressions_of(stmt))


def _op(stmt: Stmt) -> str:
    return stmt.value.op if isinstance(stmt, Assign) and isinstance(stmt.value, Call) else ""
