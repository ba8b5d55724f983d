"""Reads and writes of global memory, memory versions, and the meeting of two store paths."""

from __future__ import annotations

import textwrap

import pytest

from pypto_egg.analysis.effects import Effects, analyse_effects, check_store_paths
from pypto_egg.errors import CoherenceError
from pypto_egg.ir.expr import Var
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.visit import definitions, walk
from pypto_egg.ops.registry import Channel, Effect
from pypto_egg.text import parse

HEADER = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        x: pl.Tensor[[16, 32], pl.FP32],
        out: pl.Tensor[[16, 32], pl.FP32],
        n: pl.Scalar[pl.INDEX],
    ):
"""


def kernel(body: str, header: str = HEADER) -> Function:
    return parse(header + textwrap.indent(textwrap.dedent(body), " " * 8)).functions[0]


def effects(body: str) -> Effects:
    return analyse_effects(kernel(body))


def host_effects(body: str) -> Effects:
    """Effects in an orchestration function, where operators may be unknown."""
    return analyse_effects(kernel(body, HEADER.replace("InCore", "Orchestration")))


def param(found: Effects, name: str) -> Var:
    (var,) = [p.var for p in found.function.params if p.var.name == name]
    return var


def written(found: Effects) -> list[str]:
    return [root.var.name for root in found.written_roots]


def versions(found: Effects, handle: str = "x") -> dict[str, int]:
    """The version of `handle` that the statement defining each variable reads."""
    (var,) = [v for v in definitions(found.function) if v.name == handle]
    return {
        stmt.var.name: found.read_version(stmt, var)
        for stmt in walk(found.function.body)
        if isinstance(stmt, Assign)
    }


@pytest.mark.req("C-027")
def test_a_parameter_that_is_only_read_is_read_only() -> None:
    found = effects("y = pl.add(x, x)\nz = pl.mul(x, y)\nreturn z")
    assert written(found) == []
    assert found.is_read_only(param(found, "x"))
    assert set(versions(found).values()) == {0}
    assert [(a.root.var.name, a.operand, a.effect) for a in found.accesses] == [
        ("x", 0, Effect.READ),
        ("x", 1, Effect.READ),
        ("x", 0, Effect.READ),
        ("y", 1, Effect.READ),
    ]


@pytest.mark.req("C-026", "C-028")
def test_a_write_through_an_alias_in_a_branch_is_a_write() -> None:
    found = effects(
        """
        a = x
        if n == 0:
            b = pl.tensor.write(a, [0, 0], 1.0)
        return out
        """
    )
    assert written(found) == ["x"]
    assert not found.is_read_only(param(found, "x"))
    assert found.is_read_only(param(found, "out"))


@pytest.mark.req("C-029")
def test_a_write_to_a_slice_is_a_write_to_its_parameter() -> None:
    found = effects("v = pl.slice(x, [16, 16], [0, 0])\npl.tensor.write(v, [0, 0], 1.0)\nreturn x")
    assert written(found) == ["x"]


@pytest.mark.req("C-030")
def test_an_opaque_call_makes_nothing_read_only() -> None:
    found = host_effects("a = pl.add(x, x)\npl.system.unheard_of(out)\nreturn a")
    assert found.opaque
    assert not found.is_read_only(param(found, "x"))
    assert written(found) == []


@pytest.mark.req("C-053")
def test_an_operator_that_nobody_declared_reads_all_of_its_operands() -> None:
    found = host_effects("pl.system.unheard_of(out, n, x)\nreturn x")
    assert [(a.root.var.name, a.effect) for a in found.accesses] == [
        ("out", Effect.READ),
        ("x", Effect.READ),
    ]
    assert found.param_effects().effects == (Effect.READ, Effect.READ, Effect.NONE)


@pytest.mark.req("C-047", "C-049")
def test_a_store_does_not_read_its_target() -> None:
    found = effects("t = pl.add(x, x)\no = pl.assemble(out, t, [0, 0])\nreturn o")
    (access,) = found.accesses_to(found.provenance.root_of_param(1))
    assert (access.effect, access.channel) == (Effect.WRITE, Channel.DMA)
    assert access.call.op == "tensor.assemble"


@pytest.mark.req("C-050")
def test_an_atomic_store_reads_its_target_too() -> None:
    found = effects(
        "t = pl.add(x, x)\no = pl.assemble(out, t, [0, 0], atomic=pl.AtomicType.Add)\nreturn o"
    )
    (access,) = found.accesses_to(found.provenance.root_of_param(1))
    assert access.effect is Effect.READ_WRITE


@pytest.mark.req("C-057")
def test_asking_for_an_extent_reads_nothing_while_reading_a_scalar_does() -> None:
    assert effects("d = pl.tensor.dim(x, 0)\nreturn d").accesses == []
    (access,) = effects("v = pl.tensor.read(x, [0, 0])\nreturn v").accesses
    assert access.effect is Effect.READ


def test_views_are_no_accesses() -> None:
    found = effects("v = pl.slice(x, [8, 32], [0, 0])\nw = pl.reshape(v, [256])\nreturn w")
    assert found.accesses == []


@pytest.mark.req("C-034", "C-059", "C-060")
def test_reads_before_and_after_a_write_see_different_versions() -> None:
    seen = versions(
        effects(
            """
            a = pl.row_max(x)
            b = pl.row_sum(x)
            w = pl.tensor.write(x, [0, 0], 1.0)
            c = pl.row_max(x)
            d = pl.row_sum(x)
            return d
            """
        )
    )
    assert seen["a"] == seen["b"] == seen["w"]
    assert seen["c"] == seen["d"]
    assert seen["a"] < seen["c"]


@pytest.mark.req("C-060")
def test_a_write_to_another_tensor_changes_no_version() -> None:
    seen = versions(
        effects(
            "a = pl.row_max(x)\nw = pl.tensor.write(out, [0, 0], 1.0)\nb = pl.row_max(x)\nreturn b"
        )
    )
    assert seen["a"] == seen["b"] == 0


@pytest.mark.req("C-061")
def test_arms_of_a_branch_and_the_code_around_it_share_no_version() -> None:
    seen = versions(
        effects(
            """
            w = pl.tensor.write(x, [0, 0], 1.0)
            before = pl.row_max(x)
            if n == 0:
                a = pl.row_max(x)
                r = pl.yield_(a)
            else:
                b = pl.row_sum(x)
                r = pl.yield_(b)
            after = pl.row_max(x)
            return after
            """
        )
    )
    assert len({seen[name] for name in ("before", "a", "b", "after")}) == 4


@pytest.mark.req("C-062")
def test_a_read_in_a_loop_that_writes_is_not_the_read_before_it() -> None:
    seen = versions(
        effects(
            """
            before = pl.row_max(x)
            for i in pl.range(4):
                a = pl.row_max(x)
                w = pl.tensor.write(x, [0, i], 1.0)
                b = pl.row_max(x)
            after = pl.row_max(x)
            return after
            """
        )
    )
    assert len({seen[name] for name in ("before", "a", "b", "after")}) == 4


@pytest.mark.req("C-061", "C-062")
def test_borders_do_not_matter_to_what_is_never_written() -> None:
    seen = versions(
        effects(
            """
            before = pl.row_max(x)
            for i in pl.range(4):
                a = pl.row_max(x)
                w = pl.tensor.write(out, [0, i], 1.0)
            return before
            """
        )
    )
    assert set(seen.values()) == {0}


@pytest.mark.req("C-030", "C-060")
def test_an_opaque_call_starts_a_new_version_of_everything() -> None:
    seen = versions(
        host_effects("a = pl.row_max(x)\npl.system.unheard_of(out)\nb = pl.row_max(x)\nreturn b")
    )
    assert seen["a"] != seen["b"]


@pytest.mark.req("C-060", "C-066")
def test_a_handle_that_may_be_either_tensor_changes_with_both() -> None:
    found = effects(
        """
        if n == 0:
            r = pl.yield_(x)
        else:
            r = pl.yield_(out)
        a = pl.row_max(r)
        v = pl.tensor.write(x, [0, 0], 1.0)
        b = pl.row_max(r)
        w = pl.tensor.write(out, [0, 0], 1.0)
        c = pl.row_max(r)
        return c
        """
    )
    seen = versions(found, "r")
    assert seen["a"] < seen["b"] < seen["c"]


CALLS = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(o: pl.{direction}[pl.Tensor[[16, 32], pl.FP32]]):
        t = pl.tile.full([16, 32], dtype=pl.FP32, value=0.0)
        r = pl.tile.store(t, [0, 0], o)
        return
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 32], pl.FP32]):
        self.fill(x)
        return
"""


