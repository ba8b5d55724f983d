"""The cube products in a tile graph, whatever op computes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pypto_egg.account import Account
from pypto_egg.egraph.tilegraph import TileGraph, TileNode
from pypto_egg.ir.enums import TileLayout
from pypto_egg.ir.types import FRACTAL_ROWS, TileType
from pypto_egg.l0 import L0Schedule
from pypto_egg.report.words import CUBE_OPS, cube_call, tile_of

AXES = ("M", "N")
UNITS = ("rows", "columns")


@dataclass(frozen=True)
class Product:
    """One product of the source program and every cube call that can compute it.

    Args:
        name: the value that the calls make, by its name in the source.
        operands: source names of the left and the right operand.
        nodes: position in the problem -> physical (M, N) of the call's accumulator.
    """

    name: str
    operands: tuple[str, str]
    nodes: dict[int, tuple[int, int]]

    def extents(self, axis: int) -> list[int]:
        """The physical extents on offer along M (0) or N (1), ascending."""
        return sorted({extents[axis] for extents in self.nodes.values()})

    def logical(self, account: Account, axis: int) -> int | None:
        """The valid extent along an axis; None if it is only known at run time."""
        tile = tile_of(account.graph, account.priced.nodes[next(iter(self.nodes))].cls)
        extent = tile.valid_shape[-2:][axis] if tile is not None else None
        return extent if isinstance(extent, int) else None


def operand_classes(node: TileNode) -> tuple[int, int]:
    """The classes of the left and the right operand of a cube call."""
    op = cube_call(node)
    assert op is not None
    left = CUBE_OPS[op]
    return node.children[left], node.children[left + 1]


def products(account: Account) -> list[Product]:
    """The products with static extents, in the order of the tile graph.

    Two calls compute the same product if their operands are the same tensors, in the same region.
    """
    graph, found = account.graph, dict[tuple[int, str, str], Product]()
    for position, node in enumerate(account.priced.nodes):
        tile = tile_of(graph, node.cls) if cube_call(node) is not None else None
        if tile is None:
            continue
        m, n = tile.shape[-2:]
        if not isinstance(m, int) or not isinstance(n, int):
            continue
        left, right = (operand_name(graph, cls) for cls in operand_classes(node))
        region = graph.classes[operand_classes(node)[0]].region
        name = graph.classes[node.cls].name or f"{left} @ {right}"
        made = found.setdefault((region, left, right), Product(name, (left, right), {}))
        made.nodes[position] = (m, n)
    return list(found.values())


def l0_schedules(account: Account) -> dict[tuple[str, str], L0Schedule]:
    """Operand names -> how the selection cuts their product into L0 tiles."""
    found = dict[tuple[str, str], L0Schedule]()
    for position in account.selection.choice.values():
        node = account.priced.nodes[position]
        if node.recipe is None or node.recipe.schedule is None:
            continue
        # A product that leaves L0C tile by tile is part of a store or an insertion.
        left, right = operand_classes(node) if cube_call(node) else node.children[-2:]
        names = operand_name(account.graph, left), operand_name(account.graph, right)
        found[names] = node.recipe.schedule
    return found


def operand_name(graph: TileGraph, cls: int) -> str:
    """The source name of an operand; an intermediate one is named by its class."""
    return graph.classes[cls].name or f"tile {cls}"


def least_legal(product: Product, account: Account, axis: int) -> int | None:
    """The least extent along an axis that whole fractals hold; None where nothing is padded."""
    operand = tile_of(account.graph, operand_classes(_first(product, account))[axis])
    extent = product.logical(account, axis)
    if operand is None or operand.rank > 2 or extent is None:
        return None
    step = granularity(operand, axis)
    return -(-extent // step) * step


def chosen_node(product: Product, selected: Iterable[int]) -> int | None:
    """The call of a product that a selection takes."""
    return next((node for node in selected if node in product.nodes), None)


def why_not_whole(product: Product, account: Account, axis: int) -> tuple[int, str] | None:
    """The unpadded extent along an axis and why the cube refuses it; None where it is legal.

    Granularities: 16 rows and 32 bytes of columns of a Mat box, by the axis of the operand's load
    on which M or N lies (C-125, C-135 to C-137, C-158, C-165).
    """
    least, extent = least_legal(product, account, axis), product.logical(account, axis)
    if least is None or extent is None or least == extent:
        return None
    operand = tile_of(account.graph, operand_classes(_first(product, account))[axis])
    assert operand is not None
    step = granularity(operand, axis)
    unit, ids = UNITS[axis], ("C-125, C-135" if axis == 0 else "C-125, C-158")
    return extent, f"{extent} {unit} are not whole fractals of {step} {unit} ({ids})"


def least_box(extent: int, physical: int) -> int:
    """The least power of two that rounds `extent` up to `physical`."""
    box = 1
    while -(-extent // box) * box < physical:
        box *= 2
    return box


def _first(product: Product, account: Account) -> TileNode:
    return account.priced.nodes[next(iter(product.nodes))]


def granularity(operand: TileType, axis: int) -> int:
    """Elements of which the extent along M or N is a multiple, by the tile of its operand."""
    transposed = operand.layout.slayout is TileLayout.col_major
    on_columns = transposed if axis == 0 else not transposed
    return max(256 // operand.dtype.bits, FRACTAL_ROWS) if on_columns else FRACTAL_ROWS
