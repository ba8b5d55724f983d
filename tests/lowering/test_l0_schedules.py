"""Products cut into L0 tiles: the loops that are written, executed and priced."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg import load_target, lower, optimize
from pypto_egg.errors import OptionError
from pypto_egg.extract.cost.model import PIPES, cost_model
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.extract.cost.pypto_l0 import OPEN, choose
from pypto_egg.ir.dtype import BF16, FP32
from pypto_egg.ir.enums import LoopKind
from pypto_egg.ir.stmt import For
from pypto_egg.ir.visit import walk
from pypto_egg.l0 import L0Schedule, schedules

PRODUCT = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def mm(
        self, a: pl.Tensor[{a}, pl.{dtype}], b: pl.Tensor[{b}, pl.{dtype}]
    ) -> pl.Tensor[[{m}, {n}], pl.{out}]:
        c: pl.Tensor[[{m}, {n}], pl.{out}] = pl.matmul(a, b, out_dtype=pl.{out}{flags})
        return c
"""
CHAIN = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def mm(
        self,
        a: pl.Tensor[[{m}, {k}], pl.BF16],
        b: pl.Tensor[[{k}, {n}], pl.BF16],
        w: pl.Tensor[[{n}, 32], pl.BF16],
    ) -> pl.Tensor[[{m}, 32], pl.FP32]:
        c: pl.Tensor[[{m}, {n}], pl.BF16] = pl.matmul(a, b, out_dtype=pl.BF16)
        d: pl.Tensor[[{m}, 32], pl.FP32] = pl.matmul(c, w, out_dtype=pl.FP32)
        return d
"""


class Prefers(Mte2Mad):
    """Makes one schedule free, so that extraction takes it wherever it is legal."""

    name: ClassVar[str] = "prefers"

    def __init__(self, wanted: L0Schedule) -> None:
        self.wanted = wanted

    def price_schedules(self, product, among, target):
        vectors = np.full((len(among), len(PIPES)), 1e6)
        vectors[[schedule == self.wanted for schedule in among]] = 0.0
        return vectors


def text_of(m, n, k, dtype="BF16", out="FP32", a_trans=False, b_trans=False):
    flags = ", a_trans=True" * a_trans + ", b_trans=True" * b_trans
    a, b = ([k, m] if a_trans else [m, k]), ([n, k] if b_trans else [k, n])
    return PRODUCT.format(a=a, b=b, m=m, n=n, dtype=dtype, out=out, flags=flags)


def loops(result):
    (function,) = [f for f in result.program.functions if f.name == "mm"]
    return [stmt for stmt in walk(function.body) if isinstance(stmt, For)]


def calls(result, op):
    return result.text.count(f"pl.tile.{op}(")


REGIMES = [
    L0Schedule(32, 64, 32),
    L0Schedule(48, 48, 48),
    L0Schedule(32, 32, 96, "output", 1, True),
    L0Schedule(32, 32, 96, "output", 1, False),
    L0Schedule(32, 32, 96, "output", 2, True),
    L0Schedule(32, 32, 96, "output", 2, False),
    L0Schedule(48, 32, 96, "A", 1, True),
    L0Schedule(48, 32, 96, "A", 2, True),
    L0Schedule(32, 48, 96, "B", 1, False),
    L0Schedule(32, 48, 96, "B", 2, False),
    L0Schedule(112, 32, 96, "A", 2, True),
    L0Schedule(32, 144, 96, "B", 2, False),
    L0Schedule(112, 144, 64),
    L0Schedule(112, 144, 96),
]


@pytest.mark.parametrize("wanted", REGIMES, ids=str)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("turned", [(False, False), (True, True)], ids=["plain", "transposed"])
@pytest.mark.req("C-132")
def test_every_kind_of_schedule_computes_the_product(wanted, target, turned):
    """100 x 140 is no whole number of any of these tiles, so all tails are peeled."""
    text = text_of(100, 140, 96, a_trans=turned[0], b_trans=turned[1])
    result = optimize(text, target=target, cost_model=Prefers(wanted), verify=True)
    (taken,) = result.l0_schedules("mm")
    assert taken == wanted


@settings(max_examples=25)
@given(st.data())
def test_any_schedule_of_any_product_computes_it(data):
    dtype, out = data.draw(st.sampled_from([("BF16", "FP32"), ("FP32", "FP32"), ("INT8", "INT32")]))
    line = {"BF16": 16, "FP32": 16, "INT8": 32}[dtype]
    m, n = data.draw(st.integers(1, 80)), data.draw(st.integers(2, 80))
    k = line * data.draw(st.integers(1, 5))
    turned = data.draw(st.booleans()), data.draw(st.booleans())
    target = data.draw(st.sampled_from(["a2a3", "a5"]))
    text = text_of(m, n, k, dtype, out, *turned)
    listed = []

    class Draws(Prefers):
        def price_schedules(self, product, among, target):
            if product.leaves:
                listed[:] = [product]
            return super().price_schedules(product, among, target)

    optimize(text, target=target, cost_model=Draws(L0Schedule(0, 0, 0)), verify=False)
    if not listed:
        return
    every = schedules(listed[0], load_target(target))
    wanted = every[data.draw(st.integers(0, len(every) - 1))]
    result = optimize(text, target=target, cost_model=Prefers(wanted), verify=True)
    assert result.l0_schedules("mm") == (wanted,)


@pytest.mark.parametrize("wanted", [*REGIMES[:3], REGIMES[6], REGIMES[9]], ids=str)
def test_a_chained_product_is_put_together_in_mat(wanted):
    text = CHAIN.format(m=100, n=144, k=96)
    result = optimize(text, cost_model=Prefers(wanted), verify=True)
    assert wanted in result.l0_schedules("mm")
    assert calls(result, "assemble") >= 2


BIASED = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def mm(
        self,
        a: pl.Tensor[[60, {k}], pl.BF16],
        b: pl.Tensor[[{k}, 96], pl.BF16],
        bias: pl.Tensor[[1, 96], pl.FP32],
    ) -> pl.Tensor[[60, 96], pl.FP32]:
        c: pl.Tensor[[60, 96], pl.FP32] = pl.matmul(a, b, out_dtype=pl.FP32)
        d: pl.Tensor[[60, 96], pl.FP32] = pl.add(c, bias)
        return d
"""


