"""Axes of drawings: round numbers at even distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log10


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: how far along it is, from 0 to 1, and what it says."""

    share: float
    text: str


def ticks(stop: float, count: int = 8) -> tuple[Tick, ...]:
    """Ticks from 0 to at most `stop`, about `count` of them, at multiples of 1, 2 or 5."""
    if stop <= 0:
        return (Tick(0.0, "0"),)
    return tuple(Tick(value / stop, f"{value:,}") for value in _values(stop, count))


def _values(stop: float, count: int) -> Iterator[int]:
    rough = max(stop / count, 1.0)
    power = 10 ** floor(log10(rough))
    step = next(int(power * times) for times in (1, 2, 5, 10) if power * times >= rough)
    yield from range(0, int(stop) + 1, step)
