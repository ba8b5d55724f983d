"""`pareto`: the lowerings of a program between the fastest and the one with the fewest bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_egg import options
from pypto_egg.equivalence import Verify, verified
from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.program import Program
from pypto_egg.lowering import Lowering
from pypto_egg.pipeline import optimize
from pypto_egg.target.target import Target


@dataclass(frozen=True)
class LoweringPoint:
    """One lowering of a front.

    Args:
        cycles: of the whole program, as `Lowering.cycles`.
        peak_bytes: memory space -> bytes in use at the worst place of all functions.
    """

    cycles: float
    peak_bytes: dict[str, int]
    lowering: Lowering


def pareto(
    program: Program | str | Path,
    space: str | Mem,
    *,
    target: str | Target = "a2a3",
    verify: Verify = "auto",
    **rest: Any,
) -> tuple[LoweringPoint, ...]:
    """The lowerings that no other beats in cycles and in bytes of one on-chip memory.

    The first is that of `optimize`; each further one is the cheapest that needs fewer bytes of the
    space at its worst place than the one before, until none can be made. Bytes are counted by live
    ranges in the emitted kernels; a program's peak is the greatest of its functions.

    Args:
        program, target, verify, rest: as of `optimize`.
        space: "Vec", "Mat", "Left", "Right", "Acc", "Bias" or another space of the target.

    Raises:
        OptionError: the target has no such space.
        PyptoEggError: as `optimize`.
    """
    chip = options.checked_target(target)
    key = f"memory.{_name(space)}.usable_bytes"
    if key not in chip.numbers():
        spaces = [k.split(".")[1] for k in chip.numbers() if k.endswith(".usable_bytes")]
        raise OptionError(
            f"target '{chip.name}' has no memory space {_name(space)!r}",
            hint=f"its spaces are: {', '.join(spaces)}",
        )
    points = [_point(optimize(program, target=chip, verify=False, **rest))]
    while (bytes_used := points[-1].peak_bytes.get(_name(space), 0)) > 0:
        try:
            smaller = chip.with_(**{key: bytes_used - 1})
            points.append(_point(optimize(program, target=smaller, verify=False, **rest)))
        except LoweringError:
            break
    kept = _not_beaten(points, _name(space))
    return tuple(_point(verified(point.lowering, verify)) for point in kept)


def _name(space: str | Mem) -> str:
    return space.value if isinstance(space, Mem) else str(space)


def _point(lowering: Lowering) -> LoweringPoint:
    peak: dict[str, int] = {}
    for report in lowering.functions:
        for space, size in report.peak_bytes.items():
            peak[space] = max(size, peak.get(space, 0))
    return LoweringPoint(lowering.cycles, dict(sorted(peak.items())), lowering)


def _not_beaten(points: list[LoweringPoint], space: str) -> list[LoweringPoint]:
    """Those that no other is as good as in both; cycles ascending."""
    kept: list[LoweringPoint] = []
    for point in sorted(points, key=lambda p: (p.cycles, p.peak_bytes.get(space, 0))):
        if not kept or point.peak_bytes.get(space, 0) < kept[-1].peak_bytes.get(space, 0):
            kept.append(point)
    return kept
