"""Elementwise operators and reductions against numpy, in tensor and tile form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from interp_programs import VEC, kernel, op, out, params, tensor

from pypto_egg.errors import InterpretError
from pypto_egg.interp import run
from pypto_egg.interp.poison import is_poison, numpy_dtype
from pypto_egg.ir.dtype import BF16, FP16, FP32, INDEX, INT8, INT16, INT32, UINT8, UINT16, UINT32
from pypto_egg.ir.expr import ConstFloat, ConstInt, Var
from pypto_egg.ir.program import Param
from pypto_egg.ir.types import ScalarType

SHAPE = (16, 32)


def values(dtype, shape=SHAPE, seed=0, low=-2.0, high=2.0):
    source = np.random.default_rng(seed)
    if dtype.is_float:
        return source.uniform(low, high, shape).astype(np.float32).astype(numpy_dtype(dtype))
    smallest = max(int(low), 0) if not dtype.is_signed else -100
    return source.integers(smallest, 100, shape).astype(numpy_dtype(dtype))


def run_tensor(name, arrays, dtypes, *scalars, **kwargs):
    names = [f"x{i}" for i in range(len(arrays))]
    types = {n: tensor(list(a.shape), d) for n, a, d in zip(names, arrays, dtypes, strict=True)}
    program = kernel(
        params(**types), lambda b, *xs: b.op(f"tensor.{name}", *xs, *scalars, **kwargs)
    )
    return run(program, dict(zip(names, arrays, strict=True))).returns[0]


def run_tile(name, arrays, dtypes, *scalars, result=None, scratch=(), **kwargs):
    """Load every array whole into Vec, apply tile.<name>, store the result."""
    names = [f"x{i}" for i in range(len(arrays))]
    types = {n: tensor(list(a.shape), d) for n, a, d in zip(names, arrays, dtypes, strict=True)}

    def build(b, *xs):
        target, sources = xs[-1], xs[:-1]
        tiles = [
            b.op("tile.load", x, [0] * x.type.rank, list(x.type.shape), target_memory=VEC)
            for x in sources
        ]
        spare = [b.op("tile.create", s, dtype=d, target_memory=VEC) for s, d in scratch]
        y = b.op(f"tile.{name}", *tiles, *scalars, *spare, **kwargs)
        return b.op("tile.store", y, [0] * target.type.rank, target)

    shape, dtype = result or (list(arrays[0].shape), dtypes[0])
    program = kernel(params(**types, o=out(tensor(list(shape), dtype))), build)
    return run(program, dict(zip(names, arrays, strict=True))).returns[0]


def rounded(expected, dtype):
    return np.asarray(expected, np.float32).astype(numpy_dtype(dtype))


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


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_row_reductions(name):
    x = values(FP32)
    expected = getattr(np, name)(x, axis=1, keepdims=True)
    assert np.allclose(run_tensor(f"row_{name}", [x], [FP32]), expected, rtol=1e-6)
    got = run_tile(f"row_{name}", [x], [FP32], result=([16, 1], FP32), scratch=[([16, 128], FP32)])
    assert np.allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("form", [run_tensor, run_tile])
def test_column_reductions(form, name):
    x = values(FP32)
    expected = getattr(np, name)(x, axis=0, keepdims=True)
    extra = {"result": ([1, 32], FP32)} if form is run_tile else {}
    assert np.allclose(form(f"col_{name}", [x], [FP32], **extra), expected, rtol=1e-6)


def test_column_reduction_of_rank_three_differs_between_tensor_and_tile():
    x = values(FP32, (2, 4, 8))
    assert np.allclose(run_tensor("col_max", [x], [FP32]), x.max(axis=1, keepdims=True))
    tile = run_tile("col_max", [x], [FP32], result=([1, 4, 8], FP32))
    assert np.allclose(tile, x.max(axis=0, keepdims=True))


def test_integer_sums_wrap():
    x = np.full((2, 4), 100, np.int8)
    assert run_tensor("row_sum", [x], [INT8]).tolist() == [[-112], [-112]]


@pytest.mark.parametrize("name", ["row_argmax", "row_argmin", "col_argmax", "col_argmin"])
def test_arg_reductions(name):
    x = values(FP32)
    axis = 1 if name.startswith("row") else 0
    expected = getattr(np, name[4:])(x, axis=axis, keepdims=True)
    assert np.array_equal(run_tensor(name, [x], [FP32]), expected)
    shape = [16, 1] if axis else [1, 32]
    got = run_tile(name, [x], [FP32], result=(shape, INT32), scratch=[(list(SHAPE), FP32)])
    assert np.array_equal(got, expected)


@pytest.mark.parametrize(
    ("number", "function"),
    list(enumerate([np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal])),
)
def test_comparisons_and_selection(number, function):
    x, y = values(INT32), values(INT32, seed=1)
    y[:, ::3] = x[:, ::3]
    expected = function(x, y)
    ones = run_tensor("cmp", [x, y], [INT32, INT32], cmp_type=number)
    assert np.array_equal(ones, expected.astype(np.int32))

    def build(b, x0, x1, o):
        tiles = [b.op("tile.load", v, [0, 0], [16, 32], target_memory=VEC) for v in (x0, x1)]
        mask = b.op("tile.cmp", *tiles, cmp_type=number)
        tmp = b.op("tile.create", [1, 32], dtype=UINT8, target_memory=VEC)
        return b.op("tile.store", b.op("tile.sel", mask, *tiles, tmp), [0, 0], o)

    kind = tensor([16, 32], INT32)
    got = run(kernel(params(a=kind, b=kind, o=out(kind)), build), {"a": x, "b": y}).returns[0]
    assert np.array_equal(got, np.where(expected, x, y))


def test_mask_bits_are_packed_little_endian():
    x = np.zeros((1, 32), np.float32)
    x[0, [0, 3, 9]] = 1

    def build(b, x0, o):
        tile = b.op("tile.load", x0, [0, 0], [1, 32], target_memory=VEC)
        mask = b.op("tile.cmps", tile, ConstFloat(0.5), cmp_type=4)
        return b.op("tile.store", mask, [0, 0], o)

    program = kernel(params(x=tensor([1, 32], FP32), o=out(tensor([1, 32], UINT8))), build)
    assert run(program, {"x": x}).returns[0][0, :4].tolist() == [0b1001, 0b10, 0, 0]


def test_select_with_a_scalar():
    x = values(FP32)

    def build(b, x0, o):
        tile = b.op("tile.load", x0, [0, 0], [16, 32], target_memory=VEC)
        mask = b.op("tile.cmps", tile, ConstFloat(0.0), cmp_type=2)
        tmp = b.op("tile.create", [1, 32], dtype=UINT8, target_memory=VEC)
        chosen = b.op("tile.sels", mask, tile, tmp, ConstFloat(9.0))
        return b.op("tile.store", chosen, [0, 0], o)

    kind = tensor([16, 32], FP32)
    got = run(kernel(params(x=kind, o=out(kind)), build), {"x": x}).returns[0]
    assert np.array_equal(got, np.where(x < 0, x, np.float32(9)))


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


def test_tensor_comparison_with_a_scalar_promotes():
    x = values(INT32)
    got = run_tensor("cmp", [x], [INT32], ConstFloat(10.5), cmp_type=4)
    assert got.dtype == np.float32
    assert np.array_equal(got, (x > 10.5).astype(np.float32))


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


def test_reductions_that_drop_the_axis():
    x = values(FP32)
    dropped = run_tensor("row_sum", [x], [FP32], axis=-1, keep_dim=False)
    assert np.allclose(dropped, x.sum(axis=1), atol=1e-5)
    line = values(FP32, (32,))
    assert run_tensor("row_max", [line], [FP32], keep_dim=False) == line.max()


@pytest.mark.parametrize(
    ("name", "expected"), [("sum", 0), ("prod", 1), ("max", -3.4028234663852886e38)]
)
def test_reduction_over_no_valid_element_gives_its_neutral_element(name, expected):
    n = Var("n", ScalarType(INDEX))
    types = params(x=tensor([4, 8], FP32))
    types["n"] = Param(n)

    def build(b, x, n):
        part = b.op("tensor.slice", x, [4, 8], [0, 0], [4, n])
        return b.op(f"tensor.row_{name}", part)

    got = run(kernel(types, build), {"x": values(FP32, (4, 8)), "n": 0}).returns[0]
    assert (got == np.float32(expected)).all()


def test_argument_of_no_valid_element_is_an_error():
    types = params(x=tensor([4, 8], FP32))
    types["n"] = Param(Var("n", ScalarType(INDEX)))

    def build(b, x, n):
        return b.op("tensor.row_argmax", b.op("tensor.slice", x, [4, 8], [0, 0], [4, n]))

    with pytest.raises(InterpretError, match="no valid element on axis 1"):
        run(kernel(types, build), {"x": values(FP32, (4, 8)), "n": 0})
