"""What a cost model says of programs that are lowered, from their text alone.

Extraction keeps its own account of what it selects; this one does not look at it, so the two can be
held against each other, and one model can price what another one chose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.extract.cost.model import PIPES, ZERO, CostModel, CostVector, KernelCost
from pypto_egg.ir.program import Function
from pypto_egg.lowering import Lowering
from pypto_egg.target import Target

KernelCostOf = Callable[[CostModel, Function, Target], KernelCost]


@dataclass(frozen=True)
class Priced:
    """Cycles of a program's lowered kernels, one run of each after the other."""

    cycles: float
    cost: CostVector


def priced(lowerings: Sequence[Lowering], model: CostModel, target: Target) -> list[Priced]:
    """What a model says of programs, all of them priced in the same way.

    A model that simulates whole kernels does so, unless one of the programs has more instructions
    than a simulation takes: then all are priced by the sum of their operations, as `optimize` does.
    """
    if model.objective == "simulated":
        try:
            return [_sum(one, type(model).kernel_cost, model, target) for one in lowerings]
        except (LoweringError, OptionError):
            pass
    return [_sum(one, CostModel.kernel_cost, model, target) for one in lowerings]


def _sum(lowering: Lowering, kernel_cost: KernelCostOf, model: CostModel, target: Target) -> Priced:
    cycles, cost = 0.0, ZERO
    for function in _lowered(lowering):
        said = kernel_cost(model, function, target)(target)
        cycles, cost = cycles + said["cycles"], cost + by_pipe(said)
    return Priced(cycles, cost)


def by_pipe(said: Mapping[str, float]) -> CostVector:
    """The busy cycles of a kernel's queues, by pipe: both MTE2 engines count as one."""
    busy = dict.fromkeys(PIPES, 0.0)
    for queue, cycles in said.items():
        pipe = "mte2" if queue.startswith("mte2") else queue
        if pipe in busy:
            busy[pipe] += cycles
    return CostVector(**busy)


def _lowered(lowering: Lowering) -> Iterable[Function]:
    names = {report.name for report in lowering.functions}
    return [function for function in lowering.program.functions if function.name in names]
