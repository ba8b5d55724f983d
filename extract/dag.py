"""DAG extraction by heuristics: shared parts are paid once. Claim: none beyond the proven bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_egg.extract.decompose import Answer
from pypto_egg.extract.graph import Graph, children_first, selected_nodes
from pypto_egg.extract.structure import MustSets
from pypto_egg.extract.tree import cheapest_trees

SEARCH_VISITS = 1_000_000
"""Class visits of one local search: about a second; fixed, so that the answer does not depend on
the speed of the machine."""


@dataclass(frozen=True)
class _Pick:
    """A selection under work: `score` orders them: broken forbidden sets, excess weight, cost."""

    picked: Mapping[int, int]
    score: tuple[int, int, int]


def solve_piece_greedily(graph: Graph, visits: int = SEARCH_VISITS) -> Answer:
    """The best selection of greedy starts and local search, with a bound from must-sets."""
    search = _Search(graph, visits)
    best = search.run()
    bound = lower_bound(graph)
    if best is None or best.score[:2] != (0, 0):
        return Answer({}, None, bound)
    return Answer(dict(best.picked), best.score[2], bound)


def lower_bound(graph: Graph) -> int:
    """What every selection costs at least: the cheapest node of each class that all have."""
    must = MustSets(graph)
    classes = set(graph.roots)
    for root in graph.roots:
        classes.update(must.members(must.by_all[root]))
    return sum(min(graph.cost[node] for node in graph.nodes[cls]) for cls in classes)


class _Search:
    def __init__(self, graph: Graph, visits: int) -> None:
        self.graph = graph
        self.visits = visits
        self.trees = cheapest_trees(graph)

    def run(self) -> _Pick | None:
        starts = [self.price(self.trees.choice), self.price(self.cost_sets())]
        best: _Pick | None = None
        for start in starts:
            if start is None:
                continue
            found = self.descend(start)
            if best is None or found.score < best.score:
                best = found
        return best

    def price(self, choice: Mapping[int, int]) -> _Pick | None:
        graph = self.graph
        picked = selected_nodes(choice, graph.children, graph.requires, graph.roots)
        self.visits -= len(picked)
        if children_first(picked, graph.children) is None:
            return None
        nodes = set(picked.values())
        broken = sum(nodes.issuperset(group) for group in graph.forbidden)
        cost = sum(graph.cost[node] for node in nodes)
        return _Pick(picked, (broken, graph.excess(nodes), cost))

    def cost_sets(self) -> dict[int, int]:
        """Choices by the cost of whole sub-DAGs: for each class the set of nodes below it."""
        graph = self.graph
        users: dict[int, list[tuple[int, int]]] = {}
        ready: list[tuple[int, int]] = []
        for cls, nodes in graph.nodes.items():
            for node in nodes:
                for child in graph.children[node]:
                    users.setdefault(child, []).append((node, cls))
                if not graph.children[node]:
                    ready.append((node, cls))
        below: dict[int, dict[int, int]] = {}
        total: dict[int, int] = {}
        queue = dict.fromkeys(ready)
        while queue:
            node, cls = entry = next(iter(queue))
            del queue[entry]
            if any(child not in below for child in graph.children[node]):
                continue
            union: dict[int, int] = {}
            for child in sorted(graph.children[node], key=lambda c: -len(below[c])):
                union = {**below[child], **union}
            self.visits -= len(union)
            if cls in union:
                continue
            union[cls] = node
            cost = sum(graph.cost[n] for n in union.values())
            if cls not in total or cost < total[cls]:
                total[cls], below[cls] = cost, union
                queue.update(dict.fromkeys(users.get(cls, ())))
        choice = dict(self.trees.choice)
        merged: dict[int, int] = {}
        for root in graph.roots:
            merged = {**below[root], **merged}
        return {**choice, **merged}

    def descend(self, current: _Pick) -> _Pick:
        """Re-chooses the node of one class at a time while that makes the selection better."""
        improved = True
        while improved and self.visits > 0:
            improved = False
            rest = self.marginal_choice(current)
            for cls in list(current.picked):
                if cls not in current.picked:
                    continue
                for node in self.graph.nodes[cls]:
                    if node == current.picked[cls]:
                        continue
                    moved = self.price({**rest, **current.picked, cls: node})
                    if moved is not None and moved.score < current.score:
                        current, improved = moved, True
                        break
                if self.visits <= 0:
                    break
        return current

    def marginal_choice(self, current: _Pick) -> dict[int, int]:
        """For every class the cheapest tree when what is selected already costs nothing."""
        graph = self.graph
        self.visits -= len(graph.cost)
        paid = set(current.picked.values())
        cost = graph.cost
        graph.cost = {node: 0 if node in paid else value for node, value in cost.items()}
        rest = dict(cheapest_trees(graph).choice)
        graph.cost = cost
        return rest
