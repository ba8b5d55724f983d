"""Exact identities, and products made as their own transpose."""

from __future__ import annotations

import pytest
from firing import EXP, assert_fires, assert_silent, cube, vector
from kernels import calls, executed, ops, tensor

from pypto_egg import lower, optimize

TWICE = vector("e = pl.exp(x)\nt = pl.transpose(e, 0, 1)\nu = pl.transpose(t, 0, 1)\n"
               "y = pl.abs(u)\nreturn y")  # fmt: skip
ONCE = vector("e = pl.exp(x)\nt = pl.transpose(e, 0, 1)\ny = pl.abs(t)\nreturn y", (32, 16))
NEG = vector("e = pl.exp(x)\nn = pl.neg(e)\nm = pl.neg(n)\nreturn m")
ABS = vector("e = pl.exp(x)\nn = pl.neg(e)\nm = pl.abs(n)\nreturn m")
LEFT = cube("e = pl.abs(a)\nt = pl.transpose(e, 0, 1)\ny = pl.matmul(t, b, out_dtype=pl.FP32)\n"
            "return y", a=(64, 32))  # fmt: skip
RIGHT = cube("e = pl.abs(b)\nt = pl.transpose(e, 0, 1)\ny = pl.matmul(a, t, out_dtype=pl.FP32)\n"
             "return y", b=(32, 64))  # fmt: skip
PLAIN = cube("e = pl.abs(a)\ny = pl.matmul(e, b, out_dtype=pl.FP32)\nreturn y")
SWAP = cube(
    "y = pl.matmul(a, b, out_dtype=pl.FP32)\nt = pl.transpose(y, 0, 1)\nz = pl.abs(t)\nreturn z",
    (32, 64), a=(64, 64),
)  # fmt: skip
CHAIN = "y = pl.matmul(a, b, out_dtype=pl.FP16)\nz = pl.matmul({}, out_dtype=pl.FP32)\nreturn z"
ON_THE_LEFT = cube(CHAIN.format("y, c"), (32, 64), c=tensor([32, 64], "FP16"))
ON_THE_RIGHT = cube(CHAIN.format("c, y"), (64, 32), c=tensor([64, 32], "FP16"))

CASES = {
    "transpose-of-a-transpose": (TWICE, ONCE),
    "negation-of-a-negation": (NEG, ABS),
    "matmul-absorbs-a-left-transpose": (LEFT, RIGHT),
    "matmul-absorbs-a-right-transpose": (RIGHT, LEFT),
    "matmul-transpose-swaps": (SWAP, LEFT),
    "chained-product-on-the-left-is-made-transposed": (ON_THE_LEFT, PLAIN),
    "chained-product-on-the-right-is-made-transposed": (ON_THE_RIGHT, PLAIN),
}


@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])
    assert_silent(rule, EXP)


@pytest.mark.parametrize(
    ("text", "gone"),
    [(TWICE, "tile.transpose"), (NEG, "tile.neg"), (LEFT, "tile.transpose"),
     (RIGHT, "tile.transpose"), (SWAP, "tile.transpose")],
)  # fmt: skip
def test_the_identity_saves_an_op(text: str, gone: str) -> None:
    reference, best = lower(text), executed(optimize(text, verify=True))
    assert gone in ops(reference)
    assert gone not in ops(best)
    assert best.cost.total < reference.cost.total


def test_a_narrowed_transpose_is_not_cancelled() -> None:
    """transpose(transpose(x)) is x only where all of x is valid."""
    text = vector(
        "e = pl.exp(x)\nv = pl.set_validshape(e, 9, 32)\nt = pl.transpose(v, 0, 1)\n"
        "u = pl.transpose(t, 0, 1)\ny = pl.abs(u)\nreturn y"
    )
    assert_silent("transpose-of-a-transpose", text)


def test_a_transpose_of_a_product_with_another_reader() -> None:
    """The product is read both ways: each way is right whatever is chosen."""
    text = cube(
        "y = pl.matmul(a, b, out_dtype=pl.FP32)\nt = pl.transpose(y, 0, 1)\nz = pl.add(t, w)\n"
        "s = pl.row_max(y)\nu = pl.mul(z, 2.0)\nreturn u, s",
        w=tensor([48, 32], "FP32"), b=(64, 48),
    ).replace("-> pl.Tensor[[32, 32], pl.FP32]",
              "-> tuple[pl.Tensor[[48, 32], pl.FP32], pl.Tensor[[32, 1], pl.FP32]]")  # fmt: skip
    best = executed(optimize(text, verify=True))
    assert calls(best, "tile.matmul")
