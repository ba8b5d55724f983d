"""Tiles and tensors that are made from nothing: filled, counted, padded, random."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from interp_programs import VEC, floats, out, run_kernel, tensor

from pypto_egg.interp.poison import numpy_dtype
from pypto_egg.ir.dtype import BF16, FP32, INT8, INT32
from pypto_egg.ir.enums import PadValue
from pypto_egg.ir.expr import ConstFloat, ConstInt


@pytest.mark.parametrize("pad", [PadValue.zero, PadValue.max, PadValue.min])
@pytest.mark.parametrize("dtype", [FP32, BF16, INT8], ids=str)
def test_fillpad_fills_the_invalid_part(pad, dtype):
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [16, 32], [5, 7], target_memory=VEC)
        return b.op("tile.store", b.op("tile.fillpad", tile, pad_value=pad), [0, 0], o)

    x = np.ones((16, 32), numpy_dtype(dtype))
    types = {"x": tensor([16, 32], dtype), "o": out(tensor([16, 32], dtype))}
    got = run_kernel(types, build, x=x).returns[0]
    limits = ml_dtypes.finfo(x.dtype) if dtype.is_float else np.iinfo(x.dtype)
    expected = {PadValue.zero: 0, PadValue.max: limits.max, PadValue.min: limits.min}[pad]
    assert (got[:5, :7] == 1).all()
    assert (got[5:] == expected).all()
    assert (got[:, 7:] == expected).all()


def test_fillpad_in_place_and_expanding():
    def build(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [8, 32], [5, 7], target_memory=VEC)
        wide = b.op("tile.fillpad_expand", tile, [16, 32])
        b.op("tile.fillpad_inplace", tile, pad_value=PadValue.zero)
        whole = b.op("tile.set_validshape", tile, 8, 32)
        stored = b.op("tile.store", wide, [0, 0], o)
        return b.op("tile.store", whole, [16, 0], stored)

    types = {"x": tensor([8, 32], FP32), "o": out(tensor([24, 32], FP32))}
    x = floats((8, 32))
    got = run_kernel(types, build, x=x).returns[0]
    expected = np.zeros((8, 32), np.float32)
    expected[:5, :7] = x[:5, :7]
    assert np.array_equal(got[:8], expected)
    assert (got[8:16] == 0).all()
    assert np.array_equal(got[16:], expected)


def test_creation_operators():
    def build(b, o, i, t):
        filled = b.op("tile.full", [8, 16], ConstFloat(2.5, FP32), dtype=FP32)
        line = b.op("tile.ci", ConstInt(3, INT32), [1, 16], dtype=INT32, descending=True)
        lower = b.op("tile.tri", ConstInt(1, INT32), [8, 16], dtype=FP32, upper=False)
        return [
            b.op("tile.store", filled, [0, 0], o),
            b.op("tile.store", line, [0, 0], i),
            b.op("tile.store", lower, [0, 0], t),
        ]

    types = {
        "o": out(tensor([8, 16], FP32)),
        "i": out(tensor([1, 16], INT32)),
        "t": out(tensor([8, 16], FP32)),
    }
    filled, line, lower = run_kernel(types, build).returns
    assert (filled == 2.5).all()
    assert line.tolist() == [[3 - n for n in range(16)]]
    assert np.array_equal(lower, np.tri(8, 16, 1, dtype=np.float32))


def test_random_is_philox_and_the_same_in_both_forms():
    key = [ConstInt(n, INT32) for n in (1, 2, 3, 4, 5, 6)]

    def on_tensor(b):
        return b.op("tensor.random", *key, [4, 8], dtype=INT32)

    def on_tile(b, o):
        return b.op("tile.store", b.op("tile.random", *key, [4, 8], dtype=INT32), [0, 0], o)

    first = run_kernel({}, on_tensor).returns[0]
    second = run_kernel({"o": out(tensor([4, 8], INT32))}, on_tile).returns[0]
    assert np.array_equal(first, second)
    assert np.unique(first).size == 32


def test_philox_known_answers():
    """Test vectors published with Random123 for philox4x32-10."""
    from pypto_egg.interp.semantics_create import philox

    zero = np.uint64(0)
    words = philox([zero] * 2, [zero] * 4, 1, 10)[0]
    assert [hex(int(w)) for w in words] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    ones = np.uint64(0xFFFFFFFF)
    words = philox([ones] * 2, [ones] * 4, 1, 10)[0]
    assert [hex(int(w)) for w in words] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]
