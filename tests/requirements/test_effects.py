"""C3 and C6 on whole programs: effects come from the operators' declarations, through any alias."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kernels import both, calls, evals, function, incore, inout, loads_of, out, program, tensor

from pypto_egg import Lowering, lower, optimize
from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.visit import expressions_of, subexpressions, walk

MAKERS = pytest.mark.parametrize("make", [lower, optimize], ids=["lower", "optimize"])
F = tensor([16, 32], "FP32")
COLUMN = tensor([16, 1], "FP32")
N = "pl.Scalar[pl.INDEX]"
ONE = "pl.const(1.0, pl.FP32)"


def whole(body: str, params: dict[str, str], returns: str) -> str:
    call = f"r = self.kernel({', '.join(params)})\nreturn r"
    main = {
        p: t.replace("pl.Tensor", "pl.InOut[pl.Tensor", 1) + "]" if t.startswith("pl.Tensor") else t
        for p, t in params.items()
    }
    return program(
        function(params, body, returns), function(main, call, returns, "main", "Orchestration")
    )


def directions(result: Lowering) -> dict[str, str]:
    return {p.var.name: p.direction.value for p in incore(result).params}


def events(result: Lowering, name: str) -> Iterator[str]:
    """The loads of a parameter and the scalar stores to it, in program order."""
    for stmt in walk(incore(result).body):
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                if not isinstance(part, Call) or not part.args:
                    continue
                first = part.args[0]
                if isinstance(first, Var) and first.name == name and part.op.endswith(
                    ("tile.load", "tensor.write")
                ):  # fmt: skip
                    yield part.op


# --- writes, wherever they go through ----------------------------------------------------------

WRITES = {
    "the parameter": "pl.tensor.write(x, [0, 0], {one})",
    "another name": "a = x\npl.tensor.write(a, [0, 0], {one})",
    "a slice": "v = pl.slice(x, [8, 32], [8, 0])\npl.tensor.write(v, [0, 0], {one})",
    "a slice of a slice": (
        "v = pl.slice(x, [8, 32], [8, 0])\nu = pl.slice(v, [4, 16], [0, 16])\n"
        "pl.tensor.write(u, [0, 0], {one})"
    ),
    "a branch": "if n > 1:\n    pl.tensor.write(x, [0, 0], {one})",
    "a loop": "for i in pl.range(3):\n    pl.tensor.write(x, [i, 0], {one})",
    "an alias in a branch in a loop": (
        "for i in pl.range(3):\n    if i > n:\n        a = x\n"
        "        pl.tensor.write(a, [i, 0], {one})"
    ),
    "a loop's handle": (
        "for i, (h,) in pl.range(2, init_values=(x,)):\n"
        "    g = pl.tensor.write(h, [i, 0], {one})\n    e = pl.yield_(g)"
    ),
}


@pytest.mark.req("C-026", "C-028", "C-029", "C-034", "C-044", "C-046", "C-059", "C-060")
@pytest.mark.parametrize("name", WRITES)
def test_a_write_ends_sharing_and_the_next_read_sees_it(name: str) -> None:
    body = (
        "r = pl.row_max(x)\no = pl.assemble(d, r, [0, 0])\n"
        + WRITES[name].format(one=ONE)
        + "\ns = pl.row_max(x)\np = pl.assemble(o, s, [0, 1])\nreturn p"
    )
    params = {"x": F, "n": N, "d": out([16, 2], "FP32")}
    for result in both(whole(body, params, tensor([16, 2], "FP32"))):
        assert len(loads_of(result, "x")) == 2
        assert directions(result)["x"] == "InOut"
        assert directions(result)["d"] == "Out"


@pytest.mark.req("C-027", "C-031")
def test_without_a_write_one_load_serves_all() -> None:
    body = """
r = pl.row_max(x)
y = pl.sub(x, r)
z = pl.mul(y, x)
return z"""
    for result in both(whole(body, {"x": F}, F)):
        assert len(loads_of(result, "x")) == 1
        assert directions(result)["x"] == "In"


@pytest.mark.req("C-031", "C-058")
def test_a_loaded_parameter_is_still_the_tensor_that_is_returned() -> None:
    body = "r = pl.row_max(x)\no = pl.assemble(d, r, [0, 0])\nreturn x"
    params = {"x": F, "d": out([16, 1], "FP32")}
    for result in both(whole(body, params, F)):
        assert result.text.count("return x\n") == 1
        assert len(incore(result).params) == 2


@pytest.mark.req("C-060", "C-062")
def test_reads_and_writes_of_a_loop_keep_their_order() -> None:
    body = f"""
