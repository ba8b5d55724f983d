"""How a lowering differs from the reference lowering of the same function, in words."""

from __future__ import annotations

from collections import Counter

from pypto_egg.account import Account
from pypto_egg.lowering import FunctionReport, Lowering
from pypto_egg.report.products import (
    AXES,
    UNITS,
    Product,
    chosen_node,
    products,
    why_not_whole,
)
from pypto_egg.report.words import cube_call, node_words


def differences(lowering: Lowering) -> dict[str, tuple[str, ...]]:
    """Function name -> what the lowering does otherwise than the reference, one line each.

    Empty tuples where nothing differs; the mapping is empty where there is no reference.
    """
    if lowering.baseline is None:
        return {}
    before = {report.name: report for report in lowering.baseline.functions}
    return {
        report.name: _between(before[report.name], report)
        for report in lowering.functions
        if report.name in before
    }


def boxes(account: Account) -> tuple[str, ...]:
    """The M and N of the cube calls that were padded: "M of c: 100 -> 112 rows (...)"."""
    selected = account.selection.choice.values()
    found = []
    for product in products(account):
        node = chosen_node(product, selected)
        if node is None:
            continue
        for axis, name in enumerate(AXES):
            whole = why_not_whole(product, account, axis)
            physical = product.nodes[node][axis]
            if whole is not None:
                found.append(
                    f"{name} of {product.name}: {whole[0]} -> {physical} {UNITS[axis]} ({whole[1]})"
                )
    return tuple(found)


def _between(old: FunctionReport, new: FunctionReport) -> tuple[str, ...]:
    return (*_box_changes(old.account, new.account), *_op_changes(old.account, new.account))


def _made(account: Account) -> dict[tuple[str, str], tuple[Product, int]]:
    """Operand names -> the product and the call of it that was selected."""
    selected = account.selection.choice.values()
    made = ((product, chosen_node(product, selected)) for product in products(account))
    return {product.operands: (product, node) for product, node in made if node is not None}


def _box_changes(old: Account, new: Account) -> list[str]:
    before, lines = _made(old), []
    for operands, (product, node) in _made(new).items():
        if operands not in before:
            continue
        was, old_node = before[operands]
        name = " @ ".join(operands)
        for axis, letter in enumerate(AXES):
            a, b = was.nodes[old_node][axis], product.nodes[node][axis]
            if a != b:
                lines.append(f"{letter} of {name}: {a} -> {b} {UNITS[axis]}")
        calls = [
            cube_call(account.priced.nodes[n]) for account, n in ((old, old_node), (new, node))
        ]
        if calls[0] != calls[1]:
            lines.append(f"{name}: {calls[0]} -> {calls[1]}{_joins(calls[1])}")
    return lines


def _joins(op: str | None) -> str:
    match op:
        case "tile.matmul_bias":
            return ": the bias is added in the cube"
        case "tile.matmul_acc":
            return ": the sum goes on in the accumulator"
        case _:
            return ""


def _op_changes(old: Account, new: Account) -> list[str]:
    before, after = _calls(old), _calls(new)
    lines = []
    for words in (*before, *(w for w in after if w not in before)):
        if before[words] != after[words] and not words.startswith("tile.matmul"):
            lines.append(f"{words}: {before[words]} -> {after[words]} times")
    return lines


def _calls(account: Account) -> Counter[str]:
    """How often a run of the function issues each call, views and control flow left out."""
    count: Counter[str] = Counter()
    times = account.skeleton.multiplicity
    for cls, position in account.selection.choice.items():
        node = account.priced.nodes[position]
        if node.recipe is not None and account.priced.vectors[position].total > 0:
            count[node_words(node)] += times.get(account.graph.classes[cls].region, 1)
    return count
