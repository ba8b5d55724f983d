"""The directions of parameters, upgraded by what the body does to them."""

from __future__ import annotations

import textwrap

import pytest

from pypto_egg.analysis.directions import upgraded_directions
from pypto_egg.ir.enums import Direction
from pypto_egg.ir.program import Function
from pypto_egg.text import parse

HEADER = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(x: {x}, dst: {dst}, n: pl.Scalar[pl.INDEX]):
"""
TENSOR = "pl.Tensor[[16, 64], pl.FP32]"


def directions(body: str, x: str = TENSOR, dst: str = TENSOR) -> tuple[str, str]:
    text = HEADER.format(x=x, dst=dst) + textwrap.indent(textwrap.dedent(body), " " * 8)
    function: Function = parse(text).functions[0]
    first, second, scalar = upgraded_directions(function)
    assert scalar is Direction.In
    return first.value, second.value


LOAD = "t = pl.tile.load(x, [0, 0], [16, 32], [16, 32])\n"


@pytest.mark.req("C-045", "C-049")
def test_a_parameter_that_is_only_stored_to_is_an_output() -> None:
    assert directions(LOAD + "o = pl.tile.store(t, [0, 0], dst)\nreturn o") == ("In", "Out")


@pytest.mark.req("C-044")
def test_stores_through_the_result_of_a_store_count_for_the_parameter() -> None:
    body = LOAD + "v = pl.tile.store(t, [0, 0], dst)\nw = pl.tile.store(t, [0, 32], v)\nreturn w"
    assert directions(body) == ("In", "Out")


@pytest.mark.req("C-046")
def test_a_parameter_that_is_read_and_written_is_inout() -> None:
    body = "r = pl.row_max(x)\npl.tensor.write(x, [0, 0], 1.0)\nreturn r"
    assert directions(body) == ("InOut", "In")


@pytest.mark.req("C-050")
def test_an_atomic_store_makes_its_target_inout() -> None:
    body = LOAD + "o = pl.tile.store(t, [0, 0], dst, atomic=pl.AtomicType.Add)\nreturn o"
    assert directions(body) == ("In", "InOut")


@pytest.mark.req("C-052")
def test_declared_directions_stay() -> None:
    body = (
        "pl.tensor.write(x, [0, 0], 1.0)\nt = pl.tile.load(dst, [0, 0], [16, 32], [16, 32])\nreturn"
    )
    assert directions(body, x=f"pl.InOut[{TENSOR}]", dst=f"pl.Out[{TENSOR}]") == ("InOut", "Out")


@pytest.mark.req("C-053")
def test_an_operator_without_declared_effects_reads() -> None:
    assert directions("z = pl.tensor.add(x, dst)\nreturn z") == ("In", "In")


@pytest.mark.req("C-044")
def test_views_neither_read_nor_write() -> None:
    body = "v = pl.slice(dst, [8, 64], [0, 0])\npl.tensor.write(v, [0, 0], 1.0)\nreturn x"
    assert directions(body) == ("In", "Out")


@pytest.mark.req("C-044")
def test_writes_in_loops_and_branches_count() -> None:
    body = """
        for i, (c,) in pl.range(4, init_values=(dst,)):
            if i == 0:
                a = pl.tensor.write(c, [0, i], 1.0)
                r = pl.yield_(a)
            else:
                r = pl.yield_(c)
            o = pl.yield_(r)
        return o
    """
    assert directions(body) == ("In", "Out")


@pytest.mark.parametrize(
    ("statement", "written"),
    [
        ("pl.tensor.write(dst, [0, 0], 1.0)", "Out"),
        ("pl.tensor.assemble(dst, x, [0, 0])", "Out"),
        ("pl.tile.store(t, [0, 0], dst)", "Out"),
    ],
)
@pytest.mark.req("C-047", "C-048")
def test_effects_come_from_the_operator_registry(statement: str, written: str) -> None:
    assert directions(LOAD + f"o = {statement}\nreturn o")[1] == written


@pytest.mark.req("C-044")
def test_a_wrapper_passes_on_what_its_kernel_does() -> None:
    text = f"""
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(x: {TENSOR}, dst: {TENSOR}) -> {TENSOR}:
        t = pl.tile.load(x, [0, 0], [16, 64], [16, 64])
        o = pl.tile.store(t, [0, 0], dst)
        return o
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: {TENSOR}, dst: {TENSOR}) -> {TENSOR}:
        a = self.k(x, dst)
        b = self.k(a, a)
        return b
"""
    program = parse(text)
    made = upgraded_directions(program.function("main"), program)
    assert [d.value for d in made] == ["In", "InOut"]
