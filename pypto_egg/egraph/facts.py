"""What rules need to know of each tensor and region, as e-graph actions."""

from __future__ import annotations

from math import prod

from pypto_egg.analysis.regions import Region, RegionTree
from pypto_egg.egraph.bulk import Action, Term, assign, equal, fact, node
from pypto_egg.egraph.values import Keys, Local, element_line, static_extents, vec_extents


class Facts:
    """Collects the actions of one function."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.actions: list[Action] = []
        self._values = 0

    def add(self, action: Action) -> None:
        """Append one action."""
        self.actions.append(action)

    def bind(self, term: Term) -> Term:
        """A short name for a term; what is built from it does not repeat the term."""
        self._values += 1
        name = node("tensor.value", self._values)
        self.add(equal(name, term))
        return name

    def describe(self, local: Local, name: str | None) -> None:
        """Assert the extents, dtype, place and source name of a tensor."""
        term, type_ = local.term, local.type
        rows, cols = static_extents(type_)
        lead = type_.shape[:-2]
        # A dynamic batch extent counts as one: packed rows are then checked for one matrix.
        batch = prod(extent if isinstance(extent, int) else 1 for extent in lead) if lead else 0
        self.add(equal(node("rows", term), self.keys.index(rows)))
        self.add(equal(node("cols", term), self.keys.index(cols)))
        self.add(assign("lead", term, self.keys.indices(lead)))
        self.add(assign("batch", term, batch))
        self.add(assign("valid", term, self.keys.indices(type_.valid_shape)))
        self.add(assign("dtype", term, type_.dtype.name))
        self.add(fact("at", term, local.home.id))
        if type_.valid_shape == type_.shape:
            self.add(fact("whole", term))
        if local.defined:
            self.add(fact("defined", term))
        if name is not None:
            self.add(fact("named", term, self.keys.name(name)))

    def offer_vec_extents(self, local: Local) -> None:
        """Assert the least extents in which a tensor that can take any is held in Vec."""
        rows, cols = vec_extents(local.type, element_line(local.type.dtype))
        self.add(fact("extents", local.term, self.keys.index(rows), self.keys.index(cols)))

    def regions(self, tree: RegionTree) -> None:
        """Assert which region lies in which."""
        for region in tree.regions:
            if region.parent is None:
                continue
            self.add(assign("around", region.id, region.parent.id))
            outer: Region | None = region.parent
            while outer is not None:
                self.add(fact("inside", region.id, outer.id))
                outer = outer.parent
