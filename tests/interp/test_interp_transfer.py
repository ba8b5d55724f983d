"""Loads, stores, moves and windows: what they touch, what they refuse, what poison reveals."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interp_programs import (
    ACC,
    LEFT,
    MAT,
    RIGHT,
    VEC,
    floats,
    inout,
    kernel,
    op,
    out,
    params,
    run_kernel,
    tensor,
)

from pypto_egg.errors import InterpretError
from pypto_egg.interp import run
from pypto_egg.interp.poison import is_poison, numpy_dtype
from pypto_egg.ir.dtype import BF16, FP8E8M0, FP16, FP32, INDEX, INT8, INT32, UINT8
from pypto_egg.ir.enums import AtomicType, Mem, TensorLayout
from pypto_egg.ir.expr import ConstFloat, Var
from pypto_egg.ir.types import ScalarType


def copy_through(space, x, shape, offset, valid, seed_shape=(32, 32)):
    """Load a window of x into a tile, store the tile's valid region at zero."""

    def build(b, source, target):
        tile = b.op("tile.load", source, offset, shape, valid, target_memory=space)
        return b.op("tile.store", tile, [0, 0], target)

    types = {"x": tensor(list(x.shape), FP32), "o": out(tensor(list(seed_shape), FP32))}
    return run_kernel(types, build, x=x).returns[0]


@pytest.mark.req("C-129", "C-131")
@pytest.mark.parametrize("space", [VEC, MAT], ids=lambda s: s.value)
@settings(max_examples=25)
@given(
    offset=st.tuples(st.integers(0, 16), st.integers(0, 16)),
    valid=st.tuples(st.integers(1, 32), st.integers(1, 32)),
)
def test_load_and_store_move_the_valid_window_only(space, offset, valid):
    x = floats((48, 48))
    got = copy_through(space, x, [32, 32], list(offset), list(valid))
    window = x[offset[0] : offset[0] + valid[0], offset[1] : offset[1] + valid[1]]
    assert np.array_equal(got[: valid[0], : valid[1]], window)
    assert is_poison(got[valid[0] :]).all()
    assert is_poison(got[:, valid[1] :]).all()


def test_padded_load_may_overhang_the_tensor():
    x = floats((20, 32))
    got = copy_through(MAT, x, [32, 32], [0, 0], [20, 32])
    assert np.array_equal(got[:20], x)


def test_valid_window_beyond_the_tensor_is_an_error_that_names_it():
    n = Var("n", ScalarType(INDEX))
    types = params(x=tensor([20, 32], FP32), o=out(tensor([32, 32], FP32)))
    types["n"] = replace(types["x"], var=n)

    def build(b, x, o, n):
        tile = b.op("tile.load", x, [0, 0], [32, 32], [n, 32], target_memory=VEC)
        return b.op("tile.store", tile, [0, 0], o)

    program = kernel(types, build)
    assert run(program, {"x": floats((20, 32)), "n": 20}).returns[0].shape == (32, 32)
    with pytest.raises(InterpretError, match=r"of \[21, 32\] leaves 'x' of shape \[20, 32\]"):
        run(program, {"x": floats((20, 32)), "n": 21})


def test_clamped_load_is_cut_at_the_tensor():
    def build(b, x, o):
        tile = b.op("tile.load", x, [16, 0], [32, 32], target_memory=VEC, clamp=True)
        return b.op("tile.store", tile, [0, 0], o)

    types = {"x": tensor([20, 32], FP32), "o": out(tensor([32, 32], FP32))}
    x = floats((20, 32))
    got = run_kernel(types, build, x=x).returns[0]
    assert np.array_equal(got[:4], x[16:])
    assert is_poison(got[4:]).all()


def test_load_stays_inside_the_tensors_valid_region():
    def build(b, x, o):
        part = b.op("tensor.slice", x, [32, 32], [0, 0], [10, 32])
        tile = b.op("tile.load", part, [8, 0], [16, 32], target_memory=VEC)
        return b.op("tile.store", tile, [0, 0], o)

    types = {"x": tensor([32, 32], FP32), "o": out(tensor([16, 32], FP32))}
    x = floats((32, 32))
    got = run_kernel(types, build, x=x).returns[0]
    assert np.array_equal(got[:2], x[8:10])
    assert is_poison(got[2:]).all()


