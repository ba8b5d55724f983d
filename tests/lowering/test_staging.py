"""Operands of products arrive where the operator registry says, on the axes that it says."""

from __future__ import annotations

import pytest
from kernels import both, calls, kernel, loads_of, shape_of, tensor, valid_of
from products import TRANSPOSES, flags, operands

from pypto_egg.ir.expr import Call
from pypto_egg.ir.types import TileType
from pypto_egg.ops.staging import INPUT_REQS

M, N, K = 5, 40, 64


def arrivals(call: Call, count: int) -> list[object]:
    types = [arg.type for arg in call.args[:count]]
    return [type_.space for type_ in types if isinstance(type_, TileType)]


@pytest.mark.req("C-107", "C-109", "C-112", "C-113", "C-134", "C-137")
@pytest.mark.parametrize(("a_trans", "b_trans"), TRANSPOSES)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_operands_of_a_product(target: str, a_trans: bool, b_trans: bool) -> None:
    a, b = operands(M, N, K, a_trans, b_trans)
    body = f"y = pl.matmul(a, b, {flags(a_trans, b_trans)}, out_dtype=pl.FP32)\nreturn y"
    text = kernel({"a": tensor(a, "BF16"), "b": tensor(b, "BF16")}, body, tensor([M, N], "FP32"))
    lhs, rhs = INPUT_REQS["tensor.matmul"]
    kwargs = {"a_trans": a_trans, "b_trans": b_trans}
    for result in both(text, target=target, l0="leave"):
        (product,) = calls(result, "tile.matmul")
        assert arrivals(product, 2) == [lhs.demanded_space.space, rhs.demanded_space.space]
        for name, axis, extent in (("a", lhs.m_axis(kwargs), M), ("b", rhs.n_axis(kwargs), N)):
            (load,) = loads_of(result, name)
            assert axis is not None
            assert valid_of(load)[axis] == extent
            assert shape_of(load)[axis] % 16 == 0
            assert shape_of(load)[1 - axis] == valid_of(load)[1 - axis] == K


@pytest.mark.req("C-107", "C-164")
@pytest.mark.parametrize(("a_trans", "b_trans"), TRANSPOSES)
def test_operands_of_an_accumulation(a_trans: bool, b_trans: bool) -> None:
    a, b = operands(16, 32, K, a_trans, b_trans)
    body = (
        f"z = pl.matmul(a, b, {flags(a_trans, b_trans)}, out_dtype=pl.FP32)\n"
        f"y = pl.matmul_acc(z, a, b, {flags(a_trans, b_trans)})\nreturn y"
    )
    text = kernel({"a": tensor(a, "BF16"), "b": tensor(b, "BF16")}, body, tensor([16, 32], "FP32"))
    expected = [req.demanded_space.space for req in INPUT_REQS["tensor.matmul_acc"]]
    for result in both(text, l0="leave"):
        (sum_,) = calls(result, "tile.matmul_acc")
        assert arrivals(sum_, 3) == expected
