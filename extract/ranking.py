"""The selections of a problem one after another, the cheapest first.

The set of all selections but the cheapest is divided by the first class, in the order in which the
roots reach them, that takes another node (Lawler 1972). Each part is an extraction problem of its
own, with some nodes left out, so that whatever solves one solves the others, and the parts are
disjoint: no selection comes twice.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pypto_egg.errors import OptionError
from pypto_egg.extract.deadline import Deadline, passed
from pypto_egg.extract.graph import graph_of, graph_or_none, selected_nodes
from pypto_egg.extract.problem import Constraint, Problem
from pypto_egg.extract.registry import Goal, Objective, deadline_in
from pypto_egg.extract.result import Selection, Status, is_optimal


@dataclass(frozen=True)
class Ranking:
    """The cheapest selections of a problem.

    Args:
        selections: the cheapest first. The bound of each is that of all that are not before it.
        bound: proven: no other selection costs less; inf: there is no other.
    """

    selections: tuple[Selection, ...]
    bound: float

    @property
    def proven(self) -> bool:
        """Whether these are the cheapest, in this order."""
        return all(selection.status == "optimal" for selection in self.selections)


def k_best(
    problem: Problem,
    k: int,
    method: str = "exact",
    *,
    objective: Objective = "serial",
    not_overlapped: Sequence[str] = (),
    deadline_seconds: float | None = None,
    constraints: Iterable[Constraint] = (),
) -> Ranking:
    """The `k` cheapest selections, or all if there are fewer; they differ in what they select.

    Of equally cheap ones any may come first, but the same one every time. At the deadline it holds
    those found so far, and `bound` says what is proven of the rest. Arguments are those of
    `extract`.

    Raises:
        OptionError: `k` is not a whole number above 0.
        OptionError, ExtractionError: as `extract`.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise OptionError(f"k is {k!r}; it must be a whole number above 0")
    order = InOrder(
        problem,
        method,
        objective=objective,
        not_overlapped=not_overlapped,
        deadline_seconds=deadline_seconds,
        constraints=constraints,
    )
    found = []
    for selection in order:
        found.append(selection)
        if len(found) == k:
            break
    return Ranking(tuple(found), order.bound)


@dataclass(frozen=True)
class _Part:
    """Selections that take `taken` (class -> node) where reached, and no node of `left_out`."""

    taken: Mapping[int, int]
    left_out: frozenset[int]


class InOrder(Iterator[Selection]):
    """Iterates over the selections of a problem, the cheapest first; arguments as of `k_best`.

    After the deadline it gives those that it found already, and ends.
    """

    def __init__(
        self,
        problem: Problem,
        method: str = "exact",
        *,
        objective: Objective = "serial",
        not_overlapped: Sequence[str] = (),
        deadline_seconds: float | None = None,
        constraints: Iterable[Constraint] = (),
    ) -> None:
        extra = tuple(constraints)
        self._problem = problem.with_constraints(extra) if extra else problem
        self._goal = Goal(method, objective, tuple(not_overlapped)).checked(self._problem)
        self._deadline: Deadline = deadline_in(deadline_seconds)
        graph_of(self._problem)  # raises if a root class has no finite term at all
        self._open: list[tuple[float, tuple[tuple[int, int], ...], Selection, _Part]] = []
        self._unsolved = math.inf
        self._solve(_Part({}, frozenset()), -math.inf)

    @property
    def bound(self) -> float:
        """Proven: no selection that is still to come costs less; inf: none is."""
        found = min((entry[2].bound for entry in self._open), default=math.inf)
        return min(found, self._unsolved)

    def __next__(self) -> Selection:
        if not self._open:
            raise StopIteration
        bound = self.bound
        cost, _, selection, part = heapq.heappop(self._open)
        bound = min(bound, cost)
        self._divide(selection, part)
        status: Status = "optimal" if is_optimal(cost, bound) else "feasible"
        return replace(selection, bound=bound, status=status)

    def _divide(self, selection: Selection, part: _Part) -> None:
        """Adds the parts of `part` without the selection itself."""
        problem, taken = self._problem, dict(part.taken)
        needs = problem.node_children, problem.node_requires
        for cls, node in selected_nodes(selection.choice, *needs, problem.roots).items():
            if cls in taken:
                continue
            if len(problem.class_nodes[cls]) > 1:
                rest = _Part(dict(taken), part.left_out | {node})
                if passed(self._deadline):
                    self._unsolved = min(self._unsolved, selection.bound)
                else:
                    self._solve(rest, selection.bound)
            taken[cls] = node

    def _solve(self, part: _Part, least: float) -> None:
        """Adds the cheapest selection of a part, if it has one.

        Args:
            least: proven: none of the part's selections costs less.
        """
        problem = self._restricted(part)
        graph = graph_or_none(problem)
        if graph is None:
            return
        found = self._goal.search(problem, graph, self._deadline)
        if found.found:
            found = replace(found, bound=max(found.bound, min(least, found.cost)))
            order = tuple(found.choice.items())
            heapq.heappush(self._open, (found.cost, order, found, part))
        elif found.status != "infeasible":
            self._unsolved = min(self._unsolved, max(found.bound, least))

    def _restricted(self, part: _Part) -> Problem:
        out = {
            node
            for cls, kept in part.taken.items()
            for node in self._problem.class_nodes[cls]
            if node != kept
        }
        groups = [(node,) for node in sorted(out | part.left_out)]
        return replace(self._problem, forbidden=(*self._problem.forbidden, *groups))
