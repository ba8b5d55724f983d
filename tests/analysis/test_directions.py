"""The directions of parameters, upgraded by what the body does to them."""

from __future__ import annotations

import textwrap

import pytest

from pypto_egg.analysis.directions import upgraded_directions
from pypto_egg.ir.dtype import FP32
from pypto_egg.ir.enums import AtomicType, Direction, FunctionType
from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.program import Function, Param
from pypto_egg.ir.stmt import Eval
from pypto_egg.ir.types import tensor_type
from pypto_egg.ops.registry import Effect, OpDecl, Operand, declared, register
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


TENSOR_TYPE = tensor_type((16, 64), FP32)


def direction_of(op: str, index: int, kwargs: dict[str, object], count: int) -> Direction:
    """The direction of a parameter that is operand `index` of a call among `count` tensors."""
    variables = tuple(Var(f"p{i}", TENSOR_TYPE) for i in range(count))
    call = Call(op, variables, tuple(kwargs.items()), TENSOR_TYPE)
    params = tuple(map(Param, variables))
    made = upgraded_directions(Function("k", FunctionType.InCore, params, (), (Eval(call),)))
    return made[index]


WRITERS = [
    (decl.name, index, len(decl.operands), operand.effect)
    for decl in declared()
    for index, operand in enumerate(decl.operands)
    if operand.kind in ("tensor", "any") and operand.effect in (Effect.WRITE, Effect.READ_WRITE)
]


@pytest.mark.parametrize(("op", "index", "count", "effect"), WRITERS)
@pytest.mark.req("C-047", "C-048", "C-049")
def test_every_declared_write_upgrades_its_parameter(
    op: str, index: int, count: int, effect: Effect
) -> None:
    expected = Direction.Out if effect is Effect.WRITE else Direction.InOut
    assert direction_of(op, index, {}, count) is expected


@pytest.mark.req("C-048")
def test_the_families_that_write_are_declared() -> None:
    writers = {name for name, *_ in WRITERS}
    assert {"tensor.write", "tile.mscatter", "tensor.expand_clone", "pld.tile.get"} <= writers


@pytest.mark.parametrize("op", ["tile.store", "tensor.assemble"])
@pytest.mark.parametrize(
    ("atomic", "direction"),
    [(AtomicType.None_, Direction.Out), (AtomicType.Add, Direction.InOut)],
)
@pytest.mark.req("C-050")
def test_keyword_arguments_decide_call_by_call(
    op: str, atomic: AtomicType, direction: Direction
) -> None:
    target = 2 if op == "tile.store" else 0
    assert direction_of(op, target, {"atomic": atomic}, 3) is direction


@pytest.mark.req("C-051")
def test_a_notification_reads_its_signal_only_if_it_adds() -> None:
    assert direction_of("pld.system.notify", 0, {}, 1) is Direction.Out
    assert direction_of("pld.system.notify", 0, {"op": AtomicType.Add}, 1) is Direction.InOut


@pytest.mark.req("C-047")
def test_a_new_operator_needs_no_change_here() -> None:
    operands = (Operand("a", "tensor"), Operand("b", "tensor", effect=Effect.WRITE))
    register(OpDecl("directions_test.poke", operands, (), lambda args, _: args[0].type, "misc"))
    assert direction_of("directions_test.poke", 0, {}, 2) is Direction.In
    assert direction_of("directions_test.poke", 1, {}, 2) is Direction.Out


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
