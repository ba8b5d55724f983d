"""A run of a bench command: its tasks on an executor, their rows in the store, to the end.

A command is a module of this package with three functions: `tasks(arguments)` lists what is to be
done, `rows(task)` does one of it, and `summary(rows)` makes tables of what came out. Both the list
and the rows depend on nothing but the arguments, so an interrupted run goes on where it stopped and
ends with the rows of a run that was never interrupted.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from pypto_egg.bench.executors import Fault, Result, Task, results
from pypto_egg.bench.provenance import revision, versions
from pypto_egg.bench.schema import Row
from pypto_egg.bench.store import Run, Store
from pypto_egg.errors import InternalError, OptionError

if TYPE_CHECKING:
    from rich.console import Console

# Results are written when this time has passed since the last ones were.
_FLUSH_SECONDS = 0.5


@dataclass(frozen=True)
class How:
    """How the tasks of a run are executed; none of it changes a row.

    Args:
        jobs: worker processes of the local executor.
        console: where progress is drawn; None for nowhere.
    """

    executor: str = "local"
    jobs: int = 1
    console: Console | None = None


def start(store: Store, command: str, arguments: Mapping[str, Any], how: How) -> Run:
    """A new run of a command, finished.

    Raises:
        KeyboardInterrupt: it was interrupted; all complete tasks are in the store.
        InternalError: a task failed; all others are in the store.
    """
    tasks = _tasks(command, arguments)
    if not tasks:
        raise OptionError(f"bench {command}: nothing to do with these options")
    run = store.begin(
        command, arguments, tasks=len(tasks), revision=revision(), versions=versions()
    )
    return _go_on(store, run, tasks, how)


def resume(store: Store, run: Run, how: How) -> Run:
    """The run, finished: the tasks that it lacks are done now; exceptions as `start`.

    Raises:
        OptionError: pypto-egg or what it uses has changed since, so the rows would not be of
            one kind.
    """
    if run.done == run.tasks:
        return run if run.state == "finished" else store.set_state(run, "finished")
    changed = [
        f"{name} {run.versions.get(name)} -> {now}"
        for name, now in versions().items()
        if run.versions.get(name) != now
    ]
    if run.revision != revision():
        changed.insert(0, f"revision {run.revision} -> {revision()}")
    if changed:
        raise OptionError(
            f"{run.name} cannot be resumed, because this is not what it began with: "
            + ", ".join(changed),
            hint="start it anew",
        )
    tasks = _tasks(run.command, run.arguments)
    if len(tasks) != run.tasks:
        raise OptionError(f"{run.name} cannot be resumed: it has {run.tasks} tasks, not these")
    return _go_on(store, run, tasks, how)


def _tasks(command: str, arguments: Mapping[str, Any]) -> list[Task]:
    found: list[Task] = import_module(f"pypto_egg.bench.{command}").tasks(arguments)
    return found


def _go_on(store: Store, run: Run, tasks: list[Task], how: How) -> Run:
    done = store.done(run)
    left = [(number, task) for number, task in enumerate(tasks) if number not in done]
    fresh = bool(getattr(import_module(f"pypto_egg.bench.{run.command}"), "FRESH", False))
    faults: list[Fault] = []
    run = store.set_state(run, "running")
    try:
        with Interrupts() as interrupts, _progress(run, how.console) as advance:
            found = results(how.executor, run.command, left, how.jobs, fresh=fresh)
            with closing(_written(store, run, found, interrupts)) as written:
                for rows in written:
                    if isinstance(rows, Fault):
                        faults.append(rows)
                    advance()
    except KeyboardInterrupt:
        store.set_state(run, "interrupted")
        raise
    if faults:
        store.set_state(run, "interrupted")
        first = min(faults, key=lambda fault: fault.number)
        raise InternalError(
            f"{len(faults)} of {len(tasks)} tasks of {run.name} failed; the first, "
            f"{tasks[first.number]}: {first.words}"
        )
    return store.set_state(run, "finished")


def _written(
    store: Store, run: Run, found: Iterator[Result], interrupts: Interrupts
) -> Generator[list[Row] | Fault, None, None]:
    """The results, written from time to time, and also when this ends before its time."""
    held: list[tuple[int, list[Row]]] = []

    def write() -> None:
        with interrupts.put_off():
            store.append(run, held)
            held.clear()

    last = time.monotonic()
    try:
        for number, rows in found:
            if not isinstance(rows, Fault):
                held.append((number, rows))
            if time.monotonic() - last > _FLUSH_SECONDS:
                write()
                last = time.monotonic()
            yield rows
    finally:
        write()


class Interrupts:
    """Ctrl-C and the end that a batch system asks for (SIGTERM), as KeyboardInterrupt.

    Outside the main thread, where signals cannot be handled, it does nothing.
    """

    def __init__(self) -> None:
        self._late = False
        self._waits = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """What is done here is not interrupted; afterwards the interrupt that came is raised."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        if self._late:
            self._late = False
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._waits:
            raise KeyboardInterrupt
        self._late = True


class _Advance:
    """Moves the bar by one task."""

    def __init__(self, bar: Any, done: int, total: int) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=total, completed=done)

    def __call__(self) -> None:
        self._bar.update(self._task, advance=1)


@contextmanager
def _progress(run: Run, console: Console | None) -> Iterator[_Advance]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(run.name),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    quiet = console is None or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        yield _Advance(bar, run.done, run.tasks)
