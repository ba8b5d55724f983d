"""Gather, scatter, masks, paging and sorting, in the forms that have them."""

from __future__ import annotations

import numpy as np
import pytest
from interp_programs import VEC, floats, inout, out, run_kernel, tensor

from pypto_egg.errors import InterpretError
from pypto_egg.interp.poison import is_poison
from pypto_egg.ir.dtype import FP16, FP32, INT32, UINT8, UINT32
from pypto_egg.ir.expr import ConstFloat, TupleItem


def ints(shape, high, seed=0):
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)


def load(b, x):
    return b.op("tile.load", x, [0, 0], list(x.type.shape), target_memory=VEC)


def test_tensor_gather_along_either_axis():
    x, i = floats((8, 16)), ints((8, 8), 8)
    types = {"x": tensor([8, 16], FP32), "i": tensor([8, 8], INT32)}
    got = run_kernel(types, lambda b, x, i: b.op("tensor.gather", x, i, dim=-1), x=x, i=i)
    assert np.array_equal(got.returns[0], np.take_along_axis(x, i.astype(np.int64), axis=1))
    x = floats((8, 8))
    types["x"] = tensor([8, 8], FP32)
    got = run_kernel(types, lambda b, x, i: b.op("tensor.gather", x, i, dim=0), x=x, i=i)
    assert np.array_equal(got.returns[0], np.take_along_axis(x, i.astype(np.int64), axis=0))


def test_index_out_of_range_is_an_error_that_shows_it():
    i = np.zeros((8, 8), np.int32)
    i[2, 3] = 16
    types = {"x": tensor([8, 16], FP32), "i": tensor([8, 8], INT32)}
    with pytest.raises(InterpretError, match=r"'i' holds the index 16 at \[2, 3\]; .* 0\.\.15"):
        run_kernel(
            types, lambda b, x, i: b.op("tensor.gather", x, i, dim=-1), x=floats((8, 16)), i=i
        )


def test_tile_gather_counts_flattened_elements():
    def build(b, x, i, o):
        tmp = b.op("tile.create", [4, 8], dtype=INT32, target_memory=VEC)
        return b.op("tile.store", b.op("tile.gather", load(b, x), load(b, i), tmp), [0, 0], o)

    x, i = floats((4, 16)), ints((4, 8), 64)
    types = {"x": tensor([4, 16], FP32), "i": tensor([4, 8], INT32), "o": out(tensor([4, 8], FP32))}
    assert np.array_equal(run_kernel(types, build, x=x, i=i).returns[0], x.reshape(-1)[i])


@pytest.mark.parametrize(
    ("pattern", "columns"),
    [(1, slice(0, None, 2)), (2, slice(1, None, 2)), (3, slice(0, None, 4)), (4, slice(1, None, 4)),
     (5, slice(2, None, 4)), (6, slice(3, None, 4)), (7, slice(None))],
)  # fmt: skip
def test_masks_compact_and_expand(pattern, columns):
    x = floats((4, 64))
    part = np.ascontiguousarray(x[:, columns])
    types = {"x": tensor([4, 64], FP32)}
    got = run_kernel(types, lambda b, x: b.op("tensor.gather_mask", x, mask_pattern=pattern), x=x)
    assert np.array_equal(got.returns[0], part)

    types = {"p": tensor(list(part.shape), FP32), "d": tensor([4, 64], FP32)}
    zero = np.zeros((4, 64), np.float32)
    got = run_kernel(
        types,
        lambda b, p, d: b.op("tensor.scatter_mask", p, d, mask_pattern=pattern),
        p=part,
        d=zero,
    )
    expected = zero.copy()
    expected[:, columns] = part
    assert np.array_equal(got.returns[0], expected)


def test_tensor_scatter_copies_and_overwrites():
    x, source = floats((4, 8)), floats((4, 3), 1)
    i = np.argsort(np.random.default_rng(2).random((4, 8)), axis=1)[:, :3].astype(np.int32)
    types = {"x": tensor([4, 8], FP32), "i": tensor([4, 3], INT32), "s": tensor([4, 3], FP32)}
    got = run_kernel(
        types, lambda b, x, i, s: b.op("tensor.scatter", x, i, s, dim=-1), x=x, i=i, s=source
    )
    expected = x.copy()
    np.put_along_axis(expected, i.astype(np.int64), source, axis=1)
    assert np.array_equal(got.returns[0], expected)


