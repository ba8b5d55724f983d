"""Memory versions against execution: equal numbers mean equal data, on every path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.analysis.effects import Effects, analyse_effects
from pypto_egg.ir.dtype import BOOL, FP32, INDEX
from pypto_egg.ir.enums import FunctionType, LoopKind
from pypto_egg.ir.expr import Call, ConstFloat, ConstInt, Var, tuple_of
from pypto_egg.ir.program import Function, Param
from pypto_egg.ir.stmt import Block, Eval, For, If, Stmt, While
from pypto_egg.ir.types import ScalarType, tensor_type
from pypto_egg.ir.visit import walk
from pypto_egg.ops.registry import make_call

TENSOR = tensor_type((4, 8), FP32)
X, Y = Var("x", TENSOR), Var("y", TENSOR)
CONDITION = Var("c", ScalarType(BOOL))
CORNER = tuple_of((0, 0))


def access(handle: Var, writes: bool) -> Stmt:
    if writes:
        return Eval(make_call("tensor.write", (handle, CORNER, ConstFloat(1.0, FP32))))
    return Eval(make_call("tensor.read", (handle, CORNER)))


def loop(body: Block) -> Stmt:
    bounds = (ConstInt(0), ConstInt(3), ConstInt(1))
    return For(LoopKind.range, Var("i", ScalarType(INDEX)), *bounds, body)


def blocks() -> st.SearchStrategy[Block]:
    accesses = st.builds(access, st.sampled_from((X, Y)), st.booleans())
    statements = st.recursive(
        accesses,
        lambda inner: st.one_of(
            st.builds(loop, st.lists(inner, max_size=3).map(tuple)),
            st.builds(
                lambda a, b: If(CONDITION, a, b),
                st.lists(inner, max_size=3).map(tuple),
                st.lists(inner, max_size=3).map(tuple),
            ),
            st.builds(lambda a: While(CONDITION, a), st.lists(inner, max_size=3).map(tuple)),
        ),
        max_leaves=12,
    )
    return st.lists(statements, max_size=6).map(tuple)


def kernel(body: Block) -> Function:
    params = (Param(X), Param(Y), Param(CONDITION))
    return Function("k", FunctionType.InCore, params, (), body)


def operation(stmt: Stmt) -> tuple[Var, bool]:
    """The tensor that a generated statement touches, and whether it writes it."""
    assert isinstance(stmt, Eval)
    assert isinstance(stmt.value, Call)
    handle = stmt.value.args[0]
    assert isinstance(handle, Var)
    return handle, stmt.value.op == "tensor.write"


@dataclass
class Run:
    """One execution: it calls `decide` at every branch and before every `while` iteration."""

    choices: Iterator[bool]
    state: dict[Var, int] = field(default_factory=lambda: {X: 0, Y: 0})
    trace: list[tuple[Stmt, int]] = field(default_factory=list)

    def decide(self) -> bool:
        return next(self.choices, False)

    def block(self, body: Block) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                for _ in range(3):
                    self.block(stmt.body)
            case While():
                while self.decide():
                    self.block(stmt.body)
            case If():
                self.block(stmt.then if self.decide() else stmt.orelse)
            case _:
                handle, writes = operation(stmt)
                if writes:
                    self.state[handle] += 1
                else:
                    self.trace.append((stmt, self.state[handle]))


def version(found: Effects, stmt: Stmt) -> int:
    return found.read_version(stmt, operation(stmt)[0])


def reads(body: Block) -> list[Stmt]:
    evals = [stmt for stmt in walk(body) if isinstance(stmt, Eval)]
    return [stmt for stmt in evals if not operation(stmt)[1]]


@given(blocks(), st.lists(st.booleans(), max_size=30))
@settings(max_examples=150)
@pytest.mark.req("C-060", "C-061", "C-062")
def test_reads_of_one_version_see_the_same_data(body: Block, choices: list[bool]) -> None:
    found = analyse_effects(kernel(body))
    run = Run(iter(choices))
    run.block(body)
    # For each tensor and version: the data seen, and the reads that saw it in this pass through
    # their region. Running a read again starts the next pass.
    passes: dict[tuple[Var, int], tuple[int, set[int]]] = {}
    for stmt, state in run.trace:
        handle = operation(stmt)[0]
        key = (handle, version(found, stmt))
        seen, readers = passes.get(key, (state, set()))
        if id(stmt) in readers and key[1] != 0:
            seen, readers = state, set()
        assert seen == state
        passes[key] = (seen, readers | {id(stmt)})


@given(blocks())
@settings(max_examples=100)
@pytest.mark.req("C-027")
def test_what_is_never_written_has_one_version(body: Block) -> None:
    found = analyse_effects(kernel(body))
    written = {operation(s)[0] for s in walk(body) if isinstance(s, Eval) and operation(s)[1]}
    assert {root.var for root in found.written_roots} == written
    for handle in (X, Y):
        assert found.is_read_only(handle) == (handle not in written)
    assert all(version(found, s) == 0 for s in reads(body) if operation(s)[0] not in written)


@given(st.lists(st.tuples(st.sampled_from((X, Y)), st.booleans()), max_size=20))
@settings(max_examples=100)
@pytest.mark.req("C-059", "C-060")
def test_in_straight_code_only_a_write_to_the_tensor_makes_a_version(
    steps: list[tuple[Var, bool]],
) -> None:
    body = tuple(access(handle, writes) for handle, writes in steps)
    found = analyse_effects(kernel(body))
    run = Run(iter(()))
    run.block(body)
    seen = {(operation(stmt)[0], version(found, stmt), state) for stmt, state in run.trace}
    assert len({(h, v) for h, v, _ in seen}) == len({(h, s) for h, _, s in seen}) == len(seen)
