"""Views of tensors and tiles: aliasing, valid regions, reinterpretation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from interp_programs import MAT, VEC, floats, inout, op, out, run_kernel, tensor

from pypto_egg.errors import InterpretError
from pypto_egg.interp.poison import is_poison
from pypto_egg.ir.dtype import FP16, FP32, INDEX, INT8, INT32
from pypto_egg.ir.enums import AtomicType, FunctionType, TensorLayout
from pypto_egg.ir.expr import ConstFloat, TupleExpr
from pypto_egg.ir.types import ScalarType


def test_write_through_a_slice_shows_in_the_parameter():
    def build(b, x, v):
        part = b.op("tensor.slice", x, [4, 8], [2, 0])
        part = b.op("tensor.slice", part, [2, 8], [1, 0])
        b.do(op("tensor.assemble", part, v, [0, 2]))
        b.do(op("tensor.write", part, [1, 7], 5.0))
        return b.op("tensor.adds", x, 0.0)

    x, v = floats((8, 8)), floats((2, 4), 1)
    types = {"x": inout(tensor([8, 8], FP32)), "v": tensor([2, 4], FP32)}
    outputs = run_kernel(types, build, x=x, v=v)
    expected = x.copy()
    expected[3:5, 2:6] = v
    expected[4, 7] = 5
    assert np.array_equal(outputs.params["x"], expected)
    assert np.array_equal(outputs.returns[0], expected)


def test_assemble_into_a_computed_tensor_makes_a_new_one():
    def build(b, x, v):
        y = b.op("tensor.adds", x, 0.0)
        z = b.op("tensor.assemble", y, v, [0, 0])
        return [y, z]

    x, v = floats((8, 8)), floats((2, 4), 1)
    types = {"x": tensor([8, 8], FP32), "v": tensor([2, 4], FP32)}
    y, z = run_kernel(types, build, x=x, v=v).returns
    assert np.array_equal(y, x)
    assert np.array_equal(z[:2, :4], v)
    assert np.array_equal(z[2:], x[2:])


def test_atomic_assemble_adds_the_valid_region():
    def build(b, x, v):
        part = b.op("tensor.slice", v, [4, 8], [0, 0], [3, 8])
        return b.op("tensor.assemble", x, part, [1, 0], atomic=AtomicType.Add)

    x, v = floats((8, 8)), floats((4, 8), 1)
    types = {"x": inout(tensor([8, 8], FP32)), "v": tensor([4, 8], FP32)}
    expected = x.copy()
    expected[1:4] += v[:3]
    assert np.array_equal(run_kernel(types, build, x=x, v=v).params["x"], expected)


def test_slice_forms():
    def build(b, x, n):
        dropped = b.op("tensor.slice", x, [1, 8], [n, 0], TupleExpr(()), [0])
        narrow = b.op("tensor.slice", x, [4, 8], [2, 0], [n, 8])
        inner = b.op("tensor.slice", narrow, [2, 8], [1, 0])
        clamped = b.op("tensor.slice", x, [4, 8], [6, 0], clamp=True)
        return [b.op("tensor.adds", v, 0.0) for v in (dropped, narrow, inner, clamped)]

    x = floats((8, 8))
    types = {"x": tensor([8, 8], FP32), "n": ScalarType(INDEX)}
    dropped, narrow, inner, clamped = run_kernel(types, build, x=x, n=2).returns
    assert np.array_equal(dropped, x[2])
    assert np.array_equal(narrow[:2], x[2:4])
    assert is_poison(narrow[2:]).all()
    assert np.array_equal(inner[:1], x[3:4])
    assert is_poison(inner[1:]).all()
    assert np.array_equal(clamped[:2], x[6:])
    assert is_poison(clamped[2:]).all()


def test_slice_outside_is_an_error():
    def build(b, x, n):
        return b.op("tensor.slice", x, [4, 8], [n, 0])

    types = {"x": tensor([8, 8], FP32), "n": ScalarType(INDEX)}
    with pytest.raises(InterpretError, match=r"window at \[5, 0\] of \[4, 8\] leaves 'x'"):
        run_kernel(types, build, x=floats((8, 8)), n=5)
    with pytest.raises(InterpretError, match="leaves 'x'"):
        run_kernel(types, build, x=floats((8, 8)), n=-1)


@pytest.mark.parametrize(
    ("shape", "valid", "new", "new_valid"),
    [
        ([4, 8], [4, 8], [2, 16], [2, 16]),
        ([4, 8], [2, 8], [1, 32], [1, 16]),
        ([4, 8], [2, 8], [8, 4], [4, 4]),
        ([1, 4, 8], [1, 3, 5], [4, 8], [3, 5]),
        ([4, 8], [3, 5], [4, 1, 8], [3, 1, 5]),
        ([2, 4, 8], [1, 2, 8], [8, 8], [2, 8]),
        ([4, 8], [0, 8], [32], [0]),
    ],
)
def test_reshape_carries_the_valid_region(shape, valid, new, new_valid):
    def build(b, x):
        part = b.op("tensor.slice", x, shape, [0] * len(shape), valid)
        return b.op("tensor.adds", b.op("tensor.reshape", part, new), 0.0)

    x = floats(tuple(shape))
    got = run_kernel({"x": tensor(shape, FP32)}, build, x=x).returns[0]
    kept = tuple(slice(0, v) for v in new_valid)
    assert np.array_equal(got[kept], x.reshape(new)[kept])
    mask = np.ones(new, bool)
    mask[kept] = False
    assert is_poison(got[mask]).all()


def test_reshape_of_an_awkward_valid_region_is_an_error():
    types = {"x": tensor([4, 8], FP32), "n": ScalarType(INDEX)}

    def build(b, x, n):
        part = b.op("tensor.slice", x, [4, 8], [0, 0])
        flat = op("tensor.reshape", part, [32])
        narrow = b.op("tensor.set_validshape", part, n, 5)
        return b.let(replace(flat, args=(narrow, flat.args[1])))

    with pytest.raises(InterpretError, match=r"valid region \[3, 5\] of \[4, 8\] cannot"):
        run_kernel(types, build, x=floats((4, 8)), n=3)


def test_reshape_of_global_memory_aliases_it():
    def build(b, x):
        flat = b.op("tensor.reshape", x, [32])
        b.do(op("tensor.write", flat, [17], 9.0))
        return x

    x = floats((4, 8))
    assert run_kernel({"x": inout(tensor([4, 8], FP32))}, build, x=x).params["x"][2, 1] == 9


@pytest.mark.req("N-101", "N-102")
def test_nz_tensor_flattens_to_its_bytes_and_to_nothing_else():
    x = floats((32, 32), dtype=FP16)
    types = {"x": tensor([32, 32], FP16, TensorLayout.NZ)}

    def flat(b, x):
        return b.op("tensor.reshape", x, [1024])

    blocked = x.reshape(2, 16, 2, 16).transpose(2, 0, 1, 3).reshape(-1)
    assert np.array_equal(run_kernel(types, flat, x=x).returns[0], blocked)


def test_transpose_of_tensors_and_tiles():
    x = floats((2, 3, 4))
    types = {"x": tensor([2, 3, 4], FP32)}
    for a, c in ((0, 1), (1, 2), (0, -1)):
        got = run_kernel(types, lambda b, x, a=a, c=c: b.op("tensor.transpose", x, a, c), x=x)
        assert np.array_equal(got.returns[0], x.swapaxes(a, c))

    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [16, 32], [9, 5], target_memory=VEC)
        return b.op("tile.store", b.op("tile.transpose", tile, 0, 1), [0, 0], o)

    x = floats((16, 32))
    types = {"x": tensor([16, 32], FP32), "o": out(tensor([32, 16], FP32))}
    call = run_kernel(types, build, x=x).returns[0]
    assert np.array_equal(call[:5, :9], x[:9, :5].T)


def test_views_of_other_shape_and_layout():
    x = floats((4, 8))
    types = {"x": tensor([4, 8], FP32)}

    def build(b, x):
        dn = b.op("tensor.view", x, layout=TensorLayout.DN)
        flat = b.op("tensor.view", x, [2, 16])
        return [dn, flat]

    dn, flat = run_kernel(types, build, x=x).returns
    assert np.array_equal(dn, x.T)
    assert np.array_equal(flat, x.reshape(2, 16))


def test_reinterpret_view_keeps_the_bytes():
    def build(b, x):
        return b.op("tensor.reinterpret_view", x, dtype=INT8)

    x = np.arange(8, dtype=np.int32).reshape(2, 4)
    got = run_kernel({"x": tensor([2, 4], INT32)}, build, x=x).returns[0]
    assert np.array_equal(got, x.view(np.int8))


def test_concat():
    def on_tensor(b, x, y):
        return b.op("tensor.concat", x, y)

    def on_tile(b, x, y, o):
        tiles = [b.op("tile.load", t, [0, 0], [16, 8], target_memory=VEC) for t in (x, y)]
        return b.op("tile.store", b.op("tile.concat", *tiles), [0, 0], o)

    x, y = floats((16, 8)), floats((16, 8), 1)
    types = {"x": tensor([16, 8], FP32), "y": tensor([16, 8], FP32)}
    expected = np.concatenate([x, y], axis=1)
    assert np.array_equal(run_kernel(types, on_tensor, x=x, y=y).returns[0], expected)
    types["o"] = out(tensor([16, 16], FP32))
    assert np.array_equal(run_kernel(types, on_tile, x=x, y=y).returns[0], expected)


def test_tile_reshape_reads_the_same_bytes():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [16, 32], target_memory=VEC)
        total = b.op(
            "tile.row_max", tile, b.op("tile.create", [16, 128], dtype=FP32, target_memory=VEC)
        )
        return b.op("tile.store", b.op("tile.reshape", total, [1, 16]), [0, 0], o)

    x = floats((16, 32))
    types = {"x": tensor([16, 32], FP32), "o": out(tensor([1, 16], FP32))}
    got = run_kernel(types, build, x=x).returns[0]
    assert np.array_equal(got, x.max(axis=1).reshape(1, 16))


def test_tile_reshape_of_boxed_bytes_permutes_the_elements():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [32, 64], target_memory=MAT)
        return b.op("tile.store", b.op("tile.reshape", tile, [64, 32]), [0, 0], o)

    x = floats((32, 64), dtype=FP16)
    types = {"x": tensor([32, 64], FP16), "o": out(tensor([64, 32], FP16))}
    got = run_kernel(types, build, x=x).returns[0]
    in_memory = x.reshape(2, 16, 4, 16).transpose(2, 0, 1, 3).reshape(-1)
    expected = in_memory.reshape(2, 4, 16, 16).transpose(1, 2, 0, 3).reshape(64, 32)
    assert np.array_equal(got, expected)
    assert not np.array_equal(got, x.reshape(64, 32))


def test_tile_window_with_gaps_cannot_be_reshaped():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [16, 32], target_memory=VEC)
        part = b.op("tile.slice", tile, [16, 16], [0, 8])
        return b.op("tile.store", b.op("tile.reshape", part, [8, 32]), [0, 0], o)

    types = {"x": tensor([16, 32], FP32), "o": out(tensor([8, 32], FP32))}
    with pytest.raises(InterpretError, match="window with gaps"):
        run_kernel(types, build, x=floats((16, 32)))


def test_expand_clone_writes_its_target():
    def build(b, x, t):
        return b.op("tensor.expand_clone", x, t)

    x = floats((2, 1, 8))
    types = {"x": tensor([2, 1, 8], FP32), "t": out(tensor([2, 4, 8], FP32))}
    outputs = run_kernel(types, build, x=x)
    assert np.array_equal(outputs.params["t"], np.broadcast_to(x, (2, 4, 8)))
    assert np.array_equal(outputs.returns[0], outputs.params["t"])


def test_dim_reads_extents():
    def build(b, x):
        n = b.op("tensor.dim", x, -1)
        return [n, b.op("tensor.dim", x, 0)]

    assert run_kernel({"x": tensor([4, 8], FP32)}, build, x=floats((4, 8))).returns == (8, 4)


def test_tensor_creation():
    def build(b):
        started = b.op("tensor.create", [2, 4], dtype=FP32, init_value=1.5)
        empty = b.op("tensor.create", [2, 4], dtype=FP32)
        full = b.op("tensor.full", [2, 4], ConstFloat(2.0, FP16), dtype=FP16)
        return [started, empty, full]

    started, empty, full = run_kernel({}, build, FunctionType.Orchestration).returns
    assert (started == 1.5).all()
    assert np.isnan(empty).all()
    assert (full == 2).all()
    assert full.dtype == np.float16


def test_strided_parameter_is_addressed_by_its_strides():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [8, 4], target_memory=VEC)
        return b.op("tile.store", tile, [0, 0], o)

    x = floats((8, 4))
    types = {
        "x": tensor([8, 4], FP32, TensorLayout.DN, stride=[1, 8]),
        "o": out(tensor([8, 4], FP32)),
    }
    assert np.array_equal(run_kernel(types, build, x=x).returns[0], x)


def test_views_of_computed_tensors_are_values():
    def build(b, x):
        y = b.op("tensor.adds", x, 0.0)
        turned = b.op("tensor.transpose", y, 0, 1)
        flat = b.op("tensor.reshape", y, [32])
        b.do(op("tensor.write", y, [0, 0], 9.0))
        return [turned, flat]

    x = floats((4, 8))
    turned, flat = run_kernel({"x": tensor([4, 8], FP32)}, build, x=x).returns
    assert np.array_equal(turned, x.T)
    assert np.array_equal(flat, x.reshape(-1))


def test_expand_clone_into_a_value():
    def build(b, x):
        target = b.op("tensor.create", [2, 4, 8], dtype=FP32)
        return b.op("tensor.expand_clone", x, target)

    x = floats((2, 4, 1))
    got = run_kernel({"x": tensor([2, 4, 1], FP32)}, build, x=x).returns[0]
    assert np.array_equal(got, np.broadcast_to(x, (2, 4, 8)))


def test_concat_of_a_partly_valid_left_tensor_keeps_its_gap():
    def build(b, x, y):
        left = b.op("tensor.slice", x, [4, 8], [0, 0], [4, 5])
        return b.op("tensor.concat", left, y)

    x, y = floats((4, 8)), floats((4, 8), 1)
    types = {"x": tensor([4, 8], FP32), "y": tensor([4, 8], FP32)}
    got = run_kernel(types, build, x=x, y=y).returns[0]
    assert np.array_equal(got[:, :5], x[:, :5])
    assert is_poison(got[:, 5:8]).all()
    assert np.array_equal(got[:, 8:], y)


def test_tile_bytes_as_another_type():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [4, 8], target_memory=VEC)
        return b.op("tile.store", b.op("tile.reinterpret_view", tile, dtype=INT8), [0, 0], o)

    x = np.arange(32, dtype=np.int32).reshape(4, 8) * 1001
    types = {"x": tensor([4, 8], INT32), "o": out(tensor([4, 32], INT8))}
    assert np.array_equal(run_kernel(types, build, x=x).returns[0], x.view(np.int8))


def test_tile_slice_drops_leading_axes_down_to_two():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0, 0], [2, 4, 32], target_memory=VEC)
        page = b.op("tile.slice", tile, [1, 4, 32], [1, 0, 0], [1, 4, 32], [0])
        return b.op("tile.store", page, [0, 0], o)

    x = floats((2, 4, 32))
    types = {"x": tensor([2, 4, 32], FP32), "o": out(tensor([4, 32], FP32))}
    assert np.array_equal(run_kernel(types, build, x=x).returns[0], x[1])
