"""How a lowering differs from the reference lowering of the same function, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pypto_egg.account import Account
from pypto_egg.extract.cost.model import PIPES, ZERO, CostVector
from pypto_egg.lowering import FunctionReport, Lowering
from pypto_egg.report.forced import NOT_PRICED, Extractions
from pypto_egg.report.products import (
    AXES,
    UNITS,
    Product,
    chosen_node,
    l0_schedules,
    least_legal,
    products,
    why_not_whole,
)
from pypto_egg.report.words import (
    SAME_CYCLES,
    cube_call,
    difference_words,
    node_words,
    signed_cycles,
)


def differences(lowering: Lowering) -> dict[str, tuple[str, ...]]:
    """Function name -> what the lowering does otherwise than the reference, one line each.

    First the choices, each with what the kernel would gain or lose against the best one without it;
    then the calls that changed, by the pipe that is more or less busy for it. Empty tuples where
    nothing differs; the mapping is empty where there is no reference.
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
    """The M and N of the cube calls that were padded: "M of c: 100 -> 112 rows (...)".

    Where more was taken than the hardware needs, the line says what that saves.
    """
    selected, extractions = account.selection.choice.values(), Extractions(account)
    found = []
    for product in products(account):
        node = chosen_node(product, selected)
        for axis in range(len(AXES)) if node is not None else ():
            assert node is not None
            line = _box(product, account, axis, node, extractions)
            if line is not None:
                found.append(line)
    return tuple(found)


def _box(
    product: Product, account: Account, axis: int, node: int, extractions: Extractions
) -> str | None:
    logical, least = product.logical(account, axis), least_legal(product, account, axis)
    physical = product.nodes[node][axis]
    if logical is None or least is None or physical == logical:
        return None
    unit, whole = UNITS[axis], why_not_whole(product, account, axis)
    name = f"{AXES[axis]} of {product.name}"
    why = f" ({whole[1]})" if whole is not None else ""
    if physical == least:
        return f"{name}: {logical} -> {physical} {unit}{why}"
    others = [n for n, extents in product.nodes.items() if extents[axis] != least]
    return (
        f"{name}: {logical} -> {physical} {unit}, where {least} would be legal"
        f"{_saving(others, extractions)}{why}"
    )


def _saving(way: Iterable[int], extractions: Extractions) -> str:
    """What the chosen kernel gains against the best one that does without these nodes."""
    other = extractions.without(way)
    if other is None:
        return ": no kernel that fits does otherwise"
    if other is NOT_PRICED:
        return ""
    chosen = extractions.chosen
    if abs(chosen.cycles - other.cycles) < SAME_CYCLES:
        return ": the same cycles"
    return f": {difference_words(chosen.cycles - other.cycles, chosen.cost, other.cost)}"


def _between(old: FunctionReport, new: FunctionReport) -> tuple[str, ...]:
    accounts = (old.account, new.account)
    return (*_choices(*accounts), *_l0_changes(*accounts), *_pipe_changes(*accounts))


def _made(account: Account) -> dict[tuple[str, str], tuple[Product, int]]:
    """Operand names -> the product and the call of it that was selected."""
    selected = account.selection.choice.values()
    made = ((product, chosen_node(product, selected)) for product in products(account))
    return {product.operands: (product, node) for product, node in made if node is not None}


def _choices(old: Account, new: Account) -> list[str]:
    before, lines, extractions = _made(old), [], Extractions(new)
    for operands, (product, node) in _made(new).items():
        if operands not in before:
            continue
        was, old_node = before[operands]
        name = " @ ".join(operands)
        for axis, letter in enumerate(AXES):
            a, b = was.nodes[old_node][axis], product.nodes[node][axis]
            if a != b:
                rivals = [n for n, extents in product.nodes.items() if extents[axis] == b]
                saving = _saving(rivals, extractions)
                lines.append(f"{letter} of {name}: {a} -> {b} {UNITS[axis]}{saving}")
        calls = [cube_call(made.priced.nodes[n]) for made, n in ((old, old_node), (new, node))]
        if calls[0] != calls[1]:
            nodes = new.priced.nodes
            way = [n for n in product.nodes if cube_call(nodes[n]) == calls[1]]
            saving = _saving(way, extractions)
            lines.append(f"{name}: {calls[0]} -> {calls[1]}{_joins(calls[1])}{saving}")
    return lines


def _joins(op: str | None) -> str:
    match op:
        case "tile.matmul_bias":
            return ", the bias is added in the cube"
        case "tile.matmul_acc":
            return ", the sum goes on in the accumulator"
        case _:
            return ""


def _l0_changes(old: Account, new: Account) -> list[str]:
    """The products that both cut into L0 tiles, each otherwise than the other."""
    before, after = l0_schedules(old), l0_schedules(new)
    return [
        f"L0 tiles of {' @ '.join(operands)}: {before[operands]} -> {schedule}"
        for operands, schedule in after.items()
        if before.get(operands, schedule) != schedule
    ]


def _pipe_changes(old: Account, new: Account) -> list[str]:
    """For each pipe that is more or less busy the calls that make it so, the greatest first."""
    before, after = _calls(old), _calls(new)
    count_before, count_after = _counts(old), _counts(new)
    lines: list[tuple[float, str]] = []
    for pipe in PIPES:
        causes, total = [], 0.0
        for words in dict.fromkeys((*before, *after)):
            more = getattr(after.get(words, ZERO), pipe) - getattr(before.get(words, ZERO), pipe)
            total += more
            if abs(more) >= SAME_CYCLES:
                a, b = count_before[words], count_after[words]
                causes.append(f"{words} {a} -> {b} times" if a != b else words)
        if abs(total) >= SAME_CYCLES:
            lines.append((total, f"{pipe} {signed_cycles(total)} cycles: {', '.join(causes)}"))
    return [line for _, line in sorted(lines, key=lambda found: -abs(found[0]))]


def _calls(account: Account) -> dict[str, CostVector]:
    """Calls by kind -> the cycles of one run of the function, control flow left out."""
    found: dict[str, CostVector] = {}
    for position in account.selection.choice.values():
        node = account.priced.nodes[position]
        if node.recipe is not None:
            words = node_words(node)
            found[words] = found.get(words, ZERO) + account.priced.vectors[position]
    return found


def _counts(account: Account) -> Counter[str]:
    """How often a run of the function issues each kind of call."""
    count: Counter[str] = Counter()
    times = account.skeleton.multiplicity
    for cls, position in account.selection.choice.items():
        node = account.priced.nodes[position]
        if node.recipe is not None:
            count[node_words(node)] += times.get(account.graph.classes[cls].region, 1)
    return count