@pytest.mark.req("C-180", "C-182")
def test_tile_scatter_leaves_unwritten_cells_undefined():
    def build(b, s, i, o):
        base = b.op("tile.create", [4, 8], dtype=FP32, target_memory=VEC)
        tile = b.op("tile.scatter", base, load(b, s), load(b, i))
        return b.op("tile.store", tile, [0, 0], o)

    source, i = floats((1, 8)), np.arange(8, 16, dtype=np.int32).reshape(1, 8)
    types = {"s": tensor([1, 8], FP32), "i": tensor([1, 8], INT32), "o": out(tensor([4, 8], FP32))}
    got = run_kernel(types, build, s=source, i=i).returns[0]
    assert np.array_equal(got[1:2], source)
    assert is_poison(got[[0, 2, 3]]).all()


@pytest.mark.req("C-181", "C-182")
def test_scatter_update_replaces_rows_and_keeps_the_others():
    x, source = floats((32, 32)), floats((16, 32), 1)
    i = np.random.default_rng(3).permutation(32)[:16].reshape(2, 8).astype(np.int32)
    types = {"x": tensor([32, 32], FP32), "i": tensor([2, 8], INT32), "s": tensor([16, 32], FP32)}
    got = run_kernel(
        types, lambda b, x, i, s: b.op("tensor.scatter_update", x, i, s, dim=-2), x=x, i=i, s=source
    )
    expected = x.copy()
    expected[i.reshape(-1)] = source
    assert np.array_equal(got.returns[0], expected)


@pytest.mark.req("C-179", "C-187", "C-190", "C-191", "C-194", "C-196", "C-197", "C-198")
def test_scatter_update_and_its_lowering_agree():
    """The 16-step sequence of the lowering, FP32: input [32, 32], index [2, 8], src [16, 32]."""
    from pypto_egg.ir.expr import ConstInt

    def build(b, x, i, s, o):
        x_tile, i_tile, s_tile = load(b, x), load(b, i), load(b, s)
        columns = b.op("tile.ci", ConstInt(0, INT32), [1, 32], dtype=INT32)
        template = b.op("tile.full", [16, 32], ConstInt(0, INT32), dtype=INT32)
        col = b.op("tile.col_expand", template, columns)
        flat = b.op("tile.reshape", i_tile, [16, 1])
        base = b.op("tile.muls", flat, ConstInt(32, INT32))
        where = b.op("tile.row_expand_add", col, base)
        zero = b.op("tile.full", [32, 32], ConstFloat(0.0, FP32), dtype=FP32)
        values = b.op("tile.scatter", zero, s_tile, where)
        mask0 = b.op("tile.full", [32, 32], ConstFloat(0.0, FP32), dtype=FP32)
        ones = b.op("tile.full", [16, 32], ConstFloat(1.0, FP32), dtype=FP32)
        mask = b.op("tile.scatter", mask0, ones, where)
        hit = b.op("tile.cmps", mask, ConstFloat(0.0, FP32), cmp_type=1)
        tmp = b.op("tile.create", [1, 32], dtype=UINT8, target_memory=VEC)
        return b.op("tile.store", b.op("tile.sel", hit, values, x_tile, tmp), [0, 0], o)

    x, source = floats((32, 32)), floats((16, 32), 1)
    i = np.random.default_rng(3).permutation(32)[:16].reshape(2, 8).astype(np.int32)
    types = {
        "x": tensor([32, 32], FP32),
        "i": tensor([2, 8], INT32),
        "s": tensor([16, 32], FP32),
        "o": out(tensor([32, 32], FP32)),
    }
    expected = x.copy()
    expected[i.reshape(-1)] = source
    assert np.array_equal(run_kernel(types, build, x=x, i=i, s=source).returns[0], expected)


