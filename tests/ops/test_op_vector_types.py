"""Types and refusals of elementwise, broadcast, reduction, compare and select operators."""

import pytest

from pypto_egg.errors import TypeCheckError
from pypto_egg.ir.dtype import (
    BF16,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
)
from pypto_egg.ir.enums import Mem, TensorLayout, TileLayout
from pypto_egg.ir.expr import ConstFloat, ConstInt, Var
from pypto_egg.ir.types import ScalarType, TensorView, TileView, tensor_type, tile_type
from pypto_egg.ops.registry import make_call

COL = TileLayout.col_major


def tensor(name, shape, dtype=FP32):
    return Var(name, tensor_type(shape, dtype))


def tile(name, shape, dtype=FP32, space=Mem.Vec, view=None):
    return Var(name, tile_type(shape, dtype, space, view))


def scalar(name, dtype):
    return Var(name, ScalarType(dtype))


def refused(name, args, kwargs=None):
    with pytest.raises(TypeCheckError) as caught:
        make_call(name, args, kwargs)
    return caught.value


# --- errors name op, operand, variable, found, allowed, and what to do --------------------------


def test_an_operand_of_the_wrong_kind_is_named_with_its_type():
    error = refused("tile.exp", (tensor("x", (16, 64)),))
    assert error.message == (
        "tile.exp: operand 'tile' (x) must be a tile, got Tensor[[16, 64], FP32]"
    )
    assert error.hint == "load the tensor with pl.tile.load first"
    error = refused("tensor.exp", (tile("t", (16, 64)),))
    assert "must be a tensor in global memory, got Tile[[16, 64], FP32, Vec]" in error.message


def test_an_index_scalar_is_refused_with_the_cast_to_write():
    error = refused("tensor.muls", (tensor("x", (4, 8), FP16), ConstInt(2)))
    assert error.message.startswith("tensor.muls: operand 'rhs' has dtype INDEX")
    assert error.hint == "write pl.cast(x, pl.FP16) or pl.const(v, pl.FP16)"


def test_symbolic_shapes_are_readable_in_messages():
    n = scalar("n", INDEX)
    error = refused("tensor.add", (tensor("x", (n, 8)), tensor("y", (4, 8))))
    assert "has shape [4, 8], which does not broadcast with [n, 8] of operand 'lhs' (x)" in str(
        error
    )


def test_errors_carry_a_stable_code():
    assert str(refused("tensor.sin", (tensor("x", (4, 8), FP16),))).startswith("E201: tensor.sin")


# --- dtype limits -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dtype", "allowed"),
    [
        ("tensor.div", BF16, "INT16, INT32, FP16, FP32"),
        ("tile.div", BF16, "INT16, INT32, FP16, FP32"),
        ("tensor.row_min", BF16, "INT16, INT32, FP16, FP32"),
        ("tensor.log", INT32, "FP16, FP32"),
        ("tensor.cos", FP16, "FP32"),
        ("tensor.not", INT32, "INT16, UINT16"),
        ("tile.sin", FP16, "FP32"),
    ],
)
def test_dtypes_outside_the_list_are_refused(name, dtype, allowed):
    make = tile if name.startswith("tile.") else tensor
    operand = make("x", (16, 64), dtype)
    args = (operand, operand) if name.endswith("div") else (operand,)
    assert f"has dtype {dtype.name}; allowed: {allowed}" in refused(name, args).message


@pytest.mark.parametrize("name", ["tensor.and", "tensor.shl", "tile.or", "tile.shr"])
def test_bit_operations_need_integers(name):
    make = tile if name.startswith("tile.") else tensor
    error = refused(name, (make("a", (8, 8), INT32), make("b", (8, 8), FP32)))
    assert "operand 'rhs' (b) has dtype FP32; an integer dtype is needed" in error.message


