"""Random programs through both lowerings: executed and compared, or refused with a stable code.

pypto-egg fuzz --count 5000
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pypto_egg import lower, optimize
from pypto_egg.bench.random_programs import sample
from pypto_egg.errors import LoweringError, PyptoEggError, VerificationError
from pypto_egg.interp import compare, entry_function, random_inputs
from pypto_egg.interp.run import Input
from pypto_egg.lowering import Lowering
from pypto_egg.report.table import Table, show
from pypto_egg.target.target import load_target
from pypto_egg.text import parse, print_program

# What a well-typed program may be refused for: no lowering (401), alignment (402), mixed store
# paths (403), element types (404), on-chip memory (501).
REFUSALS = ("E401", "E402", "E403", "E404", "E501")
EQUAL, FAILED = "equal", "failed"
# Programs that a worker takes at a time: enough to hide the cost of handing them over.
_CHUNK = 8


@dataclass(frozen=True)
class Case:
    """One program's fate: "equal", "failed" or the code of its refusal; and why, in words."""

    seed: int
    size: int
    target: str
    verdict: str
    words: str = ""

    @property
    def text(self) -> str:
        return sample(self.seed, self.size)


@dataclass(frozen=True)
class Summary:
    """What became of all programs.

    Args:
        verdicts: verdict -> number of programs.
        failures: the programs that computed something else, or ended in another exception.
        seconds: wall time of the run.
    """

    verdicts: Counter[str]
    failures: list[Case] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def count(self) -> int:
        return self.verdicts.total()

    def table(self) -> Table:
        """A row for each verdict: equal, the codes of refusals, failed."""
        codes = sorted(v for v in self.verdicts if v not in (EQUAL, FAILED))
        labels = {EQUAL: EQUAL, **{code: f"refused, {code}" for code in codes}, FAILED: FAILED}
        numbers = {verdict: self.verdicts[verdict] for verdict in labels}
        rows = [
            (labels[verdict], str(number), f"{100 * number / max(1, self.count):.1f} %")
            for verdict, number in numbers.items()
        ]
        return Table(("verdict", "programs", "share"), tuple(rows))


def fuzz(
    count: int,
    *,
    seed: int = 0,
    size: int = 5,
    targets: tuple[str, ...] = ("a2a3", "a5"),
    jobs: int = 1,
    console: Console | None = None,
) -> Summary:
    """The summary of `count` random programs from `seed` on, which take the targets in turns.

    The same arguments give the same programs and verdicts, whatever the number of jobs.

    Raises:
        OptionError: a target is not known.
    """
    started = time.perf_counter()
    for name in targets:
        load_target(name)
    one = partial(_one, size=size, targets=targets)
    seeds = range(seed, seed + count)
    summary = Summary(Counter())
    with _progress(count, console) as advance:
        for case in _cases(one, seeds, jobs):
            summary.verdicts[case.verdict] += 1
            if case.verdict == FAILED:
                summary.failures.append(case)
            advance(summary)
    return Summary(summary.verdicts, summary.failures, time.perf_counter() - started)


def report(summary: Summary, folder: Path, stream: TextIO) -> int:
    """The number of failures, after the summary was written and each failed program saved."""
    show(summary.table(), stream)
    for case in summary.failures:
        reason = case.words.splitlines()[0]
        stream.write(f"{save(case, folder)}: {reason:.200}\n")
    rate = summary.count / max(summary.seconds, 1e-9)
    stream.write(f"{summary.count} programs in {summary.seconds:.0f} s, {rate:.1f} a second\n")
    return len(summary.failures)


def save(case: Case, folder: Path) -> Path:
    """The file, newly written, that holds a failed program and what happened to it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"fuzz_{case.target}_{case.size}_{case.seed}.py"
    why = "".join(f"# {line}\n" for line in case.words.splitlines())
    head = f"# seed {case.seed}, size {case.size}, target {case.target}\n"
    path.write_text(head + why + case.text, encoding="utf-8")
    return path


def judge(text: str, target: str) -> tuple[str, str]:
    """Verdict on one program, and what led to it.

    Both lowerings must agree with the tensor program on random inputs, print to text that reads
    back, and not be dearer than the reference; what the reference lowers, `optimize` lowers.
    """
    try:
        return _judged(text, target)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of egglog is no Exception
        return FAILED, f"{type(error).__name__}: {error}"


def _judged(text: str, target: str) -> tuple[str, str]:
    try:
        best = optimize(text, target=target, verify=False)
    except LoweringError as error:
        return _refused(text, target, error)
    inputs = random_inputs(entry_function(best.source), program=best.source)
    for result in (best, best.baseline):
        if result is not None:
            _check(result, inputs)
    if best.baseline is not None and best.cycles > best.baseline.cycles * (1 + 1e-9):
        return FAILED, f"optimize: {best.cycles} cycles, reference: {best.baseline.cycles}"
    return EQUAL, ""


def _refused(text: str, target: str, error: LoweringError) -> tuple[str, str]:
    if error.code not in REFUSALS:
        return FAILED, str(error)
    try:
        lower(text, target=target, verify=False)
    except LoweringError:
        return error.code, error.message
    return FAILED, f"the reference lowers what optimize refuses: {error}"


def _check(result: Lowering, inputs: Mapping[str, Input]) -> None:
    """Raise unless the tile program computes what the tensor program does, and reads back."""
    comparison = compare(result.source, result.program, inputs)
    if not comparison.equal or not comparison.compared:
        raise VerificationError(f"{comparison}")
    if print_program(parse(result.text)) != result.text:
        raise PyptoEggError("the printed tile program does not read back as itself")


def _one(seed: int, size: int, targets: tuple[str, ...]) -> Case:
    target = targets[seed % len(targets)]
    verdict, words = judge(sample(seed, size), target)
    return Case(seed, size, target, verdict, words)


def _cases(one: partial[Case], seeds: range, jobs: int) -> Iterator[Case]:
    if jobs == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(one, seeds, chunksize=_CHUNK)


class _Advance:
    """Moves the bar, and shows how many programs were refused and failed."""

    def __init__(self, progress: Progress, count: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=count)

    def __call__(self, summary: Summary) -> None:
        failed = len(summary.failures)
        refused = summary.count - summary.verdicts[EQUAL] - failed
        words = f"{refused} refused, {failed} failed"
        self._progress.update(self._task, advance=1, description=words)


@contextmanager
def _progress(count: int, console: Console | None) -> Iterator[_Advance]:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    quiet = console is None
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        yield _Advance(progress, count)
