"""Index arithmetic: constants fold, zero is neutral."""

from __future__ import annotations

from egglog import eq, i64, union

from pypto_egg.egraph.language import Index
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

INDEX = RuleSet("index", "constant folding of extents and offsets")


@INDEX.rule
def constants_add(i: Index, a: i64, b: i64) -> Body:
    """a + b of constants is a constant."""
    return when(eq(i).to(Index(a) + Index(b))).then(union(i).with_(Index(a + b)))


@INDEX.rule
def zero_is_neutral(i: Index, j: Index) -> Body:
    """x + 0 = x."""
    return when(eq(i).to(j + Index(0))).then(union(i).with_(j))


@INDEX.rule
def constants_multiply(i: Index, a: i64, b: i64) -> Body:
    """a * b of constants is a constant."""
    return when(eq(i).to(Index(a) * Index(b))).then(union(i).with_(Index(a * b)))
