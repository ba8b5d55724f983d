"""Wrong arguments of `optimize` are errors of ours that say what is wanted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import egglog
import numpy as np
import pytest

import pypto_egg
from pypto_egg.egraph.language import Tensor, unary
from pypto_egg.egraph.saturate import Limits
from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.extract.cost.model import cost_model
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.rulesets.catalogue import ALTERNATIVES, LOWERING

PRODUCT = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(
        self, a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 16], pl.FP32]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        c = pl.matmul(a, b)
        return c
"""


def ruleset(name: str, *rules: str) -> pypto_egg.RuleSet:
    """A ruleset whose rules of these names do nothing new."""

    def rule(t: Tensor, x: Tensor) -> Any:
        """A negation is itself."""
        negated = unary("tensor.neg", "", x)
        return pypto_egg.when(egglog.eq(t).to(negated)).then(egglog.union(t).with_(negated))

    made = pypto_egg.RuleSet(name, "for tests")
    for each in rules:
        made.add(each, rule)
    return made


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rules": "foo"}, "rules is a list of RuleSets, not 'foo'"),
        ({"rules": ["foo"]}, "rules is a list of RuleSets, and holds 'foo'"),
        ({"rules": None}, "rules is a list of RuleSets, not None"),
        ({"rules": ruleset("alone", "one")}, "rules is a list of RuleSets, not a "),
        ({"rules": [egglog.ruleset(name="r")]}, "rules is a list of RuleSets, and holds ruleset("),
        ({"rules": [ruleset("mine", "one", "one")]}, "rule 'one' of ruleset 'mine' is there"),
        (
            {"rules": [ruleset("mine", "one"), ruleset("yours", "one")]},
            "rule 'one' of ruleset 'yours' is there already, in 'mine'",
        ),
        (
            {"rules": [ruleset("mine", LOWERING[0].rules[0].name)]},
            f"is there already, in '{LOWERING[0].name}'",
        ),
        ({"without_rules": "algebra"}, "without_rules is a list of names, not 'algebra'"),
        ({"without_rules": None}, "without_rules is a list of names, not None"),
        ({"without_rules": ["magic"]}, "there is no ruleset 'magic'"),
        ({"target": None}, "target is a name or a Target, not None"),
        ({"target": 3}, "target is a name or a Target, not 3"),
        ({"target": "h100"}, "no target 'h100'"),
        ({"cost_model": pypto_egg.CostModel}, "cost_model is a name or a CostModel, not a"),
        ({"cost_model": 1}, "cost_model is a name or a CostModel, not 1"),
        ({"limits": 3}, "limits is a Limits, not 3"),
        ({"limits": Limits(nodes=0)}, "Limits(nodes=0): it is a whole number above 0"),
        ({"limits": Limits(seconds=-1)}, "Limits(seconds=-1): it is a number above 0"),
        ({"limits": Limits(iterations="a")}, "Limits(iterations='a'): it is a whole number"),
        ({"deadline_seconds": "soon"}, "deadline_seconds is 'soon'; it is a number above 0"),
        ({"deadline_seconds": 0}, "deadline_seconds is 0; it is a number above 0"),
        ({"allow_reassociation": "no"}, "allow_reassociation is True or False, not 'no'"),
        ({"verify": "maybe"}, "verify is True, False or 'auto', not 'maybe'"),
    ],
)
def test_wrong_options_are_told(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError) as caught:
        pypto_egg.optimize(PRODUCT, **options)
    assert words in str(caught.value)


def test_own_rulesets_are_taken() -> None:
    mine = ruleset("mine", "one")
    assert pypto_egg.optimize(PRODUCT, rules=(mine, mine), verify=True).verified


def test_a_ruleset_that_every_lowering_needs_is_named_when_it_is_missed() -> None:
    with pytest.raises(LoweringError) as caught:
        pypto_egg.optimize(PRODUCT, without_rules=["matmul", "algebra"])
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("left out: 'matmul', of which every lowering is made")


def test_all_alternatives_can_be_left_out() -> None:
    names = [each.name for each in ALTERNATIVES]
    lowering = pypto_egg.optimize(PRODUCT, without_rules=names, verify=True)
    assert lowering.verified


