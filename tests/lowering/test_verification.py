"""What verify="auto" leaves out, and that nothing else keeps a lowering from its user."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kernels import function, kernel, program, tensor

from pypto_egg import Lowering, lower, optimize
from pypto_egg.equivalence import verified
from pypto_egg.errors import InterpretError, VerificationError, WorkLimitError
from pypto_egg.interp import random_inputs, run
from pypto_egg.interp.machine import STEP_COST
from pypto_egg.text import parse

F = tensor([1, 8], "FP32")
INDEX = "pl.Scalar[pl.INDEX]"
EXP = function({"x": F}, "y = pl.exp(x)\nreturn y", F, "k")
NEG = function({"x": F}, "y = pl.neg(x)\nreturn y", F, "k2")
MAIN = function({"x": F}, "y = self.k(x)\nreturn y", F, "main", "Orchestration")
MANY_TRIPS = """
for i, (c,) in pl.range(n * 100000000, init_values=(a,)):
    b = pl.neg(c)
    r = pl.yield_(b)
return r"""
NEVER_ENDS = """
for (c,) in pl.while_(init_values=(a,)):
    pl.cond(n < 100)
    b = pl.neg(c)
    r = pl.yield_(b)
return r"""


def both_auto(text: str) -> tuple[Lowering, Lowering]:
    return lower(text), optimize(text)


@pytest.mark.parametrize("others", [(NEG,), (NEG, MAIN)], ids=["no caller", "one called"])
def test_every_function_that_nobody_calls_is_run(others: tuple[str, ...]) -> None:
    for result in both_auto(program(EXP, *others)):
        assert result.verification == "executed"
        assert result.verified
        assert result.comparison is not None
        assert result.comparison.compared == 16


@pytest.mark.parametrize("wrong", ["k", "k2"])
def test_a_wrong_function_among_several_is_found(wrong: str) -> None:
    right = lower(program(EXP, NEG), verify=False)
    other = lower(program(EXP.replace("exp", "abs"), NEG.replace("neg", "abs")), verify=False)
    functions = tuple(
        (other if f.name == wrong else right).program.function(f.name)
        for f in right.program.functions
    )
    bad = replace(right, program=right.program.with_functions(functions))
    for verify in (True, "auto"):
        with pytest.raises(VerificationError, match=f"of '{wrong}'"):
            verified(bad, verify)


def test_elements_that_the_interpreter_cannot_hold() -> None:
    text = kernel({"x": tensor([16, 64], "HF8")}, "return x", tensor([16, 64], "HF8"))
    for result in both_auto(text):
        assert result.verification.startswith("left out: ")
        assert "HF8" in result.verification
        assert not result.verified
    with pytest.raises(InterpretError, match="HF8"):
        lower(text, verify=True)


def test_what_is_left_out_of_several_is_named() -> None:
    narrow = tensor([16, 64], "HF8")
    text = program(EXP, function({"x": narrow}, "return x", narrow, "k2"))
    for result in both_auto(text):
        assert result.verification.startswith("left out: 'k2': ")
        assert not result.verified


@pytest.mark.parametrize("body", [MANY_TRIPS, NEVER_ENDS], ids=["for", "while"])
def test_a_run_that_turns_out_long_is_given_up(body: str) -> None:
    text = kernel({"a": F, "n": INDEX}, body, F)
    for result in both_auto(text):
        assert result.verification.startswith("left out: ")
        assert "budget" in result.verification


def test_inputs_that_no_machine_can_hold_are_not_made() -> None:
    body = "w = pl.slice(x, [1, 64], [0, 0])\ny = pl.exp(w)\nreturn y"
    text = kernel({"x": tensor([1 << 30, 1 << 20], "FP32")}, body, tensor([1, 64], "FP32"))
    for result in both_auto(text):
        assert result.verification == "left out: about 2.3e+15 operations"


def test_a_tile_program_that_cannot_run_where_its_source_does_is_an_error() -> None:
    result = lower(program(EXP), verify=False)
    broken = replace(result.program.functions[0], external_source="k.cpp")
    bad = replace(result, program=result.program.with_functions((broken,)))
    for verify in (True, "auto"):
        with pytest.raises(InterpretError, match=r"k\.cpp"):
            verified(bad, verify)


def test_a_budget_counts_steps_and_elements() -> None:
    body = """
for i, (c,) in pl.range(10, init_values=(x,)):
    b = pl.neg(c)
    r = pl.yield_(b)
return r"""
    source = parse(kernel({"x": F}, body, F))
    inputs = random_inputs(source.functions[0])
    needed = STEP_COST + 10 * (2 * STEP_COST + 8)  # the function; ten trips with an operator each
    free = run(source, inputs)
    assert (run(source, inputs, budget=needed).returns[0] == free.returns[0]).all()
    with pytest.raises(WorkLimitError, match=f"budget of {needed - 1}"):
        run(source, inputs, budget=needed - 1)


def test_a_budget_ends_a_loop_without_operators() -> None:
    body = "for i in pl.range(n * 1000000000):\n    pass\nreturn x"
    source = parse(kernel({"x": F, "n": INDEX}, body, F))
    with pytest.raises(WorkLimitError):
        run(source, random_inputs(source.functions[0]), budget=10 * STEP_COST)
