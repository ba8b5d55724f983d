"""Which buffers a tensor handle may stand for, through views, stores, control flow and calls."""

from __future__ import annotations

import textwrap

import pytest

from pypto_egg.analysis.provenance import Provenance, RootKind, callees_first, provenance_of
from pypto_egg.ir.expr import Var
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.visit import definitions
from pypto_egg.text import parse

HEADER = """
import pypto.language as pl

@pl.program
class P:
"""
PARAMS = """
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        x: pl.Tensor[[16, 32], pl.FP32], y: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX]
    ):
"""


def program(*functions: str) -> Program:
    return parse(HEADER + "\n".join(functions))


def kernel(body: str) -> Function:
    return program(PARAMS + textwrap.indent(textwrap.dedent(body), " " * 8)).functions[0]


def names(made: Provenance, variable: str) -> list[str]:
    """The names of the buffers that the variable of this name may stand for."""
    (var,) = [v for v in definitions(made.function) if v.name == variable]
    return [root.var.name for root in made.roots_of(var)]


@pytest.mark.parametrize(
    "made",
    [
        "pl.tensor.slice(x, [8, 32], [0, 0])",
        "pl.tensor.view(x, [32, 16])",
        "pl.tensor.reshape(x, [512])",
        "pl.tensor.set_validshape(x, 8, 32)",
        "pl.tensor.reinterpret_view(x, dtype=pl.INT32)",
        "pl.tensor.transpose(x, 0, 1)",
        "pl.tensor.write(x, [0, 0], 1.0)",
        "pl.tensor.assemble(x, y, [0, 0])",
        "x",
    ],
)
@pytest.mark.req("C-026", "C-029", "C-066")
def test_views_aliases_and_stores_stand_for_their_tensor(made: str) -> None:
    found = provenance_of(kernel(f"v = {made}\nreturn v"))
    assert names(found, "v") == ["x"]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("pl.tensor.add(x, y)", RootKind.VALUE),
        ("pl.tensor.exp(x)", RootKind.VALUE),
        ("pl.create_tensor([16, 32], pl.FP32)", RootKind.CREATE),
    ],
)
def test_computed_and_allocated_tensors_are_buffers_of_their_own(made: str, kind: RootKind) -> None:
    found = provenance_of(kernel(f"v = {made}\nw = pl.tensor.slice(v, [8, 32], [0, 0])\nreturn w"))
    assert names(found, "w") == ["v"]
    assert [root.kind for root in found.roots] == [RootKind.PARAM, RootKind.PARAM, kind]


def test_scalars_and_tiles_stand_for_no_buffer() -> None:
    found = provenance_of(
        kernel("t = pl.tile.load(x, [0, 0], [16, 32], [16, 32])\nm = n * 2\nreturn x")
    )
    assert names(found, "t") == names(found, "m") == names(found, "n") == []


@pytest.mark.req("C-037", "C-066")
def test_a_store_to_an_on_chip_tile_result_is_the_output() -> None:
    found = provenance_of(
        kernel(
            """
            t = pl.tile.load(x, [0, 0], [16, 32], [16, 32])
            o = pl.tile.store(t, [0, 0], y)
            return o
            """
        )
    )
    assert names(found, "o") == ["y"]


@pytest.mark.req("C-066")
def test_loop_carries_keep_the_buffer() -> None:
    found = provenance_of(
        kernel(
            """
            for i, (c,) in pl.range(4, init_values=(y,)):
                d = pl.tensor.assemble(c, x, [0, 0])
                r = pl.yield_(d)
            return r
            """
        )
    )
    assert names(found, "c") == names(found, "d") == names(found, "r") == ["y"]


@pytest.mark.req("C-066")
def test_a_carry_that_is_replaced_may_be_either() -> None:
    found = provenance_of(
        kernel(
            """
            for i, (c, d) in pl.range(4, init_values=(x, y)):
                a, b = pl.yield_(d, c)
            return a, b
            """
        )
    )
    assert names(found, "c") == names(found, "a") == ["x", "y"]


@pytest.mark.req("C-066")
def test_a_branch_result_may_be_either_arm() -> None:
    found = provenance_of(
        kernel(
            """
            if n == 0:
                r = pl.yield_(x)
            else:
                v = pl.tensor.exp(y)
                r = pl.yield_(v)
            s = pl.tensor.slice(r, [8, 32], [0, 0])
            return s
            """
        )
    )
    assert names(found, "s") == ["x", "v"]


CALLEE = """
    @pl.function(type=pl.FunctionType.InCore)
    def store(
        a: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        t = pl.tile.load(a, [0, 0], [16, 32], [16, 32])
        r = pl.tile.store(t, [0, 0], o)
        return r
    @pl.function(type=pl.FunctionType.InCore)
    def both(
        a: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
    ) -> tuple[pl.Tensor[[16, 32], pl.FP32], pl.Tensor[[16, 32], pl.FP32]]:
        e = pl.tensor.exp(a)
        return o, e
"""
MAIN = """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 32], pl.FP32], y: pl.Tensor[[16, 32], pl.FP32]):
"""


def caller(body: str) -> Provenance:
    made = program(CALLEE, MAIN + textwrap.indent(textwrap.dedent(body), " " * 8))
    return provenance_of(made.function("main"), made)


def test_a_call_returns_the_argument_that_its_function_returns() -> None:
    assert names(caller("r = self.store(x, y)\nreturn r"), "r") == ["y"]


def test_each_result_of_a_call_has_its_own_buffer() -> None:
    found = caller("p, q = self.both(x, y)\nreturn p, q")
    assert names(found, "p") == ["y"]
    (q,) = [v for v in definitions(found.function) if v.name == "q"]
    assert [root.kind for root in found.roots_of(q)] == [RootKind.CALL]


def test_a_call_of_an_unknown_function_may_return_anything() -> None:
    made = program(CALLEE, MAIN + "        r = self.store(x, y)\n        return r")
    found = provenance_of(made.function("main"))
    assert names(found, "r") == ["x", "y", "r"]


def test_roots_are_numbered_parameters_first() -> None:
    found = provenance_of(kernel("a = pl.tensor.exp(x)\nb = pl.tensor.exp(a)\nreturn b"))
    assert [(r.id, r.var.name, r.param) for r in found.roots] == [
        (0, "x", 0),
        (1, "y", 1),
        (2, "a", None),
        (3, "b", None),
    ]


def test_callees_come_before_callers() -> None:
    inner = """
    @pl.function
    def {0}(self, x: pl.Tensor[[4], pl.FP32]) -> pl.Tensor[[4], pl.FP32]:
        {1}
        return x
"""
    made = program(
        inner.format("c", "pass"),
        inner.format("b", "r = self.c(x)"),
        inner.format("a", "q = self.c(x)\n        r = self.b(x)"),
    )
    assert [f.name for f in callees_first(made.function("a"), made)] == ["c", "b", "a"]


def test_a_long_chain_of_stores_keeps_the_buffer() -> None:
    lines = ["a0 = pl.tensor.write(y, [0, 0], 1.0)"]
    lines += [f"a{i} = pl.tensor.write(a{i - 1}, [0, 0], 1.0)" for i in range(1, 1500)]
    found = provenance_of(kernel("\n".join([*lines, "return a1499"])))
    assert names(found, "a1499") == ["y"]


def test_a_variable_that_is_no_handle_has_no_roots() -> None:
    found = provenance_of(kernel("return x"))
    assert found.roots_of(Var("z", found.function.params[0].var.type)) == ()
