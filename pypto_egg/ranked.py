"""`k_best`: the cheapest lowerings of a program, one after another."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pypto_egg.account import Account
from pypto_egg.analysis.overlaps import Pairs
from pypto_egg.emit.emit import Emitted
from pypto_egg.equivalence import Verify, verified
from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.extract.cost.model import ZERO
from pypto_egg.extract.problem import Problem
from pypto_egg.extract.ranking import InOrder
from pypto_egg.extract.result import Selection
from pypto_egg.ir.program import Function, Program
from pypto_egg.lower_function import ROUNDS
from pypto_egg.lowering import FunctionReport, Lowering
from pypto_egg.pipeline import lower_program, optimize
from pypto_egg.text import print_function
from pypto_egg.trial import Trial, try_selection


def k_best(
    program: Program | str | Path, k: int, *, verify: Verify = "auto", **rest: Any
) -> tuple[Lowering, ...]:
    """The `k` cheapest lowerings of a program, the cheapest first; all if there are fewer.

    The first is that of `optimize`. All are different programs that fit on chip. Where whole
    versions of a function were compared, such as blockings, they are ways of the version that
    `optimize` took. L0 schedules that are dearer and take no less room are not among them.

    Args:
        program, verify, rest: as of `optimize`; `nz` is "keep".

    Raises:
        OptionError: `k` is no whole number above 0, `nz` is another, or the cost model simulates
            whole kernels, so that no sum over operations puts them in order.
        PyptoEggError: as `optimize`.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise OptionError(f"k is {k!r}; it must be a whole number above 0")
    if rest.get("nz", "keep") != "keep":
        raise OptionError(f"k_best takes nz='keep', not {rest['nz']!r}")
    best = optimize(program, verify=False, **rest)
    if any(report.account.model.objective == "simulated" for report in best.functions):
        raise OptionError(
            f"k_best: the cost model '{best.cost_model}' simulates whole kernels",
            hint="rank by another model; `Lowering.alternatives` compares single choices",
        )
    together = _cheapest_together([_Ranked(report) for report in best.functions])
    return tuple(verified(_with_kernels(best, made), verify) for made in islice(together, k))


@dataclass(frozen=True)
class _Kernel:
    """A function lowered in one way."""

    emitted: Emitted
    report: FunctionReport


class _Ranked:
    """The kernels of one function, the cheapest first, made when they are asked for."""

    def __init__(self, report: FunctionReport) -> None:
        self._made: list[_Kernel] = []
        self._rest = _in_order(report)

    def at(self, place: int) -> _Kernel | None:
        """The kernel at a place, from 0; None past the last."""
        self._made.extend(islice(self._rest, max(0, place + 1 - len(self._made))))
        return self._made[place] if place < len(self._made) else None


def _in_order(report: FunctionReport) -> Iterator[_Kernel]:
    """The kernels of a function that fit and differ in their text; first that of the report."""
    account = report.account
    first = _tried(account, account.selection)
    yield _Kernel(first.emitted, report)
    seen = {frozenset(account.selection.choice.values())}
    texts = {print_function(first.emitted.function)}
    problem = account.problem
    for _ in range(ROUNDS):
        for selection in _selections(account, problem):
            key = frozenset(selection.choice.values())
            if key in seen:
                continue
            seen.add(key)
            try:
                trial = _tried(account, selection)
            except LoweringError:
                continue  # it destroys a value: there is no such kernel
            if not trial.fits:
                problem = trial.ruled_out(problem)
                break
            text = print_function(trial.emitted.function)
            if text not in texts:
                texts.add(text)
                yield _Kernel(trial.emitted, _reported(report, selection, trial))
        else:
            return


def _selections(account: Account, problem: Problem) -> InOrder:
    model = account.model
    if model.objective != "bottleneck":
        return InOrder(problem)
    return InOrder(problem, objective="bottleneck", not_overlapped=model.not_overlapped)


def _tried(account: Account, selection: Selection) -> Trial:
    return try_selection(
        account.function, account.skeleton, account.graph, account.priced, selection.choice,
        account.target,
    )  # fmt: skip


def _reported(report: FunctionReport, selection: Selection, trial: Trial) -> FunctionReport:
    """The report of a kernel that was not chosen."""
    vectors = (report.account.priced.vectors[node] for node in selection.choice.values())
    return replace(
        report,
        cost=sum(vectors, ZERO),
        extraction=selection.status,
        bound=selection.bound,
        peak_bytes={space.value: peak.size_bytes for space, peak in trial.used.items()},
        account=replace(report.account, selection=selection),
        kernels=None,
    )


def _cheapest_together(ranked: Sequence[_Ranked]) -> Iterator[list[_Kernel]]:
    """One kernel of each function, all such choices, by the sum of their cycles."""
    places = (0,) * len(ranked)
    waiting: list[tuple[float, tuple[int, ...], list[_Kernel]]] = []
    met = set()

    def wait(places: tuple[int, ...]) -> None:
        made = [kernels.at(place) for kernels, place in zip(ranked, places, strict=True)]
        kernels = [kernel for kernel in made if kernel is not None]
        if places not in met and len(kernels) == len(made):
            met.add(places)
            cycles = sum(kernel.report.cycles for kernel in kernels)
            heapq.heappush(waiting, (cycles, places, kernels))

    wait(places)
    while waiting:
        _, places, kernels = heapq.heappop(waiting)
        yield kernels
        for at in range(len(places)):
            wait((*places[:at], places[at] + 1, *places[at + 1 :]))


def _with_kernels(best: Lowering, kernels: Sequence[_Kernel]) -> Lowering:
    """The program with these kernels in place of the chosen ones."""
    by_name = {kernel.report.name: kernel for kernel in kernels}

    def given(
        function: Function, _source: Program, _overlapping: Pairs
    ) -> tuple[Emitted, FunctionReport]:
        kernel = by_name[function.name]
        return kernel.emitted, kernel.report

    if not kernels:
        return best
    account = kernels[0].report.account
    made = lower_program(best.source, account.target, account.model, given)
    return replace(made, baseline=best.baseline, baseline_refused=best.baseline_refused)
