"""`optimize` and `lower`: the program on one stream, the account on the other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pypto_egg.text import parse
from pypto_egg.verify import verify_findings

Command = Callable[..., Any]


def test_the_program_goes_to_stdout_and_is_a_valid_tile_program(
    pypto_egg: Command, biased: Path
) -> None:
    done = pypto_egg("optimize", biased)
    assert done.code == 0
    assert verify_findings(parse(done.out), "tile") == []
    assert "pl.tile.matmul_bias(" in done.out


def test_the_account_goes_to_stderr_in_plain_text(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("optimize", biased)
    lines = done.err.splitlines()
    assert lines[0].split() == ["pipe", "cycles", "reference", "difference"]
    assert any(line.startswith("total ") for line in lines)
    assert (
        "  M of d: 100 -> 112 rows (100 rows are not whole fractals of 16 rows (C-125, C-135))"
        in (lines)
    )
    (choice,) = [line for line in lines if "tile.matmul -> tile.matmul_bias" in line]
    assert choice.startswith("  unlike the reference: a @ b: ")
    assert re.search(r", the bias is added in the cube: -\d+ cycles \(.*vector -\d+\)$", choice)
    assert any(
        re.match(r"  unlike the reference: vector -\d+ cycles: tile.col_expand_add 1 -> 0", line)
        for line in lines
    )
    assert any(line.startswith("linear: saturated after ") for line in lines)
    assert lines[-1].startswith("verified by execution: equal; 4800 elements")
    assert done.err.isascii()
    assert "\x1b" not in done.err


def test_quiet_prints_the_program_only(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("optimize", biased, "--quiet")
    assert done.out.startswith("# pypto.program: Biased\n")
    assert done.err == ""


def test_with_an_output_file_the_account_is_on_stdout(
    pypto_egg: Command, biased: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tiles.py"
    done = pypto_egg("optimize", biased, "-o", out)
    assert done.out.startswith("pipe ")
    assert done.err == ""
    assert out.read_text() == pypto_egg("optimize", biased, "-q").out


def test_the_json_account_holds_the_program(
    pypto_egg: Command, biased: Path, tmp_path: Path
) -> None:
    path = tmp_path / "account.json"
    done = pypto_egg("optimize", biased, "--json", path)
    account = json.loads(path.read_text())
    assert account["program"] == done.out
    assert account["verification"]["verified"] is True


def test_json_on_stdout_is_the_only_thing_there(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("optimize", biased, "--json", "-")
    assert json.loads(done.out)["target"] == "a2a3"
    assert done.err.startswith("pipe ")


def test_explain_prints_decisions(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("optimize", biased, "--explain")
    assert "  decisions:\n" in done.err
    assert "    M of d = a @ b\n      chosen     112 rows (box 16, 100 valid)" in done.err


def test_lower_is_the_reference(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("lower", biased)
    assert done.code == 0
    assert "pl.tile.col_expand_add(" in done.out
    assert done.err.splitlines()[0].split() == ["pipe", "cycles"]


def test_stdin_is_read_for_a_dash(pypto_egg: Command, biased: Path) -> None:
    piped = pypto_egg("optimize", "-", "-q", stdin=biased.read_text())
    assert piped.out == pypto_egg("optimize", biased, "-q").out


def test_rulesets_can_be_left_out(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("optimize", biased, "-q", "--without-rules", "accumulation")
    assert "matmul_bias" not in done.out


def test_reassociation_is_asked_for(pypto_egg: Command) -> None:
    text = (
        "import pypto.language as pl\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def f(self, x: pl.Tensor[[16, 64], pl.FP32]) -> pl.Tensor[[16, 64], pl.FP32]:\n"
        "        r = pl.sqrt(x)\n        y = pl.recip(r)\n        return y\n"
    )
    assert "tile.rsqrt" not in pypto_egg("optimize", "-", "-q", stdin=text).out
    allowed = pypto_egg("optimize", "-", "-q", "--allow-reassociation", stdin=text)
    assert "tile.rsqrt" in allowed.out


@pytest.mark.parametrize("extractor", ["exact", "dag", "tree"])
@pytest.mark.parametrize("target", ["a2a3", "a5", "910B"])
def test_targets_and_extractors(
    pypto_egg: Command, biased: Path, extractor: str, target: str
) -> None:
    done = pypto_egg("optimize", biased, "--target", target, "--extractor", extractor)
    assert done.code == 0
    assert "verified by execution: equal" in done.err


def test_verification_is_left_out_when_told(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("optimize", biased, "--verify", "never")
    assert done.err.splitlines()[-1] == "not verified: not asked for"


def test_an_iteration_limit_stops_saturation(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("optimize", biased, "--iteration-limit", "1")
    assert done.code == 1
    assert "saturation stopped at its iteration limit after 1 iterations" in done.err
    assert "hint: raise --iteration-limit, or limits=Limits(iterations=...)" in done.err
    assert "the default is 5000" in done.err


@pytest.fixture
def slow_memory(tmp_path: Path) -> Path:
    """Constants of a target that loads a tenth as fast from GM to Mat."""
    path = tmp_path / "slow.toml"
    path.write_text("[path.DDR.Mat]\ngib_per_s = 10.0\n")
    return path


@pytest.mark.parametrize("command", ["optimize", "lower"])
def test_constants_of_a_file_change_what_is_paid(
    pypto_egg: Command, biased: Path, slow_memory: Path, command: str
) -> None:
    usual = json.loads(pypto_egg(command, biased, "--json", "-").out)
    changed = json.loads(pypto_egg(command, biased, "--json", "-", "--constants", slow_memory).out)
    assert changed["cost"]["mte2"] > 2 * usual["cost"]["mte2"]
    assert changed["verification"]["verified"] is True


@pytest.mark.parametrize("command", ["optimize", "lower", "l0"])
def test_a_constant_that_is_not_known_is_an_error(
    pypto_egg: Command, biased: Path, tmp_path: Path, command: str
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text("[memory.Acc]\nbytes = 1\n")
    done = pypto_egg(command, "16x16x64" if command == "l0" else biased, "--constants", file)
    assert done.code == 1
    assert "memory.Acc.bytes" in done.err
    assert pypto_egg(command, "16x16x64", "--constants", tmp_path / "none.toml").code == 1
