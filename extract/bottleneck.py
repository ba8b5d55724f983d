"""Extraction by the busiest pipe: the cheapest selection when pipes work at the same time.

The objective is the greatest sum over a pipe, of the nodes' `node_vector`, plus the sums of the
pipes that overlap with nothing. It is not additive over nodes: of two ways of making a class one is
better only if it is so on every pipe and in cost. Reductions by this order keep the optimum; a
decomposition does not, so what they leave goes to CP-SAT as a whole.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pypto_egg.errors import ExtractionError
from pypto_egg.extract.cp_sat import COST_BITS, selection_model, solve_model
from pypto_egg.extract.dag import solve_piece_greedily
from pypto_egg.extract.deadline import Deadline, passed, seconds_left, share
from pypto_egg.extract.graph import Graph, real_number, selected_nodes, whole_numbers
from pypto_egg.extract.problem import Constraint, Problem
from pypto_egg.extract.reduce import reduce_graph
from pypto_egg.extract.result import Selection, Status, is_optimal

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar

METHOD = "exact"
"""The only method for this objective."""

SAME_BITS = 31
"""Bottlenecks that differ by less than 2**-31 of them, half of RELATIVE_GAP, count as the same."""

_ROUNDING = 1e-10
"""Share by which a sum of cycles may exceed the least bottleneck."""


@dataclass(frozen=True)
class BottleneckSelection(Selection):
    """A selection whose `cost` and `bound` are those of the bottleneck objective.

    Args:
        not_overlapped: names of the pipes whose sums come on top of the greatest of the others.
    """

    not_overlapped: tuple[str, ...] = ()

    def price(self, problem: Problem) -> float:
        """The greatest sum over a pipe plus the sums of the pipes that overlap with nothing."""
        return bottleneck(self.choice, problem, self.not_overlapped)


def bottleneck(
    choice: Mapping[int, int], problem: Problem, not_overlapped: Sequence[str] = ()
) -> float:
    """The objective's value for the nodes of `choice`, each pipe's sum correctly rounded.

    Raises:
        ExtractionError: the problem has no `node_vector`.
    """
    vectors = _vectors(problem)
    sums = [
        math.fsum(float(vectors[node][pipe]) for node in choice.values())
        for pipe in range(len(problem.pipes))
    ]
    alone = set(not_overlapped)
    parts = list(zip(problem.pipes, sums, strict=True))
    longest = max((value for pipe, value in parts if pipe not in alone), default=0.0)
    return math.fsum([longest, *(value for pipe, value in parts if pipe in alone)])


def extract_bottleneck(
    problem: Problem,
    graph: Graph,
    not_overlapped: Sequence[str] = (),
    *,
    deadline: Deadline = None,
) -> BottleneckSelection:
    """The selection with the least bottleneck that meets all constraints.

    Among selections of the same bottleneck it is the one with the least sum of `node_cost`, so that
    pipes with time to spare are not given useless work; at the deadline that is left out.

    Without a selection the conflict is empty: which constraints stand in the way does not depend on
    the objective, and `extract` finds them.

    Args:
        graph: the problem's graph, which is changed.
    """
    start = time.monotonic()
    alone = tuple(dict.fromkeys(not_overlapped))
    state = _State(problem, graph, alone, deadline)
    choice, bound = state.search()
    taken = time.monotonic() - start
    if choice is None:
        nothing: Status = "infeasible" if bound == math.inf else "timeout"
        return BottleneckSelection({}, math.inf, bound, nothing, METHOD, taken, (), alone)
    cost = bottleneck(choice, problem, alone)
    bound = min(bound, cost)
    status: Status = "optimal" if is_optimal(cost, bound) else "feasible"
    return BottleneckSelection(choice, cost, bound, status, METHOD, taken, (), alone)


def no_longer(problem: Problem, not_overlapped: Sequence[str], cycles: float) -> list[Constraint]:
    """For each pipe that overlaps: with what comes on top it is busy for at most these cycles.

    A sum may exceed them by what rounding does to it.
    """
    vectors = np.array(_vectors(problem)).reshape(problem.node_count, len(problem.pipes))
    column = {pipe: vectors[:, i] for i, pipe in enumerate(problem.pipes)}
    on_top = sum((column[pipe] for pipe in not_overlapped), np.zeros(problem.node_count))
    limits = []
    for pipe in problem.pipes:
        if pipe in not_overlapped:
            continue
        busy = column[pipe] + on_top
        weights = {node: float(busy[node]) for node in np.flatnonzero(busy).tolist()}
        limits.append(Constraint(f"cycles of {pipe}", weights, cycles * (1 + _ROUNDING)))
    return limits


def check_pipes(problem: Problem, not_overlapped: Sequence[str]) -> None:
    """Nothing, when the problem has cycles for each pipe and pipes of these names.

    Raises:
        ExtractionError: the problem has no `node_vector`, or a name is not among its pipes.
    """
    unknown = [pipe for pipe in not_overlapped if pipe not in problem.pipes]
    if unknown:
        raise ExtractionError(
            f"the problem has no pipe {unknown[0]!r}",
            hint=f"its pipes are: {', '.join(problem.pipes) or 'none'}",
        )
    _vectors(problem)


class _State:
    """The search for one problem: what reductions left of it, and the best selection so far.

    Args:
        graph: with a row of weights for each pipe, before those of the limits.
    """

    def __init__(
        self, problem: Problem, graph: Graph, alone: tuple[str, ...], deadline: Deadline
    ) -> None:
        self.problem = problem
        self.alone = alone
        self.deadline = deadline
        self.graph = graph
        self.shift = _put_loads_first(problem, graph)
        self.pipes = len(problem.pipes)
        no_limit = graph.limits[: self.pipes]
        self.fixed = reduce_graph(graph, loads=self.pipes, deadline=share(deadline, 0.3))
        self.base = [before - left for before, left in zip(no_limit, graph.limits, strict=False)]
        self.loads = graph.weights[: self.pipes]
        for rows in (graph.weights, graph.limits, graph.limit_names):
            del rows[: self.pipes]

    def search(self) -> tuple[dict[int, int] | None, float]:
        """The best selection, if one was found, and a proven bound; inf: there is none."""
        if self.fixed is None:
            return None, math.inf
        greedy = solve_piece_greedily(self.graph, deadline=share(self.deadline, 0.4))
        if greedy.bound is None:
            return None, math.inf
        choice = None if greedy.cost is None else greedy.choice
        if not self.graph.nodes:
            whole = self._whole({})
            return whole, bottleneck(whole, self.problem, self.alone)
        bound = -math.inf
        while True:
            best = self._value(choice)
            if is_optimal(best, bound):
                break
            found, proven = self._solve(choice)
            bound = max(bound, proven)
            if found is not None and self._value(found) <= best * (1 + 2.0**-SAME_BITS):
                choice = found
            if not self._value(choice) < best or passed(self.deadline):
                break  # a smaller upper bound, which makes rounding finer, is not to be had
        return None if choice is None else self._whole(choice), bound

    def _value(self, choice: Mapping[int, int] | None) -> float:
        if choice is None:
            return math.inf
        return bottleneck(self._whole(choice), self.problem, self.alone)

    def _whole(self, choice: Mapping[int, int]) -> dict[int, int]:
        """A selection of the reduced graph as one of the problem."""
        assert self.fixed is not None
        problem, every = self.problem, {**self.fixed.choice, **choice}
        return selected_nodes(every, problem.node_children, problem.node_requires, problem.roots)

    def _solve(self, known: Mapping[int, int] | None) -> tuple[dict[int, int] | None, float]:
        """The answer of CP-SAT with cycles rounded down to whole numbers that fit it.

        Rounding is the finer the less a known selection costs: what costs more is cut off.
        """
        most = self._most(known)
        drop = max(0, (most * (len(self.graph.cost) + 1)).bit_length() - COST_BITS)
        model, pick = selection_model(self.graph)
        longest = model.new_int_var(0, 1 << (COST_BITS + 2), "")
        extra: Any = 0
        for pipe, load, base in zip(self.problem.pipes, self.loads, self.base, strict=True):
            busy = {node: min(cycles, most) >> drop for node, cycles in load.items()}
            total: Any = sum(cycles * pick[node] for node, cycles in busy.items() if cycles)
            total += base >> drop
            if pipe in self.alone:
                extra += total
            else:
                model.add(longest >= total)
        model.minimize(longest + extra)
        seconds = seconds_left(self.deadline)
        choice, least = solve_model(model, pick, self.graph, known or {}, seconds)
        if least is None:
            return None, math.inf
        bound = real_number(least, self.shift - drop, down=True)
        if choice is not None and not passed(self.deadline):
            model.add(longest + extra <= least + (least >> SAME_BITS))
            _minimise_cost(model, pick, self.graph)
            seconds = seconds_left(self.deadline)
            frugal, _ = solve_model(model, pick, self.graph, choice, seconds)
            choice = choice if frugal is None else frugal
        return choice, bound

    def _most(self, known: Mapping[int, int] | None) -> int:
        """What no pipe of a selection as good as the known one can exceed."""
        loads = self.loads
        if known is None:
            return sum(self.base) + sum(max(load.values(), default=0) for load in loads)
        nodes = known.values()
        return sum(self.base) + sum(load.get(node, 0) for load in loads for node in nodes) + 1


def _put_loads_first(problem: Problem, graph: Graph) -> int:
    """Adds the cycles of each pipe as weights before the others; the binary scale of them."""
    vectors, width = _vectors(problem), len(problem.pipes)
    alive = sorted(graph.cost)
    values, shift = whole_numbers(v for node in alive for v in vectors[node])
    rows: list[dict[int, int]] = [{} for _ in range(width)]
    for i, node in enumerate(alive):
        for at in range(width):
            if values[i * width + at]:
                rows[at][node] = values[i * width + at]
    graph.weights[:0] = rows
    graph.limits[:0] = [sum(row.values()) for row in rows]
    graph.limit_names[:0] = problem.pipes
    return shift


def _minimise_cost(model: CpModel, pick: Mapping[int, IntVar], graph: Graph) -> None:
    """Make the sum of the nodes' costs, rounded down to fit, the model's objective."""
    most = sum(max(graph.cost[node] for node in nodes) for nodes in graph.nodes.values())
    drop = max(0, most.bit_length() - COST_BITS)
    model.minimize(sum((graph.cost[node] >> drop) * var for node, var in pick.items()))


def _vectors(problem: Problem) -> list[list[float]]:
    if problem.node_vector is None:
        raise ExtractionError(
            "the bottleneck objective needs the cost of each pipe, and the problem has none",
            hint="give the problem `node_vector` and `pipes`",
        )
    if (problem.node_vector < 0).any() or not all(map(math.isfinite, problem.node_vector.flat)):
        raise ExtractionError("node_vector has an entry that is negative or not finite")
    vectors: list[list[float]] = problem.node_vector.tolist()
    return vectors
