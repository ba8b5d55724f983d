"""Extraction by the busiest pipe: the cheapest selection when pipes work at the same time.

The objective is the greatest sum over a pipe, of the nodes' `node_vector`, plus the sums of the
pipes that overlap with nothing. It is not additive over nodes, so neither the reductions nor the
decomposition of the serial objective hold; the whole problem goes to CP-SAT.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_egg.errors import ExtractionError
from pypto_egg.extract.cp_sat import COST_BITS, selection_model, solve_model
from pypto_egg.extract.dag import solve_piece_greedily
from pypto_egg.extract.graph import Graph, graph_of, real_number, whole_numbers
from pypto_egg.extract.problem import Problem
from pypto_egg.extract.result import Selection, Status, is_optimal

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar

METHOD = "exact"
"""The only method for this objective."""

Load = dict[int, int]
"""Node -> its scaled whole cycles on one pipe; a node that is not listed has none."""


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
    not_overlapped: Sequence[str] = (),
    *,
    deadline: float | None = None,
) -> BottleneckSelection:
    """The selection with the least bottleneck that meets all constraints.

    Among selections of the same bottleneck it is the one with the least sum of `node_cost`, so that
    pipes with time to spare are not given useless work; at the deadline that is left out.

    Without a selection the conflict is empty: which constraints stand in the way does not depend on
    the objective, and `extract` finds them.

    Args:
        deadline: `time.monotonic()` time after which the best so far is returned; None: no end.

    Raises:
        ExtractionError: the problem has no `node_vector`, a name is not among its pipes, or a root
            class has no finite term at all.
    """
    start = time.monotonic()
    unknown = [pipe for pipe in not_overlapped if pipe not in problem.pipes]
    if unknown:
        raise ExtractionError(
            f"the problem has no pipe {unknown[0]!r}",
            hint=f"its pipes are: {', '.join(problem.pipes) or 'none'}",
        )
    graph = graph_of(problem)
    alone = tuple(dict.fromkeys(not_overlapped))
    greedy = solve_piece_greedily(graph)
    choice = None if greedy.cost is None else greedy.choice
    bound = -math.inf
    while True:
        best = math.inf if choice is None else bottleneck(choice, problem, alone)
        if choice is not None and is_optimal(best, bound):
            break
        found = _solve(problem, graph, alone, choice, deadline)
        bound = max(bound, found.bound)
        if found.choice is not None and bottleneck(found.choice, problem, alone) <= best:
            choice = found.choice
        better = math.inf if choice is None else bottleneck(choice, problem, alone)
        if not better < best or _over(deadline):
            break  # a smaller upper bound, which makes rounding finer, is not to be had
    taken = time.monotonic() - start
    if choice is None:
        nothing: Status = "infeasible" if bound == math.inf else "timeout"
        return BottleneckSelection({}, math.inf, bound, nothing, METHOD, taken, (), alone)
    cost = bottleneck(choice, problem, alone)
    bound = min(bound, cost)
    status: Status = "optimal" if is_optimal(cost, bound) else "feasible"
    return BottleneckSelection(choice, cost, bound, status, METHOD, taken, (), alone)


@dataclass(frozen=True)
class _Found:
    """A selection, if there is one, and a proven bound; inf: there is none."""

    choice: dict[int, int] | None
    bound: float


def _solve(
    problem: Problem,
    graph: Graph,
    alone: Sequence[str],
    known: Mapping[int, int] | None,
    deadline: float | None,
) -> _Found:
    """The answer of CP-SAT with cycles rounded down to whole numbers that fit it.

    Rounding is the finer the less a known selection costs: what costs more is cut off.
    """
    loads, shift = _loads(problem, graph, alone, known)
    model, pick = selection_model(graph)
    longest = model.new_int_var(0, 1 << (COST_BITS + 2), "")
    extra = []
    for pipe, load in loads.items():
        total = sum(cycles * pick[node] for node, cycles in load.items())
        if pipe in alone:
            extra.append(total)
        else:
            model.add(longest >= total)
    model.minimize(longest + sum(extra))
    choice, least = solve_model(model, pick, graph, known or {}, _left(deadline))
    if choice is None or least is None:
        return _Found(None, math.inf if least is None else real_number(least, shift, down=True))
    bound = real_number(least, shift, down=True)
    if not _over(deadline):
        model.add(longest + sum(extra) <= least)
        _minimise_cost(model, pick, graph)
        frugal, _ = solve_model(model, pick, graph, choice, _left(deadline))
        choice = choice if frugal is None else frugal
    return _Found(choice, bound)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


def _minimise_cost(model: CpModel, pick: Mapping[int, IntVar], graph: Graph) -> None:
    """Make the sum of the nodes' costs, rounded down to fit, the model's objective."""
    most = sum(max(graph.cost[node] for node in nodes) for nodes in graph.nodes.values())
    drop = max(0, most.bit_length() - COST_BITS)
    model.minimize(sum((graph.cost[node] >> drop) * var for node, var in pick.items()))


def _loads(
    problem: Problem, graph: Graph, alone: Sequence[str], known: Mapping[int, int] | None
) -> tuple[dict[str, Load], int]:
    """The cycles of each busy pipe as whole numbers times 2**shift, rounded down to fit.

    No node counts more than just above what the known selection costs.
    """
    vectors = _vectors(problem)
    alive = sorted(node for members in graph.nodes.values() for node in members)
    values, shift = whole_numbers(float(v) for node in alive for v in vectors[node])
    width = len(problem.pipes)
    rows = {node: values[i * width : (i + 1) * width] for i, node in enumerate(alive)}
    if known is not None:
        sums = [sum(rows[node][at] for node in known.values()) for at in range(width)]
        parts = list(zip(problem.pipes, sums, strict=True))
        cut = max((value for pipe, value in parts if pipe not in alone), default=0)
        cut += sum(value for pipe, value in parts if pipe in alone) + 1
        rows = {node: [min(value, cut) for value in row] for node, row in rows.items()}
    most = sum(max(row, default=0) for row in rows.values())
    drop = max(0, most.bit_length() - COST_BITS)
    loads: dict[str, Load] = {}
    for at, pipe in enumerate(problem.pipes):
        busy = {node: row[at] >> drop for node, row in rows.items() if row[at] >> drop}
        if busy:
            loads[pipe] = busy
    return loads, shift - drop


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
