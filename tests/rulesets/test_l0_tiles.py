"""Products that leave L0C tile by tile."""

from __future__ import annotations

import pytest
from firing import EXP, MATMUL, assert_fires, assert_silent, cube
from kernels import calls, executed, loops

from pypto_egg import optimize
from pypto_egg.errors import CapacityError

CHAIN = cube(
    "y = pl.matmul(a, b, out_dtype=pl.FP16)\nz = pl.matmul(y, b, b_trans=True, out_dtype=pl.FP32)\n"
    "return z",
    shape=(32, 64),
)
SOFT = cube("y = pl.matmul(a, b, out_dtype=pl.FP32)\nz = pl.exp(y)\nreturn z")
LARGE = cube(
    "y = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn y", shape=(256, 256), a=(256, 64), b=(64, 256)
)
CASES = {
    "product-is-stored-by-tiles": (MATMUL, SOFT),
    "product-goes-to-mat-by-tiles": (CHAIN, MATMUL),
}


@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])
    assert_silent(rule, EXP)


def test_a_result_twice_as_large_as_l0c_is_stored_by_tiles() -> None:
    best = executed(optimize(LARGE, verify=True))
    assert len(calls(best, "tile.load")) == 2
    assert loops(best)
    assert best.functions[0].peak_bytes["Acc"] <= 131072


def test_with_a_vector_consumer_it_must_fit_as_a_whole() -> None:
    body = "y = pl.matmul(a, b, out_dtype=pl.FP32)\nz = pl.row_max(y)\nreturn z"
    text = cube(body, shape=(256, 1), a=(256, 64), b=(64, 256))
    with pytest.raises(CapacityError):
        optimize(text)
