"""Structural equality: names, spans and comments do not count, everything else does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pypto_egg.ir.dtype import FP16, FP32, INDEX
from pypto_egg.ir.enums import Direction, FunctionType, LoopKind, Mem
from pypto_egg.ir.equal import first_difference, structurally_equal
from pypto_egg.ir.expr import Call, ConstFloat, ConstInt, Expr, FunctionCall, Var
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Block, Eval, For, Return, Yield
from pypto_egg.ir.types import ScalarType, TensorType, TensorView, tensor_type
from pypto_egg.source import Source, Span

TENSOR = tensor_type((16, 32), FP32)


def kernel(
    prefix: str = "",
    *,
    op: str = "tensor.exp",
    type_: TensorType = TENSOR,
    stop: int = 4,
    kwargs: tuple[tuple[str, object], ...] = (("a", 1), ("b", 2)),
    name: str = "k",
) -> Function:
    """`y = exp(x); for i, (c,) in range(4, init=y): d = op(c) ...`, with fresh variables."""
    x, y, c, d, r = (Var(prefix + n, type_) for n in "xycdr")
    i = Var(prefix + "i", ScalarType(INDEX))
    body: Block = (
        Assign(y, Call("tensor.exp", (x,), (), type_)),
        For(
            LoopKind.range,
            i,
            ConstInt(0),
            ConstInt(stop),
            ConstInt(1),
            (Assign(d, Call(op, (c,), kwargs, type_)), Yield((d,))),
            (c,),
            (y,),
            (r,),
        ),
        Return((r,)),
    )
    return Function(name, FunctionType.InCore, (Param(x),), (type_,), body)


def returning(value: Expr, *params: Var) -> Function:
    return Function(
        "f", FunctionType.InCore, tuple(map(Param, params)), (TENSOR,), (Return((value,)),)
    )


def test_names_do_not_count() -> None:
    assert structurally_equal(kernel(), kernel("other_", name="k2"))
    assert first_difference(kernel(), kernel("other_")) is None


def test_spans_and_comments_do_not_count() -> None:
    plain = kernel()
    first, *rest = plain.body
    source = Source("k.py", "y = pl.exp(x)")
    noted = replace(first, comments=("softmax",), span=Span(source, 1, 1))
    assert structurally_equal(plain, replace(plain, body=(noted, *rest)))


def test_the_order_of_keyword_arguments_does_not_count() -> None:
    assert structurally_equal(kernel(), kernel(kwargs=(("b", 2), ("a", 1))))


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (kernel(op="tensor.neg"), "k.body[1].body[0].value: call of tensor.exp against tensor.neg"),
        (kernel(stop=8), "k.body[1].stop.value: 4 against 8"),
        (kernel(kwargs=(("a", 1), ("b", 3))), "k.body[1].body[0].value.kwargs.b: 2 against 3"),
        (kernel(kwargs=(("a", 1),)), "k.body[1].body[0].value.kwargs.b: only on one side"),
        (
            kernel(type_=tensor_type((16, 32), FP16)),
            "k.params[0].var.type.dtype: FP32 against FP16",
        ),
        (kernel(type_=tensor_type((16, 64), FP32)), "k.params[0].var.type.shape[1]: 32 against 64"),
        (replace(kernel(), type=FunctionType.AIV), "k.type: FunctionType.InCore against"),
        (replace(kernel(), body=kernel().body[:2]), "k.body: 3 against 2 items"),
    ],
)
def test_the_first_difference_says_where_and_what(other: Function, difference: str) -> None:
    found = first_difference(kernel(), other)
    assert found is not None
    assert found.startswith(difference)


def test_the_direction_of_a_parameter_counts() -> None:
    plain = kernel()
    changed = replace(plain, params=(Param(plain.params[0].var, Direction.InOut),))
    assert first_difference(plain, changed) == (
        "k.params[0].direction: Direction.In against Direction.InOut"
    )


def test_using_another_variable_of_the_same_type_is_a_difference() -> None:
    x, y = Var("x", TENSOR), Var("y", TENSOR)
    a, b = Var("x", TENSOR), Var("y", TENSOR)
    assert structurally_equal(returning(x, x, y), returning(a, a, b))
    found = first_difference(returning(x, x, y), returning(b, a, b))
    assert found == "f.body[0].values[0]: variable x against y, which stands for another one"


def test_two_variables_never_stand_for_one() -> None:
    x, y, one = Var("x", TENSOR), Var("y", TENSOR), Var("one", TENSOR)
    assert not structurally_equal(returning(x, x, y), returning(one, one, one))
    assert not structurally_equal(returning(one, one, one), returning(x, x, y))


def test_symbols_match_one_to_one() -> None:
    def with_symbols(rows: Var, cols: Var) -> Function:
        x = Var("x", tensor_type((rows, cols), FP32))
        return returning(x, x)

    n, m = Var("N", ScalarType(INDEX)), Var("M", ScalarType(INDEX))
    assert structurally_equal(with_symbols(n, m), with_symbols(m, n))
    assert not structurally_equal(with_symbols(n, m), with_symbols(n, n))


def test_symbols_are_shared_by_the_functions_of_a_program() -> None:
    def pair(first: Var, second: Var) -> Program:
        made = []
        for name, symbol in (("f", first), ("g", second)):
            x = Var("x", tensor_type((symbol,), FP32))
            made.append(Function(name, FunctionType.InCore, (Param(x),), (), (Return(()),)))
        return Program("P", tuple(made))

    n, m = Var("N", ScalarType(INDEX)), Var("M", ScalarType(INDEX))
    assert structurally_equal(pair(n, n), pair(m, m))
    assert not structurally_equal(pair(n, n), pair(n, m))


def test_views_of_types_count() -> None:
    partial = tensor_type((16, 32), FP32, TensorView(valid_shape=(8, 32)))
    found = first_difference(kernel(), kernel(type_=partial))
    assert found is not None
    assert found.startswith("k.params[0].var.type.view: None against")


def test_equal_looking_numbers_of_other_kinds_differ() -> None:
    def fill(value: object) -> Function:
        made = Call("tensor.full", (), (("value", value),), TENSOR)
        return replace(kernel(), body=(Eval(made),))

    assert not structurally_equal(fill(1), fill(True))
    assert not structurally_equal(fill(1), fill(1.0))
    assert not structurally_equal(fill(0.0), fill(-0.0))
    assert structurally_equal(fill(float("nan")), fill(float("nan")))
    assert not structurally_equal(fill(Mem.Vec), fill(Mem.Mat))


def test_constants_differ_by_dtype() -> None:
    assert not structurally_equal(
        returning(ConstFloat(1.0, FP32)), returning(ConstFloat(1.0, FP16))
    )


def test_functions_of_a_program_match_by_name_in_any_order() -> None:
    k, other = kernel(), kernel(name="other")
    call = FunctionCall("k", (), TENSOR)
    main = Function("main", FunctionType.Orchestration, (), (), (Eval(call),))
    assert structurally_equal(Program("P", (k, other, main)), Program("Q", (main, other, k)))
    assert first_difference(Program("P", (k, main)), Program("P", (main,))) == (
        "function k: only in the first program"
    )
    assert first_difference(Program("P", (main,)), Program("P", (main, k))) == (
        "function k: only in the second program"
    )


def test_calls_of_other_functions_differ() -> None:
    def calling(name: str) -> Function:
        return replace(kernel(), body=(Eval(FunctionCall(name, (), TENSOR)),))

    assert first_difference(calling("f"), calling("g")) == ("k.body[0].value: call of f against g")


def test_a_program_is_no_function() -> None:
    assert first_difference(Program("P", ()), kernel()) == "Program against Function"


def test_long_functions_need_no_deep_stack() -> None:
    def chain(prefix: str) -> Function:
        value: Expr = ConstInt(0)
        for _ in range(5000):
            value = Call("tensor.neg", (value,), (), TENSOR)
        return returning(value)

    assert structurally_equal(chain("a"), chain("b"))
