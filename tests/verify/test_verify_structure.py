"""SplitIncoreOrch and NormalizedStmtStructure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pypto_egg.errors import VerifyError
from pypto_egg.ir.dtype import BOOL, FP32, INDEX
from pypto_egg.ir.enums import FunctionType, Level, LoopKind, Role
from pypto_egg.ir.expr import BinOp, ConstInt, Expr, FunctionCall, Var
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Eval, For, If, Return, Scope, Stmt
from pypto_egg.ir.types import ScalarType, tensor_type
from pypto_egg.ops.registry import make_call
from pypto_egg.verify import Property, verify_findings, verify_program

TENSOR = tensor_type((16, 32), FP32)
X = Var("x", TENSOR)


def program(*body: Stmt) -> Program:
    made = Function("main", FunctionType.Orchestration, (Param(X),), (), body)
    return Program("P", (made,))


def properties(made: Program) -> list[Property]:
    return [finding.property for finding in verify_findings(made)]


def mul(a: Expr, b: Expr) -> Expr:
    return make_call("tensor.mul", (a, b))


def work() -> Stmt:
    return Assign(Var("y", TENSOR), mul(X, X))


@pytest.mark.parametrize(
    "region",
    [
        lambda: Scope("at", (work(),), kwargs=(("level", Level.CORE_GROUP),)),
        lambda: Scope("cluster", (work(),)),
        lambda: Scope("spmd", (work(),), args=(ConstInt(8),)),
        lambda: For(
            LoopKind.spmd,
            Var("i", ScalarType(INDEX)),
            ConstInt(0),
            ConstInt(8),
            ConstInt(1),
            (work(),),
        ),
    ],
    ids=["at", "cluster", "spmd scope", "spmd loop"],
)
@pytest.mark.req("C-005")
def test_regions_of_device_code_must_be_outlined(region: Callable[[], Stmt]) -> None:
    with pytest.raises(VerifyError, match="SplitIncoreOrch: function 'main' still contains"):
        verify_program(program(region(), Return(())))


@pytest.mark.parametrize(
    "scope",
    [
        lambda: Scope("scope", (work(),)),
        lambda: Scope("split_aiv", (work(),), args=(ConstInt(2),)),
        lambda: Scope("at", (work(),), kwargs=(("level", Level.HOST), ("role", Role.Orchestrator))),
    ],
    ids=["scope", "split_aiv", "host"],
)
@pytest.mark.req("C-005")
def test_other_regions_may_stay(scope: Callable[[], Stmt]) -> None:
    assert properties(program(scope(), Return(()))) == []


@pytest.mark.req("C-006")
def test_a_nested_operator_call_is_refused() -> None:
    nested = Assign(Var("y", TENSOR), make_call("tensor.add", (mul(X, X), X)))
    with pytest.raises(VerifyError, match="NormalizedStmtStructure") as caught:
        verify_program(program(nested))
    assert "has pl.tensor.mul nested in pl.tensor.add" in caught.value.message
    assert caught.value.hint is not None


@pytest.mark.req("C-006")
def test_the_two_statement_form_is_accepted() -> None:
    t = Var("t", TENSOR)
    made = program(Assign(t, mul(X, X)), Assign(Var("y", TENSOR), make_call("tensor.add", (t, X))))
    verify_program(made)


@pytest.mark.req("C-006")
def test_calls_in_scalar_expressions_headers_and_returns_are_nested() -> None:
    extent = make_call("tensor.dim", (X, ConstInt(0)))
    scalar = Assign(Var("n", ScalarType(INDEX)), BinOp("*", extent, ConstInt(2), INDEX))
    header = If(BinOp("<", extent, ConstInt(2), BOOL), (work(),))
    assert properties(program(scalar)) == [Property.NORMALIZED_STMT_STRUCTURE]
    assert properties(program(header)) == [Property.NORMALIZED_STMT_STRUCTURE]
    (finding,) = verify_findings(program(Return((mul(X, X),))))
    assert "nested in a return statement" in finding.message


@pytest.mark.req("C-006")
def test_function_calls_may_not_be_arguments_either() -> None:
    inner = FunctionCall("f", (X,), TENSOR)
    found = verify_findings(program(Eval(FunctionCall("g", (inner,), TENSOR))))
    assert [f.property for f in found] == [Property.NORMALIZED_STMT_STRUCTURE]
    assert "has self.f nested in self.g" in found[0].message


@pytest.mark.req("C-006")
def test_a_chain_of_nested_calls_names_every_inner_one() -> None:
    deep: Expr = X
    for _ in range(2000):
        deep = make_call("tensor.neg", (deep,))
    made = verify_findings(program(Assign(Var("y", TENSOR), deep)))
    assert len(made) == 1999
