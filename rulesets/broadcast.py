"""Broadcasting binary ops: a [M, 1] or [1, N] operand against [M, N]."""

from __future__ import annotations

from egglog import String, eq, i64, ne, union

from pypto_egg.egraph.language import (
    Index,
    Tensor,
    at,
    binary,
    col_form,
    cols,
    dtype,
    extents,
    family,
    line,
    lowers_to,
    row_form,
    rows,
)
from pypto_egg.egraph.tile_language import demand, realize, tile2, vec
from pypto_egg.rulesets.patterns import becomes, round_up
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

BROADCAST = RuleSet("broadcast", "Narrow operands of binary ops: expand forms, or expanded first.")


@BROADCAST.rule
def column_on_the_right_is_row_expand(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, e: String
) -> Body:
    """A [M, 1] right operand is broadcast along the rows by the op's row_expand form."""
    return when(
        eq(t).to(binary(op, attrs, x, y)), eq(e).to(row_form(op)),
        eq(cols(y)).to(Index(1)), ne(cols(x)).to(Index(1)), eq(rows(x)).to(rows(y)),
    ).then(union(t).with_(binary(e, "", x, y)))  # fmt: skip


@BROADCAST.rule
def row_on_the_right_is_col_expand(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, e: String
) -> Body:
    """A [1, N] right operand is broadcast down the columns by the op's col_expand form."""
    return when(
        eq(t).to(binary(op, attrs, x, y)), eq(e).to(col_form(op)),
        eq(rows(y)).to(Index(1)), ne(rows(x)).to(Index(1)), eq(cols(x)).to(cols(y)),
    ).then(union(t).with_(binary(e, "", x, y)))  # fmt: skip


@BROADCAST.rule
def narrow_left_column_is_expanded_first(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, to: String, r: Index, c: Index,
    k: i64,
) -> Body:  # fmt: skip
    """narrow op wide keeps its order: the [M, 1] operand is spread over the wide one's shape."""
    f, column = vec(r, c, k), vec(r, Index(1), k)
    return when(
        demand(t, vec(r, c, k)), eq(t).to(binary(op, attrs, x, y)), at(t, k),
        eq(family(op)).to(String("binary")), eq(to).to(lowers_to(op)),
        eq(cols(x)).to(Index(1)), ne(cols(y)).to(Index(1)), eq(rows(x)).to(rows(y)),
    ).then(
        demand(x, column), demand(y, f),
        becomes(
            t, f,
            tile2(to, attrs, tile2("tile.row_expand", "", realize(y, f), realize(x, column)),
                  realize(y, f)),
        ),
    )  # fmt: skip


@BROADCAST.rule
def narrow_left_row_is_expanded_first(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, to: String, r: Index, c: Index,
    k: i64,
) -> Body:  # fmt: skip
    """As above for a [1, N] left operand."""
    f, row = vec(r, c, k), vec(Index(1), c, k)
    return when(
        demand(t, vec(r, c, k)), eq(t).to(binary(op, attrs, x, y)), at(t, k),
        eq(family(op)).to(String("binary")), eq(to).to(lowers_to(op)),
        eq(rows(x)).to(Index(1)), ne(rows(y)).to(Index(1)), eq(cols(x)).to(cols(y)),
    ).then(
        demand(x, row), demand(y, f),
        becomes(
            t, f,
            tile2(to, attrs, tile2("tile.col_expand", "", realize(y, f), realize(x, row)),
                  realize(y, f)),
        ),
    )  # fmt: skip


@BROADCAST.rule
def narrow_right_column_is_expanded_first(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, to: String, r: Index, c: Index,
    k: i64,
) -> Body:  # fmt: skip
    """wide op narrow in two steps, for dtypes that the op's row_expand form does not take."""
    f, column = vec(r, c, k), vec(r, Index(1), k)
    return when(
        demand(t, f), eq(t).to(binary(op, attrs, x, y)), at(t, k),
        eq(family(op)).to(String("binary")), eq(to).to(lowers_to(op)),
        eq(cols(y)).to(Index(1)), ne(cols(x)).to(Index(1)), eq(rows(x)).to(rows(y)),
    ).then(
        demand(x, f), demand(y, column),
        becomes(
            t, f,
            tile2(to, attrs, realize(x, f),
                  tile2("tile.row_expand", "", realize(x, f), realize(y, column))),
        ),
    )  # fmt: skip


