"""What NZ order in global memory changes in the price of loads and stores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.extract.cost import OpInstance, cost_model
from pypto_egg.ir.dtype import BF16, FP32, INT8
from pypto_egg.ir.enums import Mem, TensorLayout
from pypto_egg.ir.types import TensorView, TupleType, tensor_type, tile_type
from pypto_egg.target import load_target

A2A3, A5 = load_target("a2a3"), load_target("a5")
NOTHING = TupleType(())
targets = st.sampled_from([A2A3, A5])
dtypes = st.sampled_from([INT8, BF16, FP32])
fractals = st.integers(1, 64)


def tensor(shape, dtype, layout=TensorLayout.ND):
    return tensor_type(shape, dtype, TensorView(layout=layout))


def load(rows, cols, dtype, layout, target=A2A3, model="mte2_mad"):
    """MTE2 cycles of a window of a large weight."""
    operands = (tensor((65536, 65536), dtype, layout), NOTHING, NOTHING, NOTHING)
    op = OpInstance("tile.load", operands, {}, tile_type((rows, cols), dtype, Mem.Mat))
    return cost_model(model).price(op, target).mte2


@pytest.mark.req("N-004", "K-19")
@pytest.mark.parametrize("model", ["mte2_mad", "pypto_l0", "roofline"])
def test_the_window_of_the_issue_is_cheaper_in_nz_order(model):
    """PyPTO issue #2533: int8, 256 x 512. 16 column blocks against 256 rows of 16 lines each."""
    nd, nz = (
        load(256, 512, INT8, layout, model=model) for layout in (TensorLayout.ND, TensorLayout.NZ)
    )
    assert nz == pytest.approx((256 * 512 + 16 * 28) / 78.354, rel=1e-4)
    assert nd - nz == pytest.approx((256 * (28 + 16 * 1.75) - 16 * 28) / 78.354, rel=1e-4)


@pytest.mark.req("N-004", "K-19")
@given(fractals, fractals, dtypes, targets)
def test_no_window_is_dearer_in_nz_order(row_fractals, lines, dtype, target):
    rows, cols = 16 * row_fractals, target.c0_elems(dtype) * lines
    nd, nz = (
        load(rows, cols, dtype, layout, target) for layout in (TensorLayout.ND, TensorLayout.NZ)
    )
    assert nz < nd


@pytest.mark.req("N-004")
@given(fractals, st.integers(0, 5), st.integers(0, 5), dtypes, targets)
def test_at_equal_bytes_the_penalty_of_rows_grows_as_they_get_shorter(
    row_fractals, halvings, more, dtype, target
):
    def penalty(cut):
        rows, cols = 16 * row_fractals << cut, target.c0_elems(dtype) * (1024 >> cut)
        nd = load(rows, cols, dtype, TensorLayout.ND, target)
        return nd - load(rows, cols, dtype, TensorLayout.NZ, target)

    long, short = penalty(halvings), penalty(halvings + more)
    assert short > long if more else short == long


@pytest.mark.req("N-004")
@given(fractals, fractals, dtypes)
def test_more_rows_and_more_columns_cost_more(row_fractals, lines, dtype):
    rows, cols, line = 16 * row_fractals, A2A3.c0_elems(dtype) * lines, A2A3.c0_elems(dtype)
    for layout in (TensorLayout.ND, TensorLayout.NZ):
        at = load(rows, cols, dtype, layout)
        assert load(rows + 16, cols, dtype, layout) > at
        assert load(rows, cols + line, dtype, layout) > at


def test_the_least_cost_of_a_line_at_which_nz_order_never_loses():
    """A column block of 16 rows is one burst of 16 lines; cheaper lines would make it dearer."""
    for target in (A2A3, A5):
        assert target.gm.reorder_line_bytes == target.gm.burst_overhead_bytes / 16
        least = target.gm.reorder_line_bytes
        cheaper = target.with_(**{"gm.reorder_line_bytes": least * 0.9})
        nd, nz = (
            load(16, 65536, BF16, layout, cheaper) for layout in (TensorLayout.ND, TensorLayout.NZ)
        )
        assert nz > nd


def test_nothing_is_re_ordered_into_vec():
    rows = tile_type((64, 512), BF16, Mem.Vec)
    operands = (tensor((4096, 4096), BF16), NOTHING, NOTHING, NOTHING)
    op = OpInstance("tile.load", operands, {}, rows)
    free = A2A3.with_(**{"gm.reorder_line_bytes": 0})
    assert cost_model("mte2_mad").price(op, A2A3) == cost_model("mte2_mad").price(op, free)


@pytest.mark.req("N-047")
@pytest.mark.parametrize("model", ["mte2_mad", "pypto_l0", "roofline"])
@pytest.mark.parametrize("shape", [(64, 16), (64, 512), (128, 256)])
def test_an_accumulator_costs_the_same_to_store_in_either_order(model, shape):
    """Neither a bonus nor a penalty: issue #3036 says nothing of the store alone."""
    nd, nz = (store(shape, layout, model) for layout in (TensorLayout.ND, TensorLayout.NZ))
    assert nz == nd
    assert nz.fixpipe > 0


def store(shape, layout, model):
    acc = tile_type(shape, FP32, Mem.Acc)
    op = OpInstance(
        "tile.store", (acc, NOTHING, tensor(shape, FP32, layout)), {}, tensor(shape, FP32)
    )
    return cost_model(model).price(op, A2A3)
