"""A simulated kernel: when each instruction ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Event(NamedTuple):
    """One instruction on the timeline, in cycles from the kernel's launch."""

    queue: str
    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """A simulated kernel.

    Args:
        total_cycles: from the launch to the end of the last instruction.
        busy: cycles in which each queue works, by the names in `timing.QUEUES`.
        events: all instructions in program order.
        assumed: what the simulation had to take for granted, one line each.
    """

    total_cycles: float
    busy: Mapping[str, float]
    events: tuple[Event, ...]
    assumed: tuple[str, ...] = ()

    def of(self, queue: str) -> tuple[Event, ...]:
        """The instructions of one queue."""
        return tuple(event for event in self.events if event.queue == queue)
