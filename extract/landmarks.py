"""Landmarks: sets of nodes of which every selection holds at least one, and bounds from them.

The LM-cut procedure of AI planning (Helmert and Domshlak, 2009), for which extraction is the
problem of an optimal delete-relaxed plan: classes are facts, nodes are actions.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from pypto_egg.extract.deadline import Deadline, passed
from pypto_egg.extract.graph import Graph

BOUND_WORK = 400_000
"""Nodes visited in the search for landmarks when only a bound is wanted: about 0.2 s."""

PROOF_WORK = 4_000_000
"""The same when a proof of optimality depends on them: about 2 s, reached by thousands of nodes."""


@dataclass(frozen=True)
class Landmarks:
    """Disjoint shares of the nodes' costs, one for each landmark, and what is left of the costs.

    Args:
        sets: for each landmark its nodes, ascending.
        shares: for each landmark the cost that each of its nodes gives to it.
        rest: node -> its cost without what it gave to landmarks.
        bound: sum of the shares: no selection costs less.
    """

    sets: tuple[tuple[int, ...], ...]
    shares: tuple[int, ...]
    rest: Mapping[int, int]
    bound: int


def find_landmarks(graph: Graph, work: int = BOUND_WORK, deadline: Deadline = None) -> Landmarks:
    """Landmarks of the roots, taken one after another while the rest of the costs has any.

    Args:
        work: nodes visited before the search ends; what was found until then counts.
    """
    finder = _Finder(graph)
    sets: list[tuple[int, ...]] = []
    shares: list[int] = []
    rest = dict(graph.cost)
    while work > 0 and not passed(deadline):
        work -= len(rest)
        cut = finder.cut(rest)
        if not cut:
            break
        share = min(rest[node] for node in cut)
        for node in cut:
            rest[node] -= share
        sets.append(cut)
        shares.append(share)
    return Landmarks(tuple(sets), tuple(shares), rest, sum(shares))


def drop_by_landmarks(graph: Graph, landmarks: Landmarks, upper: int) -> None:
    """Drops, in place, nodes that no selection of cost `upper` or less can hold.

    A selection costs at least the landmarks' shares and, for any of its nodes, what is left of the
    costs on the dearest path below that node.
    """
    depth, _ = _Finder(graph).dearest_paths(landmarks.rest)
    keep = {}
    for cls, nodes in graph.nodes.items():
        keep[cls] = [
            node
            for node in nodes
            if landmarks.bound
            + landmarks.rest[node]
            + max((depth[child] for child in graph.children[node]), default=0)
            <= upper
        ]
    graph.keep_nodes(keep)


class _Finder:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._owner = graph.owner()
        self._operands = {node: len(set(graph.children[node])) for node in self._owner}
        self._users: dict[int, list[int]] = {cls: [] for cls in graph.nodes}
        for node in self._owner:
            for child in sorted(set(graph.children[node])):
                self._users[child].append(node)

    def cut(self, cost: Mapping[int, int]) -> tuple[int, ...]:
        """The nodes by which any selection enters the classes that are free from the dearest root.

        Empty when every root can be had for nothing.
        """
        depth, dearest = self.dearest_paths(cost)
        top = max(self._graph.roots, key=lambda root: depth[root])
        if depth[top] == 0:
            return ()
        zone = {top}
        stack = [top]
        while stack:
            for node in self._graph.nodes[stack.pop()]:
                if cost[node] or dearest[node] in zone:
                    continue
                zone.add(dearest[node])
                stack.append(dearest[node])
        nodes = (node for cls in zone for node in self._graph.nodes[cls])
        return tuple(sorted(node for node in nodes if dearest.get(node) not in zone))

    def dearest_paths(self, cost: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
        """For each class the least cost of its dearest path, for each node its dearest child."""
        waiting = dict(self._operands)
        heap = [(cost[node], node) for node, count in waiting.items() if count == 0]
        heapq.heapify(heap)
        depth: dict[int, int] = {}
        dearest: dict[int, int] = {}
        while heap:
            value, best = heapq.heappop(heap)
            cls = self._owner[best]
            if cls in depth:
                continue
            depth[cls] = value
            for node in self._users[cls]:
                dearest[node] = cls
                waiting[node] -= 1
                if waiting[node] == 0 and self._owner[node] not in depth:
                    heapq.heappush(heap, (value + cost[node], node))
        return depth, dearest