@pytest.mark.parametrize(("k", "block"), [(64, 64), (128, 64), (144, 64), (256, 64), (272, 48)])
def test_a_bias_starts_the_sum_over_blocks_of_k(k, block):
    """One block, two, a tail, a pipeline after the first block, and a pipeline with a tail."""
    wanted = L0Schedule(64, 96, block)
    result = optimize(BIASED.format(k=k), cost_model=Prefers(wanted), verify=True)
    assert result.l0_schedules("mm") == (wanted,)
    assert calls(result, "matmul_bias") == 1


def test_a_result_larger_than_l0c_needs_no_blocks_of_global_memory():
    """256 x 256 FP32 is twice the L0C of a2a3; both operands fit in Mat and are loaded once."""
    result = optimize(text_of(256, 256, 256), verify=True)
    assert calls(result, "load") == 2
    assert len(loops(result)) == 2


def test_two_accumulators_take_turns_in_a_pipeline():
    wanted = L0Schedule(32, 32, 96, "A", 2, True)
    outer, inner = loops(optimize(text_of(64, 64, 96), cost_model=Prefers(wanted), verify=True))
    assert outer.kind is LoopKind.range
    assert inner.kind is LoopKind.pipeline
    assert dict(inner.attrs) == {"stage": 2}


def test_the_blocks_of_k_are_a_pipeline_of_two_stages():
    wanted = L0Schedule(64, 64, 32)
    (only,) = loops(optimize(text_of(64, 64, 96), cost_model=Prefers(wanted), verify=True))
    assert only.kind is LoopKind.pipeline
    assert dict(only.attrs) == {"stage": 2}


@pytest.mark.parametrize("shape", [(256, 256, 256), (100, 256, 512), (16, 256, 80), (300, 200, 64)])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_price_of_a_schedule_is_the_price_of_its_loops(shape, target):
    result = optimize(text_of(*shape), target=target, verify=False)
    (function,) = result.program.functions
    chip = load_target(target)
    emitted = cost_model("mte2_mad").kernel_cost(function, chip)(chip)
    assert emitted["cycles"] == pytest.approx(result.cycles)


class Apart(Mte2Mad):
    """Tells apart the operations that a sum begins with, and those that take its result away."""

    name: ClassVar[str] = "apart"
    times: ClassVar[dict[str, float]] = {
        "tile.matmul": 1.5, "tile.matmul_acc": 2.0, "tile.matmul_bias": 3.0,
        "tile.store": 0.75, "tile.assemble": 5.0,
    }  # fmt: skip

    def price(self, op, target):
        bits = op.result.dtype.bits / 32 if op.op == "tile.store" else 1.0
        atomic = 7.0 if op.kwargs.get("atomic") else 1.0
        return self.times.get(op.op, 1.0) * bits * atomic * super().price(op, target)


SUM = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def mm(
        self,
        a: pl.Tensor[[48, 256], pl.BF16],
        b: pl.Tensor[[256, 48], pl.BF16],
        o: pl.InOut[pl.Tensor[[48, 48], pl.FP32]],
    ) -> pl.Tensor[[48, 48], pl.FP32]:
        z = pl.create_tensor([48, 48], pl.FP32)
        for k, (acc,) in pl.range(0, 256, 128, init_values=(z,)):
            ak = a[:, k : k + 128]
            bk = b[k : k + 128, :]
            step = pl.matmul_acc(acc, ak, bk)
            y = pl.yield_(step)
        r = pl.assemble(o, y, [0, 0], atomic=pl.AtomicType.Add)
        return r
