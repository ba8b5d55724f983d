"""Versions of a function that are lowered as a whole are told of, with what each costs."""

from __future__ import annotations

import pytest
from kernels import both, kernel, tensor

from pypto_egg.lowering import Decision, Lowering

ASSEMBLED = """
z = pl.create_tensor([{rows}, 32], pl.FP32)
for i, (acc,) in pl.range(4, init_values=(z,)):
    t = pl.slice(x, [{part}, 32], [{part} * i, 0])
    e = pl.exp(t)
    a = pl.assemble(acc, e, [{part} * i, 0])
    r = pl.yield_(a)
return r"""


def assembled(rows: int) -> str:
    tall = tensor([rows, 32], "FP32")
    return kernel({"x": tall}, ASSEMBLED.format(rows=rows, part=rows // 4), tall)


def about(result: Lowering, value: str) -> list[Decision]:
    return [d for d in result.functions[0].decisions if d.value == value]


@pytest.mark.req("C-042")
def test_both_ways_of_storing_have_their_costs() -> None:
    reference, best = both(assembled(64))
    assert about(reference, "stores of r") == []
    (decision,) = about(best, "stores of r")
    chosen, other = decision.options
    assert (chosen.what, chosen.status) == ("each part stored in the loop", "chosen")
    assert (other.what, other.status) == ("assembled on chip and stored once", "dearer")
    assert chosen.total == best.functions[0].cycles
    assert other.total is not None
    assert other.total > chosen.total
    assert chosen.cost.total < other.cost.total
    assert "stores of r" in best.explain()


def test_what_does_not_fit_on_chip_says_so() -> None:
    """4096 rows of 32 FP32 are 524288 bytes, Vec has 188416."""
    _, best = both(assembled(4096))
    (decision,) = about(best, "stores of r")
    _, other = decision.options
    assert (other.status, other.total) == ("illegal", None)
    assert other.why.startswith("E501")


def test_blocks_of_a_product_that_is_too_large() -> None:
    params = {"a": tensor([512, 256], "FP16"), "b": tensor([256, 512], "FP16")}
    body = "c = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn c"
    reference, best = both(kernel(params, body, tensor([512, 512], "FP32")), l0="leave")
    (first,) = about(reference, "blocks of c")
    assert len(first.options) == 1, "the reference takes the first that fits"
    (decision,) = about(best, "blocks of c")
    assert len(decision.options) == 4
    assert [o.status for o in decision.options].count("chosen") == 1
    totals = [o.total for o in decision.options if o.total is not None]
    assert decision.options[0].total == min(totals) == best.functions[0].cycles
    assert all("in steps of K" in o.what for o in decision.options)
