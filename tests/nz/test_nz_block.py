"""The pass as a whole: types, handles, slices, flattenings, entries, idempotency."""

from __future__ import annotations

import pytest
from nz_programs import (
    A2A3,
    A5,
    blocked,
    calls,
    function,
    kernel,
    operands,
    out,
    program,
    refused,
    tensor,
)

from pypto_egg.errors import InternalError, NzError, TypeCheckError
from pypto_egg.ir.dtype import INT8
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.equal import structurally_equal
from pypto_egg.ir.expr import FunctionCall, Var, as_expr, tuple_of
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.types import TensorType, TensorView, TupleType, tensor_type
from pypto_egg.ir.visit import definitions, walk
from pypto_egg.nz import check_nz_views_blocked, entry_reshapes
from pypto_egg.ops.registry import make_call
from pypto_egg.text import parse, print_program
from pypto_egg.verify import verify_program

LOAD = "wt = pl.tile.load(w, [0, 0], [64, 64], target_memory=pl.Mem.Mat)"
MARKER = "nz_tensor_views_blocked"


def nz_types(given):
    """The NZ tensor types of all variables and returns of a program."""
    kinds = [
        kind
        for item in given.functions
        for kind in (*(var.type for var in definitions(item)), *item.returns)
    ]
    flat = [k for kind in kinds for k in (kind.items if isinstance(kind, TupleType) else (kind,))]
    return [k for k in flat if isinstance(k, TensorType) and k.layout is TensorLayout.NZ]


CARRIED = kernel(
    f"w: {tensor((64, 64))}, o: {out((64, 64))}",
    LOAD,
    "for i, (c,) in pl.range(0, 64, 16, init_values=(o,)):",
    "    acc = pl.tile.create([64, 16], dtype=pl.FP32, target_memory=pl.Mem.Acc)",
    "    c1 = pl.tile.store(acc, [0, i], c)",
    "    last = pl.yield_(c1)",
    "if 1 < 2:",
    "    chosen = pl.yield_(last)",
    "else:",
    "    chosen = pl.yield_(o)",
    "return chosen",
    returns=tensor((64, 64), "FP32"),
)


@pytest.mark.req("N-014", "N-022", "N-023", "N-027", "N-028", "N-034")
def test_no_logical_nz_type_survives():
    assert len(nz_types(CARRIED)) == 7
    result = blocked(CARRIED)
    kinds = nz_types(result)
    assert len(kinds) == 7
    assert {kind.shape for kind in kinds} == {(1, 2, 4, 16, 32), (1, 8, 4, 16, 8)}
    assert all(kind.view == TensorView(layout=TensorLayout.NZ) for kind in kinds)
    # View, offsets and sizes of every access have the rank of the type.
    (load,), (store,) = calls(result, "tile.load"), calls(result, "tile.store")
    assert {len(part) for part in (*operands(load, 1, 2), *operands(store, 1, 3))} == {5}


@pytest.mark.req("N-018", "N-025", "N-027")
def test_the_result_is_well_formed_and_prints():
    stacked = kernel(
        f"w: {tensor((4, 64, 64))}",
        "wt: pl.Tile[[32, 32], pl.INT8, pl.Mem.Mat] = pl.tile.load("
        "w, [1, 16, 0], [1, 32, 32], target_memory=pl.Mem.Mat)",
        "part: pl.Tile[[32, 32], pl.INT8, pl.Mem.Mat, pl.TileView(valid_shape=[16, 32])] = "
        "pl.tile.load(w, [1, 16, 0], [1, 32, 32], [1, 16, 32], target_memory=pl.Mem.Mat)",
    )
    for given in (CARRIED, stacked):
        result = blocked(given)
        verify_program(given, stage="tile")
        verify_program(result, stage="tile")
        assert structurally_equal(parse(print_program(result)), result)


@pytest.mark.req("N-140")
def test_running_twice_is_running_once():
    once = blocked(CARRIED)
    assert once.functions[0].attr(MARKER) is True
    twice = blocked(once)
    assert twice.functions[0] is once.functions[0]


@pytest.mark.req("N-139", "N-140")
def test_a_logical_shape_that_looks_blocked_is_blocked():
    given = kernel(f"w: {tensor((2, 2, 2, 16, 32))}", "n = 0")
    result = blocked(given)
    assert result.functions[0].params[0].var.type.shape == (8, 1, 1, 16, 32)
    assert structurally_equal(blocked(result), result)


@pytest.mark.req("N-140")
def test_functions_without_nz_tensors_are_left_alone():
    plain = function("x: pl.Tensor[[16, 16], pl.FP32]", "n = 0").replace("def k", "def plain")
    given = program(plain, function(f"w: {tensor((64, 64))}", LOAD))
    result = blocked(given)
    assert result.functions[0] is given.functions[0]
    assert [f.attr(MARKER) for f in result.functions] == [None, True]


