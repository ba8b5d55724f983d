"""`schedule`: a kernel costs what its simulation takes, an operation what its instructions take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pypto_egg.extract.cost.model import (
    CostVector,
    KernelCost,
    OpInstance,
    register_cost_model,
)
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.extract.cost.simulate import record
from pypto_egg.extract.cost.timing import QUEUES, timing
from pypto_egg.ir.program import Function
from pypto_egg.target import Target

_PIPE = {"mte2_aiv": "mte2"}
_TIMING_KEYS = "schedule."


@register_cost_model
class Schedule(Mte2Mad):
    """The simulated pipes of one core.

    Extraction needs prices of single operations: these are the durations of their instructions, and
    products with operands in L1 cost what `mte2_mad` says with these constants. What overlaps is
    seen only in whole kernels, by `kernel_cost`: of the most promising selections the one is taken
    whose emitted kernel simulates shortest.

    Args:
        constants: "flat" or "hill" (pto-isa), "pypto", or "device" (fitted to whole GEMMs).
    """

    name: ClassVar[str] = "schedule"
    objective: ClassVar[Literal["serial", "bottleneck", "simulated"]] = "simulated"
    queues: ClassVar[tuple[str, ...]] = QUEUES

    def __init__(self, constants: str = "device") -> None:
        self.constants = constants

    def price(self, op: OpInstance, target: Target) -> CostVector:
        cost = CostVector()
        for step in timing(self.constants, target).steps(op):
            cost += CostVector(**{_PIPE.get(step.queue, step.queue): step.cycles})
        return cost

    def queue_cycles(self, op: OpInstance, target: Target) -> Mapping[str, float]:
        cycles = dict.fromkeys(QUEUES, 0.0)
        for step in timing(self.constants, target).steps(op):
            cycles[step.queue] += step.cycles
        return cycles

    def start_cycles(self, target: Target) -> float:
        return timing(self.constants, target).launch_cycles

    def kernel_cost(self, kernel: Function, target: Target, cores: int = 1) -> KernelCost:
        """The simulated cycles of a kernel and of its queues.

        The kernel is recorded once and only timed again on targets that differ in [schedule].
        """
        trace = record(kernel, target, timing(self.constants, target), cores)
        recorded = _other_numbers(target)

        def cost(chip: Target) -> dict[str, float]:
            if (chip.name, _other_numbers(chip)) != (target.name, recorded):
                return self.kernel_cost(kernel, chip, cores)(chip)
            total, busy = trace.totals(timing(self.constants, chip))
            return {"cycles": total, **busy}

        return cost


def _other_numbers(target: Target) -> tuple[tuple[str, float], ...]:
    return tuple(item for item in target.overrides if not item[0].startswith(_TIMING_KEYS))
