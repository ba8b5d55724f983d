"""The tile graph of random programs: what holds of every way of making every tile."""

from __future__ import annotations

from functools import cache

import pytest
from generate import sample
from kernels import kernel, tensor

from pypto_egg import optimize
from pypto_egg.account import Account
from pypto_egg.analysis.regions import RegionTree
from pypto_egg.ir.dtype import FP16
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.types import TileType
from pypto_egg.verify.boxes import broken_boxes

SEEDS = range(8)


@cache
def account(seed: int) -> Account:
    """Of a program of 6 random steps."""
    return optimize(sample(seed, 6), verify=False).functions[0].account


def made(node) -> TileType | None:
    """The type of the tile that a node makes; None for control flow and stores."""
    if node.recipe is None or not isinstance(node.recipe.type, TileType):
        return None
    return node.recipe.type


@pytest.mark.parametrize("seed", SEEDS)
def test_all_ways_of_making_a_tile_give_the_same_type(seed):
    graph = account(seed).graph
    for cls in graph.classes:
        types = {made(node) for node in cls.nodes} - {None}
        assert len({(t.shape, t.dtype, t.space, t.layout) for t in types}) <= 1
        assert cls.var is None or types <= {cls.var.type}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.req("C-125")
def test_every_way_is_whole_boxes_and_whole_lines(seed):
    for node in account(seed).graph.nodes:
        type_ = made(node)
        if type_ is None:
            continue
        assert broken_boxes(type_) is None
        if type_.space is Mem.Vec and isinstance(type_.shape[-1], int) and type_.shape[-1] > 1:
            assert type_.shape[-1] * type_.dtype.bits // 8 % 32 == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_operands_are_made_in_the_same_region_or_fetched_from_around_it(seed):
    """Loops and branches alone take a tile from the region inside them."""
    found = account(seed)
    tree = RegionTree(found.function)
    for cls in found.graph.classes:
        for node in cls.nodes:
            for child in node.children:
                made_in = found.graph.classes[child].region
                if node.op == "outer":
                    assert tree.is_ancestor(tree.regions[made_in], tree.regions[cls.region])
                elif node.op not in ("looped", "merged"):
                    assert made_in == cls.region, (node.op, cls.name)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_priced_problem_is_the_graph(seed):
    found = account(seed)
    problem, priced = found.priced.problem, found.priced
    assert problem.node_count >= len(priced.nodes)
    for number, node in enumerate(priced.nodes):
        assert problem.node_class[number] == node.cls
        assert tuple(problem.node_children[number]) == node.children
        assert problem.node_cost[number] >= 0
    for root in found.graph.roots.values():
        assert found.selection.choice[root] is not None


def test_a_program_that_reads_a_tensor_in_two_ways_has_a_load_for_each():
    """The cube reads x in fractals, the vector unit in rows; one e-class for each form."""
    body = "p = pl.matmul(x, x, out_dtype=pl.FP32)\ne = pl.exp(x)\nreturn p, e"
    results = f"tuple[{tensor([32, 32], 'FP32')}, {tensor([32, 32], 'FP16')}]"
    text = kernel({"x": tensor([32, 32], "FP16")}, body, results)
    graph = optimize(text, verify=True).functions[0].account.graph
    loads = [made(node) for node in graph.nodes if node.op == "load"]
    assert {t.space for t in loads} == {Mem.Mat, Mem.Vec}
    assert {t.dtype for t in loads} == {FP16}
