"""The instructions of a lowered kernel as the `schedule` model times them, and what held up each.

The walk back from the last instruction, always to the one that was waited for, is the critical
path: to make the kernel shorter, something on it has to become shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_egg.extract.cost.schedule import Schedule
from pypto_egg.extract.cost.simulate import kernel_of, record
from pypto_egg.extract.cost.timeline import Event
from pypto_egg.extract.cost.timing import QUEUES, timing
from pypto_egg.extract.cost.trace import Kind, Multiply, OpStep, SideOperands, ToL0, Trace
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.lowering import FunctionReport, Lowering
from pypto_egg.report.words import tile_words

CONSTANTS = "device"
"""The durations that are used unless the lowering was priced by other ones of `schedule`."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction on the timeline, in cycles from the kernel's launch.

    Args:
        what: the operation and the tile that it makes, reads or moves.
        waited_for: the number of the instruction at whose end this one could start; None if it
            started at once.
    """

    queue: str
    op: str
    what: str
    start: float
    end: float
    waited_for: int | None

    @property
    def cycles(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class KernelSchedule:
    """A kernel's instructions in program order, timed.

    Args:
        constants: the durations that were used, by their name in `schedule`.
        launch_cycles: cycles before the first instruction.
        busy: cycles in which each queue works.
        critical: the numbers of the instructions on the critical path, in order of time.
        assumed: what the simulation took for granted, one line each.
    """

    name: str
    constants: str
    total_cycles: float
    launch_cycles: float
    busy: Mapping[str, float]
    instructions: tuple[Instruction, ...]
    critical: tuple[int, ...]
    assumed: tuple[str, ...]

    def critical_cycles(self) -> dict[str, float]:
        """Queue -> cycles of its instructions on the critical path; their sum and the launch are
        the kernel's total."""
        found = dict.fromkeys(QUEUES, 0.0)
        for number in self.critical:
            found[self.instructions[number].queue] += self.instructions[number].cycles
        return found


def kernel_schedule(lowering: Lowering, report: FunctionReport) -> KernelSchedule:
    """The timed instructions of one lowered function, on one core.

    Raises:
        LoweringError: the function has operations that cannot be simulated.
        OptionError: it runs too many instructions.
    """
    account = report.account
    constants = account.model.constants if isinstance(account.model, Schedule) else CONSTANTS
    durations = timing(constants, account.target)
    trace = record(kernel_of(lowering.program, report.name), account.target, durations)
    timeline = trace.timeline(durations)
    held_up = _held_up(trace, timeline.events)
    words = [instruction_words(kind) for kind in trace.kinds]
    made = tuple(
        Instruction(event.queue, event.name, words[kind], event.start, event.end, other)
        for event, kind, other in zip(timeline.events, trace.kind_of, held_up, strict=True)
    )
    launch = durations.launch_cycles + durations.binding_cycles * trace.buffers_bound
    return KernelSchedule(
        report.name,
        constants,
        timeline.total_cycles,
        launch,
        timeline.busy,
        made,
        _critical_path(made),
        timeline.assumed,
    )


def instruction_words(kind: Kind) -> str:
    """An instruction in words: "tile.load: Mat [16, 256] BF16"."""
    work = kind.work
    match work:
        case OpStep(op=op):
            shown = next((t for t in (op.result, *op.operands) if isinstance(t, TileType)), None)
            if isinstance(op.result, TensorType) and op.operands:
                shown = op.operands[0] if isinstance(op.operands[0], TileType) else shown
            return f"{kind.name}: {tile_words(shown)}" if shown is not None else kind.name
        case ToL0():
            goal = work.goal.value
            return f"{kind.name}: [{work.rows}, {work.cols}] {work.dtype.name} to {goal}"
        case Multiply():
            batch = f"{work.batch} times " if work.batch > 1 else ""
            sizes = f"[{work.m}, {work.k}] @ [{work.k}, {work.n}]"
            return f"{kind.name}: {batch}{sizes} {work.lhs.name}"
        case SideOperands():
            return f"{kind.name}: bias and scales from Mat"


def _held_up(trace: Trace, events: tuple[Event, ...]) -> list[int | None]:
    """For each instruction the one that ended last of those that it waited for.

    The one before it in its queue counts; of several that ended together an operand's does.
    """
    before: dict[str, int] = {}
    found: list[int | None] = []
    for number, (event, waits) in enumerate(zip(events, trace.waits_for, strict=True)):
        others = sorted(waits)
        if event.queue in before:
            others.append(before[event.queue])
        found.append(max(others, key=lambda other: events[other].end, default=None))
        before[event.queue] = number
    return found


def _critical_path(instructions: tuple[Instruction, ...]) -> tuple[int, ...]:
    last = max(range(len(instructions)), key=lambda n: instructions[n].end, default=None)
    path: list[int] = []
    while last is not None:
        path.append(last)
        last = instructions[last].waited_for
    return tuple(reversed(path))
