"""Types of the cube core's operators: products, accumulators, the tiles that feed them."""

import pytest

from pypto_egg.errors import TypeCheckError
from pypto_egg.ir.dtype import BF16, BOOL, FP8E4M3FN, FP8E8M0, FP16, FP32, INDEX, INT8, INT32, UINT8
from pypto_egg.ir.enums import CompactMode, Mem, TensorLayout, TileLayout
from pypto_egg.ir.expr import ConstInt, Var, tuple_of
from pypto_egg.ir.types import ScalarType, TensorView, implicit_view, tensor_type, tile_type
from pypto_egg.ops.registry import make_call

ROW, COL = TileLayout.row_major, TileLayout.col_major
V = Var("v", ScalarType(INDEX))


def tensor(name, shape, dtype=FP16, layout=TensorLayout.ND):
    return Var(name, tensor_type(shape, dtype, TensorView(layout=layout)))


def tile(name, shape, dtype=FP16, space=Mem.Mat, valid=None):
    plain = tile_type(shape, dtype, space)
    return Var(name, plain if valid is None else plain.with_view(valid_shape=valid))


def load(source, shape, valid, space=Mem.Mat):
    args = (source, tuple_of((0,) * len(shape)), tuple_of(shape), tuple_of(valid))
    return make_call("tile.load", args, {"target_memory": space})


@pytest.mark.req("C-128")
def test_a_padded_operand_gives_a_padded_product_of_the_true_valid_extent():
    lhs = load(tensor("a", (100, 256)), (112, 256), (100, 256))
    rhs = load(tensor("b", (256, 512)), (256, 512), (256, 512))
    product = make_call("tile.matmul", (lhs, rhs)).type
    assert (product.shape, product.valid_shape) == ((112, 512), (100, 512))
    assert product.layout.compact is CompactMode.normal


@pytest.mark.req("C-133")
def test_a_transposed_view_moves_the_padded_columns_to_the_rows():
    lhs = load(tensor("a", (128, 100)), (128, 112), (128, 100))
    view = make_call("tile.transpose_view", (lhs,)).type
    assert (view.shape, view.valid_shape) == ((112, 128), (100, 128))
    assert (view.layout.blayout, view.layout.slayout) == (ROW, COL)
    back = make_call("tile.transpose_view", (Var("t", view),)).type
    assert back == lhs.type


@pytest.mark.req("C-147", "C-150", "C-152")
def test_a_boxed_accumulator_stays_compact_through_its_valid_shape_and_its_products():
    kwargs = {"dtype": FP32, "target_memory": Mem.Acc, "compact": True}
    storage = make_call("tile.create", (tuple_of((112, 64)),), kwargs)
    assert storage.type.layout.compact is CompactMode.normal
    seed = make_call("tile.set_validshape", (storage, ConstInt(100), ConstInt(64)))
    assert seed.type.valid_shape == (100, 64)
    assert seed.type.layout.compact is CompactMode.normal
    assert (seed.type.layout.blayout, seed.type.layout.slayout) == (COL, ROW)
    lhs = load(tensor("a", (100, 128)), (112, 128), (100, 128))
    rhs = load(tensor("b", (128, 64)), (128, 64), (128, 64))
    assert make_call("tile.matmul_acc", (seed, lhs, rhs)).type == seed.type


@pytest.mark.req("C-138", "C-145")
def test_accumulator_and_left_operand_must_agree_on_physical_rows():
    acc = tile("acc", (112, 64), INT32, Mem.Acc, (100, 64))
    lhs, rhs = tile("a", (128, 64), INT8, valid=(100, 64)), tile("b", (64, 64), INT8)
    with pytest.raises(TypeCheckError) as caught:
        make_call("tile.matmul_acc", (acc, lhs, rhs))
    assert caught.value.message == (
        "tile.matmul_acc: operand 'acc' (acc) has 112 physical rows; operand 'lhs' (a) has 128"
    )
    assert "same physical M" in caught.value.hint


