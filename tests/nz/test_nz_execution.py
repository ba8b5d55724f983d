"""Programs with NZ tensors compute what their ND twins do, on packed bytes."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nz_programs import A2A3, blocked, calls, function, kernel, operands, out, program, tensor

from pypto_egg import optimize, verify_program
from pypto_egg.errors import InterpretError
from pypto_egg.interp import compare, run
from pypto_egg.ir.expr import BinOp, ConstInt, Var
from pypto_egg.ir.program import Program
from pypto_egg.ir.stmt import Assign
from pypto_egg.nz import check_actual_stores, pack, unpack

NUMPY = {"INT8": np.int8, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "FP32": np.float32}
ACC = {"INT8": "INT32"}


def data(shape, dtype, seed=0):
    """Small whole numbers: every product and sum of them is exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(NUMPY[dtype])


def product(dtype, m, shape, window, layout, *, rows="k0", before=(), valid=None):
    """An ND activation times the window of a weight, with an ND result."""
    k, n = window
    acc = ACC.get(dtype, "FP32")
    part = "" if valid is None else f", {valid}"
    pad = "    " * sum(line.rstrip().endswith(":") for line in before)
    body = (
        f"l = pl.tile.load(a, [0, 0], [{m}, {k}], target_memory=pl.Mem.Mat)",
        f"r = pl.tile.load(w, {rows}, [{k}, {n}]{part}, target_memory=pl.Mem.Mat)",
        "acc = pl.tile.matmul(l, r)",
        "o1 = pl.tile.store(acc, [0, 0], o)",
    )
    return kernel(
        f"a: {tensor((m, k), dtype, '')}, w: {tensor(shape, dtype, layout)}, "
        f"o: {out((m, n), acc, '')}",
        *before,
        *(pad + line for line in body),
    )


def agree(make, a, w):
    """Packed bytes in the blocked program give the bits of the ND program."""
    nd = run(make(""), {"a": a, "w": w}).params["o"]
    nz = blocked(make(", pl.NZ"))
    packed = run(nz, {"a": a, "w": pack(w)}).params["o"]
    assert packed.tobytes() == nd.tobytes()
    assert compare(make(", pl.NZ"), nz, {"a": a, "w": w}).equal
    return nd


@pytest.mark.req("N-001", "N-003", "N-024", "N-083", "N-144")
@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("at", ["[0, 0]", "[64, 0]", "[0, 64]", "[32, 32]"])
def test_windows_of_a_weight(dtype, at):
    """Whole rows fractals and whole column blocks, each offset axis on its own (as on device)."""
    a, w = data((16, 64), dtype), data((128, 128), dtype, 1)
    nd = agree(lambda nz: product(dtype, 16, (128, 128), (64, 64), nz, rows=at), a, w)
    row, col = (int(part) for part in at.strip("[]").split(","))
    want = a.astype(np.float64) @ w[row : row + 64, col : col + 64].astype(np.float64)
    assert np.array_equal(nd.astype(np.float64), want)


@pytest.mark.req("N-020", "N-024", "N-121")
def test_a_panel_of_a_stack_loads_without_a_slice():
    def make(nz):
        return kernel(
            f"w: {tensor((2, 3, 64, 64), 'FP16', nz)}, o: {out((32, 32), 'FP16', '')}",
            "t: pl.Tile[[32, 32], pl.FP16, pl.Mem.Mat] = pl.tile.load("
            "w, [1, 2, 16, 32], [1, 1, 32, 32], target_memory=pl.Mem.Mat)",
            "v = pl.tile.move(t, target_memory=pl.Mem.Vec)",
            "o1 = pl.tile.store(v, [0, 0], o)",
        )

    w = data((2, 3, 64, 64), "FP16")
    nd = run(make(""), {"w": w}).params["o"]
    assert np.array_equal(nd, w[1, 2, 16:48, 32:64])
    assert np.array_equal(run(blocked(make(", pl.NZ")), {"w": pack(w)}).params["o"], nd)