def test_shifts_keep_the_left_dtype_and_are_not_negative():
    args = (tensor("a", (8, 8), INT16), tensor("b", (8, 8), INT32))
    assert make_call("tensor.shl", args).type.dtype == INT16
    error = refused("tensor.shls", (tensor("a", (8, 8), INT32), ConstInt(-1, INT32)))
    assert "shifts by -1; a shift must be >= 0" in error.message


def test_high_precision_is_for_floats():
    ints = (tensor("a", (8, 8), INT32), tensor("b", (8, 8), INT32))
    assert "needs an FP16 or FP32 result, not INT32" in str(
        refused("tensor.div", ints, {"high_precision": True})
    )
    x = tensor("x", (8, 8), FP16)
    assert make_call("tensor.recip", (x,), {"high_precision": True}).type.dtype == FP16


def test_a_cast_changes_the_dtype():
    x = tensor("x", (8, 8))
    assert make_call("tensor.cast", (x,), {"target_type": BF16}).type.dtype == BF16
    assert "already has dtype FP32" in str(refused("tensor.cast", (x,), {"target_type": FP32}))
    error = refused("tensor.cast", (x,), {"target_type": BF16, "mode": "nearest"})
    assert "allowed: none, rint, round, floor, ceil, trunc, odd" in error.message


# --- tensor and tile differ ----------------------------------------------------------------------


@pytest.mark.parametrize("op", ["exp", "sqrt", "recip"])
def test_integers_become_fp32_in_tensors_and_stay_integers_in_tiles(op):
    assert make_call(f"tensor.{op}", (tensor("x", (8, 8), INT32),)).type.dtype == FP32
    assert make_call(f"tile.{op}", (tile("t", (8, 8), INT32),)).type.dtype == INT32


@pytest.mark.parametrize("op", ["adds", "muls"])
def test_a_float_scalar_promotes_a_tensor_but_not_a_tile(op):
    value = ConstFloat(0.5)
    assert make_call(f"tensor.{op}", (tensor("x", (8, 8), FP16), value)).type.dtype == FP32
    assert make_call(f"tile.{op}", (tile("t", (8, 8), FP16), value)).type.dtype == FP16


def test_subs_keeps_the_tensor_dtype():
    args = (tensor("x", (8, 8), BF16), ConstFloat(0.5))
    assert make_call("tensor.subs", args).type.dtype == BF16


def test_maximum_takes_a_tensor_or_a_scalar():
    x = tensor("x", (8, 8))
    assert make_call("tensor.maximum", (x, ConstFloat(0.0))).type == x.type
    assert make_call("tensor.maximum", (x, tensor("y", (1, 8)))).type == x.type
    assert "must be a tensor or a scalar" in str(refused("tensor.maximum", (x, tile("t", (8, 8)))))


def test_tensors_compare_to_numbers_and_tiles_to_masks():
    assert make_call("tensor.cmp", (tensor("x", (8, 64)), ConstFloat(0.0))).type.dtype == FP32
    mask = make_call("tile.cmps", (tile("t", (8, 300)), ConstFloat(0.0)), {"cmp_type": 4}).type
    assert (mask.dtype, mask.shape, mask.valid_shape) == (UINT8, (8, 64), (8, 38))
    error = refused("tile.cmps", (tile("t", (8, 64)), ConstFloat(0.0)), {"cmp_type": 6})
    assert "cmp_type is 6; allowed: 0 eq" in error.message


def test_select_takes_a_mask_and_two_tiles_of_one_type():
    mask, tmp = tile("m", (8, 32), UINT8), tile("tmp", (1, 32), UINT8)
    a, b = tile("a", (8, 64)), tile("b", (8, 64))
    assert make_call("tile.sel", (mask, a, b, tmp)).type == a.type
    assert "operand 'mask' (a) has dtype FP32; allowed: UINT8" in str(
        refused("tile.sel", (a, a, b, tmp))
    )
    unsigned = tile("u", (8, 64), UINT16)
    twin = ConstInt(0, INT16)
    assert make_call("tile.sels", (mask, unsigned, tmp, twin)).type == unsigned.type
    error = refused("tile.sels", (mask, unsigned, tmp, ConstInt(0, INT32)))
    assert "has dtype INT32; INT16 is needed" in error.message


