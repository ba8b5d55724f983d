"""Views of values on chip and stores into them: slice, reshape, set_validshape, assemble, write.

Views of global memory never become tile ops: the loader turns them into the window of a load
(C-016, C-020), so a demand on the view is a demand on the load.
"""

from __future__ import annotations

from egglog import Vec, eq, i64

from pypto_egg.egraph.language import (
    Index,
    Scalar,
    Tensor,
    assemble,
    at,
    batch,
    cols,
    extents,
    reshape,
    rows,
    set_validshape,
    window,
    write,
)
from pypto_egg.egraph.tile_language import (
    demand,
    realize,
    tile_assemble,
    tile_copy,
    tile_expand,
    tile_reshape,
    tile_set_validshape,
    tile_slice,
    tile_write,
    vec,
    vec_need,
)
from pypto_egg.rulesets.patterns import becomes
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

METADATA = RuleSet("metadata", "views of values that are on chip already")


@METADATA.rule
def slice_of_a_vec_tile(
    t: Tensor, x: Tensor, o: Vec[Index], s: Vec[Index], v: Vec[Index], r: Index, c: Index,
    q: Index, p: Index, k: i64,
) -> Body:  # fmt: skip
    """A window of a tile is a view of it; the window is exact, so it is not padded."""
    f = vec(q, p, k)
    return when(
        vec_need(t, r, c, k), eq(t).to(window(x, o, s, v)), at(t, k),
        eq(rows(t)).to(r), eq(cols(t)).to(c), extents(x, q, p),
    ).then(demand(x, f), becomes(t, vec(r, c, k), tile_slice(realize(x, f), s, o, v)))  # fmt: skip


@METADATA.rule
def slice_extents(t: Tensor, x: Tensor, o: Vec[Index], s: Vec[Index], v: Vec[Index]) -> Body:
    """A window has the extents that the program gave it."""
    return when(eq(t).to(window(x, o, s, v))).then(extents(t, rows(t), cols(t)))


@METADATA.rule
def reshape_of_a_vec_tile(t: Tensor, x: Tensor, s: Vec[Index], r: Index, c: Index, k: i64) -> Body:
    """Only an unpadded tile keeps its element order under another shape."""
    f = vec(rows(x), cols(x), k)
    return when(
        vec_need(t, r, c, k), eq(t).to(reshape(x, s)), at(t, k),
        eq(rows(t)).to(r), eq(cols(t)).to(c),
    ).then(demand(x, f), becomes(t, vec(r, c, k), tile_reshape(realize(x, f), s)))  # fmt: skip


@METADATA.rule
def reshape_of_a_copy_of_a_vec_tile(
    t: Tensor, x: Tensor, s: Vec[Index], r: Index, c: Index, k: i64
) -> Body:
    """A window of some of a tile's columns has gaps between its rows; a copy has none."""
    f = vec(rows(x), cols(x), k)
    return when(
        vec_need(t, r, c, k), eq(t).to(reshape(x, s)), at(t, k),
        eq(rows(t)).to(r), eq(cols(t)).to(c),
    ).then(
        demand(x, f), becomes(t, vec(r, c, k), tile_reshape(tile_copy(realize(x, f), t), s))
    )  # fmt: skip


@METADATA.rule
def reshape_in_a_tile_of_more_rows(
    t: Tensor, x: Tensor, s: Vec[Index], r: i64, q: i64, c: Index, k: i64
) -> Body:
    """A reduction of few rows reads as many as make its column whole blocks; the rest is filled."""
    exact = vec(Index(q), c, k)
    return when(
        vec_need(t, Index(r), c, k), eq(t).to(reshape(x, s)), at(t, k), eq(batch(t)).to(i64(0)),
        eq(rows(t)).to(Index(q)), eq(cols(t)).to(c), r > q,
    ).then(
        demand(t, exact),
        becomes(t, vec(Index(r), c, k), tile_expand(realize(t, exact), Vec(Index(r), c))),
    )  # fmt: skip


