"""Loops and branches: a demand on a carried value is a demand on what feeds the carry."""

from __future__ import annotations

from egglog import String, eq, i64, set_, union

from pypto_egg.egraph.language import (
    Index,
    Tensor,
    acc_dtype,
    arms,
    at,
    carry,
    create,
    extents,
    iter_arg,
    loop_result,
    phi,
)
from pypto_egg.egraph.tile_language import (
    Form,
    carried,
    demand,
    loop_carry,
    looped,
    merged,
    outer,
    realize,
)
from pypto_egg.rulesets.patterns import becomes
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

CONTROL_FLOW = RuleSet("control-flow", "values carried by loops and merged by branches")


@CONTROL_FLOW.rule
def demand_on_a_loop_result_crosses_the_carry(
    t: Tensor, i: i64, position: i64, p: i64, z: Tensor, y: Tensor, s: String, r: Index, c: Index,
    o: String,
) -> Body:  # fmt: skip
    """Init, iter_arg, yielded value and result of a carry are in one form (C-023, C-038)."""
    before, inside_loop = Form(s, r, c, o, p), Form(s, r, c, o, i)
    return when(
        demand(t, before), eq(t).to(loop_result(i, position)), carry(i, position, p, z, y)
    ).then(
        demand(z, before), demand(y, inside_loop),
        union(loop_carry(i, position, inside_loop)).with_(
            looped(i, position, inside_loop, realize(z, before), realize(y, inside_loop))
        ),
        becomes(t, before, outer(loop_carry(i, position, inside_loop), p)),
    )  # fmt: skip


@CONTROL_FLOW.rule
def demand_on_an_iter_arg_is_one_on_the_loop(
    t: Tensor, i: i64, position: i64, p: i64, z: Tensor, y: Tensor, s: String, r: Index, c: Index,
    o: String,
) -> Body:  # fmt: skip
    """A loop body that wants its iter_arg in a form makes the loop carry that form (C-022)."""
    before, inside_loop = Form(s, r, c, o, p), Form(s, r, c, o, i)
    return when(
        demand(t, inside_loop), eq(t).to(iter_arg(i, position)), carry(i, position, p, z, y)
    ).then(
        demand(loop_result(i, position), before),
        becomes(t, inside_loop, carried(i, position, inside_loop)),
    )  # fmt: skip


@CONTROL_FLOW.rule
def loop_extents_follow_the_yield(
    i: i64, position: i64, p: i64, z: Tensor, y: Tensor, r: Index, c: Index
) -> Body:
    """What the body can yield, the loop can carry."""
    return when(carry(i, position, p, z, y), extents(y, r, c)).then(
        extents(loop_result(i, position), r, c), extents(iter_arg(i, position), r, c)
    )


@CONTROL_FLOW.rule
def loop_extents_follow_the_init(
    i: i64, position: i64, p: i64, z: Tensor, y: Tensor, r: Index, c: Index
) -> Body:
    """What the loop starts from, it can carry."""
    return when(carry(i, position, p, z, y), extents(z, r, c)).then(
        extents(loop_result(i, position), r, c), extents(iter_arg(i, position), r, c)
    )


@CONTROL_FLOW.rule
def carried_accumulators_stay_accumulators(
    i: i64, position: i64, p: i64, z: Tensor, y: Tensor, d: String
) -> Body:
    """A value that the body leaves in L0C can be carried there (C-151)."""
    return when(carry(i, position, p, z, y), eq(d).to(acc_dtype(y))).then(
        set_(acc_dtype(loop_result(i, position))).to(d),
        set_(acc_dtype(iter_arg(i, position))).to(d),
    )


@CONTROL_FLOW.rule
def seed_of_a_carried_accumulator_is_one(
    i: i64, position: i64, p: i64, z: Tensor, y: Tensor, key: i64, d: String
) -> Body:
    """The buffer that a split-K loop starts from is created in L0C (C-147, C-151)."""
    return when(carry(i, position, p, z, y), eq(z).to(create(key)), eq(d).to(acc_dtype(y))).then(
        set_(acc_dtype(z)).to(d)
    )


@CONTROL_FLOW.rule
def demand_on_a_phi_is_one_on_both_arms(
    t: Tensor, b: i64, position: i64, i: i64, e: i64, y: Tensor, z: Tensor, s: String, r: Index,
    c: Index, o: String, k: i64,
) -> Body:  # fmt: skip
    """Both arms yield the same form (C-039)."""
    f, then, orelse = Form(s, r, c, o, k), Form(s, r, c, o, i), Form(s, r, c, o, e)
    return when(
        demand(t, f), eq(t).to(phi(b, position)), arms(b, position, i, e, y, z), at(t, k)
    ).then(
        demand(y, then), demand(z, orelse),
        becomes(t, f, merged(b, position, realize(y, then), realize(z, orelse))),
    )  # fmt: skip


@CONTROL_FLOW.rule
def phi_extents_follow_the_then_arm(
    b: i64, position: i64, i: i64, e: i64, y: Tensor, z: Tensor, r: Index, c: Index
) -> Body:
    """What one arm can yield, the other may be able to."""
    return when(arms(b, position, i, e, y, z), extents(y, r, c)).then(
        extents(phi(b, position), r, c)
    )


@CONTROL_FLOW.rule
def phi_extents_follow_the_else_arm(
    b: i64, position: i64, i: i64, e: i64, y: Tensor, z: Tensor, r: Index, c: Index
) -> Body:
    """As from the then arm."""
    return when(arms(b, position, i, e, y, z), extents(z, r, c)).then(
        extents(phi(b, position), r, c)
    )


@CONTROL_FLOW.rule
def accumulators_pass_branches(
    b: i64, position: i64, i: i64, e: i64, y: Tensor, z: Tensor, d: String
) -> Body:
    """If both arms can leave the value in L0C, so can the branch."""
    return when(arms(b, position, i, e, y, z), eq(d).to(acc_dtype(y)), eq(d).to(acc_dtype(z))).then(
        set_(acc_dtype(phi(b, position))).to(d)
    )
