"""DAG extraction by heuristics: shared parts are paid once. Claim: none beyond the proven bound."""

from __future__ import annotations

from collections.abc import Mapping

from pypto_egg.extract.cost_sets import cost_set_choice
from pypto_egg.extract.deadline import Deadline, passed, share
from pypto_egg.extract.decompose import Answer
from pypto_egg.extract.graph import Graph, children_first, selected_nodes
from pypto_egg.extract.landmarks import find_landmarks
from pypto_egg.extract.local_search import improve
from pypto_egg.extract.neighbourhoods import improve_by_neighbourhoods
from pypto_egg.extract.sweep import GaveUp, solve_by_beam, solve_by_sweep
from pypto_egg.extract.tree import cheapest_trees

BEAM_WIDTH = 64
"""States kept in a sweep: wide enough to be exact on chains of layers with a few forms each."""

SEARCH_VISITS = 200_000
"""Work of each local search when there is no exact search to follow."""

NEIGHBOURHOOD_STEPS = 2_000
"""Steps of a sweep over one of thousands of neighbourhoods: some 0.02 s."""

LARGE = 600
"""Nodes from which on neighbourhoods are solved one by one; smaller graphs are solved whole."""


def solve_piece_greedily(
    graph: Graph,
    visits: int = SEARCH_VISITS,
    deadline: Deadline = None,
    known: Mapping[int, int] | None = None,
) -> Answer:
    """The best of three greedy starts, each improved by local search, and a bound.

    The starts are a beam search, greedy cost sets, and the cheapest trees. A beam search that left
    nothing out is exact and ends the matter. The best one is improved further by neighbourhoods
    where the graph is large.

    Args:
        visits: work of each local search.
        known: class -> node of a good selection of a graph that this one is a part of.
    """
    beam = _beam(graph, share(deadline, 0.2))
    if beam.bound is None or beam.bound == beam.cost:
        return beam
    bound = find_landmarks(graph, deadline=share(deadline, 0.2)).bound
    best = Answer({}, None, bound)
    for choice in _starts(graph, beam, deadline, known):
        start = selected_nodes(choice, graph.children, graph.requires, graph.roots)
        picked = improve(graph, start, visits, share(deadline, 0.3))
        if not graph.allows(set(picked.values())):
            continue
        cost = sum(graph.cost[node] for node in picked.values())
        if best.cost is None or cost < best.cost:
            best = Answer(picked, cost, bound)
        if cost == bound or (passed(deadline) and best.cost is not None):
            break
    return best


def polish(graph: Graph, answer: Answer, deadline: Deadline) -> Answer:
    """An answer at most as dear: a large graph's neighbourhoods solved one by one, by sweeps."""
    if answer.cost is None or answer.cost == answer.bound or len(graph.cost) < LARGE:
        return answer
    picked = improve_by_neighbourhoods(graph, answer.choice, _swept, deadline)
    return Answer(picked, sum(graph.cost[node] for node in picked.values()), answer.bound)


def _swept(part: Graph, most: int) -> Answer:
    landmarks = find_landmarks(part)
    if landmarks.bound > most:
        return Answer({}, None, landmarks.bound)
    try:
        return solve_by_sweep(part, most, landmarks, None, NEIGHBOURHOOD_STEPS)
    except GaveUp:
        return Answer({}, None, landmarks.bound)


def _starts(
    graph: Graph, beam: Answer, deadline: Deadline, known: Mapping[int, int] | None
) -> list[dict[int, int]]:
    starts = [beam.choice] if beam.cost is not None else []
    trees = dict(cheapest_trees(graph).choice)
    left = {cls: node for cls, node in (known or {}).items() if node in graph.cost}
    part = {**trees, **left}
    picked = selected_nodes(part, graph.children, graph.requires, graph.roots)
    if left and children_first(picked, graph.children) is not None:
        starts.append(part)
    else:
        starts.append(cost_set_choice(graph, share(deadline, 0.3)))
    if trees not in starts:
        starts.append(trees)
    return starts


def solve_piece_by_trees(graph: Graph) -> Answer:
    """The selection of each class's cheapest tree, if the constraints allow it; in linear time."""
    return _of_choice(graph, dict(cheapest_trees(graph).choice))


def solve_piece_by_cost_sets(graph: Graph, deadline: Deadline) -> Answer:
    """The selection of greedy cost sets, if the constraints allow it."""
    return _of_choice(graph, cost_set_choice(graph, deadline))


def _of_choice(graph: Graph, choice: dict[int, int]) -> Answer:
    picked = selected_nodes(choice, graph.children, graph.requires, graph.roots)
    if not graph.allows(set(picked.values())):
        return Answer({}, None, 0)
    return Answer(picked, sum(graph.cost[node] for node in picked.values()), 0)


def _beam(graph: Graph, deadline: Deadline) -> Answer:
    try:
        return solve_by_beam(graph, BEAM_WIDTH, deadline)
    except GaveUp:
        return Answer({}, None, 0)
