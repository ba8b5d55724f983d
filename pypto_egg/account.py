"""The decisions behind a lowered function, worked out when somebody asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_egg.egraph.skeleton import Skeleton
from pypto_egg.egraph.tilegraph import TileGraph
from pypto_egg.extract.cost.model import CostModel
from pypto_egg.extract.problem import Constraint
from pypto_egg.extract.result import Selection
from pypto_egg.ir.program import Function
from pypto_egg.price import Priced
from pypto_egg.target.target import Target


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

    def cycles(self, choice: Mapping[int, int]) -> float:
        """What the kernel of a selection (class -> node) costs by the model's own fold."""
        return self.model.fold(self.priced.vectors[node] for node in choice.values())
