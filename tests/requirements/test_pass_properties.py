"""C1: what lowering is called on, what it asks of a program and what it promises afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernels import both, executed, function, kernel, out, program, tensor

from pypto_egg import lower, optimize
from pypto_egg.errors import VerifyError
from pypto_egg.ir.enums import FunctionType
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk
from pypto_egg.text import parse, print_program
from pypto_egg.verify import Property, verify_findings, verify_program

MAKERS = pytest.mark.parametrize("make", [lower, optimize], ids=["lower", "optimize"])
V = tensor([64], "FP32")
F = tensor([16, 32], "FP32")
PAIR = f"tuple[{V}, {V}]"
WHOLE = program(
    function({"x": V}, "y = pl.add(x, x)\nz = pl.exp(y)\nreturn y, z", PAIR, "k"),
    function({"x": V}, "y, z = self.k(x)\nreturn y, z", PAIR, "w", "Spmd"),
    function({"x": V}, "y, z = self.w(x)\nreturn y, z", PAIR, "main", "Orchestration"),
)  # fmt: skip


def op_names(function: Function) -> list[str]:
    return [
        part.op
        for stmt in walk(function.body)
        for expr in expressions_of(stmt)
        for part in subexpressions(expr)
        if isinstance(part, Call)
    ]


def refusal(make: object, text: str) -> str:
    with pytest.raises(VerifyError) as caught:
        make(text)
    return caught.value.message


@MAKERS
@pytest.mark.req("C-001", "C-008")
def test_lowering_takes_a_program_and_gives_a_program(make: object, tmp_path: Path) -> None:
    """From a Program, its text or its file: the same result, and the source stays as it was."""
    source = parse(WHOLE)
    before = print_program(source)
    path = tmp_path / "whole.py"
    path.write_text(WHOLE, encoding="utf-8")
    results = [make(given) for given in (source, WHOLE, path, str(path))]
    for result in results:
        assert isinstance(result.program, Program)
        assert result.text == results[0].text
        assert [f.name for f in result.program.functions] == ["k", "w", "main"]
    assert print_program(source) == before


@pytest.mark.req("C-008", "C-003", "C-098", "C-103")
def test_phases_follow_each_other() -> None:
    """First the kernel gains outputs, then its wrapper, then the caller creates them."""
    for result in both(WHOLE):
        params = {f.name: [p.var.name for p in f.params] for f in result.program.functions}
        assert params == {
            "k": ["x", "ret0__out", "ret1__out"],
            "w": ["x", "ret0__out", "ret1__out"],
            "main": ["x"],
        }
        assert op_names(result.program.function("w")) == []
        assert op_names(result.program.function("main")) == ["tensor.create"] * 2


NOT_READY = {
    "SSAForm": ("y = pl.add(x, x)\ny = pl.mul(y, y)\nreturn y", "InCore", "'y'"),
    "SplitIncoreOrch": (
        "with pl.at(level=pl.Level.CORE_GROUP):\n    y = pl.exp(x)\nreturn x", "Orchestration",
        "'main'",
    ),
    "NormalizedStmtStructure": ("y = pl.add(pl.mul(x, x), x)\nreturn y", "InCore", "tensor.mul"),
}  # fmt: skip


@MAKERS
@pytest.mark.req("C-004", "C-005", "C-006", "C-009")
@pytest.mark.parametrize("name", NOT_READY)
def test_a_required_property_that_is_missing_is_named(make: object, name: str) -> None:
    body, kind, named = NOT_READY[name]
    message = refusal(make, program(function({"x": F}, body, F, "main", kind)))
    assert message.startswith(f"{name}: ")
    assert named in message


@pytest.mark.req("C-004")
def test_two_names_for_two_values_are_accepted() -> None:
    both(kernel({"x": F}, "y0 = pl.add(x, x)\ny1 = pl.mul(y0, y0)\nreturn y1", F))


@MAKERS
@pytest.mark.req("C-007")
@pytest.mark.parametrize(
    "region", ["with pl.cluster():", "with pl.spmd(2):", "for i in pl.spmd(2):"]
)
def test_cluster_scopes_are_outlined_before(make: object, region: str) -> None:
    body = f"{region}\n    y = pl.exp(x)\nreturn x"
    message = refusal(make, program(function({"x": F}, body, F, "main", "Orchestration")))
    assert message.startswith("SplitIncoreOrch: ")


@pytest.mark.req("C-007")
def test_orchestration_is_optimized_after() -> None:
    """Buffers are made at each call, also in a loop: moving and merging them is a later pass."""
    k = function({"x": V}, "y = pl.exp(x)\nreturn y", V, "k")
    body = """
