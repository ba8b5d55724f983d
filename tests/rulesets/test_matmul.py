"""Products on the cube, and sums that stay in L0C."""

from __future__ import annotations

import pytest
from firing import EXP, MATMUL, assert_fires, assert_silent, cube, matched
from letters import LETTERS, of
from products import accumulation


def four(body: str, rank: int = 2, **more: str) -> dict[str, str]:
    return {letters: of(letters, body, rank, **more) for letters in LETTERS}


PRODUCT = four("y = MM(a, b)\nreturn y")
BATCH = four("y = MM(a, b)\nreturn y", 3)
ACC = four("y = MM(a, b)\nz = ACC(y, c, d)\nreturn z")
BATCH_ACC = four("y = MM(a, b)\nz = ACC(y, c, d)\nreturn z", 3)
FROM = four("y = MM(a, b)\nz = ACC(y, c, d, init_cond=n > 2)\nreturn z", n="pl.Scalar[pl.INDEX]")
ZEROS = {k: accumulation(32, 48, "FP16", *flags, "zero") for k, flags in LETTERS.items()}
CREATED = {k: accumulation(40, 48, "FP16", *flags, "created") for k, flags in LETTERS.items()}

ROWS_KNOWN_INSIDE = cube(
    """
z = pl.create_tensor([32, 32], pl.FP32)
for i, (c,) in pl.range(0, 64, 32, init_values=(z,)):
    v = pl.min(32, i + 9)
    p = pl.slice(a, [32, 32], [0, i], valid_shape=[v, 32])
    q = pl.slice(b, [32, 32], [i, 0])
    s = pl.matmul_acc(c, p, q)
    y = pl.yield_(s)
return y"""
)

NARROWED = (
    "y = pl.matmul(a, b, out_dtype=pl.FP32)\nz = pl.set_validshape(y, {}, {})\n"
    "w = pl.abs(z)\nreturn w"
)
FEWER_COLUMNS = cube(NARROWED.format(32, 20))
FEWER_ROWS = cube(NARROWED.format(20, 32))

# rule: the kernels of the four ways of transposing on which it fires, and on which it does not
FOUR = {
    "product-on-the-cube": (PRODUCT, BATCH),
    "batched-product-on-the-cube": (BATCH, PRODUCT),
    "accumulated-product-on-the-cube": (ACC, PRODUCT),
    "batched-accumulated-product-on-the-cube": (BATCH_ACC, BATCH),
    "conditionally-accumulated-product-on-the-cube": (FROM, ACC),
    "zero-seeded-accumulator": (ZEROS, CREATED),
    "created-accumulator-is-boxed": (CREATED, PRODUCT),
}
CASES = {rule: (fires["nn"], silent["nn"]) for rule, (fires, silent) in FOUR.items()} | {
    "operands-with-k-on-columns": (PRODUCT["nn"], PRODUCT["tn"]),
    "operands-with-k-on-rows": (PRODUCT["tn"], PRODUCT["nn"]),
    "valid-region-of-an-operand": (ROWS_KNOWN_INSIDE, CREATED["nn"]),
    "valid-columns-of-an-accumulator": (FEWER_COLUMNS, FEWER_ROWS),
    "accumulator-with-other-valid-columns-is-one": (FEWER_COLUMNS, FEWER_ROWS),
    "created-buffer-can-be-an-accumulator": (
        of("nn", "z = pl.create_tensor([32, 48], pl.FP32)\ny = ACC(z, a, b)\nreturn y"), MATMUL,
    ),
    "created-buffer-can-be-overwritten-in-l0c": (
        of("nn", "z = pl.create_tensor([32, 48], pl.FP32)\ny = ACC(z, a, b, init_cond=True)\n"
                 "return y"),
        MATMUL,
    ),
}  # fmt: skip


@pytest.mark.req("C-107", "C-113", "C-145", "C-147")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])
    assert_silent(rule, EXP)


@pytest.mark.req("C-134", "C-145", "C-163")
@pytest.mark.parametrize("letters", LETTERS)
@pytest.mark.parametrize("rule", FOUR)
def test_fires_with_every_transpose(rule: str, letters: str) -> None:
    fires, silent = FOUR[rule]
    assert matched(fires[letters])[rule] > 0
    assert matched(silent[letters])[rule] == 0
