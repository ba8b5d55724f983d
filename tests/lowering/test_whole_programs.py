"""Whole programs with wrappers, shared tensors, views and loops, each against numpy of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels import both, function, inout, program, tensor

from pypto_egg.interp import run

Arrays = dict[str, np.ndarray]
T, X = tensor([16, 32], "FP32"), inout([16, 32], "FP32")
SEED = np.random.default_rng(7)
TARGETS = pytest.mark.parametrize("target", ["a2a3", "a5"])


def numbers(*shape: int) -> np.ndarray:
    return (SEED.standard_normal(shape) / 4).astype(np.float32)


def agree(
    text: str, target: str, inputs: Arrays, truth: Callable[[Arrays], list[np.ndarray]], **n: int
) -> None:
    """The source and both lowerings return and leave behind what `truth` does to copies."""
    wanted = {name: array.copy() for name, array in inputs.items()}
    returned = truth(wanted)
    results = both(text, target)
    for which in (results[0].source, *(result.program for result in results)):
        found = run(which, {**{name: a.copy() for name, a in inputs.items()}, **n})
        for a, b in zip(found.returns, returned, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)
        for name in found.params.keys() & wanted.keys():
            np.testing.assert_allclose(found.params[name], wanted[name], rtol=2e-3, atol=2e-3)


@TARGETS
@pytest.mark.req("C-035", "C-059", "C-098", "C-102")
def test_halves_swapped_in_place_by_two_wrappers_in_a_loop(target: str) -> None:
    square, column = tensor([32, 32], "FP32"), tensor([32, 1], "FP32")
    swap = function({"x": T, "h": inout([32, 32], "FP32")}, """
s = pl.slice(h, [16, 32], [0, 0])
t = pl.slice(h, [16, 32], [16, 0])
a = pl.add(s, x)
h1 = pl.assemble(h, a, [16, 0])
b = pl.add(t, x)
h2 = pl.assemble(h1, b, [0, 0])
return h2""", square, "swap")  # fmt: skip
    count = function({"h": square, "o": inout([32, 1], "FP32")}, """
m = pl.row_max(h)
p = pl.add(o, m)
o1 = pl.assemble(o, p, [0, 0])
return o1""", column, "count")  # fmt: skip
    first = function({"x": T, "h": inout([32, 32], "FP32")}, "r = self.swap(x, h)\nreturn r",
                     square, "first", "Spmd")  # fmt: skip
    second = function({"h": square, "o": inout([32, 1], "FP32")}, "r = self.count(h, o)\nreturn r",
                      column, "second", "Group")  # fmt: skip
    params = {"x": tensor([64, 32], "FP32"), "h": inout([32, 32], "FP32"),
              "o": inout([32, 1], "FP32")}  # fmt: skip
    main = function(params, """
for i, (hh, oo) in pl.range(4, init_values=(h, o)):
    xi = pl.slice(x, [16, 32], [i * 16, 0])
    h1 = self.first(xi, hh)
    o1 = self.second(h1, oo)
    hr, r = pl.yield_(h1, o1)
return hr, r""", f"tuple[{square}, {column}]", "main", "Orchestration")  # fmt: skip

    def truth(d: Arrays) -> list[np.ndarray]:
        for i in range(4):
            x = d["x"][16 * i : 16 * i + 16]
            d["h"][:] = np.concatenate([d["h"][16:] + x, d["h"][:16] + x])
            d["o"] += d["h"].max(1, keepdims=True)
        return [d["h"], d["o"]]

    inputs = {"x": numbers(64, 32), "h": numbers(32, 32), "o": numbers(32, 1)}
    agree(program(second, main, swap, first, count), target, inputs, truth)


@TARGETS
@pytest.mark.req("C-026", "C-060")
@pytest.mark.parametrize("n", [3, 8, 10])
def test_windows_that_drift_over_each_other(target: str, n: int) -> None:
    part = tensor([8, 32], "FP32")
    inner = function({"x": part, "y": inout([8, 32], "FP32")}, """
a = pl.mul(x, 0.5)
o = pl.assemble(y, a, [0, 0])
b = pl.add(x, o)
return b""", part, "k")  # fmt: skip
    main = function({"t": inout([32, 32], "FP32"), "n": "pl.Scalar[pl.INDEX]"}, """
z = pl.create_tensor([8, 32], pl.FP32)
for i, (c,) in pl.range(3, init_values=(z,)):
    a = pl.slice(t, [8, 32], [i * 8, 0])
    b = pl.slice(t, [8, 32], [i * n, 0])
    d = self.k(a, b)
    r = pl.yield_(d)
