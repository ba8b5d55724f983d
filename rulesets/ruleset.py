"""Named rules with a reason, grouped into rulesets that can be switched off by name."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, field

import egglog

from pypto_egg.errors import OptionError

Fact = typing.Any
Action = typing.Any


@dataclass(frozen=True)
class Body:
    """What a rule needs and what it then asserts."""

    facts: tuple[Fact, ...]
    actions: tuple[Action, ...] = ()

    def then(self, *actions: Action) -> Body:
        return Body(self.facts, actions)


def when(*facts: Fact) -> Body:
    """The left side of a rule; `.then(...)` gives it its right side."""
    return Body(facts)


@dataclass(frozen=True)
class Rule:
    """One rewrite rule: a kebab-case name, the reason it holds, and the egglog rule."""

    name: str
    why: str
    egglog_rule: typing.Any


@dataclass
class RuleSet:
    """A named group of rules.

    Args:
        name: what reports print and what switches the group off.
        why: one sentence on what the group is for.
        changes_rounding: True for algebra that holds over the reals but not in floating point;
            such a group runs only when the caller allows it.
    """

    name: str
    why: str
    changes_rounding: bool = False
    rules: list[Rule] = field(default_factory=list)

    def rule(self, function: Callable[..., Body]) -> Callable[..., Body]:
        """Register the function as a rule that bears the function's name."""
        self.add(function.__name__.replace("_", "-"), function)
        return function

    def add(self, name: str, function: Callable[..., Body]) -> None:
        """Register `function` as the rule `name`.

        Its parameters, annotated with sorts, are the rule's variables; its docstring is the
        reason why the rule holds.

        Raises:
            OptionError: the function does not state a rule.
        """
        why = inspect.getdoc(function)
        if not why:
            raise self._refused(name, "has no docstring, which says why it holds")
        try:
            body = function(**self._variables(name, function))
            if not isinstance(body, Body) or not body.actions:
                raise self._refused(name, "does not return when(...).then(...)")
            rule = egglog.rule(*body.facts, name=name).then(*body.actions)
        except (NameError, TypeError, egglog.ConvertError) as error:
            raise self._refused(name, f"cannot be built: {error}") from error
        self.rules.append(Rule(name, why, rule))

    def _variables(self, name: str, function: Callable[..., Body]) -> dict[str, typing.Any]:
        hints = typing.get_type_hints(function)
        for parameter in inspect.signature(function).parameters:
            if parameter not in hints:
                raise self._refused(name, f"does not say of which sort '{parameter}' is")
        hints.pop("return", None)
        return {variable: egglog.var(variable, sort) for variable, sort in hints.items()}

    def _refused(self, rule: str, fault: str) -> OptionError:
        return OptionError(
            f"rule '{rule}' of ruleset '{self.name}' {fault}",
            hint="a rule is a function of annotated variables, def f(t: Tensor, x: Tensor), with a "
            "docstring, that returns when(FACTS).then(ACTIONS)",
        )
