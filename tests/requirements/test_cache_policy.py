"""C9: a declared cache policy becomes a keyword of every load of the parameter."""

from __future__ import annotations

import pytest
from kernels import (
    assert_whole_boxes,
    both,
    calls,
    executed,
    function,
    incore,
    inout,
    loads_of,
    loops,
    out,
    program,
    tensor,
)

from pypto_egg import Lowering, lower, optimize
from pypto_egg.errors import LoweringError
from pypto_egg.ir.enums import CachePolicy, Mem
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import walk
from pypto_egg.text import parse, print_program

V = tensor([64], "FP32")
F = tensor([16, 64], "FP32")
BYPASS = "[(1, 1)]"


def declared(policy: str, params: dict[str, str], body: str, returns: str) -> str:
    """An InCore function that carries the attribute `cache_policy`."""
    text = function(params, body, returns)
    attrs = f"type=pl.FunctionType.InCore, attrs={{'cache_policy': {policy}}}"
    return program(text.replace("type=pl.FunctionType.InCore", attrs))


def policies(result: Lowering, name: str) -> list[object]:
    """The `cache` keyword of each load of a parameter, None where a load has none."""
    found = [[v for k, v in call.kwargs if k == "cache"] for call in loads_of(result, name)]
    assert found
    assert all(len(given) <= 1 for given in found)
    return [given[0] if given else None for given in found]


@pytest.mark.req("C-086", "C-087", "C-088")
def test_an_index_names_a_parameter_for_good() -> None:
    """`ret0__out` is appended, and index 1 still means `w`."""
    text = declared(BYPASS, {"x": V, "w": V}, "y = pl.add(x, w)\nreturn y", V)
    for result in both(text):
        assert len(incore(result).params) == 3
        assert policies(result, "w") == [CachePolicy.BYPASS]
        assert policies(result, "x") == [None]


@pytest.mark.req("C-086")
def test_the_number_names_the_policy() -> None:
    text = declared("[(0, 0), (1, 1)]", {"x": V, "w": V}, "y = pl.add(x, w)\nreturn y", V)
    for result in both(text):
        assert policies(result, "x") == [CachePolicy.DEFAULT]
        assert policies(result, "w") == [CachePolicy.BYPASS]


@pytest.mark.req("C-089")
def test_loads_for_the_cube_carry_the_policy() -> None:
    body = "s = pl.slice(w, [64, 64], [0, 64])\ny = pl.matmul(x, s, out_dtype=pl.FP32)\nreturn y"
    params = {"x": tensor([32, 64], "FP16"), "w": tensor([64, 128], "FP16")}
    for result in both(declared(BYPASS, params, body, tensor([32, 64], "FP32"))):
        (load,) = loads_of(result, "w")
        assert isinstance(load.type, TileType)
        assert load.type.space is Mem.Mat
        assert load.kwarg("cache") is CachePolicy.BYPASS
        assert policies(result, "x") == [None]


@pytest.mark.req("C-090")
def test_every_load_of_written_memory_carries_the_policy() -> None:
    body = """
r = pl.row_max(w)
o = pl.assemble(d, r, [0, 0])
pl.tensor.write(w, [0, 0], pl.const(1.0, pl.FP32))
s = pl.row_max(w)
p = pl.assemble(o, s, [0, 1])
return p"""
    params = {"d": out([16, 2], "FP32"), "w": inout([16, 64], "FP32")}
    for result in both(declared(BYPASS, params, body, tensor([16, 2], "FP32"))):
        assert policies(result, "w") == [CachePolicy.BYPASS] * 2


@pytest.mark.req("C-088", "C-090")
def test_loads_inside_loops_carry_the_policy() -> None:
    body = """
for i, (o,) in pl.range(2, init_values=(d,)):
    s = pl.slice(w, [8, 64], [8 * i, 0])
    y = pl.exp(s)
    p = pl.assemble(o, y, [8 * i, 0])
    r = pl.yield_(p)
return r"""
    for result in both(declared(BYPASS, {"d": out([16, 64], "FP32"), "w": F}, body, F)):
        (loop,) = loops(result)
        assert "BYPASS" in str(list(walk(loop.body)))
        assert policies(result, "w") == [CachePolicy.BYPASS]


