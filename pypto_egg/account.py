"""The decisions behind a lowered function, worked out when somebody asks for them."""

from __future__ import annotations

from dataclasses import dataclass

from pypto_egg.egraph.tilegraph import TileGraph
from pypto_egg.extract.result import Selection
from pypto_egg.ir.program import Function
from pypto_egg.price import Priced


@dataclass(frozen=True)
class Account:
    """What is needed to say why a selection is what it is."""

    function: Function
    graph: TileGraph
    priced: Priced
    selection: Selection
