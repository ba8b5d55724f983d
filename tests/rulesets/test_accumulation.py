"""An addend joins the sum in L0C, and rounding on the way out."""

from __future__ import annotations

import pytest
from firing import EXP, assert_fires, assert_silent, cube
from kernels import calls, executed, tensor
from letters import LETTERS, of

from pypto_egg import lower, optimize
from pypto_egg.ir.enums import Mem

ADD = of("nn", "y = MM(a, b)\nz = MM(c, d)\ns = pl.add(y, z)\nreturn s")
SUB = of("nn", "y = MM(a, b)\nz = MM(c, d)\ns = pl.sub(y, z)\nreturn s")
ADD_GM = of("nn", "y = MM(a, b)\ns = pl.add(y, w)\nreturn s", w=tensor([32, 48], "FP32"))
BIAS = of("nn", "y = MM(a, b)\ns = pl.add(y, bias)\nreturn s", bias=tensor([1, 48], "FP32"))
ROUND = "y = pl.matmul(a, b, out_dtype=pl.FP32)\nz = pl.cast(y, pl.FP16, mode='{}')\nreturn z"
CASES = {
    "add-of-a-product-on-the-right-accumulates": (ADD, ADD_GM),
    "add-of-a-product-on-the-left-accumulates": (ADD, ADD_GM),
    "bias-in-the-cube": (BIAS, ADD_GM),
    "accumulation-is-a-sum": (of("nn", "y = MM(a, b)\nz = ACC(y, c, d)\nreturn z"), ADD_GM),
    "sum-of-products-is-in-an-accumulator": (ADD, SUB),
    "product-plus-sum-is-in-an-accumulator": (ADD, SUB),
    "biased-product-is-in-an-accumulator": (BIAS, ADD_GM),
    "bias-goes-through-mat": (BIAS, ADD_GM),
    "bias-row-is-loaded-into-mat": (BIAS, ADD_GM),
    "cast-to-even-is-the-drain": (
        cube(ROUND.format("rint"), dtype="FP16"), cube(ROUND.format("floor"), dtype="FP16"),
    ),
    "drained-cast-is-the-accumulator": (
        cube(ROUND.format("rint"), dtype="FP16"), cube(ROUND.format("round"), dtype="FP16"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])
    assert_silent(rule, EXP)


def test_a_sum_of_products_stays_in_l0c() -> None:
    reference, best = lower(ADD), executed(optimize(ADD, verify=True))
    assert len(calls(reference, "tile.add")) == 1
    assert calls(best, "tile.add") == []
    assert len(calls(best, "tile.matmul_acc")) == 1
    assert best.cost.total < reference.cost.total


def test_a_rounded_product_leaves_through_the_drain() -> None:
    text = CASES["cast-to-even-is-the-drain"][0]
    best = executed(optimize(text, verify=True))
    assert calls(best, "tile.cast") == []
    (store,) = calls(best, "tile.store")
    assert store.args[0].type.space is Mem.Acc
    assert len(calls(lower(text), "tile.cast")) == 1


@pytest.mark.parametrize("mode", ["floor", "ceil", "trunc", "round"])
def test_other_rounding_is_left_to_the_vector_unit(mode: str) -> None:
    best = executed(optimize(cube(ROUND.format(mode), dtype="FP16"), verify=True))
    (cast,) = calls(best, "tile.cast")
    assert cast.kwarg("mode") == mode


@pytest.mark.parametrize("letters", LETTERS)
def test_sums_and_biases_with_every_transpose(letters: str) -> None:
    added = of(letters, "y = MM(a, b)\nz = MM(c, d)\ns = pl.add(y, z)\nreturn s")
    for side in ("left", "right"):
        assert_fires(f"add-of-a-product-on-the-{side}-accumulates", added)
    biased = of(
        letters, "y = MM(a, b)\ns = pl.add(y, bias)\nreturn s", bias=tensor([1, 48], "FP32")
    )
    assert_fires("bias-in-the-cube", biased)
    column = of(letters, "y = MM(a, b)\ns = pl.add(y, w)\nreturn s", w=tensor([32, 1], "FP32"))
    assert_silent("bias-in-the-cube", column)
