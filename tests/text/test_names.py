"""Printed names (PyPTO language reference, 11), on IR that no text would give."""

from pypto_egg.ir.dtype import FP32, INDEX
from pypto_egg.ir.enums import FunctionType, Level, Role
from pypto_egg.ir.expr import BinOp, Call, ConstInt, Expr, TupleExpr, UnOp, Var
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Eval, Return, Stmt
from pypto_egg.ir.types import ScalarType, TensorType, Type, tensor_type
from pypto_egg.ops.registry import make_call
from pypto_egg.text import parse, print_expr, print_function, print_program, print_type

T = tensor_type((16, 64), FP32)
S = ScalarType(INDEX)


def kernel(*body: Stmt, params: tuple[Var, ...] = (), name: str = "k") -> Function:
    return Function(
        name,
        FunctionType.InCore,
        tuple(Param(var) for var in params),
        (),
        body,
        Level.CHIP_DIE,
        Role.SubWorker,
    )


def exp(value: Expr) -> Call:
    return make_call("tensor.exp", (value,))


def body_of(function: Function) -> list[str]:
    return [line.strip() for line in print_function(function).split("\n")[2:-1]]


def test_shared_names_are_numbered_in_order_and_unique_ones_kept() -> None:
    x, first, second, kept = (Var(name, T) for name in ("x", "a", "a", "a_1"))
    function = kernel(
        Assign(first, exp(x)),
        Assign(second, exp(first)),
        Assign(kept, exp(second)),
        Return((kept,)),
        params=(x,),
    )
    names = [line.split(":")[0] for line in body_of(function)[:3]]
    assert names == ["a", "a_2", "a_1"]
    assert body_of(function)[3] == "return a_1"


def test_numbers_go_to_the_base_of_a_name_with_a_role() -> None:
    x, first, second = Var("x", T), Var("a__tile_v0", T), Var("a__tile_v0", T)
    function = kernel(
        Assign(first, exp(x)), Assign(second, exp(first)), Return((second,)), params=(x,)
    )
    assert body_of(function)[2] == "return a_1__tile_v0"


def test_a_parameter_comes_before_a_definition() -> None:
    param, local = Var("o", T), Var("o", T)
    function = kernel(Assign(local, exp(param)), Return((local,)), params=(param,))
    assert body_of(function)[1] == "return o_1"


def test_undefined_variables_are_marked() -> None:
    ghost = Var("ghost", T)
    assert body_of(kernel(Eval(exp(ghost)))) == ["pl.tensor.exp(ghost__FREE_VAR)"]


def test_names_that_cannot_be_written_are_replaced() -> None:
    names = ("pl", "self", "lambda", "x y", "pld")
    params = tuple(Var(name, S) for name in names)
    function = kernel(params=params)
    printed = print_program(Program("P", (function,)))
    assert "k(pl_1: pl.Scalar[pl.INDEX], self_1: pl.Scalar[pl.INDEX], lambda_1: " in printed
    assert len(parse(printed).functions[0].params) == 5


def test_a_local_never_hides_a_symbol_that_its_function_mentions() -> None:
    symbol, local = Var("M", S), Var("M", S)
    x = Var("x", tensor_type((symbol, 64), FP32))
    function = kernel(Assign(local, ConstInt(3)), Return((local,)), params=(x,))
    printed = print_program(Program("P", (function,)))
    assert "x: pl.Tensor[[M, 64], pl.FP32]" in printed
    assert "M_1: pl.Scalar[pl.INDEX] = 3" in printed
    assert print_program(parse(printed)) == printed


def test_symbols_of_one_name_are_told_apart() -> None:
    first, second = Var("M", S), Var("M", S)
    functions = tuple(
        kernel(params=(Var("x", tensor_type((symbol, 4), FP32)),), name=name)
        for name, symbol in (("f", first), ("g", second))
    )
    printed = print_program(Program("P", functions))
    assert 'M = pl.dynamic("M")\nM_1 = pl.dynamic("M_1")\n' in printed


def test_symbols_are_declared_in_order_of_name() -> None:
    symbols = tuple(Var(name, S) for name in ("Z", "A", "B"))
    function = kernel(params=(Var("x", tensor_type(symbols, FP32)),))
    lines = print_program(Program("P", (function,))).split("\n")
    assert [line for line in lines if "dynamic" in line] == [
        f'{name} = pl.dynamic("{name}")' for name in "ABZ"
    ]


def test_standalone_printing_uses_the_variables_own_names() -> None:
    n = Var("n", S)
    view = tensor_type((BinOp("*", n, ConstInt(2), INDEX), 4), FP32)
    assert print_expr(BinOp("+", n, ConstInt(1), INDEX), prefix="L") == "n + 1"
    assert print_type(view, prefix="L") == "L.Tensor[[n * L.const(2, L.INDEX), 4], L.FP32]"


def test_constants_that_reading_would_fold_are_typed() -> None:
    two, three = ConstInt(2), ConstInt(3)
    assert (
        print_expr(BinOp("+", two, three, INDEX)) == "pl.const(2, pl.INDEX) + pl.const(3, pl.INDEX)"
    )
    assert print_expr(UnOp("-", three, INDEX)) == "-pl.const(3, pl.INDEX)"
    n = Var("n", S)
    mixed = BinOp("+", n, BinOp("*", two, three, INDEX), INDEX)
    assert print_expr(mixed) == "n + pl.const(2, pl.INDEX) * pl.const(3, pl.INDEX)"


def test_an_absent_operand_prints_as_an_empty_list() -> None:
    x = Var("x", T)
    zero, extent = TupleExpr((ConstInt(0), ConstInt(0))), TupleExpr((ConstInt(1), ConstInt(64)))
    call = make_call("tensor.slice", (x, extent, zero, TupleExpr(()), TupleExpr((ConstInt(0),))))
    assert print_expr(call) == "pl.tensor.slice(x, [1, 64], [0, 0], [], [0])"
    kind: Type = call.type
    assert isinstance(kind, TensorType)
    assert kind.shape == (64,)
