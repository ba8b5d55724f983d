"""A kernel's schedule as lanes of marks, one lane for each queue that works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pypto_egg.extract.cost.timing import QUEUES
from pypto_egg.report.instructions import Instruction, KernelSchedule
from pypto_egg.report.pages.axis import Tick, ticks

_RESOLUTION = 1500
"""Marks that a lane can show side by side; shorter instructions are drawn together."""


@dataclass(frozen=True)
class Mark:
    """A bar on a lane: where it starts and how long it is (shares of the width), what it says."""

    start: float
    width: float
    text: str


@dataclass(frozen=True)
class Lane:
    """One queue.

    Args:
        busy: share of the time in which the queue works.
        critical: marks of the instructions on the critical path.
    """

    queue: str
    busy: float
    marks: tuple[Mark, ...]
    critical: tuple[Mark, ...]


@dataclass(frozen=True)
class Gantt:
    """A drawing of a schedule, from the first instruction to the end of the last."""

    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]


def gantt(schedule: KernelSchedule) -> Gantt:
    """The lanes of a schedule, those of queues that never work left out."""
    whole = schedule.total_cycles - schedule.launch_cycles
    critical = set(schedule.critical)
    lanes = []
    for queue in QUEUES:
        numbers = [n for n, one in enumerate(schedule.instructions) if one.queue == queue]
        if not numbers or whole <= 0:
            continue
        own = [schedule.instructions[n] for n in numbers]
        path = [schedule.instructions[n] for n in numbers if n in critical]
        marks, bold = (_marks(some, schedule.launch_cycles, whole) for some in (own, path))
        lanes.append(Lane(queue, schedule.busy[queue] / whole, marks, bold))
    return Gantt(tuple(lanes), ticks(whole))


def _marks(own: Sequence[Instruction], launch: float, whole: float) -> tuple[Mark, ...]:
    return tuple(
        Mark((group[0].start - launch) / whole, (group[-1].end - group[0].start) / whole, text)
        for group in _together(own, whole / _RESOLUTION)
        if (text := _text(group, launch))
    )


def _together(own: Sequence[Instruction], least: float) -> Iterator[list[Instruction]]:
    """Instructions that follow each other and are too short and too close to be told apart."""
    group: list[Instruction] = []
    for one in own:
        if group and (one.end - group[0].start > least or group[0].cycles > least):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _text(group: list[Instruction], launch: float) -> str:
    start, end = group[0].start - launch, group[-1].end - launch
    when = f"{start:,.0f} to {end:,.0f}"
    if len(group) == 1:
        return f"{group[0].what}\n{group[0].cycles:,.0f} cycles, {when}"
    busy = sum(one.cycles for one in group)
    ops = ", ".join(dict.fromkeys(one.op for one in group))
    return f"{len(group)} instructions: {ops}\n{busy:,.0f} cycles busy, {when}"
