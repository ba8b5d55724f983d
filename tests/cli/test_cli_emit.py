"""`pypto-egg emit`: the tile program alone, in either form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pypto_egg as engine
from pypto_egg.emit.pto_text import pto_text

Command = Callable[..., Any]

PRODUCT = """import pypto.language as pl

@pl.program
class Product:
    @pl.function(type=pl.FunctionType.InCore)
    def multiply(
        self, a: pl.Tensor[[64, 64], pl.FP16], w: pl.Tensor[[64, 32], pl.FP16, pl.NZ]
    ) -> pl.Tensor[[64, 32], pl.FP32]:
        c = pl.matmul(a, w, out_dtype=pl.FP32)
        return c
"""


def test_both_forms_are_those_of_the_optimized_program(pypto_egg: Command) -> None:
    lowering = engine.optimize(PRODUCT)
    plain = pypto_egg("emit", "-", stdin=PRODUCT)
    assert (plain.code, plain.out, plain.err) == (0, lowering.text, "")
    pto = pypto_egg("emit", "-", "--form", "pto", stdin=PRODUCT)
    assert (pto.code, pto.out, pto.err) == (0, pto_text(lowering.program), "")


@pytest.mark.req("N-143")
def test_an_old_assembler_is_an_error_of_the_input(pypto_egg: Command) -> None:
    done = pypto_egg("emit", "-", "--form", "pto", "--assembler", "0.60", stdin=PRODUCT)
    assert (done.code, done.out) == (1, "")
    assert "E410" in done.err
    assert "'w' of 'multiply'" in done.err
