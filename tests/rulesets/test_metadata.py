"""Views of values on chip."""

from __future__ import annotations

import pytest
from firing import EXP, MATMUL, assert_fires, assert_silent, vector
from kernels import tensor

SLICE = vector("e = pl.exp(x)\ns = pl.slice(e, [8, 16], [8, 16])\nreturn s", (8, 16))
GM_SLICE = vector("s = pl.slice(x, [8, 16], [8, 16])\ne = pl.exp(s)\nreturn e", (8, 16))
RESHAPE = vector("e = pl.exp(x)\ns = pl.reshape(e, [8, 64])\nreturn s", (8, 64))
GM_RESHAPE = vector("s = pl.reshape(x, [8, 64])\ne = pl.exp(s)\nreturn e", (8, 64))
VALID = vector("e = pl.exp(x)\ns = pl.set_validshape(e, 9, 20)\nt = pl.abs(s)\nreturn t")
GM_VALID = vector("s = pl.set_validshape(x, 9, 20)\nt = pl.abs(s)\nreturn t")
ASSEMBLE = vector("e = pl.exp(x)\ns = pl.assemble(e, p, [8, 0])\nt = pl.abs(s)\nreturn t",
                  p=tensor([8, 32], "FP32"))  # fmt: skip
GM_ASSEMBLE = vector("e = pl.exp(x)\ns = pl.assemble(d, e, [0, 0])\nreturn s",
                     d="pl.Out[" + tensor([16, 32], "FP32") + "]")  # fmt: skip
WRITE = vector("e = pl.exp(x)\npl.tensor.write(e, [2, 3], 1.0)\nt = pl.abs(e)\nreturn t")
GM_WRITE = vector("e = pl.exp(x)\npl.tensor.write(d, [2, 3], 1.0)\nreturn e",
                  d="pl.Out[" + tensor([16, 32], "FP32") + "]")  # fmt: skip
FEW = vector("e = pl.exp(x)\nm = pl.row_max(e)\nv = pl.reshape(m, [2, 8])\n"
             "r = pl.row_max(v)\nreturn r", (2, 1))  # fmt: skip
ENOUGH = vector("e = pl.exp(x)\nv = pl.reshape(e, [8, 64])\nr = pl.row_max(v)\nreturn r", (8, 1))
FEW_SLICED = vector("e = pl.exp(x)\nv = e[8:12, 16:32]\nr = pl.row_max(v)\nreturn r", (4, 1))
ENOUGH_SLICED = vector("e = pl.exp(x)\nv = e[8:16, 16:32]\nr = pl.row_max(v)\nreturn r", (8, 1))

CASES = {
    "slice-of-a-vec-tile": (SLICE, GM_SLICE),
    "slice-extents": (SLICE, GM_SLICE),
    "reshape-of-a-vec-tile": (RESHAPE, GM_RESHAPE),
    "reshape-of-a-copy-of-a-vec-tile": (RESHAPE, GM_RESHAPE),
    "reshape-in-a-tile-of-more-rows": (FEW, ENOUGH),
    "slice-in-a-tile-of-more-rows": (FEW_SLICED, ENOUGH_SLICED),
    "reshape-extents": (RESHAPE, GM_RESHAPE),
    "set-validshape-of-a-vec-tile": (VALID, GM_VALID),
    "set-validshape-extents": (VALID, GM_VALID),
    "assemble-into-a-vec-tile": (ASSEMBLE, GM_ASSEMBLE),
    "assemble-into-a-copy-of-a-vec-tile": (ASSEMBLE, MATMUL),
    "assemble-extents": (ASSEMBLE, EXP),
    "scalar-write-into-a-vec-tile": (WRITE, GM_WRITE),
    "scalar-write-into-a-copy-of-a-vec-tile": (WRITE, GM_WRITE),
    "scalar-write-extents": (WRITE, GM_WRITE),
}


@pytest.mark.req("C-016", "C-020")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.req("C-016", "C-020")
@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    """Views of global memory are windows of loads, never tile ops."""
    assert_silent(rule, CASES[rule][1])
