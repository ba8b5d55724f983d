"""mte2_mad: vector ops against profiled values, free views, scalars, and every declared op."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg import ops
from pypto_egg.errors import InternalError
from pypto_egg.extract.cost import CostVector, OpInstance, cost_model
from pypto_egg.ir.dtype import BF16, FP8E4M3FN, FP8E8M0, FP16, FP32, INT8, INT32, UINT8
from pypto_egg.ir.enums import Mem, TileLayout
from pypto_egg.ir.types import (
    HandleType,
    ScalarType,
    TensorType,
    TileView,
    TupleType,
    UnknownType,
    implicit_view,
    tile_type,
)
from pypto_egg.ops.registry import OpDecl, Operand
from pypto_egg.target import load_target

A2A3, A5 = load_target("a2a3"), load_target("a5")
MODEL = cost_model("mte2_mad")
SCALAR, TUPLE = ScalarType(FP32), TupleType(())


def tile(shape, dtype=FP32, space=Mem.Vec, valid=None):
    return tile_type(shape, dtype, space, replace(implicit_view(shape, space), valid_shape=valid))


def price(op, operands, result, target=A2A3, **kwargs):
    return MODEL.price(OpInstance(op, tuple(operands), kwargs, result), target)


def vector(op, operands, result, target=A2A3, **kwargs):
    cost = price(op, operands, result, target, **kwargs)
    assert cost == CostVector(vector=cost.vector)
    return cost.vector


X, COLUMN, ROW = tile((64, 64)), tile((64, 1)), tile((1, 64))


# pto-isa tests/costmodel: cycles profiled on a 910B.
@pytest.mark.parametrize(
    ("op", "dtype", "shape", "result", "profiled", "within"),
    [
        ("add", FP32, (64, 64), None, 160, 0.05),
        ("add", FP16, (16, 256), None, 92, 0.2),
        ("exp", FP32, (64, 64), None, 159, 0.01),
        ("row_sum", FP32, (64, 64), (64, 1), 492, 0.01),
        ("row_sum", FP16, (64, 128), (64, 1), 495, 0.01),
        ("row_max", FP32, (64, 64), (64, 1), 480, 0.01),
        ("row_max", FP16, (64, 128), (64, 1), 481, 0.01),
        ("col_sum", FP32, (64, 64), (1, 64), 1263, 0.01),
        ("transpose", FP32, (128, 128), None, 501, 0.01),
    ],
)
def test_profiled_ops_are_near(op, dtype, shape, result, profiled, within):
    source = tile(shape, dtype)
    found = vector(f"tile.{op}", [source, source], tile(result or shape, dtype))
    assert found == pytest.approx(profiled, rel=within)


def test_an_op_without_a_table_row_follows_the_law_of_its_repeats():
    """ln on a2a3: 13 + 2 r + 20, where 64 x 64 fp32 are 64 repeats of 256 bytes."""
    assert vector("tile.log", [X], X) == 13 + 2 * 64 + 20


def test_the_real_repeat_count_is_used_for_large_and_ragged_tiles():
    big = tile((128, 200))
    assert vector("tile.log", [big], big) == 13 + 2 * 400 + 20
    ragged = tile((128, 200), valid=(128, 130))
    assert vector("tile.log", [ragged], ragged) == 13 + 2 * 128 * 3 + 20


def test_only_the_valid_part_is_worked_on():
    boxed = tile((112, 64), valid=(100, 64))
    exact = tile((100, 64))
    for op in ("tile.add", "tile.exp", "tile.log"):
        assert vector(op, [boxed, boxed], boxed) == vector(op, [exact, exact], exact)


def test_a_column_is_one_contiguous_vector():
    column = tile((128, 1))
    assert column.layout.blayout is TileLayout.col_major
    assert vector("tile.log", [column], column) == 13 + 2 * 2 + 20


def test_casts_count_the_wider_dtype():
    assert vector("tile.cast", [X], tile((64, 64), BF16)) == 14 + 64 + 13
    assert vector("tile.cast", [tile((64, 64), BF16)], X) == 14 + 64 + 13
    assert vector("tile.cast", [X], tile((64, 64), BF16), A5) == pytest.approx(
        1.3196721 * 64 + 52.295082
    )


def test_precise_forms_cost_more():
    plain = vector("tile.rsqrt", [X], X)
    assert vector("tile.rsqrt", [X, X], X) > plain
    assert vector("tile.recip", [X], X, high_precision=True) > vector("tile.recip", [X], X)


def test_a_comparison_works_on_its_operands_not_on_the_packed_mask():
    mask = tile((64, 32), UINT8, valid=(64, 8))
    assert vector("tile.cmp", [X, X], mask, cmp_type=0) == 14 + 2 * 64 + 22


@pytest.mark.parametrize("target", [A2A3, A5])
def test_a_row_broadcast_costs_more_than_the_plain_op(target):
    plain = vector("tile.sub", [X, X], X, target)
    assert vector("tile.row_expand_sub", [X, COLUMN], X, target) > plain
    expdif = vector("tile.row_expand_expdif", [X, COLUMN], X, target)
    assert expdif > vector("tile.row_expand_sub", [X, COLUMN], X, target)


@pytest.mark.parametrize("target", [A2A3, A5])
def test_an_arg_reduction_costs_more_than_two_reductions(target):
    once = vector("tile.row_max", [X, X], COLUMN, target)
    assert vector("tile.row_argmax", [X, X], COLUMN, target) > 2 * once
    once = vector("tile.col_max", [X], ROW, target)
    assert vector("tile.col_argmax", [X, X], ROW, target) > 2 * once


def test_reductions_without_a_table_are_a_tree_of_block_reductions():
    """a5: 64 columns to 8 to 1; a step over r repeats is 23 + 4 r + 12."""
    assert vector("tile.row_sum", [X, X], COLUMN, A5) == (35 + 4 * 64) + (35 + 4 * 8)
    part = tile((64, 64), valid=(64, 40))  # rows apart: one repeat for each row, 40 to 5 to 1
    assert vector("tile.row_sum", [part, part], COLUMN, A5) == 2 * (35 + 4 * 64)


def test_padding_is_filled_where_there_is_some():
    full, part = tile((64, 64)), tile((64, 64), valid=(48, 64))
    assert vector("tile.fillpad_inplace", [full], full) == 0
    assert vector("tile.fillpad_inplace", [part], full) == 11 + 16 + 13
    assert vector("tile.fillpad", [part], full) == 11 + 16 + 13 + 5 + 48 * 8


def test_concatenation_copies_row_by_row():
    left, right = tile((64, 32)), tile((64, 64))
    assert vector("tile.concat", [left, right], tile((64, 96))) == 64 * (5 + 4) + 64 * (5 + 8)


def test_sorting_and_gathering():
    run = tile((1, 1024))
    assert vector("tile.sort32", [run, run], tile((1, 2048))) == 20 + 16 * 32
    assert vector("tile.mrgsort_format1", [tile((1, 2048)), SCALAR], tile((1, 2048))) == (
        20 + 78 * 8
    )
    index = tile((16, 64), INT32)
    assert vector("tile.gather", [X, index, index], tile((16, 64))) == 16 * (24 + 2)


@pytest.mark.req("K-05", "K-06")
@pytest.mark.parametrize(
    "op",
    [
        "tile.transpose_view",
        "tile.set_validshape",
        "tile.reshape",
        "tile.reinterpret_view",
        "tile.slice",
    ],
)
def test_views_are_free(op):
    for source in (X, tile((64, 64), BF16, Mem.Mat), tile((64, 64), space=Mem.Acc)):
        assert price(op, [source, TUPLE, TUPLE], source) == CostVector()


def test_scalar_accesses_are_scalar_work():
    assert price("tile.read", [X, TUPLE], SCALAR) == CostVector(scalar=1)
    assert price("tile.write", [X, TUPLE, SCALAR], X) == CostVector(scalar=1)
    gm = TensorType((64, 64), FP32)
    assert price("tensor.read", [gm, TUPLE], SCALAR) == CostVector(scalar=19)


def test_an_unknown_op_has_no_default_price():
    with pytest.raises(InternalError, match=r"mte2_mad has no price for tile\.teleport"):
        price("tile.teleport", [X], X)
    with pytest.raises(InternalError, match=r"no price for tensor\.matmul"):
        price("tensor.matmul", [X, X], X)


def test_a_scalar_where_a_tile_belongs_is_a_fault():
    with pytest.raises(InternalError, match=r"tile\.exp: expected a tile"):
        price("tile.exp", [SCALAR], SCALAR)


@given(
    st.sampled_from(["add", "mul", "muls", "exp", "log", "cast", "cmp", "recip"]),
    st.integers(1, 512),
    st.sampled_from([FP32, BF16, INT8]),
    st.sampled_from([A2A3, A5]),
)
def test_more_rows_are_never_cheaper(op, cols, dtype, target):
    """sel is left out: its published a5 lines differ by the parity of the repeats."""
    costs = []
    for rows in (1, 2, 16, 17, 128):
        work = tile((rows, cols), dtype)
        result = tile((rows, cols), FP16) if op == "cast" else work
        costs.append(vector(f"tile.{op}", [work, work], result, target))
    assert costs == sorted(costs)


DECLARED = [decl for decl in ops.registry.declared() if decl.namespace == "tile"]


def operand_type(operand: Operand, decl: OpDecl):
    if operand.kind == "tensor":
        return TensorType((256, 256), FP32)
    if operand.kind == "scalar":
        return SCALAR
    if operand.kind in ("tuple", "any"):
        return TUPLE
    dtype = FP8E4M3FN if "_mx" in decl.name else FP32
    space = next((s for s in Mem if s in operand.spaces), Mem.Vec)
    if space in (Mem.LeftScale, Mem.RightScale):
        return tile((64, 64), FP8E8M0, space)
    if decl.name in ("tile.aiv_shard", "tile.tpush_to_aiv"):
        return tile((64, 64), FP32, Mem.Acc)
    return tile((64, 64), dtype, space)


def result_type(decl: OpDecl):
    if decl.name in ("tile.store", "tile.mscatter"):
        return TensorType((256, 256), FP32)
    if decl.name in ("tile.read", "tile.get_block_idx", "tile.get_block_num"):
        return SCALAR
    if decl.name == "tile.alloc":
        return HandleType("Ptr")
    if decl.name.startswith("tile.tpush"):
        return UnknownType()
    space = decl.output_space if isinstance(decl.output_space, Mem) else Mem.Vec
    if decl.name == "tile.tpop_from_aiv":
        space = Mem.Mat
    if decl.name.startswith(("tile.row_sum", "tile.row_max")):
        return tile((64, 1), FP32, space)
    return tile((64, 64), FP32, space)


def test_the_registry_is_populated():
    assert len(DECLARED) > 130


@pytest.mark.parametrize("decl", DECLARED, ids=lambda decl: decl.name)
def test_every_declared_tile_op_is_priced(decl):
    operands = tuple(operand_type(operand, decl) for operand in decl.operands)
    op = OpInstance(decl.name, operands, {}, result_type(decl))
    for target in (A5,) if "_mx" in decl.name else (A2A3, A5):
        cost = MODEL.price(op, target)
        assert MODEL.price(op, target) == cost
        assert all(math.isfinite(cycles) for cycles in cost.by_pipe().values())
        if decl.name in MAY_BE_FREE or decl.name.startswith("tile.get_"):
            continue
        assert (cost.total > 0) == decl.instruction


# Ops that are instructions but cost nothing in the instance above: nothing to fill; on a5 a queue
# slot lies in the consumer's own memory.
MAY_BE_FREE = ("tile.fillpad_inplace", "tile.tpop_from_aic", "tile.tpop_from_aiv")


def test_mat_tiles_keep_their_boxed_layout_in_the_price():
    """A boxed tile in Vec is worked on by its valid rows and columns like any other."""
    boxed = TileView(blayout=TileLayout.col_major, slayout=TileLayout.row_major)
    nz = tile_type((64, 64), FP32, Mem.Vec, boxed)
    assert vector("tile.log", [nz], nz) == vector("tile.log", [X], X)
