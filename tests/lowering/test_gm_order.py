"""Identity of global memory, the order of its reads and writes, and what parameters then say."""

from __future__ import annotations

import pytest
from kernels import (
    both,
    calls,
    evals,
    executed,
    function,
    incore,
    inout,
    kernel,
    lines,
    loads_of,
    loops,
    ops,
    out,
    program,
    stores,
    tensor,
)

from pypto_egg import lower, optimize
from pypto_egg.errors import CoherenceError
from pypto_egg.ir.stmt import If
from pypto_egg.ir.visit import walk

X = inout([16, 32], "FP32")
COLUMN = tensor([16, 1], "FP32")
KERNEL = """
r = pl.row_max(x)
o = pl.assemble(dst, r, [0, 0])
pl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))
return o"""


def directions(result: object) -> dict[str, str]:
    return {p.var.name: p.direction.value for p in incore(result).params}


def order(result: object, *parts: str) -> list[int]:
    """Line numbers of the first lines that hold the parts."""
    return [next(n for n, t in enumerate(lines(result)) if part in t) for part in parts]


@pytest.mark.req("C-054", "C-055", "C-063", "C-064", "C-068")
def test_the_reduction_reads_a_tile_and_the_write_names_gm() -> None:
    for result in both(kernel({"x": X, "dst": out([16, 1], "FP32")}, KERNEL, COLUMN)):
        (write,) = evals(result)
        assert write.op == "tensor.write"
        assert write.args[0].name == "x"
        assert len(stores(result)) == 1
        load, written = order(result, "pl.tile.load(x", "pl.tensor.write(x")
        assert load < written
        assert directions(result) == {"x": "InOut", "dst": "Out"}


@pytest.mark.req("C-057")
def test_a_scalar_read_of_gm_stays_one() -> None:
    body = """
r = pl.row_max(x)
v = pl.tensor.read(x, [0, 0])
s = pl.mul(r, v)
return s"""
    for result in both(kernel({"x": tensor([16, 32], "FP32")}, body, COLUMN)):
        assert "tile.read" not in ops(result)
        assert len(calls(result, "tensor.read")) == 1


@pytest.mark.req("C-028", "C-034", "C-059", "C-060")
def test_a_read_after_a_write_loads_again() -> None:
    body = """
r = pl.row_max(x)
o = pl.assemble(dst, r, [0, 0])
pl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))
s = pl.row_max(x)
p = pl.assemble(dst2, s, [0, 0])
return o, p"""
    params = {"x": X, "dst": out([16, 1], "FP32"), "dst2": out([16, 1], "FP32")}
    for result in both(kernel(params, body, f"tuple[{COLUMN}, {COLUMN}]")):
        assert len(loads_of(result, "x")) == 2
        found = [t for t in lines(result) if "tile.load(x" in t or "tensor.write(x" in t]
        assert ["load" in t for t in found] == [True, False, True]


@pytest.mark.req("C-026")
def test_a_write_through_an_alias_in_a_branch_is_a_write() -> None:
    body = """
r = pl.row_max(x)
o = pl.assemble(dst, r, [0, 0])
if n > 2:
    pl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))
s = pl.row_max(x)
p = pl.assemble(dst2, s, [0, 0])
return o, p"""
    column = out([16, 1], "FP32")
    params = {"x": X, "dst": column, "dst2": column, "n": "pl.Scalar[pl.INDEX]"}
    for result in both(kernel(params, body, f"tuple[{COLUMN}, {COLUMN}]")):
        assert len(loads_of(result, "x")) == 2


@pytest.mark.req("C-061")
def test_branches_do_not_share_loads_of_written_memory() -> None:
    body = """
if n > 2:
    a = pl.row_max(x)
    r = pl.yield_(a)
else:
    b = pl.row_min(x)
    r = pl.yield_(b)
o = pl.assemble(dst, r, [0, 0])
pl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))
return o"""
    params = {"x": X, "dst": out([16, 1], "FP32"), "n": "pl.Scalar[pl.INDEX]"}
    for result in both(kernel(params, body, COLUMN)):
        (branch,) = [s for s in walk(incore(result).body) if isinstance(s, If)]
        for arm in (branch.then, branch.orelse):
            inside = [s for s in walk(arm) if "tile.load" in str(getattr(s, "value", ""))]
            assert len(inside) == 1
        assert len(loads_of(result, "x")) == 2


@pytest.mark.req("C-062")
def test_a_load_of_written_memory_stays_in_its_loop() -> None:
    body = """
for i, (p,) in pl.range(4, init_values=(dst,)):
    r = pl.row_max(x)
    pl.tensor.write(x, [0, i], pl.const(3.0, pl.FP32))
    q = pl.assemble(p, r, [0, i])
    s = pl.yield_(q)
return s"""
    params = {"x": X, "dst": out([16, 4], "FP32")}
    for result in both(kernel(params, body, tensor([16, 4], "FP32"))):
        (loop,) = loops(result)
        assert "tile.load" in str([getattr(s, "value", "") for s in walk(loop.body)])
        assert len(loads_of(result, "x")) == 1


