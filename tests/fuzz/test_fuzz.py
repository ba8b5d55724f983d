"""The fuzz command: random programs, the same for a seed, and what it says of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pypto_egg import optimize
from pypto_egg.bench import fuzz as module
from pypto_egg.bench.fuzz import FAILED, REFUSALS, fuzz, judge
from pypto_egg.bench.random_programs import sample
from pypto_egg.cli import command
from pypto_egg.errors import OptionError
from pypto_egg.lowering import Lowering
from pypto_egg.text import parse

HEAD = "import pypto.language as pl\n\n@pl.function(type=pl.FunctionType.InCore)\n"
T = "pl.Tensor[[{}, 24], pl.FP16]"


def reshaped(rows: int, result: int) -> str:
    """A computed value reshaped: of [16, 24] there is no tile form that reshapes."""
    return (
        f"{HEAD}def k(x: {T.format(rows)}) -> pl.Tensor[[{result}, 16], pl.FP16]:\n"
        f"    y = pl.exp(x)\n    z = pl.reshape(y, [{result}, 16])\n    return z\n"
    )


def test_a_seed_gives_one_program() -> None:
    texts = [sample(seed) for seed in range(40)]
    assert texts == [sample(seed) for seed in range(40)]
    assert len(set(texts)) == 40
    for text in texts:
        parse(text)


def test_verdicts_do_not_depend_on_jobs() -> None:
    alone, shared = fuzz(6, seed=3, size=2), fuzz(6, seed=3, size=2, jobs=2)
    assert alone.verdicts == shared.verdicts
    assert alone.count == shared.count == 6


def test_most_programs_are_lowered_and_none_fails() -> None:
    summary = fuzz(24, seed=100, size=3)
    assert summary.failures == []
    assert summary.verdicts["equal"] >= 18
    assert set(summary.verdicts) <= {"equal", *REFUSALS}


def test_a_refusal_is_counted_by_its_code() -> None:
    verdict, words = judge(reshaped(16, 24), "a2a3")
    assert verdict == "E402"
    assert "reshape" in words


def another_program(text: str, **options: object) -> Lowering:
    """What `optimize` gives, with a tile program that computes something else."""
    result = optimize(text, target="a2a3", verify=False)
    wrong = result.text.replace("tile.exp", "tile.neg")
    return replace(result, program=parse(wrong))


def test_another_value_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{HEAD}def k(x: {T.format(16)}) -> {T.format(16)}:\n    y = pl.exp(x)\n    return y\n"
    assert judge(text, "a2a3") == ("equal", "")
    monkeypatch.setattr(module, "optimize", another_program)
    verdict, words = judge(text, "a2a3")
    assert verdict == FAILED
    assert "VerificationError" in words
    assert "different at" in words


def test_any_other_exception_is_a_failure() -> None:
    verdict, words = judge("no program at all(", "a2a3")
    assert verdict == FAILED
    assert words.startswith("ParseError")


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(OptionError, match="a7"):
        fuzz(1, targets=("a7",))


def test_the_command_prints_a_table() -> None:
    result = CliRunner().invoke(command, ["fuzz", "--count", "3", "--size", "1"])
    assert result.exit_code == 0
    assert "equal" in result.output
    assert "3 programs in" in result.output


def test_the_command_saves_what_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(text: str, **options: object) -> Lowering:
        raise ZeroDivisionError("in a rule")

    monkeypatch.setattr(module, "optimize", broken)
    options = ["fuzz", "--count", "2", "--seed", "5", "--target", "a5", "--out", str(tmp_path)]
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 1
    first, second = sorted(tmp_path.iterdir())
    text = first.read_text(encoding="utf-8")
    assert text.startswith("# seed 5, size 5, target a5\n# ZeroDivisionError: in a rule\n")
    assert text.endswith(sample(5))
    assert str(second) in result.output