def test_gather_compare_numbers_the_hits():
    def build(b, x):
        found = b.op(
            "tensor.gather_compare", x, ConstFloat(0.0), cmp_mode="gt", offset=10, out_cols=8
        )
        return [b.let(TupleItem(found, 0)), b.let(TupleItem(found, 1))]

    x = floats((4, 8))
    picks, counts = run_kernel({"x": tensor([4, 8], FP32)}, build, x=x).returns
    for row in range(4):
        hits = np.flatnonzero(x[row] > 0) + 10
        assert counts[0, row] == hits.size
        assert np.array_equal(picks[row, : hits.size], hits)
        assert is_poison(picks[row, hits.size :]).all()


@pytest.mark.parametrize("transpose", [False, True])
def test_gather_row_copies_a_window_of_global_memory(transpose):
    def build(b, x, o):
        acc = b.op("tile.full", [16, 16], ConstFloat(0.0, FP32), dtype=FP32)
        acc = b.op("tile.gather_row", acc, x, [3, 0], [5, 8], [1, 16], transpose=transpose)
        return b.op("tile.store", acc, [0, 0], o)

    x = floats((16, 32))
    types = {"x": tensor([16, 32], FP32), "o": out(tensor([16, 16], FP32))}
    got = run_kernel(types, build, x=x).returns[0]
    expected = np.zeros((16, 16), np.float32)
    if transpose:
        expected[:, 3] = x[5, 8:24]
    else:
        expected[3] = x[5, 8:24]
    assert np.array_equal(got, expected)


def test_paged_gather_follows_the_block_table():
    x = floats((32, 16)).astype(np.float16)
    pages = np.array([[3, 1, 0]], np.int32)
    rows = np.array([[9, 0, 17]], np.int32)

    def build(b, x, i, t):
        return b.op(
            "tensor.paged_gather", x, i, t,
            block_size=8, size=8, max_indices=4, col_off=4, is_trans=False, is_b_matrix=False,
        )  # fmt: skip

    types = {"x": tensor([32, 16], FP16), "i": tensor([1, 3], INT32), "t": tensor([1, 3], INT32)}
    got = run_kernel(types, build, x=x, i=rows, t=pages).returns[0]
    assert np.array_equal(got[:3], x[[1 * 8 + 1, 3 * 8 + 0, 0 * 8 + 1], 4:12])
    assert is_poison(got[3:]).all()


def test_memory_gather_and_scatter():
    def build(b, x, i, y):
        picked = b.op("tile.mgather", x, load(b, i))
        return b.op("tile.mscatter", picked, load(b, i), y)

    x, y = floats((8, 16)), floats((8, 16), 1)
    i = np.random.default_rng(4).permutation(128)[:32].reshape(4, 8).astype(np.int32)
    types = {
        "x": tensor([8, 16], FP32),
        "i": tensor([4, 8], INT32),
        "y": inout(tensor([8, 16], FP32)),
    }
    expected = y.copy()
    expected.reshape(-1)[i] = x.reshape(-1)[i]
    assert np.array_equal(run_kernel(types, build, x=x, i=i, y=y).params["y"], expected)


def test_sorting_in_runs_and_merging_them():
    x = floats((2, 128))
    numbers = np.broadcast_to(np.arange(128, dtype=np.uint32), (2, 128)).copy()

    def build(b, x, n):
        runs = b.op("tensor.sort32", x, n)
        merged = b.op("tensor.mrgsort_format1", runs, 64)
        return [
            runs,
            merged,
            b.op("tensor.gather_mask", merged, mask_pattern=2, output_dtype=UINT32),
        ]

    types = {"x": tensor([2, 128], FP32), "n": tensor([2, 128], UINT32)}
    runs, merged, order = run_kernel(types, build, x=x, n=numbers).returns
    assert np.array_equal(runs[:, ::2].reshape(2, 4, 32), -np.sort(-x.reshape(2, 4, 32), axis=2))
    assert np.array_equal(merged[:, ::2], -np.sort(-x, axis=1))
    assert np.array_equal(order, np.argsort(-x, axis=1, kind="stable"))


