"""The rulesets and their rules in words."""

from __future__ import annotations

from collections.abc import Sequence

from pypto_egg.errors import OptionError
from pypto_egg.rulesets.catalogue import (
    ALL,
    ALTERNATIVES,
    LOWERING,
    OPT_IN,
    SCHEDULED,
    SCHEDULED_ALTERNATIVES,
)
from pypto_egg.rulesets.ruleset import RuleSet

_USES = (
    ("the reference lowering, and every other", LOWERING),
    ("alternatives that `optimize` weighs", ALTERNATIVES),
    ("where L0 schedules are chosen", (*SCHEDULED, *SCHEDULED_ALTERNATIVES)),
    ("only with --allow-reassociation", OPT_IN),
)


def rules_text(names: Sequence[str] = ()) -> str:
    """All rulesets with what they are for, or the rules of the named ones with their reasons.

    Raises:
        OptionError: a name is not that of a ruleset.
    """
    if not names:
        return "".join(_overview(title, rulesets) for title, rulesets in _USES)
    for name in names:
        if name not in ALL:
            raise OptionError(
                f"there is no ruleset '{name}'", hint=f"the rulesets are: {', '.join(ALL)}"
            )
    return "\n".join(_rules(ALL[name]) for name in names)


def _overview(title: str, rulesets: tuple[RuleSet, ...]) -> str:
    lines = [f"{title}:"]
    lines += [f"  {r.name:<16} {len(r.rules):>3} rules  {r.why}" for r in rulesets]
    return "\n".join(lines) + "\n"


def _rules(ruleset: RuleSet) -> str:
    lines = [f"{ruleset.name}: {ruleset.why}"]
    for rule in ruleset.rules:
        lines += [f"  {rule.name}", f"      {' '.join(rule.why.split())}"]
    return "\n".join(lines) + "\n"
