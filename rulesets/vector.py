"""Vector ops: elementwise ops, casts, comparisons, fresh tiles."""

from __future__ import annotations

from egglog import String, Vec, eq, i64, ne

from pypto_egg.egraph.language import (
    Index,
    Scalar,
    Tensor,
    at,
    binary,
    cast,
    cols,
    create,
    dtype,
    extents,
    family,
    full,
    lead,
    line,
    lowers_to,
    rows,
    seed_rows,
    unary,
    with_scalar,
)
from pypto_egg.egraph.tile_language import (
    demand,
    realize,
    tile1,
    tile2,
    tile_cast,
    tile_create,
    tile_full,
    tile_set_validshape,
    tile_with_scalar,
    vec,
    vec_need,
)
from pypto_egg.rulesets.patterns import becomes, round_up
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

VECTOR = RuleSet("vector", "elementwise ops, broadcasts, reductions and transposes in Vec")
EXTENTS = RuleSet("extents", "the physical extents that a result can have, from its operands'")


@VECTOR.rule
def unary_in_vec(
    t: Tensor, x: Tensor, op: String, attrs: String, to: String, r: Index, c: Index, k: i64
) -> Body:
    """An elementwise op wants its operand with the extents of its result (C-032)."""
    f = vec(r, c, k)
    return when(
        demand(t, vec(r, c, k)), eq(t).to(unary(op, attrs, x)), at(t, k), eq(to).to(lowers_to(op))
    ).then(demand(x, f), becomes(t, f, tile1(to, attrs, realize(x, f))))


@EXTENTS.rule
def unary_extents(t: Tensor, x: Tensor, op: String, attrs: String, r: Index, c: Index) -> Body:
    """Extents pass through elementwise ops."""
    return when(eq(t).to(unary(op, attrs, x)), extents(x, r, c)).then(extents(t, r, c))


@VECTOR.rule
def with_scalar_in_vec(
    t: Tensor, x: Tensor, s: Scalar, op: String, attrs: String, to: String, r: Index, c: Index,
    k: i64,
) -> Body:  # fmt: skip
    """As a unary op, with a scalar from the scalar unit."""
    f = vec(r, c, k)
    return when(
        demand(t, vec(r, c, k)), eq(t).to(with_scalar(op, attrs, x, s)), at(t, k),
        eq(to).to(lowers_to(op)),
    ).then(demand(x, f), becomes(t, f, tile_with_scalar(to, attrs, realize(x, f), s)))  # fmt: skip


@EXTENTS.rule
def with_scalar_extents(
    t: Tensor, x: Tensor, s: Scalar, op: String, attrs: String, r: Index, c: Index
) -> Body:
    """Extents pass through elementwise ops."""
    return when(eq(t).to(with_scalar(op, attrs, x, s)), extents(x, r, c)).then(extents(t, r, c))


@VECTOR.rule
def cast_in_vec(t: Tensor, x: Tensor, d: String, mode: String, r: Index, c: i64, k: i64) -> Body:
    """A conversion on the vector unit; rows are whole blocks in both element widths."""
    f = vec(r, Index(c), k)
    return when(
        demand(t, f), eq(t).to(cast(x, d, mode)), at(t, k), eq(c % line(d)).to(i64(0))
    ).then(demand(x, f), becomes(t, f, tile_cast(realize(x, f), d, mode)))


@VECTOR.rule
def cast_of_a_column_in_vec(t: Tensor, x: Tensor, d: String, mode: String, r: i64, k: i64) -> Body:
    """As above for [M, 1], which is column-major."""
    f = vec(Index(r), Index(1), k)
    return when(
        demand(t, f), eq(t).to(cast(x, d, mode)), at(t, k), eq(r % line(d)).to(i64(0))
    ).then(demand(x, f), becomes(t, f, tile_cast(realize(x, f), d, mode)))


@VECTOR.rule
def cast_of_dynamic_columns_in_vec(
    t: Tensor, x: Tensor, d: String, mode: String, r: Index, s: String, k: i64
) -> Body:
    """Dynamic extents are not checked (C-170)."""
    f = vec(r, Index.sym(s), k)
    return when(demand(t, f), eq(t).to(cast(x, d, mode)), at(t, k)).then(
        demand(x, f), becomes(t, f, tile_cast(realize(x, f), d, mode))
    )


@EXTENTS.rule
def cast_extents(t: Tensor, x: Tensor, d: String, mode: String, r: Index, c: i64, w: i64) -> Body:
    """Rows must be whole blocks in the new element width as well."""
    return when(
        eq(t).to(cast(x, d, mode)), extents(x, r, Index(c)), ne(c).to(i64(1)), eq(w).to(line(d))
    ).then(extents(t, r, Index(round_up(c, w))))


@EXTENTS.rule
def cast_extents_of_a_column(t: Tensor, x: Tensor, d: String, mode: String, r: i64, w: i64) -> Body:
    """As above for [M, 1], which is column-major."""
    return when(eq(t).to(cast(x, d, mode)), extents(x, Index(r), Index(1)), eq(w).to(line(d))).then(
        extents(t, Index(round_up(r, w)), Index(1))
    )


@EXTENTS.rule
def cast_extents_of_dynamic_columns(
    t: Tensor, x: Tensor, d: String, mode: String, r: Index, s: String
) -> Body:
    """Dynamic extents are not rounded (C-170)."""
    return when(eq(t).to(cast(x, d, mode)), extents(x, r, Index.sym(s))).then(
        extents(t, r, Index.sym(s))
    )


