"""The arguments of `optimize` and `lower`, checked: a wrong one is an OptionError of any type."""

from __future__ import annotations

from collections.abc import Iterable

from pypto_egg.egraph.saturate import Limits
from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.extract.cost.model import CostModel
from pypto_egg.extract.cost.model import cost_model as find_cost_model
from pypto_egg.rulesets.catalogue import ALL, LOWERING
from pypto_egg.rulesets.ruleset import RuleSet
from pypto_egg.target.target import Target, load_target

_OWN_RULES = "state the rules in a RuleSet and pass rules=[THE_RULESET]"


def checked_target(target: object) -> Target:
    """The target of a name, or the Target itself."""
    if isinstance(target, str):
        return load_target(target)
    if isinstance(target, Target):
        return target
    raise OptionError(f"target is a name or a Target, not {_kind(target)}")


def checked_cost_model(model: object) -> CostModel:
    """The cost model of a name, or the instance itself."""
    if isinstance(model, str | CostModel):
        return find_cost_model(model)
    hint = None
    if isinstance(model, type) and issubclass(model, CostModel):
        hint = f"pass an instance, {model.__name__}(), or its name"
    raise OptionError(f"cost_model is a name or a CostModel, not {_kind(model)}", hint=hint)


def checked_rules(rules: object) -> tuple[RuleSet, ...]:
    """The rulesets of a list; the names of their rules are unique, among ours too."""
    if isinstance(rules, str) or not isinstance(rules, Iterable):
        raise OptionError(f"rules is a list of RuleSets, not {_kind(rules)}", hint=_OWN_RULES)
    found = tuple({id(ruleset): ruleset for ruleset in rules}.values())
    for ruleset in found:
        if not isinstance(ruleset, RuleSet):
            raise OptionError(
                f"rules is a list of RuleSets, and holds {_kind(ruleset)}", hint=_OWN_RULES
            )
    _check_names(found)
    return found


def _check_names(given: Iterable[RuleSet]) -> None:
    owner = {rule.name: ruleset for ruleset in ALL.values() for rule in ruleset.rules}
    for ruleset in given:
        for rule in ruleset.rules:
            other = owner.setdefault(rule.name, ruleset)
            if other is not ruleset or [r.name for r in ruleset.rules].count(rule.name) > 1:
                raise OptionError(
                    f"rule '{rule.name}' of ruleset '{ruleset.name}' is there already, in "
                    f"'{other.name}'",
                    hint="give its function another name",
                )


def checked_names(names: object) -> tuple[str, ...]:
    """The names of rulesets to leave out."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise OptionError(
            f"without_rules is a list of names, not {_kind(names)}",
            hint=f"without_rules=[{names!r}]" if isinstance(names, str) else None,
        )
    return tuple(names)


def checked_limits(limits: object) -> Limits:
    """The limits, or the usual ones for None."""
    if limits is None:
        return Limits()
    if not isinstance(limits, Limits):
        raise OptionError(f"limits is a Limits, not {_kind(limits)}")
    for name in ("nodes", "iterations", "seconds"):
        value = getattr(limits, name)
        numbers = int | float if name == "seconds" else int
        if isinstance(value, bool) or not isinstance(value, numbers) or not value > 0:
            whole = "" if name == "seconds" else "whole "
            raise OptionError(f"Limits({name}={value!r}): it is a {whole}number above 0")
    return limits


def checked_deadline(seconds: object) -> float | None:
    """The seconds, or None for no end."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise OptionError(f"deadline_seconds is {seconds!r}; it is a number above 0, or None")
    return float(seconds)


def checked_switch(name: str, value: object) -> bool:
    """The value of an option that is True or False."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} is True or False, not {_kind(value)}")
    return value


def name_what_is_missing(error: LoweringError, left_out: Iterable[str]) -> None:
    """Say in the hint which of the rulesets that every lowering is made of were left out."""
    base = [ruleset.name for ruleset in LOWERING if ruleset.name in left_out]
    if base:
        names = ", ".join(f"'{name}'" for name in base)
        error.hint = (
            f"left out: {names}, of which every lowering is made; "
            "those under 'alternatives' in `pypto-egg rules` can be left out"
        )


def _kind(value: object) -> str:
    shown = repr(value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return f"{shown} ({kind})" if len(shown) <= 40 else f"a {kind}"
