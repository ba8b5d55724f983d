"""Pareto fronts: the selections that no other beats in both of two objectives.

By epsilon constraints: the best selection by the first objective, then the least of the second
among those as good; then the same with less of the second, until there is none (Haimes 1971). Each
step is an extraction problem of its own, so the front is exact where the extractor is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pypto_egg.extract.bottleneck import no_longer
from pypto_egg.extract.deadline import Deadline, passed
from pypto_egg.extract.graph import graph_of, graph_or_none
from pypto_egg.extract.problem import Constraint, Problem
from pypto_egg.extract.registry import Goal, Objective, deadline_in
from pypto_egg.extract.result import Selection

SAME = 1e-10
"""Share by which two values of the first objective may differ and count as the same."""


@dataclass(frozen=True)
class ParetoPoint:
    """One selection of a front.

    Args:
        cost: of the first objective.
        weight: of the second.
        selection: its `cost` and `bound` are those of the first objective, under the limit on the
            second that led to it.
    """

    cost: float
    weight: float
    selection: Selection


@dataclass(frozen=True)
class ParetoFront:
    """Selections none of which is beaten in both objectives by another of the front.

    Args:
        points: cost ascending, weight descending.
        complete: proven: every selection is matched or beaten by one of them in both.
    """

    points: tuple[ParetoPoint, ...]
    complete: bool


def pareto(
    problem: Problem,
    weights: Mapping[int, float],
    *,
    objective: Objective = "serial",
    not_overlapped: Sequence[str] = (),
    deadline_seconds: float | None = None,
    constraints: Iterable[Constraint] = (),
) -> ParetoFront:
    """The front of the problem's objective against the sum of weights of the selected nodes.

    Args:
        weights: node -> weight, finite and not negative; a node that is not listed weighs 0.
        objective, not_overlapped, deadline_seconds, constraints: as of `extract`.

    Raises:
        OptionError, ExtractionError: as `extract`.
    """
    whole = problem.with_constraints(constraints)
    # Checked as a constraint is, whose weights follow the same rules.
    whole.with_constraints([Constraint("weights", weights, 0)])
    goal = Goal("exact", objective, tuple(not_overlapped)).checked(whole)
    graph_of(whole)  # raises if a root class has no finite term at all
    return _Front(whole, weights, goal, deadline_in(deadline_seconds)).find()


class _Front:
    def __init__(
        self, problem: Problem, weights: Mapping[int, float], goal: Goal, deadline: Deadline
    ) -> None:
        self.problem = problem
        self.weights = weights
        self.goal = goal
        self.deadline = deadline

    def find(self) -> ParetoFront:
        points: list[ParetoPoint] = []
        problem, proven = self.problem, True
        while True:
            first = self._search(self.goal, problem)
            proven &= first.status in ("optimal", "infeasible")
            if not first.found:
                break
            lightest = self._lightest(problem, first)
            proven &= lightest.status == "optimal"
            weight = self._weight(lightest.choice)
            points.append(ParetoPoint(lightest.cost, float(weight), lightest))
            if weight == 0 or (passed(self.deadline) and not proven):
                proven &= weight == 0
                break
            limit = Constraint("weight", self.weights, _below(weight))
            problem = self.problem.with_constraints([limit])
        return ParetoFront(_not_beaten(points), proven)

    def _search(self, goal: Goal, problem: Problem) -> Selection:
        graph = graph_or_none(problem)
        if graph is None:
            return Selection({}, math.inf, math.inf, "infeasible", goal.method, 0.0)
        return goal.search(problem, graph, self.deadline)

    def _lightest(self, problem: Problem, first: Selection) -> Selection:
        """Of the selections as good as the first the one that weighs least, with its cost."""
        if self.goal.objective == "bottleneck":
            kept = no_longer(problem, self.goal.not_overlapped, first.cost)
        else:
            costs = {n: float(c) for n, c in enumerate(problem.node_cost) if c}
            kept = [Constraint("cost", costs, first.cost * (1 + SAME))]
        row = np.zeros(problem.node_count)
        for node, weight in self.weights.items():
            row[node] = weight
        lighter = replace(problem, node_cost=row, constraints=(*problem.constraints, *kept))
        found = self._search(Goal("exact", "serial"), lighter)
        if not found.found:
            return replace(first, status="feasible")
        status = first.status if found.status == "optimal" else "feasible"
        same = replace(first, choice=found.choice, status=status)
        return replace(same, cost=same.price(problem))

    def _weight(self, choice: Mapping[int, int]) -> Fraction:
        return sum((Fraction(self.weights.get(n, 0)) for n in choice.values()), Fraction())


def _below(value: Fraction) -> float:
    """The greatest float below a value."""
    nearest = float(value)
    return nearest if Fraction(nearest) < value else math.nextafter(nearest, -math.inf)


def _not_beaten(points: Sequence[ParetoPoint]) -> tuple[ParetoPoint, ...]:
    """Those that no other is as good as in both; cost ascending."""
    kept: list[ParetoPoint] = []
    for point in sorted(points, key=lambda p: (p.cost, p.weight)):
        if not kept or point.weight < kept[-1].weight:
            kept.append(point)
    return tuple(kept)