# --- broadcasts and reductions -------------------------------------------------------------------


def test_row_vectors_have_one_column_and_as_many_rows():
    wide = tensor("x", (16, 64))
    args = (wide, tensor("m", (16, 1)))
    assert make_call("tensor.row_expand_sub", args).type == wide.type
    assert "its last dimension must be 1" in str(
        refused("tensor.row_expand_sub", (wide, tensor("m", (1, 64))))
    )
    assert "operand 'row_vec' (m) has rows 8; 16 is needed" in str(
        refused("tensor.row_expand_div", (wide, tensor("m", (8, 1))))
    )


def test_column_vectors_have_one_row_and_as_many_columns():
    wide = tile("x", (16, 64))
    assert make_call("tile.col_expand_mul", (wide, tile("c", (1, 64)))).type == wide.type
    assert "its row count must be 1" in str(
        refused("tile.col_expand_mul", (wide, tile("c", (16, 64))))
    )
    assert "has columns 32; 64 is needed" in str(
        refused("tile.col_expand_add", (wide, tile("c", (1, 32))))
    )


def test_adding_a_row_vector_to_a_tile_needs_row_major_and_equal_valid_rows():
    wide = tile("x", (16, 64))
    column, line = tile("m", (16, 1)), tile("l", (16, 8))
    assert make_call("tile.row_expand_add", (wide, column)).type == wide.type
    assert make_call("tile.row_expand_add", (wide, line)).type == wide.type
    boxed = tile("b", (16, 64), view=TileView(blayout=COL, slayout=TileLayout.row_major))
    assert "has blayout col_major; row_major is needed" in str(
        refused("tile.row_expand_add", (boxed, column))
    )
    short = Var("s", column.type.with_view(valid_shape=(9, 1)))
    assert "has 9 valid rows; they must provably be the 16" in str(
        refused("tile.row_expand_add", (wide, short))
    )
    assert "allowed: [M, 1], or a row-major [M, 8] of 32-byte rows" in str(
        refused("tile.row_expand_add", (wide, tile("w", (16, 4))))
    )


def test_expand_clone_grows_one_axis_from_one():
    target = tensor("out", (4, 16, 64))
    grown = make_call("tensor.expand_clone", (tensor("x", (4, 1, 64)), target))
    assert grown.type == tensor_type((4, 16, 64), FP32)
    assert "at most one axis may expand" in str(
        refused("tensor.expand_clone", (tensor("x", (1, 1, 64)), target))
    )
    assert "has extent 8 on axis 1, target has 16" in str(
        refused("tensor.expand_clone", (tensor("x", (4, 8, 64)), target))
    )


@pytest.mark.parametrize(
    ("op", "kwargs", "shape"),
    [
        ("row_sum", {}, (4, 16, 1)),
        ("row_sum", {"keep_dim": False}, (4, 16)),
        ("row_sum", {"axis": 0}, (1, 16, 64)),
        ("col_sum", {}, (4, 1, 64)),
        ("row_argmax", {}, (4, 16, 1)),
    ],
)
def test_reductions_collapse_one_axis(op, kwargs, shape):
    result = make_call(f"tensor.{op}", (tensor("x", (4, 16, 64)),), kwargs).type
    assert result == tensor_type(shape, INT32 if "arg" in op else FP32)


def test_reducing_the_only_axis_away_gives_a_scalar():
    x = tensor("x", (64,))
    assert make_call("tensor.row_max", (x,), {"keep_dim": False}).type == ScalarType(FP32)
    assert "axis is 1; allowed for rank 1: -1 to 0" in str(
        refused("tensor.row_max", (x,), {"axis": 1})
    )


