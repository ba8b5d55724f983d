"""`pypto-egg bench` as the shell would start it: options, tables, rows, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pypto_egg.bench import baseline
from pypto_egg.bench.store import Store

Command = Callable[..., Any]
GRAPHS = Path(__file__).resolve().parents[1] / "extract" / "graphs"


@pytest.fixture
def bench(pypto_egg: Command, tmp_path: Path) -> Command:
    """`pypto-egg bench ARGS` on a file of its own, in this process."""
    return lambda *args: pypto_egg("bench", *args, "--db", str(tmp_path / "r.duckdb"))


def aligned(bench: Command, *more: str) -> Any:
    return bench("alignment", "--shapes", "5x100x128", "--jobs", "1", "--cost-model", "mte2_mad",
                 *more)  # fmt: skip


def test_alignment_prints_a_line_for_each_pair_of_extents(bench: Command) -> None:
    done = aligned(bench, "--m", "16,32", "--n", "16,64")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "5x100x128, BF16, nd, a2a3, mte2_mad"
    assert lines[1].split()[:3] == ["M", "N", "physical"]
    extents = [" ".join(line.split()[2:5]) for line in lines[2:6]]
    assert extents == ["16 x 112", "16 x 128", "32 x 112", "32 x 128"]
    assert lines[-1] == "alignment-1: 6 rows"


def test_many_products_get_a_line_each_and_totals(bench: Command) -> None:
    done = bench("alignment", "--shapes", "1x16x16,2x16x16,3x16x16,16x16x36,q14_dec_rope",
                 "--cost-model", "mte2_mad", "--jobs", "1", "--m", "16", "--n", "16")  # fmt: skip
    assert done.code == 0
    assert "is not one product of the cube" in done.out
    assert "E402: " in done.out
    totals = done.out.splitlines()[-3]
    assert totals.split()[:5] == ["a2a3", "mte2_mad", "3", "2", "0"]


def test_rows_are_written_as_csv_json_and_markdown(bench: Command, tmp_path: Path) -> None:
    files = {name: tmp_path / f"rows.{name}" for name in ("csv", "json", "markdown")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    assert aligned(bench, *options).code == 0
    store = Store(tmp_path / "r.duckdb")
    rows = store.rows(store.run("last"))
    read = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    assert [float(one["cycles"]) for one in read] == [row["cycles"] for row in rows]
    assert json.loads(files["json"].read_text())["rows"] == rows
    lines = files["markdown"].read_text().splitlines()
    assert sum(line.startswith("| ") for line in lines) == len(rows) + 2


def test_rows_on_stdout_stand_alone(bench: Command) -> None:
    done = aligned(bench, "--csv", "-")
    assert done.out.startswith("run,revision,version,workload,op,m,n,k,")
    assert len(done.out.splitlines()) == 1 + 2 + 36
    assert aligned(bench, "--csv", "-", "--json", "-").code == 2


def test_types_layouts_and_targets_multiply(bench: Command) -> None:
    done = aligned(bench, "--dtype", "bf16,int8", "--layout", "nd,nz", "--target", "a2a3,950",
                   "--m", "16", "--n", "32", "--json", "-")  # fmt: skip
    rows = json.loads(done.out)["rows"]
    cases = dict.fromkeys((row["dtype_a"], row["layout"], row["target"]) for row in rows)
    assert list(cases) == [
        (dtype, layout, target)
        for dtype in ("BF16", "INT8") for layout in ("nd", "nz") for target in ("a2a3", "a5")
    ]  # fmt: skip


def test_constants_come_from_a_file(bench: Command, tmp_path: Path) -> None:
    slow = tmp_path / "slow.toml"
    slow.write_text("[path.DDR.Mat]\ngib_per_s = 10.0\n")
    aligned(bench, "-q")
    aligned(bench, "-q", "--constants", str(slow))
    done = bench("diff", "alignment-1", "alignment-2")
    assert done.code == 1
    assert "mte2_cycles" in done.out
    assert bench("diff", "alignment-1", "alignment-1").out.endswith(": 0 differences\n")


def test_runs_are_listed_and_shown_again(bench: Command) -> None:
    assert bench("runs").out.startswith("no runs in ")
    first = aligned(bench).out
    lines = bench("runs").out.splitlines()
    assert lines[1].split()[:4] == ["alignment-1", "finished", "1/1", "38"]
    assert bench("show", "last").out == first


def test_models_baseline_and_extraction_print_their_tables(bench: Command) -> None:
    same = ("--programs", "16x64x64", "--jobs", "1", "--cost-model", "mte2_mad,roofline")
    said = bench("models", *same).out
    for title in ("regret, mean", "rank correlation"):
        assert title in said
    assert "where they disagree most" not in said, "they choose the same kernel"
    said = bench("baseline", *same, "--target", "a2a3,a5").out
    assert "optimize against the reference lowering" in said
    assert "baseline-1: 8 rows" in said
    said = bench("extraction", str(GRAPHS), "--jobs", "1", "--extractors", "tree").out
    assert "greatest gap" in said
    assert "set-cover.json" in said


def test_scaling_measures_each_size_in_a_process_of_its_own(bench: Command) -> None:
    said = bench("scaling", "--sizes", "1", "--families", "layers", "--repeats", "1").out
    assert said.splitlines()[0].startswith("layers, a2a3, mte2_mad; seconds")
    assert "scaling-1: 1 rows" in said


def test_a_loss_is_a_fault(bench: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = baseline.compared
    worse = {"verdict": "loss"}
    monkeypatch.setattr(baseline, "compared", lambda own, other: usual(own, other) | worse)
    done = bench("baseline", "--programs", "16x64x64", "--jobs", "1", "--cost-model", "mte2_mad")
    assert done.code == 70
    assert "loss: 16x64x64 on a2a3 by mte2_mad: " in done.err


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("alignment", "--shapes", "1x2"), 1, "no shape '1x2'"),
        (("alignment", "--m", "huge"), 1, "no alignment 'huge'"),
        (("alignment", "--layout", "dn"), 1, "--layout: no 'dn'"),
        (("alignment", "--target", "a9"), 1, "no target 'a9'"),
        (("alignment", "--cost-model", "guess"), 1, "no cost model 'guess'"),
        (("alignment", "--dtype", "bf17"), 1, "no element type 'bf17'"),
        (("alignment", "--resume", "alignment-1"), 1, "there is no run 'alignment-1'"),
        (("models", "--programs", "nothing"), 1, "no program 'nothing'"),
        (("models", "--programs", "nothing"), 1, "or a kernel: attention_block, "),
        (("models", "--programs", "nothing.py"), 1, "nothing.py"),
        (("models", "--measurements", "none.csv"), 1, "cannot read measurements"),
        (("scaling", "--sizes", "big"), 1, "no size 'big'"),
        (("extraction",), 2, "name a folder"),
        (("extraction", "nowhere"), 1, "no folder nowhere"),
        (("extraction", ".", "--deadline", "0"), 2, "above 0"),
        (("show", "x"), 1, "there is no run 'x'"),
    ],
)
def test_what_is_wrong_is_said(
    bench: Command, args: tuple[str, ...], code: int, words: str
) -> None:
    done = bench(*args)
    assert done.code == code
    assert words in done.err


def test_resume_takes_all_else_from_the_run(bench: Command) -> None:
    aligned(bench, "-q")
    done = bench("alignment", "--resume", "alignment-1", "--m", "16")
    assert done.code == 2
    assert "--resume takes 'm' from the run" in done.err
    done = bench("models", "--resume", "alignment-1")
    assert (done.code, "is a run of another command" in done.err) == (1, True)
    assert bench("alignment", "--resume", "last").out.endswith("alignment-1: 38 rows\n")
