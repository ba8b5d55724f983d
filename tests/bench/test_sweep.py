"""Runs that are interrupted, killed and resumed end with the rows of one that was not."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypto_egg.bench import executors, sweep
from pypto_egg.bench.executors import Fault
from pypto_egg.bench.schema import EXTRACTION, Row
from pypto_egg.bench.store import Store
from pypto_egg.bench.sweep import How
from pypto_egg.errors import InternalError, OptionError

ROOT = Path(__file__).resolve().parents[2]
SHAPES = "5x100x128,16x64x64,100x256x512,1x48x64,17x96x80,33x128x64,64x64x64,7x32x32"
SWEEP = ("alignment", "--shapes", SHAPES, "--cost-model", "mte2_mad,roofline", "--n", "16")


def arguments(shapes: str = "5x100x128,16x64x64") -> dict[str, object]:
    from pypto_egg.bench.alignment import choices
    from pypto_egg.bench.workloads import shapes as sizes

    return {
        "workloads": [one.to_json() for one in sizes(shapes)], "layouts": [],
        "m": choices("16,64"), "n": choices("16"), "targets": ["a2a3"],
        "models": ["mte2_mad", "roofline"], "overrides": {},
    }  # fmt: skip


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "pypto_egg", "bench", *args]


def bench(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*args), capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def rows_of(db: Path, run: str = "last") -> list[Row]:
    store = Store(db)
    return store.rows(store.run(run))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The rows of a sweep that nobody disturbed."""
    db = tmp_path_factory.mktemp("whole") / "r.duckdb"
    done = bench(*SWEEP, "--db", str(db), "--jobs", "1", "-q", PYTHONHASHSEED="1")
    assert done.returncode == 0, done.stderr
    return rows_of(db)


@pytest.mark.parametrize(
    ("end", "jobs"), [(signal.SIGINT, "1"), (signal.SIGTERM, "2"), (signal.SIGKILL, "2")]
)
def test_a_real_process_that_was_ended_is_resumed_with_nothing_lost(tmp_path, whole, end, jobs):
    db = tmp_path / "r.duckdb"
    process = subprocess.Popen(
        command(*SWEEP, "--db", str(db), "--jobs", jobs, "-q"),
        cwd=ROOT, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONHASHSEED": "2"},
    )  # fmt: skip
    while process.poll() is None and not _some_done(db):
        time.sleep(0.02)
    process.send_signal(end)
    _, errors = process.communicate(timeout=120)
    run = Store(db).run("last")
    assert 0 < run.done <= run.tasks
    if end is not signal.SIGKILL and process.returncode:
        assert process.returncode == 130
        assert run.state == "interrupted"
        assert f"go on with: pypto-egg bench alignment --resume {run.name}" in errors
    before = rows_of(db)
    resumed = bench("alignment", "--resume", run.name, "--db", str(db), "-q", "--jobs", "1",
                    PYTHONHASHSEED="3")  # fmt: skip
    assert resumed.returncode == 0, resumed.stderr
    after = rows_of(db)
    assert after == whole
    assert [row for row in after if row in before] == before
    assert Store(db).run(run.name).state == "finished"


def _some_done(db: Path) -> bool:
    try:
        runs = Store(db).runs()
    except OptionError:  # the file is just being made
        return False
    return bool(runs) and runs[-1].done > 0


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(stop=st.integers(0, 4), order=st.randoms(use_true_random=False))
def test_wherever_it_stops_and_in_whatever_order_results_come(
    tmp_path_factory, monkeypatch, stop, order
):
    """An executor that answers in another order and is interrupted after `stop` results."""
    given_ = arguments()
    usual = executors.results

    def disturbed(executor, command, tasks, jobs, *, fresh):
        tasks = list(tasks)
        order.shuffle(tasks)
        for count, one in enumerate(usual(executor, command, tasks, jobs, fresh=fresh)):
            if count == stop:
                raise KeyboardInterrupt
            yield one

    with monkeypatch.context() as patch:
        store = Store(tmp_path_factory.mktemp("db") / "r.duckdb")
        whole = store.rows(sweep.start(store, "alignment", given_, How()))
        patch.setattr(sweep, "results", disturbed)
        if stop < 4:
            with pytest.raises(KeyboardInterrupt):
                sweep.start(store, "alignment", given_, How())
            run = store.run("last")
            assert (run.state, run.done) == ("interrupted", stop)
        else:
            run = sweep.start(store, "alignment", given_, How())
        patch.setattr(sweep, "results", usual)
        assert store.rows(sweep.resume(store, run, How())) == whole


def test_rows_do_not_depend_on_the_executor(tmp_path):
    store = Store(tmp_path / "r.duckdb")
    one, two = (sweep.start(store, "alignment", arguments(), How(jobs=jobs)) for jobs in (1, 2))
    assert store.rows(one) == store.rows(two)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_rows_are_the_same_on_a_ray_cluster(tmp_path):
    store = Store(tmp_path / "r.duckdb")
    one, two = (
        sweep.start(store, "alignment", arguments(), How(executor=name))
        for name in ("local", "ray")
    )
    assert store.rows(one) == store.rows(two)


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_ray_that_is_not_installed_is_asked_for(tmp_path):
    with pytest.raises(OptionError, match="executor 'ray' is not installed"):
        sweep.start(Store(tmp_path / "r.duckdb"), "alignment", arguments(), How(executor="ray"))


def test_a_task_that_fails_does_not_take_the_others_along(tmp_path, monkeypatch):
    usual = executors.run_task

    def faulty(command, number, task):
        if number == 1:
            return number, Fault(number, "ZeroDivisionError: of this test")
        return usual(command, number, task)

    store = Store(tmp_path / "r.duckdb")
    with monkeypatch.context() as patch:
        patch.setattr(executors, "run_task", faulty)
        with pytest.raises(
            InternalError, match=r"1 of 4 tasks of alignment-1 failed.*of this test"
        ):
            sweep.start(store, "alignment", arguments(), How())
    run = store.run("last")
    assert (run.state, store.done(run)) == ("interrupted", {0, 2, 3})
    assert sweep.resume(store, run, How()).state == "finished"


def test_a_run_of_another_revision_is_not_mixed_with_this_one(tmp_path, monkeypatch):
    store = Store(tmp_path / "r.duckdb")
    run = store.begin("alignment", arguments(), tasks=4, revision="old", versions=sweep.versions())
    with pytest.raises(OptionError, match="revision old -> "):
        sweep.resume(store, run, How())


def test_a_run_that_is_complete_is_only_marked_so(tmp_path):
    store = Store(tmp_path / "r.duckdb")
    run = sweep.start(store, "alignment", arguments("16x64x64"), How())
    assert sweep.resume(store, run, How()) == run


def test_json_has_the_run_the_columns_and_the_rows(tmp_path):
    db = str(tmp_path / "r.duckdb")
    done = bench("extraction", str(ROOT / "tests/extract/graphs"), "--extractors", "tree",
                 "--db", db, "--json", "-")  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["run"]["name"] == "extraction-1"
    assert list(record["columns"]) == list(EXTRACTION.names)
    assert record["rows"] == rows_of(Path(db))