@BROADCAST.rule
def narrow_right_row_is_expanded_first(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, to: String, r: Index, c: Index,
    k: i64,
) -> Body:  # fmt: skip
    """As above for a [1, N] right operand, and for ops that have no col_expand form."""
    f, row = vec(r, c, k), vec(Index(1), c, k)
    return when(
        demand(t, f), eq(t).to(binary(op, attrs, x, y)), at(t, k),
        eq(family(op)).to(String("binary")), eq(to).to(lowers_to(op)),
        eq(rows(y)).to(Index(1)), ne(rows(x)).to(Index(1)), eq(cols(x)).to(cols(y)),
    ).then(
        demand(x, f), demand(y, row),
        becomes(
            t, f,
            tile2(to, attrs, realize(x, f),
                  tile2("tile.col_expand", "", realize(x, f), realize(y, row))),
        ),
    )  # fmt: skip


@BROADCAST.rule
def narrow_left_column_extents(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, r: i64, c: Index, w: i64
) -> Body:
    """The wide operand's rows must make whole blocks of the [M, 1] one."""
    return when(
        eq(t).to(binary(op, attrs, x, y)), eq(family(op)).to(String("binary")),
        eq(cols(x)).to(Index(1)), ne(cols(y)).to(Index(1)), extents(y, Index(r), c),
        eq(w).to(line(dtype(x))),
    ).then(extents(t, Index(round_up(r, w)), c))  # fmt: skip


@BROADCAST.rule
def row_expand_in_vec(
    t: Tensor, x: Tensor, v: Tensor, op: String, attrs: String, to: String, r: Index, c: Index,
    k: i64,
) -> Body:  # fmt: skip
    """The [M, 1] vector has the matrix' rows."""
    f, column = vec(r, c, k), vec(r, Index(1), k)
    return when(
        demand(t, vec(r, c, k)), eq(t).to(binary(op, attrs, x, v)), at(t, k),
        eq(family(op)).to(String("row_expand")), eq(to).to(lowers_to(op)),
    ).then(
        demand(x, f), demand(v, column),
        becomes(t, f, tile2(to, attrs, realize(x, f), realize(v, column))),
    )  # fmt: skip


@BROADCAST.rule
def col_expand_in_vec(
    t: Tensor, x: Tensor, v: Tensor, op: String, attrs: String, to: String, r: Index, c: Index,
    k: i64,
) -> Body:  # fmt: skip
    """The [1, N] vector has the matrix' columns."""
    f, row = vec(r, c, k), vec(Index(1), c, k)
    return when(
        demand(t, vec(r, c, k)), eq(t).to(binary(op, attrs, x, v)), at(t, k),
        eq(family(op)).to(String("col_expand")), eq(to).to(lowers_to(op)),
    ).then(
        demand(x, f), demand(v, row),
        becomes(t, f, tile2(to, attrs, realize(x, f), realize(v, row))),
    )  # fmt: skip


@BROADCAST.rule
def row_expand_extents(
    t: Tensor, x: Tensor, v: Tensor, op: String, attrs: String, r: i64, c: Index, w: i64
) -> Body:
    """The rows must make whole blocks of the [M, 1] vector."""
    return when(
        eq(t).to(binary(op, attrs, x, v)), eq(family(op)).to(String("row_expand")),
        extents(x, Index(r), c), eq(w).to(line(dtype(v))),
    ).then(extents(t, Index(round_up(r, w)), c))  # fmt: skip


@BROADCAST.rule
def row_expand_extents_of_dynamic_rows(
    t: Tensor, x: Tensor, v: Tensor, op: String, attrs: String, s: String, c: Index
) -> Body:
    """Dynamic extents are not rounded (C-170)."""
    return when(
        eq(t).to(binary(op, attrs, x, v)), eq(family(op)).to(String("row_expand")),
        extents(x, Index.sym(s), c),
    ).then(extents(t, Index.sym(s), c))  # fmt: skip


@BROADCAST.rule
def row_expand_extents_from_the_vector(
    t: Tensor, x: Tensor, v: Tensor, op: String, attrs: String, r: Index, q: Index, c: Index
) -> Body:
    """The matrix may be able to follow the vector's rows."""
    return when(
        eq(t).to(binary(op, attrs, x, v)), eq(family(op)).to(String("row_expand")),
        extents(v, r, Index(1)), extents(x, q, c),
    ).then(extents(t, r, c))  # fmt: skip


@BROADCAST.rule
def col_expand_extents(
    t: Tensor, x: Tensor, v: Tensor, op: String, attrs: String, r: Index, c: Index
) -> Body:
    """Rows are free: the vector has one."""
    return when(
        eq(t).to(binary(op, attrs, x, v)), eq(family(op)).to(String("col_expand")),
        extents(x, r, c),
    ).then(extents(t, r, c))  # fmt: skip
