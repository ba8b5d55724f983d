"""What rules need to know of each tensor and region, as e-graph actions."""

from __future__ import annotations

from math import prod
from typing import Any

from egglog import set_, union

from pypto_egg.analysis.regions import Region, RegionTree
from pypto_egg.egraph import language as eg
from pypto_egg.egraph.terms import indices
from pypto_egg.egraph.values import Keys, Local, element_line, static_extents, vec_extents


class Facts:
    """Collects the actions of one function."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.actions: list[Any] = []

    def add(self, action: Any) -> None:
        self.actions.append(action)

    def describe(self, local: Local, name: str | None) -> None:
        """Assert the extents, dtype, place and source name of a tensor."""
        term, type_ = local.term, local.type
        rows, cols = static_extents(type_)
        lead = type_.shape[:-2]
        # A dynamic batch extent counts as one: packed rows are then checked for one matrix.
        batch = prod(extent if isinstance(extent, int) else 1 for extent in lead) if lead else 0
        self.add(union(eg.rows(term)).with_(self.keys.index(rows)))
        self.add(union(eg.cols(term)).with_(self.keys.index(cols)))
        self.add(set_(eg.lead(term)).to(indices(self.keys, lead)))
        self.add(set_(eg.batch(term)).to(batch))
        self.add(set_(eg.valid(term)).to(indices(self.keys, type_.valid_shape)))
        self.add(set_(eg.dtype(term)).to(type_.dtype.name))
        self.add(eg.at(term, local.home.id))
        if type_.valid_shape == type_.shape:
            self.add(eg.whole(term))
        if name is not None:
            self.add(eg.named(term, self.keys.name(name)))

    def offer_vec_extents(self, local: Local) -> None:
        """Assert the least extents in which a tensor that can take any is held in Vec."""
        rows, cols = vec_extents(local.type, element_line(local.type.dtype))
        self.add(eg.extents(local.term, self.keys.index(rows), self.keys.index(cols)))

    def regions(self, tree: RegionTree) -> None:
        """Assert which region lies in which."""
        for region in tree.regions:
            if region.parent is None:
                continue
            self.add(set_(eg.around(region.id)).to(region.parent.id))
            outer: Region | None = region.parent
            while outer is not None:
                self.add(eg.inside(region.id, outer.id))
                outer = outer.parent
