"""What a kernel costs when one of its decisions is taken another way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pypto_egg.account import Account
from pypto_egg.egraph.tilegraph import TileNode
from pypto_egg.errors import ExtractionError
from pypto_egg.extract.cost.model import ZERO, CostVector
from pypto_egg.extract.registry import extract
from pypto_egg.price import TIE_CYCLES_PER_BYTE

# Above this many e-nodes a kernel is extracted anew by the heuristic, which is near-optimal and
# takes milliseconds where the exact method may take seconds.
_EXACT_NODES = 400
# E-nodes times extractions for one account: a few seconds of the heuristic. Beyond it options are
# listed without the kernel's total, except for the first few.
_WORK = 150_000
_LEAST_EXTRACTIONS = 30


@dataclass(frozen=True)
class Outcome:
    """The cheapest kernel in which some nodes are not used.

    Args:
        choice: class -> selected node's position in the problem.
        made_bytes: of all tiles that are made, views left out, whether they live together or not.
    """

    cost: CostVector
    choice: Mapping[int, int]
    made_bytes: int


NOT_PRICED = Outcome(ZERO, {}, 0)
"""Stands for a kernel that was not worked out, because there were too many."""


class Extractions:
    """Extracts one function's kernel anew, with nodes forbidden; remembers what it found."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._known: dict[tuple[tuple[int, ...], bool], Outcome | None] = {}
        size = account.priced.problem.node_count
        self._method = "exact" if size <= _EXACT_NODES else "dag"
        self._most = max(_LEAST_EXTRACTIONS, _WORK // max(size, 1))
        self.chosen = self._outcome(account.selection.choice)

    def without(self, nodes: Iterable[int], *, fitting: bool = True) -> Outcome | None:
        """The kernel without these nodes; None if there is none, NOT_PRICED if it costs too much.

        Args:
            fitting: keep the limits of memory that the chosen kernel had to keep.
        """
        key = (tuple(sorted(nodes)), fitting and bool(self._account.cuts))
        if key not in self._known:
            if len(self._known) >= self._most:
                return NOT_PRICED
            self._known[key] = self._extract(*key)
        return self._known[key]

    def nodes(self, outcome: Outcome) -> dict[int, TileNode]:
        """Class -> selected node."""
        return {cls: self._account.priced.nodes[n] for cls, n in outcome.choice.items()}

    def _extract(self, nodes: tuple[int, ...], fitting: bool) -> Outcome | None:
        base = self._account.priced.problem
        problem = replace(base, forbidden=(*base.forbidden, *((node,) for node in nodes)))
        cuts = self._account.cuts if fitting else ()
        try:
            found = extract(problem, "exact" if cuts else self._method, constraints=cuts)
        except ExtractionError:
            return None
        if not found.found:
            return None
        return self._outcome(found.choice)

    def _outcome(self, choice: Mapping[int, int]) -> Outcome:
        priced, total = self._account.priced, ZERO
        for node in choice.values():
            total = total + priced.vectors[node]
        ties = sum(float(priced.problem.node_cost[node]) for node in choice.values()) - total.total
        return Outcome(total, choice, round(ties / TIE_CYCLES_PER_BYTE))
