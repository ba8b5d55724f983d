"""Tensor programs with NZ operands, optimized, blocked and executed on packed bytes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from nz_programs import calls, operands

from pypto_egg import lower, optimize, parse, print_program, verify_program
from pypto_egg.errors import NzError
from pypto_egg.interp import run
from pypto_egg.ir.enums import Mem, TensorLayout
from pypto_egg.nz import pack, unpack
from pypto_egg.nz.block import MARKER

NUMPY = {"INT8": np.int8, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "FP32": np.float32}
ACC = {"INT8": "INT32"}
NZ = ", pl.NZ"


def text(params: str, *body: str, returns: str) -> str:
    """A program of one InCore function `k`."""
    lines = "".join(f"        {line}\n" for line in body)
    return (
        "import pypto.language as pl\n\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, {params}) -> {returns}:\n{lines}"
    )


def typed(shape, dtype, layout="") -> str:
    return f"pl.Tensor[{list(shape)}, pl.{dtype}{layout}]"


def data(shape, dtype, seed=0):
    """Small whole numbers: every product and sum of them is exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(NUMPY[dtype])


def product(dtype, layout, *, w="w", w_shape=(128, 64), m=32, k=128, n=64, trans=""):
    """x @ w with a window or the whole of the weight."""
    acc = ACC.get(dtype, "FP32")
    return text(
        f"x: {typed((m, k), dtype)}, w: {typed(w_shape, dtype, layout)}",
        f"wt = {w}",
        f"y = pl.matmul(x, wt{trans}, out_dtype=pl.{acc})",
        "return y",
        returns=typed((m, n), acc),
    )


def agree(make, inputs):
    """The ND program, and the NZ program on packed bytes, give the same bits."""
    nd, nz = optimize(make("")), optimize(make(NZ), verify=True)
    assert nz.verified
    want = run(nd.source, inputs).returns[0]
    for lowered in (nz, lower(make(NZ), verify=True)):
        packed = {**inputs, "w": pack(inputs["w"])}
        out = np.zeros_like(want)
        (got,) = run(lowered.program, {**packed, "ret0__out": out}).returns
        assert got.tobytes() == want.tobytes()
    return nz


