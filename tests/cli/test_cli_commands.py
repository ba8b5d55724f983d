"""The commands beside lowering."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pypto_egg import __version__
from pypto_egg.report.requirements import covered
from pypto_egg.rulesets.catalogue import ALL

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., Any]


def test_the_version_is_that_of_the_package(pypto_egg: Command) -> None:
    assert pypto_egg("--version").out == f"pypto-egg, version {__version__}\n"
    assert version("pypto-egg") == __version__


@pytest.mark.parametrize("args", [("--help",), ("optimize", "--help"), ("--version",)])
def test_help_loads_no_engine_no_solver_and_no_numpy(args: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom pypto_egg.cli import main\n"
        f"sys.argv = ['pypto-egg', *{args!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*sorted(m for m in ('egglog', 'ortools', 'numpy', 'rich') if m in sys.modules),"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stderr.split() == []


def test_the_module_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pypto_egg", "--version"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.endswith(f"version {__version__}\n")


def test_every_command_says_what_it_does(pypto_egg: Command) -> None:
    listed = pypto_egg("--help").out
    for name in ("optimize", "lower", "check", "print", "run", "rules", "targets", "requirements"):
        assert f"\n  {name} " in listed
        assert pypto_egg(name, "--help").code == 0


def test_print_is_canonical(pypto_egg: Command, biased: Path) -> None:
    once = pypto_egg("print", biased)
    assert once.code == 0
    assert pypto_egg("print", "-", stdin=once.out).out == once.out
    assert "c: pl.Tensor[[100, 48], pl.FP32] = pl.tensor.matmul(a, b" in once.out


def test_check_finds_nothing_in_a_good_program(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("check", biased)
    assert (done.code, done.out) == (0, f"{biased}: no findings (tensor stage)\n")


def test_check_finds_tensor_operators_after_lowering(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("check", biased, "--stage", "tile")
    assert done.code == 1
    assert "IncoreTileOps: " in done.out
    assert done.out.splitlines()[-1] == f"{biased}: 3 findings (tile stage)"
    assert done.err == ""


def test_what_was_lowered_passes_the_tile_stage(pypto_egg: Command, biased: Path) -> None:
    tiles = pypto_egg("optimize", biased, "-q").out
    assert pypto_egg("check", "-", "--stage", "tile", stdin=tiles).code == 0


def test_run_summarises_inputs_and_outputs(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("run", biased, "--seed", "7")
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["linear,", "seed", "7"]
    assert lines[1][0] == "input"
    assert lines[2][:3] == ["a", "float32", "100x64"]
    assert lines[-1][:4] == ["return", "0", "float32", "100x48"]
    assert lines[-1][-1] == "0"


def test_runs_repeat_by_their_seed(pypto_egg: Command, biased: Path) -> None:
    first, again = (pypto_egg("run", biased, "--seed", "1").out for _ in range(2))
    assert first == again
    assert pypto_egg("run", biased, "--seed", "2").out != first


def test_run_takes_the_extents_of_symbols(pypto_egg: Command) -> None:
    text = (
        "import pypto.language as pl\nM = pl.dynamic('M')\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def f(self, x: pl.Tensor[[M, 8], pl.INT32]) -> pl.Tensor[[M, 8], pl.INT32]:\n"
        "        y = pl.add(x, x)\n        return y\n"
    )
    done = pypto_egg("run", "-", "--symbol", "M=3", stdin=text)
    assert done.code == 0
    assert done.out.splitlines()[-1].split()[2:4] == ["int32", "3x8"]


def test_rules_lists_every_ruleset(pypto_egg: Command) -> None:
    listed = pypto_egg("rules").out
    for name, ruleset in ALL.items():
        assert f"  {name:<16} {len(ruleset.rules):>3} rules  {ruleset.why}\n" in listed


def test_rules_gives_the_reason_of_every_rule(pypto_egg: Command) -> None:
    text = " ".join(pypto_egg("rules", *ALL).out.split())
    for ruleset in ALL.values():
        for rule in ruleset.rules:
            assert f"{rule.name} {' '.join(rule.why.split())}" in text


def test_rules_of_an_unknown_set(pypto_egg: Command) -> None:
    done = pypto_egg("rules", "magic")
    assert done.code == 1
    assert "the rulesets are: " in done.err


def test_targets_lists_capacities(pypto_egg: Command) -> None:
    rows = pypto_egg("targets").out.splitlines()
    assert rows[0].split()[-6:] == ["Vec", "Mat", "Left", "Right", "Acc", "Bias"]
    assert rows[1].startswith("a2a3 ")
    assert rows[1].endswith("128 KiB  1 KiB")
    assert rows[2].startswith("a5 ")


def test_requirements_are_read_from_the_marks(pypto_egg: Command) -> None:
    done = pypto_egg("requirements", "--tests")
    assert done.code == 0
    assert "\nC-125  " in done.out
    assert "tests/verify/test_verify_boxes.py::" in done.out


def test_marks_of_functions_classes_and_modules(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_marks.py").write_text(
        "import pytest\n"
        "pytestmark = [pytest.mark.req('C-001')]\n"
        "@pytest.mark.req('C-002', 'C-003')\ndef test_one(): ...\n"
        "@pytest.mark.req('N-001')\nclass TestMany:\n"
        "    @pytest.mark.parametrize('x', [1])\n    @pytest.mark.req('C-002')\n"
        "    def test_two(self, x): ...\n"
        "    @pytest.mark.req('C-999')\n    def helper(self): ...\n"
    )
    one, two = "tests/test_marks.py::test_one", "tests/test_marks.py::TestMany::test_two"
    assert covered(folder) == {
        "C-001": [one, two],
        "C-002": [one, two],
        "C-003": [one],
        "N-001": [two],
    }
