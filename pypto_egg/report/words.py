"""Tiles, e-nodes and costs in words that a kernel author knows."""

from __future__ import annotations

from collections.abc import Mapping

from pypto_egg.egraph.recipes import Step
from pypto_egg.egraph.tilegraph import TileGraph, TileNode
from pypto_egg.extract.cost.model import CostModel, CostVector
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.expr import Expr
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.lowering import FunctionReport
from pypto_egg.text import print_expr

# Cycles below which two totals are the same: what prices are rounded to when they are shown, and
# well above the weight by which ties are broken.
SAME_CYCLES = 0.5

# Op of the cube -> position of its left operand among the tile operands.
CUBE_OPS = {
    "tile.matmul": 0,
    "tile.batch_matmul": 0,
    "tile.matmul_bias": 0,
    "tile.matmul_acc": 1,
    "tile.batch_matmul_acc": 1,
}

_CONTROL_WORDS = {
    "outer": "made outside the loop",
    "carried": "carried by the loop",
    "looped": "carried by the loop",
    "merged": "made in both branches",
}
_ROUTE_LENGTH = 8


def cycles(value: float) -> str:
    """A number of cycles, rounded, with thousands separated."""
    return f"{value:,.0f}"


def signed_cycles(value: float) -> str:
    """A difference in cycles with its sign; "0" if it rounds to nothing."""
    return f"{value:+,.0f}" if abs(value) >= SAME_CYCLES else "0"


def fold_words(model: CostModel) -> str:
    """What the total of a model is."""
    if model.objective == "serial":
        return "the sum of all pipes: none overlap"
    if model.objective == "simulated":
        return "simulated: queues in order, each instruction waits for its operands and buffers"
    on_top = " and ".join(model.not_overlapped)
    return f"the busiest pipe{f' plus {on_top}' if on_top else ''}; the other pipes overlap with it"


def roofline_words(report: FunctionReport) -> str:
    """Which pipe bounds a kernel, and how far its total is from that bound."""
    pipe, busy = report.busiest
    total = report.cycles
    if not total:
        return "no pipe is busy"
    words = f"{pipe} bounds the kernel: busy for {cycles(busy)} of {cycles(total)} cycles"
    if busy >= total - SAME_CYCLES:
        return f"{words}, all of them"
    return (
        f"{words} ({100 * busy / total:.0f} %); "
        f"{cycles(total - busy)} more than if everything overlapped with it"
    )


def pipe_differences(new: CostVector, old: CostVector) -> dict[str, float]:
    """Pipe -> cycles of `new` minus those of `old`, for the pipes where they differ."""
    before = old.by_pipe()
    found = {pipe: value - before[pipe] for pipe, value in new.by_pipe().items()}
    return {pipe: value for pipe, value in found.items() if abs(value) >= SAME_CYCLES}


def difference_words(more: float, new: CostVector, old: CostVector) -> str:
    """How kernels differ whose cycles differ by `more`: "+120 cycles (mte2 +140, vector -20)"."""
    parts = [f"{pipe} {signed_cycles(v)}" for pipe, v in pipe_differences(new, old).items()]
    return f"{signed_cycles(more)} cycles ({', '.join(parts) or 'same pipes'})"


def dims_words(dims: tuple[int | Expr, ...]) -> str:
    """Extents as PyPTO writes them: "[112, 64]"."""
    return "[" + ", ".join(str(d) if isinstance(d, int) else print_expr(d) for d in dims) + "]"


def tile_words(tile: TileType) -> str:
    """A tile's space, physical extents, dtype, and valid extents where they are smaller."""
    space = tile.space.value if tile.space is not None else "no space"
    text = f"{space} {dims_words(tile.shape)} {tile.dtype.name}"
    if tuple(tile.valid_shape) != tuple(tile.shape):
        text += f", valid {dims_words(tile.valid_shape)}"
    return text


def step_words(step: Step) -> str:
    """One call: the op and, where it says more than the op, from which space to which."""
    call = step.call
    if call.op == "tensor.view":
        return "DN view"
    result = call.type
    to = result.space.value if isinstance(result, TileType) and result.space is not None else ""
    source = call.args[0].type if call.args else None
    match call.op, source:
        case "tile.load", TensorType() as tensor:
            dn = " of the DN view" if tensor.layout is TensorLayout.DN else ""
            return f"tile.load to {to}{dn}"
        case "tile.move", TileType(space=space) if space is not None:
            return f"tile.move {space.value} to {to}"
        case "tile.store", TileType(space=space) if space is not None:
            return f"tile.store from {space.value}"
        case "tile.create", _:
            return f"tile.create in {to}"
        case _:
            return call.op


def node_words(node: TileNode) -> str:
    """The main call of a node, or what control flow does with the tile."""
    if node.recipe is None:
        return _CONTROL_WORDS.get(node.op, node.op)
    steps = node.recipe.steps
    declares = len(steps) > 1 and steps[-1].call.op == "tile.set_validshape"
    return step_words(steps[-2 if declares else -1])


def cube_call(node: TileNode) -> str | None:
    """The cube op that a node issues, if it does."""
    if node.recipe is None:
        return None
    op = node.recipe.steps[-1].call.op
    return op if op in CUBE_OPS else None


def route_words(start: TileNode, choice: Mapping[int, TileNode]) -> str:
    """How a tile comes about: its call and those before it, along the operand that is computed on.

    That is the left operand of a product, what the body yields of a loop, else the first operand.
    """
    node, seen = start, {start.cls}
    inner = choice.get(start.children[0]) if start.op == "outer" else None
    if inner is not None and inner.op == "looped":
        node = inner
    parts = [node_words(node)]
    while node.children and len(parts) < _ROUTE_LENGTH:
        following = choice.get(node.children[_followed(node)])
        if following is None or following.cls in seen:
            break
        node = following
        seen.add(node.cls)
        if node.op != "outer":
            parts.append(node_words(node))
    return " <- ".join(parts)


def _followed(node: TileNode) -> int:
    if node.op == "looped":
        return len(node.children) - 1
    op = cube_call(node)
    return CUBE_OPS[op] if op is not None else 0


def tile_of(graph: TileGraph, position: int) -> TileType | None:
    """The tile type of a class; None for statements."""
    var = graph.classes[position].var
    return var.type if var is not None and isinstance(var.type, TileType) else None