@pytest.mark.req("N-001", "N-003", "N-016", "N-017", "N-024", "N-027", "N-028")
@pytest.mark.parametrize("dtype", NUMPY)
def test_a_product_with_a_packed_weight(dtype):
    inputs = {"x": data((32, 128), dtype), "w": data((128, 64), dtype, 1)}
    result = agree(lambda nz: product(dtype, nz), inputs)
    (function,) = result.program.functions
    assert function.attr(MARKER) is True
    c0 = 32 // np.dtype(NUMPY[dtype]).itemsize
    assert function.params[1].var.type.shape == (1, 64 // c0, 8, 16, c0)
    (load,) = (c for c in calls(result.program, "tile.load") if c.args[0].name == "w")
    assert operands(load, 1, 2) == [[0, 0, 0, 0, 0], [1, 64 // c0, 8, 16, c0]]
    assert (load.type.shape, load.type.space) == ((128, 64), Mem.Mat)
    assert print_program(parse(result.text)) == result.text
    verify_program(parse(result.text), stage="tile")


@pytest.mark.req("N-003", "N-020", "N-024", "N-120", "N-121")
@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize(
    ("window", "shape", "trans"),
    [
        ("w[32:160, 64:128]", (192, 128), ""),
        ("w[64:128, 32:160]", (128, 192), ", b_trans=True"),
        ("w[1, 0:128, 64:128]", (3, 128, 128), ""),
        ("w[1, 2, 0:128, 0:64]", (2, 3, 128, 64), ""),
        ("pl.slice(w, [1, 64, 128], [2, 64, 0], [], [0])", (3, 128, 128), ", b_trans=True"),
    ],
)
def test_windows_of_a_packed_weight(dtype, window, shape, trans):
    inputs = {"x": data((32, 128), dtype), "w": data(shape, dtype, 1)}
    result = agree(lambda nz: product(dtype, nz, w=window, w_shape=shape, trans=trans), inputs)
    (load,) = (c for c in calls(result.program, "tile.load") if c.args[0].name == "w")
    assert load.type.rank == 2


def grouped(dtype, layout, *, m=16, n=128, k=256, n_tile=32, k_tile=64, experts=3):
    """The grouped-matmul weight path: blocks of N, K in a loop, one expert of a stack."""
    acc = ACC.get(dtype, "FP32")
    return text(
        f"x: {typed((m, k), dtype)}, w: {typed((experts, n, k), dtype, layout)}, "
        f"y: pl.Out[{typed((m, n), acc)}]",
        f"for nb, (o,) in pl.range({n // n_tile}, init_values=(y,)):",
        f"    n0 = nb * {n_tile}",
        f"    x0 = x[0:{m}, 0:{k_tile}]",
        f"    w0 = w[1, n0 : n0 + {n_tile}, 0:{k_tile}]",
        f"    acc = pl.matmul(x0, w0, b_trans=True, out_dtype=pl.{acc})",
        f"    for k0, (a,) in pl.pipeline({k_tile}, {k}, {k_tile}, stage=2, init_values=(acc,)):",
        f"        xt = x[0:{m}, k0 : k0 + {k_tile}]",
        f"        wt = w[1, n0 : n0 + {n_tile}, k0 : k0 + {k_tile}]",
        "        a1 = pl.matmul_acc(a, xt, wt, b_trans=True)",
        "        r = pl.yield_(a1)",
        "    o1 = pl.assemble(o, r, [0, n0])",
        "    o2 = pl.yield_(o1)",
        "return o2",
        returns=typed((m, n), acc),
    )


@pytest.mark.req("N-004", "N-062", "N-064", "N-074", "N-077", "N-090")
@pytest.mark.parametrize("dtype", NUMPY)
def test_the_grouped_matmul_weight_path(dtype):
    x, w = data((16, 256), dtype), data((3, 128, 256), dtype, 1)
    nz = optimize(grouped(dtype, NZ), verify=True)
    assert nz.verified
    c0 = 32 // np.dtype(NUMPY[dtype]).itemsize
    assert f"[1, k0 // {c0}, n0 // 16, 0, 0]" in nz.text
    (got,) = run(nz.program, {"x": x, "w": pack(w)}).returns
    want = x.astype(np.float64) @ w[1].astype(np.float64).T
    assert np.array_equal(got.astype(np.float64), want)
    assert nz.cost.mte2 < optimize(grouped(dtype, "")).cost.mte2


@pytest.mark.req("N-098", "N-104")
@pytest.mark.parametrize(
    ("op", "line"),
    [
        ("tensor.adds", "y = pl.add(w, 1.0)"),
        ("tensor.cast", "y = pl.cast(w, pl.FP16)"),
        ("tensor.row_max", "y = pl.row_max(w)"),
    ],
)
def test_a_vector_consumer_is_refused_by_name(op, line):
    given = text(
        f"w: {typed((64, 64), 'FP32', NZ)}",
        line,
        "return y",
        returns="pl.Tensor[[64, 1], pl.FP32]"
        if "max" in line
        else typed((64, 64), "FP16" if "cast" in line else "FP32"),
    )
    with pytest.raises(NzError, match=f"NZ tensor 'w' is read by {op}") as caught:
        optimize(given)
    assert "Mat" in caught.value.message
    assert "ND" in caught.value.hint


@pytest.mark.req("N-098")
def test_a_weight_for_a_product_and_a_vector_op():
    given = text(
        f"x: {typed((64, 64), 'FP32')}, w: {typed((64, 64), 'FP32', NZ)}",
        "y = pl.matmul(x, w, out_dtype=pl.FP32)",
        "z = pl.add(y, w)",
        "return z",
        returns=typed((64, 64), "FP32"),
    )
    with pytest.raises(NzError, match=r"NZ tensor 'w' is read by tensor\.add"):
        optimize(given)


@pytest.mark.req("N-100")
def test_planes_are_not_taken_apart():
    rows = text(
        f"x: {typed((16, 64), 'FP16')}, w: {typed((64, 2, 64), 'FP16', NZ)}",
        "wt = pl.slice(w, [64, 1, 64], [0, 1, 0], [], [1])",
        "y = pl.matmul(x, wt, out_dtype=pl.FP32)",
        "return y",
        returns=typed((16, 64), "FP32"),
    )
    with pytest.raises(NzError, match=r"NZ tensor 'w' is sliced to \[64, 1, 64\]"):
        optimize(rows)


@pytest.mark.req("N-089", "N-091", "N-092", "N-075")
@pytest.mark.parametrize(
    ("params", "window", "why"),
    [
        ("", "w[8:136, 0:64]", "row offset 8"),
        ("", "w[0:128, 8:72]", "column offset 8"),
        (", p: pl.Scalar[pl.INDEX]", "w[p : p + 128, 0:64]", "parameter"),
        (", p: pl.Scalar[pl.INDEX]", "w[p * 16 : p * 16 + 128, 0:64]", "non-negative"),
    ],
)
def test_offsets_without_a_proof(params, window, why):
    given = product("FP16", NZ, w=window, w_shape=(256, 128)).replace(") ->", f"{params}) ->", 1)
    with pytest.raises(NzError, match="NZ tensor 'w'") as caught:
        optimize(given)
    assert why in caught.value.message
    assert caught.value.hint


@pytest.mark.req("N-086", "N-087", "N-096")
@pytest.mark.parametrize("shape", [(120, 64), (128, 40)])
def test_weights_without_a_blocked_form(shape):
    given = product("INT8", NZ, w="w[0:64, 0:32]", w_shape=shape, k=64, n=32)
    with pytest.raises(NzError, match=r"NZ tensor 'w'.*multiple"):
        optimize(given)


@pytest.mark.req("N-116")
def test_n_is_padded_beyond_a_packed_weight():
    """24 columns are three 32-byte lines of FP32; the tile has 32, of which 24 are loaded."""
    inputs = {"x": data((32, 128), "FP32"), "w": data((128, 24), "FP32", 1)}
    result = agree(lambda nz: product("FP32", nz, w_shape=(128, 24), n=24), inputs)
    (load,) = (c for c in calls(result.program, "tile.load") if c.args[0].name == "w")
    assert load.type.valid_shape == (128, 24)
    assert operands(load, 3) == [[1, 3, 8, 16, 8]]


@pytest.mark.req("N-106", "N-107")
@pytest.mark.parametrize("known", [True, False])
def test_dynamic_rows_of_a_window(known):
    rows = "pl.min(224 - i * 64, 64)" if known else "pl.min(p, 64)"
    given = text(
        f"x: {typed((16, 64), 'FP16')}, w: {typed((224, 64), 'FP16', NZ)}, "
        f"p: pl.Scalar[pl.INDEX], y: pl.Out[{typed((16, 256), 'FP32')}]",
        "for i, (o,) in pl.range(4, init_values=(y,)):",
        f"    rows = {rows}",
        "    wt = pl.slice(w, [64, 64], [i * 64, 0], [rows, 64])",
        "    t = pl.matmul(x, wt, b_trans=True, out_dtype=pl.FP32)",
        "    o1 = pl.assemble(o, t, [0, i * 64])",
        "    o2 = pl.yield_(o1)",
        "return o2",
        returns=typed((16, 256), "FP32"),
    )
    if not known:
        with pytest.raises(NzError, match="valid rows"):
            optimize(given, verify=False)
        return
    result = optimize(given, verify=False)
    assert "rows // 16" in result.text
    x, w = data((16, 64), "FP16"), data((224, 64), "FP16", 1)
    (got,) = run(result.program, {"x": x, "w": pack(w), "p": 1}).returns
    assert np.array_equal(got[:, :224], x.astype(np.float32) @ w.astype(np.float32).T)


# --- results --------------------------------------------------------------------------------------


def written(*body, out_dtype="FP32"):
    shape = (64, 32)
    return text(
        f"a: {typed((64, 64), 'FP32')}, w: {typed(shape, 'FP32', NZ)}, "
        f"b: {typed(shape, 'FP32')}, o: pl.Out[{typed(shape, out_dtype, NZ)}]",
        *body,
        returns=typed(shape, out_dtype, NZ),
    )


@pytest.mark.req("N-029", "N-031", "N-036", "N-103")
def test_a_product_is_written_in_nz_order():
    given = written(
        "acc = pl.matmul(a, w, out_dtype=pl.FP32)", "o1 = pl.assemble(o, acc, [0, 0])", "return o1"
    )
    result = optimize(given, verify=True)
    assert result.verified
    a, w = data((64, 64), "FP32"), data((64, 32), "FP32", 1)
    inputs = {"a": a, "w": pack(w), "b": w, "o": np.zeros((1, 4, 4, 16, 8), np.float32)}
    got = run(result.program, inputs).params["o"]
    assert np.array_equal(unpack(got, (64, 32)), a @ w)


@pytest.mark.req("N-029", "C-103")
def test_a_returned_product_is_created_in_nz_order_by_its_caller():
    given = (
        "import pypto.language as pl\n\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, a: {typed((64, 64), 'FP32')}, w: {typed((64, 32), 'FP32', NZ)}) -> "
        f"{typed((64, 32), 'FP32', NZ)}:\n"
        "        y = pl.matmul(a, w, out_dtype=pl.FP32)\n"
        "        z: TYPE = y\n"
        "        return z\n"
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, a: {typed((64, 64), 'FP32')}, w: {typed((64, 32), 'FP32', NZ)}) -> "
        f"{typed((64, 32), 'FP32', NZ)}:\n"
        "        r = self.k(a, w)\n"
        "        return r\n"
    ).replace("        z: TYPE = y\n        return z\n", "        return y\n")
    result = optimize(given)
    (create,) = calls(result.program, "tensor.create")
    assert create.kwarg("layout") is TensorLayout.NZ
    assert create.type.shape == (1, 4, 4, 16, 8)
    a, w = data((64, 64), "FP32"), data((64, 32), "FP32", 1)
    (got,) = run(result.program, {"a": a, "w": pack(w)}).returns
    assert np.array_equal(unpack(got, (64, 32)), a @ w)


@pytest.mark.req("N-036", "N-044", "N-045")
def test_a_vector_result_is_not_written_in_nz_order():
    given = written("s = pl.add(b, b)", "o1 = pl.assemble(o, s, [0, 0])", "return o1")
    with pytest.raises(NzError, match=r"NZ tensor 'o' is written .* Vec") as caught:
        optimize(given)
    assert "ND" in caught.value.hint


@pytest.mark.req("N-029", "N-045")
def test_a_bias_joins_a_product_on_its_way_to_nz_memory():
    """A vector add is one way of adding it; a result in NZ order leaves only the bias table."""
    given = text(
        f"a: {typed((64, 64), 'FP32')}, w: {typed((64, 32), 'FP32', NZ)}, "
        f"b: {typed((1, 32), 'FP32')}, o: pl.Out[{typed((64, 32), 'FP32', NZ)}]",
        "acc = pl.matmul(a, w, out_dtype=pl.FP32)",
        "s = pl.col_expand_add(acc, b)",
        "o1 = pl.assemble(o, s, [0, 0])",
        "return o1",
        returns=typed((64, 32), "FP32", NZ),
    )
    result = optimize(given, verify=True)
    assert result.verified
    (store,) = calls(result.program, "tile.store")
    assert store.args[0].type.space is Mem.Acc


@pytest.mark.req("N-037")
def test_a_padded_product_is_not_written_in_nz_order():
    given = text(
        f"a: {typed((20, 64), 'FP32')}, w: {typed((64, 32), 'FP32')}, "
        f"o: pl.Out[{typed((32, 32), 'FP32', NZ)}]",
        "acc = pl.matmul(a, w, out_dtype=pl.FP32)",
        "o1 = pl.assemble(o, acc, [0, 0])",
        "return o1",
        returns=typed((32, 32), "FP32", NZ),
    )
    with pytest.raises(NzError, match=r"NZ tensor 'o'.*padded tile, valid in \[20, 32\]"):
        optimize(given)


@pytest.mark.req("N-045")
def test_results_are_not_written_in_nz_order_on_a5():
    given = written(
        "acc = pl.matmul(a, w, out_dtype=pl.FP32)", "o1 = pl.assemble(o, acc, [0, 0])", "return o1"
    )
    with pytest.raises(NzError, match=r"NZ tensor 'o'.*a5"):
        optimize(given, target="a5")


# --- nothing else changes -------------------------------------------------------------------------


@pytest.mark.req("N-130")
def test_a_flattened_weight_is_read_as_it_is_stored():
    given = text(
        f"w: {typed((64, 64), 'FP32', NZ)}",
        "flat = pl.reshape(w, [4096])",
        "part = pl.slice(flat, [512], [1024])",
        "y = pl.add(part, 1.0)",
        "return y",
        returns=typed((512,), "FP32"),
    )
    result = optimize(given, verify=True)
    w = data((64, 64), "FP32")
    (got,) = run(result.program, {"w": pack(w)}).returns
    assert np.array_equal(got, pack(w).ravel()[1024:1536] + 1)
