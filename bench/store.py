"""Results in a DuckDB file: runs, and for each the rows of its tasks.

    store = Store()                       # the user's own file; Store("mine.duckdb") for another
    run = store.run("last")               # a Run: command, arguments, state, revision, versions
    for row in store.rows(run):           # a dict by the columns of bench/schema.py, in order
        print(row["workload"], row["cycles"])

A table of the file is named after its command (`alignment`, `models`, ...) and has the columns of
`schema.TABLES` behind `run`, `task` and `place`; `runs` tells where they come from; `done` which
tasks are complete. The file is open only while something is read or written, so that a report can
be made while a sweep is running. A task's rows and its mark in `done` are one transaction.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pypto_egg.bench.schema import TABLES, VERSION, Row, Table
from pypto_egg.errors import InternalError, OptionError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

State = Literal["running", "interrupted", "finished"]
LAST = "last"
"""The name that stands for the newest run."""
_LOCK_SECONDS = 10.0
_RETRY_SECONDS = 0.05
_NO_SUCH_RUN = "`pypto-egg bench runs` lists them"


@dataclass(frozen=True)
class Run:
    """One call of a bench command.

    Args:
        name: the command and a number: "alignment-3".
        arguments: everything that the tasks follow from; what `--resume` starts from.
        tasks: how many there are; `done` says how many of them are complete.
        state: "running" also when the process was killed.
        started: UTC.
        revision: of pypto-egg: git's, with "+" for changed files, or the version.
        versions: of what results depend on.
        rows: how many rows there are so far.
    """

    name: str
    command: str
    arguments: Mapping[str, Any]
    tasks: int
    state: State
    started: datetime
    ended: datetime | None
    revision: str
    versions: Mapping[str, str]
    done: int
    rows: int


class Store:
    """The results in one file.

    Args:
        path: of the DuckDB file; None for the usual one (`default_path`).
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()

    # --- reading -------------------------------------------------------------------------------

    def runs(self) -> list[Run]:
        """All runs, oldest first; none if the file is not there yet."""
        if not self.path.exists():
            return []
        with self._reading() as db:
            return _runs(db)

    def run(self, name: str) -> Run:
        """The run of that name; "last" is the newest, and the beginning of one name will do.

        Raises:
            OptionError: there is none, or more than one name begins so.
        """
        runs = self.runs()
        if name == LAST and runs:
            return runs[-1]
        found = [run for run in runs if run.name == name]
        found = found or [run for run in runs if name and run.name.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise OptionError(
                f"'{name}' is the beginning of {len(found)} runs: "
                + ", ".join(run.name for run in found),
                hint="write the whole name",
            )
        raise OptionError(f"there is no run '{name}' in {self.path}", hint=_NO_SUCH_RUN)

    def rows(self, run: Run) -> list[Row]:
        """The rows of a run, in the order of its tasks, whatever the order they ended in."""
        table = TABLES[run.command]
        columns = ", ".join(f'"{name}"' for name in table.names)
        query = f'SELECT {columns} FROM "{table.name}" WHERE run = ? ORDER BY task, place'
        with self._reading() as db:
            found = db.execute(query, [run.name]).fetchall()
        return [dict(zip(table.names, values, strict=True)) for values in found]

    def done(self, run: Run) -> set[int]:
        """The numbers of the tasks whose rows are complete."""
        with self._reading() as db:
            found = db.execute("SELECT task FROM done WHERE run = ?", [run.name]).fetchall()
        return {task for (task,) in found}

    # --- writing -------------------------------------------------------------------------------

    def begin(
        self,
        command: str,
        arguments: Mapping[str, Any],
        *,
        tasks: int,
        revision: str,
        versions: Mapping[str, str],
    ) -> Run:
        """A new run of a command, with no rows yet."""
        with self._writing() as db:
            numbers = db.execute("SELECT name FROM runs WHERE command = ?", [command]).fetchall()
            number = 1 + max((int(name.rpartition("-")[2]) for (name,) in numbers), default=0)
            name = f"{command}-{number}"
            now = datetime.now(UTC).replace(tzinfo=None)
            db.execute(
                "INSERT INTO runs VALUES (nextval('run_order'), ?, ?, ?, ?, ?, ?, NULL, ?, ?)",
                [name, command, json.dumps(arguments), tasks, "running", now, revision,
                 json.dumps(versions)],
            )  # fmt: skip
        return self.run(name)

    def append(self, run: Run, results: Iterable[tuple[int, list[Row]]]) -> None:
        """Write the rows of complete tasks, all or none; a task that is done already is left."""
        table = TABLES[run.command]
        with self._writing() as db:
            known = db.execute("SELECT task FROM done WHERE run = ?", [run.name]).fetchall()
            complete = {task for (task,) in known}
            for task, rows in results:
                if task in complete:
                    continue
                complete.add(task)
                db.execute("INSERT INTO done VALUES (?, ?)", [run.name, task])
                _insert(db, table, run.name, task, rows)

    def set_state(self, run: Run, state: State) -> Run:
        """The run, now in another state."""
        ended = datetime.now(UTC).replace(tzinfo=None) if state == "finished" else None
        with self._writing() as db:
            db.execute(
                "UPDATE runs SET state = ?, ended = ? WHERE name = ?", [state, ended, run.name]
            )
        return self.run(run.name)

    def delete(self, run: Run) -> None:
        """Remove a run and its rows."""
        with self._writing() as db:
            for name in ("done", run.command):
                db.execute(f'DELETE FROM "{name}" WHERE run = ?', [run.name])
            db.execute("DELETE FROM runs WHERE name = ?", [run.name])

    # --- the file ------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[DuckDBPyConnection]:
        with self._connected(read_only=True) as db:
            self._check(db)
            yield db

    @contextmanager
    def _writing(self) -> Iterator[DuckDBPyConnection]:
        """One transaction on the file, which is made if it is not there."""
        new = not self.path.exists()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(f"cannot make {self.path.parent}: {error.strerror}") from None
        with self._connected(read_only=False) as db:
            if new or not _tables(db):
                _create(db)
            self._check(db)
            db.begin()
            yield db
            db.commit()

    @contextmanager
    def _connected(self, *, read_only: bool) -> Iterator[DuckDBPyConnection]:
        import duckdb

        give_up = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                db = duckdb.connect(str(self.path), read_only=read_only)
                break
            except duckdb.Error as error:
                locked = "Could not set lock" in str(error)
                if not locked or time.monotonic() > give_up:
                    raise self._refused(error, locked) from None
                time.sleep(_RETRY_SECONDS)
        try:
            yield db
        except duckdb.Error as error:
            raise self._refused(error, locked=False) from error
        finally:
            db.close()

    def _refused(self, error: Exception, locked: bool) -> OptionError:
        words = str(error).splitlines()[0].removeprefix("IO Error: ")
        if locked:
            return OptionError(
                f"{self.path} is in use by another process: {words}",
                hint="close the other program, or give another file with --db",
            )
        return OptionError(
            f"cannot use {self.path} for results: {words}",
            hint="give another file with --db; one that is not there is made",
        )

    def _check(self, db: DuckDBPyConnection) -> None:
        """Refuse a database that is not of this form."""
        other = OptionError(
            f"{self.path} is a DuckDB file, but not one of pypto-egg's results",
            hint="give another file with --db; one that is not there is made",
        )
        if "pypto_egg_bench" not in _tables(db):
            raise other
        found = db.execute("SELECT version FROM pypto_egg_bench").fetchall()
        if len(found) != 1:
            raise other
        if found[0][0] != VERSION:
            raise OptionError(
                f"{self.path} has results of form {found[0][0]}; this pypto-egg has form {VERSION}",
                hint="use the version of pypto-egg that wrote it, or another file with --db",
            )


def default_path() -> Path:
    """The file that results go to unless another one is named.

    That is what PYPTO_EGG_BENCH names, else a file in the user's cache folder.
    """
    from platformdirs import user_cache_path

    named = os.environ.get("PYPTO_EGG_BENCH")
    return Path(named) if named else user_cache_path("pypto-egg") / "bench.duckdb"


def _tables(db: DuckDBPyConnection) -> set[str]:
    return {name for (name,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


def _create(db: DuckDBPyConnection) -> None:
    db.begin()
    db.execute("CREATE TABLE pypto_egg_bench (version INTEGER)")
    db.execute("INSERT INTO pypto_egg_bench VALUES (?)", [VERSION])
    db.execute("CREATE SEQUENCE run_order")
    db.execute(
        "CREATE TABLE runs (number BIGINT, name VARCHAR PRIMARY KEY, command VARCHAR, "
        "arguments VARCHAR, tasks BIGINT, state VARCHAR, started TIMESTAMP, ended TIMESTAMP, "
        "revision VARCHAR, versions VARCHAR)"
    )
    db.execute("CREATE TABLE done (run VARCHAR, task BIGINT, PRIMARY KEY (run, task))")
    for table in TABLES.values():
        columns = "".join(f', "{column.name}" {column.type}' for column in table.columns)
        db.execute(f'CREATE TABLE "{table.name}" (run VARCHAR, task BIGINT, place BIGINT{columns})')
    db.commit()


def _runs(db: DuckDBPyConnection) -> list[Run]:
    rows = " UNION ALL ".join(f'SELECT run, count(*) AS n FROM "{t}" GROUP BY run' for t in TABLES)
    found = db.execute(
        "SELECT name, command, arguments, tasks, state, started, ended, revision, versions, "
        "(SELECT count(*) FROM done WHERE done.run = name), coalesce(n, 0) "
        f"FROM runs LEFT JOIN ({rows}) ON run = name ORDER BY number"
    ).fetchall()
    return [
        Run(name, command, json.loads(arguments), tasks, state, started, ended, revision,
            json.loads(versions), done, count)
        for name, command, arguments, tasks, state, started, ended, revision, versions, done, count
        in found
    ]  # fmt: skip


def _insert(db: DuckDBPyConnection, table: Table, run: str, task: int, rows: list[Row]) -> None:
    """Rows go in as one JSON text: floats keep all their digits in it, and it is fast."""
    if not rows:
        return
    for row in rows:
        if row.keys() != set(table.names):
            raise InternalError(f"a row of '{table.name}' has columns {sorted(row)}")
    form = json.dumps([{column.name: column.type for column in table.columns}])
    text = json.dumps(rows, allow_nan=False)
    columns = ", ".join(f'r."{name}"' for name in table.names)
    db.execute(
        f'INSERT INTO "{table.name}" SELECT ?, ?, place, {columns} FROM (SELECT '
        "unnest(parsed) AS r, generate_subscripts(parsed, 1) AS place FROM (SELECT "
        "from_json(?, ?) AS parsed))",
        [run, task, text, form],
    )
