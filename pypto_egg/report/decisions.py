"""What could have been decided otherwise in a lowered function, and what that would cost.

A decision is one that a kernel author would recognise: the physical M or N of a product, the way
a value takes to where it is needed, the memory a result leaves from. Every other way is priced by
extracting the whole kernel anew without the ways that compete with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pypto_egg.account import Account
from pypto_egg.egraph.tilegraph import CARRIES, TileGraph, TileNode
from pypto_egg.extract.cost.model import ZERO, CostVector
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.ir.visit import walk
from pypto_egg.lowering import Decision, Option
from pypto_egg.report.forced import NOT_PRICED, Extractions, Outcome
from pypto_egg.report.l0 import l0_decisions
from pypto_egg.report.products import (
    AXES,
    UNITS,
    Product,
    chosen_node,
    least_box,
    products,
    why_not_whole,
)
from pypto_egg.report.words import (
    SAME_CYCLES,
    difference_words,
    node_words,
    route_words,
    tile_of,
    tile_words,
)


@dataclass(frozen=True)
class _Way:
    """One way of deciding: the nodes that go with it, the kernel with it, and its words."""

    what: str
    own: CostVector
    rivals: list[int]
    taken: bool
    outcome: Outcome | None


def decisions(account: Account) -> tuple[Decision, ...]:
    """The decisions of a function: boxes of products, ways of computing a value, its routes to
    where it is needed, and folds that were refused.

    Options are in a fixed order with the chosen one first. Nothing is returned for a value that
    can be made in one way only, nor for a route whose other ways lead to kernels told of before.
    """
    return tuple(_Decider(account).all())


class _Decider:
    def __init__(self, account: Account) -> None:
        self.account = account
        self.graph = account.graph
        self.nodes = account.priced.nodes
        self.choice = account.selection.choice
        self.taken = set(account.selection.choice.values())
        self.extractions = Extractions(account)
        self.told: set[frozenset[int]] = set()

    def all(self) -> Iterator[Decision]:
        yield from self._boxes()
        yield from l0_decisions(self.account)
        yield from self._computations()
        yield from self._routes()
        yield from unfolded_casts(self.account)
        yield from refused(self.account)

    def _decision(
        self,
        value: str,
        ways: list[_Way],
        illegal: tuple[Option, ...] = (),
        *,
        repeats: bool = False,
    ) -> Iterator[Decision]:
        """The decision, if it has more than one option and, unless it `repeats`, tells of a
        kernel that no decision before told of."""
        kernels = {frozenset(w.outcome.choice.values()) for w in ways if w.outcome and not w.taken}
        unknown = any(w.outcome is None or w.outcome is NOT_PRICED for w in ways)
        if not repeats and not unknown and kernels <= self.told:
            return
        self.told |= kernels
        options = [judged(way, self.extractions) for way in ways]
        if len(options) + len(illegal) > 1:
            options.sort(key=lambda o: (_ORDER.index(o.status), o.total or 0.0))
            yield Decision(value, self.account.function.name, (*options, *illegal))

    def _outcome(self, rivals: list[int], taken: bool) -> Outcome | None:
        return self.extractions.chosen if taken else self.extractions.without(rivals)

    # --- boxes of products ---------------------------------------------------------------------

    def _boxes(self) -> Iterator[Decision]:
        for product in products(self.account):
            node = chosen_node(product, self.choice.values())
            if node is None:
                continue
            name = self.graph.classes[self.nodes[node].cls].name or product.name
            for axis, letter in enumerate(AXES):
                ways = [self._box(product, axis, e, node) for e in product.extents(axis)]
                whole = why_not_whole(product, self.account, axis)
                illegal = () if whole is None else (_unpadded(axis, *whole),)
                value = f"{letter} of {name} = {' @ '.join(product.operands)}"
                yield from self._decision(value, ways, illegal, repeats=True)

    def _box(self, product: Product, axis: int, extent: int, chosen: int) -> _Way:
        rivals = [n for n, extents in product.nodes.items() if extents[axis] != extent]
        taken = product.nodes[chosen][axis] == extent
        outcome = self._outcome(rivals, taken)
        made = chosen_node(product, outcome.choice.values()) if outcome is not None else None
        own = self.account.priced.vectors[made] if made is not None else ZERO
        what, logical = f"{extent} {UNITS[axis]}", product.logical(self.account, axis)
        if logical is not None and extent != logical:
            what += f" (box {least_box(logical, extent)}, {logical} valid)"
        return _Way(what, own, rivals, taken, outcome)

    # --- ways of computing a value -------------------------------------------------------------

    def _computations(self) -> Iterator[Decision]:
        """One decision for each value that different ops can compute, in whatever form."""
        values: dict[tuple[str, int], dict[tuple[str, ...], list[int]]] = {}
        for position, node in enumerate(self.nodes):
            cls = self.graph.classes[node.cls]
            if cls.name and node.recipe is not None and self._computes(node):
                kinds = values.setdefault((cls.name, cls.region), {})
                kinds.setdefault(_operation(self.graph, node), []).append(position)
        for (name, _), kinds in values.items():
            everything = {node for nodes in kinds.values() for node in nodes}
            if len(kinds) > 1 and everything & self.taken:
                yield from self._decision(f"{name}: how it is computed", self._ways(kinds))

    def _computes(self, node: TileNode) -> bool:
        """Whether a node makes a value from other values, and not from itself or from memory."""
        own = self.graph.classes[node.cls].name
        return bool(node.children) and all(
            self.graph.classes[child].name not in ("", own) for child in node.children
        )

    # --- routes of values ----------------------------------------------------------------------

    def _routes(self) -> Iterator[Decision]:
        """One decision for each value and kind of place where several kinds of calls can put it."""
        for group in _groups(self.graph):
            kinds: dict[tuple[str, ...], list[int]] = {}
            for position, node in enumerate(self.nodes):
                if node.cls in group:
                    kinds.setdefault(_kind(self.graph, node), []).append(position)
            selected = [cls for cls in sorted(group) if cls in self.choice]
            if len(kinds) > 1 and selected:
                yield from self._decision(self._place(selected[0]), self._ways(kinds))

    def _ways(self, kinds: dict[tuple[str, ...], list[int]]) -> list[_Way]:
        everything = [node for nodes in kinds.values() for node in nodes]
        ways: dict[str, _Way] = {}
        for nodes in kinds.values():
            rivals = [node for node in everything if node not in nodes]
            taken = not self.taken.isdisjoint(nodes)
            outcome = self._outcome(rivals, taken)
            shown = outcome or self.extractions.without(rivals, fitting=False)
            if shown is None:
                continue
            made = nodes[0] if shown is NOT_PRICED else _selected(nodes, shown)
            if made is None:
                # Without its rivals the value is not needed here at all: no alternative.
                continue
            what = route_words(self.nodes[made], self.extractions.nodes(shown))
            way = _Way(what, self.account.priced.vectors[made], rivals, taken, outcome)
            if taken or what not in ways:
                ways[what] = way
        return list(ways.values())

    def _place(self, position: int) -> str:
        """The value of a class and where it is held; for a statement, what it stores."""
        cls, tile = self.graph.classes[position], tile_of(self.graph, position)
        node = self.nodes[self.choice[position]]
        if tile is None or node.op in ("store", "read"):
            stored = self.graph.classes[node.children[0]].name or "a value"
            return f"{'element' if node.op == 'read' else 'store'} of {stored}"
        where = " in a loop" if cls.region and node.op not in CARRIES else ""
        return f"{cls.name or node_words(node)} as {tile_words(tile)}{where}"


def _unpadded(axis: int, extent: int, why: str) -> Option:
    return Option(f"{extent} {UNITS[axis]}", ZERO, None, "illegal", why)


def _groups(graph: TileGraph) -> list[frozenset[int]]:
    """Classes that hold one value in one kind of place, whatever the physical extents."""
    found: dict[tuple[object, ...], set[int]] = {}
    for position, cls in enumerate(graph.classes):
        tile = tile_of(graph, position)
        key: tuple[object, ...] = (position,)
        if tile is not None and cls.name and cls.form:
            layout = tile.layout
            key = (cls.name, cls.region, tile.space, tile.dtype, layout.blayout, layout.slayout)
        found.setdefault(key, set()).add(position)
    return [frozenset(classes) for classes in found.values()]


def _kind(graph: TileGraph, node: TileNode) -> tuple[str, ...]:
    """What tells ways of making a tile apart, physical extents left out."""
    sources = []
    for child in node.children:
        tile = tile_of(graph, child)
        space = tile.space.value if tile is not None and tile.space is not None else ""
        sources.append(f"{graph.classes[child].name}@{space}")
    return (node_words(node), *sources)


def _operation(graph: TileGraph, node: TileNode) -> tuple[str, ...]:
    """The op and its operands' names, whatever their forms."""
    return (node_words(node), *(graph.classes[child].name for child in node.children))


