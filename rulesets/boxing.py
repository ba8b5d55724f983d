"""M and N boxes of cube products: granularities, and the physical extents worth weighing.

The physical M and N of a product are whole fractals of every tile and memory space they pass
through; the logical ones stay as the valid region. M reconciles the left operand with the
accumulator (C-136), N the spaces that the right operand passes through (C-158).
"""

from __future__ import annotations

from egglog import String, eq, i64, set_

from pypto_egg.egraph.language import (
    Index,
    Scalar,
    Tensor,
    acc_dtype,
    accumulator,
    batch,
    block_limit,
    box,
    capacity,
    cols,
    dtype,
    element_bytes,
    extents,
    fractal_rows,
    line,
    m_granularity,
    matmul,
    matmul_acc,
    matmul_acc_from,
    n_granularity,
    pads_n,
    product,
    rows,
)
from pypto_egg.rulesets.patterns import round_up
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

BOXING = RuleSet("boxing", "M and N of a cube product as whole fractals")
WIDER_BOXES = RuleSet("wider-boxes", "boxes beyond the least legal one (A-01, A-02)")
ACCUMULATED_N = RuleSet("accumulated-n", "N of an accumulated product is padded like any other")


@BOXING.rule
def matmul_is_a_product(
    t: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String, e: String
) -> Body:
    """The cube accumulates in a dtype of its own, whatever the product is rounded to."""
    return when(eq(t).to(matmul(x, y, i, j, d)), eq(e).to(accumulator(dtype(x), dtype(y)))).then(
        product(t, x, y, i, j), pads_n(t), set_(acc_dtype(t)).to(e)
    )


@BOXING.rule
def matmul_acc_is_a_product(
    t: Tensor, z: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, e: String
) -> Body:
    """The accumulator has the same M and N as the product added to it (C-145)."""
    return when(
        eq(t).to(matmul_acc(z, x, y, i, j)),
        eq(e).to(accumulator(dtype(x), dtype(y))),
        eq(dtype(t)).to(e),
    ).then(product(t, x, y, i, j), set_(acc_dtype(t)).to(e))


@BOXING.rule
def conditional_matmul_acc_is_a_product(
    t: Tensor, z: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, s: Scalar, e: String
) -> Body:
    """As matmul_acc: where the condition holds, the accumulator is overwritten in place."""
    return when(
        eq(t).to(matmul_acc_from(z, x, y, i, j, s)),
        eq(e).to(accumulator(dtype(x), dtype(y))),
        eq(dtype(t)).to(e),
    ).then(product(t, x, y, i, j), set_(acc_dtype(t)).to(e))


@BOXING.rule
def m_on_rows(t: Tensor, x: Tensor, y: Tensor, j: i64, h: i64) -> Body:
    """An untransposed left operand has M on its rows, 16 of them for every dtype (C-135)."""
    return when(product(t, x, y, 0, j), eq(h).to(fractal_rows())).then(set_(m_granularity(t)).to(h))


@BOXING.rule
def m_on_columns(t: Tensor, x: Tensor, y: Tensor, j: i64, w: i64, h: i64) -> Body:
    """A transposed one has M on its columns; the accumulator follows it (C-136, C-137)."""
    return when(product(t, x, y, 1, j), eq(w).to(line(dtype(x))), eq(h).to(fractal_rows())).then(
        set_(m_granularity(t)).to(w.max(h))
    )


@BOXING.rule
def n_on_columns(t: Tensor, x: Tensor, y: Tensor, i: i64, w: i64, h: i64) -> Body:
    """N passes through Mat columns, Right and Acc: the largest of their granularities (C-158)."""
    return when(product(t, x, y, i, 0), eq(w).to(line(dtype(y))), eq(h).to(fractal_rows())).then(
        set_(n_granularity(t)).to(w.max(h))
    )


@BOXING.rule
def n_on_rows(t: Tensor, x: Tensor, y: Tensor, i: i64, h: i64) -> Body:
    """With b_trans N is on the rows of the load: 16 in all three spaces (C-165, Q-07)."""
    return when(product(t, x, y, i, 1), eq(h).to(fractal_rows())).then(set_(n_granularity(t)).to(h))


@BOXING.rule
def whole_n_needs_no_padding(t: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, n: i64) -> Body:
    """Where N is already whole fractals, padding it or not is the same (A-02)."""
    return when(
        product(t, x, y, i, j), eq(cols(t)).to(Index(n)), eq(n % n_granularity(t)).to(i64(0))
    ).then(pads_n(t))


@ACCUMULATED_N.rule
def accumulated_n_is_padded(t: Tensor, z: Tensor, x: Tensor, y: Tensor, i: i64, j: i64) -> Body:
    """The form carries N from the product to the accumulator's creation, as it carries M."""
    return when(eq(t).to(matmul_acc(z, x, y, i, j)), product(t, x, y, i, j)).then(pads_n(t))


@ACCUMULATED_N.rule
def conditionally_accumulated_n_is_padded(
    t: Tensor, z: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, s: Scalar
) -> Body:
    """As above with an initial condition."""
    return when(eq(t).to(matmul_acc_from(z, x, y, i, j, s)), product(t, x, y, i, j)).then(pads_n(t))


@BOXING.rule
def least_box(
    t: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, m: i64, n: i64, g: i64, h: i64
) -> Body:
    """The least legal physical extents of a rank-2 product (C-128, C-161..C-165)."""
    return when(
        product(t, x, y, i, j), pads_n(t), eq(batch(t)).to(i64(0)),
        eq(rows(t)).to(Index(m)), eq(cols(t)).to(Index(n)),
        eq(g).to(m_granularity(t)), eq(h).to(n_granularity(t)),
    ).then(extents(t, Index(round_up(m, g)), Index(round_up(n, h))))  # fmt: skip


@WIDER_BOXES.rule
def wider_box(
    t: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, m: i64, n: i64, g: i64, h: i64, b: i64, c: i64
) -> Body:
    """Any multiple of the granularity up to the full L0 block is legal too (A-01)."""
    return when(
        product(t, x, y, i, j), pads_n(t), eq(batch(t)).to(i64(0)),
        eq(rows(t)).to(Index(m)), eq(cols(t)).to(Index(n)),
        eq(g).to(m_granularity(t)), eq(h).to(n_granularity(t)),
        box(b), box(c), b >= g, c >= h, b <= block_limit("m"), c <= block_limit("n"),
        round_up(m, b) * round_up(n, c) * element_bytes(acc_dtype(t)) <= capacity("Acc"),
    ).then(extents(t, Index(round_up(m, b)), Index(round_up(n, c))))  # fmt: skip


@BOXING.rule
def batches_are_not_padded(t: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, m: i64, n: i64) -> Body:
    """Rank 3 and more is packed by rows, so its own M and N stay as they are (C-169)."""
    return when(
        product(t, x, y, i, j), batch(t) > i64(0),
        eq(rows(t)).to(Index(m)), eq(cols(t)).to(Index(n)),
    ).then(extents(t, Index(m), Index(n)))  # fmt: skip
