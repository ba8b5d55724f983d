"""Saturation: why it stops, what its limits do, and that nothing depends on hash seeds."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from egglog import eq, union
from generate import sample
from kernels import executed, kernel, tensor
from products import accumulation, product

from pypto_egg import lower, optimize
from pypto_egg.egraph.language import Tensor, binary, unary
from pypto_egg.egraph.load import load_function
from pypto_egg.egraph.saturate import Limits, StopReason, session
from pypto_egg.errors import LoweringError
from pypto_egg.rulesets.catalogue import ALTERNATIVES, LOWERING
from pypto_egg.rulesets.ruleset import Body, RuleSet, when
from pypto_egg.target.target import load_target
from pypto_egg.text import parse

HERE = Path(__file__).parent
CHAIN = kernel(
    {"x": tensor([16, 64], "FP32")},
    "\n".join(
        ["v0 = pl.abs(x)", *(f"v{i} = pl.add(v{i - 1}, x)" for i in range(1, 40)), "return v39"]
    ),
    tensor([16, 64], "FP32"),
)
MATMUL = product(100, 100, 64, "FP16", True, False)
PROGRAMS = {
    "chain": CHAIN,
    "product": MATMUL,
    "split-k": accumulation(40, 48, "BF16", False, True, "zero"),
    "branches and loops": sample(7, 7),
    "mixed": sample(21, 7),
}


def saturated(text: str, limits: Limits, clock=None, rules=()):
    source = parse(text)
    (function,) = source.functions
    loaded = load_function(function, source)
    with session(load_target("a2a3"), (*LOWERING, *ALTERNATIVES, *rules)) as egraph:
        egraph.register(loaded.actions)
        return egraph.saturate(limits) if clock is None else egraph.saturate(limits, clock)


@pytest.mark.parametrize("name", PROGRAMS)
def test_saturation_ends_when_nothing_changes(name: str) -> None:
    done = saturated(PROGRAMS[name], Limits())
    assert done.stop is StopReason.SATURATED
    again = saturated(PROGRAMS[name], Limits(iterations=done.iterations))
    assert (again.stop, again.nodes) == (StopReason.SATURATED, done.nodes)
    assert again.matches == done.matches


def test_one_iteration_less_is_the_iteration_limit() -> None:
    done = saturated(CHAIN, Limits())
    short = saturated(CHAIN, Limits(iterations=done.iterations - 1))
    assert short.stop is StopReason.ITERATION_LIMIT
    assert short.iterations == done.iterations - 1
    assert short.nodes <= done.nodes


def test_the_node_limit_stops_soon_after_it_is_passed() -> None:
    done = saturated(CHAIN, Limits())
    short = saturated(CHAIN, Limits(nodes=done.nodes // 2))
    assert short.stop is StopReason.NODE_LIMIT
    assert done.nodes // 2 < short.nodes <= done.nodes
    assert saturated(CHAIN, Limits(nodes=done.nodes)).stop is StopReason.SATURATED


def test_the_time_limit_is_read_from_the_clock() -> None:
    ticks = count()
    short = saturated(CHAIN, Limits(seconds=3), clock=lambda: float(next(ticks)))
    assert short.stop is StopReason.TIME_LIMIT
    assert short.iterations < saturated(CHAIN, Limits()).iterations
    assert short.seconds > 3


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("iterations", [1, 4, 8, 12, 16])
def test_tiny_limits_give_a_kernel_or_a_clear_refusal(name: str, iterations: int) -> None:
    limits = Limits(iterations=iterations)
    try:
        best = optimize(PROGRAMS[name], limits=limits, verify=True)
    except LoweringError as error:
        refusal = error
    else:
        executed(best)
        if best.baseline is not None:
            assert best.cost.total <= best.baseline.cost.total * (1 + 1e-9)
        return
    assert refusal.code == "E405"
    assert f"iteration limit after {iterations} iterations" in refusal.message
    assert refusal.hint is not None
    assert refusal.hint.startswith("raise --iteration-limit")


def test_what_the_reference_still_finds_is_returned() -> None:
    """The reference needs fewer rounds: whatever it lowers, optimize lowers no dearer."""
    for iterations in range(6, 16):
        limits = Limits(iterations=iterations)
        try:
            reference = lower(MATMUL, limits=limits)
        except LoweringError:
            continue
        best = optimize(MATMUL, limits=limits)
        assert best.cost.total <= reference.cost.total * (1 + 1e-9)


def test_functions_do_not_see_each_other() -> None:
    """The rules' e-graph is shared; a function leaves nothing behind in it."""
    before = optimize(CHAIN)
    optimize(MATMUL)
    after = optimize(CHAIN)
    assert before.text == after.text
    assert before.functions[0].saturation.nodes == after.functions[0].saturation.nodes