def _selected(nodes: Iterable[int], outcome: Outcome) -> int | None:
    selected = set(outcome.choice.values())
    return next((node for node in nodes if node in selected), None)


# --- what was never an option ------------------------------------------------------------------


def unfolded_casts(account: Account) -> Iterator[Decision]:
    """Casts of accumulators in the one mode that the drain cannot stand in for."""
    folded = _folded_casts(account)
    accumulated = {
        cls.name
        for position, cls in enumerate(account.graph.classes)
        if (tile := tile_of(account.graph, position)) is not None and tile.space is Mem.Acc
    }
    for name, operand, call in _casts(account):
        mode = call.kwarg("mode") or "round"
        if mode == "round" and operand.name in accumulated and not folded & {name, operand.name}:
            yield Decision(name, account.function.name, _refused_fold(operand, call))


def _casts(account: Account) -> Iterator[tuple[str, Var, Call]]:
    """Name, operand and call of every cast of a named value in the source."""
    for stmt in walk(account.function.body):
        match stmt:
            case Assign(var=var, value=Call(op="tensor.cast", args=(Var() as x, *_)) as call):
                yield var.name, x, call


def _folded_casts(account: Account) -> set[str]:
    """Names of values that some store from L0C rounds; a value and its cast share one there."""
    names = set()
    for node in account.priced.nodes:
        if node.op != "store" or node.recipe is None:
            continue
        call = node.recipe.steps[-1].call
        source, target = call.args[0].type, call.type
        if not isinstance(source, TileType) or not isinstance(target, TensorType):
            continue
        if source.space is Mem.Acc and source.dtype != target.dtype:
            names.add(account.graph.classes[node.children[0]].name)
    return names


