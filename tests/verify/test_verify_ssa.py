"""SSAForm and UseBeforeDef."""

from __future__ import annotations

import pytest

from pypto_egg.errors import VerifyError
from pypto_egg.ir.dtype import BOOL, FP32, INDEX
from pypto_egg.ir.enums import FunctionType, LoopKind
from pypto_egg.ir.expr import BinOp, ConstBool, ConstInt, Expr, Var, tuple_of
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Block, For, If, Return, Scope, Stmt, While, Yield
from pypto_egg.ir.types import ScalarType, TensorView, tensor_type
from pypto_egg.ops.registry import make_call
from pypto_egg.source import Source, Span
from pypto_egg.verify import Property, verify_findings, verify_program

TENSOR = tensor_type((16, 32), FP32)
INDEX_TYPE = ScalarType(INDEX)
SOURCE = Source("k.py", "y = pl.add(x, x)\ny = pl.mul(y, y)\n")


def tensor(name: str) -> Var:
    return Var(name, TENSOR)


def neg(value: Expr) -> Expr:
    return make_call("tensor.neg", (value,))


def loop(body: Block, carried: Var, init: Expr, result: Var, var: str = "i") -> For:
    bounds = (ConstInt(0), ConstInt(4), ConstInt(1))
    index = Var(var, INDEX_TYPE)
    return For(LoopKind.range, index, *bounds, body, (carried,), (init,), (result,))


def program(*body: Stmt, params: tuple[Var, ...] = ()) -> Program:
    made = Function("k", FunctionType.InCore, tuple(map(Param, params)), (TENSOR,), body)
    return Program("P", (made,))


def properties(made: Program) -> list[Property]:
    return [finding.property for finding in verify_findings(made)]


X = tensor("x")


@pytest.mark.req("C-004")
def test_a_variable_bound_twice_is_refused_by_name() -> None:
    y = tensor("y")
    twice = program(
        Assign(y, make_call("tensor.add", (X, X)), span=Span(SOURCE, 1, 1, 1)),
        Assign(y, make_call("tensor.mul", (y, y)), span=Span(SOURCE, 2, 1, 1)),
        Return((y,)),
        params=(X,),
    )
    with pytest.raises(VerifyError, match="SSAForm: function 'k' defines 'y' twice") as caught:
        verify_program(twice)
    assert "first at k.py:1:1" in caught.value.message
    assert caught.value.span == Span(SOURCE, 2, 1, 1)
    assert caught.value.code == "E301"


@pytest.mark.req("C-004")
def test_two_variables_of_one_name_are_fine() -> None:
    y0, y1 = tensor("y"), tensor("y")
    made = program(Assign(y0, neg(X)), Assign(y1, neg(y0)), Return((y1,)), params=(X,))
    verify_program(made)


def test_a_parameter_may_not_be_bound_again() -> None:
    made = program(Assign(X, neg(X)), Return((X,)), params=(X,))
    assert properties(made) == [Property.SSA_FORM]


def test_a_value_is_not_in_reach_before_its_definition() -> None:
    y, z = tensor("y"), tensor("z")
    made = program(Assign(z, neg(y)), Assign(y, neg(X)), Return((z,)), params=(X,))
    (finding,) = verify_findings(made)
    assert finding.property is Property.USE_BEFORE_DEF
    assert "'y' before its definition" in finding.message


def test_a_value_that_nothing_defines_is_refused() -> None:
    made = program(Return((tensor("ghost"),)), params=(X,))
    with pytest.raises(VerifyError, match="UseBeforeDef: function 'k' uses 'ghost', which nothing"):
        verify_program(made)


def test_what_a_loop_body_defines_stays_inside() -> None:
    c, d, r = tensor("c"), tensor("d"), tensor("r")
    body = (Assign(d, neg(c)), Yield((d,)))
    fine = program(loop(body, c, X, r), Return((r,)), params=(X,))
    assert properties(fine) == []
    for escaped in (c, d):
        leaking = program(loop(body, c, X, r), Return((escaped,)), params=(X,))
        assert properties(leaking) == [Property.USE_BEFORE_DEF]


def test_an_arm_does_not_see_the_other_arm() -> None:
    a, b, r = tensor("a"), tensor("b"), tensor("r")
    branch = If(
        ConstBool(True),
        (Assign(a, neg(X)), Yield((a,))),
        (Assign(b, neg(a)), Yield((b,))),
        (r,),
    )
    assert properties(program(branch, Return((r,)), params=(X,))) == [Property.USE_BEFORE_DEF]


