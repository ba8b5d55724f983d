"""TypeCheck: recorded types against type rules, annotations, calls, carries and returns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pypto_egg.errors import VerifyError
from pypto_egg.ir.dtype import BF16, FP16, FP32, INDEX, INT32
from pypto_egg.ir.enums import CompactMode, Direction, FunctionType, LoopKind, Mem
from pypto_egg.ir.expr import BinOp, ConstBool, ConstFloat, ConstInt, Expr, FunctionCall, Var
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Eval, For, If, Return, Stmt, Yield
from pypto_egg.ir.types import ScalarType, TensorType, TupleType, Type, tensor_type, tile_type
from pypto_egg.ops.registry import make_call
from pypto_egg.verify import Property, verify_findings, verify_program

TENSOR = tensor_type((16, 32), FP32)
N = Var("n", ScalarType(INDEX))
X = Var("x", TENSOR)


def program(
    *body: Stmt, params: tuple[Var, ...] = (X, N), returns: tuple[Type, ...] = ()
) -> Program:
    made = Function("k", FunctionType.AIV, tuple(map(Param, params)), returns, body)
    return Program("P", (made,))


def messages(made: Program, stage: str = "tensor") -> list[str]:
    found = verify_findings(made, stage)
    assert {finding.property for finding in found} <= {Property.TYPE_CHECK}
    return [finding.message for finding in found]


def carrying(carried: Type, init: Expr, yielded: Expr, result: Type, *body: Stmt) -> For:
    bounds = (ConstInt(0), ConstInt(4), ConstInt(1))
    names = (Var("c", carried),), (init,), (Var("r", result),)
    i = Var("i", ScalarType(INDEX))
    return For(LoopKind.range, i, *bounds, (*body, Yield((yielded,))), *names)


def test_a_recorded_type_that_the_rule_does_not_give_is_refused() -> None:
    call = make_call("tensor.exp", (X,))
    wrong = replace(call, result_type=tensor_type((16, 16), FP32))
    y = Var("y", wrong.type)
    with pytest.raises(VerifyError, match="TypeCheck: in function 'k'") as caught:
        verify_program(program(Assign(y, wrong)))
    assert "for pl.tensor.exp has shape [16, 16] instead of the [16, 32]" in caught.value.message
    assert messages(program(Assign(Var("y", TENSOR), call))) == []


def test_operands_that_the_rule_refuses_are_reported_with_its_own_words() -> None:
    call = make_call("tensor.add", (X, X))
    other = Var("other", tensor_type((7, 32), FP32))
    broken = replace(call, args=(X, other))
    (message,) = messages(program(Assign(Var("y", TENSOR), broken), params=(X, other)))
    assert "tensor.add" in message


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (tensor_type((16, 32), FP16), "dtype FP16 instead of the FP32"),
        (tensor_type((16, 64), FP32), "shape [16, 64] instead of the [16, 32]"),
        (tensor_type((512,), FP32), "shape [512] instead of the [16, 32]"),
        (tile_type((16, 32), FP32), "type Tile instead of Tensor"),
    ],
)
def test_an_annotation_has_kind_dtype_rank_and_extents_of_its_value(
    annotation: Type, problem: str
) -> None:
    y = Var("y", annotation)
    found = messages(program(Assign(y, make_call("tensor.exp", (X,)))))
    assert found == [f"in function 'k' the annotation of 'y' has {problem} of its value"]


def test_an_annotation_may_state_symbols_spaces_and_integer_kinds() -> None:
    symbolic = Var("y", tensor_type((N, 32), FP32))
    counted = Var("m", ScalarType(INT32))
    tile = Var("t", tile_type((16, 32), FP32))
    placed = Var("p", tile_type((16, 32), FP32, Mem.Mat))
    made = program(
        Assign(symbolic, make_call("tensor.exp", (X,))),
        Assign(counted, BinOp("+", N, ConstInt(1), INDEX)),
        Assign(placed, tile),
        params=(X, N, tile),
    )
    assert messages(made) == []


CALLEE = Function(
    "f",
    FunctionType.InCore,
    (Param(Var("a", TENSOR)), Param(Var("s", ScalarType(FP32))), Param(X, Direction.Out)),
    (TENSOR,),
    (),
)


def calling(args: tuple[Expr, ...], result: Type = TENSOR, name: str = "f") -> list[str]:
    call = FunctionCall(name, args, result)
    stmt = Eval(call) if isinstance(result, TupleType) else Assign(Var("y", result), call)
    out = Var("out", TENSOR)
    main = Function("k", FunctionType.Orchestration, (Param(X), Param(out)), (), (stmt,))
    return messages(Program("P", (CALLEE, main)))


def test_arguments_fit_the_parameters() -> None:
    half = ConstFloat(0.5, FP32)
    assert calling((X, half, X)) == []
    assert calling((X, half)) == ["in function 'k' self.f takes 3 arguments, got 2"]
    assert calling((X, ConstFloat(0.5, FP16), X)) == [
        "in function 'k' an argument of self.f has dtype FP16 instead of the FP32 of parameter 's'"
    ]
    assert calling((half, half, X)) == [
        "in function 'k' an argument of self.f has type Scalar instead of Tensor of parameter 'a'"
    ]


def test_results_fit_the_declared_returns() -> None:
    args = (X, ConstFloat(0.5, FP32), X)
    assert "shape [4] instead of the [16, 32]" in calling(args, tensor_type((4,), FP32))[0]
    pair = TupleType((TENSOR, TENSOR))
    assert calling(args, pair) == ["in function 'k' self.f returns 1 values, used as 2"]


def test_a_called_function_exists() -> None:
    assert calling((), name="g") == ["in function 'k' self.g is called, but never defined"]


def test_carried_values_have_one_type() -> None:
    narrow = tensor_type((16, 16), FP32)
    y = Var("y", narrow)
    fine = carrying(TENSOR, X, X, TENSOR)
    assert messages(program(fine)) == []
    (message,) = messages(program(carrying(TENSOR, X, y, TENSOR), params=(X, N, y)))
    assert message == (
        "in function 'k' 'y' joins 'c' with shape [16, 16] instead of the [16, 32] that 'c' has"
    )
    assert len(messages(program(carrying(narrow, X, X, TENSOR)))) == 3


def test_both_arms_of_a_branch_give_the_type_of_the_result() -> None:
    y, r = Var("y", tensor_type((16, 32), BF16)), Var("r", TENSOR)
    branch = If(ConstBool(True), (Yield((X,)),), (Yield((y,)),), (r,))
    (message,) = messages(program(branch, params=(X, N, y)))
    assert "'y' joins 'r' with dtype BF16 instead of the FP32" in message


def vec(**view: object) -> Var:
    made = tile_type((64, 32), FP32, Mem.Vec)
    return Var("t", made.with_view(**view) if view else made)


@pytest.mark.req("C-038", "C-150")
def test_carried_tiles_agree_in_space_and_layout_after_lowering() -> None:
    mat, t = Var("m", tile_type((64, 32), FP32, Mem.Mat)), vec()
    moved = program(carrying(t.type, t, mat, t.type), params=(t, mat))
    assert messages(moved) == []
    (message,) = messages(moved, "tile")
    assert "'m' joins 'c' with memory space Mat instead of the Vec" in message


def accumulator(rows: int | Expr, physical: int = 64) -> Var:
    made = tile_type((physical, 128), INT32, Mem.Acc)
    return Var("acc", made.with_view(valid_shape=(rows, 128), compact=CompactMode.normal))


@pytest.mark.req("C-271", "C-273")
def test_a_carry_that_loses_valid_rows_is_refused_after_lowering() -> None:
    full, narrow = accumulator(64), accumulator(N)
    made = program(carrying(full.type, full, narrow, full.type), params=(N, full, narrow))
    (message,) = messages(made, "tile")
    assert "valid shape [n, 128] instead of the [64, 128]" in message
    repaired = program(carrying(narrow.type, narrow, narrow, narrow.type), params=(N, full, narrow))
    assert messages(repaired, "tile") == []


@pytest.mark.req("C-275")
def test_a_carry_of_one_block_of_rows_may_lose_valid_rows() -> None:
    full, narrow = accumulator(16, physical=16), accumulator(N, physical=16)
    made = program(carrying(full.type, full, narrow, full.type), params=(N, full, narrow))
    assert messages(made, "tile") == []


@pytest.mark.req("C-276")
def test_a_narrowing_computed_in_the_body_may_stay() -> None:
    inner = Var("v", ScalarType(INDEX))
    full, narrow = accumulator(64), accumulator(inner)
    extent = Assign(inner, BinOp("-", N, ConstInt(1), INDEX))
    alias = Assign(narrow, full)
    made = program(carrying(full.type, full, narrow, full.type, extent, alias), params=(N, full))
    assert messages(made, "tile") == []


def test_returned_values_fit_the_declared_returns() -> None:
    other = tensor_type((16, 32), BF16)
    made = program(Return((X,)), returns=(other,))
    expected = (
        "in function 'k' a returned value has dtype FP32 instead of the BF16 that is declared"
    )
    assert messages(made) == [expected]
    assert messages(made, "tile") == [expected]
    assert messages(program(Return(()), returns=(TENSOR,)), "tile") == [
        "in function 'k' 0 values are returned, 1 are declared"
    ]


def test_types_are_left_alone_where_the_structure_is_broken() -> None:
    ghost = Var("ghost", tensor_type((4,), FP16))
    made = program(Assign(Var("y", TENSOR), make_call("tensor.exp", (ghost,))))
    assert [f.property for f in verify_findings(made)] == [Property.USE_BEFORE_DEF]


def test_the_type_of_a_tensor_may_be_distributed_where_a_plain_one_is_expected() -> None:
    plain: TensorType = TENSOR
    shared = Var("d", replace(plain, distributed=True))
    half = ConstFloat(0.5, FP32)
    main = Function(
        "k",
        FunctionType.Orchestration,
        (Param(shared), Param(X)),
        (),
        (Assign(Var("y", TENSOR), FunctionCall("f", (shared, half, X), TENSOR)),),
    )
    assert messages(Program("P", (CALLEE, main))) == []