def _refused_fold(x: Var, call: Call) -> tuple[Option, ...]:
    dtype = call.type.dtype.name if isinstance(call.type, TensorType) else "its dtype"
    why = (
        f"mode 'round' rounds ties away from zero, FIXPIPE to even; with mode='rint', or with "
        f"reassociation allowed, the drain can round to {dtype}"
    )
    return (
        Option(f"tile.cast of {x.name} in Vec", ZERO, None, "chosen", ""),
        Option("rounded by the drain of the accumulator", ZERO, None, "illegal", why),
    )


def refused(account: Account) -> Iterator[Decision]:
    """What a tile op's type rule or the target refused."""
    for name, op, message in dict.fromkeys(account.graph.refused):
        option = Option(op, ZERO, None, "illegal", message)
        yield Decision(name or "intermediate tile", account.function.name, (option,))


# --- judging -----------------------------------------------------------------------------------


def judged(way: _Way, extractions: Extractions) -> Option:
    """A way as an option, with its status and the reason."""
    chosen, outcome = extractions.chosen, way.outcome
    if way.taken:
        return Option(way.what, way.own, chosen.cycles, "chosen", "")
    if outcome is None:
        return Option(way.what, way.own, None, "illegal", extractions.why_not(way.rivals))
    if outcome is NOT_PRICED:
        why = "one of too many to extract the kernel anew"
        return Option(way.what, way.own, None, "not priced", why)
    total, more = outcome.cycles, outcome.cycles - chosen.cycles
    words = difference_words(more, outcome.cost, chosen.cost)
    if more > SAME_CYCLES:
        return Option(way.what, way.own, total, "dearer", words)
    if more < -SAME_CYCLES:
        return Option(way.what, way.own, total, "cheaper", f"{words}; the search ended before it")
    return Option(way.what, way.own, total, "equal", _equal_words(outcome, extractions.chosen))


# A tile is at least one 32-byte line; less is the weight of a view, which takes no memory.
LEAST_TILE_BYTES = 32


def _equal_words(outcome: Outcome, chosen: Outcome) -> str:
    more = outcome.made_bytes - chosen.made_bytes
    if 0 < more < LEAST_TILE_BYTES:
        return "the same cycles, with a view of GM more"
    if more > 0:
        return f"the same cycles, {more:,} more bytes of tiles"
    return "the same cycles and bytes of tiles" if more == 0 else "the same cycles"


_ORDER = ("chosen", "cheaper", "equal", "dearer", "not priced", "illegal")
