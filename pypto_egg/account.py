"""The decisions behind a lowered function, worked out when somebody asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pypto_egg.egraph.skeleton import Skeleton
from pypto_egg.egraph.tilegraph import TileGraph
from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.extract.cost.model import CostModel, CostVector
from pypto_egg.extract.problem import Constraint, Problem
from pypto_egg.extract.result import Selection
from pypto_egg.ir.program import Function
from pypto_egg.price import Priced
from pypto_egg.simulated import kernel_cycles
from pypto_egg.target.target import Target
from pypto_egg.trial import try_selection


@dataclass(frozen=True)
class Account:
    """What is needed to say why a selection is what it is.

    Args:
        cuts: the limits that kept tiles from being selected which do not fit on chip together.
    """

    function: Function
    skeleton: Skeleton
    graph: TileGraph
    priced: Priced
    selection: Selection
    target: Target
    model: CostModel
    cuts: tuple[Constraint, ...] = ()
    _simulated: dict[frozenset[int], float | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def problem(self) -> Problem:
        """The extraction problem with the limits that led to the selection."""
        return replace(self.priced.problem, constraints=self.cuts)

    def cycles_with(self, node: int, cost: CostVector) -> float:
        """The same kernel's cycles if one of its selected nodes cost something else."""
        selected = self.selection.choice.values()
        return self.model.fold(cost if n == node else self.priced.vectors[n] for n in selected)

    def cycles(self, choice: Mapping[int, int]) -> float:
        """What the kernel of a selection (class -> node) costs by the model's own account.

        That is its fold, or for a model that simulates the emitted kernel what it takes as a whole.
        """
        if self.model.objective == "simulated":
            key = frozenset(choice.values())
            if key not in self._simulated:
                self._simulated[key] = self._simulate(choice)
            found = self._simulated[key]
            if found is not None:
                return found
        return self.model.fold(self.priced.vectors[node] for node in choice.values())

    def _simulate(self, choice: Mapping[int, int]) -> float | None:
        """The kernel's simulated cycles; None where it cannot be made or simulated."""
        try:
            trial = try_selection(
                self.function, self.skeleton, self.graph, self.priced, choice, self.target
            )
            return kernel_cycles(trial.emitted.function, self.model, self.target)
        except (LoweringError, OptionError):
            return None
