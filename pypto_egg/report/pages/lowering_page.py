"""One lowering as a page: programs, decisions, pipe timeline and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.extract.cost.model import PIPES
from pypto_egg.lowering import FunctionReport, Lowering
from pypto_egg.report.differences import boxes, differences
from pypto_egg.report.instructions import KernelSchedule, kernel_schedule
from pypto_egg.report.packing import packing_lines
from pypto_egg.report.pages.gantt import Gantt, gantt
from pypto_egg.report.pages.memory_map import MemoryMap, memory_map
from pypto_egg.report.pages.page import page
from pypto_egg.report.summary import NOTHING, verified
from pypto_egg.report.table import cost_table
from pypto_egg.report.words import SAME_CYCLES, cycles, fold_words, roofline_words, signed_cycles
from pypto_egg.text import print_program


@dataclass(frozen=True)
class Kernel:
    """One lowered function as the page shows it; `unscheduled` says why it has no schedule."""

    name: str
    search: str
    roofline: str
    changes: tuple[str, ...]
    padded: tuple[str, ...]
    decisions: tuple[OptionRow, ...]
    schedule: KernelSchedule | None
    unscheduled: str
    gantt: Gantt | None
    critical: str
    memory: MemoryMap


@dataclass(frozen=True)
class OptionRow:
    """One option of a decision; the difference is against the chosen one's cycles."""

    value: str
    what: str
    status: str
    total: float | None
    difference: str
    why: str


@dataclass(frozen=True)
class Part:
    """A part of a bar: a pipe's cycles and their share of the longest bar."""

    pipe: str
    cycles: float
    share: float


@dataclass(frozen=True)
class Bar:
    """Busy cycles of all pipes, one after the other."""

    name: str
    text: str
    parts: tuple[Part, ...]


def lowering_page(lowering: Lowering) -> str:
    """One HTML file that explains a lowering; the same bytes for the same input.

    Times of the search are left out, for they differ from run to run.
    """
    from pypto_egg.report.pages.highlight import highlighted

    changes = differences(lowering)
    baseline = lowering.baseline
    saved = baseline.cycles - lowering.cycles if baseline is not None else 0.0
    return page(
        "lowering.html.j2",
        f"{lowering.program.name or 'A program'} for {lowering.target}",
        lowering=lowering,
        fold=fold_words(lowering.functions[0].account.model) if lowering.functions else "",
        saved=saved if saved >= SAME_CYCLES else 0.0,
        difference=f"{signed_cycles(-saved)} cycles",
        verified=f"{verified(lowering)}.",
        notes=tuple(_notes(lowering)),
        bars=tuple(_bars(lowering)),
        costs=cost_table(lowering),
        before=highlighted(print_program(lowering.source)),
        after=highlighted(lowering.text),
        kernels=tuple(_kernel(lowering, r, changes.get(r.name, ())) for r in lowering.functions),
    )


def _notes(lowering: Lowering) -> Iterator[str]:
    if not lowering.functions:
        yield f"{NOTHING}."
    if lowering.fallback:
        yield f"This is the reference lowering: {lowering.fallback}."
    if lowering.baseline_refused:
        yield f"The reference lowering refuses this program: {lowering.baseline_refused}."
    yield from packing_lines(lowering)


def _bars(lowering: Lowering) -> Iterator[Bar]:
    costs = {"chosen": lowering.cost}
    if lowering.baseline is not None:
        costs["reference"] = lowering.baseline.cost
    longest = max(cost.total for cost in costs.values())
    for name, cost in costs.items() if longest > 0 else ():
        by_pipe = [(pipe, cost.by_pipe()[pipe]) for pipe in PIPES if cost.by_pipe()[pipe]]
        text = ", ".join(f"{pipe} {cycles(value)}" for pipe, value in by_pipe)
        yield Bar(name, text, tuple(Part(pipe, v, v / longest) for pipe, v in by_pipe))


def _kernel(lowering: Lowering, report: FunctionReport, changes: tuple[str, ...]) -> Kernel:
    account, saturation = report.account, report.saturation
    try:
        schedule, unscheduled = kernel_schedule(lowering, report), ""
    except (LoweringError, OptionError) as error:
        schedule, unscheduled = None, f"{error.code}: {error.message}"
    (kernel,) = (f for f in lowering.program.functions if f.name == report.name)
    return Kernel(
        name=report.name,
        search=(
            f"{cycles(report.cycles)} cycles. E-graph: {saturation.stop.value} after "
            f"{saturation.iterations} iterations with {saturation.nodes:,} e-nodes; extraction "
            f"{report.extraction} among {report.nodes:,} ways of making {report.classes:,} values."
        ),
        roofline=roofline_words(report),
        changes=changes,
        padded=boxes(account),
        decisions=tuple(_decisions(report)),
        schedule=schedule,
        unscheduled=unscheduled,
        gantt=gantt(schedule) if schedule is not None else None,
        critical=_critical(schedule) if schedule is not None else "",
        memory=memory_map(kernel, account.target),
    )


def _decisions(report: FunctionReport) -> Iterator[OptionRow]:
    for decision in report.decisions:
        chosen = next((o.total for o in decision.options if o.status == "chosen"), None)
        for option in decision.options:
            more = None
            if option.total is not None and chosen is not None and option.status != "chosen":
                more = option.total - chosen
            yield OptionRow(
                decision.value,
                option.what,
                option.status,
                option.total,
                signed_cycles(more) if more is not None else "",
                option.why,
            )


def _critical(schedule: KernelSchedule) -> str:
    """The queues of the critical path with their cycles, the longest first."""
    found = sorted(schedule.critical_cycles().items(), key=lambda pair: -pair[1])
    return ", ".join(f"{queue} {cycles(value)}" for queue, value in found if value)
