"""Vector ops and the extents that their results can have."""

from __future__ import annotations

import pytest
from firing import EXP, MATMUL, assert_fires, assert_silent, matched, names, vector
from kernels import function, kernel, program, tensor

from pypto_egg import optimize
from pypto_egg.errors import LoweringError
from pypto_egg.rulesets.vector import EXTENTS, VECTOR

COLUMN, ROW = tensor([16, 1], "FP32"), tensor([1, 32], "FP32")
SAME = tensor([16, 32], "FP32")


def dynamic(params: dict[str, str], body: str, returns: str) -> str:
    return program(function(params, body, returns), before='D = pl.dynamic("D")')


WIDE = {"x": tensor(["D", 32], "FP32"), "v": tensor(["D", 1], "FP32")}
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
    "column-on-the-right-is-row-expand": (
        vector("z = pl.sub(x, c)\nreturn z", c=COLUMN),
        vector("z = pl.sub(c, x)\nreturn z", c=COLUMN),
    ),
    "row-on-the-right-is-col-expand": (
        vector("z = pl.sub(x, r)\nreturn z", r=ROW), vector("z = pl.sub(r, x)\nreturn z", r=ROW),
    ),
    "narrow-left-column-is-expanded-first": (
        vector("z = pl.sub(c, x)\nreturn z", c=COLUMN),
        vector("z = pl.sub(x, c)\nreturn z", c=COLUMN),
    ),
    "narrow-right-column-is-expanded-first": (
        kernel({"x": tensor([16, 32], "BF16"), "c": tensor([16, 1], "BF16")},
               "z = pl.sub(x, c)\nreturn z", tensor([16, 32], "BF16")),
        vector("z = pl.sub(c, x)\nreturn z", c=COLUMN),
    ),
    "narrow-left-column-extents": (
        vector("z = pl.sub(c, x)\nreturn z", c=COLUMN),
        vector("z = pl.sub(x, y)\nreturn z", y=SAME),
    ),
    "narrow-left-row-is-expanded-first": (
        vector("z = pl.sub(r, x)\nreturn z", r=ROW), vector("z = pl.sub(x, r)\nreturn z", r=ROW),
    ),
    "row-expand-in-vec": (vector("z = pl.sub(x, c)\nreturn z", c=COLUMN), EXP),
    "row-expand-extents": (vector("z = pl.sub(x, c)\nreturn z", c=COLUMN), EXP),
    "row-expand-extents-from-the-vector": (vector("z = pl.sub(x, c)\nreturn z", c=COLUMN), EXP),
    "row-expand-extents-of-dynamic-rows": (
        dynamic(WIDE, "z = pl.sub(x, v)\nreturn z", tensor(["D", 32], "FP32")),
        vector("z = pl.sub(x, c)\nreturn z", c=COLUMN),
    ),
    "col-expand-in-vec": (vector("z = pl.sub(x, r)\nreturn z", r=ROW), EXP),
    "col-expand-extents": (vector("z = pl.sub(x, r)\nreturn z", r=ROW), EXP),
    "row-reduction-in-vec": (vector("m = pl.row_max(x)\nreturn m", (16, 1)), EXP),
    "row-reduction-extents": (
        vector("m = pl.row_max(x)\nreturn m", (16, 1)),
        vector("m = pl.col_max(x)\nreturn m", (1, 32)),
    ),
    "col-reduction-in-vec": (vector("m = pl.col_max(x)\nreturn m", (1, 32)), EXP),
    "col-reduction-extents": (
        vector("m = pl.col_max(x)\nreturn m", (1, 32)),
        vector("m = pl.row_max(x)\nreturn m", (16, 1)),
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


# The scratch tile of a row reduction has constant extents.
REFUSED = {"row-reduction-extents-of-dynamic-rows"}


def test_a_reduction_of_dynamic_rows_is_refused() -> None:
    text = dynamic(WIDE, "m = pl.row_max(x)\nreturn m", tensor(["D", 1], "FP32"))
    with pytest.raises(LoweringError, match=r"row_max.*constant.* D"):
        optimize(text)


def test_every_rule_has_a_case() -> None:
    assert set(CASES) | REFUSED == names(VECTOR) | names(EXTENTS)


@pytest.mark.req("C-032", "C-036", "C-172")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])


def test_a_narrow_operand_keeps_its_side() -> None:
    """c - x is not x - c: the executed results of both orders were compared."""
    left, right = CASES["narrow-left-column-is-expanded-first"]
    assert matched(left) != matched(right)