@VECTOR.rule
def binary_in_vec(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, to: String, r: Index, c: Index,
    k: i64,
) -> Body:  # fmt: skip
    """Both operands have the result's shape."""
    f = vec(r, c, k)
    return when(
        demand(t, vec(r, c, k)), eq(t).to(binary(op, attrs, x, y)), at(t, k),
        eq(to).to(lowers_to(op)), eq(family(op)).to(String("binary")),
        eq(rows(x)).to(rows(y)), eq(cols(x)).to(cols(y)), eq(lead(x)).to(lead(y)),
    ).then(
        demand(x, f), demand(y, f), becomes(t, f, tile2(to, attrs, realize(x, f), realize(y, f)))
    )  # fmt: skip


@EXTENTS.rule
def binary_extents_from_the_left(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, r: Index, c: Index
) -> Body:
    """Whatever one operand offers, the other may be able to follow."""
    return when(
        eq(t).to(binary(op, attrs, x, y)), eq(family(op)).to(String("binary")), extents(x, r, c),
        eq(rows(x)).to(rows(t)), eq(cols(x)).to(cols(t)),
    ).then(extents(t, r, c))  # fmt: skip


@EXTENTS.rule
def binary_extents_from_the_right(
    t: Tensor, x: Tensor, y: Tensor, op: String, attrs: String, r: Index, c: Index
) -> Body:
    """As from the left."""
    return when(
        eq(t).to(binary(op, attrs, x, y)), eq(family(op)).to(String("binary")), extents(y, r, c),
        eq(rows(y)).to(rows(t)), eq(cols(y)).to(cols(t)),
    ).then(extents(t, r, c))  # fmt: skip


@VECTOR.rule
def comparison_in_vec(
    t: Tensor, x: Tensor, y: Tensor, attrs: String, r: Index, c: Index, k: i64
) -> Body:
    """A comparison makes a mask, which selects ones and zeros (op conversion table, cmp)."""
    f = vec(r, c, k)
    return when(
        demand(t, f), eq(t).to(binary("tensor.cmp", attrs, x, y)), at(t, k),
        eq(rows(x)).to(rows(y)), eq(cols(x)).to(cols(y)), eq(lead(x)).to(lead(y)),
    ).then(
        demand(x, f), demand(y, f),
        becomes(t, f, tile2("tile.cmp", attrs, realize(x, f), realize(y, f))),
    )  # fmt: skip


@EXTENTS.rule
def comparison_extents(t: Tensor, x: Tensor, y: Tensor, attrs: String, r: Index, c: Index) -> Body:
    """Extents pass through elementwise ops."""
    return when(eq(t).to(binary("tensor.cmp", attrs, x, y)), extents(x, r, c)).then(
        extents(t, r, c)
    )


@VECTOR.rule
def concatenation_in_vec(t: Tensor, x: Tensor, y: Tensor, r: Index, k: i64) -> Body:
    """The columns of unpadded tiles follow each other."""
    f, left, right = vec(r, cols(t), k), vec(r, cols(x), k), vec(r, cols(y), k)
    return when(demand(t, f), eq(t).to(binary("tensor.concat", "", x, y)), at(t, k)).then(
        demand(x, left), demand(y, right),
        becomes(t, f, tile2("tile.concat", "", realize(x, left), realize(y, right))),
    )  # fmt: skip


@EXTENTS.rule
def concatenation_extents(t: Tensor, x: Tensor, y: Tensor, r: Index, c: Index) -> Body:
    """Rows as the left part offers them, columns as the program gave them."""
    return when(eq(t).to(binary("tensor.concat", "", x, y)), extents(x, r, c)).then(
        extents(t, r, cols(t))
    )


@VECTOR.rule
def fillpad_in_vec(t: Tensor, x: Tensor, attrs: String, r: Index, c: Index, k: i64) -> Body:
    """What is not valid of the tile is filled, and the tensor's own extents become valid."""
    f = vec(r, c, k)
    filled = tile1("tile.fillpad", attrs, realize(x, f))
    return when(demand(t, f), eq(t).to(unary("tensor.fillpad", attrs, x)), at(t, k)).then(
        demand(x, f), becomes(t, f, tile_set_validshape(filled, rows(t), cols(t)))
    )


@VECTOR.rule
def create_in_vec(
    t: Tensor, key: i64, r: Index, c: Index, k: i64, s: Vec[Index], d: String
) -> Body:
    """A buffer of undefined content."""
    return when(
        vec_need(t, r, c, k), eq(t).to(create(key)), at(t, k), eq(s).to(lead(t)), eq(d).to(dtype(t))
    ).then(
        becomes(
            t, vec(r, c, k),
            tile_create(key, s.append(Vec(r, c)), seed_rows(t), cols(t), d, "Vec", k),
        )
    )  # fmt: skip


@VECTOR.rule
def full_in_vec(
    t: Tensor, v: Scalar, s: Vec[Index], d: String, r: Index, c: Index, k: i64, u: Vec[Index]
) -> Body:
    """A tile filled with a constant."""
    return when(vec_need(t, r, c, k), eq(t).to(full(v, s, d)), at(t, k), eq(u).to(lead(t))).then(
        becomes(t, vec(r, c, k), tile_full(v, u.append(Vec(r, c)), s, seed_rows(t), d, k))
    )