def calling(direction: str) -> Program:
    text = CALLS.format(direction=direction)
    return parse(
        text.replace("pl.In[pl.Tensor[[16, 32], pl.FP32]]", "pl.Tensor[[16, 32], pl.FP32]")
    )


@pytest.mark.parametrize(
    ("direction", "effect"),
    [("In", Effect.WRITE), ("Out", Effect.WRITE), ("InOut", Effect.READ_WRITE)],
)
@pytest.mark.req("C-044", "C-045", "C-052")
def test_a_call_does_what_its_function_does(direction: str, effect: Effect) -> None:
    program = calling(direction)
    found = analyse_effects(program.function("main"), program)
    (access,) = found.accesses
    assert (access.root.var.name, access.effect) == ("x", effect)
    assert access.channel is Channel.DMA
    assert not found.opaque


@pytest.mark.req("C-030")
def test_a_call_of_an_unknown_function_is_opaque() -> None:
    found = analyse_effects(calling("Out").function("main"))
    assert found.opaque


MIXED = """
    t = pl.full([1, 16], dtype=pl.FP32, value=-1.0)
    o = pl.assemble(out, t, [0, 0])
    for i in pl.range(4):
        pl.write(o, [0, i], 2.0)
    return o
"""


@pytest.mark.req("C-065", "C-067", "C-080")
def test_bulk_and_scalar_stores_to_one_tensor_are_refused() -> None:
    with pytest.raises(CoherenceError) as caught:
        check_store_paths(kernel(MIXED))
    error = caught.value
    assert "tensor 'out' of function 'k'" in error.message
    assert "tensor.assemble at " in error.message
    assert "bulk store (MTE3)" in error.message
    assert "tensor.write at " in error.message
    assert "scalar store (D-cache)" in error.message
    assert error.span is not None
    assert "pl.write(o, [0, i], 2.0)" in error.span.picture()
    assert error.hint is not None


