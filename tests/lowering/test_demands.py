"""What a consumer asks of an operand: a memory space, an alignment, whatever the op is."""

from __future__ import annotations

import pytest
from egglog import eq, i64
from kernels import kernel, loads_of, ops, shape_of, tensor, valid_of

from pypto_egg import RuleSet, optimize, when
from pypto_egg.egraph.language import Index, Tensor, at, cols, extents, rows, unary
from pypto_egg.egraph.tile_language import demand, mat, realize, tile1, vec
from pypto_egg.extract.cost.model import CostVector, OpInstance
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.types import Type, tile_type
from pypto_egg.ops import registry
from pypto_egg.ops import site as sites
from pypto_egg.ops.site import Site, declare
from pypto_egg.rulesets.patterns import becomes
from pypto_egg.target.target import Target

FOO = RuleSet("foo", "an operator with an operand in Mat")


@FOO.rule
def foo_reads_its_operand_in_mat(t: Tensor, x: Tensor, r: Index, c: Index, k: i64):
    """tile.foo works on a boxed tile in Mat and leaves a row-major one in Vec."""
    boxed, plain = mat(r, c, "nz", k), vec(r, c, k)
    return when(
        demand(t, plain), eq(t).to(unary("tensor.foo", "", x)), at(t, k),
    ).then(
        demand(x, boxed), becomes(t, plain, tile1("tile.foo", "", realize(x, boxed))),
    )  # fmt: skip


@FOO.rule
def foo_keeps_the_extents(t: Tensor, x: Tensor, r: Index, c: Index):
    """The result is as large as the operand."""
    return when(
        eq(t).to(unary("tensor.foo", "", x)), eq(r).to(rows(t)), eq(c).to(cols(t)),
    ).then(extents(t, r, c))  # fmt: skip


class PricedFoo(Mte2Mad):
    """Our default model, and tile.foo for one cycle of the vector unit."""

    name = "priced-foo"

    def price(self, op: OpInstance, target: Target) -> CostVector:
        return CostVector(vector=1.0) if op.op == "tile.foo" else super().price(op, target)


@pytest.fixture
def foo(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensor.foo and tile.foo, known to the registry for one test."""

    def same(site: Site) -> Type:
        return site.shaped(0)

    def in_vec(site: Site) -> Type:
        given = site.shaped(0)
        return tile_type(given.shape, given.dtype, Mem.Vec)

    monkeypatch.setattr(registry, "_DECLS", dict(registry._DECLS))
    declare("tensor.foo", (sites.tensor("x"),), same, "unary")
    declare("tile.foo", (sites.tile("x", Mem.Mat),), in_vec, "unary", output_space=Mem.Vec)


@pytest.mark.req("C-018")
@pytest.mark.usefixtures("foo")
def test_any_op_can_demand_an_operand_in_mat() -> None:
    text = kernel(
        {"a": tensor([32, 64], "FP16")},
        "s = pl.slice(a, [16, 32], [0, 0])\ny = pl.tensor.foo(s)\nreturn y",
        tensor([16, 32], "FP16"),
    )
    result = optimize(text, rules=[FOO], cost_model=PricedFoo(), verify=False)
    (load,) = loads_of(result, "a")
    assert load.kwarg("target_memory") is Mem.Mat
    assert shape_of(load) == [16, 32]
    assert ops(result) == ["tile.load", "tile.foo", "tile.store"]


@pytest.mark.req("C-024")
def test_a_demand_carries_a_space_and_an_alignment() -> None:
    """One tensor for two consumers: the cube wants whole fractals in Mat, the vector unit the
    20 rows that there are, in Vec."""
    params = {"x": tensor([20, 64], "FP16"), "w": tensor([64, 64], "FP16")}
    body = "p = pl.matmul(x, w, out_dtype=pl.FP16)\ne = pl.exp(x)\nreturn p, e"
    results = f"tuple[{tensor([20, 64], 'FP16')}, {tensor([20, 64], 'FP16')}]"
    result = optimize(kernel(params, body, results), verify=True)
    wanted = {load.type.space: (shape_of(load), valid_of(load)) for load in loads_of(result, "x")}
    assert wanted[Mem.Mat] == ([32, 64], [20, 64])
    assert wanted[Mem.Vec] == ([20, 64], [20, 64])
