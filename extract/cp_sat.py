"""One part of an extraction problem as a model for OR-tools CP-SAT."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from pypto_egg.errors import InternalError
from pypto_egg.extract.deadline import seconds_left
from pypto_egg.extract.decompose import Answer
from pypto_egg.extract.graph import Graph, selected_nodes
from pypto_egg.extract.landmarks import Landmarks
from pypto_egg.extract.structure import cycle_groups

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar

COST_BITS = 50
"""The sum of the costs handed over has at most this many bits, far from the solver's 64."""

WEIGHT_BITS = 60
"""The sum of a constraint's weights, as handed over, has at most this many bits."""

SMALL_GROUP = 5
"""A cycle group of so few classes is kept acyclic by clauses for each of its subsets."""


def solve_with_cp_sat(
    graph: Graph,
    landmarks: Landmarks,
    hint: Mapping[int, int],
    seconds: float | None,
    *,
    effort: float | None = None,
) -> Answer:
    """The answer of CP-SAT for one part; the same one every time unless the time runs out.

    Costs that do not fit are rounded down, so that the solver's bound is a bound of the true cost.

    Args:
        landmarks: sets of which every selection holds a node; they make the bound strong.
        hint: class -> node of a known selection, may be incomplete.
        seconds: time limit; None: no limit.
        effort: limit of the solver's deterministic time, about seconds; None: no limit.
    """
    model, pick = selection_model(graph)
    for members in landmarks.sets:
        model.add_bool_or(pick[node] for node in members if node in pick)
    most = sum(max(graph.cost[node] for node in nodes) for nodes in graph.nodes.values())
    drop = max(0, most.bit_length() - COST_BITS)
    model.minimize(sum((graph.cost[node] >> drop) * var for node, var in pick.items()))
    choice, least = solve_model(model, pick, graph, hint, seconds, effort)
    bound = None if least is None else least << drop
    if choice is None:
        return Answer({}, None, bound)
    return Answer(choice, sum(graph.cost[node] for node in choice.values()), bound)


def selection_model(graph: Graph) -> tuple[CpModel, dict[int, IntVar]]:
    """A model of all selections of `graph` that its limits allow, and the variable of each node.

    It has no objective yet.
    """
    from ortools.sat.python import cp_model  # takes most of a second, so only when it is needed

    model = cp_model.CpModel()
    pick = {node: model.new_bool_var("") for nodes in graph.nodes.values() for node in nodes}
    used = {cls: model.new_bool_var("") for cls in graph.nodes}
    _add_needs(model, graph, pick, used)
    _add_acyclic(model, graph, pick, used)
    _add_limits(model, graph, pick)
    return model, pick


def solve_model(
    model: CpModel,
    pick: Mapping[int, IntVar],
    graph: Graph,
    hint: Mapping[int, int],
    seconds: float | None,
    effort: float | None = None,
) -> tuple[dict[int, int] | None, int | None]:
    """(class -> node of the best selection, bound of the objective), for a model of `graph`.

    The selection is None if none was found; the bound is None if none exists.
    """

    model.clear_hints()
    for cls, nodes in graph.nodes.items():
        for node in nodes:
            model.add_hint(pick[node], hint.get(cls) == node)
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        choice, bound = _solve_once(model, pick, graph, seconds_left(deadline), effort)
        if choice is None or bound is None:
            return choice, bound
        picked = set(choice.values())
        if graph.allows(picked):
            return choice, bound
        _rule_out(model, pick, graph, picked)


def _solve_once(
    model: CpModel,
    pick: Mapping[int, IntVar],
    graph: Graph,
    seconds: float | None,
    effort: float | None,
) -> tuple[dict[int, int] | None, int | None]:
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.linearization_level = 2
    if seconds is not None:
        solver.parameters.max_time_in_seconds = max(seconds, 0.01)
    if effort is not None:
        solver.parameters.max_deterministic_time = effort
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None, None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        raise InternalError(f"CP-SAT refused the model: {solver.status_name(status)}")
    # A whole number, up to what its way through floating point adds: 0.9999999 stands for 1.
    bound = max(0, round(solver.best_objective_bound))
    if status == cp_model.UNKNOWN:
        return None, bound
    choice = {
        cls: node
        for cls, nodes in graph.nodes.items()
        for node in nodes
        if solver.boolean_value(pick[node])
    }
    return selected_nodes(choice, graph.children, graph.requires, graph.roots), bound


