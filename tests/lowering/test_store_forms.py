"""Scalar stores that take the bulk path, and those that do not (C-069 to C-085)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import both, calls, function, inout, kernel, lines, ops, out, program, stores, tensor

from pypto_egg import lower, optimize, run
from pypto_egg.errors import CoherenceError, LoweringError

ROW = tensor([1, 32], "INT32")
PARAMS = {"output": out([1, 32], "INT32"), "n": "pl.Scalar[pl.INDEX]"}
UPDATE = "for i in pl.range(4):\n    pl.write(output, [0, i], pl.cast(i, pl.INT32))\n"
STAGED = [0, 1, 2, 3, *[-1] * 28]


def text(body: str, **params: str) -> str:
    return kernel(PARAMS | params, body + "\nreturn output", ROW)


def computed(source: str) -> list[list[int]]:
    """The first row of what both lowerings return."""
    rows = []
    for result in both(source):
        names = [p.var.name for p in result.program.functions[0].params]
        arrays = {name: np.zeros((1, 32), np.int32) for name in names if name != "n"}
        rows.append(run(result.program, {**arrays, "n": 3}).returns[0].reshape(-1).tolist())
    return rows


def paths(source: str) -> list[tuple[int, int]]:
    """How many bulk and how many scalar stores each lowering has."""
    return [(len(stores(r)), ops(r).count("tensor.write")) for r in both(source)]


@pytest.mark.req("C-070", "C-071", "C-073", "C-074", "C-075")
def test_a_constant_fill_is_one_bulk_store() -> None:
    body = "for i in pl.range(16):\n    pl.tensor.write(output, [0, i], pl.const(-1, pl.INT32))"
    assert paths(text(body)) == [(1, 0), (1, 0)]
    for row in computed(text(body)):
        assert row[:16] == [-1] * 16


@pytest.mark.req("C-069")
def test_a_constant_fill_beside_a_bulk_store_is_no_mixture() -> None:
    body = """
for i in pl.range(16):
    pl.tensor.write(output, [0, i + 16], pl.const(7, pl.INT32))
output[0:1, 0:16] = pl.full([1, 16], dtype=pl.INT32, value=3)"""
    for row in computed(text(body)):
        assert row == [3] * 16 + [7] * 16


@pytest.mark.req("C-072")
def test_a_fill_of_two_rows_is_two_bulk_stores() -> None:
    body = """
for i in pl.range(32):
    pl.tensor.write(o, [0, i], pl.const(1, pl.INT32))
    pl.tensor.write(o, [1, i], pl.const(2, pl.INT32))
return o"""
    source = kernel({"o": out([2, 32], "INT32")}, body, tensor([2, 32], "INT32"))
    assert paths(source) == [(2, 0), (2, 0)]


@pytest.mark.req("C-071", "C-072", "C-073", "C-074", "C-075", "C-076")
@pytest.mark.parametrize(
    ("header", "write"),
    [
        ("pl.range(1, 17)", "pl.tensor.write(output, [0, i], pl.const(-1, pl.INT32))"),
        ("pl.range(0, 16, 2)", "pl.tensor.write(output, [0, i], pl.const(-1, pl.INT32))"),
        ("pl.range(n)", "pl.tensor.write(output, [0, i], pl.const(-1, pl.INT32))"),
        (
            "pl.pipeline(0, 16, 1, stage=2)",
            "pl.tensor.write(output, [0, i], pl.const(1, pl.INT32))",
        ),
        ("pl.range(16)", "pl.tensor.write(output, [0, i], pl.cast(i, pl.INT32))"),
        ("pl.range(16)", "pl.tensor.write(output, [0, 2 * i], pl.const(-1, pl.INT32))"),
        ("pl.range(16)", "pl.tensor.write(output, [0, 31 - i], pl.const(-1, pl.INT32))"),
        ("pl.range(4)", "pl.tensor.write(output, [0, i], pl.const(-1, pl.INT32))"),
    ],
    ids=["start", "step", "dynamic", "pipeline", "value", "strided", "backwards", "16 bytes"],
)
def test_what_is_no_constant_fill_stays_a_scalar_loop(header: str, write: str) -> None:
    source = text(f"for i in {header}:\n    {write}")
    assert paths(source) == [(0, 1), (0, 1)]
    mixed = text(
        f"output[0:1, 0:8] = x\nfor i in {header}:\n    {write}", x=tensor([1, 8], "INT32")
    )
    for make in (lower, optimize):
        with pytest.raises(CoherenceError, match="'output'"):
            make(mixed)


@pytest.mark.req("C-076")
def test_a_fill_beside_scalar_stores_that_stay_is_left_alone() -> None:
    body = "for i in pl.range(16):\n    pl.tensor.write(output, [0, i], pl.const(-1, pl.INT32))\n"
    assert paths(text(body + UPDATE)) == [(0, 2), (0, 2)]


@pytest.mark.req("C-077", "C-078", "C-079")
def test_a_whole_fill_with_scalar_updates_is_staged_on_chip() -> None:
    source = text("output[0:1, 0:32] = pl.full([1, 32], dtype=pl.INT32, value=-1)\n" + UPDATE)
    assert paths(source) == [(1, 0), (1, 0)]
    assert computed(source) == [STAGED, STAGED]
    for result in both(source):
        written = [i for i, line in enumerate(lines(result)) if "pl.tile.write" in line]
        stored = [i for i, line in enumerate(lines(result)) if "pl.tile.store" in line]
        assert len(written) == len(stored) == 1
        assert written < stored


@pytest.mark.req("C-077")
def test_staged_updates_in_branches() -> None:
    body = """
