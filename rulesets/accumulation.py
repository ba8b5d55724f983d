"""Sums that stay in L0C: addends, biases, and casts folded into the accumulator's drain.

`matmul` says nothing about the order in which the cube sums its products, so an addend of the
accumulator's own dtype may join the sum (docs/decisions.md).
"""

from __future__ import annotations

from egglog import String, Vec, eq, i64, ne, set_, union

from pypto_egg.egraph.language import (
    Gm,
    Index,
    Tensor,
    acc_dtype,
    at,
    batch,
    bias_bytes,
    binary,
    capacity,
    cast,
    cols,
    computed,
    defined,
    drains,
    dtype,
    element_bytes,
    floating,
    lead,
    located,
    matmul,
    matmul_acc,
    operands,
    rows,
    valid,
    whole,
)
from pypto_egg.egraph.tile_language import Form, acc, demand, load, mat, realize, tile1, tile3
from pypto_egg.rulesets.matmul import boxed, left_form, right_form
from pypto_egg.rulesets.patterns import TO_BIAS, becomes
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

ACCUMULATION = RuleSet("accumulation", "an addend joins the sum in L0C instead of the vector unit")
ROUNDING_DRAIN = RuleSet("rounding-drain", "a cast to even is folded into the accumulator's drain")


def _add_accumulated_add(side: str) -> None:
    def body(
        t: Tensor, z: Tensor, p: Tensor, x: Tensor, y: Tensor, i: i64, o: String, j: i64,
        q: String, depth: i64, m: i64, n: i64, k: i64, d: String,
    ) -> Body:  # fmt: skip
        """z + x @ y continues the sum in z's accumulator, if z is in one (matmul_acc)."""
        left, right, sum_ = (
            left_form(i, o, m, depth, k),
            right_form(j, q, n, depth, k),
            acc(m, n, k),
        )
        added = tile3("tile.matmul_acc", "", realize(z, sum_), realize(x, left), realize(y, right))
        pair = (p, z) if side == "left" else (z, p)
        return when(
            demand(t, sum_), at(t, k), eq(t).to(binary("tensor.add", "", *pair)),
            eq(p).to(matmul(x, y, i, j, d)), operands(p, x, y, i, o, j, q, depth),
            eq(acc_dtype(p)).to(d), eq(acc_dtype(z)).to(d), eq(dtype(z)).to(d), ne(z).to(p),
            eq(rows(z)).to(rows(t)), eq(cols(z)).to(cols(t)), whole(z), whole(p),
            *boxed(p, m, n),
        ).then(
            demand(z, sum_), demand(x, left), demand(y, right), becomes(t, sum_, added)
        )  # fmt: skip

    ACCUMULATION.add(f"add-of-a-product-on-the-{side}-accumulates", body)


_add_accumulated_add("left")
_add_accumulated_add("right")


@ACCUMULATION.rule
def bias_in_the_cube(
    t: Tensor, p: Tensor, x: Tensor, y: Tensor, bias: Tensor, i: i64, o: String, j: i64, q: String,
    depth: i64, m: i64, n: i64, k: i64, d: String,
) -> Body:  # fmt: skip
    """x @ y + bias starts the sum from the bias table, if the row fits it (matmul_bias)."""
    left, right = left_form(i, o, m, depth, k), right_form(j, q, n, depth, k)
    row = Form("Bias", Index(1), Index(n), "nd", k)
    sum_ = tile3("tile.matmul_bias", "", realize(x, left), realize(y, right), realize(bias, row))
    return when(
        demand(t, acc(m, n, k)), at(t, k),
        eq(t).to(binary("tensor.col_expand_add", "", p, bias)), eq(p).to(matmul(x, y, i, j, d)),
        operands(p, x, y, i, o, j, q, depth), eq(acc_dtype(p)).to(d), eq(dtype(bias)).to(d),
        *boxed(p, m, n), n * element_bytes(d) <= capacity("Bias"),
        eq((n * element_bytes(d)) % bias_bytes()).to(i64(0)),
    ).then(
        demand(x, left), demand(y, right), demand(bias, row), becomes(t, acc(m, n, k), sum_)
    )  # fmt: skip


