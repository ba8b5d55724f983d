"""The extractors by name, and `extract`, which runs one and reports what it found."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pypto_egg.errors import ExtractionError, OptionError
from pypto_egg.extract.bottleneck import METHOD, check_pipes, extract_bottleneck
from pypto_egg.extract.dag import (
    LARGE,
    polish,
    solve_piece_by_cost_sets,
    solve_piece_by_trees,
    solve_piece_greedily,
)
from pypto_egg.extract.deadline import Deadline, passed, share
from pypto_egg.extract.decompose import Answer, solve
from pypto_egg.extract.exact import ExactSolver
from pypto_egg.extract.graph import Graph, graph_of, real_number, selected_nodes
from pypto_egg.extract.problem import Constraint, Problem
from pypto_egg.extract.result import Selection, Status, is_optimal

Extractor = Callable[[Graph, Deadline], Answer]
"""From a graph, which it may change, and a deadline."""

Objective = Literal["serial", "bottleneck"]

FORBIDDEN = "forbidden"
"""The name under which the forbidden node sets appear in a conflict."""


def extract_tree(graph: Graph, deadline: Deadline) -> Answer:
    """Claim: tree-optimal (see `cheapest_trees`); nothing for the DAG, nothing for constraints."""
    return solve_piece_by_trees(graph)


def extract_dag(graph: Graph, deadline: Deadline) -> Answer:
    """Claim: never dearer than the tree extractor or than greedy cost sets over the whole graph;
    optimal where its bound says so."""

    def method(rest: Graph, known: Mapping[int, int] | None) -> Answer:
        def piece(graph: Graph) -> Answer:
            if passed(deadline):
                return solve_piece_by_trees(graph)
            until = share(deadline, 0.5)
            found = solve_piece_greedily(graph, deadline=until, known=known)
            return polish(graph, found, deadline)

        return solve(rest, piece, deadline)

    return _best_with_greedy(graph, deadline, method)


def extract_exact(graph: Graph, deadline: Deadline) -> Answer:
    """Claim: DAG-optimal under all constraints, unless the deadline passes."""

    def method(rest: Graph, known: Mapping[int, int] | None) -> Answer:
        return solve(rest, ExactSolver(deadline, known), deadline)

    return _best_with_greedy(graph, deadline, method)


def _best_with_greedy(
    graph: Graph,
    deadline: Deadline,
    method: Callable[[Graph, Mapping[int, int] | None], Answer],
) -> Answer:
    """The best of a method and, where it could not prove its answer, of the quick ones.

    Where there is a deadline and the graph is large the quick ones go first, so that there is
    something to return and to start from.
    """
    quick = [solve_piece_by_trees(graph)]
    whole = graph.part(graph.nodes, graph.roots)
    start: Mapping[int, int] | None = None
    first = deadline is not None and len(graph.cost) >= LARGE
    if first:
        quick.append(solve_piece_by_cost_sets(graph, share(deadline, 0.4)))
        start = quick[-1].choice if quick[-1].cost is not None else None
    answer = method(graph, start)
    if answer.cost is None or answer.cost != answer.bound:
        if not first:
            quick.append(solve_piece_by_cost_sets(whole, deadline))
        for other in quick:
            if other.cost is not None and (answer.cost is None or other.cost < answer.cost):
                answer.choice, answer.cost = other.choice, other.cost
    return answer


EXTRACTORS: Mapping[str, Extractor] = {
    "tree": extract_tree,
    "dag": extract_dag,
    "exact": extract_exact,
}


def extractor_names() -> tuple[str, ...]:
    """The names that `extract` knows."""
    return tuple(EXTRACTORS)


def extractor(name: str) -> Extractor:
    """The extractor of that name.

    Raises:
        OptionError: there is none; the message lists the names.
    """
    found = EXTRACTORS.get(name)
    if found is None:
        raise OptionError(
            f"there is no extractor {name!r}", hint=f"the extractors are: {', '.join(EXTRACTORS)}"
        )
    return found


def extract(
    problem: Problem,
    method: str = "exact",
    *,
    objective: Objective = "serial",
    not_overlapped: Sequence[str] = (),
    deadline_seconds: float | None = None,
    constraints: Iterable[Constraint] = (),
) -> Selection:
    """The selection that a method finds, with its cost, a proven bound and a status.

    The same problem gives the same selection, whatever the hash seed, unless the deadline passes.
    Whether there is a selection is in `status`; `Selection.check` raises when there is none.

    Args:
        method: "tree", "dag" or "exact".
        objective: "serial" minimises the sum of `node_cost`, "bottleneck" the greatest sum over a
            pipe of `node_vector` (only with "exact").
        not_overlapped: for "bottleneck": pipes whose sums come on top of the greatest.
        deadline_seconds: time after which the best so far is returned; None: no end.
        constraints: further constraints beside those of the problem.

    Raises:
        OptionError: the method or the objective is not known, or they do not go together.
        ExtractionError: a root class has no finite term at all, or a number cannot be used.
    """
    extra = tuple(constraints)
    whole = problem.with_constraints(extra) if extra else problem
    goal = Goal(method, objective, tuple(not_overlapped)).checked(whole)
    deadline = deadline_in(deadline_seconds)
    found = goal.search(whole, graph_of(whole), deadline)
    if found.found:
        return found
    conflict = _conflict(whole, deadline) if found.status == "infeasible" else _limits(whole)
    return replace(found, conflict=conflict)


def deadline_in(seconds: float | None) -> Deadline:
    """The deadline in so many seconds; None: no end.

    Raises:
        ExtractionError: the seconds are not above 0.
    """
    if seconds is None:
        return None
    if not seconds > 0:
        raise ExtractionError(f"deadline_seconds is {seconds}; it must be above 0")
    return time.monotonic() + seconds


@dataclass(frozen=True)
class Goal:
    """What is minimised and by which method; arguments as of `extract`."""

    method: str
    objective: Objective
    not_overlapped: tuple[str, ...] = ()

    def checked(self, problem: Problem) -> Goal:
        """The goal itself, if it can be had of the problem.

        Raises:
            OptionError, ExtractionError: as `extract`.
        """
        extractor(self.method)
        if self.objective == "bottleneck":
            if self.method != METHOD:
                raise OptionError(
                    f"extractor {self.method!r} cannot minimise the bottleneck",
                    hint=f"use {METHOD!r}",
                )
            check_pipes(problem, self.not_overlapped)
        elif self.objective != "serial" or self.not_overlapped:
            raise OptionError(
                f"objective {self.objective!r} with not_overlapped={list(self.not_overlapped)}",
                hint="the objectives are 'serial' and 'bottleneck'; "
                "not_overlapped is for 'bottleneck'",
            )
        return self

    def search(self, problem: Problem, graph: Graph, deadline: Deadline) -> Selection:
        """The selection that is found; its `conflict` is left empty.

        Args:
            graph: the problem's graph, which is changed.
        """
        if self.objective == "bottleneck":
            return extract_bottleneck(problem, graph, self.not_overlapped, deadline=deadline)
        start, shift, method = time.monotonic(), graph.shift, self.method
        answer = EXTRACTORS[method](graph, deadline)
        bound = math.inf if answer.bound is None else real_number(answer.bound, shift, down=True)
        if answer.cost is None:
            nothing = _why_nothing(answer, method)
            return Selection({}, math.inf, bound, nothing, method, time.monotonic() - start)
        needs = problem.node_children, problem.node_requires
        choice = selected_nodes(answer.choice, *needs, problem.roots)
        cost = math.fsum(float(problem.node_cost[node]) for node in choice.values())
        status: Status = "optimal" if is_optimal(cost, bound) else "feasible"
        return Selection(choice, cost, bound, status, method, time.monotonic() - start)


def _why_nothing(answer: Answer, method: str) -> Status:
    if answer.bound is None:
        return "infeasible"
    return "timeout" if method == "exact" else "unknown"


def _limits(problem: Problem) -> tuple[str, ...]:
    names = [constraint.name for constraint in problem.constraints]
    if any(len(group) > 1 for group in problem.forbidden):
        names.append(FORBIDDEN)
    return tuple(names)


def _conflict(problem: Problem, deadline: float | None) -> tuple[str, ...]:
    """Names of constraints that cannot hold together; each is needed, unless time ran out."""
    free = replace(problem, node_cost=np.zeros(problem.node_count))
    for dropped in problem.constraints:
        fewer = [constraint for constraint in free.constraints if constraint is not dropped]
        smaller = replace(free, constraints=fewer)
        if _impossible(smaller, deadline):
            free = smaller
    singles = [group for group in problem.forbidden if len(group) == 1]
    smaller = replace(free, forbidden=singles)
    if len(singles) < len(problem.forbidden) and _impossible(smaller, deadline):
        free = smaller
    return _limits(free)


def _impossible(problem: Problem, deadline: float | None) -> bool:
    if deadline is not None and time.monotonic() > deadline:
        return False
    return extract_exact(graph_of(problem), deadline).bound is None
