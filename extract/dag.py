"""DAG extraction by heuristics: shared parts are paid once. Claim: none beyond the proven bound."""

from __future__ import annotations

from pypto_egg.extract.decompose import Answer
from pypto_egg.extract.graph import Graph, selected_nodes
from pypto_egg.extract.landmarks import find_landmarks
from pypto_egg.extract.local_search import improve
from pypto_egg.extract.sweep import solve_by_beam
from pypto_egg.extract.tree import cheapest_trees

BEAM_WIDTH = 64
"""States kept in a sweep: wide enough to be exact on chains of layers with a few forms each."""


def solve_piece_greedily(graph: Graph) -> Answer:
    """The best of a beam search and the trees, each improved by local search, and a bound."""
    beam = solve_by_beam(graph, BEAM_WIDTH)
    if beam.bound is None or beam.bound == beam.cost:
        return beam
    trees = cheapest_trees(graph).choice
    bound = find_landmarks(graph).bound
    best = Answer({}, None, bound)
    for choice in ([beam.choice] if beam.cost is not None else []) + [dict(trees)]:
        start = selected_nodes(choice, graph.children, graph.requires, graph.roots)
        picked = improve(graph, start)
        if not graph.allows(set(picked.values())):
            continue
        cost = sum(graph.cost[node] for node in picked.values())
        if best.cost is None or cost < best.cost:
            best = Answer(picked, cost, bound)
        if cost == bound:
            break
    return best