@pytest.mark.req("N-002")
def test_bytes_that_were_not_packed_give_other_numbers():
    a, w = data((16, 64), "FP16"), data((64, 64), "FP16", 1)

    def make(nz):
        return product("FP16", 16, (64, 64), (64, 64), nz, rows="[0, 0]")

    nd = run(make(""), {"a": a, "w": w}).params["o"]
    raw = run(blocked(make(", pl.NZ")), {"a": a, "w": w.reshape(1, 4, 4, 16, 16)}).params["o"]
    assert not np.array_equal(raw, nd)


@pytest.mark.req("N-062", "N-064", "N-065", "N-074", "N-090")
@pytest.mark.parametrize(
    ("before", "at"),
    [
        (("for nb in pl.range(0, 4, 1):", "    n0 = nb * 32"), "[n0, 0]"),
        (("for k0 in pl.range(32, 128, 32):",), "[0, k0]"),
        (
            (
                "for nb in pl.range(2):",
                "    n0 = nb * 64",
                "    for k0 in pl.range(0, 96, 32):",
                "        n1 = n0 + pl.min(k0, 32)",
            ),
            "[n1, k0]",
        ),
        (("blk = pl.tile.get_block_idx()", "n0 = (blk % 2) * 64"), "[n0, 0]"),
    ],
)
def test_symbolic_offsets(before, at):
    a, w = data((16, 32), "INT8"), data((128, 128), "INT8", 1)
    agree(lambda nz: product("INT8", 16, (128, 128), (32, 32), nz, rows=at, before=before), a, w)


@pytest.mark.req("N-106", "N-116")
def test_an_irregular_last_tile():
    """112 rows in tiles of 64: the last one has three fractals."""
    weights, outs = tensor((112, 32), "FP32", "{}"), out((112, 32), "FP32", "")

    def make(nz):
        return kernel(
            f"w: {weights.format(nz)}, o: {outs}",
            "for o0 in pl.range(0, 112, 64):",
            "    rows = pl.min(112 - o0, 64)",
            "    t = pl.tile.load(w, [o0, 0], [64, 32], [rows, 32], target_memory=pl.Mem.Mat)",
            "    v = pl.tile.move(t, target_memory=pl.Mem.Vec)",
            "    o1 = pl.tile.store(v, [o0, 0], o)",
        )

    w = data((112, 32), "FP32")
    nd = run(make(""), {"w": w}).params["o"]
    nz = run(blocked(make(", pl.NZ")), {"w": pack(w)}).params["o"]
    assert np.array_equal(nd, w)
    assert np.array_equal(nz, w)


@pytest.mark.req("N-029", "N-031", "N-040", "N-041", "N-144")
def test_results_are_written_in_nz_order():
    """Panels and column pieces of an accumulator, read back by the host's unpack."""

    def make(nz):
        return kernel(
            f"a: {tensor((64, 32), 'FP32', '')}, w: {tensor((32, 64), 'FP32', nz)}, "
            f"o: {out((3, 64, 64), 'FP32', nz)}",
            "l = pl.tile.load(a, [0, 0], [64, 32], target_memory=pl.Mem.Mat)",
            "for n0 in pl.range(0, 64, 16):",
            "    r = pl.tile.load(w, [0, n0], [32, 16], target_memory=pl.Mem.Mat)",
            "    acc = pl.tile.matmul(l, r)",
            "    o1 = pl.tile.store(acc, [2, 0, n0], o, [1, 64, 16])",
        )

    a, w = data((64, 32), "FP32"), data((32, 64), "FP32", 1)
    nd = run(make(""), {"a": a, "w": w}).params["o"]
    packed = run(blocked(make(", pl.NZ")), {"a": a, "w": pack(w)}).params["o"]
    assert packed.shape == (3, 8, 4, 16, 8)
    assert np.array_equal(unpack(packed, (3, 64, 64))[2], a @ w)
    assert np.array_equal(nd[2], a @ w)
    assert np.isnan(packed[:2]).all()


