"""Granularities of M and N, and the boxes that are weighed."""

from __future__ import annotations

import pytest
from firing import EXP, MATMUL, assert_fires, assert_silent, cube
from kernels import calls, executed, kernel, tensor
from products import accumulation, product

from pypto_egg import lower, optimize

BATCH = cube("y = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn y", (2, 32, 32),
             a=(2, 32, 64), b=(2, 64, 32))  # fmt: skip
ACC = accumulation(32, 32, "FP16", False, False, "created")
FROM = kernel(
    {n: tensor([32, 32], "FP16") for n in "abcd"},
    "y = pl.matmul(a, b, out_dtype=pl.FP32)\nz = pl.matmul_acc(y, c, d, init_cond=True)\nreturn z",
    tensor([32, 32], "FP32"),
)

CASES = {
    "matmul-is-a-product": (MATMUL, ACC),
    "matmul-acc-is-a-product": (ACC, MATMUL),
    "conditional-matmul-acc-is-a-product": (FROM, ACC),
    "m-on-rows": (MATMUL, product(32, 32, 64, "FP16", True, False)),
    "m-on-columns": (product(32, 32, 64, "FP16", True, False), MATMUL),
    "n-on-columns": (MATMUL, product(32, 32, 64, "FP16", False, True)),
    "n-on-rows": (product(32, 32, 64, "FP16", False, True), MATMUL),
    "whole-n-needs-no-padding": (MATMUL, product(32, 24, 64, "FP16", False, False)),
    "least-box": (MATMUL, BATCH),
    "batches-are-not-padded": (BATCH, MATMUL),
    "wider-box": (product(17, 24, 64, "FP16", False, False), BATCH),
    "accumulated-n-is-padded": (ACC, MATMUL),
    "conditionally-accumulated-n-is-padded": (FROM, ACC),
}


@pytest.mark.req("C-135", "C-136", "C-158", "C-161", "C-164", "C-165", "C-169")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])
    assert_silent(rule, EXP)


@pytest.mark.req("C-167")
def test_without_accumulated_n_an_unaligned_sum_is_refused() -> None:
    text = accumulation(32, 40, "FP16", False, False, "created")
    best = executed(optimize(text, verify=True))
    (create,) = calls(best, "tile.create")
    assert create.type.shape[1] % 16 == 0
    for refused in (lambda: lower(text), lambda: optimize(text, without_rules=["accumulated-n"])):
        with pytest.raises(Exception, match="N = 40"):
            refused()
