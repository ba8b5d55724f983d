"""Where tasks run: in this process, in processes of this machine, or on a Ray cluster.

Each executor yields (number, rows) of complete tasks in the order in which they end; what the rows
are depends on the task alone.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from multiprocessing import connection, get_context, parent_process
from typing import Any

from pypto_egg.bench.schema import Row
from pypto_egg.errors import OptionError

Task = Mapping[str, Any]
"""What one task is about, in values that JSON has."""

EXECUTORS = ("local", "ray")
# Tasks that are handed out for each worker: one that it works on and one that waits.
_IN_FLIGHT = 2


@dataclass(frozen=True)
class Fault:
    """A task that ended in an exception which nothing in the input accounts for."""

    number: int
    words: str


Result = tuple[int, list[Row] | Fault]


def run_task(command: str, number: int, task: Task) -> Result:
    """The rows of a task of a command, whose module has a function `rows`."""
    try:
        return number, import_module(f"pypto_egg.bench.{command}").rows(task)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of egglog is no Exception
        return number, Fault(number, f"{type(error).__name__}: {error}")


def results(
    executor: str, command: str, tasks: list[tuple[int, Task]], jobs: int, *, fresh: bool
) -> Iterator[Result]:
    """The results of numbered tasks.

    Args:
        jobs: worker processes on this machine; "ray" takes as many as its cluster has cores.
        fresh: every task gets a process of its own, one after the other, so that it can measure
            itself.

    Raises:
        OptionError: there is no such executor, or it is not installed.
    """
    if executor == "ray":
        return _ray(command, tasks)
    if executor != "local":
        raise OptionError(
            f"no executor '{executor}'", hint=f"the executors are: {', '.join(EXECUTORS)}"
        )
    if fresh:
        return _processes(command, tasks, 1, tasks_per_process=1)
    if min(jobs, len(tasks)) <= 1:
        return (run_task(command, number, task) for number, task in tasks)
    return _processes(command, tasks, min(jobs, len(tasks)))


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processes(
    command: str, tasks: Iterable[tuple[int, Task]], jobs: int, tasks_per_process: int | None = None
) -> Iterator[Result]:
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=get_context("spawn"),
        initializer=_as_worker,
        max_tasks_per_child=tasks_per_process,
    )
    waiting, running = iter(tasks), set[Future[Result]]()
    try:
        while True:
            for number, task in islice(waiting, _IN_FLIGHT * jobs - len(running)):
                running.add(pool.submit(run_task, command, number, task))
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in ended)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _as_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _ray(command: str, tasks: Iterable[tuple[int, Task]]) -> Iterator[Result]:
    try:
        import ray
    except ImportError:
        raise OptionError(
            "executor 'ray' is not installed", hint="pip install 'pypto-egg[ray]'"
        ) from None
    started = not ray.is_initialized()
    if started:
        # RAY_ADDRESS names a cluster; without it one is made of this machine.
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    remote = ray.remote(run_task)
    waiting, running = iter(tasks), list[Any]()
    try:
        while True:
            room = _IN_FLIGHT * max(1, int(ray.cluster_resources().get("CPU", 1)))
            for number, task in islice(waiting, max(0, room - len(running))):
                running.append(remote.remote(command, number, dict(task)))
            if not running:
                return
            ended, running = ray.wait(running)
            yield from ray.get(ended)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        if started:
            ray.shutdown()