SCRIPT = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from generate import sample
from products import accumulation, product
from pypto_egg import lower, optimize
from pypto_egg.errors import PyptoEggError
texts = [sample(seed, 7) for seed in (7, 21, 33)]
texts.append(product(100, 100, 64, "FP16", True, False))
texts.append(accumulation(40, 48, "BF16", False, True, "zero"))
for text in texts:
    for make in (lower, optimize):
        for target in ("a2a3", "a5"):
            try:
                result = make(text, target=target, verify=False)
                print(hashlib.sha256(result.text.encode()).hexdigest(), repr(result.cost.total))
                print(result.functions[0].classes, result.functions[0].nodes)
            except PyptoEggError as error:
                print(error)
"""


def run(seed: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(HERE.parent / "lowering")],
        capture_output=True, text=True, env=env, check=True,
    )  # fmt: skip
    return done.stdout


def test_the_same_bytes_whatever_the_hash_seed() -> None:
    first = run("1")
    assert len(first.splitlines()) >= 20
    assert run("4242") == first


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bytes_within_a_process(name: str) -> None:
    texts = {optimize(PROGRAMS[name], verify=False).text for _ in range(2)}
    assert len({hashlib.sha256(text.encode()).hexdigest() for text in texts}) == 1


def doubling() -> RuleSet:
    rules = RuleSet("doubling", "Grows without end.")

    @rules.rule
    def grow(t: Tensor, x: Tensor, y: Tensor) -> Body:
        """Every sum is a sum of two sums."""
        swapped, twice = binary("tensor.add", "", y, x), binary("tensor.add", "", x, x)
        return when(eq(t).to(binary("tensor.add", "", x, y))).then(
            union(t).with_(binary("tensor.add", "", swapped, twice))
        )

    return rules


F = tensor([16, 32], "FP32")
SUM = kernel({"x": F, "y": F}, "z = pl.add(x, y)\nreturn z", F)


@pytest.mark.parametrize("limit", [2_000, 8_000])
def test_the_node_limit_holds_for_rules_that_double(limit: int) -> None:
    """One iteration past the limit at most, which doubles at most."""
    best = optimize(SUM, rules=[doubling()], limits=Limits(nodes=limit), verify=True)
    done = best.functions[0].saturation
    assert done.stop is StopReason.NODE_LIMIT
    assert limit < done.nodes < 3 * limit


def squaring() -> RuleSet:
    rules = RuleSet("squaring", "Grows without end, faster.")

    @rules.rule
    def pair(t: Tensor, x: Tensor, y: Tensor, z: Tensor, w: Tensor) -> Body:
        """Every sum is combined with every negation."""
        total, opposite = binary("tensor.add", "", t, z), binary("tensor.add", "", z, t)
        return when(
            eq(t).to(binary("tensor.add", "", x, y)), eq(z).to(unary("tensor.neg", "", w))
        ).then(unary("tensor.neg", "", total), opposite)

    return rules


def test_saturation_stops_before_an_iteration_that_would_never_end() -> None:
    """3, 6, 86, 16747 matches; the next iteration would make hundreds of millions of nodes."""
    text = kernel({"x": F, "y": F}, "s = pl.add(x, y)\nz = pl.neg(s)\nreturn z", F)
    done = saturated(text, Limits(), rules=[squaring()])
    assert done.stop is StopReason.NODE_LIMIT
    assert done.iterations == 4
    assert done.nodes < Limits().nodes
    best = optimize(text, rules=[squaring()], verify=True)
    assert best.cost.total <= lower(text).cost.total


def test_steady_growth_is_no_reason_to_stop_early() -> None:
    """Doubling from 350 nodes passes the limit by its own number of iterations."""
    best = optimize(SUM, rules=[doubling()], limits=Limits(nodes=40_000), verify=False)
    assert best.functions[0].saturation.nodes > 40_000


def test_a_rule_added_after_the_first_use_of_its_ruleset_counts() -> None:
    rules = RuleSet("late", "Gains a rule.")
    text = kernel({"x": F, "y": F}, "n = pl.neg(y)\nz = pl.add(x, n)\nreturn z", F)
    before = optimize(text, rules=[rules], verify=True)

    @rules.rule
    def adding_the_opposite(t: Tensor, x: Tensor, y: Tensor) -> Body:
        """x + (-y) = x - y."""
        opposite = binary("tensor.add", "", x, unary("tensor.neg", "", y))
        return when(eq(t).to(opposite)).then(union(t).with_(binary("tensor.sub", "", x, y)))

    after = optimize(text, rules=[rules], verify=True)
    assert after.cost.total < before.cost.total


def test_the_reference_stands_in_where_saturation_is_cut_short() -> None:
    reference = lower(SUM)
    limits = Limits(nodes=reference.functions[0].saturation.nodes)
    cut = optimize(SUM, rules=[doubling()], limits=limits, verify=True)
    assert cut.text == reference.text
    assert cut.baseline is not None
    assert cut.cycles == cut.baseline.cycles
