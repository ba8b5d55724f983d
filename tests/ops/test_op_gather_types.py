"""Types and refusals of gather, scatter, sort, cross-core, array and pass-through operators."""

import pytest

from pypto_egg.errors import TypeCheckError
from pypto_egg.ir.dtype import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    TASK_ID,
    UINT8,
    UINT32,
)
from pypto_egg.ir.enums import Mem, TileLayout
from pypto_egg.ir.expr import ConstInt, Var, tuple_of
from pypto_egg.ir.types import (
    ArrayType,
    HandleType,
    ScalarType,
    TupleType,
    UnknownType,
    tensor_type,
    tile_type,
)
from pypto_egg.ops.registry import make_call

R1 = Var("r1", ScalarType(INDEX))


def tensor(name, shape, dtype=FP32, distributed=False):
    return Var(name, tensor_type(shape, dtype, distributed=distributed))


def tile(name, shape, dtype=FP32, space=Mem.Vec):
    return Var(name, tile_type(shape, dtype, space))


def refused(name, args, kwargs=None):
    with pytest.raises(TypeCheckError) as caught:
        make_call(name, args, kwargs)
    return str(caught.value)


def const(value, dtype=INT32):
    return ConstInt(value, dtype)


# --- gather --------------------------------------------------------------------------------------


@pytest.mark.req("C-203", "C-204")
def test_without_dim_a_gather_is_flat_and_may_change_the_rank():
    source, index = tensor("src", (4, 8), BF16), tensor("idx", (1, 2, 16), INT32)
    assert make_call("tensor.gather", (source, index)).type == tensor_type((1, 2, 16), BF16)
    assert "'index' (idx) has rank 3; operand 'input' (src) has rank 2" in refused(
        "tensor.gather", (tensor("src", (4, 8)), index), {"dim": -1}
    )


def test_along_a_dim_the_other_extents_must_be_there():
    source = tensor("src", (4, 8))
    index = tensor("idx", (4, 100), INT32)
    assert make_call("tensor.gather", (source, index), {"dim": -1}).type.shape == (4, 100)
    assert "has extent 100 on axis 1" in refused("tensor.gather", (source, index), {"dim": 0})
    assert "dim is 2; allowed for rank 2: -2 to 1" in refused(
        "tensor.gather", (source, index), {"dim": 2}
    )
    narrow = tensor("idx", (4, 8), INT16)
    assert "allowed: INT32" in refused("tensor.gather", (source, narrow), {"dim": 1})
    assert make_call("tensor.gather", (tensor("h", (4, 8), FP16), narrow), {"dim": 1})


@pytest.mark.parametrize(("pattern", "columns"), [(1, 32), (2, 32), (3, 16), (6, 16), (7, 64)])
def test_mask_patterns_keep_half_a_quarter_or_all_columns(pattern, columns):
    kwargs = {"mask_pattern": pattern}
    assert make_call("tensor.gather_mask", (tensor("x", (8, 64)),), kwargs).type.shape[1] == columns
    target, source = tile("d", (8, 64)), tile("s", (8, columns))
    assert make_call("tile.scatter_mask", (target, source), kwargs).type == target.type


def test_unknown_mask_patterns_are_refused():
    assert "mask_pattern is 8; allowed: 1 to 7" in refused(
        "tile.gather_mask", (tile("x", (8, 64)),), {"mask_pattern": 8}
    )


def test_gather_compare_gives_indices_and_counts():
    kwargs = {"cmp_mode": "gt", "out_cols": 16}
    result = make_call("tensor.gather_compare", (tensor("x", (8, 64)), const(0)), kwargs).type
    assert result == TupleType((tensor_type((8, 16), INT32), tensor_type((1, 8), INT32)))
    on_chip = (tile("x", (8, 64)), const(0), tile("tmp", (8, 64), UINT8))
    kwargs["count_dtype"] = UINT32
    counts = make_call("tile.gather_compare", on_chip, kwargs).type.items[1]
    assert counts == tile_type((1, 8), UINT32, Mem.Vec)
    kwargs["cmp_mode"] = "above"
    assert "allowed: eq, ne, lt, le, gt, ge or 0 to 5" in refused(
        "tile.gather_compare", on_chip, kwargs
    )


