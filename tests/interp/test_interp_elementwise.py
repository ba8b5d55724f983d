"""Elementwise operators against numpy, in tensor and tile form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from interp_ops import SHAPE, rounded, run_tensor, run_tile, values
from interp_programs import VEC, kernel, op, out, params, tensor

from pypto_egg.errors import InterpretError
from pypto_egg.interp import run
from pypto_egg.interp.poison import is_poison
from pypto_egg.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, UINT8, UINT16, UINT32
from pypto_egg.ir.expr import ConstFloat, ConstInt

UNARY = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x,
}


@pytest.mark.parametrize("dtype", [FP32, FP16, BF16], ids=str)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_unary_float(form, name, dtype):
    x = values(dtype, low=0.5)
    expected = rounded(UNARY[name](x.astype(np.float32)), dtype)
    assert np.array_equal(form(name, [x], [dtype]), expected)


@pytest.mark.parametrize("name", ["log", "sin", "cos"])
@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_unary_fp32_only(form, name):
    x = values(FP32, low=0.5)
    assert np.array_equal(form(name, [x], [FP32]), getattr(np, name)(x))


@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_not_and_integer_negation_wrap(form):
    x = values(INT16)
    x[0, 0] = -32768
    assert np.array_equal(form("not", [x], [INT16]), ~x)
    assert form("neg", [x], [INT16])[0, 0] == -32768


def test_integer_exp_is_fp32_for_tensors_and_stays_integer_for_tiles():
    x = np.array([[0, 1, 2, 3]], np.int32)
    assert np.array_equal(run_tensor("exp", [x], [INT32]), np.exp(x.astype(np.float32)))
    assert run_tile("exp", [x], [INT32]).tolist() == [[1, 2, 7, 20]]


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@pytest.mark.parametrize("dtype", [FP32, FP16, BF16, INT8, INT16, INT32, UINT8], ids=str)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_binary(form, name, dtype):
    x, y = values(dtype), values(dtype, seed=1)
    if dtype.is_float:
        expected = rounded(BINARY[name](x.astype(np.float32), y.astype(np.float32)), dtype)
    else:
        expected = BINARY[name](x, y)
    assert np.array_equal(form(name, [x, y], [dtype, dtype]), expected)


@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_division(form):
    x, y = values(FP32), values(FP32, seed=1)
    assert np.array_equal(form("div", [x, y], [FP32, FP32]), x / y)
    a = np.array([[7, -7, 7, -7, 5]], np.int32)
    b = np.array([[2, 2, -2, -2, 0]], np.int32)
    assert form("div", [a, b], [INT32, INT32]).tolist() == [[3, -3, -3, 3, 0]]


@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_fmod_has_the_sign_of_the_dividend(form):
    x, y = values(FP32), values(FP32, seed=1)
    assert np.array_equal(form("fmod", [x, y], [FP32, FP32]), np.fmod(x, y))


def test_rem_has_the_sign_of_the_divisor():
    a = np.array([[7, -7, 7, -7]], np.int32)
    b = np.array([[3, 3, -3, -3]], np.int32)
    got = run_tile("rem", [a, b], [INT32, INT32], scratch=[([1, 4], INT32)])
    assert got.tolist() == [[1, 2, -2, -1]]


@pytest.mark.parametrize("name", ["and", "or"])
@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_bitwise(form, name):
    x, y = values(INT32), values(INT32, seed=1)
    expected = np.bitwise_and(x, y) if name == "and" else np.bitwise_or(x, y)
    assert np.array_equal(form(name, [x, y], [INT32, INT32]), expected)


def test_shifts_by_the_width_give_zero_or_the_sign():
    x = np.array([[1, -1, 5, -8]], np.int16)
    n = np.array([[3, 16, 1, 2]], np.int16)
    assert run_tensor("shl", [x, n], [INT16, INT16]).tolist() == [[8, 0, 10, -32]]
    assert run_tensor("shr", [x, n], [INT16, INT16]).tolist() == [[0, -1, 2, -2]]


def test_tensor_operands_are_promoted_tile_scalars_are_not():
    x, y = values(FP16), values(FP32, seed=1)
    mixed = run_tensor("add", [x, y], [FP16, FP32])
    assert np.array_equal(mixed, x.astype(np.float32) + y)
    assert run_tensor("muls", [x], [FP16], ConstFloat(0.1)).dtype == np.float32
    tile = run_tile("muls", [x], [FP16], ConstFloat(0.1))
    assert np.array_equal(tile, (x.astype(np.float32) * np.float16(0.1)).astype(np.float16))
    ints = values(INT32)
    assert np.array_equal(run_tile("muls", [ints], [INT32], ConstFloat(2.9)), ints * 2)


@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_scalar_forms(form):
    x = values(FP32)
    one = ConstFloat(1.5)
    for name, expected in (
        ("adds", x + np.float32(1.5)),
        ("subs", x - np.float32(1.5)),
        ("muls", x * np.float32(1.5)),
        ("divs", x / np.float32(1.5)),
    ):
        assert np.array_equal(form(name, [x], [FP32], one), expected)
    i = values(INT32)
    assert np.array_equal(form("shls", [i], [INT32], ConstInt(2, INT32)), i << 2)
    assert np.array_equal(form("ands", [i], [INT32], ConstInt(12, INT32)), i & 12)


def test_extrema_with_scalars():
    x = values(FP32)
    zero = ConstFloat(0.0)
    assert np.array_equal(run_tensor("maximum", [x], [FP32], zero), np.maximum(x, 0))
    assert np.array_equal(run_tile("maximums", [x], [FP32], zero), np.maximum(x, 0))


@pytest.mark.parametrize("left", [(16, 1), (1, 32), (16, 32)])
def test_tensor_broadcasting(left):
    x, y = values(FP32, left), values(FP32, seed=1)
    assert np.array_equal(run_tensor("add", [x, y], [FP32, FP32]), x + y)


def test_narrow_left_tile_marks_the_result_valid_in_its_first_row_only():
    row, wide = values(FP32, (1, 32)), values(FP32, seed=1)
    shape = (list(wide.shape), FP32)
    wrong = run_tile("add", [row, wide], [FP32, FP32], result=shape)
    right = run_tile("add", [wide, row], [FP32, FP32], result=shape)
    assert np.array_equal(right, wide + row)
    assert np.array_equal(wrong[0], right[0])
    assert is_poison(wrong[1:]).all()


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min", "expdif"])
@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_row_and_column_expansion(form, axis, name):
    x = values(FP32)
    v = values(FP32, (16, 1) if axis == "row" else (1, 32), seed=1, low=0.5)
    functions = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "max": np.maximum,
        "min": np.minimum,
        "expdif": lambda a, b: np.exp(a - b),
    }
    got = form(f"{axis}_expand_{name}", [x, v], [FP32, FP32])
    assert np.array_equal(got, functions[name](x, v))


@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_plain_expansion_ignores_the_targets_values(form):
    x, v = values(FP32), values(FP32, (16, 1), seed=1)
    assert np.array_equal(form("row_expand", [x, v], [FP32, FP32]), np.broadcast_to(v, SHAPE))
    assert (form("expands", [x], [FP32], ConstFloat(3.0)) == 3).all()


def test_relu_family_and_three_operand_adds():
    x, y, z = values(FP32), values(FP32, seed=1), values(FP32, seed=2)
    assert np.array_equal(run_tile("relu", [x], [FP32]), np.maximum(x, 0))
    slope = np.float32(0.1)
    leaky = run_tile("lrelu", [x], [FP32], ConstFloat(0.1))
    assert np.array_equal(leaky, np.where(x > 0, x, x * slope))
    each = run_tile("prelu", [x, y], [FP32, FP32], scratch=[([16, 32], FP32)])
    assert np.array_equal(each, np.where(x > 0, x, x * y))
    triple = [FP32] * 3
    assert np.array_equal(run_tile("addc", [x, y, z], triple), x + y + z)
    assert np.array_equal(run_tile("subc", [x, y, z], triple), x - y - z)


def test_partial_operators_copy_where_only_one_operand_is_valid():
    x, y = values(FP32), values(FP32, seed=1)

    def build(b, x0, x1):
        left = b.op("tensor.slice", x0, [16, 32], [0, 0], [4, 32])
        right = b.op("tensor.slice", x1, [16, 32], [0, 0], [10, 8])
        return b.op("tensor.part_add", left, right)

    kind = tensor([16, 32], FP32)
    got = run(kernel(params(a=kind, b=kind), build), {"a": x, "b": y}).returns[0]
    assert np.array_equal(got[:4, :8], (x + y)[:4, :8])
    assert np.array_equal(got[:4, 8:], x[:4, 8:])
    assert np.array_equal(got[4:10, :8], y[4:10, :8])
    assert is_poison(got[4:10, 8:]).all()
    assert is_poison(got[10:]).all()


@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_casts(form):
    x = values(FP32, low=-50, high=50)
    extra = {"result": (list(SHAPE), INT8)} if form is run_tile else {}
    got = form("cast", [x], [FP32], target_type=INT8, mode="floor", **extra)
    assert np.array_equal(got, np.floor(x).astype(np.int8))


def test_broadcast_failure_names_the_shapes():
    # The type rules refuse this program, so its call is built with a type of our own.

    good = op(
        "tensor.add",
        *(p.var for p in params(a=tensor([4, 8], FP32), b=tensor([4, 8], FP32)).values()),
    )

    def build(b, x, y):
        return b.let(replace(good, args=(x, y)))

    program = kernel(params(x=tensor([4, 8], FP32), y=tensor([5, 8], FP32)), build)
    with pytest.raises(InterpretError, match=r"\[4, 8\] and \[5, 8\] do not broadcast"):
        run(program, {"x": values(FP32, (4, 8)), "y": values(FP32, (5, 8))})


def test_unsigned_types_compute_in_themselves():
    x = np.array([[3, 0]], np.uint16)
    y = np.array([[5, 1]], np.uint16)
    assert run_tensor("sub", [x, y], [UINT16, UINT16]).tolist() == [[65534, 65535]]
    a = np.array([[2**31]], np.uint32)
    assert run_tensor("add", [a, a], [UINT32, UINT32]).tolist() == [[0]]


def test_three_operand_adds_with_a_scalar():
    x, y = values(FP32), values(FP32, seed=1)

    def build(b, x0, y0, o):
        tiles = [b.op("tile.load", t, [0, 0], [16, 32], target_memory=VEC) for t in (x0, y0)]
        total = b.op("tile.addsc", tiles[0], ConstFloat(2.0), tiles[1])
        rest = b.op("tile.subsc", tiles[0], ConstFloat(2.0), tiles[1])
        first = b.op("tile.store", total, [0, 0], o)
        return b.op("tile.store", rest, [16, 0], first)

    kind = tensor([16, 32], FP32)
    program = kernel(params(x=kind, y=kind, o=out(tensor([32, 32], FP32))), build)
    got = run(program, {"x": x, "y": y}).returns[0]
    assert np.array_equal(got[:16], x + np.float32(2) + y)
    assert np.array_equal(got[16:], x - np.float32(2) - y)


def test_integer_fmod_and_float_rem():
    a = np.array([[7, -7, 7, -7, 3]], np.int32)
    b = np.array([[3, 3, -3, -3, 0]], np.int32)
    assert run_tensor("fmod", [a, b], [INT32, INT32]).tolist() == [[1, -1, 1, -1, 0]]
    x, y = values(FP32), values(FP32, seed=1)
    got = run_tile("rem", [x, y], [FP32, FP32], scratch=[(list(SHAPE), FP32)])
    assert np.array_equal(got, np.mod(x, y))
