"""C4 and C5 on whole programs: what loops and branches carry, and how results leave."""

from __future__ import annotations

import pytest
from kernels import (
    assigned,
    both,
    calls,
    function,
    incore,
    loads_of,
    loops,
    ops,
    out,
    program,
    stores,
    tensor,
)

from pypto_egg import Lowering
from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.stmt import Assign, For, If, While
from pypto_egg.ir.types import ScalarType, TensorType, TileType
from pypto_egg.ir.visit import walk

F = tensor([16, 32], "FP32")
N = "pl.Scalar[pl.INDEX]"


def whole(body: str, params: dict[str, str], returns: str = F) -> str:
    """A kernel and orchestration that calls it."""
    call = f"r = self.kernel({', '.join(params)})\nreturn r"
    if returns.startswith("tuple"):
        names = ", ".join(f"r{n}" for n in range(returns.count("pl.Tensor")))
        call = f"{names} = self.kernel({', '.join(params)})\nreturn {names}"
    return program(
        function(params, body, returns), function(params, call, returns, "main", "Orchestration")
    )


def carried(result: Lowering) -> list[type]:
    """The kinds of type that the outermost loop's arguments have."""
    (loop, *_) = [s for s in walk(incore(result).body) if isinstance(s, For | While)]
    assert [type(v.type) for v in loop.iter_args] == [type(v.type) for v in loop.results]
    return [type(v.type) for v in loop.iter_args]


HEADERS = {
    "range": "for i, (c,) in pl.range(4, init_values=(y,)):",
    "a step": "for i, (c,) in pl.range(0, 12, 3, init_values=(y,)):",
    "pipeline": "for i, (c,) in pl.pipeline(0, 4, 1, stage=2, init_values=(y,)):",
    "parallel": "for i, (c,) in pl.parallel(4, init_values=(y,)):",
}


@pytest.mark.req("C-038")
@pytest.mark.parametrize("name", HEADERS)
def test_every_kind_of_loop_carries_tiles(name: str) -> None:
    body = f"y = pl.abs(x)\n{HEADERS[name]}\n    d = pl.add(c, x)\n    r = pl.yield_(d)\nreturn r"
    for result in both(whole(body, {"x": F})):
        assert carried(result) == [TileType]
        assert len(stores(result)) == 1
        assert len(loads_of(result, "x")) == 1


@pytest.mark.req("C-037", "C-062")
@pytest.mark.parametrize("header", ["pl.unroll(2)", "pl.range(2)", "pl.parallel(2)"])
def test_loops_without_carries_write_memory(header: str) -> None:
    body = f"""
for i in {header}:
    t = x[8 * i:8 * i + 8, :]
    e = pl.exp(t)
    d[8 * i:8 * i + 8, :] = e
return d"""
    for result in both(whole(body, {"x": F, "d": out([16, 32], "FP32")})):
        assert len(stores(result)) == 1
        assert [p.direction.value for p in incore(result).params] == ["In", "Out"]


@pytest.mark.req("C-038", "C-279")
def test_a_while_loop_carries_tiles_and_counters() -> None:
    body = """
y = pl.abs(x)
for (k, c) in pl.while_(init_values=(0, y)):
    pl.cond(k < n)
    d = pl.add(c, x)
    k2 = k + 1
    q, r = pl.yield_(k2, d)
return r"""
    for result in both(whole(body, {"x": F, "n": N})):
        assert carried(result).count(TileType) == 1
        assert len(carried(result)) == 2


@pytest.mark.req("C-038", "C-039")
def test_loops_in_branches_in_loops() -> None:
    body = """
y = pl.abs(x)
for i, (a,) in pl.range(3, init_values=(y,)):
    if i > n:
        for j, (b,) in pl.range(2, init_values=(a,)):
            s = pl.mul(b, x)
            t = pl.yield_(s)
        u = pl.yield_(t)
    else:
        v = pl.neg(a)
        u = pl.yield_(v)
    r = pl.yield_(u)
return r"""
    for result in both(whole(body, {"x": F, "n": N})):
        statements = list(walk(incore(result).body))
        bound = [v for s in statements if isinstance(s, For) for v in (*s.iter_args, *s.results)]
        bound += [v for s in statements if isinstance(s, If) for v in s.results]
        assert len(bound) == 5
        assert {type(v.type) for v in bound} == {TileType}
        assert len({v.type for v in bound}) == 1


