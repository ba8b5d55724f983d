"""IncoreTileOps: no tensor computation is left in device functions."""

from __future__ import annotations

import pytest

from pypto_egg.errors import OptionError, VerifyError
from pypto_egg.ir.dtype import FP32, INDEX
from pypto_egg.ir.enums import FunctionType
from pypto_egg.ir.expr import ConstFloat, ConstInt, Expr, Var, tuple_of
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Eval
from pypto_egg.ir.types import ScalarType, tensor_type
from pypto_egg.ops.registry import make_call
from pypto_egg.verify import Property, verify_findings, verify_program
from pypto_egg.verify.incore_tiles import check_incore_tiles

X = Var("x", tensor_type((16, 32), FP32))
OUT = Var("out", tensor_type((16, 32), FP32))


def function(value: Expr, type_: FunctionType = FunctionType.InCore) -> Function:
    return Function("k", type_, (Param(X), Param(OUT)), (), (Eval(value),))


def corner() -> tuple[Expr, ...]:
    return (X, tuple_of((8, 32)), tuple_of((0, 0)))


@pytest.mark.req("C-002", "C-013", "C-284")
def test_a_computation_on_tensors_is_reported() -> None:
    left = Program("P", (function(make_call("tensor.add", (X, X))),))
    with pytest.raises(VerifyError, match="IncoreTileOps: function 'k' of type InCore still has"):
        verify_program(left, stage="tile")
    verify_program(left, stage="tensor")


@pytest.mark.parametrize(
    "value",
    [
        make_call("tensor.write", (X, tuple_of((0, 0)), ConstFloat(1.0, FP32))),
        make_call("tensor.read", (X, tuple_of((0, 0)))),
        make_call("tensor.dim", (X, ConstInt(0))),
        make_call("tensor.view", (X, tuple_of((32, 16)))),
        make_call("tensor.slice", corner()),
        make_call("tensor.reshape", (X, tuple_of((512,)))),
    ],
    ids=lambda call: call.op,
)
@pytest.mark.req("C-013", "C-055", "C-057", "C-224")
def test_scalar_accesses_queries_and_views_of_global_memory_stay(value: Expr) -> None:
    assert list(check_incore_tiles(function(value))) == []


@pytest.mark.parametrize(
    "value",
    [
        make_call("tensor.assemble", (OUT, X, tuple_of((0, 0)))),
        make_call("tensor.transpose", (X, ConstInt(0), ConstInt(1))),
        make_call("tensor.exp", (X,)),
        make_call("tensor.matmul", (X, X), {"b_trans": True}),
    ],
    ids=lambda call: call.op,
)
@pytest.mark.req("C-013")
def test_copies_and_computations_are_reported(value: Expr) -> None:
    (finding,) = check_incore_tiles(function(value))
    assert finding.property is Property.INCORE_TILE_OPS


def test_functions_off_the_device_may_compute_on_tensors() -> None:
    add = make_call("tensor.add", (X, X))
    for type_ in FunctionType:
        device = type_ in (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
        assert bool(list(check_incore_tiles(function(add, type_)))) == device


def test_an_unknown_stage_is_an_option_error() -> None:
    with pytest.raises(OptionError, match="unknown verification stage 'tiles'") as caught:
        verify_findings(Program("P", ()), "tiles")
    assert caught.value.hint == "stages are tensor, tile"


def test_scalars_computed_from_extents_stay() -> None:
    n = Var("n", ScalarType(INDEX))
    made = Function(
        "k",
        FunctionType.InCore,
        (Param(X),),
        (),
        (Assign(n, make_call("tensor.dim", (X, ConstInt(0)))),),
    )
    verify_program(Program("P", (made,)), stage="tile")
