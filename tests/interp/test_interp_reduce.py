"""Reductions against numpy, in tensor and tile form."""

from __future__ import annotations

import numpy as np
import pytest
from interp_ops import SHAPE, run_tensor, run_tile, values
from interp_programs import kernel, params, tensor

from pypto_egg.errors import InterpretError
from pypto_egg.interp import run
from pypto_egg.ir.dtype import FP32, INDEX, INT8, INT32
from pypto_egg.ir.expr import Var
from pypto_egg.ir.program import Param
from pypto_egg.ir.types import ScalarType


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
