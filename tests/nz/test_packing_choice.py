"""Which weights are packed: the best choice of all, found with few lowerings."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from packing_programs import advice_for, function, product, program, typed

from pypto_egg import optimize
from pypto_egg.errors import PyptoEggError
from pypto_egg.extract.cost.mte2_mad import Mte2Mad

TWO_PRODUCTS = program(
    function(
        "k",
        f"x: {typed((32, 128), 'FP16')}, w: {typed((128, 64), 'FP16')}, "
        f"v: {typed((64, 128), 'FP16')}, u: {typed((64, 64), 'FP16')}",
        [
            "a = pl.matmul(x, w, out_dtype=pl.FP32)",
            "b = pl.matmul(x, v, b_trans=True, out_dtype=pl.FP32)",
            "c = pl.add(a, b)",
            "d = pl.cast(c, target_type=pl.FP16, mode='rint')",
            "e = pl.matmul(d, u, out_dtype=pl.FP32)",
            "return e",
        ],
        typed((32, 64), "FP32"),
    )
)
# Rows of v are no whole lines, so it has no blocked form.
ONE_ILLEGAL = program(
    function(
        "k",
        f"x: {typed((32, 128), 'FP16')}, w: {typed((128, 64), 'FP16')}, "
        f"v: {typed((128, 40), 'FP16')}",
        [
            "a = pl.matmul(x, w, out_dtype=pl.FP32)",
            "b = pl.matmul(x, v, out_dtype=pl.FP32)",
            "return a, b",
        ],
        f"tuple[{typed((32, 64), 'FP32')}, {typed((32, 40), 'FP32')}]",
    )
)
# One weight in a loop, another one outside of it, both at several places.
LOOP = program(
    function(
        "k",
        f"x: {typed((16, 256), 'INT8')}, w: {typed((2, 256, 64), 'INT8')}, "
        f"v: {typed((256, 64), 'INT8')}, o: pl.Out[{typed((16, 128), 'INT32')}]",
        [
            "for i, (p,) in pl.range(0, 2, 1, init_values=(o,)):",
            "    wt = w[i, 0:256, 0:64]",
            "    a = pl.matmul(x, wt, out_dtype=pl.INT32)",
            "    vt = v[0:256, 0:64]",
            "    b = pl.matmul(x, vt, out_dtype=pl.INT32)",
            "    c = pl.add(a, b)",
            "    q = pl.assemble(p, c, [0, i * 64])",
            "    r = pl.yield_(q)",
            "return r",
        ],
        typed((16, 128), "INT32"),
    )
)


def in_nz_order(text: str, names: tuple[str, ...]) -> str:
    """The program with parameters annotated by hand."""
    for name in names:
        tensor = rf"\b{name}: pl\.Tensor\[(\[[^\]]*\], pl\.\w+)\]"
        text = re.sub(tensor, rf"{name}: pl.Tensor[\1, pl.NZ]", text)
    return text


@pytest.mark.req("N-004")
@pytest.mark.parametrize(
    ("text", "weights", "model"),
    [
        (TWO_PRODUCTS, "wvu", "mte2_mad"),
        (ONE_ILLEGAL, "wv", "mte2_mad"),
        (ONE_ILLEGAL, "wv", "roofline"),
        (LOOP, "wv", "mte2_mad"),
    ],
)
def test_no_other_set_of_weights_is_cheaper(text, weights, model):
    """Every set is lowered by hand; those without a blocked form drop out."""
    options = {"cost_model": model, "verify": False}
    cycles = {}
    for count in range(len(weights) + 1):
        for chosen in combinations(weights, count):
            try:
                cycles[chosen] = optimize(in_nz_order(text, chosen), **options).cycles
            except PyptoEggError:
                continue
    packed = optimize(text, nz="pack", **options)
    assert packed.cycles == pytest.approx(min(cycles.values()), rel=1e-9)
    taken = tuple(item.parameter for item in packed.packing)
    assert cycles[tuple(w for w in weights if w in taken)] == pytest.approx(packed.cycles)


@pytest.mark.req("N-004")
@pytest.mark.parametrize("text", [TWO_PRODUCTS, LOOP])
def test_the_advice_is_the_difference_of_two_programs(text):
    suggested = optimize(text, nz="suggest", verify=False)
    for name in "wv":
        by_hand = optimize(in_nz_order(text, (name,)), verify=False)
        advice = advice_for(suggested, f"{name} of k")
        assert advice.packed_cycles == pytest.approx(by_hand.cycles)
        assert advice.saved == pytest.approx(suggested.cycles - by_hand.cycles)


class Counting(Mte2Mad):
    """Prices as its base does, and counts how often it is asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked = 0

    def price(self, op, target):
        self.asked += 1
        return super().price(op, target)


def kernels(count: int) -> str:
    return program(*(product("FP16", m=16, k=64, n=32 * (i % 2 + 1), name=f"k{i}")
                     for i in range(count)))  # fmt: skip


@pytest.mark.parametrize("mode", ["suggest", "pack"])
def test_an_operand_is_weighed_in_the_kernels_that_name_it(mode):
    """So the work grows with the number of kernels, not with its square."""
    asked = []
    for count in (2, 6):
        model = Counting()
        result = optimize(kernels(count), cost_model=model, nz=mode, verify=False)
        assert len(result.nz_advice) == 2 * count
        asked.append(model.asked)
    assert asked[1] < 3 * asked[0] * 1.2


def test_kernels_that_are_not_weighed_keep_their_account():
    """A packed program's account is still of each of its kernels, in order."""
    plain = optimize(kernels(3), verify=False)
    packed = optimize(kernels(3), nz="pack", verify=True)
    assert packed.verified
    assert [report.name for report in packed.functions] == ["k0", "k1", "k2"]
    assert all(a.cost.total > b.cost.total
               for a, b in zip(plain.functions, packed.functions, strict=True))  # fmt: skip