output[0:1, 0:32] = pl.full([1, 32], dtype=pl.INT32, value=-1)
if n > 2:
    pl.write(output, [0, n], pl.const(5, pl.INT32))
else:
    pl.write(output, [0, 0], pl.const(6, pl.INT32))"""
    assert paths(text(body)) == [(1, 0), (1, 0)]
    for row in computed(text(body)):
        assert row == [-1, -1, -1, 5, *[-1] * 28]


REFUSED = {
    "a partial fill": "output[0:1, 0:16] = pl.full([1, 16], dtype=pl.INT32, value=-1)\n" + UPDATE,
    "a fill that is used twice": (
        "f = pl.full([1, 32], dtype=pl.INT32, value=-1)\noutput[0:1, 0:32] = f\n"
        "other[0:1, 0:32] = f\n" + UPDATE
    ),
    "an alias": (
        "o2 = output\noutput[0:1, 0:32] = pl.full([1, 32], dtype=pl.INT32, value=-1)\n"
        + UPDATE.replace("output", "o2")
    ),
    "a further bulk store": (
        "output[0:1, 0:32] = pl.full([1, 32], dtype=pl.INT32, value=-1)\n" + UPDATE
        + "output[0:1, 0:8] = x\n"
    ),
    "a read in between": (
        "output[0:1, 0:32] = pl.full([1, 32], dtype=pl.INT32, value=-1)\n" + UPDATE
        + "s = pl.neg(output)\nother[0:1, 0:32] = s\n"
    ),
}  # fmt: skip


@pytest.mark.req("C-078", "C-079", "C-080", "C-081", "C-082", "C-083")
@pytest.mark.parametrize("case", REFUSED)
def test_other_uses_of_the_tensor_stay_refused(case: str) -> None:
    source = text(REFUSED[case], other=out([1, 32], "INT32"), x=tensor([1, 8], "INT32"))
    for make in (lower, optimize):
        with pytest.raises(CoherenceError, match="'output'") as caught:
            make(source)
        assert "tensor.write" in caught.value.message
        assert "tensor.assemble" in caught.value.message


@pytest.mark.req("C-084")
def test_a_local_value_is_updated_on_chip_and_stored_once() -> None:
    body = """
staged = pl.full([1, 32], dtype=pl.INT32, value=-1)
for i in pl.range(4):
    pl.write(staged, [0, i], pl.cast(i, pl.INT32))
output[0:1, 0:32] = staged"""
    assert paths(text(body)) == [(1, 0), (1, 0)]
    assert computed(text(body)) == [STAGED, STAGED]


@pytest.mark.req("C-085")
def test_every_element_by_scalars() -> None:
    body = "for i in pl.range(32):\n    pl.write(output, [0, i], pl.cast(i, pl.INT32))"
    assert paths(text(body)) == [(0, 1), (0, 1)]
    assert computed(text(body)) == [list(range(32))] * 2


def test_what_was_read_before_an_update_keeps_its_value() -> None:
    """The update needs a copy, since the tile of before is read afterwards."""
    body = """
staged = pl.full([1, 32], dtype=pl.INT32, value=2)
a = pl.adds(staged, 1)
pl.write(staged, [0, 0], pl.const(9, pl.INT32))
b = pl.mul(a, staged)
output[0:1, 0:32] = b"""
    for row in computed(text(body)):
        assert row == [27, *[6] * 31]


def test_a_write_through_a_view_of_a_local_tensor_is_refused_by_name() -> None:
    body = """