for i, (o,) in pl.range(3, init_values=(d,)):
    r = pl.row_max(x)
    pl.tensor.write(x, [i, 1], {ONE})
    s = pl.row_max(x)
    t = pl.add(r, s)
    p = pl.assemble(o, t, [0, i])
    q = pl.yield_(p)
return q"""
    params = {"x": inout([16, 32], "FP32"), "d": out([16, 3], "FP32")}
    for result in both(whole(body, params, tensor([16, 3], "FP32"))):
        assert list(events(result, "x")) == ["tile.load", "tensor.write", "tile.load"]


@pytest.mark.req("C-061")
def test_a_load_before_a_branch_does_not_serve_inside() -> None:
    body = f"""
r = pl.row_max(x)
o = pl.assemble(d, r, [0, 0])
if n > 1:
    pl.tensor.write(x, [0, 0], {ONE})
    s = pl.row_max(x)
    t = pl.yield_(s)
else:
    u = pl.row_min(x)
    t = pl.yield_(u)
p = pl.assemble(o, t, [0, 1])
return p"""
    params = {"x": inout([16, 32], "FP32"), "n": N, "d": out([16, 2], "FP32")}
    for result in both(whole(body, params, tensor([16, 2], "FP32"))):
        assert len(loads_of(result, "x")) >= 2
        found = list(events(result, "x"))
        assert found[found.index("tensor.write") + 1] == "tile.load"


@pytest.mark.req("C-063", "C-064")
def test_a_write_alone_is_kept_and_adds_no_store() -> None:
    body = f"y = pl.exp(w)\npl.tensor.write(x, [2, 3], {ONE})\nreturn y"
    params = {"x": inout([16, 32], "FP32"), "w": F}
    for result in both(whole(body, params, F)):
        (write,) = evals(result)
        assert write.op == "tensor.write"
        assert len(calls(result, "tile.store")) == 1
        assert loads_of(result, "x") == []


# --- directions --------------------------------------------------------------------------------

STORES = {
    "plain": ("o = pl.assemble(d, x, [0, 0])", "Out"),
    "a part": ("y = pl.slice(x, [8, 32], [0, 0])\no = pl.assemble(d, y, [8, 0])", "Out"),
    "atomic": ("o = pl.assemble(d, x, [0, 0], atomic=pl.AtomicType.Add)", "InOut"),
    "read before": ("y = pl.add(d, x)\no = pl.assemble(d, y, [0, 0])", "InOut"),
    "one element read": (
        "v = pl.tensor.read(d, [0, 0])\ny = pl.add(x, v)\no = pl.assemble(d, y, [0, 0])", "InOut",
    ),
    "through a branch": (
        "if n > 1:\n    a = pl.assemble(d, x, [0, 0])\n    o = pl.yield_(a)\n"
        "else:\n    o = pl.yield_(d)",
        "Out",
    ),
}  # fmt: skip


@pytest.mark.req("C-045", "C-046", "C-047", "C-049", "C-050")
@pytest.mark.parametrize("name", STORES)
def test_an_undeclared_direction_is_found(name: str) -> None:
    body, expected = STORES[name]
    for result in both(whole(f"{body}\nreturn o", {"x": F, "d": F, "n": N}, F)):
        assert directions(result)["d"] == expected
        assert directions(result)["x"] == "In"


@pytest.mark.req("C-052")
@pytest.mark.parametrize("declared", ["Out", "InOut"])
def test_a_declared_direction_is_kept(declared: str) -> None:
    params = {"x": F, "d": f"pl.{declared}[{F}]"}
    for result in both(whole("o = pl.assemble(d, x, [0, 0])\nreturn o", params, F)):
        assert directions(result)["d"] == declared


@MAKERS
@pytest.mark.req("C-030")
def test_an_opaque_effect_ends_sharing_of_every_parameter(make: object) -> None:
    body = """
a = pl.add(x, w)
o = pl.assemble(d, a, [0, 0])
pl.system.cacheinvalid(x, 0, 0)
b = pl.add(x, w)
p = pl.assemble(o, b, [16, 0])
return p"""
    text = whole(body, {"x": F, "w": F, "d": out([32, 32], "FP32")}, tensor([32, 32], "FP32"))
    result = make(text, verify=False)
    assert len(loads_of(result, "x")) == len(loads_of(result, "w")) == 2