@ACCUMULATION.rule
def accumulation_is_a_sum(
    t: Tensor, z: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, k: i64, d: String, s: Vec[Index],
    v: Vec[Index],
) -> Body:  # fmt: skip
    """acc + x @ y can also be a product of its own and an addition on the vector unit."""
    p = matmul(x, y, i, j, d)
    return when(
        eq(t).to(matmul_acc(z, x, y, i, j)), defined(z), eq(d).to(acc_dtype(t)), at(t, k),
        eq(batch(t)).to(i64(0)), eq(s).to(lead(t)), eq(v).to(valid(t)), whole(t), whole(z),
    ).then(
        union(t).with_(binary("tensor.add", "", z, p)),
        union(rows(p)).with_(rows(t)), union(cols(p)).with_(cols(t)),
        set_(lead(p)).to(s), set_(batch(p)).to(i64(0)), set_(valid(p)).to(v), set_(dtype(p)).to(d),
        at(p, k), computed(p), whole(p),
    )  # fmt: skip


@ACCUMULATION.rule
def sum_of_products_is_in_an_accumulator(
    t: Tensor, z: Tensor, p: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String
) -> Body:
    """The sum can be left in L0C if both addends can, unrounded."""
    return when(
        eq(t).to(binary("tensor.add", "", z, p)), eq(p).to(matmul(x, y, i, j, d)),
        eq(acc_dtype(z)).to(d), eq(acc_dtype(p)).to(d), eq(dtype(z)).to(d), ne(z).to(p),
    ).then(set_(acc_dtype(t)).to(d))  # fmt: skip


@ACCUMULATION.rule
def product_plus_sum_is_in_an_accumulator(
    t: Tensor, z: Tensor, p: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String
) -> Body:
    """As above, with the product on the left."""
    return when(
        eq(t).to(binary("tensor.add", "", p, z)), eq(p).to(matmul(x, y, i, j, d)),
        eq(acc_dtype(z)).to(d), eq(acc_dtype(p)).to(d), eq(dtype(z)).to(d), ne(z).to(p),
    ).then(set_(acc_dtype(t)).to(d))  # fmt: skip


@ACCUMULATION.rule
def biased_product_is_in_an_accumulator(
    t: Tensor, p: Tensor, x: Tensor, y: Tensor, bias: Tensor, i: i64, j: i64, d: String
) -> Body:
    """A product with a bias row can be left in L0C."""
    return when(
        eq(t).to(binary("tensor.col_expand_add", "", p, bias)),
        eq(p).to(matmul(x, y, i, j, d)), eq(acc_dtype(p)).to(d), eq(dtype(bias)).to(d),
    ).then(set_(acc_dtype(t)).to(d))  # fmt: skip


@ACCUMULATION.rule
def bias_goes_through_mat(bias: Tensor, c: Index, k: i64) -> Body:
    """The bias table is filled from Mat (C-117)."""
    row = mat(Index(1), c, "row", k)
    return when(demand(bias, Form("Bias", Index(1), c, "nd", k))).then(
        demand(bias, row),
        becomes(
            bias, Form("Bias", Index(1), c, "nd", k),
            tile1("tile.move", TO_BIAS, realize(bias, row)),
        ),
    )  # fmt: skip


@ACCUMULATION.rule
def bias_row_is_loaded_into_mat(
    bias: Tensor, g: Gm, o: Vec[Index], c: Index, k: i64, v: Vec[Index]
) -> Body:
    """A one-row Mat tile is not boxed."""
    row = mat(Index(1), c, "row", k)
    return when(
        demand(bias, row), located(bias, g, o), floating(bias), at(bias, k),
        eq(v).to(valid(bias)), eq(rows(bias)).to(Index(1)),
    ).then(becomes(bias, row, load(g, o, Vec(Index(1), c), v, "Mat", k, 0)))  # fmt: skip


@ROUNDING_DRAIN.rule
def cast_to_even_is_the_drain(t: Tensor, x: Tensor, d: String, a: String) -> Body:
    """FIXPIPE rounds to nearest even, which is what the cast asks for."""
    return when(
        eq(t).to(cast(x, d, "rint")), eq(a).to(acc_dtype(x)), eq(a).to(dtype(x)), drains(a, d)
    ).then(set_(acc_dtype(t)).to(a))


@ROUNDING_DRAIN.rule
def drained_cast_is_the_accumulator(
    t: Tensor, x: Tensor, d: String, a: String, m: i64, n: i64, k: i64
) -> Body:
    """The accumulator holds the unrounded value of both."""
    return when(
        demand(t, acc(m, n, k)), eq(t).to(cast(x, d, "rint")), eq(a).to(acc_dtype(x)),
        eq(a).to(dtype(x)), drains(a, d), at(t, k),
    ).then(demand(x, acc(m, n, k)), becomes(t, acc(m, n, k), realize(x, acc(m, n, k))))  # fmt: skip
