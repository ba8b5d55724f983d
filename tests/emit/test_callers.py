"""New outputs of device functions through wrappers and at call sites."""

from __future__ import annotations

import pytest
from kernels import both, executed, function, lines, out, program, tensor

from pypto_egg import Lowering, lower, optimize
from pypto_egg.errors import LoweringError
from pypto_egg.ir.enums import Direction, FunctionType
from pypto_egg.ir.expr import Call, FunctionCall, Submit, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk

V = tensor([64], "FP32")
K = function({"x": V}, "y = pl.add(x, x)\nreturn y", V, "k")


def caller(callee: str, kind: str, name: str) -> str:
    return function({"x": V}, f"y = self.{callee}(x)\nreturn y", V, name, kind)


def inside(function: Function, kind: type) -> list:
    return [
        part
        for stmt in walk(function.body)
        for expr in expressions_of(stmt)
        for part in subexpressions(expr)
        if isinstance(part, kind)
    ]


def creates(function: Function) -> list[Call]:
    return [call for call in inside(function, Call) if call.op == "tensor.create"]


@pytest.mark.req("C-003", "C-102", "C-103", "C-104")
def test_a_caller_creates_one_buffer_for_each_new_output() -> None:
    two = function({"x": V}, "y = pl.exp(x)\nz = pl.abs(x)\nreturn y, z", f"tuple[{V}, {V}]", "k")
    main = function(
        {"x": V}, "y, z = self.k(x)\nreturn y, z", f"tuple[{V}, {V}]", "main", "Orchestration"
    )
    for result in both(program(two, main)):
        entry = result.program.function("main")
        (call,) = inside(entry, FunctionCall)
        assert [arg.name for arg in call.args] == ["x", "ret0__out", "ret1__out"]
        assert len(creates(entry)) == 2
        for create in creates(entry):
            assert create.type == result.program.function("k").params[1].var.type


@pytest.mark.req("C-095", "C-096", "C-097", "C-098", "C-099", "C-100", "C-102", "C-105")
@pytest.mark.parametrize("kind", ["Spmd", "Group"])
def test_a_wrapper_forwards_new_outputs(kind: str) -> None:
    text = program(K, caller("k", kind, "w"), caller("w", "Orchestration", "main"))
    for result in both(text):
        wrapper, main = result.program.function("w"), result.program.function("main")
        assert [p.var.name for p in wrapper.params] == ["x", "ret0__out"]
        assert wrapper.params[1].direction is Direction.Out
        (inner,) = inside(wrapper, FunctionCall)
        known = {p.var for p in wrapper.params}
        assert all(arg in known for arg in inner.args if isinstance(arg, Var))
        assert creates(wrapper) == []
        assert len(wrapper.body) == 2
        (outer,) = inside(main, FunctionCall)
        assert [arg.name for arg in outer.args] == ["x", "ret0__out"]
        assert len(creates(main)) == 1
        assert inner.result_type == result.program.function("k").returns[0]


@pytest.mark.req("C-098", "C-099", "C-102")
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_wrappers_of_wrappers_in_any_order(order: tuple[int, ...]) -> None:
    """A Group around a Spmd around a kernel; the innermost is rewritten first."""
    parts = (
        K, caller("k", "Spmd", "inner"), caller("inner", "Group", "outer"),
        caller("outer", "Orchestration", "main"),
    )  # fmt: skip
    for result in both(program(*(parts[n] for n in order))):
        for name in ("k", "inner", "outer"):
            params = [p.var.name for p in result.program.function(name).params]
            assert params == ["x", "ret0__out"]
        assert len(creates(result.program.function("main"))) == 1
        names = [f.name for f in result.program.functions]
        assert names == [f.name for f in result.source.functions]


@pytest.mark.req("C-103", "C-104")
def test_a_result_that_nobody_takes_gets_its_buffer() -> None:
    main = function({"x": V}, "self.k(x)\nreturn x", V, "main", "Orchestration")
    for result in both(program(K, main)):
        entry = result.program.function("main")
        (create,) = creates(entry)
        (call,) = inside(entry, FunctionCall)
        assert call.args[1].type == create.type


@pytest.mark.req("C-101")
def test_a_wrapper_whose_function_gains_nothing_is_unchanged() -> None:
    stored = function(
        {"x": V, "o": out([64], "FP32")},
        "y = pl.add(x, x)\nr = pl.assemble(o, y, [0])\nreturn r", V, "k",
    )  # fmt: skip
    wrapper = function(
        {"x": V, "o": out([64], "FP32")}, "y = self.k(x, o)\nreturn y", V, "w", "Spmd"
    )
    result = executed(lower(program(stored, wrapper), verify=True))
    assert result.program.function("w") == result.source.function("w")


@pytest.mark.req("C-102")
def test_opaque_functions_are_callers_too() -> None:
    text = program(K, caller("k", "Opaque", "main"))
    for result in both(text):
        assert len(creates(result.program.function("main"))) == 1


@pytest.mark.req("C-103", "C-104")
def test_every_call_site_has_a_buffer_of_its_own() -> None:
    body = "y = self.k(x)\nz = self.k(y)\nreturn z"
    text = program(K, function({"x": V}, body, V, "main", "Orchestration"))
    for result in both(text):
        main = result.program.function("main")
        made = [s.var for s in main.body if isinstance(s, Assign) and isinstance(s.value, Call)]
        assert len({var.name for var in made}) == 2
        assert [call.args[1] for call in inside(main, FunctionCall)] == made


