"""Calls that give one buffer to several parameters: writes by one name show in reads by another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels import both, function, inout, loads_of, program, tensor

from pypto_egg import Lowering, lower
from pypto_egg.errors import CoherenceError
from pypto_egg.interp import run

X = np.arange(32 * 32, dtype=np.float32).reshape(32, 32) / 1024
T = tensor([16, 32], "FP32")
Y = inout([16, 32], "FP32")

# Reads x, writes y, reads x again; the truth is one function of the two names.
KERNEL = function(
    {"x": T, "y": Y},
    """
a = pl.exp(x)
o = pl.assemble(y, a, [0, 0])
b = pl.neg(x)
o2 = pl.assemble(o, b, [0, 0])
c = pl.abs(x)
return c""",
    T,
    "k",
)


def truth(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    y[:] = np.exp(x)
    y[:] = -x
    return np.abs(x)


def host(body: str, shape: list[int]) -> str:
    params = {"t": inout(shape, "FP32")}
    return function(params, body, T, "main", "Orchestration")


def wrapper(kind: str) -> str:
    return function({"p": T, "q": Y}, "r = self.k(p, q)\nreturn r", T, "w", kind)


def windows(callee: str, row: int) -> str:
    return f"""
a = pl.slice(t, [16, 32], [0, 0])
b = pl.slice(t, [16, 32], [{row}, 0])
c = self.{callee}(a, b)
return c"""


def checked(text: str, expected: Callable[[np.ndarray], np.ndarray], rows: int) -> list[Lowering]:
    """Both lowerings, after they and their source computed what numpy does."""
    results = list(both(text))
    for which in (results[0].source, *(result.program for result in results)):
        memory = X[:rows].copy()
        returned = expected(memory)
        found = run(which, {"t": X[:rows].copy()}, function="main")
        np.testing.assert_allclose(found.returns[0], returned, rtol=1e-5)
        np.testing.assert_allclose(found.params["t"], memory, rtol=1e-5)
    return results


@pytest.mark.req("C-026", "C-059", "C-060")
def test_one_tensor_for_two_parameters() -> None:
    text = program(KERNEL, host("c = self.k(t, t)\nreturn c", [16, 32]))
    for result in checked(text, lambda t: truth(t, t), 16):
        assert len(loads_of(result, "x")) == 3


@pytest.mark.parametrize("row", [8, 16])
def test_windows_of_one_tensor(row: int) -> None:
    """Rows 0 to 16 and 8 to 24 overlap; 0 to 16 and 16 to 32 do not, and one load will do."""
    text = program(KERNEL, host(windows("k", row), [32, 32]))
    for result in checked(text, lambda t: truth(t[:16], t[row : row + 16]), 32):
        assert len(loads_of(result, "x")) == (3 if row < 16 else 1)


@pytest.mark.parametrize("kind", ["Spmd", "Group"])
@pytest.mark.parametrize("row", [8, 16])
def test_windows_through_a_wrapper(kind: str, row: int) -> None:
    text = program(host(windows("w", row), [32, 32]), wrapper(kind), KERNEL)
    for result in checked(text, lambda t: truth(t[:16], t[row : row + 16]), 32):
        assert len(loads_of(result, "x")) == (3 if row < 16 else 1)


def test_windows_at_the_offsets_of_a_loop() -> None:
    """Of one trip the windows lie apart, whatever the trip."""
    body = """
for i in pl.range(2):
    a = pl.slice(t, [8, 32], [i * 16, 0])
    b = pl.slice(t, [8, 32], [i * 16 + 8, 0])
    c = self.k(a, b)
return t"""
    half = tensor([8, 32], "FP32")
    inner = KERNEL.replace("[16, 32]", "[8, 32]")
    whole = tensor([32, 32], "FP32")
    main = function({"t": inout([32, 32], "FP32")}, body, whole, "main", "Orchestration")

    def expected(t: np.ndarray) -> np.ndarray:
        for i in (0, 16):
            truth(t[i : i + 8], t[i + 8 : i + 16])
        return t

    assert half in inner
    for result in checked(program(inner, main), expected, 32):
        assert len(loads_of(result, "x")) == 1
    shifted = main.replace("i * 16 + 8", "i * 16 + 4")
    assert len(loads_of(both(program(inner, shifted))[0], "x")) == 3


def test_the_result_of_a_call_is_the_memory_that_it_returns() -> None:
    """k returns the tensor that it wrote; the next call gets it under both names."""
    store = function({"x": T, "y": Y}, "a = pl.exp(x)\no = pl.assemble(y, a, [0, 0])\nreturn o",
                     T, "store")  # fmt: skip
    body = "o = self.store(t, t)\nc = self.k(o, t)\nreturn c"

    def expected(t: np.ndarray) -> np.ndarray:
        t[:] = np.exp(t)
        return truth(t, t)

    results = both(program(store, KERNEL, host(body, [16, 32])))
    for which in (results[0].source, *(r.program for r in results)):
        memory = X[:16].copy()
        returned = expected(memory)
        found = run(which, {"t": X[:16].copy()}, function="main")
        np.testing.assert_allclose(found.returns[0], returned, rtol=1e-5)


@pytest.mark.req("C-065", "C-066")
def test_both_store_paths_under_two_names() -> None:
    body = """
a = pl.exp(x)
o = pl.assemble(y, a, [0, 0])
pl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))
return a"""
    inner = function({"x": Y, "y": Y}, body, T, "k")
    apart = function({"t": Y, "u": Y}, "c = self.k(t, u)\nreturn c", T, "main", "Orchestration")
    both(program(inner, apart))
    with pytest.raises(CoherenceError, match="two store paths"):
        lower(program(inner, host("c = self.k(t, t)\nreturn c", [16, 32])))


@pytest.mark.req("C-077", "C-081")
def test_updates_are_not_staged_where_another_name_may_see_them() -> None:
    body = """
f = pl.full([16, 32], dtype=pl.FP32, value=-1.0)
o = pl.assemble(y, f, [0, 0])
pl.tensor.write(o, [0, 0], pl.const(1.0, pl.FP32))
c = pl.abs(x)
return c"""
    inner = function({"x": T, "y": Y}, body, T, "k")
    apart = function({"t": Y, "u": Y}, "c = self.k(t, u)\nreturn c", T, "main", "Orchestration")
    both(program(inner, apart))
    with pytest.raises(CoherenceError):
        lower(program(inner, host("c = self.k(t, t)\nreturn c", [16, 32])))
