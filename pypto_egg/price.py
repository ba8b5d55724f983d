"""A tile graph with prices: the extraction problem of one function."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pypto_egg.egraph.recipes import Recipe
from pypto_egg.egraph.skeleton import Skeleton
from pypto_egg.egraph.tilegraph import TileGraph, TileNode
from pypto_egg.emit.liveness import tile_bytes
from pypto_egg.errors import OptionError, PyptoEggError, UnsupportedDTypeError
from pypto_egg.extract.bottleneck import bottleneck, no_longer
from pypto_egg.extract.cost.model import PIPES, ZERO, CostModel, CostVector, OpInstance
from pypto_egg.extract.problem import Problem
from pypto_egg.extract.registry import extract
from pypto_egg.extract.result import Selection
from pypto_egg.ir.types import TileType
from pypto_egg.ops.registry import lookup
from pypto_egg.target.target import Target

# Between lowerings of equal cost the one that takes less memory is chosen: a byte of a tile weighs
# this many cycles, far below anything that a cost model can tell apart.
TIE_CYCLES_PER_BYTE = 1e-7
# Where our own models are; an exception in one of them is a fault of ours.
OURS = "pypto_egg."


@dataclass(frozen=True)
class Priced:
    """The extraction problem, and the tile graph's nodes in the problem's order.

    Args:
        nodes: position in the problem -> node.
        vectors: position -> cost in cycles for each pipe, trip counts included.
    """

    problem: Problem
    nodes: tuple[TileNode, ...]
    vectors: tuple[CostVector, ...]


def price(
    graph: TileGraph,
    skeleton: Skeleton,
    model: CostModel,
    target: Target,
    known: Mapping[int, CostVector] | None = None,
) -> Priced:
    """The problem of choosing a node for each class at the least cost (cycles).

    Args:
        known: identity of a node -> what it costs, where that is known already.
    """
    known = known or {}
    nodes: list[TileNode] = []
    vectors: list[CostVector] = []
    times = [skeleton.multiplicity.get(cls.region, 1) for cls in graph.classes]
    for position, cls in enumerate(graph.classes):
        for node in cls.nodes:
            try:
                cost = known.get(id(node)) or _node_cost(node, model, target)
            except UnsupportedDTypeError as error:
                graph.refused.append((cls.name, node.op, error.message))
                continue
            nodes.append(node)
            vectors.append(cost * times[position])
    ties = np.array([_made_bytes(node) for node in nodes]) * TIE_CYCLES_PER_BYTE
    table = np.array(
        [[getattr(v, pipe) for pipe in PIPES] for v in vectors], dtype=np.float64
    ).reshape(-1, len(PIPES))
    queues = table
    if model.queues != PIPES:
        rows = [_queue_cycles(node, known.get(id(node)), model, target) for node in nodes]
        often = np.array([times[node.cls] for node in nodes])
        queues = often[:, None] * np.array(rows).reshape(-1, len(model.queues))
    problem = Problem(
        node_class=[node.cls for node in nodes],
        node_children=[node.children for node in nodes],
        node_requires=[node.requires for node in nodes],
        node_cost=table.sum(axis=1) + ties,
        roots=[graph.roots[key] for key in sorted(graph.roots)],
        node_op=[node.op for node in nodes],
        class_name=[f"{i}:{cls.name}" for i, cls in enumerate(graph.classes)],
        node_vector=queues,
        pipes=model.queues,
    )
    return Priced(problem, tuple(nodes), tuple(vectors))


def _node_cost(node: TileNode, model: CostModel, target: Target) -> CostVector:
    return recipe_cost(node.recipe, model, target) if node.recipe is not None else ZERO


def cheapest(
    problem: Problem, model: CostModel, method: str, deadline_seconds: float | None = None
) -> Selection:
    """The selection that is cheapest by the model's own objective; arguments as of `extract`.

    A busiest pipe leaves open what the other pipes do, so among the kernels that are as short the
    one with the least work on all pipes, and then the fewest bytes of tiles, is taken.
    """
    if model.objective != "bottleneck":
        return extract(problem, method, deadline_seconds=deadline_seconds)
    apart = model.not_overlapped
    shortest = extract(
        problem,
        method,
        objective=model.objective,
        not_overlapped=apart,
        deadline_seconds=deadline_seconds,
    )
    if not shortest.found:
        return shortest
    limits = no_longer(problem, apart, shortest.cost)
    least = extract(problem.with_constraints(limits), method, deadline_seconds=deadline_seconds)
    if not least.found:
        return shortest
    return replace(shortest, choice=least.choice, cost=bottleneck(least.choice, problem, apart))


def _made_bytes(node: TileNode) -> int:
    """Bytes of the tiles that a node's calls make, views left out; a GM view counts as one."""
    total = 0
    for step in node.recipe.steps if node.recipe is not None else ():
        decl = lookup(step.call.op)
        if not isinstance(step.call.type, TileType):
            total += 1
        elif decl is not None and not decl.inherits_memory and decl.reuses_input is None:
            total += tile_bytes(step.call.type)
    return total