@pytest.mark.req("N-019", "N-138")
def test_unblocked_views_are_an_internal_error_downstream():
    with pytest.raises(InternalError, match="'w' of function 'k' is not blocked"):
        check_nz_views_blocked(CARRIED)
    check_nz_views_blocked(blocked(CARRIED))
    looks_blocked = kernel(f"w: {tensor((2, 2, 2, 16, 32))}", "n = 0")
    with pytest.raises(InternalError, match="BlockNzTensorViews"):
        check_nz_views_blocked(looks_blocked)


@pytest.mark.req("N-002")
def test_nothing_is_converted():
    item = blocked(CARRIED).functions[0]
    assert len(list(walk(item.body))) == len(list(walk(CARRIED.functions[0].body)))


@pytest.mark.req("N-085", "N-086", "N-137")
@pytest.mark.parametrize("shape", [(40, 64), (64, 40)])
def test_a_type_without_blocked_form_is_refused_where_it_stands(shape):
    error = refused(kernel(f"w: {tensor(shape)}", "n = 0"))
    assert "'w'" in error.message
    assert error.span is not None
    assert error.span.line == 6


@pytest.mark.req("N-108")
def test_a_distributed_tensor_is_refused():
    given = kernel("w: pld.DistributedTensor[[256, 512], pl.INT8, pl.NZ]", "n = 0")
    assert "'w' is a distributed tensor" in refused(given).message


# --- other uses ----------------------------------------------------------------------------------


@pytest.mark.req("N-104", "N-085")
@pytest.mark.parametrize(
    ("use", "op"),
    [
        ("v = pl.tensor.read(w, [0, 0])", "tensor.read"),
        ("v = pl.tensor.dim(w, 0) + 1", "tensor.dim"),
        ("v = pl.tensor.neg(w)", "tensor.neg"),
        ("pl.tensor.write(w, [0, 0], pl.const(1, pl.INT8))", "tensor.write"),
    ],
)
def test_any_other_consumer_is_refused(use, op):
    error = refused(kernel(f"w: pl.InOut[{tensor((64, 64))}]", use))
    assert f"NZ tensor 'w' is used by {op}" in error.message
    assert "loaded to Mat" in error.message


@pytest.mark.req("N-104", "N-109")
@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        ("tensor.transpose", (0, 1), {}),
        ("tensor.view", ((512, 256),), {}),
        ("tensor.reinterpret_view", (), {"dtype": INT8}),
    ],
)
def test_views_are_refused_at_construction(op, args, kwargs):
    w = Var("w", tensor_type((256, 512), INT8, TensorView(layout=TensorLayout.NZ)))
    given = tuple(tuple_of(a) if isinstance(a, tuple) else as_expr(a) for a in args)
    with pytest.raises(TypeCheckError, match=r"\(w\) has layout NZ"):
        make_call(op, (w, *given), kwargs)


def test_an_error_names_the_tensor_behind_a_view():
    given = kernel(
        f"weights: {tensor((4, 64, 64))}",
        "layer = pl.tensor.slice(weights, [1, 64, 64], [1, 0, 0], [], [0])",
        "wt = pl.tile.load(layer, [8, 0], [16, 64], target_memory=pl.Mem.Mat)",
    )
    assert "'layer' (a view of 'weights') is addressed at row offset 8" in refused(given).message


# --- slices and flattenings ----------------------------------------------------------------------


def sliced(shape, text, params=""):
    return kernel(f"w: {tensor(shape)}{params}", f"s = {text}", kind="Orchestration")


@pytest.mark.req("N-099", "N-127")
def test_a_slice_of_leading_axes():
    result = blocked(sliced((4, 256, 512), "pl.tensor.slice(w, [1, 256, 512], [2, 0, 0])"))
    (call,) = calls(result, "tensor.slice")
    assert operands(call, 1, 2) == [[1, 16, 16, 16, 32], [2, 0, 0, 0, 0]]
    assert call.type.shape == (1, 16, 16, 16, 32)


@pytest.mark.req("N-128")
def test_a_scalar_index_needs_no_drop_dims():
    result = blocked(sliced((4, 256, 512), "w[2]"))
    (call,) = calls(result, "tensor.slice")
    assert len(call.args) == 3
    assert operands(call, 1, 2) == [[1, 16, 16, 16, 32], [2, 0, 0, 0, 0]]
    assert result.functions[0].body[0].var.type == call.type
    verify_program(result, stage="tile")


