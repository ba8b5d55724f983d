"""Batched products with NZ operands: every page is a product with a window of its own."""

from __future__ import annotations

from itertools import zip_longest

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nz_programs import calls, operands

from pypto_egg import lower, optimize
from pypto_egg.errors import NzError
from pypto_egg.interp import run
from pypto_egg.ir.fold import const_value
from pypto_egg.nz import pack

NUMPY = {"INT8": np.int8, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "FP32": np.float32}


def text(params: str, *body: str, returns: str) -> str:
    lines = "".join(f"        {line}\n" for line in body)
    return (
        "import pypto.language as pl\n\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, {params}) -> {returns}:\n{lines}"
    )


def typed(shape, dtype, layout="") -> str:
    return f"pl.Tensor[[{', '.join(map(str, shape))}], pl.{dtype}{layout}]"


def data(shape, dtype, seed=0):
    """Small whole numbers: every product and sum of them is exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(NUMPY[dtype])


def acc(dtype):
    return "INT32" if dtype == "INT8" else "FP32"


def batched(dtype, x_shape, w_shape, layout, *, trans=False, steps=()):
    """x @ w over all leading axes, with steps on the product."""
    pages = zip_longest(reversed(x_shape[:-2]), reversed(w_shape[:-2]), fillvalue=1)
    lead = [b if a == 1 else a for a, b in pages][::-1]
    out = (*lead, x_shape[-2], w_shape[-2] if trans else w_shape[-1])
    flag = ", b_trans=True" if trans else ""
    return text(
        f"x: {typed(x_shape, dtype)}, w: {typed(w_shape, dtype, layout)}",
        f"y = pl.matmul(x, w{flag}, out_dtype=pl.{acc(dtype)})",
        *steps,
        f"return {'z' if steps else 'y'}",
        returns=typed(out, acc(dtype)),
    )


def on_packed(given_text, x, w, lowering=lower):
    """The result on packed bytes; execution against the tensor program is part of lowering."""
    result = lowering(given_text, verify=True)
    assert result.verified
    kind = result.source.functions[0].returns[0]
    out = np.zeros(
        [const_value(dim) for dim in kind.shape],
        np.int32 if kind.dtype.name == "INT32" else np.float32,
    )
    (got,) = run(result.program, {"x": x, "w": pack(w), "ret0__out": out}).returns
    return got, result


@pytest.mark.req("N-006", "N-024", "N-094", "N-120", "N-144")
@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("trans", [False, True])
def test_each_page_reads_its_own_window(dtype, trans):
    shape = (3, 32, 64) if trans else (3, 64, 32)
    x, w = data((3, 16, 64), dtype), data(shape, dtype, 1)
    given_text = batched(dtype, x.shape, w.shape, ", pl.NZ", trans=trans)
    got, result = on_packed(given_text, x, w)
    plane = w.astype(np.float64).swapaxes(-1, -2) if trans else w.astype(np.float64)
    assert np.array_equal(got, x.astype(np.float64) @ plane)
    (load,) = (c for c in calls(result.program, "tile.load") if c.args[0].name == "w")
    c0 = 32 // np.dtype(NUMPY[dtype]).itemsize
    (offsets, window) = operands(load, 1, 2)
    assert window == [1, shape[-1] // c0, shape[-2] // 16, 16, c0]
    assert const_value(offsets[0]) is None  # the page
    assert load.type.shape == shape[-2:]


extents = st.integers(1, 3)
# Leading axes of both operands, as numpy broadcasts them.
leads = st.lists(st.tuples(extents, st.sampled_from(["same", "left", "right"])), max_size=2)


@pytest.mark.req("N-095", "N-120", "N-121", "N-122")
@settings(max_examples=12)
@given(leads, st.booleans(), st.sampled_from(sorted(NUMPY)), st.booleans())
def test_leading_axes_broadcast_as_those_of_arrays_do(lead, shorter, dtype, trans):
    left = [1 if kind == "right" else extent for extent, kind in lead]
    right = [1 if kind == "left" else extent for extent, kind in lead]
    if shorter and right:
        right = right[1:]
    x = data((*left, 16, 32), dtype)
    w = data((*right, *((48, 32) if trans else (32, 64))), dtype, 1)
    got, _ = on_packed(batched(dtype, x.shape, w.shape, ", pl.NZ", trans=trans), x, w)
    plane = w.astype(np.float64).swapaxes(-1, -2) if trans else w.astype(np.float64)
    assert np.array_equal(got, x.astype(np.float64) @ plane)


@pytest.mark.req("N-097", "N-124")
def test_a_dynamic_batch_is_a_loop_of_as_many_pages():
    given_text = batched("FP16", ("NB", 16, 32), ("NB", 32, 32), ", pl.NZ")
    for pages in (1, 4):
        x, w = data((pages, 16, 32), "FP16"), data((pages, 32, 32), "FP16", 1)
        result = lower(given_text)
        out = np.zeros((pages, 16, 32), np.float32)
        (got,) = run(result.program, {"x": x, "w": pack(w), "ret0__out": out}).returns
        assert np.array_equal(got, x.astype(np.float64) @ w.astype(np.float64))


@pytest.mark.req("N-024", "N-120")
def test_a_left_operand_and_a_vector_step():
    steps = ("e = pl.neg(y)", "z = pl.add(e, 1.0)")
    given_text = batched("FP16", (2, 32, 64), (2, 64, 32), ", pl.NZ", steps=steps)
    x, w = data((2, 32, 64), "FP16"), data((2, 64, 32), "FP16", 1)
    got, _ = on_packed(given_text, x, w, optimize)
    assert np.array_equal(got, 1 - x.astype(np.float64) @ w.astype(np.float64))
    both = given_text.replace("FP16], w:", "FP16, pl.NZ], w:")
    out = np.zeros((2, 32, 32), np.float32)
    inputs = {"x": pack(x), "w": pack(w), "ret0__out": out}
    (again,) = run(lower(both).program, inputs).returns
    assert again.tobytes() == got.tobytes()


SUM = (
    "c0 = pl.tensor.create([2, 32, 32], dtype=pl.FP32)",
    "for k0, (c,) in pl.pipeline(0, 128, 32, stage=2, init_values=(c0,)):",
    "    xk = x[0:2, 0:32, k0 : k0 + 32]",
    "    wk = w[0:2, k0 : k0 + 32, 0:32]",
    "    c1 = pl.matmul_acc(c, xk, wk)",
    "    r = pl.yield_(c1)",
    "return r",
)
NESTED = (
    "xk = x[0:2, 0:32, 0:32]",
    "wk = w[0:2, 0:32, 0:32]",
    "c0 = pl.matmul(xk, wk, out_dtype=pl.FP32)",
    "x1 = x[0:2, 0:32, 32:64]",
    "w1 = w[0:2, 32:64, 0:32]",
    "s0 = pl.matmul_acc(c0, x1, w1)",
    "for i, (c,) in pl.range(1, 2, 1, init_values=(s0,)):",
    "    for j, (d,) in pl.range(0, 2, 1, init_values=(c,)):",
    "        xk2 = x[0:2, 0:32, i * 64 + j * 32 : i * 64 + j * 32 + 32]",
    "        wk2 = w[0:2, i * 64 + j * 32 : i * 64 + j * 32 + 32, 0:32]",
    "        d1 = pl.matmul_acc(d, xk2, wk2)",
    "        q = pl.yield_(d1)",
    "    r = pl.yield_(q)",
    "return r",
)


@pytest.mark.req("N-024", "N-074", "N-120")
@pytest.mark.parametrize("body", [SUM, NESTED])
def test_the_loop_over_pages_stands_around_the_sum(body):
    """The sum of a page stays in L0C over all of K."""
    params = f"x: {typed((2, 32, 128), 'FP16')}, w: {typed((2, 128, 32), 'FP16', ', pl.NZ')}"
    x, w = data((2, 32, 128), "FP16"), data((2, 128, 32), "FP16", 1)
    got, result = on_packed(text(params, *body, returns=typed((2, 32, 32), "FP32")), x, w)
    assert np.array_equal(got, x.astype(np.float64) @ w.astype(np.float64))
    assert all(c.type.shape == (32, 32) for c in calls(result.program, "tile.matmul_acc"))
    (_store,) = calls(result.program, "tile.store")


def test_a_result_in_the_place_of_its_operand_is_stored_behind_all_reads():
    """Each page of x is overwritten only when nothing reads it any more."""
    x, w = typed((2, 32, 32), "FP16"), typed((1, 32, 32), "FP16", ", pl.NZ")
    result = lower(
        text(
            f"x: pl.InOut[{x}], w: {w}",
            "y = pl.matmul(x, w, out_dtype=pl.FP16)",
            "x1 = pl.assemble(x, y, [0, 0, 0])",
            "return x1",
            returns=typed((2, 32, 32), "FP16"),
        ),
        verify=True,
    )
    assert result.verified


@pytest.mark.req("N-104", "N-137")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            (
                "e = pl.exp(z)",
                "y = pl.matmul_acc(e, x, w)",
            ),
            "NZ tensor 'w' is multiplied page by page, and the pages of 'e'",
        ),
        (
            (
                "v = pl.slice(x, [2, 32, 64], [0, 0, 0], [1, 32, 64])",
                "y = pl.matmul(v, w, out_dtype=pl.FP32)",
            ),
            "NZ tensor 'w' is multiplied in a window of [2, 64, 32]",
        ),
    ],
)
def test_pages_that_have_no_form_name_the_way_out(body, words):
    given_text = text(
        f"x: {typed((2, 32, 64), 'FP16')}, w: {typed((2, 64, 32), 'FP16', ', pl.NZ')}, "
        f"z: {typed((2, 32, 32), 'FP32')}",
        *body,
        "return y",
        returns=typed((2, 32, 32), "FP32"),
    )
    with pytest.raises(NzError) as caught:
        optimize(given_text)
    assert words in caught.value.message
    assert "one panel at a time" in caught.value.hint
    assert caught.value.span.line == 8


@pytest.mark.req("N-024", "N-120")
def test_a_page_that_is_too_large_is_made_in_blocks():
    """Its blocks are windows of the page, which is a window of the stack."""
    x, w = data((2, 64, 2048), "FP16"), data((2, 2048, 1024), "FP16", 1)
    got, result = on_packed(batched("FP16", x.shape, w.shape, ", pl.NZ"), x, w)
    assert np.array_equal(got, x.astype(np.float64) @ w.astype(np.float64))
    # Each block goes straight to the result, through both loops.
    (store,) = calls(result.program, "tile.store")
    assert store.args[2].type.rank == 3
