"""Which parameters of a function may name the same memory at some call of it.

`self.k(x, x)` gives one buffer two names, and so do two slices of one tensor that are not provably
apart. A write through the one name then shows in reads through the other, so that loads of both are
pinned to their place (C-026, C-059, C-060).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from pypto_egg.analysis.provenance import (
    Provenance,
    Root,
    aliased_operand,
    callees_first,
    provenance_of,
)
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, Var, dims_of
from pypto_egg.ir.fold import dim_add, provably_le
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk

Dim = int | Expr
Pairs = frozenset[tuple[int, int]]
"""Pairs of parameter indices, the smaller one first."""


def overlapping_params(program: Program) -> dict[str, Pairs]:
    """Function name -> the parameters that may overlap at a call; without functions that have none.

    Parameters of a function that nobody calls are taken to be buffers of their own.
    """
    found: dict[str, set[tuple[int, int]]] = {}
    callers = [_Caller(f, provenance_of(f, program)) for f in callers_first(program)]
    # Callers come first, so a second round changes something only where functions call in a circle.
    changed = True
    while changed:
        changed = False
        for caller in callers:
            own = frozenset(found.get(caller.function.name, ()))
            for name, pair in caller.overlaps(own):
                known = found.setdefault(name, set())
                changed |= pair not in known
                known.add(pair)
    return {name: frozenset(pairs) for name, pairs in found.items()}


def near(root: Root, memory: Provenance, overlapping: Pairs) -> tuple[Root, ...]:
    """The buffer, and the parameters that may be the same memory under another name."""
    others = {i if j == root.param else j for i, j in overlapping if root.param in (i, j)}
    return (root, *(other for other in memory.roots if other.param in others))


def callers_first(program: Program) -> list[Function]:
    """The functions that call others, each before those that it calls."""
    order: list[Function] = []
    seen: set[str] = set()
    for function in program.functions:
        for reached in callees_first(function, program):
            if reached.name not in seen:
                seen.add(reached.name)
                order.append(reached)
    return [function for function in reversed(order) if next(calls_of(function), None)]


def calls_of(function: Function) -> Iterator[FunctionCall | Submit]:
    """The calls of other functions, in program order."""
    for stmt in walk(function.body):
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                if isinstance(part, FunctionCall | Submit):
                    yield part


@dataclass(frozen=True)
class _Caller:
    """A function and what its handles stand for."""

    function: Function
    memory: Provenance

    def overlaps(self, own: Pairs) -> Iterator[tuple[str, tuple[int, int]]]:
        """Each callee with two parameters that get the same memory.

        Args:
            own: the caller's own parameters that may overlap.
        """
        made = {s.var: s.value for s in walk(self.function.body) if isinstance(s, Assign)}
        for call in calls_of(self.function):
            handles = [(i, a) for i, a in enumerate(call.args) if isinstance(a.type, TensorType)]
            for (i, one), (j, other) in combinations(handles, 2):
                if self._may_meet(one, other, own) and not _apart(one, other, made):
                    yield call.name, (i, j)

    def _may_meet(self, one: Expr, other: Expr, own: Pairs) -> bool:
        """Whether two handles may stand for one buffer."""
        for root in self.memory.roots_of(one):
            for another in self.memory.roots_of(other):
                if root is another:
                    return True
                if root.param is None or another.param is None:
                    continue
                if (min(root.param, another.param), max(root.param, another.param)) in own:
                    return True
        return False


# --- windows of one tensor ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Box:
    """A box of a tensor that holds whatever a handle names; no extents: all of the tensor."""

    base: Expr
    offsets: tuple[Dim, ...] = ()
    extents: tuple[Dim, ...] = ()


def _apart(one: Expr, other: Expr, made: dict[Var, Expr]) -> bool:
    """Whether two handles are windows of one tensor that provably share no element."""
    first, second = _box(one, made), _box(other, made)
    if first.base != second.base or len(first.extents) != len(second.extents):
        return False
    axes = zip(first.offsets, first.extents, second.offsets, second.extents, strict=True)
    return any(
        provably_le(dim_add(low, extent), start) or provably_le(dim_add(start, size), low)
        for low, extent, start, size in axes
    )


def _box(handle: Expr, made: dict[Var, Expr]) -> _Box:
    """The box of a handle in the tensor that it was cut from."""
    offsets: tuple[Dim, ...] = ()
    extents: tuple[Dim, ...] = ()
    while isinstance(handle, Var) and (value := made.get(handle)) is not None:
        if isinstance(value, Var):
            handle = value
            continue
        source = aliased_operand(value) if isinstance(value, Call) else None
        if source is None:
            break
        assert isinstance(value, Call)
        if value.op == "tensor.slice":
            at, shape = dims_of(value.args[2]), dims_of(value.args[1])
            if len(at) == len(offsets):
                offsets = tuple(dim_add(a, b) for a, b in zip(at, offsets, strict=True))
            else:
                offsets, extents = at, shape
        elif value.type != value.args[source].type:
            offsets, extents = (), ()  # a view with axes of its own: all of what it views
        handle = value.args[source]
    return _Box(handle, offsets, extents)
