"""The targets as a table."""

from __future__ import annotations

from pypto_egg.ir.enums import Mem
from pypto_egg.report.table import Table
from pypto_egg.target import Target, load_target, target_names

_SPACES = (Mem.Vec, Mem.Mat, Mem.Left, Mem.Right, Mem.Acc, Mem.Bias)


def targets_table() -> Table:
    """Each target's names, chip, clock and on-chip memory (bytes that tiles may occupy)."""
    header = ("target", "aliases", "chip", "clock", *(space.value for space in _SPACES))
    return Table(header, tuple(_row(load_target(name)) for name in target_names()), numbers=False)


def _row(target: Target) -> tuple[str, ...]:
    capacities = (f"{target.capacity_bytes(space) // 1024} KiB" for space in _SPACES)
    clock = f"{target.clock.hz / 1e9:g} GHz"
    return (target.name, ", ".join(target.aliases), target.chip, clock, *capacities)
