"""Windows with gaps between their rows, given to functions that read them under another shape."""

from __future__ import annotations

import numpy as np
import pytest

from pypto_egg import lower, optimize
from pypto_egg.errors import LoweringError
from pypto_egg.interp import run

HEAD = "import pypto.language as pl\n\n@pl.program\nclass P:\n"
FUNCTION = (
    "    @pl.function(type=pl.FunctionType.{kind})\n    def {name}(self, {params}) -> {ret}:\n"
)
T = "pl.Tensor[{}, pl.FP32]"


def function(kind: str, name: str, params: str, ret: list[int], body: str) -> str:
    head = FUNCTION.format(kind=kind, name=name, params=params, ret=T.format(ret))
    return head + "".join(f"        {line}\n" for line in body.splitlines())


RESHAPES = function("InCore", "k", f"x: {T.format([16, 32])}", [8, 64],
                    "r = pl.reshape(x, [8, 64])\ne = pl.neg(r)\nreturn e")  # fmt: skip
WRAPPER = function("Spmd", "w", f"p: {T.format([16, 32])}", [8, 64], "r = self.k(p)\nreturn r")


def program(window: str, callee: str, shape: list[int]) -> str:
    body = f"{window}\nr = self.{callee}(a)\nreturn r"
    main = function("Orchestration", "main", f"t: {T.format(shape)}", [8, 64], body)
    return HEAD + RESHAPES + WRAPPER + main


@pytest.mark.parametrize("callee", ["k", "w"])
@pytest.mark.parametrize(
    "window",
    [
        "a = pl.slice(t, [16, 32], [0, 32])",
        "b = pl.slice(t, [16, 64], [0, 0])\na = pl.slice(b, [16, 32], [0, 0])",
        "b = pl.slice(t, [16, 32], [0, 32])\na = b",
    ],
)
def test_columns_of_a_wider_tensor_are_refused(window: str, callee: str) -> None:
    for make in (lower, optimize):
        with pytest.raises(LoweringError, match=r"'k' reads its parameter 'x' in another shape"):
            make(program(window, callee, [16, 64]))


@pytest.mark.parametrize("callee", ["k", "w"])
@pytest.mark.parametrize(
    ("window", "shape"),
    [
        ("a = pl.slice(t, [16, 32], [8, 0])", [32, 32]),
        ("a = t[1]", [2, 16, 32]),
        ("a = t", [16, 32]),
    ],
)
def test_whole_rows_are_one_run(window: str, shape: list[int], callee: str) -> None:
    text = program(window, callee, shape)
    given = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    taken = {(32, 32): given[8:24], (2, 16, 32): given[1:], (16, 32): given}[tuple(shape)]
    for make in (lower, optimize):
        result = make(text, verify=True)
        assert result.verified
        (found,) = run(result.program, {"t": given.copy()}).returns
        assert np.array_equal(found, -taken.reshape(8, 64))


def test_a_function_that_takes_the_window_as_it_is() -> None:
    inner = RESHAPES.replace("r = pl.reshape(x, [8, 64])\n        e = pl.neg(r)", "e = pl.neg(x)")
    text = program("a = pl.slice(t, [16, 32], [0, 32])", "k", [16, 64]).replace(RESHAPES, inner)
    text = text.replace(T.format([8, 64]), T.format([16, 32]))
    assert lower(text, verify=True).verified
