"""Windows of global memory: written through, returned, carried, distributed."""

from __future__ import annotations

import pytest
from kernels import (
    both,
    calls,
    evals,
    incore,
    inout,
    kernel,
    lines,
    loads_of,
    out,
    tensor,
)

from pypto_egg import lower

X = inout([16, 32], "FP32")
COLUMN = tensor([16, 1], "FP32")
KERNEL = """
r = pl.row_max(x)
o = pl.assemble(dst, r, [0, 0])
pl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))
return o"""


@pytest.mark.req("C-056")
def test_the_same_for_distributed_tensors() -> None:
    x = "pl.InOut[pld.DistributedTensor[[16, 32], pl.FP32]]"
    result = lower(kernel({"x": x, "dst": out([16, 1], "FP32")}, KERNEL, COLUMN), verify=False)
    (write,) = evals(result)
    assert (write.op, write.args[0].name) == ("tensor.write", "x")
    assert len(loads_of(result, "x")) == 1


@pytest.mark.req("C-029")
def test_a_write_through_a_view_ends_sharing() -> None:
    body = """
r = pl.row_max(x)
o = pl.assemble(dst, r, [0, 0])
v = pl.slice(x, [16, 16], [0, 0])
pl.tensor.write(v, [0, 0], pl.const(1.0, pl.FP32))
s = pl.row_max(x)
p = pl.assemble(dst2, s, [0, 0])
return o, p"""
    params = {"x": X, "dst": out([16, 1], "FP32"), "dst2": out([16, 1], "FP32")}
    for result in both(kernel(params, body, f"tuple[{COLUMN}, {COLUMN}]")):
        assert len(loads_of(result, "x")) == 2


@pytest.mark.req("C-058")
@pytest.mark.parametrize(
    ("view", "shape"),
    [
        ("pl.slice(x, [8, 32], [8, 0])", [8, 32]),
        ("pl.reshape(x, [8, 64])", [8, 64]),
        ("pl.set_validshape(x, 8, 32)", [16, 32]),
    ],
)
def test_a_returned_window_of_a_parameter(view: str, shape: list[int]) -> None:
    """Alone, and beside a computed value."""
    f, g = tensor([16, 32], "FP32"), tensor(shape, "FP32")
    alone = kernel({"x": f}, f"y = {view}\nreturn y", g)
    both(alone)
    beside = f"y = {view}\nz = pl.exp(y)\nreturn y, z"
    both(kernel({"x": f}, beside, f"tuple[{g}, {g}]"))


@pytest.mark.req("C-172", "C-174", "C-177")
def test_a_returned_transpose_is_a_tile_that_is_stored() -> None:
    """Its bytes are in another order than the parameter's: the caller gets another tensor."""
    transposed = tensor([32, 16], "FP32")
    text = kernel(
        {"x": tensor([16, 32], "FP32")}, "y = pl.transpose(x, 0, 1)\nreturn y", transposed
    )
    for result in both(text):
        assert [p.var.name for p in incore(result).params] == ["x", "ret0__out"]
        (call,) = calls(result, "tile.transpose")
        assert len(call.args) == 3, "the scratch tile is another pass' business"
        assert calls(result, "tile.create") == []


@pytest.mark.parametrize(
    "write", ["pl.tensor.write(x, [0, 0], 1.0)", "o = pl.assemble(x, e, [0, 0])"]
)
def test_a_transpose_is_returned_as_it_was_before_a_write(write: str) -> None:
    body = f"e = pl.exp(x)\ny = pl.transpose(x, 0, 1)\n{write}\nreturn y"
    for result in both(kernel({"x": X}, body, tensor([32, 16], "FP32"))):
        found = [t for t in lines(result) if "load(x" in t or "tensor.write" in t or ", x)" in t]
        assert "load" in found[0]
        assert "load" not in found[-1]


@pytest.mark.req("C-037", "C-038")
@pytest.mark.parametrize(
    ("view", "shape"),
    [("pl.slice(x, [8, 32], [8, 0])", [8, 32]), ("pl.reshape(x, [8, 64])", [8, 64])],
)
def test_a_window_carried_unchanged(view: str, shape: list[int]) -> None:
    loop = f"y = {view}\nfor i, (c,) in pl.range(3, init_values=(y,)):\n    r = pl.yield_(c)\n"
    text = kernel(
        {"x": tensor([16, 32], "FP32")}, loop + "z = pl.neg(r)\nreturn z", tensor(shape, "FP32")
    )
    both(text)


@pytest.mark.req("C-037", "C-038")
@pytest.mark.parametrize(
    ("view", "shape"),
    [
        ("pl.slice(x, [8, 32], [8, 0])", [8, 32]),
        ("pl.reshape(x, [8, 64])", [8, 64]),
        ("pl.transpose(x, 0, 1)", [32, 16]),
    ],
)
def test_a_window_that_starts_a_computed_carry(view: str, shape: list[int]) -> None:
    body = f"""
y = {view}
for i, (c,) in pl.range(3, init_values=(y,)):
    d = pl.sin(c)
    r = pl.yield_(d)
z = pl.neg(r)
return z"""
    both(kernel({"x": tensor([16, 32], "FP32")}, body, tensor(shape, "FP32")))


@pytest.mark.req("C-038")
def test_carries_that_change_places() -> None:
    """A GM tensor and a computed value swap their carries each time round."""
    body = """
z = pl.neg(y)
for i, (c, e) in pl.range(3, init_values=(x, z)):
    r, s = pl.yield_(e, c)
t = pl.exp(s)
return t, r"""
    f = tensor([16, 32], "FP32")
    both(kernel({"x": f, "y": f}, body, f"tuple[{f}, {f}]"))