@pytest.mark.req("C-038", "C-036")
def test_one_carry_with_several_consumers() -> None:
    """The cube and the vector unit both read it; so does what follows the loop."""
    body = """
y = pl.cast(x, pl.FP16, mode='rint')
for i, (c,) in pl.range(2, init_values=(y,)):
    p = pl.matmul(c, w, out_dtype=pl.FP32)
    q = pl.cast(p, pl.FP16, mode='rint')
    d = pl.maximum(c, q)
    r = pl.yield_(d)
z = pl.cast(r, pl.FP32)
return z, r"""
    half = tensor([16, 32], "FP16")
    text = whole(body, {"x": F, "w": tensor([32, 32], "FP16")}, f"tuple[{F}, {half}]")
    for result in both(text):
        assert TileType in carried(result)
        assert len(stores(result)) >= 2


@pytest.mark.req("C-037")
def test_a_handle_that_passes_writes_stays_memory() -> None:
    body = """
for i, (o,) in pl.range(2, init_values=(d,)):
    t = pl.slice(x, [8, 32], [8 * i, 0])
    e = pl.exp(t)
    if i < n:
        p = pl.assemble(o, e, [8 * i, 0])
        q = pl.yield_(p)
    else:
        q = pl.yield_(o)
    r = pl.yield_(q)
return r"""
    for result in both(whole(body, {"x": F, "d": out([16, 32], "FP32"), "n": N})):
        assert carried(result) == [TensorType]
        assert len(incore(result).params) == 3
        (store,) = stores(result)
        assert isinstance(store.args[2].type, TensorType)


@pytest.mark.req("C-033", "C-034", "C-036")
def test_loads_stand_before_their_consumers_and_local_results_are_not_loaded() -> None:
    body = "y = pl.add(x, w)\nz = pl.mul(y, y)\nu = pl.sub(z, y)\nreturn u"
    for result in both(whole(body, {"x": F, "w": F})):
        loaded = {call.args[0].name for call in calls(result, "tile.load")}
        assert loaded == {"x", "w"}
        assert ops(result).index("tile.load") < ops(result).index("tile.add")
        assert ops(result)[-1] == "tile.store"


# --- exit stores -------------------------------------------------------------------------------


@pytest.mark.req("C-040", "C-041")
def test_each_computed_result_leaves_through_a_parameter_of_its_own() -> None:
    body = "y = pl.exp(x)\nz = pl.row_max(y)\nreturn y, z, x"
    returns = f"tuple[{F}, {tensor([16, 1], 'FP32')}, {F}]"
    for result in both(whole(body, {"x": F}, returns)):
        entry = incore(result)
        outs = [p for p in entry.params if p.var.name.startswith("ret")]
        assert [list(p.var.type.shape) for p in outs] == [[16, 32], [16, 1]]
        assert [p.direction.value for p in outs] == ["Out", "Out"]
        assert len(stores(result)) == 2
        for store in stores(result):
            assert [offset.value for offset in store.args[1].items] == [0, 0]
            assert store.args[2] in [p.var for p in outs]