def recipe_cost(recipe: Recipe, model: CostModel, target: Target) -> CostVector:
    """The cycles of all calls of a recipe.

    Raises:
        OptionError: the model raises an exception or gives no finite vector.
        UnsupportedDTypeError: the target has no instruction for one of them.
    """
    total = ZERO
    for step in recipe.steps:
        call = step.call
        operands = tuple(arg.type for arg in call.args)
        instance = OpInstance(call.op, operands, dict(call.kwargs), call.type)
        total = total + op_cost(instance, model, target)
    return total


def _queue_cycles(
    node: TileNode, known: CostVector | None, model: CostModel, target: Target
) -> npt.NDArray[np.float64]:
    """The cycles of all calls of a node by the model's queues; what is known is on the cube's side,
    whose queues are pipes."""
    if known is not None:
        return np.array([known.by_pipe().get(queue, 0.0) for queue in model.queues])
    total = np.zeros(len(model.queues))
    for step in node.recipe.steps if node.recipe is not None else ():
        call = step.call
        operands = tuple(arg.type for arg in call.args)
        instance = OpInstance(call.op, operands, dict(call.kwargs), call.type)
        with faults_of(model, f"gives no cycles of its queues for {call.op}"):
            by_queue = model.queue_cycles(instance, target)
            total += [by_queue[queue] for queue in model.queues]
    return total


def op_cost(op: OpInstance, model: CostModel, target: Target) -> CostVector:
    """A model's price; what another's model does wrong is told as a fault of that model.

    Raises:
        as `recipe_cost`.
    """
    with faults_of(model, f"gives no price for {op.op}"):
        priced = model.price(op, target)
    if not isinstance(priced, CostVector) or not math.isfinite(priced.total):
        raise OptionError(
            f"cost model '{model.name}': the price of {op.op} is {priced!r}",
            hint="a price is a CostVector of finite cycles",
        )
    cycles = [getattr(priced, pipe) for pipe in PIPES]
    if all(isinstance(number, int | float) for number in cycles):
        return priced
    return CostVector(*map(float, cycles))  # numpy's numbers, which JSON does not know


@contextmanager
def faults_of(model: CostModel, does: str) -> Iterator[None]:
    """What another's model raises, told as a fault of that model; `does` says what it did.

    A model is the user's code, which can raise anything; faults of our own models go on.

    Raises:
        OptionError: in the place of an exception that is none of ours.
    """
    try:
        yield
    except PyptoEggError:
        raise
    except Exception as error:
        # Whatever it is, the user is told which model failed at what, and not where in numpy.
        if type(model).__module__.startswith(OURS):
            raise
        raise OptionError(
            f"cost model '{model.name}' {does}: {type(error).__name__}: {error}",
            hint="see the law that a model must obey in the docstring of CostModel",
        ) from error
