"""Cube products and their accumulators."""

from __future__ import annotations

from typing import Any

from egglog import String, Vec, eq, i64, set_, union

from pypto_egg.egraph.language import (
    Index,
    Scalar,
    Tensor,
    acc_dtype,
    at,
    batch,
    capacity,
    carry,
    cols,
    create,
    dtype,
    element_bytes,
    fractal_rows,
    iter_arg,
    lead,
    line,
    loop_result,
    m_granularity,
    matmul,
    matmul_acc,
    matmul_acc_from,
    n_granularity,
    operands,
    pads_n,
    product,
    read_order,
    rows,
    seed_rows,
    seeded,
    set_validshape,
    valid,
)
from pypto_egg.egraph.tile_language import (
    Form,
    acc,
    carried,
    demand,
    loop_carry,
    looped,
    mat,
    outer,
    realize,
    tile2,
    tile3,
    tile_accumulate_from,
    tile_create,
    tile_set_validshape,
)
from pypto_egg.rulesets.patterns import becomes
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

MATMUL = RuleSet("matmul", "products on the cube")


def left_form(x_trans: i64, order: String, m: i64, depth: i64, k: i64) -> Form:
    """The form of the left operand: M is boxed on the axis where it is (C-133, C-134)."""
    plain = 1 - x_trans
    return mat(Index(m * plain + depth * x_trans), Index(depth * plain + m * x_trans), order, k)


def right_form(y_trans: i64, order: String, n: i64, depth: i64, k: i64) -> Form:
    """The form of the right operand: N is boxed on the axis where it is (C-164, C-165)."""
    plain = 1 - y_trans
    return mat(Index(depth * plain + n * y_trans), Index(n * plain + depth * y_trans), order, k)


def boxed(t: Tensor, m: i64, n: i64) -> tuple[Any, ...]:
    """What holds where a rank-2 product of these physical extents is legal and fits L0C."""
    return (
        eq(batch(t)).to(i64(0)),
        eq(m % m_granularity(t)).to(i64(0)),
        eq(n % n_granularity(t)).to(i64(0)),
        m * n * element_bytes(acc_dtype(t)) <= capacity("Acc"),
    )


def packed(t: Tensor, m: i64, n: i64) -> tuple[Any, ...]:
    """The same for a batch, whose rows are packed; each of its products is in L0C in turn."""
    return (
        batch(t) > i64(0),
        eq((batch(t) * m) % fractal_rows()).to(i64(0)),
        eq(n % fractal_rows()).to(i64(0)),
        m * n * element_bytes(acc_dtype(t)) <= capacity("Acc"),
    )


# --- operands ----------------------------------------------------------------------------------


@MATMUL.rule
def operands_with_k_on_columns(
    t: Tensor, x: Tensor, y: Tensor, j: i64, depth: i64, o: String, q: String
) -> Body:
    """K is never padded, so it must be whole lines as it is (C-168, Q-12)."""
    return when(
        product(t, x, y, 0, j), eq(cols(x)).to(Index(depth)),
        eq(depth % line(dtype(x))).to(i64(0)), eq(o).to(read_order(0)), eq(q).to(read_order(j)),
    ).then(operands(t, x, y, 0, o, j, q, depth))  # fmt: skip


@MATMUL.rule
def operands_with_k_on_rows(
    t: Tensor, x: Tensor, y: Tensor, j: i64, depth: i64, o: String, q: String
) -> Body:
    """A transposed left operand has K on its rows."""
    return when(
        product(t, x, y, 1, j), eq(rows(x)).to(Index(depth)),
        eq(depth % line(dtype(x))).to(i64(0)), eq(o).to(read_order(1)), eq(q).to(read_order(j)),
    ).then(operands(t, x, y, 1, o, j, q, depth))  # fmt: skip


@MATMUL.rule
def valid_region_of_an_operand(
    t: Tensor, x: Tensor, m: Index, n: Index, r: Index, c: Index, k: i64
) -> Body:
    """The rows that a product is made of are a property of the view of its operand (C-124)."""
    f = mat(r, c, "nz", k)
    return when(demand(t, f), eq(t).to(set_validshape(x, m, n)), at(t, k)).then(
        demand(x, f), becomes(t, f, tile_set_validshape(realize(x, f), m, n))
    )


# --- products ----------------------------------------------------------------------------------


