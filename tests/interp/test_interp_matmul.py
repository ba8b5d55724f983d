"""Products: dtypes, accumulation, byte order of accumulators, operand checks."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from interp_programs import ACC, LEFT, MAT, RIGHT, VEC, kernel, op, out, params, tensor

from pypto_egg.errors import InterpretError
from pypto_egg.interp import compare, run
from pypto_egg.interp.poison import is_poison, numpy_dtype
from pypto_egg.ir.dtype import BF16, FP8E4M3FN, FP8E5M2, FP8E8M0, FP16, FP32, INDEX, INT8, INT32
from pypto_egg.ir.enums import CompactMode
from pypto_egg.ir.expr import ConstBool, Var
from pypto_egg.ir.types import ScalarType


def values(dtype, shape, seed=0):
    source = np.random.default_rng(seed)
    if dtype.is_float:
        return source.uniform(-1, 1, shape).astype(np.float32).astype(numpy_dtype(dtype))
    return source.integers(-100, 100, shape).astype(numpy_dtype(dtype))


def reference(a, b):
    if a.dtype.kind == "i":
        return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    return a.astype(np.float32) @ b.astype(np.float32)


def accumulator(dtype):
    return INT32 if dtype.is_int else FP32


def load_mat(b, x, shape=None, valid=None):
    shape = shape or list(x.type.shape)
    return b.op("tile.load", x, [0] * len(shape), shape, valid or shape, target_memory=MAT)


def matmul_program(dtype, m, k, n, build_acc):
    types = params(
        a=tensor([m, k], dtype), w=tensor([k, n], dtype), o=out(tensor([m, n], accumulator(dtype)))
    )

    def build(b, a, w, o):
        return b.op("tile.store", build_acc(b, a, w), [0, 0], o)

    return kernel(types, build)


@pytest.mark.parametrize("dtype", [FP32, FP16, BF16, INT8, FP8E4M3FN, FP8E5M2], ids=str)
@pytest.mark.parametrize("spaces", ["Mat", "L0"])
def test_product_of_tiles(dtype, spaces):
    m, k, n = 32, 64, 48

    def build(b, a, w):
        left, right = load_mat(b, a), load_mat(b, w)
        if spaces == "L0":
            left = b.op("tile.move", left, target_memory=LEFT)
            right = b.op("tile.move", right, target_memory=RIGHT)
        return b.op("tile.matmul", left, right)

    a, w = values(dtype, (m, k)), values(dtype, (k, n), 1)
    got = run(matmul_program(dtype, m, k, n, build), {"a": a, "w": w}).returns[0]
    assert np.allclose(got, reference(a, w), atol=1e-4)
    assert got.dtype == numpy_dtype(accumulator(dtype))


@pytest.mark.req("C-124", "C-128", "C-131")
@pytest.mark.parametrize("m", [1, 7, 100])
def test_padded_left_operand_gives_the_valid_rows_and_writes_no_others(m):
    rows = -(-m // 16) * 16

    def build(b, a, w, o):
        left = load_mat(b, a, [rows, 64], [m, 64])
        product = b.op("tile.matmul", left, load_mat(b, w))
        return b.op("tile.store", product, [0, 0], o)

    types = params(
        a=tensor([m, 64], FP16), w=tensor([64, 32], FP16), o=out(tensor([rows, 32], FP32))
    )
    a, w = values(FP16, (m, 64)), values(FP16, (64, 32), 1)
    got = run(kernel(types, build), {"a": a, "w": w}).returns[0]
    assert np.allclose(got[:m], reference(a, w), atol=1e-5)
    assert is_poison(got[m:]).all()


@pytest.mark.req("C-133")
@pytest.mark.parametrize("dtype", [FP32, BF16, INT8], ids=str)
def test_transposed_operands_are_views_of_the_loaded_bytes(dtype):
    m, k, n = 96, 64, 32

    def build(b, at, wt, o):
        left = b.op("tile.transpose_view", load_mat(b, at))
        right = b.op("tile.transpose_view", load_mat(b, wt))
        left = b.op("tile.extract", left, 0, 0, [m, k], target_memory=LEFT)
        right = b.op("tile.extract", right, 0, 0, [k, n], target_memory=RIGHT)
        return b.op("tile.store", b.op("tile.matmul", left, right), [0, 0], o)

    types = params(
        at=tensor([k, m], dtype),
        wt=tensor([n, k], dtype),
        o=out(tensor([m, n], accumulator(dtype))),
    )
    at, wt = values(dtype, (k, m)), values(dtype, (n, k), 1)
    got = run(kernel(types, build), {"at": at, "wt": wt}).returns[0]
    assert np.allclose(got, reference(at.T, wt.T), atol=1e-4)


@pytest.mark.req("C-152", "C-153", "C-270")
@pytest.mark.parametrize("compact", [True, False])
def test_accumulator_of_20_valid_rows_in_64_is_scrambled_unless_compact(compact):
    m, v, n = 64, 20, 64

    def build(b, a, w, o):
        call = op("tile.matmul", load_mat(b, a, [m, 32], [v, 32]), load_mat(b, w))
        mode = CompactMode.normal if compact else CompactMode.null
        product = b.let(call, type_=call.type.with_view(compact=mode))
        return b.op("tile.store", product, [0, 0], o)

    types = params(
        a=tensor([m, 32], BF16),
        w=tensor([32, n], BF16),
        o=out(tensor([m, n], FP32)),
    )
    a, w = values(BF16, (m, 32)), values(BF16, (32, n), 1)
    got = run(kernel(types, build), {"a": a, "w": w}).returns[0][:v]
    expected = reference(a, w)[:v]
    # The first column fractal starts at the same place whatever the pitch.
    assert np.allclose(got[:, :16], expected[:, :16], atol=1e-5)
    assert np.allclose(got[:, 16:], expected[:, 16:], atol=1e-5) is compact
    if not compact:
        # Written 32 rows apart and read 64 apart: fractal 1 of the reader is fractal 2.
        assert np.allclose(got[:, 16:32], expected[:, 32:48], atol=1e-5)


@pytest.mark.req("C-275")
def test_single_fractal_accumulator_needs_no_compactness():
    def build(b, a, w, o):
        call = op("tile.matmul", load_mat(b, a, [16, 32], [5, 32]), load_mat(b, w))
        product = b.let(call, type_=call.type.with_view(compact=CompactMode.null))
        return b.op("tile.store", product, [0, 0], o)

    types = params(
        a=tensor([16, 32], BF16), w=tensor([32, 64], BF16), o=out(tensor([16, 64], FP32))
    )
    a, w = values(BF16, (16, 32)), values(BF16, (32, 64), 1)
    got = run(kernel(types, build), {"a": a, "w": w}).returns[0]
    assert np.allclose(got[:5], reference(a, w)[:5], atol=1e-5)


def split_k(valid, narrow):
    """The loop of C-270: a full-box seed, a left operand with `v` runtime rows."""
    m, k, n, step = 64, 64, 32, 16
    v = Var("v", ScalarType(INDEX))
    types = params(x=tensor([m, k], INT8), w=tensor([k, n], INT8), o=out(tensor([m, n], INT32)))
    types["v"] = replace(types["x"], var=v)

    def build(b, x, w, o, v):
        seed = b.op("tile.create", [m, n], dtype=INT32, target_memory=ACC, compact=narrow)
        if narrow:
            seed = b.op("tile.set_validshape", seed, v, n)

        def trip(b, i, acc):
            left = b.op("tile.load", x, [0, i], [m, step], [v, step], target_memory=MAT)
            right = b.op("tile.load", w, [i, 0], [step, n], target_memory=MAT)
            return [b.op("tile.matmul_acc", acc, left, right)]

        (acc,) = b.loop(0, k, step, [seed], trip)
        return b.op("tile.store", acc, [0, 0], o)

    inputs = {"x": values(INT8, (m, k)), "w": values(INT8, (k, n), 1), "v": valid}
    return kernel(types, build), inputs


@pytest.mark.req("C-270", "C-271", "C-272")
def test_loop_carry_that_forgets_the_valid_rows_reads_scrambled_columns():
    wrong, inputs = split_k(20, narrow=False)
    right, _ = split_k(20, narrow=True)
    expected = reference(inputs["x"], inputs["w"])[:20]
    good = run(right, inputs).returns[0]
    bad = run(wrong, inputs).returns[0]
    assert np.array_equal(good[:20], expected)
    assert is_poison(good[20:]).all()
    assert np.array_equal(bad[:20, :16], expected[:, :16])
    assert not np.array_equal(bad[:20, 16:], expected[:, 16:])


@pytest.mark.parametrize("valid", [49, 64])
def test_same_pitch_reads_alike(valid):
    wrong, inputs = split_k(valid, narrow=False)
    expected = reference(inputs["x"], inputs["w"])[:valid]
    assert np.array_equal(run(wrong, inputs).returns[0][:valid], expected)


def test_accumulation_starts_from_zero_on_undefined_storage_only():
    def build(b, a, w, c):
        fresh = b.op("tensor.create", [16, 16], dtype=FP32)
        started = b.op("tensor.matmul_acc", fresh, a, w)
        return [started, b.op("tensor.matmul_acc", c, a, w)]

    types = params(a=tensor([16, 32], BF16), w=tensor([32, 16], BF16), c=tensor([16, 16], FP32))
    a, w, c = values(BF16, (16, 32)), values(BF16, (32, 16), 1), values(FP32, (16, 16), 2)
    c[3, 4] = np.nan
    first, second = run(kernel(types, build), {"a": a, "w": w, "c": c}).returns
    assert np.allclose(first, reference(a, w), atol=1e-5)
    assert np.isnan(second[3, 4])
    assert np.isnan(second).sum() == 1


def test_tensor_accumulation_leaves_its_operand_alone():
    def build(b, a, w, c):
        second = b.op("tensor.matmul_acc", c, a, w)
        return [second, b.op("tensor.adds", c, 0.0)]

    types = params(a=tensor([16, 32], BF16), w=tensor([32, 16], BF16), c=tensor([16, 16], FP32))
    a, w, c = values(BF16, (16, 32)), values(BF16, (32, 16), 1), values(FP32, (16, 16), 2)
    total, kept = run(kernel(types, build), {"a": a, "w": w, "c": c}).returns
    assert np.allclose(total, c + reference(a, w), atol=1e-5)
    assert np.array_equal(kept, c)


def test_tile_accumulation_is_in_place():
    def build(b, a, w, o):
        left, right = load_mat(b, a), load_mat(b, w)
        seed = b.op("tile.matmul", left, right)
        b.op("tile.matmul_acc", seed, left, right)
        return b.op("tile.store", seed, [0, 0], o)

    types = params(
        a=tensor([16, 32], BF16), w=tensor([32, 16], BF16), o=out(tensor([16, 16], FP32))
    )
    a, w = values(BF16, (16, 32)), values(BF16, (32, 16), 1)
    got = run(kernel(types, build), {"a": a, "w": w}).returns[0]
    assert np.allclose(got, 2 * reference(a, w), atol=1e-5)


@pytest.mark.parametrize("form", ["tensor", "tile"])
def test_init_cond_overwrites(form):
    def build(b, a, w, c):
        if form == "tensor":
            return b.op("tensor.matmul_acc", c, a, w, ConstBool(True))
        seed = b.op("tile.create", [16, 16], dtype=FP32, target_memory=ACC)
        left, right = load_mat(b, a), load_mat(b, w)
        seed = b.op("tile.matmul_acc", seed, left, right)
        acc = b.op("tile.matmul_acc", seed, left, right, ConstBool(True))
        return b.op("tile.store", acc, [0, 0], c)

    types = params(a=tensor([16, 32], BF16), w=tensor([32, 16], BF16), c=tensor([16, 16], FP32))
    a, w, c = values(BF16, (16, 32)), values(BF16, (32, 16), 1), values(FP32, (16, 16), 2)
    got = run(kernel(types, build), {"a": a, "w": w, "c": c}).returns[0]
    assert np.allclose(got, reference(a, w), atol=1e-5)


def test_int8_products_wrap_in_int32():
    k = 131072 + 2
    a = np.full((1, k), 127, np.int8)
    w = np.full((k, 1), 127, np.int8)
    types = params(a=tensor([1, k], INT8), w=tensor([k, 1], INT8))
    program = kernel(types, lambda b, a, w: b.op("tensor.matmul", a, w, out_dtype=INT32))
    expected = (127 * 127 * k + 2**31) % 2**32 - 2**31
    assert run(program, {"a": a, "w": w}).returns[0][0, 0] == expected


@pytest.mark.parametrize("a_trans", [False, True])
@pytest.mark.parametrize("b_trans", [False, True])
def test_tensor_transpose_flags(a_trans, b_trans):
    a, w = values(FP16, (4, 32, 64)), values(FP16, (64, 48), 1)
    given_a = np.ascontiguousarray(a.swapaxes(1, 2)) if a_trans else a
    given_w = np.ascontiguousarray(w.T) if b_trans else w
    types = params(a=tensor(list(given_a.shape), FP16), w=tensor(list(given_w.shape), FP16))

    def build(b, a, w):
        return b.op("tensor.matmul", a, w, a_trans=a_trans, b_trans=b_trans, out_dtype=FP32)

    got = run(kernel(types, build), {"a": given_a, "w": given_w}).returns[0]
    assert np.allclose(got, np.matmul(a.astype(np.float32), w.astype(np.float32)), atol=1e-4)


def test_product_without_out_dtype_is_rounded_to_the_operands_type():
    a, w = values(BF16, (16, 32)), values(BF16, (32, 16), 1)
    types = params(a=tensor([16, 32], BF16), w=tensor([32, 16], BF16))
    program = kernel(types, lambda b, a, w: b.op("tensor.matmul", a, w))
    got = run(program, {"a": a, "w": w}).returns[0]
    assert np.array_equal(got, reference(a, w).astype(ml_dtypes.bfloat16))


def test_bias_and_gemv():
    a, w, c = values(FP16, (1, 32)), values(FP16, (32, 16), 1), values(FP32, (1, 16), 2)

    def build(b, a, w, c, o):
        left = b.op("tile.load", a, [0, 0], [1, 32], target_memory=MAT)
        bias = b.op("tile.load", c, [0, 0], [1, 16], target_memory=MAT)
        return b.op("tile.store", b.op("tile.gemv_bias", left, load_mat(b, w), bias), [0, 0], o)

    types = params(
        a=tensor([1, 32], FP16), w=tensor([32, 16], FP16), c=tensor([1, 16], FP32),
        o=out(tensor([1, 16], FP32)),
    )  # fmt: skip
    got = run(kernel(types, build), {"a": a, "w": w, "c": c}).returns[0]
    assert np.allclose(got, reference(a, w) + c, atol=1e-5)


def test_microscaled_product():
    m, k, n = 16, 64, 16
    a, w = values(FP8E4M3FN, (m, k)), values(FP8E4M3FN, (k, n), 1)
    source = np.random.default_rng(4)
    scale_a = np.exp2(source.integers(-2, 3, (m, k // 32)).astype(np.float32))
    scale_w = np.exp2(source.integers(-2, 3, (k // 32, n)).astype(np.float32))
    stored = numpy_dtype(FP8E8M0)
    types = params(
        a=tensor([m, k], FP8E4M3FN), sa=tensor([m, k // 32], FP8E8M0),
        w=tensor([k, n], FP8E4M3FN), sw=tensor([k // 32, n], FP8E8M0),
        o=out(tensor([m, n], FP32)),
    )  # fmt: skip

    def build(b, a, sa, w, sw, o):
        tiles = [load_mat(b, x) for x in (a, sa, w, sw)]
        return b.op("tile.store", b.op("tile.matmul_mx", *tiles), [0, 0], o)

    inputs = {"a": a, "sa": scale_a.astype(stored), "w": w, "sw": scale_w.astype(stored)}
    got = run(kernel(types, build), inputs).returns[0]
    wide_a = a.astype(np.float32) * np.repeat(scale_a, 32, axis=1)
    wide_w = w.astype(np.float32) * np.repeat(scale_w, 32, axis=0)
    assert np.allclose(got, wide_a @ wide_w, atol=1e-4)


def test_padding_of_the_right_operand_shows_when_k_is_not_covered():
    def build(b, a, w, o):
        right = load_mat(b, w, [64, 16], [64, 16])
        narrow = b.op("tile.load", w, [0, 0], [64, 16], [40, 16], target_memory=MAT)
        call = op("tile.matmul", load_mat(b, a), right)
        product = b.let(replace(call, args=(call.args[0], narrow)))
        return b.op("tile.store", product, [0, 0], o)

    types = params(
        a=tensor([16, 64], FP16), w=tensor([64, 16], FP16), o=out(tensor([16, 16], FP32))
    )
    a, w = values(FP16, (16, 64)), values(FP16, (64, 16), 1)
    assert np.isnan(run(kernel(types, build), {"a": a, "w": w}).returns[0]).all()


@pytest.mark.req("C-138", "C-145")
def test_physical_extents_must_agree():
    def build(b, a, w, o):
        left, right = load_mat(b, a), load_mat(b, w)
        good = op("tile.matmul", left, right)
        short = b.op("tile.load", w, [0, 0], [32, 16], target_memory=MAT)
        return b.op("tile.store", b.let(replace(good, args=(left, short))), [0, 0], o)

    types = params(
        a=tensor([16, 64], FP16), w=tensor([64, 16], FP16), o=out(tensor([16, 16], FP32))
    )
    a, w = values(FP16, (16, 64)), values(FP16, (64, 16), 1)
    with pytest.raises(InterpretError, match=r"K = 64, .* K = 32"):
        run(kernel(types, build), {"a": a, "w": w})


def test_cube_operands_in_the_wrong_buffer_are_refused():
    def build(b, a, w, o):
        left = b.op("tile.move", load_mat(b, a), target_memory=RIGHT)
        return b.op("tile.store", b.op("tile.matmul", left, load_mat(b, w)), [0, 0], o)

    types = params(
        a=tensor([16, 64], FP16), w=tensor([64, 16], FP16), o=out(tensor([16, 16], FP32))
    )
    a, w = values(FP16, (16, 64)), values(FP16, (64, 16), 1)
    with pytest.raises(InterpretError, match="lies in Right, the cube takes it from Left"):
        run(kernel(types, build), {"a": a, "w": w})


def test_split_k_equals_the_whole_product_within_the_tolerance():
    m, k, n = 32, 512, 32
    types = {"a": tensor([m, k], BF16), "w": tensor([k, n], BF16)}
    whole = kernel(params(**types), lambda b, a, w: b.op("tensor.matmul", a, w, out_dtype=FP32))

    def build(b, a, w):
        seed = b.op("tensor.create", [m, n], dtype=FP32)

        def trip(b, i, acc):
            ak = b.op("tensor.slice", a, [m, 64], [0, i])
            wk = b.op("tensor.slice", w, [64, n], [i, 0])
            return [b.op("tensor.matmul_acc", acc, ak, wk)]

        return list(b.loop(0, k, 64, [seed], trip))

    split = kernel(params(**types), build)
    inputs = {"a": values(BF16, (m, k)), "w": values(BF16, (k, n), 1)}
    verdict = compare(whole, split, inputs)
    assert verdict.equal
    assert verdict.compared == m * n


def test_vec_accumulator_is_moved_to_acc_order():
    def build(b, a, w, o):
        seed = b.op("tile.create", [32, 32], dtype=FP32, target_memory=VEC)
        acc = b.op("tile.matmul_acc", seed, load_mat(b, a), load_mat(b, w))
        assert acc.type.space is ACC
        return b.op("tile.store", acc, [0, 0], o)

    types = params(
        a=tensor([32, 64], FP16), w=tensor([64, 32], FP16), o=out(tensor([32, 32], FP32))
    )
    a, w = values(FP16, (32, 64)), values(FP16, (64, 32), 1)
    got = run(kernel(types, build), {"a": a, "w": w}).returns[0]
    assert np.allclose(got, reference(a, w), atol=1e-5)


def test_batched_tiles():
    a, w = values(FP16, (2, 16, 32)), values(FP16, (2, 32, 16), 1)

    def build(b, a, w, o):
        product = b.op("tile.batch_matmul", load_mat(b, a), load_mat(b, w))
        return b.op("tile.store", product, [0, 0, 0], o)

    types = params(
        a=tensor([2, 16, 32], FP16), w=tensor([2, 32, 16], FP16), o=out(tensor([2, 16, 16], FP32))
    )
    got = run(kernel(types, build), {"a": a, "w": w}).returns[0]
    assert np.allclose(got, np.matmul(a.astype(np.float32), w.astype(np.float32)), atol=1e-5)


@pytest.mark.parametrize("form", ["bias", "acc"])
def test_microscaled_product_with_a_start(form):
    m, k, n = 16, 64, 16
    a, w = values(FP8E4M3FN, (m, k)), values(FP8E4M3FN, (k, n), 1)
    ones_a = np.ones((m, 2), numpy_dtype(FP8E8M0))
    ones_w = np.ones((2, n), numpy_dtype(FP8E8M0))
    types = params(
        a=tensor([m, k], FP8E4M3FN), sa=tensor([m, 2], FP8E8M0),
        w=tensor([k, n], FP8E4M3FN), sw=tensor([2, n], FP8E8M0),
        c=tensor([1, n], FP32), o=out(tensor([m, n], FP32)),
    )  # fmt: skip

    def build(b, a, sa, w, sw, c, o):
        tiles = [load_mat(b, x) for x in (a, sa, w, sw)]
        if form == "bias":
            product = b.op("tile.matmul_mx_bias", *tiles, load_mat(b, c))
        else:
            start = b.op("tile.matmul_mx", *tiles)
            product = b.op("tile.matmul_mx_acc", start, *tiles)
        return b.op("tile.store", product, [0, 0], o)

    c = values(FP32, (1, n), 2)
    inputs = {"a": a, "sa": ones_a, "w": w, "sw": ones_w, "c": c}
    plain = a.astype(np.float32) @ w.astype(np.float32)
    expected = plain + c if form == "bias" else 2 * plain
    assert np.allclose(run(kernel(types, build), inputs).returns[0], expected, atol=1e-4)


def test_inner_extents_that_differ_at_run_time_are_an_error_with_both_sizes():
    k, j = Var("K", ScalarType(INDEX)), Var("J", ScalarType(INDEX))
    types = params(a=tensor([4, k], FP32), w=tensor([j, 4], FP32))
    program = kernel(types, lambda b, a, w: b.op("tensor.matmul", a, w))
    with pytest.raises(InterpretError, match="'a' has K = 8, 'w' has K = 9"):
        run(program, {"a": values(FP32, (4, 8)), "w": values(FP32, (9, 4))})


def test_accumulator_of_another_shape_is_an_error():
    m = Var("M", ScalarType(INDEX))
    types = params(c=tensor([m, 4], FP32), a=tensor([4, 8], FP32), w=tensor([8, 4], FP32))
    program = kernel(types, lambda b, c, a, w: b.op("tensor.matmul_acc", c, a, w))
    inputs = {"c": values(FP32, (5, 4)), "a": values(FP32, (4, 8)), "w": values(FP32, (8, 4))}
    with pytest.raises(InterpretError, match=r"product has shape \[4, 4\], the accumulator 'c'"):
        run(program, inputs)


def test_vectors_multiply_without_their_missing_axis():
    a, w = values(FP32, (8,)), values(FP32, (8, 4), 1)
    types = params(a=tensor([8], FP32), w=tensor([8, 4], FP32))
    program = kernel(types, lambda b, a, w: b.op("tensor.matmul", a, w))
    assert np.allclose(run(program, {"a": a, "w": w}).returns[0], a @ w, atol=1e-6)