@pytest.mark.req("C-270", "C-271")
def test_a_narrowed_left_operand_narrows_the_accumulator():
    acc = tile("acc", (64, 128), FP32, Mem.Acc)
    lhs, rhs = tile("x", (64, 32), valid=(V, 32)), tile("w", (32, 128))
    result = make_call("tile.matmul_acc", (acc, lhs, rhs)).type
    assert result.valid_shape == (V, 128)
    assert result.layout.compact is CompactMode.normal


def test_a_narrow_accumulator_stays_narrow_under_a_full_product():
    acc = tile("acc", (64, 128), FP32, Mem.Acc, (V, 128))
    result = make_call("tile.matmul_acc", (acc, tile("x", (64, 32)), tile("w", (32, 128)))).type
    assert result.valid_shape == (V, 128)


def test_an_initial_condition_is_a_bool():
    operands = (tile("c", (16, 16), FP32, Mem.Acc), tile("x", (16, 32)), tile("w", (32, 16)))
    first = Var("first", ScalarType(BOOL))
    assert make_call("tile.matmul_acc", (*operands, first)).type.space is Mem.Acc
    with pytest.raises(TypeCheckError, match=r"'init_cond' \(v\) has dtype INDEX; allowed: BOOL"):
        make_call("tile.matmul_acc", (*operands, V))


@pytest.mark.parametrize(
    ("lhs", "rhs", "message"),
    [
        (("a", (16, 32)), ("b", (64, 16)), r"'rhs' \(b\) has K = 64 .* 'lhs' \(a\) has K = 32"),
        (("a", (16, 32)), ("b", (32, 16), BF16), r"'rhs' \(b\) has dtype BF16, but .* FP16"),
        (("a", (2, 16, 32)), ("b", (32, 16)), r"'lhs' \(a\) has shape \[2, 16, 32\]; rank 2"),
    ],
)
def test_products_refuse_what_does_not_fit(lhs, rhs, message):
    with pytest.raises(TypeCheckError, match=message):
        make_call("tile.matmul", (tile(*lhs), tile(*rhs)))


def test_the_right_operand_must_cover_the_valid_reduction_extent():
    lhs, rhs = tile("a", (16, 32)), tile("b", (32, 16), valid=(24, 16))
    with pytest.raises(TypeCheckError, match="has 24 valid rows; the 32 valid columns"):
        make_call("tile.matmul", (lhs, rhs))
    partial = tile("a", (16, 32), valid=(16, 24))
    assert make_call("tile.matmul", (partial, rhs)).type == tile_type((16, 16), FP32, Mem.Acc)


@pytest.mark.parametrize(
    ("dtype", "acc"), [(FP16, FP32), (BF16, FP32), (FP32, FP32), (INT8, INT32)]
)
def test_products_accumulate_in_32_bits(dtype, acc):
    operands = (tile("a", (16, 32), dtype), tile("b", (32, 16), dtype))
    assert make_call("tile.matmul", operands).type.dtype == acc


@pytest.mark.req("C-113")
def test_batched_products_broadcast_their_batch_axes():
    product = make_call("tile.batch_matmul", (tile("a", (4, 16, 32)), tile("b", (1, 32, 8)))).type
    assert product.shape == (4, 16, 8)
    acc = tile("c", (4, 16, 8), FP32, Mem.Acc)
    operands = (acc, tile("a", (4, 16, 32)), tile("b", (4, 32, 8)))
    assert make_call("tile.batch_matmul_acc", operands).type == acc.type


def test_a_bias_is_one_row_in_the_accumulator_s_dtype():
    operands = (tile("a", (16, 32)), tile("b", (32, 64)))
    bias = tile("bias", (1, 64), FP32, Mem.Bias)
    assert make_call("tile.matmul_bias", (*operands, bias)).type.shape == (16, 64)
    with pytest.raises(TypeCheckError, match=r"'bias' \(h\) has dtype FP16; allowed: FP32"):
        make_call("tile.matmul_bias", (*operands, tile("h", (1, 64), FP16)))
    with pytest.raises(TypeCheckError, match=r"'bias' \(s\) has columns 32; 64 is needed"):
        make_call("tile.matmul_bias", (*operands, tile("s", (1, 32), FP32)))


