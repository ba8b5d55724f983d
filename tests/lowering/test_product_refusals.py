"""Products that are refused, and sums that start from zeros."""

from __future__ import annotations

import pytest
from kernels import assert_whole_boxes, calls, kernel, tensor
from products import DTYPES, L0C_BYTES, TARGETS, TRANSPOSES, accumulation, product

from pypto_egg import lower, optimize
from pypto_egg.errors import AlignmentError, CapacityError, LoweringError
from pypto_egg.ir.enums import Mem


@pytest.mark.req("C-146", "C-118")
@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_never_reach_l0c_by_a_load_or_fill(dtype: str) -> None:
    best = optimize(accumulation(40, 64, dtype, False, False, "zero"), verify=True)
    assert best.verified
    for call in calls(best, "tile.load") + calls(best, "tile.full"):
        assert call.type.space is not Mem.Acc
    (total,) = calls(best, "tile.matmul_acc")
    assert len(total.args) == 4, "the first step overwrites"


@pytest.mark.req("C-168")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("a_trans", "b_trans"), TRANSPOSES)
def test_k_is_never_padded(dtype: str, a_trans: bool, b_trans: bool) -> None:
    """K = 100 is whole neither in 16-row fractals nor in any 32-byte line."""
    text = product(32, 32, 100, dtype, a_trans, b_trans)
    for make in (lower, optimize):
        with pytest.raises(AlignmentError) as caught:
            make(text)
        error = caught.value
        assert error.code == "E402"
        assert "'a'" in error.message
        assert "'b'" in error.message
        assert "K = 100" in error.message
        assert error.hint
        assert error.span is not None


@pytest.mark.req("C-167", "C-171")
def test_the_reference_refuses_an_unaligned_accumulated_n() -> None:
    text = accumulation(100, 100, "FP16", False, False, "created")
    with pytest.raises(AlignmentError) as caught:
        lower(text)
    assert "N = 100" in caught.value.message
    assert "16" in caught.value.message
    assert "'bk'" in caught.value.message
    result = optimize(text, verify=True)
    assert result.verified
    assert result.baseline is None
    assert result.baseline_refused.startswith("E402")
    assert_whole_boxes(result)


@pytest.mark.req("C-171")
@pytest.mark.parametrize("target", TARGETS)
def test_an_accumulator_larger_than_l0c_is_refused(target: str) -> None:
    """Both entry points say which space is too small, for how much, and what to do.

    Its maximum of each row wants the whole product at once, so that blocks are no way out.
    """
    body = "c = pl.matmul(a, b, out_dtype=pl.FP32)\nr = pl.row_max(c)\nreturn r"
    params = {"a": tensor([1009, 64], "FP16"), "b": tensor([64, 263], "FP16")}
    text = kernel(params, body, tensor([1009, 1], "FP32"))
    for make in (lower, optimize):
        with pytest.raises(CapacityError) as caught:
            make(text, target=target)
        error = caught.value
        assert error.code == "E501"
        for part in ("L0C", str(1024 * 272 * 4), str(L0C_BYTES[target]), "'a'", "'b'"):
            assert part in error.message
        assert "split N" in error.hint


OPERANDS = {
    "a": tensor([16, 64], "FP16"), "b": tensor([64, 16], "FP16"), "x": tensor([16, 16], "FP32"),
    "n": "pl.Scalar[pl.INDEX]",
}  # fmt: skip
IN_A_LOOP = """
for i, (c,) in pl.range(3, init_values=({seed},)):
    d = pl.matmul_acc(c, a, b)
    r = pl.yield_(d)
return r"""
SEEDS = {
    "a parameter": ("", "x", "'x', which lies in global memory"),
    "a computed value": ("v = pl.exp(x)", "v", "'v', which tensor.exp makes in UB"),
    "ones": (
        "v = pl.full([16, 16], dtype=pl.FP32, value=1.0)", "v", "'v', which tensor.full makes in UB"
    ),
    "a scaled product": (
        "p = pl.matmul(a, b)\nv = pl.mul(p, 2.0)", "v", "'v', which tensor.muls makes in UB"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("sum_", ["r = pl.matmul_acc({seed}, a, b)\nreturn r", IN_A_LOOP])
def test_the_reference_refuses_an_accumulator_that_starts_outside_l0c(name: str, sum_: str) -> None:
    before, seed, where = SEEDS[name]
    text = kernel(OPERANDS, before + "\n" + sum_.format(seed=seed), OPERANDS["x"])
    with pytest.raises(LoweringError) as caught:
        lower(text)
    assert f"tensor.matmul_acc accumulates into {where}" in caught.value.message
    assert caught.value.span is not None
    assert f"add '{seed}' to the result" in str(caught.value.hint)
    assert optimize(text, verify=True).verified


def test_a_condition_that_keeps_a_value_outside_l0c_is_refused() -> None:
    body = "v = pl.exp(x)\nr = pl.matmul_acc(v, a, b, init_cond=n > 1)\nreturn r"
    for make in (lower, optimize):
        with pytest.raises(LoweringError, match="accumulates into 'v', which"):
            make(kernel(OPERANDS, body, OPERANDS["x"]))


def test_another_fault_of_the_product_is_not_laid_to_its_accumulator() -> None:
    body = """
t = pl.reshape(w, [16, 60])
h = pl.exp(t)
e = pl.reshape(h, [60, 16])
v = pl.exp(x)
r = pl.matmul_acc(v, e, b, a_trans=True)
return r"""
    params = {**OPERANDS, "w": tensor([60, 16], "FP16"), "b": tensor([60, 16], "FP16")}
    for make in (lower, optimize):
        with pytest.raises(LoweringError) as caught:
            make(kernel(params, body, OPERANDS["x"]))
        assert "accumulates into" not in caught.value.message


@pytest.mark.req("C-171")
def test_a_padded_sum_that_a_loop_carries_beside_a_vector_value() -> None:
    """The carry starts as one row in Vec and goes on as a sum of 16 rows in L0C."""
    body = """
m = pl.col_min(y)
for i, (c,) in pl.range(2, init_values=(m,)):
    e = pl.tensor.read(c, [0, 3])
    p = pl.matmul(x, w, out_dtype=pl.FP32)
    s = pl.add(p, e)
    r = pl.yield_(s)
return r"""
    params = {"x": tensor([1, 64], "FP32"), "w": tensor([64, 64], "FP32"),
              "y": tensor([17, 64], "FP32")}  # fmt: skip
    for make in (lower, optimize):
        with pytest.raises(LoweringError, match=r"the loop starts from and yields for '[cr]'"):
            make(kernel(params, body, tensor([1, 64], "FP32")))
