"""Comparisons, their masks, and selections by them."""

from __future__ import annotations

import numpy as np
import pytest
from interp_ops import run_tensor, values
from interp_programs import VEC, kernel, out, params, tensor

from pypto_egg.interp import run
from pypto_egg.ir.dtype import FP32, INT32, UINT8
from pypto_egg.ir.expr import ConstFloat


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


def test_tensor_comparison_with_a_scalar_promotes():
    x = values(INT32)
    got = run_tensor("cmp", [x], [INT32], ConstFloat(10.5), cmp_type=4)
    assert got.dtype == np.float32
    assert np.array_equal(got, (x > 10.5).astype(np.float32))
