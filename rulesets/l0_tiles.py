"""Products whose result leaves L0C tile by tile, so that it need not fit there as a whole.

Which tiles, and in which order, is the schedule (`pypto_egg.l0`): the tile graph puts every legal
one in the place of the e-nodes that these rules add.
"""

from __future__ import annotations

from typing import Any

from egglog import String, eq, i64, union

from pypto_egg.egraph.language import (
    Index,
    Tensor,
    acc_dtype,
    at,
    batch,
    drains,
    dtype,
    extents,
    inserts,
    m_granularity,
    matmul,
    n_granularity,
    operands,
    store_root,
)
from pypto_egg.egraph.tile_language import (
    Stmt,
    demand,
    insert_product,
    mat,
    realize,
    store_product,
)
from pypto_egg.rulesets.matmul import left_form, right_form
from pypto_egg.rulesets.patterns import becomes
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

L0_TILES = RuleSet("l0-tiles", "a product is stored tile by tile")
L0_TILES_TO_MAT = RuleSet("l0-tiles-to-mat", "a product goes back to Mat tile by tile")


def whole_boxes(t: Tensor, m: i64, n: i64) -> tuple[Any, ...]:
    """What holds where these are legal physical extents of a rank-2 product."""
    return (
        eq(batch(t)).to(i64(0)),
        eq(m % m_granularity(t)).to(i64(0)),
        eq(n % n_granularity(t)).to(i64(0)),
    )


@L0_TILES.rule
def product_is_stored_by_tiles(
    key: i64, t: Tensor, k: i64, d: String, m: i64, n: i64, a: String, x: Tensor, y: Tensor,
    i: i64, o: String, j: i64, q: String, depth: i64, e: String,
) -> Body:  # fmt: skip
    """FIXPIPE drains each tile to its place in the destination while the next one is made."""
    left, right = left_form(i, o, m, depth, k), right_form(j, q, n, depth, k)
    return when(
        store_root(key, t, k, d), at(t, k), extents(t, Index(m), Index(n)),
        eq(a).to(acc_dtype(t)), drains(a, d), eq(t).to(matmul(x, y, i, j, e)),
        operands(t, x, y, i, o, j, q, depth), *whole_boxes(t, m, n),
    ).then(
        demand(x, left), demand(y, right),
        union(Stmt(key)).with_(store_product(key, realize(x, left), realize(y, right))),
    )  # fmt: skip


@L0_TILES_TO_MAT.rule
def product_goes_to_mat_by_tiles(
    t: Tensor, k: i64, d: String, m: i64, n: i64, a: String, x: Tensor, y: Tensor,
    i: i64, o: String, j: i64, q: String, depth: i64, e: String,
) -> Body:  # fmt: skip
    """The left operand of a chained product is put together in Mat."""
    f = mat(Index(m), Index(n), "nz", k)
    left, right = left_form(i, o, m, depth, k), right_form(j, q, n, depth, k)
    return when(
        demand(t, f), at(t, k), eq(a).to(acc_dtype(t)), eq(d).to(dtype(t)), inserts(a, d),
        eq(t).to(matmul(x, y, i, j, e)), operands(t, x, y, i, o, j, q, depth),
        *whole_boxes(t, m, n),
    ).then(
        demand(x, left), demand(y, right),
        becomes(t, f, insert_product(realize(x, left), realize(y, right), d)),
    )  # fmt: skip
