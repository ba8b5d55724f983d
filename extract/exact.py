"""Exact extraction with OR-tools CP-SAT: the cheapest DAG, or a proven bound at the deadline."""

from __future__ import annotations

import time
from collections.abc import Mapping

from pypto_egg.errors import ExtractionError, InternalError
from pypto_egg.extract.dag import solve_piece_greedily
from pypto_egg.extract.decompose import Answer, split
from pypto_egg.extract.graph import SOLVER_BITS, Graph, selected_nodes
from pypto_egg.extract.landmarks import Landmarks, drop_by_landmarks, find_landmarks
from pypto_egg.extract.reduce import reduce_graph
from pypto_egg.extract.structure import cycle_groups
from pypto_egg.extract.sweep import GaveUp, solve_by_sweep


class ExactSolver:
    """Solves irreducible parts to optimality, until a deadline.

    Args:
        deadline: `time.monotonic()` time after which the best so far is returned; None: no end.
    """

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline

    def __call__(self, graph: Graph) -> Answer:
        """The cheapest selection of `graph`; at the deadline the best one and a proven bound."""
        known = solve_piece_greedily(graph)
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
        landmarks = find_landmarks(graph)
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


def solve_with_cp_sat(
    graph: Graph, landmarks: Landmarks, hint: Mapping[int, int], seconds: float | None
) -> Answer:
    """The answer of CP-SAT for one part; deterministic unless the time runs out.

    Costs are handed over rounded down to SOLVER_BITS bits, so that the solver's bound is a bound
    of the true cost too.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    pick = {node: model.new_bool_var("") for nodes in graph.nodes.values() for node in nodes}
    used = {cls: model.new_bool_var("") for cls in graph.nodes}
    roots = set(graph.roots)
    for cls, nodes in graph.nodes.items():
        if cls in roots:
            model.add_exactly_one(pick[node] for node in nodes)
            model.add(used[cls] == 1)
        else:
            model.add_exactly_one([used[cls].negated(), *(pick[node] for node in nodes)])
    for nodes in graph.nodes.values():
        by_target: dict[int, list[int]] = {}
        for node in nodes:
            for target in {*graph.children[node], *graph.requires[node]}:
                by_target.setdefault(target, []).append(node)
        for target in sorted(by_target):
            if target not in roots:
                users = [pick[node] for node in by_target[target]]
                model.add_at_most_one([used[target].negated(), *users])
    group = cycle_groups(graph)
    sizes: dict[int, int] = {}
    for number in group.values():
        sizes[number] = sizes.get(number, 0) + 1
    level = {
        cls: model.new_int_var(0, sizes[group[cls]] - 1, "")
        for cls in graph.nodes
        if sizes[group[cls]] > 1
    }
    for cls, nodes in graph.nodes.items():
        for node in nodes:
            for child in graph.children[node]:
                if group[child] == group[cls]:
                    model.add(level[cls] >= level[child] + 1).only_enforce_if(pick[node])
    for row, limit, name in zip(graph.weights, graph.limits, graph.limit_names, strict=True):
        terms = [(node, weight) for node, weight in sorted(row.items()) if weight]
        if sum(weight for _, weight in terms) >= 1 << 60:
            raise ExtractionError(
                f"the weights of constraint {name!r} cannot be added exactly in 64 bits",
                hint="give weights as whole numbers, for example bytes",
            )
        model.add(sum(weight * pick[node] for node, weight in terms) <= limit)
    for members in graph.forbidden:
        model.add_bool_or(pick[node].negated() for node in members)
    for members in landmarks.sets:
        model.add_bool_or(pick[node] for node in members if node in pick)
    most = sum(max(graph.cost[node] for node in nodes) for nodes in graph.nodes.values())
    drop = max(0, most.bit_length() - SOLVER_BITS)
    model.minimize(sum((graph.cost[node] >> drop) * var for node, var in pick.items()))
    for cls, nodes in graph.nodes.items():
        for node in nodes:
            model.add_hint(pick[node], hint.get(cls) == node)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.linearization_level = 2
    if seconds is not None:
        solver.parameters.max_time_in_seconds = max(seconds, 0.01)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Answer({}, None, None)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        raise InternalError(f"CP-SAT refused the model: {solver.status_name(status)}")
    bound = max(0, int(solver.best_objective_bound)) << drop
    if status == cp_model.UNKNOWN:
        return Answer({}, None, bound)
    choice = {
        cls: node
        for cls, nodes in graph.nodes.items()
        for node in nodes
        if solver.value(pick[node])
    }
    picked = selected_nodes(choice, graph.children, graph.requires, graph.roots)
    return Answer(picked, sum(graph.cost[node] for node in picked.values()), bound)