def test_store_beyond_the_output_is_an_error():
    def build(b, x, n, o):
        tile = b.op("tile.load", x, [0, 0], [16, 32], target_memory=VEC)
        return b.op("tile.store", tile, [n, 0], o)

    types = {
        "x": tensor([16, 32], FP32),
        "n": ScalarType(INDEX),
        "o": out(tensor([20, 32], FP32)),
    }
    with pytest.raises(InterpretError, match="leaves 'o' of shape"):
        run_kernel(types, build, x=floats((16, 32)), n=5)


def test_wide_read_of_a_narrow_tile_shows_poison():
    """A deliberately wrong program: it declares 8 valid rows of a tile that was loaded with 4."""

    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [16, 32], [4, 32], target_memory=VEC)
        wide = b.op("tile.set_validshape", tile, 8, 32)
        return b.op("tile.store", b.op("tile.adds", wide, ConstFloat(1.0)), [0, 0], o)

    types = {"x": tensor([16, 32], FP32), "o": out(tensor([16, 32], FP32))}
    x = floats((16, 32))
    got = run_kernel(types, build, x=x).returns[0]
    assert np.array_equal(got[:4], x[:4] + 1)
    assert np.isnan(got[4:8]).all()


def test_integer_padding_is_a_sentinel_that_shows():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [16, 32], [4, 32], target_memory=VEC)
        return b.op("tile.store", b.op("tile.set_validshape", tile, 8, 32), [0, 0], o)

    types = {"x": tensor([16, 32], INT32), "o": out(tensor([16, 32], INT32))}
    got = run_kernel(types, build, x=np.ones((16, 32), np.int32)).returns[0]
    assert (got[4:8] == 0x5A5A5A5A).all()


def test_reduction_over_padding_is_visible_and_over_the_valid_region_is_not():
    def build(widened):
        def body(b, x, o):
            tile = b.op("tile.load", x, [0, 0], [16, 32], [16, 20], target_memory=VEC)
            if widened:
                tile = b.op("tile.set_validshape", tile, 16, 32)
            tmp = b.op("tile.create", [16, 128], dtype=FP32, target_memory=VEC)
            return b.op("tile.store", b.op("tile.row_sum", tile, tmp), [0, 0], o)

        return body

    types = {"x": tensor([16, 32], FP32), "o": out(tensor([16, 1], FP32))}
    x = floats((16, 32))
    good = run_kernel(types, build(False), x=x).returns[0]
    assert np.allclose(good, x[:, :20].sum(axis=1, keepdims=True), atol=1e-5)
    assert np.isnan(run_kernel(types, build(True), x=x).returns[0]).all()


def test_undefined_tiles_are_poison_when_stored():
    def build(b, o):
        return b.op(
            "tile.store", b.op("tile.create", [16, 32], dtype=FP32, target_memory=VEC), [0, 0], o
        )

    assert np.isnan(run_kernel({"o": out(tensor([16, 32], FP32))}, build).returns[0]).all()


@pytest.mark.parametrize("narrow", [BF16, FP16], ids=str)
def test_accumulator_store_rounds_to_nearest_even(narrow):
    def build(b, a, w, o):
        left = b.op("tile.load", a, [0, 0], [16, 16], target_memory=MAT)
        right = b.op("tile.load", w, [0, 0], [16, 16], target_memory=MAT)
        return b.op("tile.store", b.op("tile.matmul", left, right), [0, 0], o)

    types = {
        "a": tensor([16, 16], FP32),
        "w": tensor([16, 16], FP32),
        "o": out(tensor([16, 16], narrow)),
    }
    a = floats((16, 16))
    got = run_kernel(types, build, a=a, w=np.eye(16, dtype=np.float32)).returns[0]
    assert np.array_equal(got, a.astype(numpy_dtype(narrow)))


def test_atomic_store_adds():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [16, 16], target_memory=VEC)
        first = b.op("tile.store", tile, [0, 0], o, atomic=AtomicType.Add)
        return b.op("tile.store", tile, [0, 0], first, atomic=AtomicType.Add)

    types = {"x": tensor([16, 16], FP32), "o": inout(tensor([16, 16], FP32))}
    x, o = floats((16, 16)), floats((16, 16), 1)
    assert np.array_equal(run_kernel(types, build, x=x, o=o).params["o"], o + x + x)