staged = pl.full([1, 32], dtype=pl.INT32, value=2)
part = pl.slice(staged, [1, 16], [0, 0])
pl.write(part, [0, 0], pl.const(9, pl.INT32))
output[0:1, 0:32] = staged"""
    for make in (lower, optimize):
        with pytest.raises(LoweringError, match="'part'") as caught:
            make(text(body))
        assert caught.value.hint


ONE = {"x": tensor([1, 16], "FP32"), "d": out([1, 16], "FP32")}
TWO = "pl.tensor.write({}, [0, {}], pl.const(2.0, pl.FP32))\n"


@pytest.mark.req("C-084")
@pytest.mark.parametrize(
    "body",
    [
        "o = t\n" + TWO.format("t", 1) + "r = pl.add(o, t)\n",
        "o = t\n" + TWO.format("o", 1) + "r = pl.add(o, t)\n",
        "u = " + TWO.format("t", 1) + "v = " + TWO.format("u", 2) + "r = pl.add(v, t)\n",
        "for i in pl.range(8):\n    " + TWO.format("t", "i") + "r = pl.neg(t)\n",
        "for i, (c,) in pl.range(2, init_values=(t,)):\n    " + TWO.format("c", "i")
        + "    r = pl.yield_(c)\n",
    ],
    ids=["another name", "through another name", "results", "a fill", "carried"],
)  # fmt: skip
def test_a_local_tensor_under_other_names(body: str) -> None:
    text = "t = pl.exp(x)\n" + body + "e = pl.assemble(d, r, [0, 0])\nreturn e"
    both(kernel(ONE, text, tensor([1, 16], "FP32")))


def test_a_local_tensor_under_two_names_at_once_is_refused() -> None:
    body = (
        "t = pl.exp(x)\nfor i, (c,) in pl.range(2, init_values=(t,)):\n    " + TWO.format("t", "i")
        + "    s = pl.add(c, t)\n    r = pl.yield_(s)\ne = pl.assemble(d, r, [0, 0])\nreturn e"
    )  # fmt: skip
    for make in (lower, optimize):
        with pytest.raises(LoweringError, match="'t' is passed on") as caught:
            make(kernel(ONE, body, tensor([1, 16], "FP32")))
        assert caught.value.hint


def test_a_local_tensor_passed_on_twice_is_refused() -> None:
    body = (
        "t = pl.exp(x)\nfor i, (a, b) in pl.range(2, init_values=(t, t)):\n    "
        + TWO.format("a", "i") + "    f = pl.neg(b)\n    p, q = pl.yield_(a, f)\n"
        + "e = pl.assemble(d, q, [0, 0])\nreturn e"
    )  # fmt: skip
    for make in (lower, optimize):
        with pytest.raises(LoweringError, match="passed on twice"):
            make(kernel(ONE, body, tensor([1, 16], "FP32")))


@pytest.mark.req("C-065")
def test_stores_inside_of_a_called_kernel_count() -> None:
    row = tensor([1, 16], "FP32")
    callee = function({"o": inout([1, 16], "FP32")}, TWO.format("o", 0) + "return o", row, "g")
    body = "q = self.g(o)\nh = pl.assemble(q, a, [0, 0])\nreturn h"
    params = {"o": inout([1, 16], "FP32"), "a": tensor([1, 8], "FP32")}
    with pytest.raises(CoherenceError, match=r"self\.g"):
        lower(program(callee, function(params, body, row)))


@st.composite
def updates(draw: st.DrawFn, depth: int = 2) -> str:
    """Statements that write into `staged`, with loops and branches around some of them."""
    body = ""
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["write", "loop", "branch"] if depth else ["write"]))
        if kind == "write":
            at, value = draw(st.integers(0, 31)), draw(st.integers(-9, 9))
            body += f"pl.write(staged, [0, {at}], pl.const({value}, pl.INT32))\n"
            continue
        inner = "".join(f"    {line}\n" for line in draw(updates(depth - 1)).splitlines())
        head = f"for i{depth} in pl.range({draw(st.integers(0, 3))}):\n"
        body += (head if kind == "loop" else f"if n > {draw(st.integers(0, 5))}:\n") + inner
    return body


@given(updates())
@settings(max_examples=25)
def test_updates_anywhere(body: str) -> None:
    head = "staged = pl.full([1, 32], dtype=pl.INT32, value=-1)\n"
    source = text(head + body + "output[0:1, 0:32] = staged")
    for result in both(source):
        assert len(stores(result)) == 1
        assert not [c for c in calls(result) if c.op == "tensor.write"]
