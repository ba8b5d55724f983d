"""mte2_mad: what loads, stores, moves and products cost."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.errors import InternalError, UnsupportedDTypeError
from pypto_egg.extract.cost import CostVector, OpInstance, cost_model
from pypto_egg.ir.dtype import BF16, FP8E4M3FN, FP8E8M0, FP16, FP32, INT8, INT32
from pypto_egg.ir.enums import Mem, TensorLayout
from pypto_egg.ir.expr import Var
from pypto_egg.ir.types import (
    ScalarType,
    TensorView,
    TupleType,
    UnknownType,
    implicit_view,
    tensor_type,
    tile_type,
)  # fmt: skip
from pypto_egg.target import load_target

A2A3, A5 = load_target("a2a3"), load_target("a5")
MODEL = cost_model("mte2_mad")
OFFSETS = TupleType(())


def tile(shape, dtype=FP32, space=Mem.Vec, valid=None):
    return tile_type(shape, dtype, space, replace(implicit_view(shape, space), valid_shape=valid))


def gm(shape, dtype=FP32, layout=TensorLayout.ND):
    return tensor_type(shape, dtype, TensorView(layout=layout))


def price(op, operands, result, target=A2A3, **kwargs):
    return MODEL.price(OpInstance(op, tuple(operands), kwargs, result), target)


def load(tensor, result, target=A2A3):
    return price("tile.load", [tensor, OFFSETS, OFFSETS, OFFSETS], result, target)


def only(pipe, cost):
    """The cycles of `pipe`, which must be the only busy one."""
    assert cost == CostVector(**{pipe: getattr(cost, pipe)})
    return getattr(cost, pipe)


WEIGHT = gm((8192, 8192), BF16)


def test_a_load_moves_its_bytes_and_pays_for_each_row_and_each_line_put_in_place():
    cost = load(WEIGHT, tile((64, 1024), BF16, Mem.Mat))
    assert only("mte2", cost) == pytest.approx(
        (64 * 1024 * 2 + 64 * 28 + 64 * 64 * 1.75) / 78.354, rel=1e-4
    )


# Worked values of pto-isa's flat mode, whose law has no price of a burst or a line and rounds down.
@pytest.mark.parametrize(
    ("shape", "dtype", "cycles"),
    [
        ((128, 64), FP16, 209),
        ((64, 256), FP16, 418),
        ((100, 64), FP16, 163),
        ((17, 40), FP16, 17),
        ((128, 32), FP32, 209),
    ],
)
def test_without_overheads_a_load_is_pto_isas(shape, dtype, cycles):
    flat = A2A3.with_(**{"gm.burst_overhead_bytes": 0, "gm.reorder_line_bytes": 0})
    cost = load(gm((4096, 4096), dtype), tile((256, 256), dtype, Mem.Mat, shape), flat)
    assert int(only("mte2", cost)) == cycles


@pytest.mark.parametrize(
    ("mnk", "dtype", "cycles"),
    [
        ((128, 256, 64), FP16, 518),
        ((100, 256, 64), FP16, 454),
        ((17, 33, 40), FP16, 24),
        ((128, 256, 32), FP32, 1030),
    ],
)
def test_with_pto_isas_head_a_matmul_is_pto_isas(mnk, dtype, cycles):
    (m, n, k), target = mnk, A2A3.with_(**{"l0.issue_cycles": 6})
    lhs = tile((128, 64), dtype, Mem.Left, (m, k))
    rhs = tile((64, 256), dtype, Mem.Right, (k, n))
    cost = price("tile.matmul", [lhs, rhs], tile((128, 256), FP32, Mem.Acc, (m, n)), target)
    assert only("cube", cost) == cycles


def test_ub_is_loaded_more_slowly_than_l1():
    plain = A2A3.with_(**{"gm.reorder_line_bytes": 0})
    to_ub = only("mte2", load(WEIGHT, tile((64, 512), BF16, Mem.Vec), plain))
    to_l1 = only("mte2", load(WEIGHT, tile((64, 512), BF16, Mem.Mat), plain))
    assert to_ub / to_l1 == pytest.approx(135 / 100.9)


@pytest.mark.req("C-129", "K-01")
@pytest.mark.parametrize("physical", [(100, 256), (112, 256), (128, 256), (128, 512)])
def test_boxing_is_free_for_a_load(physical):
    region = load(WEIGHT, tile((100, 256), BF16, Mem.Mat))
    assert load(WEIGHT, tile(physical, BF16, Mem.Mat, valid=(100, 256))) == region


@pytest.mark.parametrize(
    ("tk", "tn", "measured"), [(256, 256, 0.022), (64, 512, 0.158), (64, 1024, 0.232)]
)
def test_short_rows_cost_what_users_measured(tk, tn, measured):
    """PyPTO issue #2309: a [N, K] weight tile against a [K, N] one, equal bytes."""
    plain = load(WEIGHT, tile((tk, tn), BF16, Mem.Mat)).total
    transposed = load(WEIGHT, tile((tn, tk), BF16, Mem.Mat)).total
    assert transposed / plain - 1 == pytest.approx(measured, abs=0.041)