@METADATA.rule
def slice_in_a_tile_of_more_rows(
    t: Tensor, x: Tensor, o: Vec[Index], s: Vec[Index], v: Vec[Index], r: i64, q: i64, c: Index,
    k: i64,
) -> Body:  # fmt: skip
    """As of a reshape; a window on chip has the rows that the program gave it."""
    exact = vec(Index(q), c, k)
    return when(
        vec_need(t, Index(r), c, k), eq(t).to(window(x, o, s, v)), at(t, k),
        eq(batch(t)).to(i64(0)), eq(rows(t)).to(Index(q)), eq(cols(t)).to(c), r > q,
    ).then(
        demand(t, exact),
        becomes(t, vec(Index(r), c, k), tile_expand(realize(t, exact), Vec(Index(r), c))),
    )  # fmt: skip


@METADATA.rule
def reshape_extents(t: Tensor, x: Tensor, s: Vec[Index]) -> Body:
    """A reshaped tile has the extents that the program gave it."""
    return when(eq(t).to(reshape(x, s))).then(extents(t, rows(t), cols(t)))


@METADATA.rule
def set_validshape_of_a_vec_tile(
    t: Tensor, x: Tensor, m: Index, n: Index, r: Index, c: Index, k: i64
) -> Body:
    """The valid region is a property of the view."""
    f = vec(r, c, k)
    return when(demand(t, vec(r, c, k)), eq(t).to(set_validshape(x, m, n)), at(t, k)).then(
        demand(x, f), becomes(t, f, tile_set_validshape(realize(x, f), m, n))
    )


@METADATA.rule
def set_validshape_extents(t: Tensor, x: Tensor, m: Index, n: Index, r: Index, c: Index) -> Body:
    """Physical extents do not change."""
    return when(eq(t).to(set_validshape(x, m, n)), extents(x, r, c)).then(extents(t, r, c))


@METADATA.rule
def assemble_into_a_vec_tile(
    t: Tensor, x: Tensor, y: Tensor, o: Vec[Index], r: Index, c: Index, q: Index, p: Index, k: i64
) -> Body:
    """A part is written into a tile on chip; the target's extents are the result's."""
    f, part = vec(r, c, k), vec(q, p, k)
    return when(demand(t, f), eq(t).to(assemble(x, y, o)), at(t, k), extents(y, q, p)).then(
        demand(x, f),
        demand(y, part),
        becomes(t, f, tile_assemble(realize(x, f), realize(y, part), o)),
    )


@METADATA.rule
def assemble_into_a_copy_of_a_vec_tile(
    t: Tensor, x: Tensor, y: Tensor, o: Vec[Index], r: Index, c: Index, q: Index, p: Index, k: i64
) -> Body:
    """An assemble writes in place; where the target is still needed, it writes into a copy."""
    f, part = vec(r, c, k), vec(q, p, k)
    copy = tile_copy(realize(x, f), t)
    return when(demand(t, f), eq(t).to(assemble(x, y, o)), at(t, k), extents(y, q, p)).then(
        demand(x, f), demand(y, part),
        becomes(t, f, tile_assemble(copy, realize(y, part), o)),
    )  # fmt: skip


@METADATA.rule
def assemble_extents(t: Tensor, x: Tensor, y: Tensor, o: Vec[Index], r: Index, c: Index) -> Body:
    """The target decides."""
    return when(eq(t).to(assemble(x, y, o)), extents(x, r, c)).then(extents(t, r, c))


@METADATA.rule
def scalar_write_into_a_vec_tile(
    t: Tensor, x: Tensor, o: Vec[Index], v: Scalar, r: Index, c: Index, k: i64
) -> Body:
    """One element of a tile on chip is replaced in place."""
    f = vec(r, c, k)
    return when(demand(t, f), eq(t).to(write(x, o, v)), at(t, k)).then(
        demand(x, f), becomes(t, f, tile_write(realize(x, f), o, v))
    )


@METADATA.rule
def scalar_write_into_a_copy_of_a_vec_tile(
    t: Tensor, x: Tensor, o: Vec[Index], v: Scalar, r: Index, c: Index, k: i64
) -> Body:
    """Where the tile of before is still needed, a copy of it is written into."""
    f = vec(r, c, k)
    return when(demand(t, f), eq(t).to(write(x, o, v)), at(t, k)).then(
        demand(x, f), becomes(t, f, tile_write(tile_copy(realize(x, f), t), o, v))
    )


@METADATA.rule
def scalar_write_extents(
    t: Tensor, x: Tensor, o: Vec[Index], v: Scalar, r: Index, c: Index
) -> Body:
    """Extents do not change."""
    return when(eq(t).to(write(x, o, v)), extents(x, r, c)).then(extents(t, r, c))
