"""What counts as equal: rounding is allowed, and whatever the earlier program leaves undefined."""

from __future__ import annotations

import numpy as np
import pytest

from pypto_egg.interp.compare import compare_outputs, defines_something
from pypto_egg.interp.poison import poison_array
from pypto_egg.interp.run import Outputs
from pypto_egg.ir.dtype import INT32

UNDEFINED = {
    "FP32": np.array([np.nan, 1.0], np.float32),
    "INT32": np.concatenate([poison_array((1,), INT32), np.ones(1, np.int32)]),
}
DEFINED = {"FP32": np.array([7.0, 1.0], np.float32), "INT32": np.array([7, 1], np.int32)}
DTYPES = pytest.mark.parametrize("dtype", ["FP32", "INT32"])


@DTYPES
def test_what_the_source_leaves_undefined_may_be_anything(dtype: str) -> None:
    found = compare_outputs(Outputs((UNDEFINED[dtype],)), Outputs((DEFINED[dtype],)), 1e-6)
    assert found.equal
    assert found.compared == 1
    assert (found.poison_before, found.poison_after) == (1, 0)


@DTYPES
def test_what_the_source_defines_must_be_defined(dtype: str) -> None:
    found = compare_outputs(Outputs((DEFINED[dtype],)), Outputs((UNDEFINED[dtype],)), 1e-6)
    assert not found.equal
    assert found.where is not None
    assert found.where.index == (0,)
    assert found.where.reason == "poison after only"
    assert found.compared == 2


@DTYPES
def test_defined_elements_beside_undefined_ones_are_compared(dtype: str) -> None:
    other = DEFINED[dtype] + np.array([0, 1], DEFINED[dtype].dtype)
    found = compare_outputs(Outputs((UNDEFINED[dtype],)), Outputs((other,)), 1e-6)
    assert not found.equal
    assert found.where is not None
    assert found.where.index == (1,)


@DTYPES
def test_nothing_is_compared_where_nothing_is_defined(dtype: str) -> None:
    nothing = Outputs((UNDEFINED[dtype][:1],))
    assert not defines_something(nothing)
    assert defines_something(Outputs((UNDEFINED[dtype],)))
    assert compare_outputs(nothing, Outputs((DEFINED[dtype][:1],)), 1e-6).compared == 0