@pytest.mark.req("N-121", "N-127")
def test_slices_fold_their_axes():
    result = blocked(sliced((2, 3, 64, 64), "pl.tensor.slice(w, [1, 3, 64, 64], [1, 0, 0, 0])"))
    (call,) = calls(result, "tensor.slice")
    assert operands(call, 1, 2) == [[3, 2, 4, 16, 32], [3, 0, 0, 0, 0]]
    verify_program(result, stage="tile")
    gaps = sliced((2, 3, 64, 64), "pl.tensor.slice(w, [2, 1, 64, 64], [0, 1, 0, 0])")
    assert "planes of [2, 3]" in refused(gaps).message


@pytest.mark.req("N-122", "N-124")
def test_a_slice_at_any_offset_of_a_dynamic_batch():
    kind = "pl.Tensor[[B, 64, 64], pl.INT8, pl.NZ]"
    given = kernel(
        f"w: {kind}, e: pl.Scalar[pl.INDEX]",
        "s = pl.tensor.slice(w, [1, 64, 64], [e, 0, 0])",
        kind="Orchestration",
    )
    result = blocked(given)
    batch, *plane = result.functions[0].params[0].var.type.shape
    assert (batch.name, plane) == ("B", [2, 4, 16, 32])
    (call,) = calls(result, "tensor.slice")
    assert operands(call, 2)[0][0].name == "e"


@pytest.mark.req("N-100", "N-129", "N-085")
@pytest.mark.parametrize(
    "text",
    [
        "pl.tensor.slice(w, [128, 512], [128, 0])",
        "pl.tensor.slice(w, [256, 512], [256, 0])",
        "pl.tensor.slice(w, [1024, 256], [0, 0])",
    ],
)
def test_a_window_on_the_plane_is_not_contiguous(text):
    error = refused(sliced((1024, 512), text))
    assert "not contiguous in NZ order" in error.message
    assert "[LAYERS, R, C]" in error.hint


@pytest.mark.req("N-105")
def test_partly_valid_slices_are_refused():
    given = sliced((4, 64, 64), "pl.tensor.slice(w, [1, 64, 64], [0, 0, 0], [1, 32, 64])")
    assert "valid" in refused(given).message


@pytest.mark.req("N-101", "N-130", "N-131")
def test_a_whole_flattening_stays_as_it_is():
    given = sliced((256, 512), "pl.tensor.reshape(w, [131072])")
    result = blocked(given)
    (before,), (after,) = calls(given, "tensor.reshape"), calls(result, "tensor.reshape")
    assert after.args[1:] == before.args[1:]
    assert after.type == before.type == tensor_type((131072,), INT8)
    assert after.args[0].type.shape == (1, 16, 16, 16, 32)
    verify_program(result, stage="tile")


@pytest.mark.req("N-131")
def test_a_flattened_weight_can_be_prefetched():
    def prefetching(layout):
        return kernel(
            f"w: {tensor((256, 512), layout=layout)}",
            "flat = pl.tensor.reshape(w, [131072])",
            "pl.prefetch.async_prefetch(flat)",
            kind="Orchestration",
        )

    nz, nd = blocked(prefetching(", pl.NZ")), blocked(prefetching(""))
    assert nz.functions[0].body[0].var.type == nd.functions[0].body[0].var.type


@pytest.mark.req("N-102", "N-132")
def test_other_shapes_are_refused():
    flat = sliced((4, 64, 64), "pl.tensor.reshape(w, [16384], [8192])")
    assert "whole flattening to [16384]" in refused(flat).message
    # More than one axis is refused by the operator itself.
    with pytest.raises(TypeCheckError, match="layout NZ"):
        sliced((256, 512), "pl.tensor.reshape(w, [128, 1024])")


# --- calls and entries ---------------------------------------------------------------------------


def called(argument=", pl.NZ", parameter=", pl.NZ"):
    inner = function(f"w: {tensor((64, 64), layout=parameter)}, o: {out((64, 16))}",
                     "acc = pl.tile.create([64, 16], dtype=pl.FP32, target_memory=pl.Mem.Acc)",
                     "o1 = pl.tile.store(acc, [0, 0], o)", "return o1",
                     returns=tensor((64, 16), "FP32"))  # fmt: skip
    main = function(f"w: {tensor((64, 64), layout=argument)}",
                    "o = pl.tensor.create([64, 16], dtype=pl.FP32, layout=pl.TensorLayout.NZ)",
                    "r = self.k(w, o)", "return r",
                    returns=tensor((64, 16), "FP32"), kind="Orchestration")  # fmt: skip
    return program(inner, main.replace("def k(", "def main("))


