"""`k_best`: lowerings of a program in the order of their cycles."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from kernels import executed, function, program, tensor

import pypto_egg
from pypto_egg.errors import OptionError
from pypto_egg.extract import InOrder
from pypto_egg.text import print_function
from pypto_egg.trial import try_selection

KERNELS = Path(__file__).parents[2] / "bench" / "kernels"
LEAST_BOXES = ["wider-boxes"]
ROUNDED = 3


def enumerated(lowering: pypto_egg.Lowering) -> list[float]:
    """Cycles of every different kernel of a lowered function that fits, ascending."""
    (report,) = lowering.functions
    a = report.account
    cycles = {}
    for selection in InOrder(a.priced.problem):
        trial = try_selection(a.function, a.skeleton, a.graph, a.priced, selection.choice, a.target)
        if trial.fits:
            text = print_function(trial.emitted.function)
            cycles.setdefault(text, round(a.cycles(selection.choice), ROUNDED))
    return sorted(cycles.values())


@pytest.mark.parametrize("kernel", ["bias_matmul", "chained_product"])
def test_all_lowerings_come_in_the_order_of_their_cycles(kernel: str) -> None:
    path = KERNELS / f"{kernel}.py"
    best = pypto_egg.optimize(path, without_rules=LEAST_BOXES, verify=False)
    expected = enumerated(best)
    found = pypto_egg.k_best(path, 40, without_rules=LEAST_BOXES, verify=True)
    assert len(expected) > 1
    assert [round(one.cycles, ROUNDED) for one in found] == expected[:40]
    assert len({executed(one).text for one in found}) == len(found)
    assert found[0].text == best.text
    for one in found:
        assert one.baseline is not None
        assert one.cost.total == pytest.approx(one.cycles)


@pytest.mark.parametrize("model", ["mte2_mad", "pypto_l0", "roofline"])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_first_is_what_optimize_takes(target: str, model: str) -> None:
    path = KERNELS / "chained_product.py"
    found = pypto_egg.k_best(path, 4, target=target, cost_model=model, verify=False)
    best = pypto_egg.optimize(path, target=target, cost_model=model, verify=False)
    assert found[0].text == best.text
    cycles = [one.cycles for one in found]
    assert cycles == pytest.approx(sorted(cycles))
    assert len({one.text for one in found}) == len(found) == 4


def test_of_two_functions_all_pairs_are_ranked_together() -> None:
    def linear(name: str, n: int) -> str:
        params = {
            "x": tensor([16, 64], "FP32"), "w": tensor([64, n], "FP32"),
            "b": tensor([1, n], "FP32"),
        }  # fmt: skip
        body = "p = pl.matmul(x, w)\ny = pl.col_expand_add(p, b)\nreturn y"
        return function(params, body, tensor([16, n], "FP32"), name)

    def cycles(*functions: str) -> list[float]:
        text = program(*functions)
        found = pypto_egg.k_best(text, 99, without_rules=LEAST_BOXES, verify=True)
        return [round(executed(one).cycles, ROUNDED) for one in found]

    first, second = linear("first", 64), linear("second", 128)
    pairs = product(cycles(first), cycles(second))
    assert cycles(first, second) == pytest.approx(sorted(a + b for a, b in pairs), abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"k": 0}, "whole number above 0"),
        ({"k": True}, "whole number above 0"),
        ({"k": 2, "nz": "pack"}, "nz='keep'"),
        ({"k": 2, "cost_model": "schedule"}, "simulates whole kernels"),
    ],
)
def test_what_cannot_be_ranked_is_an_error(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        pypto_egg.k_best(KERNELS / "bias_matmul.py", **arguments)
