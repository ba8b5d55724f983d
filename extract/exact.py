"""Exact extraction: the cheapest DAG, or the best one and a proven bound at the deadline."""

from __future__ import annotations

import time
from collections.abc import Mapping

from pypto_egg.extract.cp_sat import solve_with_cp_sat
from pypto_egg.extract.dag import solve_piece_by_trees, solve_piece_greedily
from pypto_egg.extract.decompose import Answer, split
from pypto_egg.extract.graph import Graph
from pypto_egg.extract.landmarks import PROOF_WORK, drop_by_landmarks, find_landmarks
from pypto_egg.extract.reduce import reduce_graph
from pypto_egg.extract.sweep import GaveUp, solve_by_sweep

WARM_START_VISITS = 20_000
"""Work of each local search before the exact one, which needs a selection to start from."""


class ExactSolver:
    """Solves irreducible parts to optimality, until a deadline.

    Args:
        deadline: `time.monotonic()` time after which the best so far is returned; None: no end.
    """

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline

    def __call__(self, graph: Graph) -> Answer:
        """The cheapest selection of `graph`; at the deadline the best one and a proven bound."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            return solve_piece_by_trees(graph)
        known = solve_piece_greedily(graph, WARM_START_VISITS)
        if known.bound is None or known.cost == known.bound:
            return known
        fixed = reduce_graph(graph, upper=known.cost)
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

    def _search(self, graph: Graph, upper: int | None, hint: Mapping[int, int]) -> Answer:
        landmarks = find_landmarks(graph, PROOF_WORK)
        if upper is not None:
            drop_by_landmarks(graph, landmarks, upper)
        try:
            return solve_by_sweep(graph, upper, landmarks, self._deadline)
        except GaveUp:
            left = None if self._deadline is None else self._deadline - time.monotonic()
        found = solve_with_cp_sat(graph, landmarks, hint, left)
        if found.bound is not None:
            found.bound = max(found.bound, landmarks.bound)
        return found
