"""What a kernel executes and what each instruction waits for: a trace, timed by some durations.

The trace of a kernel does not depend on how long instructions take, so it is recorded once and can
be timed under many constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pypto_egg.errors import OptionError
from pypto_egg.extract.cost.l2 import held_share
from pypto_egg.extract.cost.model import OpInstance
from pypto_egg.extract.cost.timeline import Event, Timeline
from pypto_egg.extract.cost.timing import QUEUES, Timing
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import Mem

MAX_EVENTS = 2_000_000
"""Instructions of one trace; each takes some microseconds and some hundred bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class OpStep:
    """One of the instructions of an operation of the kernel's text."""

    op: OpInstance
    index: int

    def cycles(self, timing: Timing) -> float:
        return timing.steps(self.op)[self.index].cycles


@dataclass(frozen=True, slots=True)
class ToL0:
    """A window of an L1 tile on its way to Left or Right."""

    goal: Mem
    rows: int
    cols: int
    dtype: DType
    transposing: bool

    def cycles(self, timing: Timing) -> float:
        return timing.to_l0(self.goal, self.rows, self.cols, self.dtype, self.transposing)


@dataclass(frozen=True, slots=True)
class Multiply:
    """One TMATMUL, or as many as the batch has products."""

    m: int
    n: int
    k: int
    lhs: DType
    batch: int = 1

    def cycles(self, timing: Timing) -> float:
        return self.batch * timing.multiply(self.m, self.n, self.k, self.lhs)


@dataclass(frozen=True, slots=True, eq=False)
class SideOperands:
    """The bias row and the block scales of a product that are still in L1."""

    op: OpInstance

    def cycles(self, timing: Timing) -> float:
        return timing.side_operands(self.op)


Work = OpStep | ToL0 | Multiply | SideOperands


@dataclass(frozen=True, slots=True)
class Kind:
    """An instruction of the kernel's text: its queue, its operation's name, what takes time."""

    queue: str
    name: str
    work: Work


@dataclass(slots=True)
class Buffer:
    """Who wrote a buffer last and, on each queue, who read it last since then (instructions)."""

    writer: int = -1
    readers: dict[str, int] = field(default_factory=dict)


@dataclass
class Trace:
    """The instructions of a kernel in program order.

    Args:
        buffers_bound: how many buffers the kernel has.
        assumed: what was taken for granted, in order of appearance.
    """

    buffers_bound: int = 0
    assumed: dict[str, None] = field(default_factory=dict)
    kinds: dict[Kind, int] = field(default_factory=dict)
    kind_of: list[int] = field(default_factory=list)
    waits_for: list[tuple[int, ...]] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)

    def issue(
        self,
        kind: Kind,
        reads: Iterable[Buffer] = (),
        writes: Iterable[Buffer] = (),
        after: int = -1,
        distance_bytes: float = 0.0,
    ) -> int:
        """The number of an instruction that reads and overwrites buffers.

        Args:
            after: a further instruction to wait for; -1: none.
            distance_bytes: for a load: what all cores touched since they touched its window.

        Raises:
            OptionError: the kernel has more than MAX_EVENTS instructions.
        """
        number = len(self.kind_of)
        if number >= MAX_EVENTS:
            raise OptionError(
                f"the kernel runs more than {MAX_EVENTS} instructions",
                hint="simulate a part of it, for example with fewer iterations",
            )
        waits = {after}
        for buffer in reads:
            waits.add(buffer.writer)
            buffer.readers[kind.queue] = number
        for buffer in writes:
            waits.add(buffer.writer)
            waits.update(buffer.readers.values())
            buffer.writer = number
            buffer.readers = {}
        waits -= {-1, number}
        self.kind_of.append(self.kinds.setdefault(kind, len(self.kinds)))
        self.waits_for.append(tuple(waits))
        self.distances.append(distance_bytes)
        return number

    def timeline(self, timing: Timing) -> Timeline:
        """When each instruction runs: after the last of its queue and all that it waits for."""
        kinds = list(self.kinds)
        cycles, total, ends = self._ends(timing)
        events = [
            Event(kinds[at].queue, kinds[at].name, end - lasts, end)
            for at, lasts, end in zip(self.kind_of, cycles, ends, strict=True)
        ]
        return Timeline(total, self._busy(cycles), tuple(events), tuple(self.assumed))

    def totals(self, timing: Timing) -> tuple[float, dict[str, float]]:
        """(total cycles, busy cycles of each queue): the timeline without its events."""
        cycles, total, _ = self._ends(timing)
        return total, self._busy(cycles)

    def _ends(self, timing: Timing) -> tuple[list[float], float, list[float]]:
        """(cycles of each instruction, end of the last one, end of each)."""
        kinds = list(self.kinds)
        launch = timing.launch_cycles + timing.binding_cycles * self.buffers_bound
        queue_of = [QUEUES.index(kind.queue) for kind in kinds]
        once = np.array([kind.work.cycles(timing) for kind in kinds], dtype=np.float64)
        shares = held_share(np.array(self.distances, dtype=np.float64), timing.cache_bytes)
        cycles: list[float] = (
            once[np.array(self.kind_of, dtype=np.int64)] * timing.load_share(shares)
        ).tolist()
        free = [launch] * len(QUEUES)
        ends: list[float] = []
        for at, waits, lasts in zip(self.kind_of, self.waits_for, cycles, strict=True):
            queue = queue_of[at]
            start = free[queue]
            for other in waits:
                if ends[other] > start:
                    start = ends[other]
            end = start + lasts
            free[queue] = end
            ends.append(end)
        return cycles, max(free), ends

    def _busy(self, cycles: list[float]) -> dict[str, float]:
        kinds = list(self.kinds)
        queue_of = np.array([QUEUES.index(kind.queue) for kind in kinds], dtype=np.int64)
        at = queue_of[np.array(self.kind_of, dtype=np.int64)]
        sums = np.bincount(at, weights=cycles, minlength=len(QUEUES))
        return dict(zip(QUEUES, sums.tolist(), strict=True))