return r""", part, "main", "Orchestration")  # fmt: skip

    def truth(d: Arrays) -> list[np.ndarray]:
        for i in range(3):
            a, b = d["t"][8 * i : 8 * i + 8], d["t"][i * n : i * n + 8]
            b[:] = (a * np.float32(0.5)).copy()
        return [a + b]

    agree(program(inner, main), target, {"t": numbers(32, 32)}, truth, n=n)


@TARGETS
@pytest.mark.req("C-035", "C-037", "C-060", "C-062")
def test_views_carried_while_their_memory_changes_by_another_name(target: str) -> None:
    part = tensor([8, 32], "FP32")
    inner = function({"a": X, "b": X}, """
v = pl.slice(a, [8, 32], [0, 0])
for i, (c,) in pl.range(2, init_values=(v,)):
    w = pl.slice(b, [8, 32], [8 * i, 0])
    s = pl.add(c, w)
    o = pl.assemble(b, s, [8 * i, 0])
    u = pl.slice(a, [8, 32], [8, 0])
    m = pl.maximum(u, s)
    r = pl.yield_(m)
q = pl.add(r, v)
return q""", part, "k")  # fmt: skip
    main = function({"t": inout([24, 32], "FP32")}, """
x = pl.slice(t, [16, 32], [0, 0])
y = pl.slice(t, [16, 32], [8, 0])
p = self.k(x, y)
q = self.k(y, x)
r = self.k(x, x)
return p, q, r""", f"tuple[{part}, {part}, {part}]", "main", "Orchestration")  # fmt: skip

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        v = c = a[:8].copy()
        for i in range(2):
            s = c + b[8 * i : 8 * i + 8]
            b[8 * i : 8 * i + 8] = s
            c = np.maximum(a[8:], s)
        return c + v

    def truth(d: Arrays) -> list[np.ndarray]:
        x, y = d["t"][:16], d["t"][8:]
        return [kernel(x, y), kernel(y, x), kernel(x, x)]

    agree(program(main, inner), target, {"t": numbers(24, 32)}, truth)


@TARGETS
@pytest.mark.req("C-037", "C-061", "C-062")
def test_two_buffers_that_a_loop_exchanges(target: str) -> None:
    text = program(function({"x": X, "y": X}, """
for i, (a, b) in pl.range(3, init_values=(x, y)):
    e = pl.mul(a, 0.5)
    o = pl.assemble(b, e, [0, 0])
    ra, rb = pl.yield_(o, a)
s = pl.add(ra, rb)
return s""", T, "k"))  # fmt: skip

    def truth(d: Arrays) -> list[np.ndarray]:
        a, b = d["x"], d["y"]
        for _ in range(3):
            b[:] = a * np.float32(0.5)
            a, b = b, a
        return [a + b]

    agree(text, target, {"x": numbers(16, 32), "y": numbers(16, 32)}, truth)


@TARGETS
@pytest.mark.req("C-037", "C-038", "C-059")
@pytest.mark.parametrize("n", [0, 2])
def test_a_while_loop_with_a_handle_a_sum_and_no_trip(target: str, n: int) -> None:
    text = program(function({"x": X, "n": "pl.Scalar[pl.INDEX]"}, """
for (j, h, s) in pl.while_(init_values=(0, x, 0.0)):
    pl.cond(j < n)
    e = pl.exp(h)
    m = pl.row_max(e)
    o = pl.assemble(h, e, [0, 0])
    v = pl.tensor.read(m, [0, 0])
    s1 = s + v
    j1 = j + 1
    jr, hr, sr = pl.yield_(j1, o, s1)
y = pl.mul(hr, sr)
return y""", T, "k"))  # fmt: skip

    def truth(d: Arrays) -> list[np.ndarray]:
        total = np.float32(0)
        for _ in range(n):
            d["x"][:] = np.exp(d["x"])
            total += d["x"][0].max()
        return [d["x"] * total]

    agree(text, target, {"x": numbers(16, 32)}, truth, n=n)


@TARGETS
@pytest.mark.req("C-058", "C-103")
def test_results_that_are_memory_and_go_back_in(target: str) -> None:
    inner = function({"x": T, "y": X}, """
e = pl.exp(x)
o = pl.assemble(y, e, [0, 0])
r = pl.neg(y)
return r, o""", f"tuple[{T}, {T}]", "k")  # fmt: skip
    main = function({"t": X}, """
a, b = self.k(t, t)
c, d = self.k(a, b)
e, f = self.k(d, a)
return e, f""", f"tuple[{T}, {T}]", "main", "Orchestration")  # fmt: skip

    def kernel(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y[:] = np.exp(x)
        return -y, y

    def truth(arrays: Arrays) -> list[np.ndarray]:
        a, b = kernel(arrays["t"], arrays["t"])
        _, d = kernel(a, b)
        return list(kernel(d, a))

    agree(program(inner, main), target, {"t": numbers(16, 32)}, truth)
