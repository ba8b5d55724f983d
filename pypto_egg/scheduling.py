"""Every legal L0 schedule of each cube product as an e-node of its own, with its price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pypto_egg.egraph.tilegraph import TileGraph, TileNode
from pypto_egg.errors import OptionError
from pypto_egg.extract.cost.l0_schedules import front, summed_prices
from pypto_egg.extract.cost.model import PIPES, CostModel, CostVector
from pypto_egg.extract.cost.pypto_l0 import pypto_choice
from pypto_egg.ir.enums import Mem, TensorLayout, TileLayout
from pypto_egg.ir.expr import Call
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.l0 import CubeProduct, Drain, L0Schedule, Schedules, schedules
from pypto_egg.l0.schedule import OPERANDS
from pypto_egg.price import faults_of, op_cost
from pypto_egg.target.target import Target

L0Mode = Literal["schedule", "pypto", "leave"]
"""Who cuts cube products into L0 tiles: we do, we do as PyPTO's chooser would, or PyPTO's own
AutoTileMatmulL0 does later."""

# E-nodes that take a result out of L0C as a whole, and those that have a product of their own and
# take its result out tile by tile.
AS_A_WHOLE = ("store", "tile.insert")
BY_TILES = ("store.product", "tile.insert_product")

# The call that takes a result out of L0C -> which operand the tiles go into.
_WHOLE = {"tile.store": 2, "tile.assemble": 0}


def check_l0_mode(mode: object) -> L0Mode:
    """The mode.

    Raises:
        OptionError: it is none.
    """
    modes: tuple[L0Mode, ...] = get_args(L0Mode)
    for known in modes:
        if mode == known:
            return known
    raise OptionError(f"l0 is {mode!r}", hint=f"use one of: {', '.join(map(repr, modes))}")


@dataclass(frozen=True)
class Scheduled:
    """The schedules of one product that are worth weighing under a model.

    Args:
        considered: how many legal ones there are.
        vectors: cycles of each schedule on each pipe, as `PIPES`.
    """

    product: CubeProduct
    considered: int
    schedules: Schedules
    vectors: NDArray[np.float64]


def with_schedules(
    graph: TileGraph, model: CostModel, target: Target, mode: L0Mode = "schedule"
) -> dict[int, CostVector]:
    """Put the schedules of each product into the graph, in the place of the product.

    The result maps the identity of each such node to its cycles on each pipe when it runs once.

    A product that has none (its operands are not in Mat, or its extents are not constant, no whole
    fractals or narrower than 8 bits) stays as it is.
    """
    vectors: dict[int, CostVector] = {}
    known: dict[tuple[CubeProduct, bool], Scheduled] = {}
    for cls in graph.classes:
        cls.nodes = [
            new for node in cls.nodes for new in _ways(node, vectors, known, model, target, mode)
        ]
        if mode == "pypto":
            cls.nodes = _without_whole_results(cls.nodes, graph)
    graph.nodes = [node for cls in graph.classes for node in cls.nodes]
    return vectors


def _without_whole_results(nodes: list[TileNode], graph: TileGraph) -> list[TileNode]:
    """Where its choice is a grid of tiles, PyPTO does not keep the whole result in L0C."""
    grids = [set(node.children[-2:]) for node in nodes if node.op in BY_TILES]
    if not grids:
        return nodes
    return [
        node for node in nodes if node.op not in AS_A_WHOLE or not _takes_any(node, grids, graph)
    ]


def _takes_any(node: TileNode, grids: list[set[int]], graph: TileGraph) -> bool:
    """Whether a node takes what is made of one of these pairs of operands, on whatever way."""
    stack, seen = list(node.children), set(node.children)
    while stack:
        for maker in graph.classes[stack.pop()].nodes:
            children = set(maker.children)
            if any(operands <= children for operands in grids):
                return True
            stack += children - seen
            seen |= children
    return False


def _ways(
    node: TileNode,
    vectors: dict[int, CostVector],
    known: dict[tuple[CubeProduct, bool], Scheduled],
    model: CostModel,
    target: Target,
    mode: L0Mode,
) -> Iterator[TileNode]:
    product = product_of(node, target)
    if product is not None:
        whole_rows = _covers_all_rows(node)
        key = (product, whole_rows)
        if key not in known:
            known[key] = worth_weighing(product, model, target, mode, whole_rows=whole_rows)
        assert node.recipe is not None
        for schedule, vector in zip(known[key].schedules, known[key].vectors, strict=True):
            made = replace(node, recipe=replace(node.recipe, schedule=schedule))
            vectors[id(made)] = CostVector(*map(float, vector))
            yield made
        if len(known[key].schedules):
            return
    if node.op not in BY_TILES:
        yield node


def worth_weighing(
    product: CubeProduct,
    model: CostModel,
    target: Target,
    mode: L0Mode = "schedule",
    *,
    whole_rows: bool = False,
) -> Scheduled:
    """The schedules of a product among which the cheapest one is, whatever surrounds it.

    A schedule is left out if another one is at most as dear and takes no more of L0C: as a sum of
    cycles under a model that adds up, on every pipe under one that does not.

    Args:
        whole_rows: only those whose tiles have all rows of the result.
    """
    legal = schedules(product, target)
    if whole_rows:
        legal = legal.take(legal.m >= product.valid[0])
    if mode == "pypto":
        choice = pypto_choice(product, legal, target)
        legal = legal.take(np.array([] if choice is None else [choice], dtype=np.int64))
    if product.leaves:
        # One tile as large as the box is the e-node of a product in L0C, and its store.
        pm, pn, _ = product.physical
        legal = legal.take((legal.m < pm) | (legal.n < pn))
    considered = len(legal)
    vectors = prices_of(product, legal, model, target)
    costs = vectors.sum(axis=1, keepdims=True) if model.adds_up else vectors
    room = (legal.m * legal.n * legal.accumulators)[:, None].astype(float)
    overlap = room[:, :0] if model.adds_up else -legal.accumulators[:, None].astype(float)
    kept = front(costs, np.hstack([room, overlap]))
    return Scheduled(product, considered, legal.take(kept), vectors[kept])


def prices_of(
    product: CubeProduct, among: Schedules, model: CostModel, target: Target
) -> NDArray[np.float64]:
    """Cycles of each schedule on each pipe under a model, as `PIPES`."""
    shape = (len(among), len(PIPES))
    if not len(among):
        return np.zeros(shape)
    with faults_of(model, "gives no prices for schedules"):
        vectors = model.price_schedules(product, among, target)
        if vectors is None:
            return summed_prices(
                partial(op_cost, model=model, target=target), product, among, target
            )
        found = np.asarray(vectors)
    if found.shape != shape:
        raise OptionError(
            f"cost model '{model.name}': price_schedules gave an array of shape {found.shape} for "
            f"{shape[0]} schedules and {shape[1]} pipes",
            hint=f"its shape is {shape}: a row for each schedule, its columns as PIPES",
        )
    real = np.issubdtype(found.dtype, np.floating) or np.issubdtype(found.dtype, np.integer)
    if not real or not np.isfinite(found).all() or (found < 0).any():
        raise OptionError(
            f"cost model '{model.name}': price_schedules gave numbers that are no cycles",
            hint="cycles are finite real numbers, none below 0",
        )
    return found.astype(np.float64)


def product_of(node: TileNode, target: Target) -> CubeProduct | None:
    """The product that a node makes, if schedules can be stated for it."""
    step = (
        next((s for s in node.recipe.steps if s.call.op in OPERANDS), None) if node.recipe else None
    )
    if step is None or (node.op in BY_TILES and not _keeps_its_type(node)):
        return None
    lhs, rhs = (step.call.args[at].type for at in OPERANDS[step.call.op])
    result = step.call.type
    assert isinstance(lhs, TileType)
    assert isinstance(rhs, TileType)
    assert isinstance(result, TileType)
    if step.call.op == "tile.matmul_bias" and not _in_bias_table(step.call):
        return None
    leaves = node.op in BY_TILES
    product = cube_product(lhs, rhs, result, target, leaves=leaves)
    if product is None:
        return None
    return replace(product, begins=step.call.op, drain=_drain_of(node) if leaves else None)


def cube_product(
    lhs: TileType, rhs: TileType, result: TileType, target: Target, *, leaves: bool
) -> CubeProduct | None:
    """The product of two tiles in Mat; None if schedules cannot be stated for it."""
    acc = target.cube_accumulator(lhs.dtype, rhs.dtype)
    if acc is None or min(lhs.dtype.bits, rhs.dtype.bits) < 8 or lhs.rank != 2:
        return None
    if lhs.space is not Mem.Mat or rhs.space is not Mem.Mat:
        return None
    physical = _constant((*lhs.shape, rhs.shape[1]))
    if physical is None or lhs.valid_shape[1] != lhs.shape[1] or rhs.valid_shape[0] != rhs.shape[0]:
        return None
    m, k, n = physical
    if leaves and _constant(result.valid_shape) is None:
        return None
    # Of an extent that is known at run time only, all is computed as far as prices go.
    valid = [
        extent if isinstance(extent, int) else whole
        for extent, whole in zip(result.valid_shape, (m, n), strict=True)
    ]
    turned = (
        lhs.layout.slayout is TileLayout.col_major, rhs.layout.slayout is TileLayout.col_major
    )  # fmt: skip
    product = CubeProduct(
        (valid[0], valid[1], k), (m, n, k), lhs.dtype, rhs.dtype, acc, turned, leaves
    )
    if any(extent % step for extent, step in zip((m, n, k), product.steps, strict=True)):
        return None
    return product


def _in_bias_table(product: Call) -> bool:
    bias = product.args[2].type
    return isinstance(bias, TileType) and bias.space is Mem.Bias


def _constant(extents: tuple[object, ...]) -> tuple[int, ...] | None:
    found = tuple(extent for extent in extents if isinstance(extent, int))
    return found if len(found) == len(extents) else None


def _keeps_its_type(node: TileNode) -> bool:
    """Whether what the tiles go into has the same type before and after: a loop carries it."""
    call = _leaving_call(node)
    return call.args[_WHOLE[call.op]].type == call.type


def _leaving_call(node: TileNode) -> Call:
    """The call that takes the result out of L0C."""
    assert node.recipe is not None
    (call,) = (step.call for step in node.recipe.steps if step.call.op in _WHOLE)
    return call


def _drain_of(node: TileNode) -> Drain:
    call = _leaving_call(node)
    tile = {"tile.store": 0, "tile.assemble": 1}[call.op]
    operands = tuple(None if at == tile else arg.type for at, arg in enumerate(call.args))
    return Drain(call.op, operands, call.kwargs, call.type)


def _covers_all_rows(node: TileNode) -> bool:
    """Whether each tile has all rows of the result: memory in NZ order is split along N (N-049)."""
    assert node.recipe is not None
    target = node.recipe.type
    return isinstance(target, TensorType) and target.layout is TensorLayout.NZ


def schedule_of(node: TileNode) -> L0Schedule | None:
    """The schedule of a node's product."""
    return node.recipe.schedule if node.recipe is not None else None
