"""Choosing by simulation: of the most promising selections the one whose kernel runs shortest.

What overlaps in a kernel is known only once it is emitted, and no sum over its operations says it.
Two sums enclose it: the kernel runs at least as long as its busiest queue, and, if nothing
overlapped, as long as all of them together. So the selections that are best by the one and by the
other are emitted and simulated, in turns, and after them those that differ from the best in one
choice, with the rest chosen anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.extract.bottleneck import bottleneck
from pypto_egg.extract.cost.kernel import executed_calls
from pypto_egg.extract.cost.model import CostModel
from pypto_egg.extract.deadline import passed
from pypto_egg.extract.graph import graph_or_none
from pypto_egg.extract.problem import Problem
from pypto_egg.extract.ranking import InOrder
from pypto_egg.extract.registry import Goal, deadline_in
from pypto_egg.extract.result import Selection, Status
from pypto_egg.ir.program import Function
from pypto_egg.target.target import Target
from pypto_egg.trial import Trial

CANDIDATES = 24
"""Selections that are emitted and simulated, at most."""

ENUMERATED = 24
"""Selections of the two orders that are looked at, at most. Those whose operations take the same
cycles on every queue as one before, in the same order, are not simulated."""

WORK = 200_000
"""Operations that are simulated, about; past them no further candidate is. It bounds the time for
kernels of long loops, in each of which candidates differ by the same share."""

GAP = 0.25
"""A candidate's sum exceeds the least one by at most this share."""

Try = Callable[[Mapping[int, int]], Trial]
"""From a selection (class -> node) to the kernel that it makes."""


@dataclass(frozen=True)
class Simulated:
    """The selection whose kernel runs shortest among those simulated.

    Args:
        cycles: of its kernel.
        bound: `cycles`, or less: what the selections that were not simulated take at least, by
            their busiest queue. It holds as far as prices are not above the simulated durations.
        status: "optimal" only where all selections were simulated, else "feasible".
        tried: how many kernels were simulated.
    """

    selection: Selection
    trial: Trial
    cycles: float
    bound: float
    status: Status
    tried: int


def kernel_cycles(kernel: Function, model: CostModel, target: Target) -> float:
    """What the model says the emitted kernel takes as a whole.

    Raises:
        LoweringError, OptionError: it cannot be simulated.
    """
    return model.kernel_cost(kernel, target)(target)["cycles"]


def shortest(
    problem: Problem,
    first: Selection,
    trial: Trial,
    attempt: Try,
    model: CostModel,
    target: Target,
    deadline_seconds: float | None = None,
    orders: Mapping[int, str] | None = None,
) -> Simulated | None:
    """The best of the candidates; None where the first one's kernel cannot be simulated.

    Args:
        problem: with the limits under which `first` was found.
        first: the cheapest selection by the sum of prices, and its `trial`.
        attempt: emits a selection.
        orders: node -> in which order its instructions run, where nodes of equal cycles differ in
            that.
    """
    search = _Search(problem, attempt, model, target, deadline_seconds, orders or {})
    try:
        search.consider(first, trial)
        search.most = first.cost * (1 + GAP)
    except (LoweringError, OptionError):
        return None  # more instructions than a simulation takes, or calls of other kernels
    return search.run()


