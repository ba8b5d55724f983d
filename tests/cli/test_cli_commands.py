"""The commands beside lowering."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pypto_egg import __version__
from pypto_egg.cli import command
from pypto_egg.egraph.saturate import Limits
from pypto_egg.errors import OptionError
from pypto_egg.extract.cost import cost_model, cost_model_names
from pypto_egg.ops.registry import declared, lookup
from pypto_egg.report.requirement_texts import TEXTS
from pypto_egg.report.requirements import covered, requirements_text
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
    for name, entry in command.commands.items():
        assert f"\n  {name} " in listed
        assert entry.short_help
        assert f" {entry.short_help}\n" in listed
        assert pypto_egg(name, "--help").code == 0


def test_help_states_the_defaults_and_the_names(pypto_egg: Command) -> None:
    text = " ".join(pypto_egg("optimize", "--help").out.split())
    limits = Limits()
    for value in (limits.nodes, limits.iterations, f"{limits.seconds:g}"):
        assert f"[default: {value}]" in text
    shown = text.split("--cost-model TEXT ")[1].split(".")[0]
    # Other tests register models of their own.
    ours = [n for n in cost_model_names() if "pypto_egg." in type(cost_model(n)).__module__]
    assert shown.replace(" or ", ", ").split(", ") == ours


def test_print_is_canonical(pypto_egg: Command, biased: Path) -> None:
    once = pypto_egg("print", biased)
    assert once.code == 0
    assert pypto_egg("print", "-", stdin=once.out).out == once.out
    assert "c: pl.Tensor[[100, 48], pl.FP32] = pl.tensor.matmul(a, b" in once.out


def test_verify_finds_nothing_in_a_good_program(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("verify", biased)
    assert (done.code, done.out) == (0, f"{biased}: no findings (tensor stage)\n")


def test_verify_finds_tensor_operators_after_lowering(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("verify", biased, "--stage", "tile")
    assert done.code == 1
    assert "IncoreTileOps: " in done.out
    assert done.out.splitlines()[-1] == f"{biased}: 3 findings (tile stage)"
    assert done.err == ""


def test_what_was_lowered_passes_the_tile_stage(pypto_egg: Command, biased: Path) -> None:
    tiles = pypto_egg("optimize", biased, "-q").out
    assert pypto_egg("verify", "-", "--stage", "tile", stdin=tiles).code == 0


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


def test_ops_lists_every_operator(pypto_egg: Command) -> None:
    lines = pypto_egg("ops").out.splitlines()
    assert sorted(line.split()[0] for line in lines) == sorted(decl.name for decl in declared())
    assert lines[0].startswith("tensor.abs")


def test_ops_tells_what_an_operator_takes_and_where_it_runs(pypto_egg: Command) -> None:
    one = pypto_egg("ops", "tile.matmul").out
    assert one.startswith("pl.tile.matmul(lhs, rhs)\n  stage: tiles, after lowering\n")
    assert "\n  runs on: cube\n  operand lhs: tile in Left\n" in one
    both = pypto_egg("ops", "pl.cast").out
    assert both.startswith("pl.tensor.cast(input, target_type=, mode='round')\n")
    assert "\npl.tile.cast(" in both
    cast = lookup("tensor.cast")
    assert cast is not None
    assert [kwarg.name for kwarg in cast.kwargs] == ["target_type", "mode"]


def test_ops_of_an_unknown_name(pypto_egg: Command) -> None:
    done = pypto_egg("ops", "matmull")
    assert done.code == 1
    assert "did you mean " in done.err
    assert "matmul" in done.err.split("did you mean ")[1]


def test_every_id_in_an_account_a_rule_or_a_document_has_a_text() -> None:
    """docs/decisions.md apart: it says of each id what it is about."""
    sources = [rule.why for ruleset in ALL.values() for rule in ruleset.rules]
    package = ROOT / "pypto_egg"
    documents = [p for p in sorted((ROOT / "docs").glob("*.md")) if p.name != "decisions.md"]
    accounts = sorted((package / "report").glob("*.py"))
    for path in (package / "diagnose.py", *accounts, ROOT / "README.md", *documents):
        sources.append(path.read_text(encoding="utf-8"))
    used = {found for text in sources for found in re.findall(r"\b[CNKQA]-\d{2,3}\b", text)}
    assert "C-125" in used
    assert sorted(used - set(TEXTS)) == []


@pytest.mark.req("C-107")
def test_an_operator_says_where_its_operands_arrive(pypto_egg: Command) -> None:
    lines = pypto_egg("ops", "tensor.matmul_acc").out.splitlines()
    arriving = [line.strip() for line in lines if "arrives" in line]
    assert arriving == [
        "operand acc: tensor, arrives in Acc",
        "operand lhs: tensor, arrives in Mat",
        "operand rhs: tensor, arrives in Mat",
    ]


def test_requirements_say_what_they_are(pypto_egg: Command) -> None:
    done = pypto_egg("requirements", "C-125", "K-05")
    first, second = done.out.splitlines()
    assert re.fullmatch(rf"C-125 +\d+ tests  {re.escape(TEXTS['C-125'])}", first)
    assert second.endswith(TEXTS["K-05"])
    assert pypto_egg("requirements", "C-999").code == 1


def test_requirements_without_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypto_egg.report.requirements.tests_folder", lambda: None)
    assert requirements_text(["C-125"]) == f"C-125  {TEXTS['C-125']}\n"
    assert len(requirements_text().splitlines()) == len(TEXTS)
    with pytest.raises(OptionError, match="not part of an installed package"):
        requirements_text(tests=True)


def test_requirements_are_read_from_the_marks(pypto_egg: Command) -> None:
    done = pypto_egg("requirements", "--tests")
    assert done.code == 0
    assert "\nC-125  " in done.out
    assert f"\n{len(covered(ROOT / 'tests'))} requirements are covered\n" in done.out
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
