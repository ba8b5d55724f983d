"""Exact extraction: the cheapest DAG, or the best one and a proven bound at the deadline."""

from __future__ import annotations

from collections.abc import Mapping

from pypto_egg.extract.cp_sat import solve_with_cp_sat
from pypto_egg.extract.dag import (
    LARGE,
    NEIGHBOURHOOD_STEPS,
    SEARCH_VISITS,
    solve_piece_by_trees,
    solve_piece_greedily,
)
from pypto_egg.extract.deadline import Deadline, passed, seconds_left, share
from pypto_egg.extract.decompose import Answer, split
from pypto_egg.extract.graph import Graph
from pypto_egg.extract.landmarks import PROOF_WORK, drop_by_landmarks, find_landmarks
from pypto_egg.extract.neighbourhoods import improve_by_neighbourhoods
from pypto_egg.extract.reduce import reduce_graph
from pypto_egg.extract.sweep import GaveUp, solve_by_sweep

WARM_START_VISITS = 20_000
"""Work of each local search before the exact one, which needs a selection to start from."""

NEIGHBOURHOOD_EFFORT = 0.3
"""The solver's deterministic time for a neighbourhood: some 0.3 s."""


class ExactSolver:
    """Solves irreducible parts to optimality, until a deadline.

    Args:
        deadline: after which the best so far is returned.
        known: class -> node of a good selection of the whole graph, if there is one.
    """

    def __init__(self, deadline: Deadline, known: Mapping[int, int] | None = None) -> None:
        self._deadline = deadline
        self._start = known

    def __call__(self, graph: Graph) -> Answer:
        """The cheapest selection of `graph`; at the deadline the best one and a proven bound."""
        if passed(self._deadline):
            return solve_piece_by_trees(graph)
        known = self._known(graph)
        if known.bound is None or known.cost == known.bound or passed(self._deadline):
            return known
        fixed = reduce_graph(graph, upper=known.cost, deadline=self._deadline)
        if fixed is None:
            return Answer({}, None, None)
        answer = Answer(fixed.choice, fixed.base, fixed.base)
        parts = split(graph)
        for part in parts:
            upper = known.cost - fixed.base if known.cost is not None and len(parts) == 1 else None
            answer.add(self._search(part, upper, known.choice))
        if answer.bound is not None:
            answer.bound = max(answer.bound, known.bound)
        if known.cost is not None and (answer.cost is None or known.cost < answer.cost):
            answer.choice, answer.cost = known.choice, known.cost
        return answer

    def _known(self, graph: Graph) -> Answer:
        """A selection to start from; of a large graph a good one, as a proof may take too long."""
        if len(graph.cost) < LARGE:
            return solve_piece_greedily(graph, WARM_START_VISITS, self._deadline)
        until = share(self._deadline, 0.3)
        known = solve_piece_greedily(graph, SEARCH_VISITS, until, self._start)
        if known.cost is None or known.cost == known.bound:
            return known
        until = share(self._deadline, 0.75)
        picked = improve_by_neighbourhoods(graph, known.choice, solve_small_part, until)
        return Answer(picked, sum(graph.cost[node] for node in picked.values()), known.bound)

    def _search(self, graph: Graph, upper: int | None, hint: Mapping[int, int]) -> Answer:
        landmarks = find_landmarks(graph, PROOF_WORK, share(self._deadline, 0.3))
        if upper is not None:
            drop_by_landmarks(graph, landmarks, upper)
        try:
            return solve_by_sweep(graph, upper, landmarks, self._deadline)
        except GaveUp:
            found = solve_with_cp_sat(graph, landmarks, hint, seconds_left(self._deadline))
        if found.bound is not None:
            found.bound = max(found.bound, landmarks.bound)
        return found


def solve_small_part(part: Graph, most: int) -> Answer:
    """A selection of a part that costs at most `most`, if one is found with little effort."""
    landmarks = find_landmarks(part)
    if landmarks.bound > most:
        return Answer({}, None, landmarks.bound)
    drop_by_landmarks(part, landmarks, most)
    try:
        return solve_by_sweep(part, most, landmarks, None, NEIGHBOURHOOD_STEPS)
    except GaveUp:
        return solve_with_cp_sat(part, landmarks, {}, None, effort=NEIGHBOURHOOD_EFFORT)