@MATMUL.rule
def product_on_the_cube(
    t: Tensor, x: Tensor, y: Tensor, i: i64, o: String, j: i64, q: String, depth: i64, d: String,
    m: i64, n: i64, k: i64,
) -> Body:  # fmt: skip
    """Both operands go to Mat in whole fractals (C-107, C-128)."""
    left, right = left_form(i, o, m, depth, k), right_form(j, q, n, depth, k)
    return when(
        demand(t, acc(m, n, k)), at(t, k), eq(t).to(matmul(x, y, i, j, d)),
        operands(t, x, y, i, o, j, q, depth), *boxed(t, m, n),
    ).then(
        demand(x, left), demand(y, right),
        becomes(t, acc(m, n, k), tile2("tile.matmul", "", realize(x, left), realize(y, right))),
    )  # fmt: skip


@MATMUL.rule
def batched_product_on_the_cube(
    t: Tensor, x: Tensor, y: Tensor, i: i64, o: String, j: i64, q: String, depth: i64, d: String,
    m: i64, n: i64, k: i64,
) -> Body:  # fmt: skip
    """Rank 3 and more is one batched op, unrolled after the conversion (C-113, C-169)."""
    left, right = left_form(i, o, m, depth, k), right_form(j, q, n, depth, k)
    product_ = tile2("tile.batch_matmul", "", realize(x, left), realize(y, right))
    return when(
        demand(t, acc(m, n, k)), at(t, k), eq(t).to(matmul(x, y, i, j, d)),
        operands(t, x, y, i, o, j, q, depth), *packed(t, m, n),
    ).then(demand(x, left), demand(y, right), becomes(t, acc(m, n, k), product_))  # fmt: skip


@MATMUL.rule
def accumulated_product_on_the_cube(
    t: Tensor, z: Tensor, x: Tensor, y: Tensor, i: i64, o: String, j: i64, q: String, depth: i64,
    m: i64, n: i64, k: i64,
) -> Body:  # fmt: skip
    """The accumulator is demanded with the product's own physical M and N (C-145)."""
    left, right, sum_ = left_form(i, o, m, depth, k), right_form(j, q, n, depth, k), acc(m, n, k)
    added = tile3("tile.matmul_acc", "", realize(z, sum_), realize(x, left), realize(y, right))
    return when(
        demand(t, sum_), at(t, k), eq(t).to(matmul_acc(z, x, y, i, j)), pads_n(t),
        operands(t, x, y, i, o, j, q, depth), *boxed(t, m, n),
    ).then(demand(z, sum_), demand(x, left), demand(y, right), becomes(t, sum_, added))  # fmt: skip


@MATMUL.rule
def conditionally_accumulated_product_on_the_cube(
    t: Tensor, z: Tensor, x: Tensor, y: Tensor, i: i64, o: String, j: i64, q: String, depth: i64,
    s: Scalar, m: i64, n: i64, k: i64,
) -> Body:  # fmt: skip
    """As above; where the condition holds the sum starts anew (init_cond)."""
    left, right, sum_ = left_form(i, o, m, depth, k), right_form(j, q, n, depth, k), acc(m, n, k)
    added = tile_accumulate_from(realize(z, sum_), realize(x, left), realize(y, right), s)
    return when(
        demand(t, sum_), at(t, k), eq(t).to(matmul_acc_from(z, x, y, i, j, s)), pads_n(t),
        operands(t, x, y, i, o, j, q, depth), *boxed(t, m, n),
    ).then(demand(z, sum_), demand(x, left), demand(y, right), becomes(t, sum_, added))  # fmt: skip


@MATMUL.rule
def batched_accumulated_product_on_the_cube(
    t: Tensor, z: Tensor, x: Tensor, y: Tensor, i: i64, o: String, j: i64, q: String, depth: i64,
    m: i64, n: i64, k: i64,
) -> Body:  # fmt: skip
    """As for rank 2; a batch keeps its own M and N (C-169)."""
    left, right, sum_ = left_form(i, o, m, depth, k), right_form(j, q, n, depth, k), acc(m, n, k)
    added = tile3(
        "tile.batch_matmul_acc", "", realize(z, sum_), realize(x, left), realize(y, right)
    )
    return when(
        demand(t, sum_), at(t, k), eq(t).to(matmul_acc(z, x, y, i, j)),
        operands(t, x, y, i, o, j, q, depth), *packed(t, m, n),
    ).then(demand(z, sum_), demand(x, left), demand(y, right), becomes(t, sum_, added))  # fmt: skip


