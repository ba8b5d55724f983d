"""`roofline`: the pipes work at the same time, so a kernel takes as long as its busiest pipe.

Scalar instructions issue the work of all other pipes and overlap with none of it: their cycles come
on top. Queues, dependences and the first and last transfer are left to `schedule`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pypto_egg.extract.cost.model import PIPES, ZERO, CostVector, register_cost_model
from pypto_egg.extract.cost.mte2_mad import Mte2Mad


@register_cost_model
class Roofline(Mte2Mad):
    """Operations priced as by `mte2_mad`; a kernel costs its busiest pipe plus the scalar unit."""

    name: ClassVar[str] = "roofline"
    objective: ClassVar[Literal["serial", "bottleneck"]] = "bottleneck"
    not_overlapped: ClassVar[tuple[str, ...]] = ("scalar",)

    def fold(self, vectors: Iterable[CostVector]) -> float:
        """The greatest sum over a pipe, plus the sum of the scalar unit."""
        busy = sum(vectors, ZERO)
        longest = max(getattr(busy, pipe) for pipe in PIPES if pipe not in self.not_overlapped)
        return float(longest + busy.scalar)
