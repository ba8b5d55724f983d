"""Sums of products of which only some rows or columns are valid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels import both, inout, kernel, out, tensor

from pypto_egg import Lowering, lower, optimize
from pypto_egg.errors import LoweringError
from pypto_egg.interp import random_inputs, run

INDEX = "pl.Scalar[pl.INDEX]"
ACC = tensor([64, 128], "INT32")
OPERANDS = {"x": tensor([64, 256], "INT8"), "w": tensor([128, 256], "INT8")}
MAKERS = pytest.mark.parametrize("make", [lower, optimize], ids=["lower", "optimize"])


def text(body: str, rows: int = 64, **more: str) -> str:
    params = OPERANDS | {"n": INDEX, "m": INDEX} | more
    sized = {name: kind.replace("[64,", f"[{rows},") for name, kind in params.items()}
    return kernel(sized, body.replace("64, 128", f"{rows}, 128"), ACC.replace("64,", f"{rows},"))


def split_k(valid: str, rows: int = 64, seed: str = "pl.create_tensor([64, 128], pl.INT32)") -> str:
    """A loop over K; `valid` computes v, the valid rows of x, from n and k0."""
    return f"""
acc0 = {seed}
for k0, (acc,) in pl.range(0, 256, 64, init_values=(acc0,)):
    v = {valid}
    xk = pl.slice(x, [{rows}, 64], [0, k0], valid_shape=[v, 64])
    wk = pl.slice(w, [128, 64], [0, k0])
    acc1 = pl.matmul_acc(acc, xk, wk, b_trans=True)
    y = pl.yield_(acc1)
"""


def first_rows(result: Lowering, n: int, m: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """What the tile program returns, and x @ w.T in whole."""
    entry = result.source.function("kernel")
    inputs = {**random_inputs(entry, program=result.source), "n": n, "m": m}
    (found,) = run(result.program, inputs).returns
    return found, inputs["x"].astype(np.int64) @ inputs["w"].astype(np.int64).T


@MAKERS
@pytest.mark.req("C-276")
@pytest.mark.parametrize("seed", ["pl.create_tensor([64, 128], pl.INT32)",
                                  "pl.full([64, 128], dtype=pl.INT32, value=0)"])  # fmt: skip
@pytest.mark.parametrize(("n", "rows"), [(200, 8), (256, 64), (212, 20)])
def test_rows_that_the_last_trip_leaves_valid(
    make: Callable[..., Lowering], seed: str, n: int, rows: int
) -> None:
    """The document's `v = pl.min(64, n - k0)`: 64 rows are valid three times, then n - 192."""
    result = make(text(split_k("pl.min(64, n - k0)", seed=seed) + "return y"), verify=True)
    assert result.verified
    found, whole = first_rows(result, n)
    assert np.array_equal(found[:rows], whole[:rows])


@MAKERS
@pytest.mark.req("C-276")
@pytest.mark.parametrize("n", [1, 20, 33, 64])
def test_rows_that_every_trip_computes_alike(make: Callable[..., Lowering], n: int) -> None:
    result = make(text(split_k("pl.min(64, n)") + "return y"), verify=True)
    found, whole = first_rows(result, n)
    assert np.array_equal(found[:n], whole[:n])


@MAKERS
@pytest.mark.req("C-275", "C-276")
@pytest.mark.parametrize(("valid", "rows"), [("pl.min(64, n - k0)", 64), ("pl.min(16, n)", 16)])
def test_undefined_rows_do_not_replace_defined_ones(
    make: Callable[..., Lowering], valid: str, rows: int
) -> None:
    """All rows of such a sum are stored; memory that keeps its content must not get them."""
    body = split_k(valid, rows) + "r = pl.assemble(o, y, [0, 0])\nreturn r"
    with pytest.raises(LoweringError, match="'y' is summed in a loop by products"):
        make(text(body, rows, o=inout([64, 128], "INT32")))
    kept = make(text(body, rows, o=out([64, 128], "INT32")), verify=True)
    assert kept.verified


