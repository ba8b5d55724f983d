"""What boxing does for real row counts, and where real shapes must be refused."""

from __future__ import annotations

import pytest
from real_kernels import KERNELS

from pypto_egg import load_target, lower, optimize
from pypto_egg.errors import AlignmentError, CapacityError
from pypto_egg.extract.cost.pypto_l0 import choose
from pypto_egg.ir.dtype import FP16, FP32
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import definitions

both_targets = pytest.mark.parametrize("target", ["a2a3", "a5"])


def accumulators(program, function):
    chosen = next(f for f in program.functions if f.name == function)
    types = [var.type for var in definitions(chosen)]
    return [t for t in types if isinstance(t, TileType) and t.space is Mem.Acc]


@pytest.mark.req("C-128", "C-132")
@both_targets
def test_a_box_of_112_rows_beats_cutting_100_rows_for_l0(target):
    """PyPTO's chooser has no legal L0 tile that covers 100 rows; of the box it takes all rows."""
    result = optimize(KERNELS["boxed_100x256x512"].path, target=target, verify=False, l0="leave")
    tile = accumulators(result.program, "product")[0]
    assert tile.valid_shape == (100, 256)
    rows, cols = tile.shape
    chip = load_target(target)
    boxed = choose(rows, cols, 512, FP16, FP16, FP32, chip)
    unpadded = choose(100, 256, 512, FP16, FP16, FP32, chip)
    assert boxed is not None
    assert unpadded is not None
    assert boxed.m == rows
    assert unpadded.m < 100
    assert boxed.wall_cycles < unpadded.wall_cycles


@both_targets
def test_among_boxes_of_equal_cost_the_smallest_is_taken(target):
    result = optimize(KERNELS["boxed_100x256x512"].path, target=target, verify=False)
    assert {tile.shape for tile in accumulators(result.program, "product")} == {(112, 256)}


@pytest.mark.req("C-167")
@both_targets
def test_the_reference_refuses_an_accumulated_product_of_24_columns(target):
    with pytest.raises(AlignmentError) as refusal:
        lower(KERNELS["hyper_connection_mix"].path, target=target)
    assert refusal.value.code == "E402"
    assert "N = 24" in refusal.value.message
    assert "'wk'" in refusal.value.message
    assert refusal.value.span is not None


@both_targets
def test_optimize_pads_an_accumulated_product_of_24_columns(target):
    result = optimize(KERNELS["hyper_connection_mix"].path, target=target, verify=False)
    assert "C-167" in result.baseline_refused
    found = accumulators(result.program, "partial_logits")
    assert {tile.shape for tile in found} == {(16, 32)}
    assert any(tile.valid_shape == (8, 24) for tile in found)


WHOLE = """import pypto.language as pl

@pl.program
class Whole:
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self, a: pl.Tensor[[100, 256], pl.BF16], b: pl.Tensor[[256, 512], pl.BF16]
    ) -> pl.Tensor[[100, 512], pl.FP32]:
        y = pl.matmul(a, b, out_dtype=pl.FP32)
        return y
"""


def test_all_512_columns_are_made_in_two_blocks_in_the_smaller_l0c():
    result = optimize(WHOLE, target="a2a3", verify=True)
    assert result.verified
    assert result.functions[0].peak_bytes["Acc"] == 112 * 256 * 4


def test_all_512_columns_at_once_do_not_fit_the_smaller_l0c():
    """Where all of them are needed at once."""
    reduced = WHOLE.replace("return y", "r = pl.row_max(y)\n        return r")
    with pytest.raises(CapacityError) as refusal:
        optimize(reduced.replace("-> pl.Tensor[[100, 512]", "-> pl.Tensor[[100, 1]"), target="a2a3")
    assert refusal.value.code == "E501"
    for size in ("112 x 512", "229376", "131072"):
        assert size in refusal.value.message
    assert refusal.value.span is not None
    assert refusal.value.span.line == 9


def test_all_512_columns_at_once_fit_the_larger_l0c():
    result = optimize(WHOLE, target="a5", verify=True)
    assert result.verified
    assert result.functions[0].peak_bytes["Acc"] == 112 * 512 * 4


@pytest.mark.req("C-168")
@both_targets
def test_the_values_of_a_36_row_page_are_refused_because_k_is_not_padded(target):
    """P [16, 36] times V [36, 128]: the last page of an 8100-token context."""
    page = WHOLE.replace("[100, 256]", "[16, 36]").replace("[256, 512]", "[36, 128]")
    with pytest.raises(AlignmentError) as refusal:
        optimize(page.replace("[100, 512]", "[16, 128]"), target=target)
    assert refusal.value.code == "E402"
    assert "K = 36" in refusal.value.message
    assert "48" in (refusal.value.hint or "")
