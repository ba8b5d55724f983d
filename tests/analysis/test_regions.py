"""The region tree: numbering, places of statements and variables, how often code runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.analysis.regions import UNKNOWN_TRIPS, RegionKind, regions_of, trip_count
from pypto_egg.errors import VerifyError
from pypto_egg.ir.dtype import BOOL, INDEX
from pypto_egg.ir.enums import FunctionType, LoopKind
from pypto_egg.ir.expr import BinOp, ConstBool, ConstInt, Expr, Var
from pypto_egg.ir.program import Function, Param
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Return, Scope, Stmt, While, Yield
from pypto_egg.ir.types import ScalarType
from pypto_egg.ir.visit import walk

INDEX_TYPE = ScalarType(INDEX)
N = Var("n", INDEX_TYPE)


def loop(
    start: Expr | int, stop: Expr | int, step: Expr | int = 1, body: Block = (), var: str = "i"
) -> For:
    bounds = [ConstInt(b) if isinstance(b, int) else b for b in (start, stop, step)]
    return For(LoopKind.range, Var(var, INDEX_TYPE), *bounds, body)


def function(*body: Stmt) -> Function:
    return Function("k", FunctionType.InCore, (Param(N),), (), body)


def plus(a: Expr, b: int) -> Expr:
    return BinOp("+", a, ConstInt(b), INDEX)


def nested() -> tuple[Function, dict[str, Stmt]]:
    mark = {name: Eval(ConstInt(i)) for i, name in enumerate(("in_then", "in_else", "after"))}
    branch = If(ConstBool(True), (mark["in_then"],), (mark["in_else"],))
    outer = loop(0, 4, body=(loop(0, N, body=(branch,), var="j"), mark["after"]))
    return function(outer, Return(())), {**mark, "branch": branch, "outer": outer}


def test_regions_are_numbered_in_program_order() -> None:
    tree = regions_of(nested()[0])
    assert [(r.id, r.kind, r.parent and r.parent.id, r.depth) for r in tree.regions] == [
        (0, RegionKind.FUNCTION, None, 0),
        (1, RegionKind.FOR, 0, 1),
        (2, RegionKind.FOR, 1, 2),
        (3, RegionKind.THEN, 2, 3),
        (4, RegionKind.ELSE, 2, 3),
    ]


def test_a_region_inside_an_arm_comes_before_the_other_arm() -> None:
    inner = loop(0, 2)
    tree = regions_of(function(If(ConstBool(True), (inner,), (Eval(ConstInt(1)),))))
    assert [r.kind.value for r in tree.regions] == ["function", "then", "for", "else"]


def test_every_statement_has_a_region_and_a_position() -> None:
    made, stmts = nested()
    tree = regions_of(made)
    assert list(tree.statements) == list(walk(made.body))
    assert [tree.position_of(stmt) for stmt in tree.statements] == list(range(7))
    assert tree.region_of(stmts["outer"]) is tree.root
    assert tree.region_of(stmts["branch"]).id == 2
    assert tree.region_of(stmts["in_else"]).id == 4
    assert tree.region_of(stmts["after"]).id == 1
    assert [r.kind for r in tree.opened_by(stmts["branch"])] == [RegionKind.THEN, RegionKind.ELSE]
    assert tree.opened_by(stmts["after"]) == ()


def test_a_region_spans_the_positions_of_its_statements() -> None:
    tree = regions_of(nested()[0])
    spans = [(tree.start_of(r), tree.end_of(r)) for r in tree.regions]
    assert spans == [(0, 7), (1, 6), (2, 5), (3, 4), (4, 5)]


def test_variables_belong_to_the_region_that_defines_them() -> None:
    carried, got, inside = (Var(name, INDEX_TYPE) for name in ("c", "r", "d"))
    i = Var("i", INDEX_TYPE)
    body = (Assign(inside, plus(carried, 1)), Yield((inside,)))
    made = For(
        LoopKind.range, i, ConstInt(0), ConstInt(4), ConstInt(1), body, (carried,), (N,), (got,)
    )
    tree = regions_of(function(made, Return(())))
    assert [tree.region_of_var(v).id for v in (N, i, carried, inside, got)] == [0, 1, 1, 1, 0]
    symbol = Var("M", INDEX_TYPE)
    assert tree.region_of_var(symbol) is tree.root


def test_a_region_is_an_ancestor_of_what_it_encloses() -> None:
    tree = regions_of(nested()[0])
    _, outer, _, then, other = tree.regions
    assert tree.is_ancestor(outer, then)
    assert tree.is_ancestor(then, then)
    assert not tree.is_ancestor(then, outer)
    assert not tree.is_ancestor(then, other)


def test_code_in_loops_runs_as_often_as_the_loops_say() -> None:
    made, stmts = nested()
    tree = regions_of(made)
    assert tree.multiplicity(tree.root) == 1
    assert tree.multiplicity(tree.region_of(stmts["after"])) == 4
    assert tree.multiplicity(tree.region_of(stmts["in_then"])) == 4 * UNKNOWN_TRIPS
    assert tree.multiplicity(tree.region_of(stmts["in_else"])) == 4 * UNKNOWN_TRIPS


def test_while_loops_and_scopes() -> None:
    again = BinOp("<", N, ConstInt(3), BOOL)
    scope = Scope("split_aiv", (Eval(ConstInt(0)),))
    tree = regions_of(function(While(again, (scope,)), Return(())))
    assert [(r.kind.value, r.trips) for r in tree.regions] == [
        ("function", 1),
        ("while", None),
        ("scope", 1),
    ]
    assert tree.multiplicity(tree.regions[2]) == UNKNOWN_TRIPS


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
def test_constant_bounds_count_as_python_counts(start: int, stop: int, step: int) -> None:
    assert trip_count(loop(start, stop, step)) == len(range(start, stop, step))


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 7))
def test_a_symbol_in_both_bounds_cancels(start: int, stop: int, step: int) -> None:
    assert trip_count(loop(plus(N, start), plus(N, stop), step)) == len(range(start, stop, step))


@pytest.mark.parametrize(
    "made",
    [loop(0, N), loop(N, 4), loop(0, 4, N), loop(0, 4, 0)],
    ids=["stop", "start", "step", "0"],
)
def test_other_bounds_have_no_constant_count(made: For) -> None:
    assert trip_count(made) is None


def test_one_statement_object_at_two_places_is_refused() -> None:
    twice = Eval(ConstInt(1))
    with pytest.raises(VerifyError, match="function 'k' holds the same statement object twice"):
        regions_of(function(twice, If(ConstBool(True), (twice,))))


def test_deep_nesting_needs_no_deep_stack() -> None:
    block: Block = (Eval(ConstInt(1)),)
    for _ in range(3000):
        block = (If(ConstBool(True), block),)
    tree = regions_of(function(*block))
    assert tree.regions[3000].depth == 3000
    assert tree.multiplicity(tree.regions[3000]) == 1
