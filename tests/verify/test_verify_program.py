"""Whole programs in text form: what a stage accepts and what it refuses, with the user's line."""

from __future__ import annotations

import pytest

from pypto_egg.errors import VerifyError
from pypto_egg.text import parse
from pypto_egg.verify import Property, verify_findings, verify_program

BEFORE = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        y: pl.Tensor[[64], pl.FP32] = pl.add(x, x)
        return y
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        y: pl.Tensor[[64], pl.FP32] = self.kernel(x)
        return y
"""
AFTER = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[64], pl.FP32], ret0_out: pl.Out[pl.Tensor[[64], pl.FP32]]
    ) -> pl.Tensor[[64], pl.FP32]:
        x_tile: pl.Tile[[64], pl.FP32] = pl.load(x, [0], [64])
        y_tile: pl.Tile[[64], pl.FP32] = pl.tile.add(x_tile, x_tile)
        ret0_store: pl.Tensor[[64], pl.FP32] = pl.store(y_tile, [0], ret0_out)
        return ret0_store
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        ret0_out: pl.Tensor[[64], pl.FP32] = pl.tensor.create([64], dtype=pl.FP32)
        y: pl.Tensor[[64], pl.FP32] = self.kernel(x, ret0_out)
        return y
"""
HEADER = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        x: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 64], pl.FP16], n: pl.Scalar[pl.INDEX]
    ) -> pl.Tensor[[64, 64], pl.FP16]:
"""


def kernel(*lines: str) -> str:
    return HEADER + "".join(f"        {line}\n" for line in lines)


@pytest.mark.req("C-009", "C-014")
def test_a_tensor_program_passes_before_lowering_only() -> None:
    program = parse(BEFORE)
    verify_program(program, stage="tensor")
    with pytest.raises(VerifyError, match=r"IncoreTileOps: function 'kernel'.*tensor\.add"):
        verify_program(program, stage="tile")


@pytest.mark.req("C-010", "C-014")
def test_a_tile_program_passes_both_stages() -> None:
    verify_program(parse(AFTER), stage="tensor")
    verify_program(parse(AFTER), stage="tile")


@pytest.mark.req("C-004")
def test_a_name_that_is_assigned_twice_is_not_ssa() -> None:
    text = kernel("y = pl.add(x, x)", "y = pl.mul(y, y)", "return y")
    with pytest.raises(VerifyError, match="SSAForm") as caught:
        verify_program(parse(text, "k.py"))
    assert caught.value.span is not None
    assert str(caught.value.span).startswith("k.py:11:")
    assert "y = pl.mul(y, y)" in str(caught.value)
    verify_program(parse(kernel("y0 = pl.add(x, x)", "y1 = pl.mul(y0, y0)", "return y1")))


@pytest.mark.req("C-004")
def test_a_value_that_leaks_out_of_a_branch_is_not_ssa() -> None:
    text = kernel("if n == 0:", "    y = pl.exp(x)", "else:", "    y = pl.neg(x)", "return y")
    found = [finding.property for finding in verify_findings(parse(text))]
    assert found == [Property.SSA_FORM, Property.USE_BEFORE_DEF]


@pytest.mark.req("C-005")
def test_an_inline_region_is_refused() -> None:
    text = BEFORE.replace(
        "        y: pl.Tensor[[64], pl.FP32] = self.kernel(x)\n",
        "        with pl.at(level=pl.Level.CORE_GROUP):\n            y = pl.add(x, x)\n",
    )
    with pytest.raises(VerifyError, match="SplitIncoreOrch: function 'main'"):
        verify_program(parse(text))


@pytest.mark.req("C-006")
def test_a_nested_call_is_refused() -> None:
    text = kernel("y = pl.add(pl.mul(x, x), x)", "return y")
    with pytest.raises(VerifyError, match=r"pl\.tensor\.mul nested in pl\.tensor\.add"):
        verify_program(parse(text))


@pytest.mark.req("C-126", "C-171")
def test_an_unaligned_cube_tile_is_refused_with_its_line() -> None:
    text = kernel("t = pl.load(x, [0, 0], [60, 64], target_memory=pl.Mem.Mat)", "return x")
    with pytest.raises(VerifyError, match="BoxShape: tile 't' of function 'k' in Mat") as caught:
        verify_program(parse(text), stage="tile")
    assert "60 x 64" in caught.value.message
    assert caught.value.span is not None


@pytest.mark.req("C-004")
def test_carries_and_phis_pass() -> None:
    text = kernel(
        "y = pl.exp(x)",
        "if n % 2 == 0:",
        "    t = pl.neg(y)",
        "    w = pl.yield_(t)",
        "else:",
        "    u = pl.mul(y, y)",
        "    w = pl.yield_(u)",
        "for i, (acc,) in pl.range(n, init_values=(w,)):",
        "    v = pl.add(acc, x)",
        "    res = pl.yield_(v)",
        "return res",
    )
    verify_program(parse(text))
