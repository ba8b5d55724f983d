"""Elementwise ops, casts, transposes and fresh tiles, and the extents they can have."""

from __future__ import annotations

import pytest
from firing import EXP, MATMUL, assert_fires, assert_silent, dynamic, vector
from kernels import tensor

COLUMN = tensor([16, 1], "FP32")
SAME = tensor([16, 32], "FP32")
LONG = {"x": tensor([16, "D"], "FP32")}

# rule: (a kernel on which it fires, a kernel close by on which it does not)
CASES = {
    "unary-in-vec": (EXP, vector("y = pl.add(x, x)\nreturn y")),
    "unary-extents": (EXP, MATMUL),
    "with-scalar-in-vec": (vector("y = pl.mul(x, 2.0)\nreturn y"), EXP),
    "with-scalar-extents": (vector("y = pl.mul(x, 2.0)\nreturn y"), EXP),
    "cast-in-vec": (vector("y = pl.cast(x, pl.FP16)\nreturn y", dtype="FP16"), EXP),
    "cast-extents": (
        vector("y = pl.cast(x, pl.FP16)\nreturn y", dtype="FP16"),
        vector("y = pl.cast(c, pl.FP16)\nreturn y", (16, 1), "FP16", c=COLUMN),
    ),
    "cast-of-a-column-in-vec": (
        vector("y = pl.cast(c, pl.FP16)\nreturn y", (16, 1), "FP16", c=COLUMN), EXP,
    ),
    "cast-extents-of-a-column": (
        vector("y = pl.cast(c, pl.FP16)\nreturn y", (16, 1), "FP16", c=COLUMN),
        vector("y = pl.cast(x, pl.FP16)\nreturn y", dtype="FP16"),
    ),
    "cast-extents-of-dynamic-columns": (
        dynamic(LONG, "y = pl.cast(x, pl.FP16)\nreturn y", tensor([16, "D"], "FP16")),
        vector("y = pl.cast(x, pl.FP16)\nreturn y", dtype="FP16"),
    ),
    "cast-of-dynamic-columns-in-vec": (
        dynamic(LONG, "y = pl.cast(x, pl.FP16)\nreturn y", tensor([16, "D"], "FP16")),
        vector("y = pl.cast(x, pl.FP16)\nreturn y", dtype="FP16"),
    ),
    "binary-in-vec": (vector("z = pl.add(x, y)\nreturn z", y=SAME), EXP),
    "binary-extents-from-the-left": (vector("z = pl.add(x, y)\nreturn z", y=SAME), EXP),
    "binary-extents-from-the-right": (vector("z = pl.add(x, y)\nreturn z", y=SAME), EXP),
    "comparison-in-vec": (
        vector("z = pl.tensor.cmp(x, y, cmp_type=4)\nw = pl.abs(z)\nreturn w", y=SAME),
        vector("z = pl.add(x, y)\nreturn z", y=SAME),
    ),
    "comparison-extents": (
        vector("z = pl.tensor.cmp(x, y, cmp_type=4)\nw = pl.abs(z)\nreturn w", y=SAME),
        vector("z = pl.add(x, y)\nreturn z", y=SAME),
    ),
    "concatenation-in-vec": (
        vector("z = pl.tensor.concat(x, y)\nreturn z", (16, 64), y=SAME),
        vector("z = pl.add(x, y)\nreturn z", y=SAME),
    ),
    "concatenation-extents": (
        vector("z = pl.tensor.concat(x, y)\nreturn z", (16, 64), y=SAME),
        vector("z = pl.add(x, y)\nreturn z", y=SAME),
    ),
    "fillpad-in-vec": (
        vector("v = pl.set_validshape(x, 9, 20)\n"
               "y = pl.tensor.fillpad(v, pad_value=pl.PadValue.zero)\n"
               "return y"),
        EXP,
    ),
    "transpose-in-vec": (
        vector("e = pl.exp(x)\nt = pl.transpose(e, 0, 1)\nreturn t", (32, 16)), EXP,
    ),
    "padded-transpose-in-vec": (
        vector("e = pl.exp(s)\nt = pl.transpose(e, 0, 1)\nreturn t", (33, 5),
               s=tensor([5, 33], "FP32")),
        EXP,
    ),
    "transpose-extents": (
        vector("e = pl.exp(x)\nt = pl.transpose(e, 0, 1)\nreturn t", (32, 16)), EXP,
    ),
    "transpose-extents-of-one-row": (
        vector("m = pl.col_max(x)\nt = pl.transpose(m, 0, 1)\nreturn t", (32, 1)),
        vector("m = pl.row_max(x)\nt = pl.transpose(m, 0, 1)\nreturn t", (1, 16)),
    ),
    "create-in-vec": (
        vector("z = pl.create_tensor([16, 64], pl.FP32)\nu = pl.assemble(z, x, [0, 0])\n"
               "w = pl.assemble(u, x, [0, 32])\nv = pl.exp(w)\nreturn v", (16, 64)),
        EXP,
    ),
    "full-in-vec": (
        vector("f = pl.full([16, 32], dtype=pl.FP32, value=2.0)\ny = pl.mul(x, f)\nreturn y"), EXP,
    ),
}  # fmt: skip


@pytest.mark.req("C-032", "C-036")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])