def test_gemv_takes_exactly_one_row():
    with pytest.raises(TypeCheckError, match=r"'lhs' \(a\) has 16 rows; gemv takes exactly 1"):
        make_call("tile.gemv", (tile("a", (16, 32)), tile("b", (32, 64))))


def test_microscaling_products_have_aligned_fp8_operands_and_scales():
    lhs, rhs = tile("a", (16, 64), FP8E4M3FN), tile("b", (64, 32), FP8E4M3FN)
    scales = tile("sa", (16, 2), FP8E8M0), tile("sb", (2, 32), FP8E8M0)
    product = make_call("tile.matmul_mx", (lhs, scales[0], rhs, scales[1])).type
    assert product == tile_type((16, 32), FP32, Mem.Acc)
    short = tile("a", (8, 64), FP8E4M3FN)
    with pytest.raises(TypeCheckError, match=r"'lhs' \(a\) has M = 8; .* multiple of 16"):
        make_call("tile.matmul_mx", (short, scales[0], rhs, scales[1]))


# --- tensor level ------------------------------------------------------------------------------


def test_vectors_multiply_as_in_numpy():
    matrix = tensor("m", (16, 32))
    assert make_call("tensor.matmul", (tensor("v", (16,)), matrix)).type.shape == (32,)
    assert make_call("tensor.matmul", (matrix, tensor("v", (32,)))).type.shape == (16,)


def test_a_bf16_product_is_typed_bf16_unless_the_caller_says_otherwise():
    operands = (tensor("a", (16, 32), BF16), tensor("b", (32, 16), BF16))
    assert make_call("tensor.matmul", operands).type.dtype == BF16
    assert make_call("tensor.matmul", operands, {"out_dtype": FP32}).type.dtype == FP32


def test_tensor_accumulators_are_fp32_or_int32_and_have_the_product_s_shape():
    lhs, rhs = tensor("a", (16, 32)), tensor("b", (32, 64))
    acc = tensor("c", (16, 64), FP32)
    assert make_call("tensor.matmul_acc", (acc, lhs, rhs)).type == acc.type
    with pytest.raises(TypeCheckError, match=r"'acc' \(c\) has dtype FP16; .* in FP32"):
        make_call("tensor.matmul_acc", (tensor("c", (16, 64)), lhs, rhs))
    with pytest.raises(TypeCheckError, match=r"'acc' \(c\) has shape \[16, 32\]; .* \[16, 64\]"):
        make_call("tensor.matmul_acc", (tensor("c", (16, 32), FP32), lhs, rhs))


def test_a_mismatch_hidden_by_a_transpose_flag_is_named_after_the_flag():
    operands = (tensor("a", (16, 32)), tensor("b", (32, 64)))
    with pytest.raises(
        TypeCheckError, match=r"K = 64 \(shape \[64, 32\] after b_trans\)"
    ) as caught:
        make_call("tensor.matmul", operands, {"b_trans": True})
    assert "check a_trans and b_trans" in caught.value.hint


# --- loads, moves, creation --------------------------------------------------------------------


@pytest.mark.req("C-117", "C-118")
@pytest.mark.parametrize("space", [Mem.Left, Mem.Right, Mem.Bias, Mem.Acc, Mem.LeftScale])
def test_loads_fill_vec_and_mat_only(space):
    with pytest.raises(TypeCheckError, match=f"target_memory is {space.name}"):
        load(tensor("a", (16, 16)), (16, 16), (16, 16), space)


@pytest.mark.req("C-025", "C-149")
def test_without_a_target_the_space_is_left_open():
    args = (tensor("x", (64,)), tuple_of((0,)), tuple_of((64,)))
    assert make_call("tile.load", args).type == tile_type((64,), FP16)
    created = make_call("tile.create", (tuple_of((16, 16)),), {"dtype": FP32})
    assert created.type == tile_type((16, 16), FP32)


def test_layout_of_a_mat_load_follows_source_and_shape():
    columns = load(tensor("a", (64, 32), layout=TensorLayout.DN), (64, 32), (64, 32)).type
    assert (columns.layout.blayout, columns.layout.slayout) == (ROW, COL)
    one_row = load(tensor("a", (64, 32)), (1, 32), (1, 32)).type
    assert (one_row.layout.blayout, one_row.layout.slayout) == (ROW, TileLayout.none_box)