def _rule_out(model: CpModel, pick: Mapping[int, IntVar], graph: Graph, picked: set[int]) -> None:
    """No selection holds all of these nodes that exceed a limit by what rounding left out."""
    for row, limit in zip(graph.weights, graph.limits, strict=True):
        heavy = [node for node in sorted(picked) if row.get(node)]
        if sum(row[node] for node in heavy) > limit:
            model.add_bool_or(pick[node].negated() for node in heavy)


def _add_needs(
    model: CpModel, graph: Graph, pick: Mapping[int, IntVar], used: Mapping[int, IntVar]
) -> None:
    """A class is used when it has one node picked; a picked node's children are used."""
    roots = set(graph.roots)
    for cls, nodes in graph.nodes.items():
        model.add_exactly_one([used[cls].negated(), *(pick[node] for node in nodes)])
        if cls in roots:
            model.add_bool_and(used[cls])
        users: dict[int, list[int]] = {}
        for node in nodes:
            for target in {*graph.children[node], *graph.requires[node]}:
                users.setdefault(target, []).append(node)
        for target in sorted(set(users) - roots):
            model.add_at_most_one([used[target].negated(), *(pick[n] for n in users[target])])


def _add_acyclic(
    model: CpModel, graph: Graph, pick: Mapping[int, IntVar], used: Mapping[int, IntVar]
) -> None:
    """No cycle: a used class of any subset implies a node that needs nothing of the subset.

    All subsets of a small cycle group say all there is to say. Larger groups get levels that fall
    from a class to its children, and the clauses of a few subsets to strengthen the bound.
    """
    members: dict[int, list[int]] = {}
    for cls, number in cycle_groups(graph).items():
        members.setdefault(number, []).append(cls)
    for group in members.values():
        if len(group) == 1:
            continue
        if len(group) > SMALL_GROUP:
            _add_levels(model, graph, pick, group)
        for subset in _subsets(graph, group):
            inside = set(subset)
            entries = [
                pick[node]
                for cls in subset
                for node in graph.nodes[cls]
                if inside.isdisjoint(graph.children[node])
            ]
            for cls in subset:
                model.add_bool_or([used[cls].negated(), *entries])


def _subsets(graph: Graph, group: Sequence[int]) -> Iterator[Sequence[int]]:
    if len(group) <= SMALL_GROUP:
        for size in range(2, len(group) + 1):
            yield from combinations(group, size)
        return
    below = {cls: {c for n in graph.nodes[cls] for c in graph.children[n]} for cls in group}
    for cls in group:
        for other in sorted(below[cls]):
            if cls < other and other in below and cls in below[other]:
                yield (cls, other)
    yield group


def _add_levels(
    model: CpModel, graph: Graph, pick: Mapping[int, IntVar], group: Sequence[int]
) -> None:
    level = {cls: model.new_int_var(0, len(group) - 1, "") for cls in group}
    for cls in group:
        for node in graph.nodes[cls]:
            for child in graph.children[node]:
                if child in level:
                    model.add(level[cls] >= level[child] + 1).only_enforce_if(pick[node])


def _add_limits(model: CpModel, graph: Graph, pick: Mapping[int, IntVar]) -> None:
    """The limits; weights that do not fit are rounded down, which `solve_model` makes good."""
    for row, limit in zip(graph.weights, graph.limits, strict=True):
        terms = [(node, weight) for node, weight in sorted(row.items()) if weight]
        drop = max(0, sum(weight for _, weight in terms).bit_length() - WEIGHT_BITS)
        model.add(sum((weight >> drop) * pick[node] for node, weight in terms) <= limit >> drop)
    for members in graph.forbidden:
        model.add_bool_or(pick[node].negated() for node in members)