@pytest.mark.req("N-027", "N-034")
def test_handles_pass_through_calls_and_creations():
    result = blocked(called())
    (created,) = calls(result, "tensor.create")
    assert operands(created, 0) == [[1, 2, 4, 16, 8]]
    assert created.type.shape == (1, 2, 4, 16, 8)
    call = result.function("main").body[1]
    assert isinstance(call, Assign)
    assert isinstance(call.value, FunctionCall)
    assert call.value.type.shape == call.var.type.shape == (1, 2, 4, 16, 8)
    verify_program(result, stage="tile")


@pytest.mark.req("N-027")
def test_tuples_of_handles_are_blocked():
    kinds = [tensor((64, 64)), tensor((32, 32), layout="")]
    params = f"w: {kinds[0]}, x: {kinds[1]}"
    returns = f"pl.Tuple[{', '.join(kinds)}]"
    inner = function(params, "return w, x", returns=returns)
    main = function(params, "v, y = self.k(w, x)", "return v, y", returns=returns,
                    kind="Orchestration").replace("def k(", "def main(")  # fmt: skip
    given = program(inner, main)
    result = blocked(given)
    assert {kind.shape for kind in nz_types(result)} == {(1, 2, 4, 16, 32)}
    assert len(nz_types(result)) == len(nz_types(given))
    call = next(
        stmt.value
        for stmt in walk(result.function("main").body)
        if isinstance(stmt, Assign) and isinstance(stmt.value, FunctionCall)
    )
    assert [item.shape for item in call.type.items] == [(1, 2, 4, 16, 32), (32, 32)]
    verify_program(result, stage="tile")


@pytest.mark.req("N-001", "N-002")
@pytest.mark.parametrize(("argument", "parameter"), [("", ", pl.NZ"), (", pl.NZ", "")])
def test_an_order_of_bytes_cannot_change_between_caller_and_callee(argument, parameter):
    error = refused(called(argument, parameter))
    assert "'w'" in error.message
    assert "parameter 'w' of k" in error.message
    assert "converts no bytes" in error.message


@pytest.mark.req("N-002")
def test_an_annotation_on_other_bytes_is_refused():
    given = kernel("x: pl.Tensor[[64, 64], pl.FP32]", f"y: {tensor((64, 64), 'FP32')} = x")
    assert "'x' is not, but 'y'" in refused(given).message
    given = kernel(
        f"x: {tensor((64, 64), 'FP32')}", "return x", returns="pl.Tensor[[64, 64], pl.FP32]"
    )
    assert "'x' is in NZ order, but a result of function 'k'" in refused(given).message


@pytest.mark.req("N-125", "N-126", "N-133", "N-134")
def test_one_reshape_for_each_argument_of_the_entry():
    given = called()
    (reshape,) = entry_reshapes(given)
    assert (reshape.function, reshape.param) == ("main", "w")
    assert reshape.blocked((64, 64)) == (1, 2, 4, 16, 32)
    assert reshape.blocked((64, 64)) == blocked(given).function("main").params[0].var.type.shape
    with pytest.raises(NzError, match=r"argument has 32 on axis 0, \[32, 64\]"):
        reshape.blocked((32, 64))
    with pytest.raises(InternalError, match="logical shapes of 'k' are gone"):
        entry_reshapes(blocked(given))


@pytest.mark.req("N-124", "N-125")
def test_the_rank_of_an_argument_is_the_declared_one():
    given = kernel("w: pl.Tensor[[B, 256, 512], pl.INT8, pl.NZ]", "n = 0", kind="Orchestration")
    (reshape,) = entry_reshapes(given)
    assert reshape.blocked((7, 256, 512)) == (7, 16, 16, 16, 32)
    for shape in [(256, 512), (1, 7, 256, 512)]:
        with pytest.raises(NzError, match=f"rank {len(shape)}") as caught:
            reshape.blocked(shape)
        assert "rank 3" in caught.value.hint


@pytest.mark.req("N-126")
def test_a_rank_4_parameter_of_an_entry():
    given = kernel(f"w: {tensor((8, 4, 256, 512))}", "r = w[3]", kind="Orchestration")
    (call,) = calls(blocked(given), "tensor.slice")
    assert operands(call, 1, 2) == [[4, 16, 16, 16, 32], [12, 0, 0, 0, 0]]
    (reshape,) = entry_reshapes(given)
    assert reshape.blocked((8, 4, 256, 512)) == (32, 16, 16, 16, 32)


@pytest.mark.req("N-003")
def test_every_target_blocks_views():
    given = kernel(f"w: {tensor((64, 64))}", LOAD)
    assert structurally_equal(blocked(given, A2A3), blocked(given, A5))
