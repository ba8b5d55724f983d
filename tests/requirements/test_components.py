"""C24: the responsibilities that the document names a component for, each by what it does."""

from __future__ import annotations

import pytest
from kernels import (
    both,
    calls,
    function,
    incore,
    inout,
    kernel,
    loads_of,
    loops,
    ops,
    out,
    program,
    tensor,
    tiles,
)

from pypto_egg import Lowering, lower, optimize
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call, FunctionCall, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, If
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.ir.visit import walk
from pypto_egg.report import requirements
from pypto_egg.report.requirement_texts import TEXTS

MAKERS = pytest.mark.parametrize("make", [lower, optimize], ids=["lower", "optimize"])
V = tensor([64], "FP32")
F = tensor([16, 32], "FP32")


def loaded(result: Lowering) -> set[str]:
    """The parameters that some load reads."""
    sources = [call.args[0] for call in calls(result, "tile.load")]
    return {source.name for source in sources if isinstance(source, Var)}


LOADED = {
    "operands of a computation": ("z = pl.add(x, w)\no = pl.assemble(d, z, [0, 0])", {"x", "w"}),
    "one operand twice": ("z = pl.add(x, x)\no = pl.assemble(d, z, [0, 0])", {"x"}),
    "a scalar write alone": (
        "pl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))\n"
        "z = pl.exp(w)\no = pl.assemble(d, z, [0, 0])",
        {"w"},
    ),
    "a scalar read alone": (
        "v = pl.tensor.read(x, [0, 0])\nz = pl.mul(w, v)\no = pl.assemble(d, z, [0, 0])", {"w"},
    ),
}  # fmt: skip


@pytest.mark.req("C-277", "C-027")
@pytest.mark.parametrize("name", LOADED)
def test_parameters_that_are_computed_with_are_loaded(name: str) -> None:
    body, expected = LOADED[name]
    params = {"x": inout([16, 32], "FP32"), "w": F, "d": out([16, 32], "FP32")}
    for result in both(kernel(params, body + "\nreturn o", F)):
        assert loaded(result) == expected
        assert "d" not in loaded(result)


SPACES = {
    "a product": ("y = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn y", {"a": Mem.Mat, "b": Mem.Mat}),
    "a product of slices": (
        "s = pl.slice(a, [32, 32], [0, 0])\nt = pl.slice(b, [32, 32], [0, 0])\n"
        "y = pl.matmul(s, t, out_dtype=pl.FP32)\nreturn y",
        {"a": Mem.Mat, "b": Mem.Mat},
    ),
    "a product and a vector operator": (
        "p = pl.matmul(a, a, b_trans=True, out_dtype=pl.FP32)\ny = pl.tensor.col_expand_add(p, c)\n"
        "return y",
        {"a": Mem.Mat, "c": Mem.Vec},
    ),
}  # fmt: skip


@pytest.mark.req("C-278", "C-015", "C-107")
@pytest.mark.parametrize("name", SPACES)
def test_a_load_lands_where_its_consumers_want_it(name: str) -> None:
    body, expected = SPACES[name]
    square = tensor([32, 32], "FP16")
    params = {"a": square, "b": square, "c": tensor([1, 32], "FP32")}
    result = lower(kernel(params, body, tensor([32, 32], "FP32")), verify=True)
    assert result.verified
    for source, space in expected.items():
        found = {call.type.space for call in loads_of(result, source)}
        assert found == {space}


@pytest.mark.req("C-279", "C-038", "C-039")
def test_a_changed_type_passes_loops_and_branches() -> None:
    body = """
y = pl.abs(x)
for i, (c,) in pl.range(3, init_values=(y,)):
    if i > 1:
        a = pl.add(c, x)
        p = pl.yield_(a)
    else:
        b = pl.mul(c, x)
        p = pl.yield_(b)
    r = pl.yield_(p)
z = pl.neg(r)
return z"""
    for result in both(kernel({"x": F}, body, F)):
        (loop,) = loops(result)
        (branch,) = [s for s in walk(loop.body) if isinstance(s, If)]
        types = [v.type for v in (*loop.iter_args, *loop.results, *branch.results)]
        assert all(isinstance(type_, TileType) for type_ in types)
        assert set(types) == {loop.inits[0].type}


@pytest.mark.req("C-279", "C-037")
def test_a_handle_beside_a_value_keeps_its_type() -> None:
    body = """
y = pl.abs(x)
for i, (o, c) in pl.range(2, init_values=(d, y)):
    s = pl.slice(x, [8, 32], [8 * i, 0])
    e = pl.add(c, x)
    p = pl.assemble(o, s, [8 * i, 0])
    q, r = pl.yield_(p, e)
return q, r"""
    text = kernel({"x": F, "d": out([16, 32], "FP32")}, body, f"tuple[{F}, {F}]")
    for result in both(text):
        (loop,) = loops(result)
        assert [isinstance(v.type, TensorType) for v in loop.results].count(True) >= 1
        assert isinstance(loop.iter_args[0].type, TensorType)
        assert any(isinstance(v.type, TileType) for v in loop.iter_args)


