"""Which rules fire on a kernel, and the check that the kernel still computes the same."""

from __future__ import annotations

from collections import Counter
from functools import cache

from kernels import function, kernel, program, tensor

from pypto_egg import optimize


@cache
def matched(text: str, reassociate: bool = False) -> Counter[str]:
    """Rule name -> how often it matched; the optimized kernel was executed and agreed."""
    result = optimize(text, verify=True, allow_reassociation=reassociate)
    assert result.verified
    assert result.comparison.compared > 0
    total: Counter[str] = Counter()
    for report in result.functions:
        total.update(report.saturation.matches)
    return total


def assert_fires(rule: str, text: str, reassociate: bool = False) -> None:
    assert matched(text, reassociate)[rule] > 0, f"{rule} does not match on\n{text}"


def assert_silent(rule: str, text: str, reassociate: bool = False) -> None:
    counts = matched(text, reassociate)
    assert sum(counts.values()) > 0, "the kernel has no work for any rule"
    assert counts[rule] == 0, f"{rule} matches on\n{text}"


def vector(
    body: str, shape: tuple[object, ...] = (16, 32), dtype: str = "FP32", **more: str
) -> str:
    """A kernel over x [16, 32] FP32 and whatever else is given, that returns `shape`."""
    params = {"x": tensor([16, 32], "FP32"), **more}
    return kernel(params, body, tensor(shape, dtype))


def cube(
    body: str,
    shape: tuple[object, ...] = (32, 32),
    dtype: str = "FP32",
    a: tuple[object, ...] = (32, 64),
    b: tuple[object, ...] = (64, 32),
    operands: str = "FP16",
    **more: str,
) -> str:
    """A kernel over a and b, and whatever else is given."""
    params = {"a": tensor(a, operands), "b": tensor(b, operands), **more}
    return kernel(params, body, tensor(shape, dtype))


def dynamic(params: dict[str, str], body: str, returns: str) -> str:
    """A kernel whose extent D is known when it runs."""
    return program(function(params, body, returns), before='D = pl.dynamic("D")')


EXP = vector("y = pl.exp(x)\nreturn y")
MATMUL = cube("y = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn y")