def test_the_penalty_of_short_rows_grows_as_k_shrinks():
    penalties = []
    for tk in (512, 256, 128, 64, 32):
        plain = load(WEIGHT, tile((tk, 512), BF16, Mem.Mat)).total
        penalties.append(load(WEIGHT, tile((512, tk), BF16, Mem.Mat)).total / plain)
    assert penalties[0] == pytest.approx(1.0)
    assert penalties == sorted(penalties)
    assert len(set(penalties)) == 5


def test_a_dn_tensor_is_read_column_by_column():
    window = tile((64, 1024), BF16, Mem.Mat)
    dn = load(gm((8192, 8192), BF16, TensorLayout.DN), window)
    assert dn == load(WEIGHT, tile((1024, 64), BF16, Mem.Mat))


def test_a_valid_extent_known_at_run_time_is_priced_as_the_physical_one():
    rows = Var("rows", ScalarType(INT32))
    dynamic = tile((64, 128), BF16, Mem.Mat, valid=(rows, 128))
    assert load(WEIGHT, dynamic) == load(WEIGHT, tile((64, 128), BF16, Mem.Mat))


def test_stores_by_space():
    out = gm((4096, 4096))
    vec = price("tile.store", [tile((64, 128)), OFFSETS, out], out)
    assert only("mte3", vec) == pytest.approx((64 * 512 + 64 * 28) / 109.384, rel=1e-4)
    mat = price("tile.store", [tile((64, 128), space=Mem.Mat), OFFSETS, out], out)
    assert only("mte3", mat) == pytest.approx((64 * 512 + 64 * 28) / 18.573, rel=1e-4)
    acc = price("tile.store", [tile((128, 256), space=Mem.Acc), OFFSETS, out], out)
    assert only("fixpipe", acc) == pytest.approx(164 + 128 * 1024 / 118)


@pytest.mark.req("C-131", "K-03")
def test_a_store_writes_valid_rows_only():
    out = gm((100, 64))
    for space in (Mem.Vec, Mem.Acc):
        boxed, larger = (
            price("tile.store", [tile((rows, 64), FP32, space, (100, 64)), OFFSETS, out], out)
            for rows in (112, 128)
        )
        assert boxed == larger


def test_a_mat_tile_is_not_stored_on_a5():
    out = gm((64, 64))
    with pytest.raises(InternalError, match="a5 has no direct path Mat -> DDR"):
        price("tile.store", [tile((64, 64), space=Mem.Mat), OFFSETS, out], out, A5)


def move(source, goal, target=A2A3, op="tile.move"):
    return price(op, [source], replace(source, space=goal, view=None), target)


@pytest.mark.req("C-117", "K-17")
def test_the_last_hop_to_l0_is_mte1():
    weight = tile((64, 256), BF16, Mem.Mat)
    assert only("mte1", move(weight, Mem.Left)) == pytest.approx(64 * 256 * 2 / 129.7)
    assert only("mte1", move(weight, Mem.Right)) == pytest.approx(64 * 256 * 2 / 85.4)
    assert only("mte1", move(tile((1, 64), space=Mem.Mat), Mem.Bias)) == pytest.approx(
        256 / 18.573, rel=1e-4
    )


def test_whole_fractals_go_to_l0():
    source = tile((32, 48), BF16, Mem.Mat, valid=(17, 40))
    result = tile((32, 48), BF16, Mem.Left, valid=(17, 40))
    cost = price("tile.extract", [source], result)
    assert only("mte1", cost) == pytest.approx(32 * 48 * 2 / 129.7)


