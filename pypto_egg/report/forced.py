"""What a kernel costs when one of its decisions is taken another way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from pypto_egg.account import Account
from pypto_egg.egraph.tilegraph import TileNode
from pypto_egg.errors import ExtractionError, LoweringError
from pypto_egg.extract.cost.model import ZERO, CostVector
from pypto_egg.extract.problem import Problem
from pypto_egg.extract.registry import FORBIDDEN, extract
from pypto_egg.price import TIE_CYCLES_PER_BYTE, cheapest
from pypto_egg.trial import Trial, try_selection

# Above this many e-nodes a kernel is extracted anew by the heuristic, which is near-optimal and
# takes milliseconds where the exact method may take seconds.
_EXACT_NODES = 400
# E-nodes times extractions for one account: a few seconds of the heuristic. Beyond it options are
# listed without the kernel's total, except for the first few.
_WORK = 20_000
_LEAST_EXTRACTIONS = 30
# Rounds in which sets of tiles that do not fit together are ruled out, for one option.
_ROUNDS = 16


@dataclass(frozen=True)
class Outcome:
    """The cheapest kernel in which some nodes are not used.

    Args:
        cost: busy cycles for each pipe.
        cycles: what the cost model makes of them for the kernel as a whole.
        choice: class -> selected node's position in the problem.
        made_bytes: of all tiles that are made, views left out, whether they live together or not.
    """

    cost: CostVector
    cycles: float
    choice: Mapping[int, int]
    made_bytes: int


NOT_PRICED = Outcome(ZERO, 0.0, {}, 0)
"""Stands for a kernel that was not worked out, because there were too many."""


_NO_CONSUMER = "no kernel can be made with it: a consumer cannot take these extents or this form"


class Extractions:
    """Extracts one function's kernel anew, with nodes forbidden; remembers what it found."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._known: dict[tuple[tuple[int, ...], bool], Outcome | None] = {}
        size = account.priced.problem.node_count
        additive = account.model.objective != "bottleneck"
        self._method = "exact" if size <= _EXACT_NODES or not additive else "dag"
        self._cuts = account.cuts
        self._refused: dict[tuple[int, ...], str] = {}
        self._most = max(_LEAST_EXTRACTIONS, _WORK // max(size, 1))
        self.chosen = self._outcome(account.selection.choice)

    def without(self, nodes: Iterable[int], *, fitting: bool = True) -> Outcome | None:
        """The kernel without these nodes; None if there is none, NOT_PRICED if it costs too much.

        Args:
            fitting: the kernel's tiles fit on chip, and none is overwritten too early.
        """
        key = (tuple(sorted(nodes)), fitting)
        if key not in self._known:
            if len(self._known) >= self._most:
                return NOT_PRICED
            self._known[key] = self._extract(*key)
        return self._known[key]

    def why_not(self, nodes: Iterable[int]) -> str:
        """What stands in the way of a kernel without these nodes, where `without` found none."""
        key = tuple(sorted(nodes))
        if self.without(key, fitting=False) is None:
            return (
                "no kernel can be made with it: a consumer cannot take these extents or this form"
            )
        return self._refused.get(key, "with it the tiles do not fit on chip together")

    def nodes(self, outcome: Outcome) -> dict[int, TileNode]:
        """Class -> selected node."""
        return {cls: self._account.priced.nodes[n] for cls, n in outcome.choice.items()}

    def _extract(self, nodes: tuple[int, ...], fitting: bool) -> Outcome | None:
        base = self._account.priced.problem
        problem = replace(base, forbidden=(*base.forbidden, *((node,) for node in nodes)))
        if not fitting:
            return self._cheapest(problem, self._method)
        problem = problem.with_constraints(self._cuts)
        lost: list[str] = []
        for _ in range(_ROUNDS):
            found = self._cheapest(problem, "exact" if problem.constraints else self._method)
            if found is None:
                self._refused[nodes] = self._limits_in_the_way(problem, lost)
                return None
            trial = self._trial(found, nodes)
            if trial is None:
                return None
            if trial.fits:
                return found
            self._cuts = (*self._cuts, *trial.cuts)
            lost.extend(trial.lost)
            problem = trial.ruled_out(problem)
        return NOT_PRICED

    def _cheapest(self, problem: Problem, method: str) -> Outcome | None:
        try:
            found = cheapest(problem, self._account.model, method)
        except ExtractionError:
            return None
        return self._outcome(found.choice) if found.found else None

    def _trial(self, found: Outcome, nodes: tuple[int, ...]) -> Trial | None:
        a = self._account
        try:
            return try_selection(a.function, a.skeleton, a.graph, a.priced, found.choice, a.target)
        except LoweringError as error:
            self._refused[nodes] = error.message
            return None

    def _limits_in_the_way(self, problem: Problem, lost: Iterable[str]) -> str:
        """Which memory space is too small for what, or which value would be destroyed."""
        conflict: tuple[str, ...] = ()
        with suppress(ExtractionError):  # what is left over may not even have a finite term
            conflict = extract(problem).conflict
        limits = [name for name in conflict if name != FORBIDDEN]
        destroyed = tuple(dict.fromkeys(lost))
        if limits:
            return "with it the tiles do not fit on chip together: " + "; ".join(limits)
        if destroyed:
            return f"{'; '.join(destroyed)}, which is still needed"
        return "with it the tiles do not fit on chip together, or overwrite each other"

    def _outcome(self, choice: Mapping[int, int]) -> Outcome:
        priced, total = self._account.priced, ZERO
        for node in choice.values():
            total = total + priced.vectors[node]
        ties = sum(float(priced.problem.node_cost[node]) for node in choice.values()) - total.total
        cycles = self._account.cycles(choice)
        return Outcome(total, cycles, choice, round(ties / TIE_CYCLES_PER_BYTE))
