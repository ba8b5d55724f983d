"""`pypto-egg bench report` and `bench plot`, as the shell starts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import report_rows as rows_of

from pypto_egg.bench.alignment import OPTIMIZED, PYPTO
from pypto_egg.bench.plots.alignment import WHOLE_KERNELS
from pypto_egg.bench.results import results
from pypto_egg.bench.store import Store


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A file with a run of scaling and, after it, one of baseline."""
    store = Store(tmp_path / "results.duckdb")
    for command in ("scaling", "baseline"):
        run = store.begin(command, {}, tasks=1, revision="r", versions={})
        store.append(run, [(0, rows_of.of_command(command))])
        store.set_state(run, "finished")
    return store.path


def run(folder: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pypto_egg", "bench", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_a_page_of_the_newest_run_is_named_after_it(db: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "report", "--db", db)
    assert (done.returncode, done.stdout) == (0, "baseline-1: 3 rows in baseline-1.html\n")
    page = (tmp_path / "baseline-1.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "(baseline-1)" in page


def test_a_page_can_go_to_standard_output(db: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "report", "scaling-1", "--db", db, "-o", "-")
    assert done.returncode == 0
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert done.stdout.rstrip().endswith("</html>")


def test_plots_are_written_in_the_formats_that_are_asked_for(db: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "plot", "scaling-1", "--db", db, "-o", "figures", "--format", "svg, pdf")
    assert done.returncode == 0, done.stderr
    names = ["scaling-1-time.svg", "scaling-1-time.pdf", "scaling-1-size.svg", "scaling-1-size.pdf"]
    assert done.stdout.split() == [f"figures/{name}" for name in names]
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == sorted(names)


def test_from_own_shapes_to_the_heat_map(tmp_path: Path) -> None:
    db, aligned = tmp_path / "own.duckdb", ("--m", "16,32", "--n", "16,128")
    shape = ("--shapes", "5x100x64", "--cost-model", "mte2_mad", "--jobs", "1")
    made = run(tmp_path, "alignment", *shape, *aligned, "--db", db, "-q")
    assert made.returncode == 0, made.stderr
    done = run(tmp_path, "report", "--db", db, "-o", "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for row in results(db=db).rows:
        if row["m_align"] not in WHOLE_KERNELS:
            said = f"M to {row['m_align']}, N to {row['n_align']}\n{row['physical_m']} x "
            assert f"{said}{row['physical_n']} of physical extents\n{row['cycles']:,.0f}" in page


def test_what_is_not_there_is_an_error(db: Path, tmp_path: Path) -> None:
    unknown = run(tmp_path, "report", "models-7", "--db", db)
    assert unknown.returncode == 1
    assert "there is no run 'models-7'" in unknown.stderr
    form = run(tmp_path, "plot", "--db", db, "--format", "gif")
    assert form.returncode == 1
    assert "plots cannot be written as 'gif'" in form.stderr
    place = run(tmp_path, "report", "--db", db, "-o", db / "page.html")
    assert place.returncode == 1
    assert "cannot write" in place.stderr


def test_the_rows_of_whole_kernels_are_known_by_their_labels() -> None:
    assert set(WHOLE_KERNELS) == {PYPTO, OPTIMIZED}
