"""Whole lowerings, op by op: every intermediate tile has the type that the next op needs."""

import pytest

from pypto_egg.ir.dtype import BF16, FP16, FP32, INT16, INT32, UINT8
from pypto_egg.ir.enums import Mem, TileLayout
from pypto_egg.ir.expr import ConstFloat, ConstInt, Var, as_expr, tuple_of
from pypto_egg.ir.types import tensor_type, tile_type
from pypto_egg.ops.registry import make_call

ROWS, COLS, BATCH, SEQUENCE = 32, 32, 2, 8
UPDATES = BATCH * SEQUENCE


def tensor(name, shape, dtype):
    return Var(name, tensor_type(shape, dtype))


def do(op, *args, **kwargs):
    """The result of one tile op as a variable; lists become shapes, numbers constants."""
    operands = tuple(tuple_of(tuple(a)) if isinstance(a, list) else as_expr(a) for a in args)
    call = make_call(f"tile.{op}", operands, kwargs)
    return Var(op, call.type)


def load(name, shape, dtype):
    zeros = [0] * len(shape)
    return do("load", tensor(name, shape, dtype), zeros, shape, shape, target_memory=Mem.Vec)


@pytest.mark.req("C-182", "C-183", "C-184", "C-185", "C-186", "C-198", "C-200")
@pytest.mark.parametrize(
    ("dtype", "mask_dtype"), [(FP32, FP32), (INT32, FP32), (FP16, FP16), (BF16, FP16)]
)
def test_scatter_update_lowers_to_scatter_and_select(dtype, mask_dtype):
    data = load("input", [ROWS, COLS], dtype)
    index = load("index", [BATCH, SEQUENCE], INT32)
    source = load("src", [UPDATES, COLS], dtype)
    columns = do("ci", ConstInt(0, INT32), [1, COLS], dtype=INT32)
    template = do("full", [UPDATES, COLS], ConstInt(0, INT32), dtype=INT32)
    spread = do("col_expand", template, columns)
    flat_index = do("reshape", index, [UPDATES, 1])
    assert flat_index.type.layout.blayout is TileLayout.col_major
    base = do("muls", flat_index, ConstInt(COLS, INT32))
    flat = do("row_expand_add", spread, base)
    assert flat.type == tile_type((UPDATES, COLS), INT32, Mem.Vec)
    if dtype.bits == 16:
        flat = do("cast", flat, target_type=INT16, mode="none")
    zeros = do("full", [ROWS, COLS], ConstFloat(0.0, dtype), dtype=dtype)
    values = do("scatter", zeros, source, flat)
    mask_zeros = do("full", [ROWS, COLS], ConstFloat(0.0, mask_dtype), dtype=mask_dtype)
    ones = do("full", [UPDATES, COLS], ConstFloat(1.0, mask_dtype), dtype=mask_dtype)
    mask = do("scatter", mask_zeros, ones, flat)
    hit = do("cmps", mask, ConstFloat(0.0, mask_dtype), cmp_type=1)
    scratch = do("create", [1, 32], dtype=UINT8, target_memory=Mem.Vec)
    result = do("sel", hit, values, data, scratch)
    assert result.type == data.type
    out = tensor("out", (ROWS, COLS), dtype)
    assert do("store", result, [0, 0], out).type == out.type


@pytest.mark.parametrize("dtype", [FP32, FP16])
def test_a_tensor_compare_lowers_to_mask_and_select(dtype):
    left, right = load("a", [16, 64], dtype), load("b", [16, 64], dtype)
    mask = do("cmp", left, right, cmp_type=4)
    one = do("full", [16, 64], ConstFloat(1.0, dtype), dtype=dtype)
    zero = do("full", [16, 64], ConstFloat(0.0, dtype), dtype=dtype)
    scratch = do("create", [1, 32], dtype=UINT8, target_memory=Mem.Vec)
    result = do("sel", mask, one, zero, scratch)
    declared = make_call(
        "tensor.cmp", (tensor("a", (16, 64), dtype), tensor("b", (16, 64), dtype)), {"cmp_type": 4}
    ).type
    assert (result.type.shape, result.type.dtype) == (declared.shape, declared.dtype)


@pytest.mark.req("C-208", "C-214", "C-215")
@pytest.mark.parametrize("dtype", [FP32, INT32])
def test_a_flat_gather_compacts_a_strided_source_first(dtype):
    window = do("slice", load("p", [4, 32], dtype), [4, 8], [0, 8])
    if dtype.is_float:
        compact = do("extract", window, 0, 0, [4, 8], target_memory=Mem.Vec)
    else:
        compact = do("adds", window, ConstInt(0, dtype))
    index = load("i", [1, 16], INT32)
    scratch = do("create", [1, 16], dtype=INT32, target_memory=Mem.Vec)
    gathered = do("gather", compact, index, scratch)
    assert gathered.type == tile_type((1, 16), dtype, Mem.Vec)
    narrowed = do("set_validshape", gathered, 1, 10)
    assert narrowed.type.valid_shape == (1, 10)


@pytest.mark.req("C-163", "C-165")
def test_transposed_operands_are_padded_on_the_axis_that_becomes_m_or_n():
    lhs = do("load", tensor("a", (64, 100), FP16), [0, 0], [64, 112], [64, 100],
             target_memory=Mem.Mat)  # fmt: skip
    rhs = do("load", tensor("b", (100, 64), FP16), [0, 0], [112, 64], [100, 64],
             target_memory=Mem.Mat)  # fmt: skip
    product = do("matmul", do("transpose_view", lhs), do("transpose_view", rhs))
    assert (product.type.shape, product.type.valid_shape) == ((112, 112), (100, 100))
    out = tensor("out", (100, 100), FP32)
    assert do("store", product, [0, 0], out).type == out.type


def test_a_row_softmax_keeps_its_layout_from_load_to_store():
    x = load("x", [32, 64], FP32)
    scratch = do("create", [32, 128], dtype=FP32, target_memory=Mem.Vec)
    shifted = do("row_expand_sub", x, do("row_max", x, scratch))
    powers = do("exp", shifted)
    result = do("row_expand_div", powers, do("row_sum", powers, scratch))
    assert result.type == x.type