@pytest.mark.req("C-103", "C-104")
def test_a_call_in_a_loop_gets_its_buffer() -> None:
    body = """
for i, (c,) in pl.range(3, init_values=(x,)):
    y = self.k(c)
    r = pl.yield_(y)
return r"""
    text = program(K, function({"x": V}, body, V, "main", "Orchestration"))
    for result in both(text):
        assert len(creates(result.program.function("main"))) == 1


@pytest.mark.req("C-103", "C-104")
def test_submitted_calls_get_buffers() -> None:
    body = "y, t = pl.submit(self.k, x)\nreturn y"
    text = program(K, function({"x": V}, body, V, "main", "Orchestration"))
    for make in (lower, optimize):
        main = make(text, verify=False).program.function("main")
        (call,) = inside(main, Submit)
        assert [arg.name for arg in call.args] == ["x", "ret0__out"]
        assert len(creates(main)) == 1


@pytest.mark.req("C-106", "C-008")
def test_two_device_functions_are_lowered_apart() -> None:
    second = function({"y": V}, "z = pl.exp(y)\nreturn z", V, "k2")
    main = function({"x": V}, "y = self.k(x)\nz = self.k2(y)\nreturn z", V, "main", "Orchestration")
    for result in both(program(K, second, main)):
        assert [report.name for report in result.functions] == ["k", "k2"]
        for name in ("k", "k2"):
            lowered = result.program.function(name)
            assert lowered.type is FunctionType.InCore
            assert [p.var.name for p in lowered.params][1] == "ret0__out"


def names_of(result: Lowering) -> list[str]:
    return [p.var.name for p in result.program.function("kernel").params]


@pytest.mark.req("C-040")
@pytest.mark.parametrize("taken", ["ret0__out", "ret0__store", "x__tile", "y__tile"])
def test_a_name_of_the_program_is_never_taken(taken: str) -> None:
    text = program(function({"x": V, taken: V}, f"y = pl.add(x, {taken})\nreturn y", V, "kernel"))
    for result in both(text):
        names = names_of(result)
        assert len(set(names)) == 3
        assert names[:2] == ["x", taken]
        assert isinstance(result.program.function("kernel").params[1].var.type, TensorType)


def test_the_text_of_a_lowering_is_a_program() -> None:
    result = optimize(program(K, caller("k", "Orchestration", "main")))
    again = optimize(result.text, verify=True)
    assert again.functions == ()
    assert lines(again) == lines(result)


SYMBOLS = 'M = pl.dynamic("M")\nN = pl.dynamic("N")\n'
ROWS = tensor(["M", 64], "FP32")
OF_ROWS = function({"x": ROWS}, "y = pl.exp(x)\nreturn y", ROWS, "k")


def created_shape(result: Lowering) -> tuple:
    return creates(result.program.function("main"))[-1].type.shape


@pytest.mark.req("C-103", "C-104")
@pytest.mark.parametrize("extent", [32, "N", "M"])
def test_a_buffer_has_the_extents_of_the_arguments(extent: object) -> None:
    """The callee's symbol means nothing to the caller, or something else."""
    x = tensor([extent, 64], "FP32")
    main = function({"x": x}, "a = self.k(x)\nb = self.k(a)\nreturn b", x, "main", "Orchestration")
    for result in both(program(OF_ROWS, main, before=SYMBOLS)):
        given = result.program.function("main").params[0].var.type
        assert created_shape(result) == given.shape


@pytest.mark.req("C-103", "C-104")
def test_the_callers_own_meaning_of_a_symbol_is_not_the_callees() -> None:
    params = {"x": tensor([32, 64], "FP32"), "w": ROWS}
    body = "a = self.k(x)\nb = self.k(w)\nreturn a, b"
    returns = f"tuple[{params['x']}, {ROWS}]"
    main = function(params, body, returns, "main", "Orchestration")
    for result in both(program(OF_ROWS, main, before=SYMBOLS)):
        first, second = creates(result.program.function("main"))
        assert first.type.shape == (32, 64)
        assert second.type == result.program.function("main").params[1].var.type


@pytest.mark.req("C-103", "C-104")
def test_an_extent_that_the_caller_cannot_name_is_read_from_the_argument() -> None:
    annotated = f"a: {ROWS} = self.k(x)\nb = self.k(a)\nreturn b"
    x = tensor([32, 64], "FP32")
    main = function({"x": x}, annotated, ROWS, "main", "Orchestration")
    for result in both(program(OF_ROWS, main, before=SYMBOLS)):
        (dim,) = (c for c in inside(result.program.function("main"), Call) if "dim" in c.op)
        assert dim.args[0].name == "a"


@pytest.mark.req("C-098", "C-103")
@pytest.mark.parametrize("kind", ["Spmd", "Group"])
def test_a_wrapper_declares_its_new_output_in_its_own_extents(kind: str) -> None:
    x = tensor([32, 64], "FP32")
    wrapper = function({"x": x}, "y = self.k(x)\nreturn y", x, "w", kind)
    main = function({"x": x}, "y = self.w(x)\nreturn y", x, "main", "Orchestration")
    for result in both(program(OF_ROWS, wrapper, main, before=SYMBOLS)):
        assert result.program.function("w").params[1].var.type.shape == (32, 64)
        assert created_shape(result) == (32, 64)


def test_an_extent_that_no_argument_tells_is_refused() -> None:
    unknown = function(
        {"x": tensor(["M * N", 64], "FP32")}, "y = pl.exp(x)\nreturn y",
        tensor(["M * N", 64], "FP32"), "k",
    )  # fmt: skip
    x = tensor([32, 64], "FP32")
    main = function({"x": x}, "y = self.k(x)\nreturn y", x, "main", "Orchestration")
    with pytest.raises(LoweringError, match="no argument has the extent 'M'"):
        lower(program(unknown, main, before=SYMBOLS), verify=False)