@pytest.mark.req("C-065", "C-080")
def test_a_partial_slice_assignment_counts_as_a_bulk_store() -> None:
    body = """
        out[0:1, 0:16] = pl.full([1, 16], dtype=pl.FP32, value=-1.0)
        for i in pl.range(4):
            pl.write(out, [0, i], 2.0)
    """
    with pytest.raises(CoherenceError, match="tensor 'out' of function 'k'"):
        check_store_paths(kernel(body))


@pytest.mark.req("C-066")
def test_the_store_paths_are_followed_through_three_names() -> None:
    body = """
        o = out
        t = pl.full([1, 16], dtype=pl.FP32, value=-1.0)
        o2 = pl.assemble(o, t, [0, 0])
        for i, (c,) in pl.range(4, init_values=(o2,)):
            c2 = pl.write(c, [0, i], 1.0)
            r = pl.yield_(c2)
        return r
    """
    with pytest.raises(CoherenceError, match="tensor 'out'"):
        check_store_paths(kernel(body))


@pytest.mark.req("C-067")
def test_offsets_that_look_disjoint_are_refused_too() -> None:
    body = """
        t = pl.full([1, 16], dtype=pl.FP32, value=-1.0)
        o = pl.assemble(out, t, [0, 0])
        pl.write(out, [15, 31], 1.0)
        return o
    """
    with pytest.raises(CoherenceError, match="tensor 'out'"):
        check_store_paths(kernel(body))


@pytest.mark.req("C-065")
def test_tile_stores_count_as_bulk_stores() -> None:
    body = """
        t = pl.tile.full([16, 32], dtype=pl.FP32, value=0.0)
        o = pl.tile.store(t, [0, 0], out)
        pl.tensor.write(out, [0, 0], 1.0)
        return o
    """
    with pytest.raises(CoherenceError, match=r"tile\.store at "):
        check_store_paths(kernel(body))


@pytest.mark.req("C-068")
def test_different_tensors_may_take_different_paths() -> None:
    check_store_paths(
        kernel(
            """
            r = pl.exp(x)
            o = pl.assemble(out, r, [0, 0])
            pl.tensor.write(x, [0, 0], 1.0)
            return o
            """
        )
    )


@pytest.mark.req("C-076", "C-085")
def test_scalar_stores_alone_are_fine() -> None:
    check_store_paths(kernel("for i in pl.range(32):\n    pl.write(out, [0, i], 1.0)\nreturn out"))


@pytest.mark.req("C-084")
def test_a_local_value_may_be_updated_and_stored_once() -> None:
    check_store_paths(
        kernel(
            """
            staged = pl.full([1, 32], dtype=pl.FP32, value=-1.0)
            for i in pl.range(4):
                pl.write(staged, [0, i], 2.0)
            o = pl.assemble(out, staged, [0, 0])
            return o
            """
        )
    )
