"""What could have been decided otherwise in a lowered function, and what that would cost.

A decision is one that a kernel author would recognise: the physical M or N of a product, the way
a value takes to where it is needed, the memory a result leaves from. Every other way is priced by
extracting the whole kernel anew without the ways that compete with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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


def decisions(account: Account) -> tuple[Decision, ...]:
    """The decisions of a function: boxes of products, routes of values, folds that were refused.

    Options are in a fixed order with the chosen one first. Nothing is returned for a value that
    can be made in one way only.
    """
    extractions = Extractions(account)
    found = [*_boxes(account, extractions), *_routes(account, extractions)]
    found += [*_unfolded_casts(account), *_refused(account)]
    return tuple(found)


# --- boxes of products -------------------------------------------------------------------------


def _boxes(account: Account, extractions: Extractions) -> Iterator[Decision]:
    for product in products(account):
        node = chosen_node(product, account.selection.choice.values())
        if node is None:
            continue
        for axis, letter in enumerate(AXES):
            options = _box_options(product, axis, node, account, extractions)
            if len(options) > 1:
                value = f"{letter} of {product.name} = {' @ '.join(product.operands)}"
                yield Decision(value, account.function.name, options)


def _box_options(
    product: Product, axis: int, chosen: int, account: Account, extractions: Extractions
) -> tuple[Option, ...]:
    taken, logical = product.nodes[chosen][axis], product.logical(account, axis)
    options = []
    for extent in product.extents(axis):
        others = [n for n, extents in product.nodes.items() if extents[axis] != extent]
        outcome = extractions.chosen if extent == taken else extractions.without(others)
        own = ZERO
        if outcome is not None:
            made = chosen_node(product, outcome.choice.values())
            own = account.priced.vectors[made] if made is not None else ZERO
        what = f"{extent} {UNITS[axis]}"
        if logical is not None and extent != logical:
            what += f" (box {least_box(logical, extent)}, {logical} valid)"
        options.append(_judged(what, own, outcome, extent == taken, others, extractions))
    whole = why_not_whole(product, account, axis)
    if whole is not None:
        options.append(Option(f"{whole[0]} {UNITS[axis]}", ZERO, None, "illegal", whole[1]))
    return _ranked(options)


# --- routes of values --------------------------------------------------------------------------


def _routes(account: Account, extractions: Extractions) -> Iterator[Decision]:
    """One decision for each value and kind of place where several kinds of calls can make it."""
    graph, choice = account.graph, account.selection.choice
    for group in _groups(account):
        kinds: dict[tuple[str, ...], list[int]] = {}
        for position, node in enumerate(account.priced.nodes):
            if node.cls in group:
                kinds.setdefault(_kind(graph, node), []).append(position)
        selected = [cls for cls in sorted(group) if cls in choice]
        if len(kinds) < 2 or not selected:
            continue
        options = _route_options(kinds, selected[0], account, extractions)
        if len(options) > 1:
            yield Decision(_place(graph, selected[0], account), account.function.name, options)


def _groups(account: Account) -> list[frozenset[int]]:
    """Classes that hold one value in one kind of place, whatever the physical extents."""
    graph = account.graph
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


def _route_options(
    kinds: dict[tuple[str, ...], list[int]],
    place: int,
    account: Account,
    extractions: Extractions,
) -> tuple[Option, ...]:
    everything = [node for nodes in kinds.values() for node in nodes]
    taken = account.selection.choice[place]
    options, seen = [], set()
    for nodes in kinds.values():
        others = [node for node in everything if node not in nodes]
        outcome = extractions.chosen if taken in nodes else extractions.without(others)
        made = nodes[0] if outcome is NOT_PRICED else _selected(nodes, outcome)
        if made is None or outcome is None:
            # Without its rivals the value is not needed here at all, so this is no alternative.
            continue
        what = route_words(account.priced.nodes[made], extractions.nodes(outcome))
        own = account.priced.vectors[made]
        if what not in seen:
            options.append(_judged(what, own, outcome, taken in nodes, others, extractions))
        seen.add(what)
    return _ranked(options)


def _selected(nodes: Iterable[int], outcome: Outcome | None) -> int | None:
    if outcome is None:
        return None
    selected = set(outcome.choice.values())
    return next((node for node in nodes if node in selected), None)


def _place(graph: TileGraph, position: int, account: Account) -> str:
    """The value of a class and where it is held; for a statement, what it stores."""
    cls, tile = graph.classes[position], tile_of(graph, position)
    node = account.priced.nodes[account.selection.choice[position]]
    if tile is None or node.op in ("store", "read"):
        stored = graph.classes[node.children[0]].name or "a value"
        return f"{'element' if node.op == 'read' else 'store'} of {stored}"
    name = cls.name or node_words(node)
    where = " in a loop" if cls.region and node.op not in CARRIES else ""
    return f"{name} as {tile_words(tile)}{where}"


# --- what was never an option ------------------------------------------------------------------


def _unfolded_casts(account: Account) -> Iterator[Decision]:
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


def _refused(account: Account) -> Iterator[Decision]:
    """What a tile op's type rule or the target refused."""
    for name, op, message in dict.fromkeys(account.graph.refused):
        option = Option(op, ZERO, None, "illegal", message)
        yield Decision(name or "intermediate tile", account.function.name, (option,))


# --- judging -----------------------------------------------------------------------------------


def _judged(
    what: str,
    own: CostVector,
    outcome: Outcome | None,
    taken: bool,
    others: list[int],
    extractions: Extractions,
) -> Option:
    """An option with its status and the reason."""
    chosen = extractions.chosen.cost
    if taken:
        return Option(what, own, chosen.total, "chosen", "")
    if outcome is None:
        return Option(what, own, None, "illegal", _why_no_kernel(others, extractions))
    if outcome is NOT_PRICED:
        return Option(what, own, None, "not priced", "one of too many to extract the kernel anew")
    total, more = outcome.cost.total, outcome.cost.total - chosen.total
    words = difference_words(outcome.cost, chosen)
    if more > SAME_CYCLES:
        return Option(what, own, total, "dearer", words)
    if more < -SAME_CYCLES:
        return Option(what, own, total, "cheaper", f"{words}; the extraction ended before it")
    return Option(what, own, total, "equal", _equal_words(outcome, extractions.chosen))


# A tile is at least one 32-byte line; less is the weight of a view, which takes no memory.
LEAST_TILE_BYTES = 32


def _equal_words(outcome: Outcome, chosen: Outcome) -> str:
    more = outcome.made_bytes - chosen.made_bytes
    if 0 < more < LEAST_TILE_BYTES:
        return "the same cycles, with a view of GM more"
    if more > 0:
        return f"the same cycles, {more:,} more bytes of tiles"
    return "the same cycles and bytes of tiles" if more == 0 else "the same cycles"


def _why_no_kernel(others: list[int], extractions: Extractions) -> str:
    if extractions.without(others, fitting=False) is None:
        return "no kernel can be made with it: a consumer cannot take these extents or this form"
    return "with it the tiles do not fit on chip together"


_ORDER = ("chosen", "cheaper", "equal", "dearer", "not priced", "illegal")


def _ranked(options: list[Option]) -> tuple[Option, ...]:
    """The chosen option first, then by total; options without a total last."""
    ranked = sorted(options, key=lambda o: (_ORDER.index(o.status), o.total or 0.0))
    return tuple(ranked)
