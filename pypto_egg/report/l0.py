"""How products were cut into L0 tiles, and what the other schedules would have cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pypto_egg.account import Account
from pypto_egg.egraph.tilegraph import TileNode
from pypto_egg.extract.cost.model import CostVector
from pypto_egg.extract.cost.pypto_l0 import pypto_choice
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.types import TileType
from pypto_egg.l0 import CubeProduct, L0Schedule, Schedules, schedules
from pypto_egg.l0.space import ACC_BYTES
from pypto_egg.lowering import Decision, Option
from pypto_egg.report.words import SAME_CYCLES, difference_words
from pypto_egg.scheduling import BY_TILES, prices_of, product_of

_PYPTOS = "what PyPTO's chooser takes"

# Blocks of K that are told of where the result is one tile, beside the chosen one.
_DEPTHS = 2


def l0_decisions(account: Account) -> Iterator[Decision]:
    """One decision for each product: the schedule that was taken, and of each other regime (what
    stays, accumulators, order of loops) the cheapest schedule; all else stays as it is."""
    for at in sorted(account.selection.choice.values()):
        node = account.priced.nodes[at]
        if node.recipe is None or node.recipe.schedule is None:
            continue
        product = product_of(node, account.target)
        assert product is not None
        options = list(_options(account, at, node, product))
        if len(options) > 1:
            yield Decision(f"L0 tiles of {_name(account, node)}", account.function.name,
                           tuple(options))  # fmt: skip


def _options(account: Account, at: int, node: TileNode, product: CubeProduct) -> Iterator[Option]:
    legal = schedules(product, account.target)
    vectors = prices_of(product, legal, account.model, account.target)
    assert node.recipe is not None
    chosen = node.recipe.schedule
    assert chosen is not None
    own = account.priced.vectors[at]
    cycles = account.cycles(account.selection.choice)
    theirs = _pyptos(node, product, account)
    yield Option(str(chosen), own, cycles, "chosen", _PYPTOS if chosen == theirs else "")
    times = account.skeleton.multiplicity.get(account.graph.classes[node.cls].region, 1)
    costs = [times * CostVector(*map(float, vector)) for vector in vectors]
    totals = np.array([account.cycles_with(at, cost) for cost in costs])
    others = []
    for place in _representatives(product, legal, totals):
        if legal[place] == chosen:
            continue
        more = float(totals[place]) - cycles
        status = "equal" if abs(more) <= SAME_CYCLES else "dearer" if more > 0 else "cheaper"
        words = difference_words(more, costs[place], own)
        if status == "equal":
            words = "the same cycles"
        marked = _PYPTOS if legal[place] == theirs else ""
        why = "; ".join(filter(None, (words, marked)))
        others.append(Option(str(legal[place]), costs[place], float(totals[place]), status, why))
    yield from sorted(others, key=lambda option: (option.total, option.what))
    yield from _refused(product, account)


def _representatives(
    product: CubeProduct, legal: Schedules, totals: NDArray[np.float64]
) -> list[int]:
    """The cheapest place of each regime; of a product of one tile, the cheapest blocks of K."""
    ranked = np.argsort(totals, kind="stable")
    if not product.leaves:
        return [int(place) for place in ranked[: _DEPTHS + 1]]
    found: dict[tuple[int, int, bool], int] = {}
    for place in ranked.tolist():
        regime = (
            int(legal.kind[place]), int(legal.accumulators[place]), bool(legal.rows_outer[place])
        )  # fmt: skip
        found.setdefault(regime, place)
    return list(found.values())


def _pyptos(node: TileNode, product: CubeProduct, account: Account) -> L0Schedule | None:
    """What PyPTO's chooser takes; None where that is a grid and the result is kept as a whole."""
    if not product.leaves:
        for other in account.priced.nodes:
            if other.op in BY_TILES and set(other.children[-2:]) <= set(node.children):
                by_tiles = product_of(other, account.target)
                found = None if by_tiles is None else _choice(by_tiles, account)
                if found is not None and (found.m, found.n) != product.physical[:2]:
                    return None
    return _choice(product, account)


def _choice(product: CubeProduct, account: Account) -> L0Schedule | None:
    legal = schedules(product, account.target)
    place = pypto_choice(product, legal, account.target)
    return None if place is None else legal[place]


def _refused(product: CubeProduct, account: Account) -> Iterator[Option]:
    """The result as one tile, where it does not fit in L0C."""
    m, n, _ = product.physical
    needed, room = m * n * ACC_BYTES, account.target.capacity_bytes(Mem.Acc)
    if needed > room:
        why = f"{needed:,} bytes of L0C needed, {room:,} available"
        yield Option(f"{m} x {n}, one tile", CostVector(), None, "illegal", why)


def _name(account: Account, node: TileNode) -> str:
    own = account.graph.classes[node.cls].name
    if own:
        return own
    assert node.recipe is not None
    operands = [account.graph.classes[child].name or f"tile {child}" for child in node.children]
    result = node.recipe.type
    shape = f" {list(result.shape)}" if isinstance(result, TileType) else ""
    return " @ ".join(operands[-2:]) + shape
