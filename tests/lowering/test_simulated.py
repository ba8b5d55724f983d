"""The scheduled objective: promising selections are emitted, and the shortest kernel is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

import pypto_egg
from pypto_egg.extract import InOrder
from pypto_egg.extract.bottleneck import bottleneck
from pypto_egg.extract.cost.kernel import executed_calls
from pypto_egg.extract.cost.model import KernelCost, cost_model
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.extract.cost.schedule import Schedule
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.program import Function
from pypto_egg.target import Target

KERNELS = Path(__file__).parents[2] / "bench" / "kernels"
NAMES = ("attention_block", "bias_matmul", "chained_product", "both_transposed")


def kernel_of(lowering: pypto_egg.Lowering, name: str) -> Function:
    return next(f for f in lowering.program.functions if f.name == name)


@pytest.mark.parametrize("name", NAMES)
def test_cycles_are_those_of_the_simulated_kernel(name: str) -> None:
    result = pypto_egg.optimize(KERNELS / f"{name}.py", cost_model="schedule", verify=False)
    (report,) = result.functions
    kernel, target = kernel_of(result, report.name), report.account.target
    simulated = cost_model("schedule").kernel_cost(kernel, target)(target)["cycles"]
    assert result.cycles == pytest.approx(simulated)
    assert report.bound <= report.cycles
    assert report.extraction in ("optimal", "feasible")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_never_longer_than_the_cheapest_by_the_sum_or_the_reference(name: str) -> None:
    result = pypto_egg.optimize(KERNELS / f"{name}.py", cost_model="schedule", verify=False)
    (report,) = result.functions
    a = report.account
    cheapest = next(InOrder(a.priced.problem.with_constraints(a.cuts)))
    assert result.cycles <= a.cycles(cheapest.choice)
    assert result.baseline is not None
    assert result.cycles <= result.baseline.cycles


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_takes_at_least_its_launch_and_its_busiest_queue(name: str) -> None:
    model = Schedule()
    result = pypto_egg.optimize(KERNELS / f"{name}.py", cost_model=model, verify=False)
    (report,) = result.functions
    a = report.account
    least = model.start_cycles(a.target) + bottleneck(a.selection.choice, a.priced.problem)
    assert least <= report.cycles


class FewestLoadsToMat(Mte2Mad):
    """A kernel takes a million cycles for each tile that it loads to Mat."""

    name = "fewest_loads_to_mat"
    objective = "simulated"

    def kernel_cost(self, kernel: Function, target: Target, cores: int = 1) -> KernelCost:
        loads = [
            times
            for call, times in executed_calls(kernel)
            if call.op == "tile.load" and getattr(call.type, "space", None) is Mem.Mat
        ]
        return lambda chip: {"cycles": 1e6 * sum(loads)}


def test_the_model_s_own_account_of_the_whole_kernel_decides() -> None:
    """The cheapest by price loads the bias to Mat too, for the cube to add."""
    result = pypto_egg.optimize(
        KERNELS / "bias_matmul.py", cost_model=FewestLoadsToMat(), verify=False
    )
    (report,) = result.functions
    a = report.account
    first = next(InOrder(a.priced.problem.with_constraints(a.cuts)))
    assert a.cycles(first.choice) == 3e6
    assert result.cycles == 2e6
    assert not result.fallback


def test_where_every_selection_was_simulated_the_choice_is_optimal() -> None:
    result = pypto_egg.optimize(KERNELS / "batch_matmul.py", cost_model="schedule", verify=False)
    (report,) = result.functions
    assert report.extraction == "optimal"
    a = report.account
    every = [a.cycles(s.choice) for s in InOrder(a.priced.problem.with_constraints(a.cuts))]
    assert report.cycles == min(every)


def test_the_account_says_what_the_total_is() -> None:
    result = pypto_egg.optimize(KERNELS / "bias_matmul.py", cost_model="schedule", verify=False)
    assert "simulated: queues in order" in result.explain()