def test_a_loop_result_is_not_in_reach_in_its_own_body() -> None:
    c, d, r = tensor("c"), tensor("d"), tensor("r")
    made = program(loop((Assign(d, neg(r)), Yield((d,))), c, X, r), Return((r,)), params=(X,))
    assert properties(made) == [Property.USE_BEFORE_DEF]


def test_the_condition_of_a_while_loop_reads_what_it_carries() -> None:
    n, again, got = (Var(name, INDEX_TYPE) for name in ("n", "k", "r"))
    step = Yield((BinOp("+", again, ConstInt(1), INDEX),))
    condition = BinOp("<", again, ConstInt(8), BOOL)
    fine = While(condition, (step,), (again,), (n,), (got,))
    assert properties(program(fine, params=(n,))) == []
    wrong = While(BinOp("<", got, ConstInt(8), BOOL), (step,), (again,), (n,), (got,))
    assert properties(program(wrong, params=(n,))) == [Property.USE_BEFORE_DEF]


def test_a_with_region_keeps_its_names_in_reach() -> None:
    y = tensor("y")
    made = program(Scope("scope", (Assign(y, neg(X)),)), Return((y,)), params=(X,))
    assert properties(made) == []


@pytest.mark.parametrize(
    "yielded",
    [(), (X, X)],
    ids=["none", "too many"],
)
def test_a_loop_yields_as_many_values_as_it_carries(yielded: tuple[Expr, ...]) -> None:
    c, r = tensor("c"), tensor("r")
    made = program(loop((Yield(yielded),), c, X, r), Return((r,)), params=(X,))
    (finding,) = verify_findings(made)
    assert finding.property is Property.SSA_FORM
    assert f"needs 1 yielded values, not {len(yielded)}" in finding.message


def test_a_branch_with_results_needs_both_arms() -> None:
    r = tensor("r")
    made = program(If(ConstBool(True), (Yield((X,)),), (), (r,)), Return((r,)), params=(X,))
    assert properties(made) == [Property.SSA_FORM]


def test_carried_lists_have_one_length() -> None:
    c = tensor("c")
    i = Var("i", INDEX_TYPE)
    broken = For(
        LoopKind.range, i, ConstInt(0), ConstInt(4), ConstInt(1), (Yield((c,)),), (c,), (), ()
    )
    (finding,) = verify_findings(program(broken, params=(X,)))
    assert "1 iteration arguments, 0 initial values and 0 results" in finding.message


def test_symbols_of_shapes_need_no_definition() -> None:
    rows = Var("ROWS", INDEX_TYPE)
    shaped = Var("shaped", tensor_type((rows, 32), FP32))
    window = make_call("tensor.slice", (X, tuple_of((8, 32)), tuple_of((rows, 0))))
    made = program(Assign(Var("y", window.type), window), params=(X, shaped))
    assert properties(made) == []


def test_an_index_that_no_type_mentions_is_no_symbol() -> None:
    offset = Var("offset", INDEX_TYPE)
    window = make_call("tensor.slice", (X, tuple_of((8, 32)), tuple_of((offset, 0))))
    y = Var("y", window.type)
    assert properties(program(Assign(y, window), params=(X,))) == [Property.USE_BEFORE_DEF]


def test_a_type_may_not_name_a_later_value() -> None:
    n, m = Var("n", INDEX_TYPE), Var("m", INDEX_TYPE)
    y = Var("y", tensor_type((16, 32), FP32, TensorView(valid_shape=(n, 32))))
    made = program(Assign(y, neg(X)), Assign(n, BinOp("+", m, ConstInt(1), INDEX)), params=(X, m))
    assert properties(made) == [Property.USE_BEFORE_DEF]


def test_every_fault_is_found() -> None:
    y = tensor("y")
    made = program(
        Assign(y, neg(tensor("ghost"))), Assign(y, neg(X)), Return((tensor("g2"),)), params=(X,)
    )
    assert properties(made) == [
        Property.SSA_FORM,
        Property.USE_BEFORE_DEF,
        Property.USE_BEFORE_DEF,
    ]
    with pytest.raises(VerifyError, match="and 2 more findings"):
        verify_program(made)


def test_long_functions_and_deep_nests_need_no_deep_stack() -> None:
    block: Block = (Assign(tensor("y"), neg(X)),)
    for _ in range(3000):
        block = (If(ConstBool(True), block),)
    verify_program(program(*block, params=(X,)))
