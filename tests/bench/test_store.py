"""Results in a file: what is written comes back, and a file that cannot be used is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypto_egg.bench import store as store_module
from pypto_egg.bench.schema import BOOL, FLOAT, INT, TABLES, TEXT, Row, Table
from pypto_egg.bench.store import Run, Store
from pypto_egg.errors import OptionError

VALUES = {
    TEXT: st.text(st.characters(exclude_categories=["Cs"])),
    INT: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.floats(allow_nan=False, allow_infinity=False),
    BOOL: st.booleans(),
}


@st.composite
def rows_of(draw: st.DrawFn, table: Table) -> list[Row]:
    one = st.fixed_dictionaries({c.name: st.none() | VALUES[c.type] for c in table.columns})
    return draw(st.lists(one, max_size=3))


def begun(store: Store, command: str = "extraction", tasks: int = 3) -> Run:
    return store.begin(command, {"of": [1, "x"]}, tasks=tasks, revision="r", versions={"a": "1"})


def row(table: Table, **values: object) -> Row:
    return {**dict.fromkeys(table.names), **values}


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_rows_come_back_as_they_were_in_the_order_of_the_tasks(tmp_path_factory, name, data):
    store = Store(tmp_path_factory.mktemp("db") / "r.duckdb")
    run = begun(store, name)
    tasks = [data.draw(rows_of(TABLES[name])) for _ in range(3)]
    order = data.draw(st.permutations(range(3)))
    for number in order:
        store.append(run, [(number, tasks[number])])
    found = store.rows(run)
    assert found == [row for rows in tasks for row in rows]
    assert [list(row) for row in found] == [list(TABLES[name].names)] * len(found)
    assert store.done(run) == {0, 1, 2}


def test_runs_are_numbered_by_command_and_found_by_name_beginning_and_last(tmp_path):
    store = Store(tmp_path / "new" / "r.duckdb")
    assert store.runs() == []
    names = [begun(store, command).name for command in ("models", "scaling", "models")]
    assert names == ["models-1", "scaling-1", "models-2"]
    assert [run.name for run in store.runs()] == names
    assert store.run("last").name == "models-2"
    assert store.run("sc").name == "scaling-1"
    with pytest.raises(OptionError, match="beginning of 2 runs: models-1, models-2"):
        store.run("models")
    with pytest.raises(OptionError, match="no run 'x'"):
        store.run("x")


def test_a_run_says_what_it_is_and_how_far_it_is(tmp_path):
    store = Store(tmp_path / "r.duckdb")
    run = begun(store, tasks=5)
    assert (run.state, run.tasks, run.done, run.rows) == ("running", 5, 0, 0)
    assert (run.arguments, run.revision, run.versions) == ({"of": [1, "x"]}, "r", {"a": "1"})
    store.append(run, [(3, [row(TABLES["extraction"], graph="g")] * 2)])
    run = store.set_state(run, "finished")
    assert (run.state, run.done, run.rows) == ("finished", 1, 2)
    assert run.ended is not None
    assert run.ended >= run.started


def test_a_task_that_is_done_is_not_written_twice(tmp_path):
    store = Store(tmp_path / "r.duckdb")
    run, table = begun(store), TABLES["extraction"]
    store.append(run, [(0, [row(table, graph="first")])])
    store.append(run, [(0, [row(table, graph="second")]), (1, [])])
    assert [found["graph"] for found in store.rows(run)] == ["first"]
    assert store.done(run) == {0, 1}


def test_a_deleted_run_takes_its_rows_along(tmp_path):
    store = Store(tmp_path / "r.duckdb")
    gone, kept = begun(store), begun(store)
    for run in (gone, kept):
        store.append(run, [(0, [row(TABLES["extraction"], graph=run.name)])])
    store.delete(gone)
    assert [run.name for run in store.runs()] == [kept.name]
    assert [found["graph"] for found in store.rows(kept)] == [kept.name]
    assert begun(store).name == "extraction-3"


def test_a_file_of_something_else_is_refused(tmp_path):
    text = tmp_path / "text.duckdb"
    text.write_text("not a database " * 1000)
    other = tmp_path / "other.duckdb"
    with duckdb.connect(str(other)) as db:
        db.execute("CREATE TABLE mine (a INTEGER)")
    for path, words in (
        (text, "not a valid DuckDB database file"),
        (other, "not one of pypto-egg's results"),
        (tmp_path, "directory"),
    ):
        for use in (lambda store: store.runs(), begun):
            with pytest.raises(OptionError, match=words):
                use(Store(path))
    with duckdb.connect(str(other)) as db:
        assert db.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("mine",)]


def test_a_file_of_another_form_is_refused(tmp_path):
    store = Store(tmp_path / "r.duckdb")
    begun(store)
    with duckdb.connect(str(store.path)) as db:
        db.execute("UPDATE pypto_egg_bench SET version = 99")
    with pytest.raises(OptionError, match=r"form 99; this pypto-egg has form \d"):
        store.runs()


HOLD = """
import duckdb, sys
held = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_file_that_another_process_holds_is_waited_for_then_refused(tmp_path, monkeypatch):
    store = Store(tmp_path / "r.duckdb")
    begun(store)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    monkeypatch.setattr(store_module, "_LOCK_SECONDS", 0.2)
    with pytest.raises(OptionError, match="in use by another process"):
        store.runs()
    monkeypatch.setattr(store_module, "_LOCK_SECONDS", 60.0)
    holder.stdin.close()
    assert len(store.runs()) == 1
    holder.wait()


def test_the_usual_file_is_in_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PYPTO_EGG_BENCH", raising=False)
    assert tmp_path in Store().path.parents or not sys.platform.startswith("linux")
    monkeypatch.setenv("PYPTO_EGG_BENCH", str(tmp_path / "mine.duckdb"))
    assert Store().path == Path(tmp_path / "mine.duckdb")