def test_acc_to_vec_goes_through_gm_on_a2a3_only():
    acc = tile((128, 256), space=Mem.Acc)
    drain = 164 + 128 * 1024 / 118
    reload_ = (128 * 1024 + 128 * 28) / 58.562
    assert move(acc, Mem.Vec).fixpipe == pytest.approx(drain)
    assert move(acc, Mem.Vec).mte2 == pytest.approx(reload_, rel=1e-4)
    assert only("fixpipe", move(acc, Mem.Vec, A5)) == pytest.approx(343.4 + 128 * 1024 / 30)


@pytest.mark.req("C-021", "K-28")
def test_vec_to_mat_goes_through_gm_on_a2a3_only():
    vec = tile((64, 128), BF16)
    through_gm = move(vec, Mem.Mat)
    assert through_gm.mte3 > 0
    assert through_gm.mte2 > 0
    assert only("mte3", move(vec, Mem.Mat, A5)) == pytest.approx(64 * 256 / 122.64, rel=1e-3)
    direct = load(WEIGHT, tile((64, 128), BF16, Mem.Mat))
    assert direct.total < load(WEIGHT, vec).total + through_gm.total


def test_a_move_without_a_way_is_a_fault_of_the_rules():
    with pytest.raises(InternalError, match=r"tile\.move: a2a3 has no path from Left to Vec"):
        move(tile((16, 16), BF16, Mem.Left), Mem.Vec)


# pto-isa tests/costmodel, profiled: UB to UB, contiguous and with rows apart.
@pytest.mark.parametrize(
    ("shape", "valid", "cycles"), [((64, 128), None, 1029), ((63, 128), (63, 125), 1323)]
)
def test_copies_inside_ub(shape, valid, cycles):
    source = tile(shape, valid=valid)
    assert only("vector", price("tile.move", [source], source)) == cycles


MAT_A, MAT_B = tile((112, 512), FP16, Mem.Mat, (100, 512)), tile((512, 256), FP16, Mem.Mat)
ACC = tile((112, 256), FP32, Mem.Acc, (100, 256))


def test_a_product_of_mat_tiles_is_mte1_and_cube():
    cost = price("tile.matmul", [MAT_A, MAT_B], ACC)
    assert cost == CostVector(mte1=cost.mte1, cube=cost.cube)
    assert cost.cube == 8 * 21 + 7 * 32 * 16
    assert price("tile.matmul_acc", [ACC, MAT_A, MAT_B], ACC) == cost


@pytest.mark.req("C-130", "K-02")
@pytest.mark.parametrize("rows", [112, 128])
def test_boxing_is_free_for_the_cube(rows):
    lhs = tile((rows, 512), FP16, Mem.Mat, (100, 512))
    acc = tile((rows, 256), FP32, Mem.Acc, (100, 256))
    assert price("tile.matmul", [lhs, MAT_B], acc) == price("tile.matmul", [MAT_A, MAT_B], ACC)


def test_a_product_of_l0_tiles_leaves_mte1_to_the_moves():
    lhs, rhs = tile((128, 64), FP16, Mem.Left), tile((64, 256), FP16, Mem.Right)
    acc = tile((128, 256), FP32, Mem.Acc)
    assert only("cube", price("tile.matmul", [lhs, rhs], acc)) == 21 + 512


def test_a_batch_costs_each_product():
    one = price(
        "tile.matmul",
        [tile((32, 64), FP16, Mem.Mat), tile((64, 48), FP16, Mem.Mat)],
        tile((32, 48), FP32, Mem.Acc),
    )
    four = price(
        "tile.batch_matmul",
        [tile((4, 32, 64), FP16, Mem.Mat), tile((4, 64, 48), FP16, Mem.Mat)],
        tile((4, 32, 48), FP32, Mem.Acc),
    )
    assert four == 4 * one


def test_a_bias_in_mat_is_brought_to_its_table():
    plain = price("tile.matmul", [MAT_A, MAT_B], ACC)
    bias = tile((1, 256), space=Mem.Mat)
    with_bias = price("tile.matmul_bias", [MAT_A, MAT_B, bias], ACC)
    assert with_bias.mte1 - plain.mte1 == pytest.approx(1024 / 18.573, rel=1e-4)
    moved = price("tile.matmul_bias", [MAT_A, MAT_B, tile((1, 256), space=Mem.Bias)], ACC)
    assert moved == plain


