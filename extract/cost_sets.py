"""Greedy extraction by cost sets: every class takes the node with the cheapest set below it.

The best known greedy heuristic for DAGs: with each class goes the set of all classes below its
node, so that what two operands share is paid once. Sets are bit masks over the classes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pypto_egg.extract.deadline import Deadline, passed
from pypto_egg.extract.graph import Graph, children_first, selected_nodes
from pypto_egg.extract.tree import cheapest_trees

COST_SET_WORK = 400_000
"""Sets joined and weighed before the search ends: about 10 s where there are 20,000 classes."""

CHECKED_EVERY = 256
"""Sets weighed between two looks at the clock."""


def cost_set_choice(graph: Graph, deadline: Deadline = None) -> dict[int, int]:
    """A node for every class: greedily the one with the cheapest set of classes below it.

    Starts from the cheapest trees. A set never holds its own class, so that no cycle arises. What
    is required is not seen. As a selection it costs at most what the cheapest trees cost.
    """
    return _CostSets(graph).run(deadline)


class _CostSets:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.classes = list(graph.nodes)
        self.bit = {cls: 1 << at for at, cls in enumerate(self.classes)}
        self.position = {cls: at for at, cls in enumerate(self.classes)}
        self.operands = {n: tuple(sorted(set(graph.children[n]))) for n in graph.cost}
        self.trees = dict(cheapest_trees(graph).choice)
        self.choice = dict(self.trees)
        self.weight = np.zeros(8 * (len(self.classes) // 8 + 1))
        self.below: dict[int, int] = {}
        self.total: dict[int, float] = {}

    def run(self, deadline: Deadline) -> dict[int, int]:
        graph, users = self.graph, self._users()
        queue: dict[int, None] = {}
        for number, (cls, node) in enumerate(self.trees.items()):
            if number % CHECKED_EVERY == 0 and passed(deadline):
                return self.trees
            self.weight[self.position[cls]] = float(graph.cost[node])
            self.below[cls] = self._joined(node) | self.bit[cls]
            self.total[cls] = self._weigh(self.below[cls])
        owner = graph.owner()
        queue.update(dict.fromkeys(n for cls in self.trees for n in graph.nodes[cls]))
        work = COST_SET_WORK
        while queue and work > 0:
            work -= 1
            if work % CHECKED_EVERY == 0 and passed(deadline):
                break
            node = next(iter(queue))
            del queue[node]
            if self._better(owner[node], node):
                queue.update(dict.fromkeys(users.get(owner[node], ())))
        return self._closed()

    def _better(self, cls: int, node: int) -> bool:
        """Whether a node has a cheaper set than its class has so far; it is taken then."""
        own, operands = float(self.graph.cost[node]), self.operands[node]
        best = self.total.get(cls)
        if best is None or any(child not in self.total for child in operands):
            return False
        least = max((self.total[child] for child in operands), default=0.0) + own
        if least >= best:
            return False
        union = self._joined(node)
        if union & self.bit[cls]:
            return False
        cost = self._weigh(union) + own if len(operands) > 1 else least
        if cost >= best:
            return False
        self.weight[self.position[cls]] = own
        self.below[cls], self.total[cls], self.choice[cls] = union | self.bit[cls], cost, node
        return True

    def _joined(self, node: int) -> int:
        union = 0
        for child in self.operands[node]:
            union |= self.below[child]
        return union

    def _weigh(self, members: int) -> float:
        data = np.frombuffer(members.to_bytes(self.weight.size // 8, "little"), dtype=np.uint8)
        return float(self.weight[np.unpackbits(data, bitorder="little").view(np.bool_)].sum())

    def _users(self) -> dict[int, list[int]]:
        users: dict[int, list[int]] = {}
        for node, operands in self.operands.items():
            for child in operands:
                users.setdefault(child, []).append(node)
        return users

    def _closed(self) -> dict[int, int]:
        """The choice, unless it is dearer than the trees or, by sets out of date, cyclic."""
        if self._cost(self.choice) <= self._cost(self.trees):
            picked = self._picked(self.choice)
            if children_first(picked, self.graph.children) is not None:
                return self.choice
        return self.trees

    def _picked(self, choice: Mapping[int, int]) -> dict[int, int]:
        graph = self.graph
        return selected_nodes(choice, graph.children, graph.requires, graph.roots)

    def _cost(self, choice: Mapping[int, int]) -> int:
        return sum(self.graph.cost[node] for node in self._picked(choice).values())
