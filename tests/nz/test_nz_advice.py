"""What is said of an operand: whether packing it would pay, and from how many uses on."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packing_programs import NUMPY, advice_for, function, grouped, product, program, stays_nd, typed

from pypto_egg import optimize
from pypto_egg.extract.cost.model import cost_model
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.ir.dtype import DTYPES
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.nz.layout import blocked_shape
from pypto_egg.nz.plan import PackedParameter
from pypto_egg.packing import pack_cost
from pypto_egg.target import load_target


@pytest.mark.req("N-004")
def test_suggestions_change_nothing():
    text = program(product())
    plain, result = optimize(text), optimize(text, nz="suggest")
    assert result.text == plain.text
    assert result.packing == plain.packing == ()
    assert plain.nz_advice == ()
    assert [item.operands for item in result.nz_advice] == [("x of k",), ("w of k",)]
    assert not any(item.packed or item.refused for item in result.nz_advice)


@pytest.mark.req("N-004")
def test_what_is_promised_is_what_packing_saves():
    text = program(product("INT8", m=32, k=512, n=256, trans=True))
    found = advice_for(optimize(text, nz="suggest"), "w of k")
    packed = optimize(text, nz="pack")
    assert found.cycles == optimize(text).cycles
    assert found.packed_cycles == packed.cycles
    assert found.saved == found.cycles - packed.cycles > 0
    assert found.uses == ceil(found.pack_cycles / found.saved)
    assert (found.uses - 1) * found.saved < found.pack_cycles <= found.uses * found.saved


def test_runs_are_counted_with_the_loops_around_them():
    found = advice_for(optimize(grouped("INT8"), nz="suggest"), "w of k")
    # 4 blocks of N, 4 of K: [32, 64] by rows is 32 runs of 64 bytes, in NZ order two column
    # blocks of 32 rows.
    assert (found.rows.runs, found.rows.size_bytes) == (16 * 32, 16 * 32 * 64)
    assert (found.fractals.runs, found.fractals.run_bytes) == (16 * 2, 32 * 32)


def weight_advice(rows, cols, dtype="BF16"):
    """The advice for a [rows, cols] weight that is loaded whole."""
    text = program(product(dtype, m=16, k=cols, n=rows, trans=True))
    return advice_for(optimize(text, nz="suggest", verify=False), "w of k")


@pytest.mark.req("N-004")
def test_the_penalty_grows_as_rows_get_shorter():
    """Equal bytes, ever shorter row runs (pypto#2309)."""
    windows = [(64, 512), (128, 256), (256, 128), (512, 64), (1024, 32)]
    saved = [weight_advice(rows, cols).saved for rows, cols in windows]
    assert all(a < b for a, b in pairwise(saved)), saved
    assert saved[0] > 0


@pytest.mark.req("N-004")
@pytest.mark.parametrize("dtype", NUMPY)
def test_runs_of_32_bytes_are_dearer_than_fractals(dtype):
    """A window one column block wide: each row is one line of 32 bytes."""
    line = 32 // np.dtype(NUMPY[dtype]).itemsize
    found = weight_advice(128, line, dtype)
    assert (found.rows.runs, found.rows.run_bytes) == (128, 32)
    assert (found.fractals.runs, found.fractals.run_bytes) == (1, 128 * 32)
    assert found.saved > 0


@pytest.mark.req("N-004")
@pytest.mark.parametrize(("rows", "cols"), [(16, 1024), (32, 2048), (64, 1024)])
def test_wide_windows_do_not_lose(rows, cols):
    """More column blocks than rows: longer runs by rows, but every line must be put in place."""
    text = program(product("BF16", m=16, k=rows, n=cols))
    result = optimize(text, nz="pack", verify=False)
    assert [item.parameter for item in result.packing] == ["w"]
    assert advice_for(result, "w of k").saved >= 0


def test_a_bias_is_no_operand_to_pack():
    text = program(
        function(
            "k",
            f"x: {typed((32, 64), 'FP16')}, w: {typed((64, 64), 'FP16')}, "
            f"b: {typed((1, 64), 'FP32')}",
            ["y = pl.matmul(x, w, out_dtype=pl.FP32)", "z = pl.col_expand_add(y, b)", "return z"],
            typed((32, 64), "FP32"),
        )
    )
    result = optimize(text, nz="suggest")
    assert [item.operands for item in result.nz_advice] == [("x of k",), ("w of k",)]


class Fractals(Mte2Mad):
    """A model in which fractals are dear to load."""

    name = "dear_fractals"

    def price(self, op, target):
        cost = super().price(op, target)
        dear = op.op == "tile.load" and op.operands[0].layout is TensorLayout.NZ
        return 2 * cost if dear else cost


def test_what_is_dearer_by_an_own_model_stays_nd():
    stays_nd(program(product()), "w of k", "NZ order is dearer", cost_model=Fractals())


@pytest.mark.req("N-004")
def test_the_tile_of_the_report():
    """int8 256 x 512 of [2048, 4096] (pypto#2533)."""
    text = program(
        function(
            "k",
            f"x: {typed((16, 512), 'INT8')}, w: {typed((2048, 4096), 'INT8')}",
            [
                "wt = w[256:512, 1024:1536]",
                "y = pl.matmul(x, wt, b_trans=True, out_dtype=pl.INT32)",
                "return y",
            ],
            typed((16, 256), "INT32"),
        )
    )
    found = advice_for(optimize(text, nz="suggest", verify=False), "w of k")
    assert (found.rows.runs, found.rows.run_bytes) == (256, 512)
    assert (found.fractals.runs, found.fractals.run_bytes) == (16, 256 * 32)
    assert found.saved > 0
    assert found.uses > 1


def test_a_tensor_that_is_nz_already_needs_no_advice():
    text = (
        program(product())
        .replace("w: pl.Tensor[[128, 64], pl.FP16]", "w: NZ")
        .replace("w: NZ", "w: pl.Tensor[[128, 64], pl.FP16, pl.NZ]")
    )
    result = optimize(text, nz="suggest")
    assert [item.operands for item in result.nz_advice] == [("x of k",)]


def test_a_program_without_products_has_no_advice():
    text = program(
        function(
            "k", f"x: {typed((64, 64), 'FP32')}", ["y = pl.add(x, 1.0)", "return y"],
            typed((64, 64), "FP32"),
        )
    )  # fmt: skip
    for mode in ("suggest", "pack"):
        result = optimize(text, nz=mode)
        assert (result.nz_advice, result.packing) == ((), ())
        assert result.text == optimize(text).text


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(NUMPY)),
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(1, 20),
    st.integers(1, 600),
)
def test_packing_more_costs_more(dtype, lead, rows, cols):
    """The one-time price is finite for any width, and grows by whole bands of 16 rows."""
    line = 32 // np.dtype(NUMPY[dtype]).itemsize
    target, model = load_target("a2a3"), cost_model("mte2_mad")

    def cost(bands):
        shape = (*lead, 16 * bands, line * cols)
        blocked = blocked_shape(shape, DTYPES[dtype])
        item = PackedParameter("k", "w", shape, blocked, DTYPES[dtype])
        return pack_cost(item, model, target).total

    assert cost(rows) == pytest.approx(rows * cost(1))
    size = 16 * line * cols * int(np.prod(lead)) * np.dtype(NUMPY[dtype]).itemsize
    assert cost(1) > size * (1 / 143.5 + 1 / 143.5) / 2
