"""Tile programs from selections: any selection that fits is a right program, not only the best."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernels import both, calls, incore, inout, kernel, out, tensor

from pypto_egg import optimize
from pypto_egg.emit.emit import emit_function
from pypto_egg.emit.hazards import hazards
from pypto_egg.emit.liveness import peaks
from pypto_egg.extract import extract
from pypto_egg.interp import compare, random_inputs
from pypto_egg.interp.run import entry_function
from pypto_egg.ir.stmt import Assign, For, If
from pypto_egg.ir.visit import definitions, free_vars, walk
from pypto_egg.lower_function import try_selection
from pypto_egg.lowering import Lowering
from pypto_egg.target.target import load_target
from pypto_egg.text import parse, print_program
from pypto_egg.verify import verify_program

M = tensor([32, 32], "FP16")
F = tensor([32, 32], "FP32")

PROGRAMS = {
    "product and softmax": kernel(
        {"x": M, "w": M},
        """
        p = pl.matmul(x, w, out_dtype=pl.FP32)
        m = pl.row_max(p)
        d = pl.row_expand_sub(p, m)
        e = pl.exp(d)
        y = pl.cast(e, target_type=pl.FP16, mode="rint")
        z = pl.matmul(y, w, b_trans=True, out_dtype=pl.FP32)
        return z
        """,
        F,
    ),
    "sum of products in a loop": kernel(
        {
            "x": tensor([32, 128], "FP16"),
            "w": tensor([128, 32], "FP16"),
            "o": out([32, 32], "FP32"),
        },
        """
        s0 = pl.create_tensor([32, 32], dtype=pl.FP32)
        for k, (s,) in pl.range(0, 128, 32, init_values=(s0,)):
            xk = x[:, k : k + 32]
            wk = w[k : k + 32, :]
            s1 = pl.matmul_acc(s, xk, wk)
            r = pl.yield_(s1)
        o1 = pl.assemble(o, r, [0, 0])
        return o1
        """,
        F,
    ),
    "loads in a loop": kernel(
        {"x": F, "w": F},
        """
        for i, (s,) in pl.range(4, init_values=(x,)):
            a = pl.add(s, w)
            b = pl.mul(a, w)
            r = pl.yield_(b)
        y = pl.exp(r)
        return y
        """,
        F,
    ),
    "branch": kernel(
        {"x": F, "n": "pl.Scalar[pl.INDEX]"},
        """
        if n == 0:
            a = pl.exp(x)
            r = pl.yield_(a)
        else:
            b = pl.add(x, 1.0)
            r = pl.yield_(b)
        y = pl.mul(r, x)
        return y
        """,
        F,
    ),
    "both orientations": kernel(
        {"x": M},
        """
        g = pl.matmul(x, x, a_trans=True, out_dtype=pl.FP32)
        h = pl.matmul(x, x, b_trans=True, out_dtype=pl.FP32)
        y = pl.sub(g, h)
        return y
        """,
        F,
    ),
}


@pytest.fixture(scope="module")
def lowered() -> dict[str, Lowering]:
    return {name: optimize(text, verify=True) for name, text in PROGRAMS.items()}


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=12)
@given(seed=st.integers(0, 10_000))
def test_any_selection_that_fits_is_a_right_program(name, seed, lowered):
    result = lowered[name]
    (report,) = result.functions
    account = report.account
    problem = account.priced.problem
    rng = random.Random(seed)
    costs = np.array([rng.randint(1, 1000) for _ in range(problem.node_count)], dtype=float)
    selection = extract(replace(problem, node_cost=costs, node_vector=None, pipes=()), "exact")
    trial = try_selection(
        account.function, account.skeleton, account.graph, account.priced, selection.choice,
        account.target,
    )  # fmt: skip
    assume(trial.fits)
    program = result.program.with_functions((trial.emitted.function,))
    verify_program(program, stage="tile")
    assert print_program(parse(print_program(program))) == print_program(program)
    entry = entry_function(result.source)
    inputs = random_inputs(entry, program=result.source)
    found = compare(result.source, program, inputs, function=entry.name)
    assert found.equal, found.where


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_chosen_program_has_room_and_loses_nothing(name, lowered):
    target = load_target("a2a3")
    report = lowered[name].functions[0]
    tile = incore(lowered[name])
    used = peaks(tile)
    assert {space.value: peak.size_bytes for space, peak in used.items()} == report.peak_bytes
    assert all(peak.size_bytes <= target.capacity_bytes(space) for space, peak in used.items())
    assert hazards(tile) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_name_is_given_once_and_every_tile_has_its_node(name, lowered):
    account = lowered[name].functions[0].account
    nodes = {cls: account.priced.nodes[n] for cls, n in account.selection.choice.items()}
    emitted = emit_function(account.function, account.skeleton, account.graph, nodes)
    names = [var.name for var in definitions(emitted.function)]
    assert len(names) == len(set(names))
    chosen = {id(node) for node in nodes.values()}
    assert {id(node) for node in emitted.origin.values()} <= chosen
    assert set(emitted.origin) <= set(definitions(emitted.function))


def test_a_tile_that_two_ops_use_is_made_once():
    text = kernel({"x": F}, "a = pl.exp(x)\nb = pl.abs(a)\ny = pl.add(a, b)\nreturn y", F)
    for result in both(text):
        ops = [call.op for call in calls(incore(result))]
        assert ops.count("tile.load") == 1
        assert ops.count("tile.exp") == 1


def test_a_load_that_no_round_changes_stands_before_the_loop():
    best = optimize(PROGRAMS["loads in a loop"], verify=True)
    tile = incore(best)
    (loop,) = [stmt for stmt in walk(tile.body) if isinstance(stmt, For)]
    before = tile.body[: tile.body.index(loop)]
    loads = [
        s for s in before if isinstance(s, Assign) and getattr(s.value, "op", "") == "tile.load"
    ]
    assert [load.value.args[0].name for load in loads] == ["x", "w"]
    assert all(
        getattr(s.value, "op", "") != "tile.load" for s in loop.body if isinstance(s, Assign)
    )


def test_what_one_arm_accumulates_and_the_other_passes_on():
    text = kernel(
        {"x": M, "w": M, "n": "pl.Scalar[pl.INDEX]"},
        """
        s = pl.matmul(x, w, out_dtype=pl.FP32)
        if n == 0:
            t = pl.matmul_acc(s, x, w)
            r = pl.yield_(t)
        else:
            r = pl.yield_(s)
        return r
        """,
        F,
    )
    for result in both(text):
        assert [call.op for call in calls(incore(result))].count("tile.matmul_acc") == 1


def test_statements_that_are_no_tensor_work_stay_as_they_are():
    text = kernel(
        {"x": inout([32, 32], "FP32"), "n": "pl.Scalar[pl.INDEX]"},
        """
        k = n * 2
        a = x[0:16, :]
        b = pl.exp(a)
        if k > 4:
            x1 = pl.assemble(x, b, [16, 0])
            r = pl.yield_(x1)
        else:
            r = pl.yield_(x)
        return r
        """,
        F,
    )
    for result in both(text):
        tile = incore(result)
        scalar = tile.body[0]
        assert isinstance(scalar, Assign)
        assert scalar.var.name == "k"
        (branch,) = [stmt for stmt in walk(tile.body) if isinstance(stmt, If)]
        assert scalar.var in free_vars(branch.cond)