STRAIGHT = """
xk = pl.slice(x, [64, 64], [0, 0], valid_shape=[n, 64])
wk = pl.slice(w, [128, 64], [0, 0])
a = pl.matmul(xk, wk, b_trans=True, out_dtype=pl.INT32)
xj = pl.slice(x, [64, 64], [0, 64], valid_shape=[m, 64])
wj = pl.slice(w, [128, 64], [0, 64])
"""


@MAKERS
@pytest.mark.req("C-270")
def test_products_of_different_rows_are_not_summed_in_one_accumulator(
    make: Callable[..., Lowering],
) -> None:
    """20 rows are written 32 apart, 40 rows 48 apart."""
    body = STRAIGHT + "s = pl.matmul_acc(a, xj, wj, b_trans=True)\nreturn s"
    with pytest.raises(LoweringError, match="'xj', of m valid rows, to 'a', of n") as caught:
        make(text(body))
    assert caught.value.code == "E401"
    assert caught.value.span is not None
    same = make(text(body.replace("[m, 64]", "[n, 64]")), verify=True)
    found, _ = first_rows(same, 20)
    assert found.shape == (64, 128)


@pytest.mark.req("C-270")
@pytest.mark.parametrize("valid", ["valid_shape=[{}, 64]", "valid_shape=[64, {}]"])
def test_an_addition_of_partly_valid_products_stays_one(valid: str) -> None:
    body = f"""
xk = pl.slice(x, [64, 64], [0, 0], {valid.format("n")})
wk = pl.slice(w, [128, 64], [0, 0])
a = pl.matmul(xk, wk, b_trans=True, out_dtype=pl.INT32)
xj = pl.slice(x, [64, 64], [0, 64], {valid.format("n")})
b = pl.matmul(xj, wk, b_trans=True, out_dtype=pl.INT32)
s = pl.add(a, b)
return s"""
    both(text(body))


def test_columns_that_are_valid_in_part() -> None:
    body = """
acc0 = pl.create_tensor([64, 128], pl.INT32)
for k0, (acc,) in pl.range(0, 256, 64, init_values=(acc0,)):
    xk = pl.slice(x, [64, 64], [0, k0])
    wk = pl.slice(w, [128, 64], [0, k0], valid_shape=[n, 64])
    acc1 = pl.matmul_acc(acc, xk, wk, b_trans=True)
    y = pl.yield_(acc1)
return y"""
    for result in both(text(body)):
        found, whole = first_rows(result, 40)
        assert np.array_equal(found[:, :40], whole[:, :40])


@MAKERS
def test_arms_that_yield_other_rows_are_told_apart(make: Callable[..., Lowering]) -> None:
    body = (
        STRAIGHT
        + """
if n > 2:
    r = pl.yield_(a)
else:
    b = pl.matmul(xj, wj, b_trans=True, out_dtype=pl.INT32)
    r = pl.yield_(b)
return r"""
    )
    with pytest.raises(LoweringError, match=r"meet in 'r'.*\[n, 128\].*\[m, 128\]"):
        make(text(body))


@MAKERS
def test_a_value_that_only_it_itself_could_be_made_of(make: Callable[..., Lowering]) -> None:
    """One row summed over K and transposed: no tile form serves both, and that is what is said."""
    body = """
z = pl.create_tensor([1, 32], pl.FP32)
for i, (a,) in pl.range(0, 64, 32, init_values=(z,)):
    p = pl.slice(x, [1, 32], [0, i])
    q = pl.slice(w, [32, 32], [i, 0])
    s = pl.matmul_acc(a, p, q)
    r = pl.yield_(s)
v = pl.sub(r, pl.const(-0.25, pl.FP32))
u = pl.transpose(v, 0, 1)
return u"""
    params = {"x": tensor([1, 64], "FP32"), "w": tensor([64, 32], "FP32")}
    with pytest.raises(LoweringError, match="cannot be lowered"):
        make(kernel(params, body, tensor([32, 1], "FP32")))
