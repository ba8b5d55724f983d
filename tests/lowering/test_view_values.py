"""Views of memory that is written afterwards hold what they read where they were written down."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import both, inout, kernel, tensor

from pypto_egg import lower, optimize, run
from pypto_egg.errors import LoweringError

X = inout([16, 64], "FP32")
FULL, HALF = tensor([16, 64], "FP32"), tensor([8, 64], "FP32")
GIVEN = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)


def outputs(text: str) -> list[list[np.ndarray]]:
    """What both lowerings return for GIVEN; each is checked against the tensor program besides."""
    found = []
    for result in both(text):
        out = {p.var.name: np.empty((8, 64), np.float32) for p in result.program.functions[0].params
               if p.var.name.startswith("ret")}  # fmt: skip
        found.append(list(run(result.program, {"x": GIVEN.copy(), **out}).returns))
    return found


@pytest.mark.req("C-035")
def test_two_halves_swapped_in_place() -> None:
    body = """
a = x[0:8, :]
b = x[8:16, :]
h = pl.assemble(x, b, [0, 0])
k = pl.assemble(h, a, [8, 0])
return k"""
    for (swapped,) in outputs(kernel({"x": X}, body, FULL)):
        assert np.array_equal(swapped, np.concatenate([GIVEN[8:], GIVEN[:8]]))


@pytest.mark.req("C-035")
def test_a_slice_read_after_the_write_has_the_old_rows() -> None:
    body = """
a = x[0:8, :]
b = x[8:16, :]
h = pl.assemble(x, b, [0, 0])
z = pl.neg(a)
return h, z"""
    for _, negated in outputs(kernel({"x": X}, body, f"tuple[{FULL}, {HALF}]")):
        assert np.array_equal(negated, -GIVEN[:8])


@pytest.mark.req("C-035")
def test_a_returned_slice_has_the_old_rows() -> None:
    body = """
a = x[0:8, :]
b = x[8:16, :]
h = pl.assemble(x, b, [0, 0])
return h, a"""
    for _, returned in outputs(kernel({"x": X}, body, f"tuple[{FULL}, {HALF}]")):
        assert np.array_equal(returned, GIVEN[:8])


@pytest.mark.req("C-035")
def test_a_slice_of_a_slice_is_read_where_the_first_is() -> None:
    body = """
a = x[0:8, :]
b = x[8:16, :]
h = pl.assemble(x, b, [0, 0])
c = pl.slice(a, [4, 64], [2, 0])
k = pl.assemble(h, c, [8, 0])
return k"""
    for (moved,) in outputs(kernel({"x": X}, body, FULL)):
        assert np.array_equal(moved[8:12], GIVEN[2:6])


@pytest.mark.req("C-035")
def test_a_butterfly_in_place_in_a_loop() -> None:
    body = """
for i, (c,) in pl.range(2, init_values=(x,)):
    a = pl.slice(c, [4, 64], [i * 8, 0])
    b = pl.slice(c, [4, 64], [i * 8 + 4, 0])
    d = pl.add(a, b)
    e = pl.assemble(c, d, [i * 8 + 4, 0])
    f = pl.sub(b, a)
    g = pl.assemble(e, f, [i * 8, 0])
    r = pl.yield_(g)
return r"""
    pairs = GIVEN.reshape(2, 2, 4, 64)
    want = np.stack([pairs[:, 1] - pairs[:, 0], pairs[:, 0] + pairs[:, 1]], axis=1)
    for (result,) in outputs(kernel({"x": X}, body, FULL)):
        assert np.array_equal(result, want.reshape(16, 64))


@pytest.mark.req("C-035")
@pytest.mark.parametrize(
    "view", ["pl.transpose(x, 0, 1)", "pl.reshape(x, [16, 16])", "pl.slice(x, [16, 16], [0, 0])"]
)
def test_every_view_is_read_before_the_write(view: str) -> None:
    body = f"""
a = {view}
b = pl.exp(a)
c = pl.sub(b, b)
h = pl.assemble(x, c, [0, 0])
z = pl.neg(a)
return h, z"""
    square = tensor([16, 16], "FP32")
    both(kernel({"x": inout([16, 16], "FP32")}, body, f"tuple[{square}, {square}]"))


@pytest.mark.req("C-029")
def test_a_view_that_is_written_through_stands_for_the_memory() -> None:
    body = """
a = x[0:8, :]
b = x[8:16, :]
h = pl.assemble(a, b, [0, 0])
z = pl.neg(x)
k = pl.assemble(dst, z, [0, 0])
return k"""
    text = kernel({"x": X, "dst": inout([16, 64], "FP32")}, body, FULL)
    for result in both(text):
        run_ = run(result.program, {"x": GIVEN.copy(), "dst": GIVEN.copy()})
        assert np.array_equal(run_.params["dst"][:8], -GIVEN[8:])


BLOCK = inout([32, 32], "FP32")
TILE = tensor([16, 32], "FP32")
ONE = "v = pl.slice(b, [16, 32], [0, 0])\n"
TWO = ONE + "u = pl.slice(b, [16, 32], [16, 0])\n"
LATER = "w = pl.assemble(b, y, [0, 0])\n"
MERGED = """
if n > 1:
    {then}
    r = pl.yield_({one})
else:
    r = pl.yield_(v)
"""


@pytest.mark.req("C-035", "C-037", "C-038", "C-039")
@pytest.mark.parametrize(
    "body",
    [
        f"{ONE}for i, (c,) in pl.range(2, init_values=(v,)):\n    s = pl.add(c, y)\n"
        f"    r = pl.yield_(s)\n{LATER}return r",
        f"{ONE}for i, (c,) in pl.range(0, init_values=(v,)):\n    s = pl.add(c, y)\n"
        f"    r = pl.yield_(s)\n{LATER}return r",
        ONE + MERGED.format(then="e = pl.exp(v)", one="e") + LATER + "s = pl.add(r, y)\nreturn s",
        TWO + MERGED.format(then="pass", one="u") + LATER + "s = pl.add(r, y)\nreturn s",
        TWO + MERGED.format(then="pass", one="u") + "s = pl.add(r, y)\n" + LATER + "return s",
        TWO + MERGED.format(then="pass", one="u") + LATER + "return r",
        f"{ONE}for i, (c,) in pl.range(2, init_values=(v,)):\n"
        "    u = pl.slice(b, [16, 32], [16 * i, 0])\n    s = pl.add(c, y)\n"
        "    d = pl.assemble(b, s, [16 * i, 0])\n    r = pl.yield_(u)\nq = pl.add(r, y)\nreturn q",
    ],
    ids=["loop", "no trip", "one arm", "both arms", "before", "returned", "in the loop"],
)
def test_views_that_loops_and_branches_pass_on_are_values_too(body: str) -> None:
    both(kernel({"b": BLOCK, "y": TILE, "n": "pl.Scalar[pl.INDEX]"}, body, TILE))


def test_memory_itself_is_no_value_on_one_path_only() -> None:
    body = "if n > 1:\n    e = pl.exp(x)\n    r = pl.yield_(e)\nelse:\n    r = pl.yield_(x)\n"
    body += "w = pl.assemble(x, y, [0, 0])\ns = pl.add(r, y)\nreturn s"
    params = {"x": inout([16, 32], "FP32"), "y": TILE, "n": "pl.Scalar[pl.INDEX]"}
    for make in (lower, optimize):
        with pytest.raises(LoweringError, match="'r' is a computed value on one path and 'x' on"):
            make(kernel(params, body, TILE))