def test_merging_separate_lists():
    x, y = floats((1, 32)), floats((1, 32), 1)
    numbers = np.arange(32, dtype=np.uint32).reshape(1, 32)

    def build(b, x, y, n):
        lists = [b.op("tensor.sort32", t, n) for t in (x, y)]
        return b.op("tensor.mrgsort_format2", *lists)

    types = {"x": tensor([1, 32], FP32), "y": tensor([1, 32], FP32), "n": tensor([1, 32], UINT32)}
    got = run_kernel(types, build, x=x, y=y, n=numbers).returns[0]
    assert np.array_equal(got[:, ::2], -np.sort(-np.concatenate([x, y], axis=1), axis=1))


def test_gather_without_an_axis_counts_flattened_elements():
    x, i = floats((4, 8)), ints((2, 8), 32)
    types = {"x": tensor([4, 8], FP32), "i": tensor([2, 8], INT32)}
    got = run_kernel(types, lambda b, x, i: b.op("tensor.gather", x, i), x=x, i=i).returns[0]
    assert np.array_equal(got, x.reshape(-1)[i])


def test_memory_gather_and_scatter_of_rows():
    def build(b, x, i, y):
        rows = b.op("tile.mgather", x, load(b, i), coalesce="row")
        return b.op("tile.mscatter", rows, load(b, i), y)

    x, y = floats((8, 16)), floats((8, 16), 1)
    i = np.array([[5, 2, 7, 0]], np.int32)
    types = {
        "x": tensor([8, 16], FP32),
        "i": tensor([1, 4], INT32),
        "y": inout(tensor([8, 16], FP32)),
    }
    expected = y.copy()
    expected[i[0]] = x[i[0]]
    assert np.array_equal(run_kernel(types, build, x=x, i=i, y=y).params["y"], expected)


def test_tile_forms_of_masks_update_in_place():
    def build(b, p, d, o):
        target = load(b, d)
        b.op("tile.scatter_mask", target, load(b, p), mask_pattern=2)
        return b.op("tile.store", target, [0, 0], o)

    part, base = floats((4, 32)), floats((4, 64), 1)
    types = {
        "p": tensor([4, 32], FP32),
        "d": tensor([4, 64], FP32),
        "o": out(tensor([4, 64], FP32)),
    }
    expected = base.copy()
    expected[:, 1::2] = part
    assert np.array_equal(run_kernel(types, build, p=part, d=base).returns[0], expected)


def test_tensor_gather_row_leaves_its_accumulator_alone():
    def build(b, x):
        acc = b.op("tensor.create_l1", [4, 16], dtype=FP32)
        return [b.op("tensor.gather_row", acc, x, [1, 0], [3, 0], [1, 16]), acc]

    x = floats((8, 16))
    got, acc = run_kernel({"x": tensor([8, 16], FP32)}, build, x=x).returns
    assert np.array_equal(got[1], x[3])
    assert is_poison(acc).all()


def test_paged_gather_transposed_and_its_errors():
    x = floats((32, 16)).astype(np.float16)
    types = {"x": tensor([32, 16], FP16), "i": tensor([1, 2], INT32), "t": tensor([1, 2], INT32)}

    def build(b, x, i, t):
        return b.op(
            "tensor.paged_gather", x, i, t,
            block_size=8, size=8, max_indices=4, col_off=0, is_trans=True, is_b_matrix=False,
        )  # fmt: skip

    pages = np.array([[3, 0]], np.int32)
    got = run_kernel(types, build, x=x, i=np.array([[1, 10]], np.int32), t=pages).returns[0]
    assert np.array_equal(got[:, :2], x[[25, 2], :8].T)
    assert is_poison(got[:, 2:]).all()
    with pytest.raises(InterpretError, match="index 16 lies in block 2 of 2"):
        run_kernel(types, build, x=x, i=np.array([[1, 16]], np.int32), t=pages)


def test_duplicate_free_row_numbers_are_checked():
    types = {"x": tensor([4, 8], FP32), "i": tensor([1, 2], INT32), "s": tensor([2, 8], FP32)}
    with pytest.raises(InterpretError, match=r"holds the index -1 at \[0, 1\]"):
        run_kernel(
            types,
            lambda b, x, i, s: b.op("tensor.scatter_update", x, i, s, dim=-2),
            x=floats((4, 8)),
            i=np.array([[0, -1]], np.int32),
            s=floats((2, 8)),
        )
