"""What the registry declares: completeness, effects, spaces, and one-to-one conversions."""

import pytest

from pypto_egg.errors import InternalError, TypeCheckError
from pypto_egg.ir.dtype import FP32
from pypto_egg.ir.enums import AtomicType, CachePolicy, Mem
from pypto_egg.ir.expr import Var, tuple_of
from pypto_egg.ir.types import tensor_type, tile_type
from pypto_egg.ops import registry
from pypto_egg.ops.registry import (
    Channel,
    Effect,
    Kwarg,
    OpDecl,
    declared,
    lookup,
    make_call,
    register,
)
from pypto_egg.ops.site import declare, tensor

READ, WRITE, BOTH, NONE = Effect.READ, Effect.WRITE, Effect.READ_WRITE, Effect.NONE
ADD = {"atomic": AtomicType.Add}


def effects(name, **kwargs):
    return [operand.effect_for(kwargs) for operand in lookup(name).operands]


def test_every_operator_of_the_catalogue_is_declared():
    names = [decl.name for decl in declared()]
    sizes = {"tensor": 105, "tile": 138, "array": 3, "system": 22, "prefetch": 4, "pld": 23}
    for namespace, size in sizes.items():
        assert sum(name.startswith(f"{namespace}.") for name in names) == size, namespace
    assert len(set(names)) == len(names)


def test_one_to_one_conversions_lead_to_declared_tile_ops_of_the_same_name():
    targets = [decl for decl in declared() if decl.lowers_to is not None]
    assert len(targets) > 60
    for decl in targets:
        assert lookup(decl.lowers_to) is not None
        assert decl.lowers_to == decl.name.replace("tensor.", "tile.")


def test_kwargs_that_are_stored_always_have_a_default_to_store():
    for decl in declared():
        for kwarg in decl.kwargs:
            assert not (kwarg.always and repr(kwarg.default) == "REQUIRED"), decl.name


@pytest.mark.req("C-047", "C-048", "C-049")
@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("tile.store", 2),
        ("tile.mscatter", 2),
        ("tensor.write", 0),
        ("tensor.assemble", 0),
        ("tensor.expand_clone", 1),
        ("pld.tensor.put", 0),
        ("pld.tensor.get", 0),
        ("pld.tensor.remote_store", 1),
        ("pld.tile.put", 0),
        ("pld.tile.get", 0),
        ("pld.tile.remote_store", 1),
        ("pld.system.notify", 0),
    ],
)
def test_a_plain_write_does_not_read_its_target(name, index):
    found = effects(name)
    assert found[index] is WRITE
    assert not found[index].reads


@pytest.mark.req("C-050", "C-051")
@pytest.mark.parametrize(
    ("name", "index", "kwargs"),
    [
        ("tile.store", 2, ADD),
        ("tensor.assemble", 0, ADD),
        ("pld.tensor.put", 0, ADD),
        ("pld.system.notify", 0, {"op": "NotifyOp.AtomicAdd"}),
        ("system.syncall", 0, {"mode": "soft"}),
    ],
)
def test_atomic_forms_read_and_write(name, index, kwargs):
    assert effects(name, **kwargs)[index] is BOTH


@pytest.mark.req("C-048")
@pytest.mark.parametrize(
    "name", ["allreduce", "allgather", "reduce_scatter", "broadcast", "all_to_all", "all_to_all_v"]
)
def test_collectives_read_and_write_their_target_and_are_opaque(name):
    decl = lookup(f"pld.tensor.{name}")
    assert decl.operands[0].effect_for({}) is BOTH
    assert decl.opaque_effects


@pytest.mark.req("C-053")
@pytest.mark.parametrize("name", ["tile.add", "tensor.matmul", "tile.gather", "tensor.row_sum"])
def test_ops_without_declared_effects_read_every_operand(name):
    assert set(effects(name)) == {READ}


@pytest.mark.parametrize(
    ("name", "in_place"),
    [
        ("tile.assemble", 0),
        ("tile.write", 0),
        ("tile.fillpad_inplace", 0),
        ("tile.scatter", 0),
        ("tile.scatter_mask", 0),
        ("tile.scatter_update", 0),
        ("tile.gather_row", 0),
        ("tile.matmul_acc", 0),
        ("tile.batch_matmul_acc", 0),
        ("tile.gemv_acc", 0),
        ("tile.matmul_mx_acc", 0),
        ("array.update_element", 0),
    ],
)
def test_in_place_ops_read_and_write_the_operand_that_they_return(name, in_place):
    decl = lookup(name)
    assert effects(name)[in_place] is BOTH
    assert decl.reuses_input == in_place
    assert not decl.pure


def test_scratch_of_mgather_is_written_only_for_single_elements_into_mat():
    assert effects("tile.mgather", coalesce="elem", target_memory=Mem.Mat)[2] is WRITE
    assert effects("tile.mgather", coalesce="elem", target_memory=Mem.Vec)[2] is NONE
    assert effects("tile.mgather", coalesce="row", target_memory=Mem.Mat)[2] is NONE