"""
ATOMIC = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def mm(
        self,
        a: pl.Tensor[[256, 64], pl.BF16],
        b: pl.Tensor[[64, 256], pl.BF16],
        o: pl.InOut[pl.Tensor[[256, 256], pl.FP32]],
    ) -> pl.Tensor[[256, 256], pl.FP32]:
        y = pl.matmul(a, b, out_dtype=pl.FP32)
        r = pl.assemble(o, y, [0, 0], atomic=pl.AtomicType.Add)
        return r
"""


DYNAMIC = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def mm(
        self,
        a: pl.Tensor[[64, 32], pl.BF16],
        b: pl.Tensor[[32, 48], pl.BF16],
        n: pl.Scalar[pl.INDEX],
        o: pl.InOut[pl.Tensor[[64, 48], pl.FP32]],
    ) -> pl.Tensor[[64, 48], pl.FP32]:
        x = pl.slice(a, [64, 32], [0, 0], valid_shape=[n, 32])
        y = pl.matmul(x, b, out_dtype=pl.FP32)
        r = pl.assemble(o, y, [0, 0])
        return r
"""


@pytest.mark.parametrize("model", [Mte2Mad(), Apart()], ids=lambda model: model.name)
def test_columns_are_known_where_rows_are_not(model):
    """48 columns are computed in a box of 64, which is cheaper to drain."""
    result, chip = optimize(DYNAMIC, cost_model=model, verify=True), load_target("a2a3")
    emitted = model.kernel_cost(result.program.function("mm"), chip)(chip)
    assert "[64, 64], pl.FP32, pl.Mem.Acc, pl.TileView(valid_shape=[n, 48]" in result.text
    assert emitted["cycles"] == pytest.approx(result.cycles)


@pytest.mark.parametrize(
    "text",
    [
        text_of(256, 256, 256),
        text_of(256, 256, 64, out="BF16"),
        BIASED.format(k=144),
        CHAIN.format(m=256, n=256, k=64),
        SUM,
        ATOMIC,
    ],
    ids=["stored", "stored and rounded", "bias", "chain", "sum in a loop", "atomic"],
)
def test_an_own_model_prices_the_instructions_that_are_emitted(text):
    result, chip = optimize(text, cost_model=Apart(), verify=False), load_target("a2a3")
    emitted = Apart().kernel_cost(result.program.function("mm"), chip)(chip)
    assert result.l0_schedules("mm")
    assert emitted["cycles"] == pytest.approx(result.cycles)


@pytest.mark.parametrize("model", ["mte2_mad", "pypto_l0", "roofline"])
@pytest.mark.parametrize(
    "shape", [(256, 256, 256), (100, 256, 512), (96, 160, 240), (320, 320, 64)]
)
def test_it_is_never_dearer_than_what_pypto_would_choose(shape, model):
    ours = optimize(text_of(*shape), cost_model=model, verify=False)
    theirs = optimize(text_of(*shape), cost_model=model, l0="pypto", verify=False)
    assert ours.cycles <= theirs.cycles


@pytest.mark.parametrize("shape", [(256, 256, 256), (96, 160, 240), (16, 512, 128)])
def test_what_pypto_would_choose_runs_as_well(shape):
    result = optimize(text_of(*shape), l0="pypto", verify=True)
    assert result.l0_schedules("mm")


@pytest.mark.parametrize("shape", [(112, 256, 512), (64, 64, 256), (32, 256, 512), (512, 64, 64)])
def test_the_reference_takes_what_pyptos_chooser_takes(shape):
    """A result that the chooser makes as one tile is not cut into a grid, nor the other way."""
    theirs = choose(*shape, BF16, BF16, FP32, load_target("a2a3"), gates=OPEN)
    reference = optimize(text_of(*shape), verify=False).baseline
    (taken,) = reference.l0_schedules("mm")
    assert (taken.m, taken.n, taken.k) == (theirs.m, theirs.n, theirs.k)
    assert (taken.stationary, taken.accumulators) == (theirs.stationary, theirs.accumulators)


def test_a_whole_result_is_not_called_pyptos_choice_where_that_is_a_grid():
    result = optimize(text_of(32, 256, 512), verify=False)
    (taken,), (theirs,) = result.l0_schedules("mm"), result.baseline.l0_schedules("mm")
    assert (taken.m, taken.n) == (32, 256)
    assert (theirs.m, theirs.n) == (32, 32)
    (decision,) = [d for d in result.alternatives if d.value == "L0 tiles of c"]
    assert not any("PyPTO" in option.why for option in decision.options)
    assert f"L0 tiles of a @ b: {theirs} -> {taken}" in result.explain()


def test_products_can_be_left_to_pypto():
    result = optimize(text_of(64, 128, 256), l0="leave", verify=True)
    assert result.l0_schedules("mm") == ()
    assert "tile.extract" not in result.text
    assert calls(lower(text_of(64, 128, 256), verify=False), "extract") == 0


def test_other_modes_are_refused_by_name():
    with pytest.raises(OptionError, match="l0 is 'fast'"):
        optimize(text_of(64, 128, 256), l0="fast")