@pytest.mark.req("C-206")
def test_mgather_reads_global_memory_by_element():
    memory, index = tensor("src", (1024,)), tile("i", (1, 16), INT32)
    call = make_call("tile.mgather", (memory, index), {"coalesce": "elem"})
    assert call.type == tile_type((1, 16), FP32, Mem.Vec)
    assert "allowed: 'elem', 'row'" in refused(
        "tile.mgather", (memory, index), {"coalesce": "page"}
    )


class TestGatherRow:
    acc = tensor("kv", (128, 64), BF16)
    pool = tensor("pool", (512, 64), BF16)

    def args(self, shapes, valid=None):
        offsets = (tuple_of((0, 0)), tuple_of((40, 0)))
        tail = () if valid is None else (tuple_of(valid),)
        return (self.acc, self.pool, *offsets, tuple_of(shapes), *tail)

    @pytest.mark.req("C-234", "C-235", "C-239", "C-240")
    def test_the_result_is_the_accumulator_whatever_the_run_time_extent(self):
        for valid in (None, (R1, 64)):
            assert make_call("tensor.gather_row", self.args((128, 64), valid)).type == self.acc.type

    @pytest.mark.req("C-238")
    def test_shapes_are_constant(self):
        message = refused("tensor.gather_row", self.args((R1, 64)))
        assert "'shapes' must be constant, but element 0 is r1" in message
        assert "run-time extent as valid_shape" in message

    @pytest.mark.req("C-243")
    def test_a_window_may_run_past_the_end_of_the_destination(self):
        runs = (self.acc, self.pool, tuple_of((R1, 0)), tuple_of((0, 0)), tuple_of((128, 64)))
        assert make_call("tensor.gather_row", (*runs, tuple_of((R1, 64)))).type == self.acc.type

    @pytest.mark.req("C-246")
    def test_a_run_time_extent_excludes_transposing(self):
        message = refused("tensor.gather_row", self.args((16, 64), (R1, 64)), {"transpose": True})
        assert "'valid_shape' cannot be combined with transpose=True" in message

    @pytest.mark.req("C-247")
    @pytest.mark.parametrize("rows", [17, -1])
    def test_provable_violations_are_refused(self, rows):
        message = refused("tensor.gather_row", self.args((16, 64), (rows, 64)))
        assert f"is {rows} on axis 0; allowed: 0 to 16" in message

    @pytest.mark.req("C-123", "C-225")
    @pytest.mark.parametrize("space", [Mem.Mat, Mem.Vec])
    def test_on_chip_the_result_stays_where_the_accumulator_is(self, space):
        acc = tile("kv", (128, 64), BF16, space)
        args = (acc, *self.args((1, 64))[1:])
        assert make_call("tile.gather_row", args).type == acc.type


class TestPagedGather:
    pages = (tensor("pool", (512, 64), BF16), tensor("i", (77,), INT32), tensor("b", (8,), INT32))
    kwargs = (("block_size", 16), ("size", 64), ("max_indices", 128))

    @pytest.mark.req("C-221", "C-228", "C-229")
    def test_the_buffer_is_sized_by_max_indices(self):
        plain = make_call("tensor.paged_gather", self.pages, dict(self.kwargs))
        assert plain.type.shape == (128, 64)
        assert plain.kwarg("space") is Mem.Mat
        turned = make_call(
            "tensor.paged_gather", self.pages, {**dict(self.kwargs), "is_trans": True}
        )
        assert turned.type.shape == (64, 128)

    @pytest.mark.req("C-228")
    def test_only_mat_can_be_filled_transposed(self):
        kwargs = {**dict(self.kwargs), "is_trans": True, "space": Mem.Vec}
        message = refused("tensor.paged_gather", self.pages, kwargs)
        assert "is_trans=True with space=pl.Mem.Vec" in message


# --- scatter and sort ----------------------------------------------------------------------------


