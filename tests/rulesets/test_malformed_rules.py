"""Rules that are none, and rules that are wrong: errors that name the rule and its ruleset."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from egglog import eq, union
from kernels import kernel, tensor

from pypto_egg import RuleSet, optimize, when
from pypto_egg.egraph.language import Tensor, unary
from pypto_egg.errors import InternalError, OptionError

if TYPE_CHECKING:
    from pypto_egg.egraph.tile_language import Form

F = tensor([16, 64], "FP32")
NEGATED = kernel({"x": F}, "t = pl.neg(x)\nreturn t", F)


def neg(x: Tensor) -> Any:
    return unary("tensor.neg", "", x)


def unannotated(t, x):
    """The sorts are missing."""
    return when(eq(t).to(neg(x))).then(union(t).with_(x))


def of_no_sort(t: int, x: Tensor) -> Any:
    """An int is no sort."""
    return when(eq(x).to(neg(x))).then(union(x).with_(x))


def of_an_unknown_sort(t: Form, x: Tensor) -> Any:
    """The sort is there for type checkers only."""
    return when(eq(t).to(neg(x))).then(union(t).with_(x))


def without_reason(t: Tensor, x: Tensor) -> Any:
    return when(eq(t).to(neg(x))).then(union(t).with_(neg(neg(t))))


def without_result(t: Tensor, x: Tensor) -> Any:
    """Nothing is returned."""
    when(eq(t).to(neg(x))).then(union(t).with_(x))


def without_right_side(t: Tensor, x: Tensor) -> Any:
    """Half a rule."""
    return when(eq(t).to(neg(x)))


def without_facts(t: Tensor, x: Tensor) -> Any:
    """True is no fact."""
    return when(True).then(union(t).with_(x))


def without_actions(t: Tensor, x: Tensor) -> Any:
    """A number is no action."""
    return when(eq(t).to(neg(x))).then(3)


def of_a_wrong_argument(t: Tensor, x: Tensor) -> Any:
    """An op's name is a string."""
    return when(eq(t).to(unary(3, "", x))).then(union(t).with_(x))


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (unannotated, "does not say of which sort 't' is"),
        (of_no_sort, "cannot be built: Unexpected type annotation <class 'int'>"),
        (of_an_unknown_sort, "cannot be built: name 'Form' is not defined"),
        (without_reason, "has no docstring"),
        (without_result, "does not return when(...).then(...)"),
        (without_right_side, "does not return when(...).then(...)"),
        (without_facts, "cannot be built: "),
        (without_actions, "cannot be built: "),
        (of_a_wrong_argument, "cannot be built: Cannot convert 3"),
    ],
)
def test_what_states_no_rule_is_refused_where_it_is_added(
    function: Callable[..., Any], fault: str
) -> None:
    mine = RuleSet("mine", "for tests")
    with pytest.raises(OptionError) as caught:
        mine.rule(function)
    name = function.__name__.replace("_", "-")
    assert caught.value.message.startswith(f"rule '{name}' of ruleset 'mine' {fault}")
    assert mine.rules == []


def test_a_variable_of_the_right_side_only() -> None:
    mine = RuleSet("mine", "for tests")

    @mine.rule
    def harmless(t: Tensor, x: Tensor) -> Any:
        """Nothing new."""
        return when(eq(t).to(neg(x))).then(union(t).with_(neg(x)))

    @mine.rule
    def from_nowhere(t: Tensor, x: Tensor, q: Tensor) -> Any:
        """Nothing says what q is."""
        return when(eq(t).to(neg(x))).then(union(t).with_(q))

    with pytest.raises(OptionError, match=r"rule 'from-nowhere' of ruleset 'mine'.*_q"):
        optimize(NEGATED, rules=[mine])


def test_a_rule_that_equates_values_of_different_types_is_blamed() -> None:
    mine = RuleSet("mine", "for tests")

    @mine.rule
    def wrong(t: Tensor, x: Tensor) -> Any:
        """A column is no matrix."""
        return when(eq(t).to(neg(x))).then(union(t).with_(unary("tensor.row_max", "", x)))

    with pytest.raises(OptionError) as caught:
        optimize(NEGATED, rules=[mine])
    for part in ("'t' has tiles of two types", "[16, 64]", "[16, 1]", "a rule of 'mine'"):
        assert part in caught.value.message
    assert isinstance(caught.value.__cause__, InternalError)
