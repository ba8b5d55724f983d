"""Which parameters get the same memory at some call."""

from __future__ import annotations

import pytest

from pypto_egg.analysis.overlaps import overlapping_params
from pypto_egg.text import parse

HEAD = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[8, 32], pl.FP32], y: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]):
        a = pl.exp(x)
        o = pl.assemble(y, a, [0, 0])
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, t: pl.InOut[pl.Tensor[[64, 64], pl.FP32]],
             u: pl.InOut[pl.Tensor[[8, 32], pl.FP32]], v: pl.InOut[pl.Tensor[[8, 32], pl.FP32]],
             n: pl.Scalar[pl.INDEX]):
"""
ONE = "a = pl.slice(t, [8, 32], [0, 0])\n"


def pairs(body: str) -> set[tuple[int, int]]:
    lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
    return set(overlapping_params(parse(HEAD + lines)).get("k", ()))


@pytest.mark.parametrize(
    ("body", "meet"),
    [
        ("self.k(u, v)", False),
        ("self.k(u, u)", True),
        ("w = u\nself.k(w, u)", True),
        (f"{ONE}b = pl.slice(t, [8, 32], [8, 0])\nself.k(a, b)", False),
        (f"{ONE}b = pl.slice(t, [8, 32], [0, 32])\nself.k(a, b)", False),
        (f"{ONE}b = pl.slice(t, [8, 32], [7, 31])\nself.k(a, b)", True),
        (f"{ONE}b = pl.slice(t, [8, 32], [n, 0])\nself.k(a, b)", True),
        ("a = pl.slice(t, [8, 32], [n, 0])\nb = pl.slice(t, [8, 32], [n + 8, 0])\nself.k(a, b)",
         False),
        ("w = pl.slice(t, [16, 32], [16, 0])\na = pl.slice(w, [8, 32], [0, 0])\n"
         "b = pl.slice(t, [8, 32], [24, 0])\nself.k(a, b)", False),
        ("w = pl.slice(t, [16, 32], [16, 0])\na = pl.slice(w, [8, 32], [8, 0])\n"
         "b = pl.slice(t, [8, 32], [24, 0])\nself.k(a, b)", True),
        ("for i, (c,) in pl.range(2, init_values=(u,)):\n    self.k(c, u)\n    r = pl.yield_(c)",
         True),
        ("for i, (c,) in pl.range(2, init_values=(u,)):\n    self.k(v, c)\n    r = pl.yield_(u)",
         False),
        ("w = pl.create_tensor([8, 32], pl.FP32)\nself.k(w, u)", False),
    ],
)  # fmt: skip
def test_arguments_of_a_call(body: str, meet: bool) -> None:
    assert pairs(body) == ({(0, 1)} if meet else set())


def test_any_call_will_do() -> None:
    assert pairs("self.k(u, v)\nself.k(v, v)") == {(0, 1)}