def test_scatter_indices_have_the_width_of_the_data():
    data, index, source = tensor("d", (8, 64)), tensor("i", (8, 16), INT32), tensor("s", (8, 16))
    assert make_call("tensor.scatter", (data, index, source)).type == data.type
    half = (tensor("d", (8, 64), FP16), index, tensor("s", (8, 16), FP16))
    assert "'index' (i) has dtype INT32; allowed: INT16" in refused("tensor.scatter", half)
    short = (data, index, tensor("s", (8, 8)))
    assert "has shape [8, 8], but operand 'index' (i) has [8, 16]" in refused(
        "tensor.scatter", short
    )


@pytest.mark.req("C-178")
def test_scatter_update_writes_whole_rows():
    data, index, source = tensor("x", (32, 32)), tensor("i", (2, 8), INT32), tensor("s", (16, 32))
    call = make_call("tensor.scatter_update", (data, index, source))
    assert (call.type, call.kwargs) == (data.type, (("dim", -2),))
    assert "dim is -1; only whole rows can be updated, dim=-2" in refused(
        "tensor.scatter_update", (data, index, source), {"dim": -1}
    )
    few = (data, index, tensor("s", (8, 32)))
    assert "'src' (s) has 8 rows; operand 'index' (i) names 16" in refused(
        "tensor.scatter_update", few
    )


def test_sort32_pairs_values_with_indices():
    args = (tensor("x", (4, 64)), tensor("i", (4, 64), UINT32))
    assert make_call("tensor.sort32", args).type.shape == (4, 128)
    odd = (tensor("x", (4, 48)), tensor("i", (4, 48), UINT32))
    assert "has last dimension 48; a multiple of 32 is needed" in refused("tensor.sort32", odd)


def test_merges_add_up_and_need_scratch_on_chip():
    runs = tuple(tile(f"r{i}", (1, 128)) for i in range(3))
    assert make_call("tile.mrgsort_format2", (*runs, tile("t", (1, 384)))).type.shape == (1, 384)
    assert "'src3_or_tmp' (t) has 128 elements; the merge needs 384" in refused(
        "tile.mrgsort_format2", (*runs, tile("t", (1, 128)))
    )
    assert "is 96; a positive multiple of 64 is needed" in refused(
        "tensor.mrgsort_format1", (tensor("x", (1, 256)), const(96))
    )


def test_counting_runs_along_one_row():
    made = make_call("tensor.ci", (const(0), tuple_of((1, 32))), {"dtype": INT32})
    assert (made.type.shape, made.kwargs[1]) == ((1, 32), ("descending", False))
    assert "must be [1, ..., n]" in refused(
        "tensor.ci", (const(0), tuple_of((4, 32))), {"dtype": INT32}
    )
    assert "allowed: INT16, INT32, UINT16, UINT32" in refused(
        "tensor.ci", (const(0), tuple_of((1, 32))), {"dtype": FP32}
    )


# --- cross-core ----------------------------------------------------------------------------------


@pytest.mark.req("C-254", "C-255", "C-262", "C-264", "C-265")
@pytest.mark.parametrize(
    ("op", "space", "shape", "split", "result"),
    [
        ("aiv_shard", Mem.Acc, (128, 64), 1, tile_type((64, 64), FP32, Mem.Vec)),
        ("aiv_shard", Mem.Acc, (128, 64), 2, tile_type((128, 32), FP32, Mem.Vec)),
        ("aic_gather", Mem.Vec, (64, 64), 1, tile_type((128, 64), FP32, Mem.Mat)),
        ("aic_gather", Mem.Vec, (128, 32), 2, tile_type((128, 64), FP32, Mem.Mat)),
    ],
)
def test_splits_halve_or_double_an_axis_into_the_consumer_s_space(op, space, shape, split, result):
    assert (
        make_call(f"tile.{op}", (tile("t", shape, FP32, space),), {"split": split}).type == result
    )
    high = make_call(f"tensor.{op}", (tensor("x", shape),), {"split": split}).type
    assert high == tensor_type(result.shape, FP32)