@pytest.mark.parametrize("space", [LEFT, RIGHT, MAT])
@pytest.mark.parametrize("dtype", [FP32, BF16, INT8], ids=str)
def test_extract_and_move_keep_the_logical_elements(space, dtype):
    x = np.arange(64 * 64).reshape(64, 64) % 100
    x = x.astype(np.float32).astype(numpy_dtype(dtype))

    def build(b, source, o):
        tile = b.op("tile.load", source, [0, 0], [64, 64], target_memory=MAT)
        part = b.op("tile.extract", tile, 32, 32, [32, 32], target_memory=space)
        back = b.op("tile.move", part, target_memory=VEC)
        return b.op("tile.store", back, [0, 0], o)

    types = {"x": tensor([64, 64], dtype), "o": out(tensor([32, 32], dtype))}
    assert np.array_equal(run_kernel(types, build, x=x).returns[0], x[32:, 32:])


@pytest.mark.parametrize(
    ("space", "offset", "box"),
    [(LEFT, (8, 0), "16 x 16"), (LEFT, (0, 8), "16 x 16"), (RIGHT, (8, 0), "16 x 16")],
)
def test_extract_off_a_box_boundary_is_an_error(space, offset, box):
    def build(b, source, o):
        tile = b.op("tile.load", source, [0, 0], [64, 64], target_memory=MAT)
        part = b.op("tile.extract", tile, *offset, [32, 32], target_memory=space)
        return b.op("tile.store", part, [0, 0], o)

    types = {"x": tensor([64, 64], FP16), "o": out(tensor([32, 32], FP16))}
    with pytest.raises(InterpretError, match=f"boundary of {box}"):
        run_kernel(types, build, x=floats((64, 64), dtype=FP16))


def test_extract_that_transposes_boxes_needs_square_steps():
    """FP32 boxes are 16 x 8; into Right, where they are flipped, columns step by 16."""

    def build(space):
        def body(b, source, o):
            tile = b.op("tile.load", source, [0, 0], [64, 64], target_memory=MAT)
            part = b.op("tile.extract", tile, 0, 8, [32, 32], target_memory=space)
            return b.op("tile.store", part, [0, 0], o)

        return body

    types = {"x": tensor([64, 64], FP32), "o": out(tensor([32, 32], FP32))}
    x = floats((64, 64))
    assert np.array_equal(run_kernel(types, build(LEFT), x=x).returns[0], x[:32, 8:40])
    with pytest.raises(InterpretError, match="boundary of 16 x 16"):
        run_kernel(types, build(RIGHT), x=x)


def test_tile_slice_aliases_and_assemble_writes_in_place():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [32, 32], target_memory=VEC)
        part = b.op("tile.slice", tile, [16, 32], [16, 0])
        zero = b.op("tile.full", [8, 32], ConstFloat(0.0, FP32), dtype=FP32)
        b.op("tile.assemble", tile, zero, [16, 0])
        return b.op("tile.store", part, [0, 0], o)

    types = {"x": tensor([32, 32], FP32), "o": out(tensor([16, 32], FP32))}
    x = floats((32, 32))
    got = run_kernel(types, build, x=x).returns[0]
    assert (got[:8] == 0).all()
    assert np.array_equal(got[8:], x[24:])


def test_assemble_into_boxed_tile_converts_and_keeps_the_rest():
    def build(b, x, y, o):
        target = b.op("tile.load", x, [0, 0], [32, 32], target_memory=MAT)
        part = b.op("tile.load", y, [0, 0], [16, 16], target_memory=VEC)
        return b.op("tile.store", b.op("tile.assemble", target, part, [16, 16]), [0, 0], o)

    types = {
        "x": tensor([32, 32], BF16),
        "y": tensor([16, 16], FP32),
        "o": out(tensor([32, 32], BF16)),
    }
    x, y = floats((32, 32), dtype=BF16), floats((16, 16), 1)
    expected = x.copy()
    expected[16:, 16:] = y.astype(ml_dtypes.bfloat16)
    assert np.array_equal(run_kernel(types, build, x=x, y=y).returns[0], expected)