HAND_WRITTEN = """
t: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.load(w, [0, 0], [16, 64]{kwarg})
u: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(t)
o: pl.Tensor[[16, 64], pl.FP32] = pl.tile.store(u, [0, 0], d)
return o"""


@pytest.mark.req("C-091", "C-092")
def test_loads_that_were_there_before_get_the_policy() -> None:
    params = {"d": out([16, 64], "FP32"), "w": F}
    for result in both(declared(BYPASS, params, HAND_WRITTEN.format(kwarg=""), F)):
        assert policies(result, "w") == [CachePolicy.BYPASS]
        assert "cache_policy" not in result.text


@pytest.mark.req("C-093")
@pytest.mark.parametrize("own", list(CachePolicy))
@pytest.mark.parametrize("scope", list(CachePolicy))
def test_a_load_s_own_policy_wins(own: CachePolicy, scope: CachePolicy) -> None:
    """In both directions: caching turned back on, and turned off, for this one access."""
    number = list(CachePolicy).index(scope)
    body = HAND_WRITTEN.format(kwarg=f", cache=pl.CachePolicy.{own.name}")
    text = declared(f"[(1, {number})]", {"d": out([16, 64], "FP32"), "w": F}, body, F)
    for make in (lower, optimize):
        assert policies(make(text), "w") == [own]


@pytest.mark.req("C-092")
def test_the_attribute_is_gone_afterwards() -> None:
    text = declared(BYPASS, {"x": V, "w": V}, "y = pl.add(x, w)\nreturn y", V)
    for result in both(text):
        assert result.source.function("kernel").attr("cache_policy") is not None
        assert result.program.function("kernel").attr("cache_policy") is None


@pytest.mark.req("C-094")
def test_boxed_loads_keep_the_policy_and_the_text_keeps_it_too() -> None:
    """M = 100 is padded to 112: another shape, the same keyword; printing and parsing keep it."""
    params = {"x": tensor([100, 64], "FP16"), "w": tensor([64, 32], "FP16")}
    text = declared(
        "[(0, 1)]", params, "y = pl.matmul(x, w, out_dtype=pl.FP32)\nreturn y",
        tensor([100, 32], "FP32"),
    )  # fmt: skip
    for result in both(text):
        assert_whole_boxes(result)
        assert policies(result, "x") == [CachePolicy.BYPASS]
        again = parse(result.text)
        assert print_program(again) == result.text
        kept = [c.kwarg("cache") for c in calls(again, "tile.load")]
        assert sorted(map(str, kept)) == ["CachePolicy.BYPASS", "None"]


@pytest.mark.req("C-086", "C-087")
@pytest.mark.parametrize("policy", ["[(2, 1)]", "[(0, 7)]", "[(-1, 1)]", "[(0,)]", "[0, 1]", "3"])
def test_a_policy_that_names_no_parameter_is_refused(policy: str) -> None:
    text = declared(policy, {"x": V, "w": V}, "y = pl.add(x, w)\nreturn y", V)
    for make in (lower, optimize):
        with pytest.raises(LoweringError) as caught:
            make(text)
        assert "cache_policy" in caught.value.message
        assert "'kernel'" in caught.value.message


@pytest.mark.req("C-093", "C-094")
def test_a_policy_changes_nothing_that_is_computed() -> None:
    plain = program(function({"x": V, "w": V}, "y = pl.add(x, w)\nreturn y", V))
    marked = declared(BYPASS, {"x": V, "w": V}, "y = pl.add(x, w)\nreturn y", V)
    for make in (lower, optimize):
        first, second = executed(make(plain, verify=True)), executed(make(marked, verify=True))
        assert second.text.replace(", cache=pl.CachePolicy.BYPASS", "") == first.text
        assert second.cost == first.cost