@pytest.mark.req("C-258", "C-260", "C-261")
def test_splits_refuse_other_ranks_tensors_at_tile_level_and_distributed_operands():
    split = {"split": 1}
    assert "pl.reshape" in refused("tensor.aiv_shard", (tensor("x", (2, 64, 64)),), split)
    assert "must be a tile" in refused("tile.aiv_shard", (tensor("x", (64, 64)),), split)
    remote = tensor("x", (64, 64), distributed=True)
    assert "is a distributed tensor" in refused("tensor.aic_gather", (remote,), split)
    assert "split is 3; allowed: 1 (UP_DOWN, rows), 2" in refused(
        "tile.aiv_shard", (tile("t", (64, 64)),), {"split": 3}
    )
    assert "has extent 63 on axis 0; it cannot be halved" in refused(
        "tile.aiv_shard", (tile("t", (63, 64)),), split
    )


# --- creation on chip, arrays, handles -----------------------------------------------------------


@pytest.mark.req("C-233")
def test_an_l1_buffer_is_a_tensor_until_it_is_lowered():
    made = make_call("tensor.create_l1", (tuple_of((128, 64)),), {"dtype": BF16})
    assert made.type == tensor_type((128, 64), BF16)


def test_triangles_and_random_tiles_may_be_partially_valid():
    args = (const(0, INDEX), tuple_of((16, 64)), tuple_of((R1, 64)))
    assert make_call("tile.tri", args, {"dtype": FP32}).type.valid_shape == (R1, 64)
    keys = tuple(const(i) for i in range(6))
    drawn = make_call("tile.random", (*keys, tuple_of((16, 64))))
    assert drawn.type == tile_type((16, 64), UINT32, Mem.Vec)
    assert "rounds is 8; allowed: 7, 10" in refused(
        "tile.random", (*keys, tuple_of((16, 64))), {"rounds": 8}
    )


def test_arrays_hold_scalars_of_one_dtype():
    made = make_call("array.create", (const(4, INDEX),), {"dtype": INT32})
    assert made.type == ArrayType(4, INT32)
    array = Var("a", made.type)
    assert make_call("array.get_element", (array, R1)).type == ScalarType(INT32)
    assert make_call("array.update_element", (array, R1, const(7))).type == made.type
    assert "has dtype INT8; the array holds INT32" in refused(
        "array.update_element", (array, R1, const(7, INT8))
    )
    assert "must be an array" in refused("array.get_element", (tile("t", (4, 4)), R1))


def test_pass_through_ops_have_the_types_that_programs_use():
    assert make_call("system.task_invalid", ()).type == ScalarType(TASK_ID)
    task = Var("t", ScalarType(TASK_ID))
    assert make_call("system.task_is_valid", (task,)).type == ScalarType(BOOL)
    assert make_call("system.bar_all", ()).type == UnknownType()
    assert make_call("prefetch.make_context", ()).type == HandleType("PrefetchAsyncContext")
    assert make_call("pld.system.nranks", ()).type == ScalarType(INT32)
    window = make_call(
        "pld.tensor.window",
        (Var("b", HandleType("WindowBufferType")), tuple_of((8, 64))),
        {"dtype": FP16},
    )
    assert window.type == tensor_type((8, 64), FP16, distributed=True)


def test_transfers_between_devices_keep_the_dtype():
    remote, local = tensor("r", (8, 64), distributed=True), tensor("l", (8, 64), FP16)
    peer = const(1)
    assert make_call("pld.tensor.put", (remote, peer, tensor("l", (8, 64)))).type == remote.type
    assert "has dtype FP16, but operand 'dst' (r) has FP32" in refused(
        "pld.tensor.put", (remote, peer, local)
    )
    offsets = tuple_of((0, 0))
    stored = make_call("pld.tile.remote_store", (tile("t", (8, 64)), remote, peer, offsets))
    assert stored.type == remote.type
    loaded = make_call("pld.tile.remote_load", (remote, peer, offsets, tuple_of((8, 64))))
    assert loaded.type == tile_type((8, 64), FP32, Mem.Vec)


def test_gathered_tiles_are_plain():
    source, index, tmp = tile("s", (8, 64)), tile("i", (4, 16), INT32), tile("t", (4, 16), INT32)
    assert make_call("tile.gather", (source, index, tmp)).type == tile_type((4, 16), FP32, Mem.Vec)
    column = make_call("tile.full", (tuple_of((16, 1)), const(1)), {"dtype": INT32}).type
    assert column.layout.blayout is TileLayout.col_major
