"""A lowering's simulated schedule in the Trace Event Format of Chrome and Perfetto.

One process for each kernel, one thread for each queue; the format counts microseconds, and one of
them stands for one cycle. Arrows lead from an instruction to those that could start at its end.

Importers count whole nanoseconds and drop slices that overlap by one, so times are rounded to
eighths of a cycle: 125 ns, and exact in binary and in decimal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pypto_egg import __version__
from pypto_egg.extract.cost.timing import QUEUES
from pypto_egg.lowering import Lowering
from pypto_egg.report.instructions import Instruction, KernelSchedule, kernel_schedule

_MOST = 1 << 32
"""More than the instructions of a kernel: ids of arrows are whole numbers, as importers want."""
TIME_UNIT = "1 us in this file is 1 cycle of the AI-core clock"


def trace_record(lowering: Lowering) -> dict[str, Any]:
    """Dicts, lists, strings and numbers: the trace of every lowered function, for JSON.

    Raises:
        LoweringError: a function has operations that cannot be simulated.
        OptionError: a function runs too many instructions.
    """
    events: list[dict[str, Any]] = []
    kernels: dict[str, Any] = {}
    clock = 0.0
    for process, report in enumerate(lowering.functions, start=1):
        schedule = kernel_schedule(lowering, report)
        clock = report.account.target.clock.hz
        events += _names(process, schedule, lowering.target)
        events += _instructions(process, schedule)
        events += _arrows(process, schedule)
        kernels[schedule.name] = {
            "total_cycles": schedule.total_cycles,
            "launch_cycles": schedule.launch_cycles,
            "constants": schedule.constants,
            "assumed": list(schedule.assumed),
        }
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "generator": f"pypto-egg {__version__}",
            "time_unit": TIME_UNIT,
            "target": lowering.target,
            "clock_hz": clock or None,
            "program": lowering.program.name,
            "kernels": kernels,
        },
    }


def _names(process: int, schedule: KernelSchedule, target: str) -> Iterator[dict[str, Any]]:
    def named(what: str, thread: int, args: dict[str, Any]) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": args}

    title = f"{schedule.name} on {target} ({schedule.constants} constants; 1 us = 1 cycle)"
    yield named("process_name", 0, {"name": title})
    yield named("process_sort_index", 0, {"sort_index": process})
    for thread, queue in enumerate(QUEUES, start=1):
        yield named("thread_name", thread, {"name": queue})
        yield named("thread_sort_index", thread, {"sort_index": thread})


def _eighths(cycles: float) -> int:
    return round(cycles * 8)


def _thread(instruction: Instruction) -> int:
    return QUEUES.index(instruction.queue) + 1


def _instructions(process: int, schedule: KernelSchedule) -> Iterator[dict[str, Any]]:
    critical = set(schedule.critical)
    for number, one in enumerate(schedule.instructions):
        other = one.waited_for
        yield {
            "ph": "X",
            "name": one.op,
            "cat": one.queue,
            "pid": process,
            "tid": _thread(one),
            "ts": _eighths(one.start) / 8,
            "dur": (_eighths(one.end) - _eighths(one.start)) / 8,
            "args": {
                "instruction": number,
                "what": one.what,
                "cycles": one.cycles,
                "waited_for": other,
                "critical": number in critical,
            },
        }


def _arrows(process: int, schedule: KernelSchedule) -> Iterator[dict[str, Any]]:
    """A pair of flow events for each wait for another queue.

    A flow is bound to the slice that its time lies in, so it starts in the middle of one.
    """
    for number, one in enumerate(schedule.instructions):
        other = schedule.instructions[one.waited_for] if one.waited_for is not None else None
        if other is None or other.queue == one.queue:
            continue
        starts, ends = _eighths(other.start), _eighths(other.end)
        if starts == ends or _eighths(one.start) == _eighths(one.end):
            continue
        shared = {"name": "waits", "cat": "waits", "id": process * _MOST + number, "pid": process}
        middle, begin = (starts + ends) // 2 / 8, _eighths(one.start) / 8
        yield {"ph": "s", **shared, "tid": _thread(other), "ts": middle}
        yield {"ph": "f", "bp": "e", **shared, "tid": _thread(one), "ts": begin}
