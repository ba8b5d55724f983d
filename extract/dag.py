"""DAG extraction by heuristics: shared parts are paid once. Claim: none beyond the proven bound."""

from __future__ import annotations

from pypto_egg.extract.decompose import Answer
from pypto_egg.extract.graph import Graph, selected_nodes
from pypto_egg.extract.landmarks import find_landmarks
from pypto_egg.extract.local_search import improve
from pypto_egg.extract.sweep import GaveUp, solve_by_beam
from pypto_egg.extract.tree import cheapest_trees

BEAM_WIDTH = 64
"""States kept in a sweep: wide enough to be exact on chains of layers with a few forms each."""

SEARCH_VISITS = 200_000
"""Work of each local search when there is no exact search to follow."""

COST_SET_WORK = 3_000_000
"""Set elements joined before the search by cost sets ends: about 0.2 s."""


def solve_piece_greedily(graph: Graph, visits: int = SEARCH_VISITS) -> Answer:
    """The best of three greedy starts, each improved by local search, and a bound.

    The starts are a beam search, the cheapest trees, and greedy cost sets. A beam search that left
    nothing out is exact and ends the matter.

    Args:
        visits: work of each local search.
    """
    starts = []
    beam = _beam(graph)
    if beam.bound is None or beam.bound == beam.cost:
        return beam
    if beam.cost is not None:
        starts.append(beam.choice)
    starts.append(cost_set_choice(graph))
    starts.append(dict(cheapest_trees(graph).choice))
    bound = find_landmarks(graph).bound
    best = Answer({}, None, bound)
    for choice in starts:
        start = selected_nodes(choice, graph.children, graph.requires, graph.roots)
        picked = improve(graph, start, visits)
        if not graph.allows(set(picked.values())):
            continue
        cost = sum(graph.cost[node] for node in picked.values())
        if best.cost is None or cost < best.cost:
            best = Answer(picked, cost, bound)
        if cost == bound:
            break
    return best


def solve_piece_by_trees(graph: Graph) -> Answer:
    """The selection of each class's cheapest tree, if the constraints allow it; in linear time."""
    trees = cheapest_trees(graph)
    picked = selected_nodes(trees.choice, graph.children, graph.requires, graph.roots)
    if not graph.allows(set(picked.values())):
        return Answer({}, None, 0)
    return Answer(picked, sum(graph.cost[node] for node in picked.values()), 0)


def cost_set_choice(graph: Graph) -> dict[int, int]:
    """A node for every class: greedily the one with the cheapest set of nodes below it.

    Sets are joined, so that what two children share is paid once; a set never holds its own class
    twice, so that no cycle arises. What is required is not seen.
    """
    trees = cheapest_trees(graph)
    users: dict[int, list[tuple[int, int]]] = {}
    for cls, nodes in graph.nodes.items():
        for node in nodes:
            for child in set(graph.children[node]):
                users.setdefault(child, []).append((node, cls))
    below: dict[int, dict[int, int]] = {}
    total: dict[int, int] = {}
    queue: dict[tuple[int, int], None] = {}
    for cls, node in trees.choice.items():
        below[cls] = {**_joined(graph, below, node), cls: node}
        total[cls] = sum(graph.cost[n] for n in below[cls].values())
        queue.update(dict.fromkeys(users.get(cls, ())))
    work = COST_SET_WORK
    while queue and work > 0:
        node, cls = entry = next(iter(queue))
        del queue[entry]
        union = _joined(graph, below, node)
        work -= len(union) + 1
        if cls in union:
            continue
        cost = sum(graph.cost[n] for n in union.values()) + graph.cost[node]
        if cost < total[cls]:
            total[cls], below[cls] = cost, {**union, cls: node}
            queue.update(dict.fromkeys(users.get(cls, ())))
    chosen: dict[int, int] = {}
    for root in graph.roots:
        chosen = {**below[root], **chosen}
    return {**trees.choice, **chosen}


def _joined(graph: Graph, below: dict[int, dict[int, int]], node: int) -> dict[int, int]:
    """The sets of a node's children as one; every class keeps the node that comes with its set.

    Closed and acyclic like each of them: a class of an earlier set needs classes of that set only.
    """
    union: dict[int, int] = {}
    for child in sorted(set(graph.children[node]), key=lambda c: (-len(below[c]), c)):
        union = {**below[child], **union}
    return union


def _beam(graph: Graph) -> Answer:
    try:
        return solve_by_beam(graph, BEAM_WIDTH)
    except GaveUp:
        return Answer({}, None, 0)
