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

from pypto_egg.errors import ExtractionError
from pypto_egg.extract.cp_sat import COST_BITS, selection_model, solve_model
from pypto_egg.extract.dag import solve_piece_greedily
from pypto_egg.extract.graph import Graph, graph_of, real_number, whole_numbers
from pypto_egg.extract.problem import Problem
from pypto_egg.extract.result import Selection, Status, is_optimal

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
    loads, shift = _loads(problem, graph)
    alone = tuple(dict.fromkeys(not_overlapped))
    hint = solve_piece_greedily(graph)
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
    left = None if deadline is None else deadline - time.monotonic()
    known = {} if hint.cost is None else hint.choice
    choice, least = solve_model(model, pick, graph, known, left)
    bound = math.inf if least is None else real_number(least, shift, down=True)
    taken = time.monotonic() - start
    if choice is None:
        nothing: Status = "infeasible" if least is None else "timeout"
        return BottleneckSelection({}, math.inf, bound, nothing, METHOD, taken, (), alone)
    cost = bottleneck(choice, problem, alone)
    bound = min(bound, cost)
    status: Status = "optimal" if is_optimal(cost, bound) else "feasible"
    return BottleneckSelection(choice, cost, bound, status, METHOD, taken, (), alone)


def _loads(problem: Problem, graph: Graph) -> tuple[dict[str, Load], int]:
    """The cycles of each busy pipe as whole numbers times 2**shift, rounded down to fit."""
    vectors = _vectors(problem)
    alive = sorted(node for members in graph.nodes.values() for node in members)
    values, shift = whole_numbers(float(v) for node in alive for v in vectors[node])
    width = len(problem.pipes)
    most = sum(max(values[i * width : (i + 1) * width], default=0) for i in range(len(alive)))
    drop = max(0, most.bit_length() - COST_BITS)
    loads: dict[str, Load] = {}
    for at, pipe in enumerate(problem.pipes):
        load = {node: values[i * width + at] >> drop for i, node in enumerate(alive)}
        busy = {node: cycles for node, cycles in load.items() if cycles}
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
