"""What extraction found: the choices, their price, a proven bound, and checks of all of these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

from pypto_egg.errors import ExtractionError, InternalError
from pypto_egg.extract.graph import children_first
from pypto_egg.extract.problem import Problem

Status = Literal["optimal", "feasible", "infeasible", "timeout", "unknown"]

RELATIVE_GAP = 1e-9
"""A selection is called optimal when its cost exceeds the proven bound by at most this share."""


@dataclass(frozen=True)
class Selection:
    """One node for each class that is needed, with its cost.

    Args:
        choice: class -> selected node, for exactly the classes that the roots reach; empty when
            there is no selection.
        cost: sum of the selected nodes' costs, each once; inf when there is no selection.
        bound: proven: no selection costs less; -inf when nothing is proven.
        status: "optimal" (cost meets the bound within RELATIVE_GAP), "feasible" (the constraints
            hold, optimality is not proven), "infeasible" (proven: no selection meets the
            constraints), "timeout" (deadline passed before a selection was found), "unknown" (the
            method cannot find a selection that meets the constraints; there may be one).
        method: the extractor's name.
        seconds: time taken.
        conflict: for a status without a selection: names of the constraints that stand in the way;
            when "infeasible", leaving out any one of them makes the rest possible. The name
            "forbidden" stands for the problem's forbidden node sets.
    """

    choice: Mapping[int, int]
    cost: float
    bound: float
    status: Status
    method: str
    seconds: float
    conflict: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "choice", MappingProxyType(dict(sorted(self.choice.items()))))

    @property
    def found(self) -> bool:
        """Whether there is a selection."""
        return self.status in ("optimal", "feasible")

    def price(self, problem: Problem) -> float:
        """Sum of the selected nodes' costs, each node once, correctly rounded."""
        return math.fsum(float(problem.node_cost[node]) for node in self.choice.values())

    def order(self, problem: Problem) -> tuple[int, ...]:
        """Selected classes, each after its children.

        Raises:
            InternalError: the selection is cyclic.
        """
        order = children_first(self.choice, problem.node_children)
        if order is None:
            raise InternalError("extraction selected nodes that depend on each other in a cycle")
        return tuple(order)

    def check(self, problem: Problem) -> None:
        """Nothing, when this is a selection that the problem allows and its numbers are right.

        Raises:
            ExtractionError: there is no selection, or a constraint does not hold.
            InternalError: the selection is broken: a fault of the extractor.
        """
        if not self.found:
            raise ExtractionError(self._why_nothing(), hint=self._what_to_do())
        self._check_closed(problem)
        self.order(problem)
        self._check_limits(problem)
        self._check_numbers(problem)

    def _why_nothing(self) -> str:
        names = ", ".join(repr(name) for name in self.conflict)
        if self.status == "infeasible":
            return f"no selection meets these constraints together: {names}"
        if self.status == "timeout":
            return f"the deadline passed after {self.seconds:.3g} s before a selection was found"
        return f"extractor {self.method!r} found no selection that meets: {names}"

    def _what_to_do(self) -> str:
        if self.status == "infeasible":
            return "raise a limit, or add alternatives that weigh less"
        if self.status == "timeout":
            return "allow more time, or use a larger limit"
        return "use the extractor 'exact'"

    def _check_closed(self, problem: Problem) -> None:
        seen: set[int] = set()
        stack = [(root, "it is a root") for root in problem.roots]
        while stack:
            cls, why = stack.pop()
            if cls in seen:
                continue
            seen.add(cls)
            node = self.choice.get(cls)
            if node is None:
                name = problem.class_name[cls]
                raise InternalError(f"class {name!r} has no selected node although {why}")
            if not (0 <= node < problem.node_count and problem.node_class[node] == cls):
                name = problem.class_name[cls]
                raise InternalError(f"class {name!r} has node {node} selected, not one of its own")
            why = f"{problem.describe(node)} needs it"
            stack += [(c, why) for c in problem.node_children[node]]
            stack += [(c, why) for c in problem.node_requires[node]]
        for cls in self.choice:
            if cls not in seen:
                raise InternalError(f"class {cls} is selected although nothing needs it")

    def _check_limits(self, problem: Problem) -> None:
        selected = set(self.choice.values())
        for constraint in problem.constraints:
            total = sum(
                (Fraction(w) for n, w in constraint.weights.items() if n in selected), Fraction()
            )
            if total > Fraction(constraint.limit):
                raise ExtractionError(
                    f"constraint {constraint.name!r}: the selected nodes weigh {float(total):g}, "
                    f"the limit is {constraint.limit:g}",
                    hint="use the extractor 'exact'",
                )
        for group in problem.forbidden:
            if selected.issuperset(group):
                nodes = " and ".join(problem.describe(node) for node in group)
                raise ExtractionError(f"selected although forbidden: {nodes}")

    def _check_numbers(self, problem: Problem) -> None:
        price = self.price(problem)
        if price != self.cost:
            raise InternalError(f"the selection says it costs {self.cost}, but costs {price}")
        if not self.bound <= self.cost:
            raise InternalError(f"the selection costs {self.cost}, below its bound {self.bound}")
        proven = is_optimal(self.cost, self.bound)
        if (self.status == "optimal") != proven:
            raise InternalError(
                f"status {self.status!r} does not fit cost {self.cost} and bound {self.bound}"
            )


def is_optimal(cost: float, bound: float) -> bool:
    """Whether the bound proves the cost optimal, within RELATIVE_GAP."""
    return cost - bound <= RELATIVE_GAP * abs(cost)