def test_scalar_access_to_tiles_and_tensors():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [16, 16], target_memory=VEC)
        value = b.op("tile.read", tile, [1, 2])
        tile = b.op("tile.write", tile, [0, 0], value)
        b.do(op("tensor.write", x, [3, 3], b.op("tensor.read", x, [4, 4])))
        return b.op("tile.store", tile, [0, 0], o)

    types = {"x": inout(tensor([16, 16], FP32)), "o": out(tensor([16, 16], FP32))}
    x = floats((16, 16))
    outputs = run_kernel(types, build, x=x)
    assert outputs.returns[0][0, 0] == x[1, 2]
    assert outputs.params["x"][3, 3] == x[4, 4]
    assert x[3, 3] != x[4, 4]


@pytest.mark.req("N-024", "N-025")
def test_nz_weight_loads_by_logical_coordinates_and_by_blocked_ones():
    w = floats((2, 64, 96), dtype=FP16)
    c0 = 16
    blocked = w.reshape(2, 4, 16, 6, c0).transpose(0, 3, 1, 2, 4).copy()

    def logical(b, x, o):
        tile = b.op("tile.load", x, [1, 16, 32], [1, 32, 64], target_memory=MAT)
        return b.op("tile.store", tile, [0, 0, 0], o)

    types = {
        "x": tensor([2, 64, 96], FP16, TensorLayout.NZ),
        "o": out(tensor([1, 32, 64], FP16)),
    }
    got = run_kernel(types, logical, x=w).returns[0][0]
    assert np.array_equal(got, w[1, 16:48, 32:96])

    def physical(b, x, o):
        call = op("tile.load", x, [1, 2, 1, 0, 0], [1, 4, 2, 16, c0], target_memory=MAT)
        shaped = op("tile.create", [32, 64], dtype=FP16, target_memory=MAT).type
        tile = b.let(replace(call, result_type=shaped))
        return b.op("tile.store", tile, [0, 0], o)

    types = {
        "x": tensor([2, 6, 4, 16, c0], FP16, TensorLayout.NZ),
        "o": out(tensor([32, 64], FP16)),
    }
    assert np.array_equal(run_kernel(types, physical, x=blocked).returns[0], got)


@pytest.mark.req("N-089")
def test_nz_load_inside_a_fractal_is_an_error():
    def build(b, x, n, o):
        tile = b.op("tile.load", x, [n, 0], [32, 32], target_memory=MAT)
        return b.op("tile.store", tile, [0, 0], o)

    types = {
        "x": tensor([64, 32], FP16, TensorLayout.NZ),
        "n": ScalarType(INDEX),
        "o": out(tensor([32, 32], FP16)),
    }
    with pytest.raises(InterpretError, match=r"\[8, 0\] into 'x' is not on a fractal boundary"):
        run_kernel(types, build, x=floats((64, 32), dtype=FP16), n=8)


@pytest.mark.req("N-029", "N-031")
def test_accumulator_store_to_nz_memory_keeps_the_values():
    def build(b, a, w, o):
        left = b.op("tile.load", a, [0, 0], [64, 32], target_memory=MAT)
        right = b.op("tile.load", w, [0, 0], [32, 16], target_memory=MAT)
        return b.op("tile.store", b.op("tile.matmul", left, right), [0, 0], o)

    types = {
        "a": tensor([64, 32], FP32),
        "w": tensor([32, 16], FP32),
        "o": out(tensor([64, 16], FP32, TensorLayout.NZ)),
    }
    a, w = floats((64, 32)), floats((32, 16), 1)
    assert np.allclose(run_kernel(types, build, a=a, w=w).params["o"], a @ w, atol=1e-5)


def test_dn_source_loads_as_zn_bytes_with_the_same_elements():
    def build(b, x, o):
        view = b.op("tensor.view", x, layout=TensorLayout.DN)
        tile = b.op("tile.load", view, [0, 0], [64, 32], target_memory=MAT)
        assert tile.type.layout.slayout.value == "col_major"
        return b.op("tile.store", tile, [0, 0], o)

    types = {"x": tensor([32, 64], FP16), "o": out(tensor([64, 32], FP16))}
    x = floats((32, 64), dtype=FP16)
    assert np.array_equal(run_kernel(types, build, x=x).returns[0], x.T)