@pytest.mark.parametrize("price", [None, 1.0, pypto_egg.CostVector(mte2=float("inf"))])
def test_a_cost_model_that_gives_no_vector_is_named(price: Any) -> None:
    class Odd(pypto_egg.CostModel):
        name = "odd"

        def price(self, op: Any, target: Any) -> Any:
            return price

    with pytest.raises(OptionError, match="cost model 'odd': the price of tile"):
        pypto_egg.optimize(PRODUCT, cost_model=Odd())


@pytest.mark.parametrize(
    ("price", "words"),
    [
        (lambda op: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda op: {}[op.op], "KeyError: 'tile."),
        (lambda op: pypto_egg.CostVector(vector=-5), "a cost of -5 cycles on vector"),
        (lambda op: pypto_egg.CostVector(vector="a"), "TypeError"),
    ],
)
def test_a_cost_model_that_fails_is_named(price: Any, words: str) -> None:
    class Odd(pypto_egg.CostModel):
        name = "odd"

        def price(self, op: Any, target: Any) -> Any:
            return price(op)

    with pytest.raises(OptionError) as caught:
        pypto_egg.optimize(PRODUCT, cost_model=Odd())
    assert caught.value.message.startswith("cost model 'odd' gives no price for tile.")
    assert words in caught.value.message
    assert caught.value.__cause__ is not None


def test_an_exception_in_a_cost_model_of_ours_is_not_the_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = cost_model("roofline")
    monkeypatch.setattr(type(model), "price", lambda self, op, target: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pypto_egg.optimize(PRODUCT, cost_model=model)


SCHEDULE_PRICES: dict[str, tuple[Any, str]] = {
    "an exception": (lambda n: 1 / 0, "ZeroDivisionError: division by zero"),
    "rows of unequal length": (lambda n: [[1.0], [1.0, 2.0]], "gives no prices for schedules"),
    "an array of another shape": (lambda n: np.zeros((n, 3)), "of shape"),
    "no numbers": (lambda n: np.full((n, 7), "a"), "that are no cycles"),
    "complex numbers": (lambda n: np.full((n, 7), 1j), "that are no cycles"),
    "NaN": (lambda n: np.full((n, 7), np.nan), "that are no cycles"),
    "cycles below 0": (lambda n: np.full((n, 7), -1), "that are no cycles"),
}


@pytest.mark.parametrize("case", SCHEDULE_PRICES)
def test_a_cost_model_that_gives_no_prices_for_schedules_is_named(case: str) -> None:
    prices, words = SCHEDULE_PRICES[case]

    class Odd(Mte2Mad):
        name = "odd"

        def price_schedules(self, product: Any, among: Any, target: Any) -> Any:
            return prices(len(among))

    with pytest.raises(OptionError, match="cost model 'odd'") as caught:
        pypto_egg.optimize(PRODUCT, cost_model=Odd())
    assert words in caught.value.message


def test_prices_may_be_lists_and_numbers_of_numpy() -> None:
    class Odd(Mte2Mad):
        name = "odd"

        def price(self, op: Any, target: Any) -> Any:
            priced = super().price(op, target)
            return replace(priced, mte2=np.float32(priced.mte2), cube=np.int64(priced.cube))

        def price_schedules(self, product: Any, among: Any, target: Any) -> Any:
            return [[1] * 7 for _ in among]

    lowering = pypto_egg.optimize(PRODUCT, cost_model=Odd())
    assert json.loads(lowering.to_json())["cycles"] == lowering.cycles


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ({"objective": "fastest"}, "its objective is 'fastest'"),
        ({"objective": "bottleneck", "not_overlapped": ("mte9",)}, "not_overlapped names 'mte9'"),
    ],
)
def test_a_cost_model_that_states_what_no_model_can_be(statement: Any, words: str) -> None:
    odd = type("Odd", (Mte2Mad,), {"name": "odd", **statement})
    with pytest.raises(OptionError, match=words):
        pypto_egg.optimize(PRODUCT, cost_model=odd())
