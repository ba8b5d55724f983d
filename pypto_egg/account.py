"""The decisions behind a lowered function, worked out when somebody asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_egg.egraph.tilegraph import TileGraph
from pypto_egg.extract.problem import Constraint
from pypto_egg.extract.result import Selection
from pypto_egg.ir.program import Function
from pypto_egg.price import Priced
from pypto_egg.target.target import Target


@dataclass(frozen=True)
class Account:
    """What is needed to say why a selection is what it is.

    Args:
        times: region -> how often it runs when the function runs once; 1 where it is not listed.
        cuts: the limits that kept tiles from being selected which do not fit on chip together.
    """

    function: Function
    graph: TileGraph
    priced: Priced
    selection: Selection
    times: Mapping[int, int]
    target: Target
    cuts: tuple[Constraint, ...] = ()