def test_declaring_a_new_op_with_effects_needs_nothing_else(monkeypatch):
    monkeypatch.setattr(registry, "_DECLS", dict(registry._DECLS))
    decl = declare(
        "test.touch",
        (tensor("a"), tensor("b", effect=WRITE)),
        lambda site: site.tensor(1),
        "misc",
        pure=False,
    )
    assert [operand.effect_for({}) for operand in decl.operands] == [READ, WRITE]
    with pytest.raises(InternalError, match=r"test\.touch is registered twice"):
        register(decl)


@pytest.mark.req("C-065")
def test_only_bulk_and_scalar_writers_name_a_channel():
    channels = {decl.name: decl.channel for decl in declared() if decl.channel is not None}
    assert channels["tensor.write"] is Channel.SCALAR
    assert {channels[n] for n in ("tile.store", "tensor.assemble", "tile.mscatter")} == {
        Channel.DMA
    }
    for name in channels:
        assert any(operand.effect_for({}).writes for operand in lookup(name).operands), name


@pytest.mark.req("C-020")
def test_views_inherit_memory_and_transposes_do_not():
    inheriting = {d.name for d in declared() if d.inherits_memory}
    views = ("slice", "reshape", "reinterpret_view", "set_validshape")
    assert inheriting == {
        *(f"tensor.{v}" for v in (*views, "view")),
        *(f"tile.{v}" for v in (*views, "transpose_view")),
    }
    assert not any(lookup(name).instruction for name in inheriting)


@pytest.mark.parametrize(
    ("name", "spaces"),
    [
        ("tile.matmul", [{Mem.Left}, {Mem.Right}]),
        ("tile.matmul_acc", [{Mem.Acc}, {Mem.Left}, {Mem.Right}, set()]),
        ("tile.matmul_bias", [{Mem.Left}, {Mem.Right}, {Mem.Bias}]),
        (
            "tile.matmul_mx",
            [{Mem.Left}, {Mem.LeftScale}, {Mem.Right}, {Mem.RightScale}],
        ),
        ("tile.store", [{Mem.Vec, Mem.Acc}, set(), set(), set()]),
        ("tile.sel", [{Mem.Vec}] * 4),
        ("tile.assemble", [set(), set(), set()]),
        ("tile.gather_row", [set()] * 6),
        ("tile.aiv_shard", [set()]),
    ],
)
def test_operands_declare_the_space_that_they_execute_in(name, spaces):
    assert [set(operand.spaces) for operand in lookup(name).operands] == spaces


def test_spaces_are_requirements_not_type_errors():
    vec = Var("t", tile_type((16, 16), FP32, Mem.Vec))
    assert make_call("tile.matmul", (vec, vec)).type == tile_type((16, 16), FP32, Mem.Acc)


@pytest.mark.req("C-088", "C-094")
def test_a_load_carries_a_cache_policy():
    source = Var("w", tensor_type((16, 64), FP32))
    args = (source, tuple_of((0, 0)), tuple_of((16, 64)))
    call = make_call("tile.load", args, {"cache": CachePolicy.BYPASS})
    assert call.kwargs == (("cache", CachePolicy.BYPASS),)
    with pytest.raises(TypeCheckError, match="'cache' must be of kind cache, got 'BYPASS'"):
        make_call("tile.load", args, {"cache": "BYPASS"})


@pytest.mark.parametrize(
    ("name", "keyword"),
    [
        ("tensor.full", "value"),
        ("tile.full", "value"),
        ("tensor.reinterpret_view", "shape"),
        ("tile.gather_row", "valid_shape"),
        ("tensor.gather_row", "valid_shape"),
        ("tile.mgather", "scratch"),
        ("tile.mgather", "valid_shape"),
    ],
)
def test_operands_that_print_as_keywords_say_so(name, keyword):
    assert keyword in {operand.keyword for operand in lookup(name).operands}


def test_passed_through_ops_keep_unknown_keywords_and_others_refuse_them():
    call = make_call("system.reserve_buffer", (), {"name": "kv", "size": 64})
    assert call.kwargs == (("name", "kv"), ("size", 64))
    with pytest.raises(TypeCheckError, match=r"tensor\.exp has no keyword argument 'fast'"):
        make_call("tensor.exp", (Var("x", tensor_type((4, 8), FP32)),), {"fast": True})


def test_a_bool_is_no_int_and_an_int_is_a_float():
    x = Var("x", tensor_type((4, 8), FP32))
    with pytest.raises(TypeCheckError, match="'axis' must be of kind int, got True"):
        make_call("tensor.row_max", (x,), {"axis": True})
    made = make_call("tensor.create", (tuple_of((4, 8)),), {"dtype": FP32, "init_value": 0})
    assert made.kwarg("init_value") == 0


def test_declarations_are_values():
    decl = lookup("tile.exp")
    assert isinstance(decl, OpDecl)
    assert decl.kwargs == ()
    assert Kwarg("clamp", "bool", False) in lookup("tile.load").kwargs