@pytest.mark.req("N-127", "N-128", "N-133", "N-134")
def test_stacked_weights_reach_the_kernel_through_slices():
    def make(nz):
        inner = function(
            f"a: {tensor((16, 64), 'BF16', '')}, w: {tensor((64, 32), 'BF16', nz)}, "
            f"o: {out((16, 32), 'FP32', '')}",
            "l = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)",
            "r = pl.tile.load(w, [0, 0], [64, 32], target_memory=pl.Mem.Mat)",
            "acc = pl.tile.matmul(l, r)",
            "o1 = pl.tile.store(acc, [0, 0], o)",
            "return o1",
            returns=tensor((16, 32), "FP32", ""),
        )
        main = function(
            f"a: {tensor((16, 64), 'BF16', '')}, w: {tensor((2, 3, 64, 32), 'BF16', nz)}, "
            f"o: {out((16, 32), 'FP32', '')}",
            "part = pl.tensor.slice(w, [1, 1, 64, 32], [1, 2, 0, 0], [], [0, 1])",
            "r = self.k(a, part, o)",
            "return r",
            returns=tensor((16, 32), "FP32", ""),
            kind="Orchestration",
        ).replace("def k(", "def main(")
        return program(inner, main)

    a, w = data((16, 64), "BF16"), data((2, 3, 64, 32), "BF16", 1)
    nd = agree(make, a, w)
    want = a.astype(np.float64) @ w[1, 2].astype(np.float64)
    assert np.array_equal(nd, want)


@pytest.mark.req("N-130")
def test_a_flattening_walks_the_packed_bytes():
    given = kernel(
        f"w: {tensor((64, 64))}",
        "flat = pl.tensor.reshape(w, [4096])",
        "return flat",
        returns=tensor((4096,), layout=""),
    )
    w = data((64, 64), "INT8")
    assert np.array_equal(run(blocked(given), {"w": pack(w)}).returns[0], pack(w).ravel())
    assert np.array_equal(run(given, {"w": w}).returns[0], pack(w).ravel())


# --- wrap-around ----------------------------------------------------------------------------------


def at_row(given: Program, row) -> Program:
    """The program with the row offset of its load exchanged."""
    item = given.functions[0]
    (call,) = calls(given, "tile.load")
    moved = replace(call.args[1], items=(*call.args[1].items[:2], row, *call.args[1].items[3:]))
    new = replace(call, args=(call.args[0], moved, *call.args[2:]))
    body = tuple(
        replace(stmt, value=new) if isinstance(stmt, Assign) and stmt.value is call else stmt
        for stmt in item.body
    )
    return given.with_functions((replace(item, body=body),))


