"""Identities that hold bit for bit."""

from __future__ import annotations

from egglog import String, Vec, eq, i64, set_, union

from pypto_egg.egraph.language import (
    Index,
    Tensor,
    at,
    batch,
    cols,
    computed,
    dtype,
    lead,
    matmul,
    rows,
    transpose,
    unary,
    valid,
    whole,
)
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

ALGEBRA = RuleSet("algebra", "exact identities between tensor programs")
OPERAND_ORDER = RuleSet("operand-order", "a chained product is made as its own transpose")


@ALGEBRA.rule
def transpose_of_a_transpose(t: Tensor, x: Tensor) -> Body:
    """(x^T)^T = x."""
    return when(eq(t).to(transpose(transpose(x))), whole(x)).then(union(t).with_(x))


@ALGEBRA.rule
def negation_of_a_negation(t: Tensor, x: Tensor) -> Body:
    """-(-x) = x."""
    neg = "tensor.neg"
    return when(eq(t).to(unary(neg, "", unary(neg, "", x)))).then(union(t).with_(x))


@ALGEBRA.rule
def matmul_absorbs_a_left_transpose(
    t: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String
) -> Body:
    """x^T @ y is a matmul of x with its flag flipped: a free view instead of a real transpose."""
    return when(eq(t).to(matmul(transpose(x), y, i, j, d)), whole(x)).then(
        union(t).with_(matmul(x, y, 1 - i, j, d))
    )


@ALGEBRA.rule
def matmul_absorbs_a_right_transpose(
    t: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String
) -> Body:
    """x @ y^T, as on the left."""
    return when(eq(t).to(matmul(x, transpose(y), i, j, d)), whole(y)).then(
        union(t).with_(matmul(x, y, i, 1 - j, d))
    )


@ALGEBRA.rule
def matmul_transpose_swaps(t: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String) -> Body:
    """(x @ y)^T = y^T @ x^T: the cube does the transpose."""
    return when(eq(t).to(transpose(matmul(x, y, i, j, d)))).then(
        union(t).with_(matmul(y, x, 1 - j, 1 - i, d))
    )


def _add_operand_order(side: str) -> None:
    def body(
        t: Tensor, z: Tensor, x: Tensor, y: Tensor, u: Tensor, i: i64, j: i64, a: i64, b: i64,
        d: String, e: String, k: i64, s: Vec[Index], n: i64,
    ) -> Body:  # fmt: skip
        """A product that only feeds a product may be made as its transpose: a drain pays by rows,
        so the flatter of the two is cheaper, and the consumer's flag undoes the transpose."""
        swapped = matmul(y, x, 1 - j, 1 - i, d)
        before = matmul(z, u, a, b, e) if side == "left" else matmul(u, z, a, b, e)
        after = (
            matmul(swapped, u, 1 - a, b, e) if side == "left" else matmul(u, swapped, a, 1 - b, e)
        )
        return when(
            eq(t).to(before), eq(z).to(matmul(x, y, i, j, d)), at(z, k), whole(z),
            eq(s).to(lead(z)), eq(n).to(batch(z)), eq(n).to(i64(0)),
        ).then(
            union(t).with_(after),
            union(rows(swapped)).with_(cols(z)), union(cols(swapped)).with_(rows(z)),
            set_(lead(swapped)).to(s), set_(batch(swapped)).to(n),
            set_(valid(swapped)).to(Vec(cols(z), rows(z))), set_(dtype(swapped)).to(d),
            at(swapped, k), computed(swapped), whole(swapped),
        )  # fmt: skip

    OPERAND_ORDER.add(f"chained-product-on-the-{side}-is-made-transposed", body)


_add_operand_order("left")
_add_operand_order("right")