@pytest.mark.req("C-059", "C-060")
def test_bulk_stores_order_loads_too() -> None:
    body = """
r = pl.exp(x)
x1 = pl.assemble(x, y, [0, 0])
s = pl.exp(x1)
o = pl.assemble(dst, r, [0, 0])
p = pl.assemble(dst2, s, [0, 0])
return o, p"""
    f = tensor([16, 32], "FP32")
    params = {
        "x": X, "y": tensor([8, 32], "FP32"),
        "dst": out([16, 32], "FP32"), "dst2": out([16, 32], "FP32"),
    }  # fmt: skip
    for result in both(kernel(params, body, f"tuple[{f}, {f}]")):
        loaded = [call.args[0].name[0] for call in calls(result, "tile.load")]
        assert sorted(loaded) == ["x", "x", "y"]


@pytest.mark.req("C-058")
def test_a_returned_alias_of_a_parameter_is_gm() -> None:
    body = "r = pl.exp(x)\no = pl.assemble(dst, r, [0, 0])\nreturn o, x"
    f = tensor([16, 32], "FP32")
    text = kernel({"x": f, "dst": out([16, 32], "FP32")}, body, f"tuple[{f}, {f}]")
    for result in both(text):
        assert len(stores(result)) == 1
        assert lines(result)[-1].endswith(", x")
        assert len(incore(result).params) == 2


DIRECTIONS = {
    "write only": ("o = pl.assemble(d, x, [0, 0])\nreturn o", "In", "Out"),
    "read and written": (
        "y = pl.exp(d)\nz = pl.add(y, x)\no = pl.assemble(d, z, [0, 0])\nreturn o", "In", "InOut",
    ),
    "part written": ("y = pl.slice(x, [16, 16], [0, 0])\no = pl.assemble(d, y, [0, 0])\nreturn o",
                     "In", "Out"),
    "declared InOut": ("o = pl.assemble(d, x, [0, 0])\nreturn o", "InOut", "InOut"),
    "declared Out": ("o = pl.assemble(d, x, [0, 0])\nreturn o", "Out", "Out"),
    "scalar write": ("pl.tensor.write(d, [0, 0], pl.const(1.0, pl.FP32))\ny = pl.exp(x)\nreturn y",
                     "In", "Out"),
    "atomic store": ("o = pl.assemble(d, x, [0, 0], atomic=pl.AtomicType.Add)\nreturn o",
                     "In", "InOut"),
    "not written": ("y = pl.add(d, x)\nreturn y", "In", "In"),
}  # fmt: skip


@pytest.mark.req("C-044", "C-045", "C-046", "C-047", "C-049", "C-050", "C-052", "C-053")
@pytest.mark.parametrize("name", DIRECTIONS)
def test_directions_say_what_a_function_does(name: str) -> None:
    body, declared, found = DIRECTIONS[name]
    f = tensor([16, 32], "FP32")
    wrapped = {"In": f, "Out": out([16, 32], "FP32"), "InOut": inout([16, 32], "FP32")}[declared]
    for make in (lower, optimize):
        result = executed(make(kernel({"x": f, "d": wrapped}, body, f), verify=True))
        assert directions(result)["d"] == found
        assert directions(result)["x"] == "In"


@pytest.mark.req("C-044")
def test_two_stores_through_one_handle_belong_to_its_parameter() -> None:
    body = """
y = pl.slice(x, [8, 32], [0, 0])
z = pl.slice(x, [8, 32], [8, 0])
v = pl.assemble(d, y, [0, 0])
w = pl.assemble(v, z, [8, 0])
return w"""
    f = tensor([16, 32], "FP32")
    for result in both(kernel({"x": f, "d": f}, body, f)):
        assert len(stores(result)) == 2
        assert directions(result)["d"] == "Out"


@pytest.mark.req("C-030")
def test_an_opaque_call_ends_sharing() -> None:
    body = """
a = pl.exp(x)
o = pl.assemble(dst, a, [0, 0])
pl.system.cacheinvalid(x, 0, 0)
b = pl.exp(x)
p = pl.assemble(o, b, [16, 0])
return p"""
    f = tensor([16, 32], "FP32")
    text = kernel({"x": f, "dst": out([32, 32], "FP32")}, body, tensor([32, 32], "FP32"))
    for make in (lower, optimize):
        assert len(loads_of(make(text, verify=False), "x")) == 2


@pytest.mark.req("C-065", "C-067")
def test_bulk_and_scalar_stores_on_one_tensor_are_refused() -> None:
    body = """
t = pl.full([1, 16], dtype=pl.INT32, value=-1)
o = pl.assemble(dst, t, [0, 0])
for i in pl.range(4):
    v = pl.cast(i, pl.INT32)
    pl.tensor.write(dst, [0, 16 + i], v)
return o"""
    text = program(function({"dst": out([1, 32], "INT32")}, body, tensor([1, 32], "INT32")))
    for make in (lower, optimize):
        with pytest.raises(CoherenceError) as caught:
            make(text)
        assert "'dst'" in caught.value.message
        assert "MTE3" in caught.value.message
        assert "D-cache" in caught.value.message
