"""Tree extraction: the cheapest term of every class when shared parts are paid at each use."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from pypto_egg.extract.graph import Graph


@dataclass(frozen=True)
class Trees:
    """The cheapest tree of each class.

    Args:
        cost: class -> cost of its tree, in the graph's units.
        choice: class -> node at the top of its tree.
    """

    cost: Mapping[int, int]
    choice: Mapping[int, int]


def cheapest_trees(graph: Graph, users: Mapping[int, int] | None = None) -> Trees:
    """The cheapest tree of every class.

    Claim: tree-optimal. A class's tree costs the node's cost plus the tree of each child, once for
    each time that it is an operand, plus, for each required class, the tree of that class without
    what it requires itself. Sharing is not seen: as a DAG the result may cost more than needed.
    Constraints are not seen. Choices never form a cycle, for every class at once.

    Args:
        users: class -> over how many users its cost is spread (default 1); a guess at sharing.

    Takes O(E log E) time (Knuth's generalisation of Dijkstra's algorithm, 1977).
    """
    spread = users or {}
    if not any(graph.requires.values()):
        return _settle(graph, graph.cost, spread)
    bare = _settle(graph, graph.cost, spread).cost
    full = {
        node: cost + sum(bare[cls] for cls in graph.requires[node])
        for node, cost in graph.cost.items()
    }
    return _settle(graph, full, spread)


def _settle(graph: Graph, price: Mapping[int, int], users_of: Mapping[int, int]) -> Trees:
    waiting: dict[int, int] = {}
    total = dict(price)
    users: dict[int, list[tuple[int, int]]] = {}
    heap: list[tuple[int, int, int]] = []
    for cls, nodes in graph.nodes.items():
        for node in nodes:
            waiting[node] = len(graph.children[node])
            for child in graph.children[node]:
                users.setdefault(child, []).append((node, cls))
            if waiting[node] == 0:
                heap.append((total[node], node, cls))
    heapq.heapify(heap)
    cost: dict[int, int] = {}
    choice: dict[int, int] = {}
    while heap:
        value, best, cls = heapq.heappop(heap)
        if cls in cost:
            continue
        cost[cls], choice[cls] = value, best
        share = -(-value // users_of.get(cls, 1))
        for node, owner in users.get(cls, ()):
            total[node] += share
            waiting[node] -= 1
            if waiting[node] == 0 and owner not in cost:
                heapq.heappush(heap, (total[node], node, owner))
    return Trees(cost, choice)