@pytest.mark.req("C-129", "C-140")
def test_a_load_may_be_larger_than_its_tensor_if_its_valid_part_fits():
    assert load(tensor("a", (100, 64)), (112, 64), (100, 64)).type.valid_shape == (100, 64)
    with pytest.raises(TypeCheckError, match="window of 112 at 0 on axis 0, beyond the extent 100"):
        load(tensor("a", (100, 64)), (112, 64), (112, 64))
    with pytest.raises(TypeCheckError, match=r"'valid_shapes' is 120 .*; allowed: 0 to 112"):
        load(tensor("a", (128, 64)), (112, 64), (120, 64))


def test_moves_take_the_layout_of_the_target_space():
    mat = tile("t", (64, 32))
    left = make_call("tile.move", (mat,), {"target_memory": Mem.Left}).type
    assert left == tile_type((64, 32), FP16, Mem.Left)
    right = make_call("tile.move", (mat,), {"target_memory": Mem.Right}).type
    assert right == tile_type((64, 32), FP16, Mem.Right)


def test_a_move_to_vec_keeps_the_boxes():
    acc = tile("c", (64, 32), FP32, Mem.Acc, (V, 32))
    moved = make_call("tile.move", (acc,)).type
    assert (moved.space, moved.valid_shape) == (Mem.Vec, (V, 32))
    assert (moved.layout.blayout, moved.layout.slayout, moved.layout.fractal) == (COL, ROW, 512)


def test_scale_buffers_are_filled_from_mat():
    scales = tile("s", (16, 2), UINT8)
    moved = make_call("tile.move", (scales,), {"target_memory": Mem.LeftScale}).type
    assert moved == tile_type((16, 2), FP8E8M0, Mem.LeftScale)
    wrong = tile("s", (16, 2), UINT8, Mem.Vec)
    with pytest.raises(TypeCheckError, match=r"'tile' \(s\) is in Vec"):
        make_call("tile.move", (wrong,), {"target_memory": Mem.LeftScale})


@pytest.mark.req("C-249")
def test_a_transposed_mat_buffer_has_the_layout_of_a_transposed_view():
    kwargs = {"dtype": BF16, "target_memory": Mem.Mat, "transpose": True}
    created = make_call("tile.create", (tuple_of((64, 128)),), kwargs).type
    assert (created.layout.blayout, created.layout.slayout) == (ROW, COL)
    with pytest.raises(TypeCheckError, match=r"transpose=True needs target_memory=pl\.Mem\.Mat"):
        make_call("tile.create", (tuple_of((64, 128)),), {**kwargs, "target_memory": Mem.Vec})


def test_only_boxed_tiles_are_compact():
    kwargs = {"dtype": FP32, "target_memory": Mem.Vec, "compact": True}
    with pytest.raises(TypeCheckError, match="compact=True with target_memory Vec"):
        make_call("tile.create", (tuple_of((16, 16)),), kwargs)


def test_an_extract_of_partial_rows_is_compact():
    source = tile("a", (64, 64), valid=(V, 64))
    args = (source, ConstInt(0), ConstInt(16), tuple_of((64, 16)))
    part = make_call("tile.extract", args, {"target_memory": Mem.Left}).type
    assert part.valid_shape == (V, 16)
    assert part.layout.compact is CompactMode.normal
    assert part.layout.blayout is ROW


def test_run_time_extents_of_buffers_are_refused():
    with pytest.raises(TypeCheckError, match=r"'shape' must be constant, but element 0 is v"):
        make_call("tile.create", (tuple_of((V, 16)),), {"dtype": FP32})


def test_set_validshape_must_fit():
    acc = tile("c", (16, 64), FP32, Mem.Acc)
    with pytest.raises(TypeCheckError, match=r"'rows' is 17; allowed: 0 to 16"):
        make_call("tile.set_validshape", (acc, ConstInt(17), ConstInt(64)))
    narrowed = make_call("tile.set_validshape", (acc, V, ConstInt(64))).type
    assert narrowed.layout == implicit_view((16, 64), Mem.Acc).__class__(
        (V, 64), (), None, COL, ROW, 1024
    )
