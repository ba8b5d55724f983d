"""What a cost model says of a program that is lowered, from its text alone.

Extraction keeps its own account of what it selects; this one does not look at it, so the two can be
held against each other, and one model can price what another one chose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pypto_egg.errors import OptionError
from pypto_egg.extract.cost.kernel import executed_calls
from pypto_egg.extract.cost.model import PIPES, ZERO, CostModel, CostVector
from pypto_egg.extract.cost.simulate import simulate
from pypto_egg.ir.program import Function, Program
from pypto_egg.lowering import Lowering
from pypto_egg.target import Target

# Operations of a kernel that is simulated: some seconds.
_MOST_SIMULATED = 200_000


@dataclass(frozen=True)
class Priced:
    """Cycles of a program's kernels, one run of each after the other."""

    cycles: float
    cost: CostVector


def lowered_names(lowering: Lowering) -> tuple[str, ...]:
    """The functions that were lowered."""
    return tuple(report.name for report in lowering.functions)


def priced(program: Program, names: Iterable[str], model: CostModel, target: Target) -> Priced:
    """The model's fold of all operations of these functions, each as often as it runs."""
    cycles, cost = 0.0, ZERO
    for function in _functions(program, names):
        # The base class' way: `schedule` itself would simulate, which extraction does not see.
        said = CostModel.kernel_cost(model, function, target)(target)
        cycles += said["cycles"]
        cost = cost + CostVector(**{pipe: said[pipe] for pipe in PIPES})
    return Priced(cycles, cost)


def simulated(program: Program, names: Iterable[str], target: Target) -> Priced | None:
    """The simulated time of these functions on one core; None where that would take long."""
    cycles, cost = 0.0, ZERO
    for function in _functions(program, names):
        if sum(times for _, times in executed_calls(function)) > _MOST_SIMULATED:
            return None
        try:
            timeline = simulate(function, target)
        except OptionError:
            return None
        cycles += timeline.total_cycles
        busy = dict.fromkeys(PIPES, 0.0)
        for queue, value in timeline.busy.items():
            busy["mte2" if queue.startswith("mte2") else queue] += value
        cost = cost + CostVector(**busy)
    return Priced(cycles, cost)


def _functions(program: Program, names: Iterable[str]) -> list[Function]:
    wanted = set(names)
    return [function for function in program.functions if function.name in wanted]