def test_yielded_space_of_the_accumulator_is_moved_not_reinterpreted():
    def build(b, a, w, o):
        left = b.op("tile.load", a, [0, 0], [32, 32], target_memory=MAT)
        right = b.op("tile.load", w, [0, 0], [32, 32], target_memory=MAT)
        product = op("tile.matmul", left, right)
        assert product.type.space is ACC
        vec = op("tile.create", [32, 32], dtype=FP32, target_memory=VEC).type
        return b.op("tile.store", b.let(product, type_=vec), [0, 0], o)

    types = {
        "a": tensor([32, 32], FP32),
        "w": tensor([32, 32], FP32),
        "o": out(tensor([32, 32], FP32)),
    }
    a, w = floats((32, 32)), floats((32, 32), 1)
    assert np.allclose(run_kernel(types, build, a=a, w=w).returns[0], a @ w, atol=1e-5)


def retyped(b, call, like):
    """The call with the type of another tile, as FlattenTileNdTo2D prints N-D windows."""
    return b.let(replace(call, result_type=like.type))


@pytest.mark.parametrize("valid", [[2, 16, 32], [1, 9, 32], [2, 16, 20], [1, 0, 32]])
def test_window_of_rank_three_kept_as_a_matrix(valid):
    rows = valid[0] * valid[1]

    def build(b, x, o, q):
        call = op("tile.load", x, [1, 0, 0], [2, 16, 32], valid, target_memory=VEC)
        tile = retyped(b, call, op("tile.create", [32, 32], dtype=FP32, target_memory=VEC))
        tile = b.op("tile.set_validshape", tile, rows, valid[2])
        stored = b.op("tile.store", tile, [0, 0, 0], o, [2, 16, 32])
        return [stored, b.op("tile.store", tile, [0, 0], q)]

    x = floats((3, 16, 32))
    types = {
        "x": tensor([3, 16, 32], FP32),
        "o": out(tensor([2, 16, 32], FP32)),
        "q": out(tensor([2, 16, 32], FP32)),
    }
    for got in run_kernel(types, build, x=x).returns:
        expected = np.full((2, 16, 32), np.nan, np.float32)
        window = tuple(slice(0, v) for v in valid)
        expected[window] = x[1:][window]
        assert np.array_equal(got, expected, equal_nan=True)


def test_window_of_rank_three_with_a_gap_has_no_matrix_form():
    def build(b, x, o):
        call = op("tile.load", x, [0, 0, 0], [2, 16, 32], [2, 9, 32], target_memory=VEC)
        tile = retyped(b, call, op("tile.create", [32, 32], dtype=FP32, target_memory=VEC))
        return b.op("tile.store", tile, [0, 0], o)

    types = {"x": tensor([2, 16, 32], FP32), "o": out(tensor([32, 32], FP32))}
    with pytest.raises(InterpretError, match=r"valid region \[2, 9\] of \[2, 16\]"):
        run_kernel(types, build, x=floats((2, 16, 32)))


def test_scale_bytes_are_renamed_by_their_move():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [16, 2], target_memory=MAT)
        scales = b.op("tile.move", tile, target_memory=Mem.LeftScale)
        return b.op("tile.store", scales, [0, 0], o)

    x = np.arange(32, dtype=np.uint8).reshape(16, 2) + 100
    types = {"x": tensor([16, 2], UINT8), "o": out(tensor([16, 2], FP8E8M0))}
    got = run_kernel(types, build, x=x).returns[0]
    assert np.array_equal(got.view(np.uint8), x)


def test_empty_windows_move_nothing():
    def build(b, x, n, o):
        tile = b.op("tile.load", x, [0, 0], [16, 32], [n, 32], target_memory=VEC)
        return b.op("tile.store", tile, [0, 0], o)

    types = {
        "x": tensor([16, 32], FP32),
        "n": ScalarType(INDEX),
        "o": out(tensor([16, 32], FP32)),
    }
    assert np.isnan(run_kernel(types, build, x=floats((16, 32)), n=0).params["o"]).all()
    assert np.isnan(run_kernel(types, build, x=floats((16, 32)), n=-3).params["o"]).all()