def test_block_scales_in_mat_are_moved_too():
    lhs, rhs = tile((16, 64), FP8E4M3FN, Mem.Left), tile((64, 16), FP8E4M3FN, Mem.Right)
    acc = tile((16, 16), FP32, Mem.Acc)
    scale = tile((16, 2), FP8E8M0, Mem.Mat)
    held = replace(scale, space=Mem.LeftScale, view=None)
    right = tile((2, 16), FP8E8M0, Mem.RightScale)
    staged = price("tile.matmul_mx", [lhs, scale, rhs, right], acc, A5)
    ready = price("tile.matmul_mx", [lhs, held, rhs, right], acc, A5)
    assert staged.mte1 > ready.mte1 == 0
    assert staged.cube == ready.cube == 25 + 2


def test_a_product_the_cube_lacks_is_named():
    lhs, rhs = tile((16, 64), FP8E4M3FN, Mem.Mat), tile((64, 16), FP8E4M3FN, Mem.Mat)
    with pytest.raises(UnsupportedDTypeError, match="cube of a2a3 has no product FP8E4M3FN x"):
        price("tile.matmul", [lhs, rhs], tile((16, 16), FP32, Mem.Acc))


def test_a_vec_operand_of_a_product_is_a_fault_of_the_rules():
    with pytest.raises(InternalError, match="expected Mat or Left"):
        price("tile.matmul", [replace(MAT_A, space=Mem.Vec), MAT_B], ACC)


@pytest.mark.req("K-24", "K-33")
def test_a_row_gather_pays_its_window_row_by_row():
    pool, window = gm((65536, 512), BF16), tile((128, 512), BF16, Mem.Mat)
    operands = [window, pool, OFFSETS, OFFSETS, OFFSETS]
    one = price("tile.gather_row", operands, window, shapes=(1, 512))
    assert only("mte2", one) == pytest.approx((1024 + 28 + 32 * 1.75) / 78.354, rel=1e-4)
    whole = price("tile.gather_row", operands, window)
    assert whole.total == pytest.approx(128 * one.total)


@pytest.mark.req("K-11")
def test_a_narrower_row_gather_copies_less():
    pool, window = gm((65536, 512), BF16), tile((128, 512), BF16, Mem.Mat)
    operands = [window, pool, OFFSETS, OFFSETS, OFFSETS]
    eight, three = (
        price("tile.gather_row", operands, window, shapes=(8, 512), valid_shape=valid)
        for valid in (None, (3, 512))
    )
    assert three.total < eight.total


def test_the_cross_core_transfer_is_paid_by_both_sides_on_a2a3():
    acc, half = tile((64, 128), space=Mem.Acc), tile((32, 128))
    cost = price("tile.aiv_shard", [acc], half, split=1)
    assert cost.fixpipe == pytest.approx(164 + 64 * 4.45)
    assert cost.mte2 == pytest.approx((32 * 512 + 32 * 28) / 58.562, rel=1e-4)
    assert price("tile.aiv_shard", [acc], half, A5, split=1).mte2 == 0
    push = price("tile.tpush_to_aiv", [acc], UnknownType())
    pop = price("tile.tpop_from_aic", [], tile((64, 128)))
    assert push.fixpipe == cost.fixpipe
    assert pop.mte2 == pytest.approx(2 * cost.mte2)
    assert price("tile.tpop_from_aic", [], tile((64, 128)), A5) == CostVector()


sizes = st.tuples(st.integers(0, 300), st.integers(0, 300))


@given(sizes, sizes, st.sampled_from([Mem.Vec, Mem.Mat]), st.sampled_from([FP32, BF16, INT8]))
def test_more_valid_bytes_are_never_cheaper(one, two, space, dtype):
    windows = [tuple(map(min, one, two)), tuple(map(max, one, two))]
    tiles = [tile((304, 320), dtype, space, valid) for valid in windows]
    for layout in TensorLayout.ND, TensorLayout.DN, TensorLayout.NZ:
        tensor = gm((4096, 4096), dtype, layout)
        less, more = (load(tensor, t).total for t in tiles)
        assert less <= more
    out = gm((4096, 4096), dtype)
    less, more = (price("tile.store", [t, OFFSETS, out], out).total for t in tiles)
    assert less <= more
