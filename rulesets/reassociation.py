"""Identities that hold over the reals but change rounding; off unless the caller allows them."""

from __future__ import annotations

from egglog import String, eq, i64, set_, union

from pypto_egg.egraph.language import Tensor, acc_dtype, at, binary, cast, drains, dtype, unary
from pypto_egg.egraph.tile_language import acc, demand, realize
from pypto_egg.rulesets.patterns import becomes
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

REASSOCIATION = RuleSet(
    "reassociation", "algebra over the reals that rounds differently", changes_rounding=True
)


@REASSOCIATION.rule
def product_of_reciprocal_is_a_quotient(t: Tensor, x: Tensor, y: Tensor) -> Body:
    """x * (1 / y) = x / y: one rounding instead of two."""
    recip = unary("tensor.recip", "", y)
    return when(eq(t).to(binary("tensor.mul", "", x, recip))).then(
        union(t).with_(binary("tensor.div", "", x, y))
    )


@REASSOCIATION.rule
def reciprocal_of_a_square_root(t: Tensor, x: Tensor) -> Body:
    """1 / sqrt(x) = rsqrt(x)."""
    return when(eq(t).to(unary("tensor.recip", "", unary("tensor.sqrt", "", x)))).then(
        union(t).with_(unary("tensor.rsqrt", "", x))
    )


@REASSOCIATION.rule
def any_nearest_cast_is_the_drain(t: Tensor, x: Tensor, d: String, a: String) -> Body:
    """FIXPIPE rounds ties to even; mode 'round' rounds them away from zero."""
    return when(
        eq(t).to(cast(x, d, "round")), eq(a).to(acc_dtype(x)), eq(a).to(dtype(x)), drains(a, d)
    ).then(set_(acc_dtype(t)).to(a))


@REASSOCIATION.rule
def nearest_cast_drained_is_the_accumulator(
    t: Tensor, x: Tensor, d: String, a: String, m: i64, n: i64, k: i64
) -> Body:
    """The accumulator holds the unrounded value of both."""
    return when(
        demand(t, acc(m, n, k)), eq(t).to(cast(x, d, "round")), eq(a).to(acc_dtype(x)),
        eq(a).to(dtype(x)), drains(a, d), at(t, k),
    ).then(demand(x, acc(m, n, k)), becomes(t, acc(m, n, k), realize(x, acc(m, n, k))))  # fmt: skip