ONE_TO_ONE = {
    "pl.add(x, y)": "tile.add", "pl.sub(x, y)": "tile.sub", "pl.mul(x, y)": "tile.mul",
    "pl.maximum(x, y)": "tile.maximum", "pl.minimum(x, y)": "tile.minimum",
    "pl.add(x, 2.0)": "tile.adds", "pl.mul(x, 2.0)": "tile.muls", "pl.exp(x)": "tile.exp",
    "pl.neg(x)": "tile.neg", "pl.abs(x)": "tile.abs", "pl.cast(x, pl.FP16)": "tile.cast",
}  # fmt: skip


@MAKERS
@pytest.mark.req("C-280", "C-032")
@pytest.mark.parametrize("call", ONE_TO_ONE)
def test_a_registered_operator_becomes_its_tile_operator(make: object, call: str) -> None:
    returns = tensor([16, 32], "FP16") if "cast" in call else F
    text = kernel({"x": F, "y": F}, f"z = {call}\nreturn z", returns)
    computed = [op for op in ops(make(text, verify=True)) if op not in ("tile.load", "tile.store")]
    assert computed == [ONE_TO_ONE[call]]


# --- whole programs: two kernels, wrappers of both kinds, and what they call each other ---------

K1 = function({"x": V}, "y = pl.add(x, x)\nreturn y", V, "k1")
K2 = function(
    {"x": V, "o": out([64], "FP32")}, "y = pl.exp(x)\nr = pl.assemble(o, y, [0])\nreturn r", V, "k2"
)
W1 = function({"x": V}, "y = self.k1(x)\nreturn y", V, "w1", "Spmd")
W2 = function(
    {"x": V, "o": out([64], "FP32")}, "y = self.k2(x, o)\nreturn y", V, "w2", "Group"
)  # fmt: skip
MAIN = function(
    {"x": V, "o": out([64], "FP32")},
    "y = self.w1(x)\nz = self.w2(y, o)\nu = self.k1(z)\nreturn u", V, "main", "Orchestration",
)  # fmt: skip
WHOLE = program(K1, K2, W1, W2, MAIN)


def inner_call(function: Function) -> FunctionCall:
    (found,) = [s.value for s in walk(function.body) if isinstance(s, Assign)]
    assert isinstance(found, FunctionCall)
    return found


@pytest.mark.req("C-281", "C-097", "C-101")
def test_only_the_wrapper_of_a_kernel_that_gained_outputs_is_touched() -> None:
    for result in both(WHOLE):
        assert len(result.program.function("w1").params) == 2
        assert result.program.function("w2") == result.source.function("w2")
        assert len(incore(result, "k2").params) == 2


@pytest.mark.req("C-282", "C-096", "C-098", "C-099", "C-100")
def test_the_forwarded_call_passes_the_wrapper_s_own_parameters() -> None:
    for result in both(WHOLE):
        wrapper = result.program.function("w1")
        call = inner_call(wrapper)
        assert call.args == tuple(p.var for p in wrapper.params)
        assert call.result_type == incore(result, "k1").returns[0]
        assert wrapper.params[-1].var.name == incore(result, "k1").params[-1].var.name


@pytest.mark.req("C-283", "C-102", "C-103", "C-104", "C-105")
def test_each_caller_creates_what_its_callees_gained() -> None:
    for result in both(WHOLE):
        main = result.program.function("main")
        made = {
            s.var: s.value for s in main.body if isinstance(s, Assign) and isinstance(s.value, Call)
        }
        assert [call.op for call in made.values()] == ["tensor.create"] * 2
        sites = {
            s.value.name: s.value
            for s in main.body
            if isinstance(s, Assign) and isinstance(s.value, FunctionCall)
        }
        assert sites["w1"].args[-1] in made
        assert sites["k1"].args[-1] in made
        assert sites["w1"].args[-1] != sites["k1"].args[-1]
        assert [arg.name for arg in sites["w2"].args if isinstance(arg, Var)] == ["y", "o"]


@MAKERS
@pytest.mark.req("C-105", "C-106")
def test_no_kernel_is_lowered_twice(make: object) -> None:
    result = make(WHOLE, verify=True)
    assert result.verified
    assert [report.name for report in result.functions] == ["k1", "k2"]


@MAKERS
@pytest.mark.req("C-106")
def test_functions_that_need_no_change_keep_their_text(make: object) -> None:
    """A tile kernel, and orchestration that calls only it, to the byte."""
    tile_kernel = function(
        {"x": F, "o": out([16, 32], "FP32")},
        "t: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [16, 32])\n"
        "u: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec] = pl.tile.exp(t)\n"
        "s: pl.Tensor[[16, 32], pl.FP32] = pl.tile.store(u, [0, 0], o)\nreturn s",
        F, "k",
    )  # fmt: skip
    main = function(
        {"x": F, "o": out([16, 32], "FP32")}, "y = self.k(x, o)\nreturn y", F, "main",
        "Orchestration",
    )  # fmt: skip
    text = program(tile_kernel, main)
    result = make(text)
    assert result.program == result.source
    assert list(tiles(result)) == list(tiles(result.source))


def test_every_id_that_a_test_carries_has_a_text() -> None:
    folder = requirements.tests_folder()
    assert folder is not None
    carried = set(requirements.covered(folder))
    assert carried <= set(TEXTS)
    assert {f"N-{n:03}" for n in range(1, 146)} <= set(TEXTS)
    # C-173, C-175 and C-176 are about scratch tiles that a later pass makes.
    numbers = [*range(1, 173), *range(270, 286)]
    assert {f"C-{n:03}" for n in numbers} <= carried
