"""Packed weights against a reader of the layout that shares nothing with the package.

The reader (`nz_layout`) follows the document's words. Loads are read back by the machine of
tests/emit, which knows strides and partitions of views and nothing of NZ.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from nz_layout import place, read
from pto_machine import execute

from pypto_egg import optimize
from pypto_egg.emit.pto_text import pto_text
from pypto_egg.interp import run
from pypto_egg.nz import pack

NUMPY = {"INT8": np.int8, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "FP32": np.float32}
ELEMENTS = [*NUMPY.values(), np.uint8, np.int16, np.uint32, np.int64, ml_dtypes.float8_e5m2]


@pytest.mark.req("N-005", "N-006", "N-008", "N-010", "N-120", "N-144")
@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
@pytest.mark.parametrize("kind", ELEMENTS, ids=lambda kind: np.dtype(kind).name)
def test_a_packed_weight_is_read_by_another_reader(kind, lead):
    size = np.dtype(kind).itemsize
    shape = (*lead, 48, 64 // size * 2)
    raw = np.random.default_rng(size).integers(0, 256, (*shape, size), dtype=np.uint8)
    weight = raw.view(kind)[..., 0]
    assert read(pack(weight).tobytes(), shape, size) == weight.tobytes()


@pytest.mark.req("N-005", "N-007")
def test_the_reader_by_the_numbers_of_the_document():
    """w of [32, 2048, 4096] in int8 is [32, 128, 128, 16, 32]; its strides are counted in bytes."""
    shape = (32, 2048, 4096)
    assert place((0, 0, 1), shape, 1) == 1
    assert place((0, 1, 0), shape, 1) == 32
    assert place((0, 16, 0), shape, 1) == 512
    assert place((0, 0, 32), shape, 1) == 2048 * 32
    assert place((1, 0, 0), shape, 1) == 2048 * 4096


def weights(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(NUMPY[dtype])


@pytest.mark.req("N-024", "N-074", "N-083", "N-090", "N-121", "N-144")
@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
def test_loads_address_the_bytes_that_were_packed(dtype, lead):
    """The grouped-matmul weight path: blocks of N, K in a pipeline, one matrix of a stack."""
    acc = "INT32" if dtype == "INT8" else "FP32"
    index = "".join(f"{extent - 1}, " for extent in lead)
    shape = (*lead, 128, 192)
    text = f"""import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 192], pl.{dtype}], w: pl.Tensor[{list(shape)}, pl.{dtype}, pl.NZ],
          y: pl.Out[pl.Tensor[[16, 128], pl.{acc}]]) -> pl.Tensor[[16, 128], pl.{acc}]:
        for nb, (o,) in pl.range(4, init_values=(y,)):
            n0 = nb * 32
            x0 = x[0:16, 0:64]
            w0 = w[{index}n0 : n0 + 32, 0:64]
            s0 = pl.matmul(x0, w0, b_trans=True, out_dtype=pl.{acc})
            for k0, (s,) in pl.pipeline(64, 192, 64, stage=2, init_values=(s0,)):
                xk = x[0:16, k0 : k0 + 64]
                wk = w[{index}n0 : n0 + 32, k0 : k0 + 64]
                s1 = pl.matmul_acc(s, xk, wk, b_trans=True)
                r = pl.yield_(s1)
            o1 = pl.assemble(o, r, [0, n0])
            o2 = pl.yield_(o1)
        return o2
"""
    program = optimize(text, verify=False).program
    x, w = weights(dtype, (16, 192), 1), weights(dtype, shape, 2)
    matrix = w.reshape(-1, 128, 192)[-1].astype(np.float64)
    want = x.astype(np.float64) @ matrix.T
    out = np.zeros((16, 128), np.int32 if dtype == "INT8" else np.float32)
    found = out.copy().reshape(-1)
    execute(pto_text(program), [x.reshape(-1), pack(w).reshape(-1), found])
    assert np.array_equal(found.reshape(16, 128), want)
    (got,) = run(program, {"x": x, "w": pack(w), "y": out}).returns
    assert np.array_equal(got, want)


@pytest.mark.req("N-031", "N-033", "N-041", "N-103")
@pytest.mark.parametrize("panel", [0, 2])
def test_an_accumulator_is_written_where_the_reader_finds_it(panel):
    packed = "pl.Tensor[[3, 64, 48], pl.FP32, pl.NZ]"
    text = f"""import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 128], pl.FP16], w: pl.Tensor[[128, 48], pl.FP16],
          y: pl.InOut[{packed}]) -> {packed}:
        a = pl.matmul(x, w, out_dtype=pl.FP32)
        y1 = pl.assemble(y, a, [{panel}, 0, 0])
        return y1
"""
    program = optimize(text, verify=False).program
    x, w = weights("FP16", (64, 128), 1), weights("FP16", (128, 48), 2)
    y = np.zeros((3, 6, 4, 16, 8), np.float32)
    want = np.zeros((3, 64, 48), np.float32)
    want[panel] = x.astype(np.float32) @ w.astype(np.float32)
    (by_interpreter,) = run(program, {"x": x, "w": w, "y": y.copy()}).returns
    assert read(np.asarray(by_interpreter).tobytes(), want.shape, 4) == want.tobytes()
    by_text = y.copy().reshape(-1)
    execute(pto_text(program), [x.reshape(-1), w.reshape(-1), by_text])
    assert read(by_text.tobytes(), want.shape, 4) == want.tobytes()