@MATMUL.rule
def zero_seeded_accumulator(
    t: Tensor, r: i64, position: i64, p: i64, z: Tensor, u: Tensor, x: Tensor, y: Tensor, i: i64,
    o: String, j: i64, q: String, depth: i64, m: i64, n: i64, key: i64, first: Scalar, d: String,
) -> Body:  # fmt: skip
    """Zeros cannot be written to L0C; the first product overwrites instead (init_cond)."""
    inside_loop = acc(m, n, r)
    left, right = left_form(i, o, m, depth, r), right_form(j, q, n, depth, r)
    seed = tile_create(key, Vec(Index(m), Index(n)), seed_rows(z), cols(t), d, "Acc", p)
    carried_ = carried(r, position, inside_loop)
    added = tile_accumulate_from(carried_, realize(x, left), realize(y, right), first)
    return when(
        demand(t, acc(m, n, p)), eq(t).to(loop_result(r, position)),
        carry(r, position, p, z, u), seeded(r, position, key, first), eq(d).to(acc_dtype(u)),
        eq(u).to(matmul_acc(iter_arg(r, position), x, y, i, j)), at(u, r), pads_n(u),
        operands(u, x, y, i, o, j, q, depth), *boxed(u, m, n),
    ).then(
        demand(x, left), demand(y, right),
        union(loop_carry(r, position, inside_loop)).with_(
            looped(r, position, inside_loop, seed, added)
        ),
        becomes(t, acc(m, n, p), outer(loop_carry(r, position, inside_loop), p)),
    )  # fmt: skip


# --- accumulators ------------------------------------------------------------------------------


@MATMUL.rule
def valid_columns_of_an_accumulator(
    t: Tensor, x: Tensor, m: Index, n: Index, v: Vec[Index], r: i64, c: i64, k: i64
) -> Body:
    """Columns may be declared anew; rows must stay, as the cube wrote with their pitch (C-270)."""
    f = acc(r, c, k)
    return when(
        demand(t, f), eq(t).to(set_validshape(x, m, n)), eq(batch(t)).to(i64(0)), at(t, k),
        eq(v).to(valid(x)), eq(v[0]).to(m),
    ).then(
        demand(x, f), becomes(t, f, tile_set_validshape(realize(x, f), m, n))
    )  # fmt: skip


@MATMUL.rule
def accumulator_with_other_valid_columns_is_one(
    t: Tensor, x: Tensor, m: Index, n: Index, v: Vec[Index], d: String
) -> Body:
    """It can be left in L0C as what it views can."""
    return when(
        eq(t).to(set_validshape(x, m, n)), eq(batch(t)).to(i64(0)), eq(v).to(valid(x)),
        eq(v[0]).to(m), eq(d).to(acc_dtype(x)),
    ).then(set_(acc_dtype(t)).to(d))  # fmt: skip


@MATMUL.rule
def created_accumulator_is_boxed(
    t: Tensor, key: i64, m: i64, n: i64, k: i64, d: String, s: Vec[Index]
) -> Body:
    """An accumulator is created in L0C, never loaded, with its true shape as valid (C-147)."""
    extents_ = s.append(Vec(Index(m), Index(n)))
    return when(
        demand(t, acc(m, n, k)), eq(t).to(create(key)), at(t, k), eq(d).to(dtype(t)),
        eq(s).to(lead(t)),
    ).then(
        becomes(t, acc(m, n, k), tile_create(key, extents_, seed_rows(t), cols(t), d, "Acc", k))
    )  # fmt: skip


@MATMUL.rule
def created_buffer_can_be_an_accumulator(
    t: Tensor, u: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String
) -> Body:
    """What is accumulated into lies in L0C from the start (C-146)."""
    return when(eq(u).to(matmul_acc(t, x, y, i, j)), eq(d).to(acc_dtype(u))).then(
        set_(acc_dtype(t)).to(d)
    )


@MATMUL.rule
def created_buffer_can_be_overwritten_in_l0c(
    t: Tensor, u: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, s: Scalar, d: String
) -> Body:
    """As above with an initial condition."""
    return when(eq(u).to(matmul_acc_from(t, x, y, i, j, s)), eq(d).to(acc_dtype(u))).then(
        set_(acc_dtype(t)).to(d)
    )