@pytest.mark.req("C-042", "C-043")
@pytest.mark.parametrize("count", [2, 4])
def test_an_assembling_loop_stores_directly(count: int) -> None:
    rows = 8 * count
    body = f"""
z = pl.create_tensor([{rows}, 32], pl.FP32)
for i, (acc,) in pl.range({count}, init_values=(z,)):
    s = pl.slice(x, [8, 32], [8 * i, 0])
    t = pl.exp(s)
    a = pl.assemble(acc, t, [8 * i, 0])
    r = pl.yield_(a)
return r"""
    type_ = tensor([rows, 32], "FP32")
    for result in both(whole(body, {"x": type_}, type_)):
        (loop,) = loops(result)
        assert isinstance(loop.inits[0], Var)
        assert loop.inits[0].name == "ret0__out"
        assert "tile.assemble" not in ops(result)
        (store,) = stores(result)
        assert store.args[2] == loop.iter_args[0]
        assert assigned(result, store_name(result)).op == "tile.store"


def store_name(result: Lowering) -> str:
    """The variable that holds what the only store returns."""
    (found,) = [
        s.var.name
        for s in walk(incore(result).body)
        if getattr(getattr(s, "value", None), "op", "") == "tile.store"
    ]
    return found


@pytest.mark.req("C-037", "C-038")
def test_carries_keep_their_order_whether_memory_tiles_or_scalars() -> None:
    body = """
a = pl.abs(x)
b = pl.exp(x)
for i, (p, o, n, q) in pl.range(4, init_values=(a, y, 0, b)):
    s = pl.add(p, q)
    o1 = pl.assemble(o, s, [0, 0])
    m = n + 1
    d = pl.mul(q, x)
    rp, ro, rn, rq = pl.yield_(s, o1, m, d)
if rn > 3:
    t = pl.add(rp, rq)
    u, w, k = pl.yield_(t, ro, rp)
else:
    u, w, k = pl.yield_(rq, ro, rq)
e = pl.add(u, k)
w1 = pl.assemble(w, e, [0, 0])
return w1"""
    for result in both(whole(body, {"x": F, "y": out([16, 32], "FP32")})):
        (loop,) = loops(result)
        assert [v.name for v in loop.iter_args] == ["p", "o", "n", "q"]
        assert [v.name for v in loop.results] == ["rp", "ro", "rn", "rq"]
        kinds = [type(v.type) for v in loop.iter_args]
        assert kinds == [TileType, TensorType, ScalarType, TileType]
        (branch,) = [s for s in walk(incore(result).body) if isinstance(s, If)]
        assert [v.name for v in branch.results] == ["u", "w", "k"]


@pytest.mark.req("C-033", "C-122")
def test_arms_share_the_load_of_a_window_that_is_written_down_before_them() -> None:
    body = """
for i, (o,) in pl.range(0, 64, 16, init_values=(y,)):
    v = x[i : i + 16, :]
    if i > 16:
        a = pl.abs(v)
        r = pl.yield_(a)
    else:
        b = pl.exp(v)
        r = pl.yield_(b)
    o1 = pl.assemble(o, r, [i, 0])
    z = pl.yield_(o1)
return z"""
    big = tensor([64, 32], "FP32")
    for result in both(whole(body, {"x": big, "y": out([64, 32], "FP32")}, big)):
        (loop,) = loops(result)
        assert len(loads_of(result, "x")) == 1
        first, second = loop.body[:2]
        assert isinstance(first, Assign)
        assert isinstance(first.value, Call)
        assert first.value.op == "tile.load"
        assert isinstance(second, If)


@pytest.mark.req("C-022", "C-023")
def test_what_only_the_body_wants_of_a_carry_reaches_the_seed() -> None:
    """Nobody reads the loop's result: the demand comes from the iter_arg alone."""
    body = """
y = pl.exp(x)
for i, (c, o) in pl.range(0, 64, 16, init_values=(y, z)):
    e = pl.abs(c)
    o1 = pl.assemble(o, e, [i, 0])
    d = pl.add(c, x)
    r, w = pl.yield_(d, o1)
return w"""
    big = tensor([64, 32], "FP32")
    for result in both(whole(body, {"x": F, "z": out([64, 32], "FP32")}, big)):
        assert carried(result) == [TileType, TensorType]
        (loop,) = loops(result)
        assert assigned(result, loop.inits[0].name).op == "tile.exp"