for i, (c,) in pl.range(3, init_values=(x,)):
    y = self.k(c)
    z = self.k(y)
    r = pl.yield_(z)
return r"""
    for result in both(program(k, function({"x": V}, body, V, "main", "Orchestration"))):
        (loop,) = [s for s in result.program.function("main").body if hasattr(s, "iter_args")]
        inside = [s.value.op for s in loop.body if isinstance(getattr(s, "value", None), Call)]
        assert inside == ["tensor.create", "tensor.create"]


@pytest.mark.req("C-010", "C-013")
def test_the_result_has_the_produced_properties() -> None:
    for result in both(WHOLE):
        assert verify_findings(result.program, "tile") == []
        (kernel_,) = [f for f in result.program.functions if f.type is FunctionType.InCore]
        assert all(op.startswith("tile.") for op in op_names(kernel_))


@MAKERS
@pytest.mark.req("C-010")
def test_a_lowered_program_is_lowered_already(make: object) -> None:
    result = make(WHOLE)
    again = make(result.program)
    assert again.program == result.program
    assert make(result.text).text == result.text


@pytest.mark.req("C-013", "C-284")
def test_a_tensor_operator_left_in_a_kernel_is_reported() -> None:
    body = "y = pl.add(x, x)\npl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))\nreturn y"
    (finding,) = verify_findings(parse(kernel({"x": F}, body, F)), "tile")
    assert finding.property is Property.INCORE_TILE_OPS
    assert "pl.tensor.add" in finding.message
    assert "'kernel'" in finding.message


SHARD = """
t: pl.Tile[[32, 64], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [32, 64])
h: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.aiv_shard(t, split=1)
o: pl.Tensor[[16, 64], pl.FP32] = pl.tile.store(h, [0, 0], d)
return o"""
GATHER = """
t = pl.tile.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
g: pl.Tile[[32, 64], pl.FP32, pl.Mem.Mat] = pl.tile.aic_gather(t, split=1)
o: pl.Tensor[[32, 64], pl.FP32] = pl.tile.store(g, [0, 0], d)
return o"""


def split_kernel(body: str, rows: int, result_rows: int) -> str:
    params = {"x": tensor([rows, 64], "FP32"), "d": out([result_rows, 64], "FP32")}
    return kernel(params, body, tensor([result_rows, 64], "FP32"))


@MAKERS
@pytest.mark.req("C-010", "C-011", "C-012")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (split_kernel(SHARD, 32, 16), ("tile.aiv_shard", "in Vec instead of Acc")),
        (split_kernel(GATHER, 16, 32), ("tile.aic_gather", "in Mat instead of Vec")),
    ],
    ids=["aiv_shard", "aic_gather"],
)
def test_a_split_that_was_valid_before_is_verified_again(
    make: object, text: str, words: tuple[str, ...]
) -> None:
    """AivSplitValid is invalidated: nothing is carried over from before lowering."""
    verify_program(parse(text), stage="tensor")
    (finding,) = verify_findings(parse(text), "tile")
    assert finding.property is Property.AIV_SPLIT_VALID
    message = refusal(make, text)
    assert message.startswith("AivSplitValid: ")
    assert all(word in message for word in words)


@pytest.mark.req("C-012")
def test_tensors_cannot_break_the_contract_of_a_split() -> None:
    """A tensor has no memory space, so only the tile forms can be checked."""
    body = "h = pl.tensor.aiv_shard(x, split=1)\nreturn h"
    source = parse(kernel({"x": F}, body, tensor([8, 32], "FP32")))
    assert isinstance(source.functions[0].params[0].var.type, TensorType)
    found = [f.property for f in verify_findings(source, "tile")]
    assert Property.AIV_SPLIT_VALID not in found
    verify_program(source, stage="tensor")


@pytest.mark.req("C-014")
def test_the_document_s_example() -> None:
    body = "y: pl.Tensor[[64], pl.FP32] = pl.add(x, x)\nreturn y"
    call = "y: pl.Tensor[[64], pl.FP32] = self.main_incore_0(x)\nreturn y"
    text = program(
        function({"x": V}, body, V, "main_incore_0"),
        function({"x": V}, call, V, "main", "Orchestration"),
    )
    result = executed(lower(text, verify=True))
    entry = result.program.function("main_incore_0")
    assert op_names(entry) == ["tile.load", "tile.add", "tile.store"]
    assert [p.direction.value for p in entry.params] == ["In", "Out"]
    assert op_names(result.program.function("main")) == ["tensor.create"]
