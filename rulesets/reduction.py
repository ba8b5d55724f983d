"""Reductions and transposes in Vec."""

from __future__ import annotations

from egglog import String, eq, i64, ne

from pypto_egg.egraph.language import (
    Index,
    Tensor,
    at,
    cols,
    dtype,
    extents,
    family,
    line,
    lowers_to,
    reduce,
    rows,
    transpose,
)
from pypto_egg.egraph.tile_language import (
    demand,
    realize,
    tile1,
    tile_set_validshape,
    vec,
    vec_need,
)
from pypto_egg.rulesets.patterns import becomes, round_up
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

REDUCTION = RuleSet("reduction", "Reductions and transposes by the vector unit.")


@REDUCTION.rule
def row_reduction_in_vec(
    t: Tensor, x: Tensor, op: String, to: String, r: Index, q: Index, c: Index, k: i64
) -> Body:
    """A row reduction reads whole rows of as many rows as its result has."""
    f = vec(r, c, k)
    return when(
        vec_need(t, r, Index(1), k), eq(t).to(reduce(op, x)), at(t, k), eq(to).to(lowers_to(op)),
        eq(family(op)).to(String("row_reduce")), extents(x, q, c),
    ).then(demand(x, f), becomes(t, vec(r, Index(1), k), tile1(to, "", realize(x, f))))  # fmt: skip


@REDUCTION.rule
def col_reduction_in_vec(
    t: Tensor, x: Tensor, op: String, to: String, r: Index, q: Index, c: Index, k: i64
) -> Body:
    """A column reduction reads whole columns."""
    f = vec(r, c, k)
    return when(
        demand(t, vec(Index(1), c, k)), eq(t).to(reduce(op, x)), at(t, k), eq(to).to(lowers_to(op)),
        eq(family(op)).to(String("col_reduce")), extents(x, r, q),
    ).then(demand(x, f), becomes(t, vec(Index(1), c, k), tile1(to, "", realize(x, f))))  # fmt: skip


@REDUCTION.rule
def row_reduction_extents(t: Tensor, x: Tensor, op: String, r: i64, c: Index, w: i64) -> Body:
    """The [M, 1] result is a whole number of blocks."""
    return when(
        eq(t).to(reduce(op, x)), eq(family(op)).to(String("row_reduce")),
        extents(x, Index(r), c), eq(w).to(line(dtype(t))),
    ).then(extents(t, Index(round_up(r, w)), Index(1)))  # fmt: skip


@REDUCTION.rule
def col_reduction_extents(t: Tensor, x: Tensor, op: String, r: Index, c: Index) -> Body:
    """The columns stay."""
    return when(
        eq(t).to(reduce(op, x)), eq(family(op)).to(String("col_reduce")), extents(x, r, c)
    ).then(extents(t, Index(1), c))


@REDUCTION.rule
def transpose_in_vec(t: Tensor, x: Tensor, r: Index, c: Index, k: i64) -> Body:
    """tile.transpose of the semantic operands; its scratch is made later (C-172, C-174)."""
    f = vec(c, r, k)
    return when(
        vec_need(t, r, c, k), eq(t).to(transpose(x)), at(t, k),
        eq(rows(t)).to(r), eq(cols(t)).to(c),
    ).then(
        demand(x, f), becomes(t, vec(r, c, k), tile1("tile.transpose", "", realize(x, f)))
    )  # fmt: skip


@REDUCTION.rule
def padded_transpose_in_vec(t: Tensor, x: Tensor, r: Index, c: Index, k: i64) -> Body:
    """tile.transpose calls its whole result valid; the true extents are declared again."""
    f = vec(c, r, k)
    return when(vec_need(t, r, c, k), eq(t).to(transpose(x)), at(t, k)).then(
        demand(x, f),
        becomes(
            t, vec(r, c, k),
            tile_set_validshape(tile1("tile.transpose", "", realize(x, f)), rows(t), cols(t)),
        ),
    )  # fmt: skip


@REDUCTION.rule
def transpose_extents(t: Tensor, x: Tensor, r: i64, c: Index, w: i64) -> Body:
    """The rows become columns and must make whole blocks."""
    return when(
        eq(t).to(transpose(x)), extents(x, Index(r), c), eq(w).to(line(dtype(t))),
        ne(cols(t)).to(Index(1)),
    ).then(extents(t, c, Index(round_up(r, w))))  # fmt: skip


@REDUCTION.rule
def transpose_extents_of_one_row(t: Tensor, x: Tensor, r: Index, c: i64, w: i64) -> Body:
    """One row becomes a [M, 1] column, whose rows make whole blocks."""
    return when(
        eq(t).to(transpose(x)), extents(x, r, Index(c)), eq(w).to(line(dtype(t))),
        eq(cols(t)).to(Index(1)),
    ).then(extents(t, Index(round_up(c, w)), Index(1)))  # fmt: skip
