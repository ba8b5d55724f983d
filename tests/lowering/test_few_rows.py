"""Values on chip of fewer rows than a reduction's column of whole blocks has."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import both, kernel, ops, tensor

from pypto_egg.interp import run

TARGETS = pytest.mark.parametrize("target", ["a2a3", "a5"])

CASES = {
    "the greatest of all": ("m = pl.row_max(x)\nv = pl.reshape(m, [1, 16])\nr = pl.row_max(v)", 1),
    "rows of eight": ("m = pl.row_max(x)\nv = pl.reshape(m, [2, 8])\nr = pl.row_max(v)", 2),
    "a window": ("m = pl.abs(x)\nn = pl.neg(m)\nv = n[9:12, 8:40]\nr = pl.row_max(v)", 3),
}  # fmt: skip


def truth(name: str, x: np.ndarray) -> np.ndarray:
    if name == "a window":
        return -np.abs(x[9:12, 8:40]).min(1, keepdims=True)
    return x.max(1).reshape(CASES[name][1], -1).max(1, keepdims=True)


@TARGETS
@pytest.mark.parametrize("name", CASES)
def test_what_is_filled_up_is_no_part_of_the_result(name: str, target: str) -> None:
    """All numbers are negative: a row or column of zeros that counted would be the greatest."""
    body, rows = CASES[name]
    text = kernel({"x": tensor([16, 64], "FP32")}, f"{body}\nreturn r", tensor([rows, 1], "FP32"))
    x = -1 - np.random.default_rng(5).random((16, 64), np.float32)
    for result in both(text, target):
        assert "tile.fillpad_expand" in ops(result)
        (found,) = run(result.program, {"x": x}).returns
        assert np.array_equal(found, truth(name, x))


def test_a_tile_of_enough_rows_is_not_copied() -> None:
    body = "m = pl.row_max(x)\nv = pl.reshape(m, [8, 8])\nr = pl.row_max(v)\nreturn r"
    for result in both(kernel({"x": tensor([64, 64], "FP32")}, body, tensor([8, 1], "FP32"))):
        assert "tile.fillpad_expand" not in ops(result)
