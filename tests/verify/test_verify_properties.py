"""Properties verified alone, by name, and the coherence of stores to global memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pypto_egg.cli import command
from pypto_egg.errors import OptionError
from pypto_egg.ir.program import Program
from pypto_egg.text import parse
from pypto_egg.verify import Property, properties_of, property_named, verify_findings

HEAD = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(x: pl.InOut[pl.Tensor[[1, 32], pl.INT32]], y: pl.InOut[pl.Tensor[[1, 32], pl.INT32]]):
"""
FILL = "t = pl.full([1, 32], dtype=pl.INT32, value=-1)\n"
BULK = FILL + "a = pl.assemble(x, t, [0, 0])\n"
SCALAR = "pl.tensor.write(x, [0, 3], pl.const(7, pl.INT32))\n"
MIXED = SCALAR + BULK
TWICE = "y1 = pl.add(x, x)\ny1 = pl.mul(x, x)\n"
MAIN = """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, u: pl.InOut[pl.Tensor[[1, 32], pl.INT32]]):
        self.k(u, u)
"""


def program(body: str, after: str = "") -> Program:
    lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
    return parse(HEAD + lines + after)


def found(body: str, *names: str, after: str = "") -> list[str]:
    wanted = [property_named(name) for name in names] or None
    return [f.property.value for f in verify_findings(program(body, after), "tensor", wanted)]


@pytest.mark.req("C-065", "C-069")
def test_both_store_paths_are_found() -> None:
    assert found(MIXED) == ["GmStoreCoherence"]
    (finding,) = verify_findings(program(MIXED))
    error = finding.error()
    assert error.code == "E403"
    assert "'x'" in error.message
    assert error.span is not None


@pytest.mark.req("C-069", "C-070", "C-077")
def test_what_lowering_brings_on_one_path_is_none() -> None:
    fill = "for i in pl.range(32):\n    pl.tensor.write(x, [0, i], pl.const(-1, pl.INT32))\n"
    assert found(fill + BULK) == []
    assert found(BULK + SCALAR) == []


@pytest.mark.req("C-066")
def test_a_call_that_gives_both_names_one_buffer_counts() -> None:
    body = SCALAR + FILL + "a = pl.assemble(y, t, [0, 0])\n"
    assert found(body) == []
    assert found(body, after=MAIN) == ["GmStoreCoherence"]


@pytest.mark.req("C-004", "C-009")
@pytest.mark.parametrize("name", ["SSAForm", "TypeCheck", "GmStoreCoherence"])
def test_a_broken_structure_is_what_is_found(name: str) -> None:
    """Types and stores of a program that is in no SSA form are not looked at."""
    assert found(TWICE, name) == ["SSAForm"]


@pytest.mark.parametrize("name", ["UseBeforeDef", "SplitIncoreOrch", "NormalizedStmtStructure"])
def test_other_properties_are_left_out(name: str) -> None:
    assert found(TWICE, name) == []
    assert found(MIXED, name) == []


@pytest.mark.req("C-010")
def test_names() -> None:
    assert property_named("ssaform") is Property.SSA_FORM
    assert {p for stage in ("tensor", "tile") for p in properties_of(stage)} == set(Property)
    with pytest.raises(OptionError, match="unknown property 'SSA'"):
        property_named("SSA")
    with pytest.raises(OptionError, match="BoxShape is not verified at the tensor stage"):
        found(BULK, "BoxShape")


def test_the_command_takes_properties(tmp_path: Path) -> None:
    file = tmp_path / "mixed.py"
    lines = "".join(f"        {line}\n" for line in MIXED.strip().splitlines())
    file.write_text(HEAD + lines, encoding="utf-8")
    runner = CliRunner()
    alone = runner.invoke(command, ["verify", str(file), "--property", "TypeCheck"])
    assert (alone.exit_code, alone.output) == (0, f"{file}: no findings (tensor stage)\n")
    options = ["verify", str(file), "--property", "TypeCheck", "--property", "GmStoreCoherence"]
    both = runner.invoke(command, options)
    assert both.exit_code == 1
    assert "E403: GmStoreCoherence: tensor 'x'" in both.output