class _Search:
    def __init__(
        self,
        problem: Problem,
        attempt: Try,
        model: CostModel,
        target: Target,
        deadline_seconds: float | None,
        orders: Mapping[int, str],
    ) -> None:
        self.problem = problem
        self.orders = orders
        self.attempt = attempt
        self.model = model
        self.target = target
        self.deadline_seconds = deadline_seconds
        self.deadline = deadline_in(deadline_seconds)
        self.most = math.inf
        self.start_cycles = model.start_cycles(target)
        self.seen: set[frozenset[int]] = set()
        self.loads: set[tuple[object, ...]] = set()
        self.left_out: list[Selection] = []
        self.best: Simulated | None = None
        self.tried = 0
        self.work = 0

    def consider(self, selection: Selection, trial: Trial) -> None:
        """Simulates a kernel that runs; it is the best if it is shorter than the best."""
        cycles = kernel_cycles(trial.emitted.function, self.model, self.target)
        self.tried += 1
        self.work += sum(times for _, times in executed_calls(trial.emitted.function))
        self.seen.add(frozenset(selection.choice.values()))
        self.loads.add(self._loads(selection))
        if self.best is None or cycles < self.best.cycles:
            self.best = Simulated(selection, trial, cycles, -math.inf, "feasible", 0)

    def run(self) -> Simulated:
        """Tries candidates while they promise more, and until CANDIDATES were simulated."""
        by_queue, by_sum = self._orders()
        assert self.best is not None
        bound, looked_at = by_queue.bound, 0
        orders = [_Turn(by_queue), _Turn(by_sum)]
        turns = list(orders)
        while turns and looked_at < ENUMERATED and self._may_go_on(bound):
            turn = turns.pop(0)
            selection = turn.next()
            bound, looked_at = by_queue.bound, looked_at + 1
            if selection is not None:
                turns.append(turn)
                self._candidate(selection)
        everything = any(order.finished for order in orders)
        if everything and self.tried + len(self.left_out) <= CANDIDATES:
            self._catch_up()
        elif not everything:
            self._climb(bound)
        rest = (bottleneck(selection.choice, self.problem) for selection in self.left_out)
        least = min(self.best.cycles, self.start_cycles + min([bound, *rest]))
        status: Status = "optimal" if everything and not self.left_out else "feasible"
        return replace(self.best, bound=least, status=status, tried=self.tried)

    def _catch_up(self) -> None:
        """Simulates what was left out, so that nothing was."""
        waiting, self.left_out = self.left_out, []
        for selection in waiting:
            self._simulate(selection)

    def _climb(self, bound: float) -> None:
        """Changes one choice of the best at a time, with the rest chosen anew, while that helps."""
        present = None
        while self.best is not present and self._may_go_on(bound):
            present = self.best
            assert present is not None
            for selection in self._neighbours(present.selection):
                if self._may_go_on(bound):
                    self._candidate(selection)

    def _neighbours(self, selection: Selection) -> list[Selection]:
        """For each node of a selection the cheapest selection without it, cheapest first."""
        found = []
        for cls, node in selection.choice.items():
            if len(self.problem.class_nodes[cls]) < 2 or passed(self.deadline):
                continue
            forbidden = (*self.problem.forbidden, (node,))
            problem = replace(self.problem, forbidden=forbidden)
            graph = graph_or_none(problem)
            if graph is not None:
                other = Goal("exact", "serial").search(problem, graph, self.deadline)
                if other.found and other.cost <= self.most:
                    found.append(other)
        return sorted(found, key=lambda other: (other.cost, tuple(other.choice.items())))

    def _may_go_on(self, bound: float) -> bool:
        """Whether a better kernel is to be hoped for, and time and candidates are left."""
        assert self.best is not None
        hopeless = self.start_cycles + bound >= self.best.cycles
        left = self.tried < CANDIDATES and self.work < WORK
        return left and not hopeless and not passed(self.deadline)

    def _candidate(self, selection: Selection) -> None:
        key = frozenset(selection.choice.values())
        if key in self.seen:
            return
        self.seen.add(key)
        if self._loads(selection) in self.loads:
            self.left_out.append(selection)
        else:
            self._simulate(selection)

    def _simulate(self, selection: Selection) -> None:
        try:
            trial = self.attempt(selection.choice)
            if trial.fits:
                self.consider(selection, trial)
        except LoweringError:
            return  # it destroys a value: there is no such kernel
        except OptionError:
            self.left_out.append(selection)  # too many instructions to simulate

    def _loads(self, selection: Selection) -> tuple[object, ...]:
        """Cycles of each queue, to a hundredth, and the orders of instructions."""
        assert self.problem.node_vector is not None
        sums = self.problem.node_vector[list(selection.choice.values())].sum(axis=0)
        orders = sorted(
            self.orders[node] for node in selection.choice.values() if node in self.orders
        )
        return (*sums.round(2).tolist(), *orders)

    def _orders(self) -> tuple[InOrder, InOrder]:
        seconds = self.deadline_seconds
        by_queue = InOrder(self.problem, objective="bottleneck", deadline_seconds=seconds)
        return by_queue, InOrder(self.problem, deadline_seconds=seconds)


class _Turn:
    """The selections of one order that are within GAP of its first."""

    def __init__(self, order: InOrder) -> None:
        self._order = order
        self._most = math.inf

    def next(self) -> Selection | None:
        """The next one; None if there is none within GAP."""
        selection = next(self._order, None)
        if selection is None:
            return None
        if self._most == math.inf:
            self._most = selection.cost * (1 + GAP)
        if selection.cost <= self._most:
            return selection
        self._most = -math.inf
        return None

    @property
    def finished(self) -> bool:
        """Whether all selections there are have been returned."""
        return self._most >= 0 and self._order.bound == math.inf
