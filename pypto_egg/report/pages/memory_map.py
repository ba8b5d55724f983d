"""What lies in each memory space at each place of a kernel, as stacks of tiles."""

from __future__ import annotations

from dataclasses import dataclass

from pypto_egg.emit.liveness import Buffer, buffers
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.program import Function
from pypto_egg.ir.types import TileType
from pypto_egg.report.pages.axis import Tick, ticks
from pypto_egg.report.pages.palette import SERIES
from pypto_egg.report.words import tile_words
from pypto_egg.target import Target


@dataclass(frozen=True)
class Held:
    """A tile in memory over some places: a rectangle in shares of the drawing, and what it says.

    `bottom` and `height` count from the bottom upwards.
    """

    start: float
    width: float
    bottom: float
    height: float
    colour: int
    name: str
    text: str


@dataclass(frozen=True)
class Space:
    """One memory space.

    Args:
        peak_bytes: the most that is in use at one place.
        capacity_bytes: what tiles may occupy; None where the target sets no limit.
        limit: where the capacity is on the drawing, from 0 to 1; None if it is above it.
    """

    name: str
    peak_bytes: int
    capacity_bytes: int | None
    limit: float | None
    held: tuple[Held, ...]
    ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class MemoryMap:
    """The memory of a kernel over its places in program order, which number `places`."""

    places: int
    spaces: tuple[Space, ...]
    ticks: tuple[Tick, ...]


def memory_map(kernel: Function, target: Target) -> MemoryMap:
    """The live tiles of a kernel, stacked in the order in which they are made.

    The height of a stack is what is in use; addresses are given out after lowering.
    """
    every = buffers(kernel)
    places = max((buffer.last for buffer in every), default=0)
    spaces = []
    for space in Mem:
        own = [buffer for buffer in every if buffer.space is space]
        if own:
            spaces.append(_space(space, own, places, target))
    return MemoryMap(places, tuple(spaces), ticks(places))


def _space(space: Mem, own: list[Buffer], places: int, target: Target) -> Space:
    pieces = _pieces(own)
    peak = max(bottom + own[number].size_bytes for number, _, _, bottom in pieces)
    capacity = target.capacity_bytes(space) or None
    # A nearly empty space is drawn to its own scale, with its limit out of sight.
    shows_limit = capacity is not None and peak * 4 >= capacity
    top = max(peak, capacity or 0) * 1.05 if shows_limit else peak * 1.15
    held = tuple(
        Held(
            (first - 1) / places,
            (last - first + 1) / places,
            bottom / top,
            own[number].size_bytes / top,
            number % len(SERIES),
            own[number].var.name,
            _words(own[number]),
        )
        for number, first, last, bottom in pieces
    )
    limit = capacity / top if capacity is not None and shows_limit else None
    return Space(space.value, peak, capacity, limit, held, ticks(top, 3))


def _pieces(own: list[Buffer]) -> list[tuple[int, int, int, int]]:
    """(number, first place, last place, bytes below) of each buffer, anew where what is below
    changes."""
    changes = sorted({b.first for b in own} | {b.last + 1 for b in own})
    pieces: list[tuple[int, int, int, int]] = []
    open_: dict[int, tuple[int, int]] = {}  # number -> (first place, bytes below)
    for place in changes:
        stack: dict[int, tuple[int, int]] = {}
        below = 0
        for number in sorted({*open_, *_starting(own, place)}):
            if own[number].first <= place <= own[number].last:
                begin, before = open_.get(number, (place, below))
                stack[number] = (begin, below) if before == below else (place, below)
                below += own[number].size_bytes
        for number, (begin, before) in open_.items():
            if stack.get(number) != (begin, before):
                pieces.append((number, begin, place - 1, before))
        open_ = stack
    return sorted(pieces)


def _starting(own: list[Buffer], place: int) -> list[int]:
    return [number for number, buffer in enumerate(own) if buffer.first == place]


def _words(buffer: Buffer) -> str:
    tile = buffer.var.type
    what = tile_words(tile) if isinstance(tile, TileType) else buffer.space.value
    return (
        f"{buffer.var.name}: {what}\n{buffer.size_bytes:,} bytes, "
        f"statements {buffer.first} to {buffer.last}"
    )