@pytest.mark.req("N-077", "N-078", "N-079", "N-080")
@pytest.mark.parametrize(("x", "row"), [((1 << 24) + 1, 256), (1 << 24, 0), (2, 512)])
def test_offsets_wrap_before_they_are_divided(x, row):
    """n0 = x * 256 in 32 bits: the window starts where the wrapped offset says."""

    def make(nz):
        return kernel(
            f"w: {tensor((1024, 32), 'FP32', nz)}, o: {out((16, 32), 'FP32', '')}",
            f"x: pl.Scalar[pl.INT32] = {x}",
            "n0: pl.Scalar[pl.INT32] = x * pl.const(256, pl.INT32)",
            "t = pl.tile.load(w, [n0, 0], [16, 32], target_memory=pl.Mem.Mat)",
            "v = pl.tile.move(t, target_memory=pl.Mem.Vec)",
            "o1 = pl.tile.store(v, [0, 0], o)",
        )

    w = data((1024, 32), "FP32")
    nd = run(make(""), {"w": w}).params["o"]
    nz = blocked(make(", pl.NZ"))
    assert np.array_equal(nd, w[row : row + 16])
    assert np.array_equal(run(nz, {"w": pack(w)}).params["o"], nd)
    # Dividing the factor instead agrees as long as nothing wraps, and addresses 2^28 if it does.
    variable = next(s.var for s in nz.functions[0].body if s.var.name == "x")
    assert isinstance(variable, Var)
    dtype = variable.type.dtype
    wrong = at_row(nz, BinOp("*", variable, ConstInt(16, dtype), dtype))
    if x == 2:
        assert np.array_equal(run(wrong, {"w": pack(w)}).params["o"], nd)
        return
    with pytest.raises(InterpretError, match=str((1 << 28) + row // 16)):
        run(wrong, {"w": pack(w)})


# --- any window ----------------------------------------------------------------------------------


@st.composite
def windows(draw):
    """dtype, leading extents and index, plane in fractals, window in fractals."""
    dtype = draw(st.sampled_from(sorted(NUMPY)))
    lead = draw(st.lists(st.integers(1, 3), max_size=2))
    index = [draw(st.integers(0, extent - 1)) for extent in lead]
    plane, start, size = [], [], []
    for _ in range(2):
        count = draw(st.integers(1, 4))
        first = draw(st.integers(0, count - 1))
        plane.append(count)
        start.append(first)
        size.append(draw(st.integers(1, count - first)))
    return dtype, lead, index, plane, start, size


@pytest.mark.req("N-006", "N-024", "N-120", "N-121")
@settings(max_examples=40)
@given(windows())
def test_any_window_of_any_stack(window):
    dtype, lead, index, plane, start, size = window
    unit = (16, 32 // np.dtype(NUMPY[dtype]).itemsize)
    rows, cols = (count * u for count, u in zip(plane, unit, strict=True))
    at = [first * u for first, u in zip(start, unit, strict=True)]
    taken = [count * u for count, u in zip(size, unit, strict=True)]
    ones = [1] * len(lead)
    drop = f", [], {list(range(len(lead)))}" if lead else ""

    def make(nz):
        return kernel(
            f"w: {tensor((*lead, rows, cols), dtype, nz)}, o: {out(taken, dtype, '')}",
            f"s = pl.tensor.slice(w, {[*ones, rows, cols]}, {[*index, 0, 0]}{drop})",
            f"t = pl.tile.load(s, {at}, {taken}, target_memory=pl.Mem.Mat)",
            "v = pl.tile.move(t, target_memory=pl.Mem.Vec)",
            "o1 = pl.tile.store(v, [0, 0], o)",
        )

    w = data((*lead, rows, cols), dtype)
    want = w[tuple(index)][at[0] : at[0] + taken[0], at[1] : at[1] + taken[1]]
    for given_program, array in ((make(""), w), (blocked(make(", pl.NZ")), pack(w))):
        got = run(given_program, {"w": array}).params["o"]
        assert got.tobytes() == want.tobytes()


# --- behind the optimizer -----------------------------------------------------------------------


@pytest.mark.req("N-016", "N-017", "N-029", "N-039", "N-144")
def test_an_optimized_product_is_written_in_nz_order():
    source = kernel(
        f"a: {tensor((64, 64), 'FP32', '')}, w: {tensor((64, 32), 'FP32', '')}, o: {out((64, 32))}",
        "acc = pl.tensor.matmul(a, w, out_dtype=pl.FP32)",
        "o1 = pl.tensor.assemble(o, acc, [0, 0])",
        "return o1",
        returns=tensor((64, 32), "FP32"),
    )
    lowered = optimize(source, verify=False).program
    result = blocked(lowered)
    verify_program(result, stage="tile")
    check_actual_stores(result, A2A3)
    (store,) = calls(result, "tile.store")
    assert operands(store, 1, 3) == [[0, 0, 0, 0, 0], [1, 4, 4, 16, 8]]
    a, w = data((64, 64), "FP32"), data((64, 32), "FP32", 1)
    assert compare(source, result, {"a": a, "w": w}).equal
    packed = run(result, {"a": a, "w": w}).params["o"]
    assert np.array_equal(unpack(packed, (64, 32)), a @ w)