def test_row_reductions_need_a_scratch_tile_as_large_as_the_source():
    source = tile("x", (16, 256))
    assert "operand 'tmp' (t) has shape [16, 128]; at least [16, 256] is needed" in str(
        refused("tile.row_sum", (source, tile("t", (16, 128))))
    )
    larger = make_call("tile.row_sum", (source, tile("t", (16, 512)))).type
    assert larger == tile_type((16, 1), FP32, Mem.Vec)
    assert "does not broadcast" in str(refused("tile.row_argmax", (source, tile("t", (16, 512)))))


def test_results_leave_the_accumulator_for_vec_and_keep_its_box_order():
    acc = tile("c", (16, 64), FP32, Mem.Acc)
    view = TileView(blayout=COL, slayout=TileLayout.row_major)
    assert make_call("tile.exp", (acc,)).type == tile_type((16, 64), FP32, Mem.Vec, view)
    assert make_call("tile.add", (acc, acc)).type == tile_type((16, 64), FP32, Mem.Vec, view)


# --- shapes and views ----------------------------------------------------------------------------


def test_transposing_twice_gives_back_a_plain_tensor():
    x = tensor("x", (32, 64), BF16)
    once = make_call("tensor.transpose", (x, ConstInt(0), ConstInt(1)))
    assert once.type.view == TensorView(stride=(1, 64), layout=TensorLayout.DN)
    assert make_call("tensor.transpose", (once, ConstInt(-2), ConstInt(-1))).type == x.type


def test_transposing_outer_axes_permutes_strides_and_stays_nd():
    swapped = make_call("tensor.transpose", (tensor("x", (2, 3, 4)), ConstInt(0), ConstInt(1))).type
    assert swapped == tensor_type((3, 2, 4), FP32, TensorView(stride=(4, 12, 1)))


def test_a_view_in_the_other_layout_is_a_free_transpose():
    x = tensor("x", (64, 128), BF16)
    flipped = make_call("tensor.view", (x,), {"layout": TensorLayout.DN}).type
    view = TensorView(stride=(1, 128), layout=TensorLayout.DN)
    assert flipped == tensor_type((128, 64), BF16, view)


@pytest.mark.req("N-109")
@pytest.mark.parametrize(("op", "kwargs"), [("view", {}), ("reinterpret_view", {"dtype": INT8})])
def test_fractal_tensors_have_no_other_view(op, kwargs):
    nz = Var("w", tensor_type((256, 512), INT16, TensorView(layout=TensorLayout.NZ)))
    error = refused(f"tensor.{op}", (nz,), kwargs)
    assert f"operand '{'input' if op == 'view' else 'data'}' (w) has layout NZ" in error.message
    assert error.hint is not None


def test_reinterpreting_bytes_rescales_the_contiguous_axis():
    x = tensor("x", (16, 64), FP16)
    assert make_call("tensor.reinterpret_view", (x,), {"dtype": FP32}).type.shape == (16, 32)
    assert make_call("tensor.reinterpret_view", (x,), {"dtype": INT8}).type.shape == (16, 128)
    odd = tensor("o", (16, 3), FP16)
    assert "is no whole number of 32-bit elements" in str(
        refused("tensor.reinterpret_view", (odd,), {"dtype": FP32})
    )
    boxed = tile("c", (16, 64), FP32, Mem.Mat)
    assert "only flat (none_box) tiles" in str(
        refused("tile.reinterpret_view", (boxed,), {"dtype": INT32})
    )


def test_concat_adds_columns():
    assert make_call("tile.concat", (tile("a", (8, 16)), tile("b", (8, 48)))).type.shape == (8, 64)
    assert "operand 'src1' (b) has rows 4; 8 is needed" in str(
        refused("tensor.concat", (tensor("a", (8, 16)), tensor("b", (4, 16))))
    )
