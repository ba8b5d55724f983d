"""Loops that assemble a returned tensor store its parts where they belong (C-042, C-043)."""

from __future__ import annotations

import pytest

from pypto_egg import lower, parse
from pypto_egg.egraph.direct import direct_outputs

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 64], pl.FP16]) -> T:
        o0 = pl.tensor.create([64, 64], dtype=pl.FP32)
        for i, (o,) in pl.range(0, 64, 32, init_values=(o0,)):
            for j, (p,) in pl.range(0, 64, 32, init_values=(INIT,)):
                x = a[i : i + 32, 0:64]
                w = b[0:64, j : j + 32]
                c = pl.matmul(x, w, out_dtype=pl.FP32)
                q = pl.assemble(p, c, [i, j])
                r = pl.yield_(q)
            s = pl.yield_(r)
        return s
"""


def nest(init: str = "o") -> str:
    tensor = "pl.Tensor[[64, 64], pl.FP32]"
    return HEAD.replace("-> T", f"-> {tensor}").replace("INIT", init)


@pytest.mark.req("C-042", "C-043")
def test_a_nest_of_loops_stores_each_part() -> None:
    function = parse(nest()).functions[0]
    (found,) = direct_outputs(function)
    assert [var.name for var in (found.seed, found.result)] == ["o0", "s"]
    assert {var.name for var in found.carried} == {"o", "p", "r", "s"}
    result = lower(nest(), verify=True)
    assert result.verified
    assert "pl.tile.store(c__tile, [i, j], p)" in result.text
    assert "pl.Mem.Vec" not in result.text


@pytest.mark.req("C-042")
def test_a_nest_that_starts_anew_is_not_stored_part_by_part() -> None:
    """The inner loop fills another tensor each time."""
    assert direct_outputs(parse(nest("o0")).functions[0]) == ()
