"""Whether an operand should be packed: what is suggested, what is packed, and what it computes."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from math import ceil

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg import optimize, parse, print_program
from pypto_egg.cli import command
from pypto_egg.errors import OptionError
from pypto_egg.extract.cost.model import OpInstance, cost_model
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.interp import run
from pypto_egg.ir.dtype import DTYPES
from pypto_egg.ir.enums import Mem, TensorLayout
from pypto_egg.ir.expr import Var, tuple_of
from pypto_egg.ir.types import TensorView, tensor_type
from pypto_egg.nz import pack
from pypto_egg.nz.layout import blocked_shape
from pypto_egg.nz.plan import PackedParameter
from pypto_egg.ops.registry import make_call
from pypto_egg.packing import pack_cost
from pypto_egg.target import load_target

NUMPY = {"INT8": np.int8, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "FP32": np.float32}
ACC = {"INT8": "INT32"}


def typed(shape, dtype) -> str:
    return f"pl.Tensor[{list(shape)}, pl.{dtype}]"


def function(name, params, body, returns, kind="InCore"):
    """The text of one function; `body` is a list of lines."""
    lines = "".join(f"        {line}\n" for line in body)
    return (
        f"    @pl.function(type=pl.FunctionType.{kind})\n"
        f"    def {name}(self, {params}) -> {returns}:\n{lines}"
    )


def program(*functions) -> str:
    return "import pypto.language as pl\n\n@pl.program\nclass P:\n" + "\n".join(functions)


def product(dtype="FP16", m=32, k=128, n=64, name="k", trans=False, w_shape=None):
    acc = ACC.get(dtype, "FP32")
    shape = w_shape or ((n, k) if trans else (k, n))
    return function(
        name,
        f"x: {typed((m, k), dtype)}, w: {typed(shape, dtype)}",
        [f"y = pl.matmul(x, w, b_trans={trans}, out_dtype=pl.{acc})", "return y"],
        typed((m, n), acc),
    )


def data(shape, dtype, seed=0):
    """Small whole numbers: every product and sum of them is exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(NUMPY[dtype])


def advice_for(result, operand):
    (found,) = (item for item in result.nz_advice if operand in item.operands)
    return found


def follow(plan, inputs):
    """The arguments of a packed program, made as its plan says."""
    packed = dict(inputs)
    for item in plan:
        array = inputs[item.parameter]
        assert array.shape == item.shape
        packed[item.parameter] = pack(array, item.dtype)
        assert packed[item.parameter].shape == item.blocked
    return packed


def grouped(dtype, *, m=16, n=128, k=256, n_tile=32, k_tile=64, experts=3):
    """The grouped-matmul weight path: blocks of N, K in a loop, one expert of a stack."""
    acc = ACC.get(dtype, "FP32")
    return program(
        function(
            "k",
            f"x: {typed((m, k), dtype)}, w: {typed((experts, n, k), dtype)}, "
            f"y: pl.Out[{typed((m, n), acc)}]",
            [
                f"for nb, (o,) in pl.range({n // n_tile}, init_values=(y,)):",
                f"    n0 = nb * {n_tile}",
                f"    x0 = x[0:{m}, 0:{k_tile}]",
                f"    w0 = w[1, n0 : n0 + {n_tile}, 0:{k_tile}]",
                f"    acc = pl.matmul(x0, w0, b_trans=True, out_dtype=pl.{acc})",
                f"    for k0, (a,) in pl.pipeline({k_tile}, {k}, {k_tile}, stage=2, "
                "init_values=(acc,)):",
                f"        xt = x[0:{m}, k0 : k0 + {k_tile}]",
                f"        wt = w[1, n0 : n0 + {n_tile}, k0 : k0 + {k_tile}]",
                "        a1 = pl.matmul_acc(a, xt, wt, b_trans=True)",
                "        r = pl.yield_(a1)",
                "    o1 = pl.assemble(o, r, [0, n0])",
                "    o2 = pl.yield_(o1)",
                "return o2",
            ],
            typed((m, n), acc),
        )
    )


# --- pack -----------------------------------------------------------------------------------------


@pytest.mark.req("N-001", "N-002", "N-004")
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("dtype", NUMPY)
def test_a_packed_weight_gives_the_numbers_of_the_nd_program(dtype, trans):
    text = program(product(dtype, trans=trans))
    nd, result = optimize(text), optimize(text, nz="pack", verify=True)
    assert result.verified
    (item,) = result.packing
    shape = (64, 128) if trans else (128, 64)
    assert (item.function, item.parameter, item.dtype) == ("k", "w", DTYPES[dtype])
    assert (item.shape, item.blocked) == (shape, blocked_shape(shape, DTYPES[dtype]))
    inputs = {"x": data((32, 128), dtype), "w": data(shape, dtype, 1)}
    (want,) = run(nd.source, inputs).returns
    arguments = {**follow(result.packing, inputs), "ret0__out": np.zeros_like(want)}
    (got,) = run(result.program, arguments).returns
    assert got.tobytes() == want.tobytes()


@pytest.mark.req("N-074")
@pytest.mark.parametrize("dtype", NUMPY)
def test_the_packed_grouped_matmul(dtype):
    result = optimize(grouped(dtype), nz="pack", verify=True)
    assert result.verified
    assert [(item.parameter, item.shape) for item in result.packing] == [("w", (3, 128, 256))]
    x, w = data((16, 256), dtype), data((3, 128, 256), dtype, 1)
    (got,) = run(result.program, follow(result.packing, {"x": x, "w": w})).returns
    want = x.astype(np.float64) @ w[1].astype(np.float64).T
    assert np.array_equal(got.astype(np.float64), want)


@st.composite
def stacked_products(draw):
    """dtype, whether B is transposed, M, leading extents and index, plane, offset and window."""
    dtype = draw(st.sampled_from(sorted(NUMPY)))
    line = 32 // np.dtype(NUMPY[dtype]).itemsize
    lead = draw(st.lists(st.integers(1, 3), max_size=2))
    index = [draw(st.integers(0, extent - 1)) for extent in lead]
    # K is whole lines of the left operand and whole fractals of the weight, whichever way it lies.
    units = (max(16, line), max(16, line))
    size = [draw(st.integers(1, 4)) for _ in units]
    start = [draw(st.integers(0, 2)) for _ in units]
    rest = [draw(st.integers(0, 2)) for _ in units]
    plane = [(a + b + c) * u for a, b, c, u in zip(start, size, rest, units, strict=True)]
    at = [a * u for a, u in zip(start, units, strict=True)]
    window = [b * u for b, u in zip(size, units, strict=True)]
    return dtype, draw(st.booleans()), draw(st.integers(1, 40)), lead, index, plane, at, window


@pytest.mark.req("N-006", "N-024", "N-121", "N-144")
@settings(max_examples=20, deadline=None)
@given(stacked_products(), st.sampled_from(["a2a3", "a5"]))
def test_any_window_of_any_packed_stack(stacked, target):
    dtype, trans, m, lead, index, plane, at, window = stacked
    k, n = window[::-1] if trans else window
    acc = ACC.get(dtype, "FP32")
    place = ", ".join(
        [*map(str, index), *(f"{a}:{a + b}" for a, b in zip(at, window, strict=True))]
    )
    text = program(
        function(
            "k",
            f"x: {typed((m, k), dtype)}, w: {typed((*lead, *plane), dtype)}, "
            f"o: pl.Out[{typed((m, n), acc)}]",
            [
                f"wt = w[{place}]",
                f"y = pl.matmul(x, wt, b_trans={trans}, out_dtype=pl.{acc})",
                "o1 = pl.assemble(o, y, [0, 0])",
                "return o1",
            ],
            typed((m, n), acc),
        )
    )
    result = optimize(text, nz="pack", target=target, verify=False)
    assert [item.parameter for item in result.packing] == ["w"]
    inputs = {"x": data((m, k), dtype), "w": data((*lead, *plane), dtype, 1)}
    (got,) = run(result.program, follow(result.packing, inputs)).returns
    part = inputs["w"][tuple(index)][at[0] : at[0] + window[0], at[1] : at[1] + window[1]]
    right = part.astype(np.float64).T if trans else part.astype(np.float64)
    assert np.array_equal(got.astype(np.float64), inputs["x"].astype(np.float64) @ right)


@pytest.mark.req("N-002")
def test_arguments_that_nobody_packed_give_other_numbers():
    result = optimize(program(product()), nz="pack")
    x, w = data((32, 128), "FP16"), data((128, 64), "FP16", 1)
    (item,) = result.packing
    out = np.zeros((32, 64), np.float32)
    (got,) = run(result.program, {"x": x, "w": w.reshape(item.blocked), "ret0__out": out}).returns
    assert not np.array_equal(got, x.astype(np.float32) @ w.astype(np.float32))


def test_the_source_of_a_packed_result_is_the_nd_program():
    text = program(product())
    result = optimize(text, nz="pack")
    assert print_program(result.source) == print_program(optimize(text).source)
    assert result.baseline is not None
    assert result.cycles < result.baseline.cycles


def test_left_operands_are_left_as_they_are():
    result = optimize(program(product()), nz="pack")
    assert result.program.functions[0].params[0].var.type.layout is TensorLayout.ND
    assert "left operand" in advice_for(result, "x of k").refused


STACK = program(
    product("BF16", n=64, name="gate"),
    product("BF16", n=64, name="up"),
    function(
        "main",
        f"x: {typed((32, 128), 'BF16')}, weights: {typed((4, 128, 64), 'BF16')}, "
        f"other: {typed((128, 64), 'BF16')}",
        [
            "w1 = pl.slice(weights, [1, 128, 64], [1, 0, 0], [], [0])",
            "w2 = pl.slice(weights, [1, 128, 64], [3, 0, 0], [], [0])",
            "a = self.gate(x, w1)",
            "b = self.up(x, w2)",
            "c = self.up(x, other)",
            "return a, b, c",
        ],
        f"tuple[{', '.join([typed((32, 64), 'FP32')] * 3)}]",
        kind="Orchestration",
    ),
)


@pytest.mark.req("N-099", "N-127", "N-134")
def test_callers_pass_packed_weights_on():
    """One stack for two kernels, and another weight that reaches the same parameter."""
    result = optimize(STACK, nz="pack", verify=True)
    assert result.verified
    assert [(i.function, i.parameter, i.blocked) for i in result.packing] == [
        ("main", "weights", (4, 4, 8, 16, 16)),
        ("main", "other", (1, 4, 8, 16, 16)),
    ]
    assert advice_for(result, "w of gate").operands == ("w of gate", "w of up")
    inputs = {
        "x": data((32, 128), "BF16"),
        "weights": data((4, 128, 64), "BF16", 1),
        "other": data((128, 64), "BF16", 2),
    }
    want = run(result.source, inputs, function="main").returns
    got = run(result.program, follow(result.packing, inputs), function="main").returns
    for a, b in zip(got, want, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("kind", ["Spmd", "Group"])
def test_wrappers_pass_packed_weights_on(kind):
    wrapper = function(
        "launch", f"x: {typed((32, 128), 'FP16')}, w: {typed((128, 64), 'FP16')}",
        ["r = self.k(x, w)", "return r"], typed((32, 64), "FP32"), kind=kind,
    )  # fmt: skip
    main = function(
        "main", f"x: {typed((32, 128), 'FP16')}, weight: {typed((128, 64), 'FP16')}",
        ["r = self.launch(x, weight)", "return r"], typed((32, 64), "FP32"), kind="Orchestration",
    )  # fmt: skip
    result = optimize(program(product(), wrapper, main), nz="pack")
    assert [(item.function, item.parameter) for item in result.packing] == [("main", "weight")]
    layouts = {
        (f.name, p.var.name): p.var.type.layout for f in result.program.functions for p in f.params
    }
    for name in (("k", "w"), ("launch", "w"), ("main", "weight")):
        assert layouts[name] is TensorLayout.NZ


# --- what cannot be packed ------------------------------------------------------------------------


def stays_nd(text, operand, why, **options):
    """Packing leaves the program as it is and says why."""
    result = optimize(text, nz="pack", **options)
    plain = optimize(text, **options)
    assert result.packing == ()
    assert result.text == plain.text
    found = advice_for(result, operand)
    assert not found.packed
    assert re.search(why, found.refused), found.refused
    assert found.refused in result.explain()


@pytest.mark.req("N-085", "N-086", "N-087")
@pytest.mark.parametrize(
    ("dtype", "k", "n", "why"),
    [
        ("FP16", 128, 40, r"'w' of FP16 has 40 columns.*multiple of 16"),
        ("INT8", 128, 48, r"'w' of INT8 has 48 columns.*multiple of 32"),
    ],
)
def test_a_weight_of_broken_fractals_stays_nd(dtype, k, n, why):
    stays_nd(program(product(dtype, k=k, n=n)), "w of k", why)


@pytest.mark.req("N-098", "N-104")
def test_a_weight_that_a_vector_op_reads_too_stays_nd():
    text = program(
        function(
            "k", f"x: {typed((64, 64), 'FP32')}, w: {typed((64, 64), 'FP32')}",
            ["y = pl.matmul(x, w, out_dtype=pl.FP32)", "z = pl.add(y, w)", "return z"],
            typed((64, 64), "FP32"),
        )
    )  # fmt: skip
    stays_nd(text, "w of k", r"NZ tensor 'w' is read by tensor\.add")


@pytest.mark.req("N-091", "N-092")
def test_a_weight_at_an_unproven_offset_stays_nd():
    text = program(
        function(
            "k",
            f"x: {typed((32, 64), 'FP16')}, w: {typed((256, 64), 'FP16')}, p: pl.Scalar[pl.INDEX]",
            ["wt = w[p : p + 64, 0:64]", "y = pl.matmul(x, wt, out_dtype=pl.FP32)", "return y"],
            typed((32, 64), "FP32"),
        )
    )
    stays_nd(text, "w of k", r"'w'.* row offset p, .*'p' is a parameter", verify=False)


def test_what_the_program_makes_stays_nd():
    """A weight that another kernel computes is not the host's to pack."""
    cast = function(
        "cast", f"v: {typed((128, 64), 'FP32')}", ["t = pl.cast(v, pl.FP16)", "return t"],
        typed((128, 64), "FP16"),
    )  # fmt: skip
    main = function(
        "main", f"x: {typed((32, 128), 'FP16')}, v: {typed((128, 64), 'FP32')}",
        ["w = self.cast(v)", "r = self.k(x, w)", "return r"], typed((32, 64), "FP32"),
        kind="Orchestration",
    )  # fmt: skip
    stays_nd(program(cast, product(), main), "w of k", r"'w' is a result of 'cast'")


def test_what_the_program_writes_stays_nd():
    text = program(
        function(
            "k", f"x: {typed((32, 64), 'FP32')}, w: pl.InOut[{typed((64, 64), 'FP32')}]",
            [
                "y = pl.matmul(x, w, out_dtype=pl.FP32)",
                "w1 = pl.assemble(w, y, [0, 0])",
                "return w1",
            ],
            typed((64, 64), "FP32"),
        )
    )  # fmt: skip
    stays_nd(text, "w of k", r"'w' of 'k' is written")


def test_a_caller_that_reads_the_weight_by_rows_keeps_it_nd():
    rows = function(
        "sums", f"w: {typed((128, 64), 'FP16')}",
        ["f = pl.cast(w, pl.FP32)", "s = pl.row_sum(f)", "return s"], typed((128, 1), "FP32"),
    )  # fmt: skip
    main = function(
        "main", f"x: {typed((32, 128), 'FP16')}, w: {typed((128, 64), 'FP16')}",
        ["r = self.k(x, w)", "s = self.sums(w)", "return r, s"],
        f"tuple[{typed((32, 64), 'FP32')}, {typed((128, 1), 'FP32')}]", kind="Orchestration",
    )  # fmt: skip
    stays_nd(program(product(), rows, main), "w of k", r"NZ tensor 'w' is read by tensor\.cast")


@pytest.mark.req("N-088", "N-094")
def test_a_stack_of_unknown_height_is_packed_without_a_price():
    text = program(
        function(
            "k",
            f"x: {typed((32, 64), 'FP16')}, w: pl.Tensor[[E, 64, 64], pl.FP16]",
            ["wt = w[0, 0:64, 0:64]", "y = pl.matmul(x, wt, out_dtype=pl.FP32)", "return y"],
            typed((32, 64), "FP32"),
        )
    ).replace("@pl.program", 'E = pl.dynamic("E")\n\n@pl.program')
    result = optimize(text, nz="pack", verify=False)
    found = advice_for(result, "w of k")
    assert found.packed
    assert found.pack_cycles is None
    assert found.uses is None
    assert "run time" in result.explain()
    assert str(result.packing[0].shape[0].name) == "E"


# --- suggest --------------------------------------------------------------------------------------


@pytest.mark.req("N-004")
def test_suggestions_change_nothing():
    text = program(product())
    plain, result = optimize(text), optimize(text, nz="suggest")
    assert result.text == plain.text
    assert result.packing == plain.packing == ()
    assert plain.nz_advice == ()
    assert [item.operands for item in result.nz_advice] == [("x of k",), ("w of k",)]
    assert not any(item.packed or item.refused for item in result.nz_advice)


@pytest.mark.req("N-004")
def test_what_is_promised_is_what_packing_saves():
    text = program(product("INT8", m=32, k=512, n=256, trans=True))
    found = advice_for(optimize(text, nz="suggest"), "w of k")
    packed = optimize(text, nz="pack")
    assert found.cycles == optimize(text).cycles
    assert found.packed_cycles == packed.cycles
    assert found.saved == found.cycles - packed.cycles > 0
    assert found.uses == ceil(found.pack_cycles / found.saved)
    assert (found.uses - 1) * found.saved < found.pack_cycles <= found.uses * found.saved


def test_runs_are_counted_with_the_loops_around_them():
    found = advice_for(optimize(grouped("INT8"), nz="suggest"), "w of k")
    # 4 blocks of N, 4 of K: [32, 64] by rows is 32 runs of 64 bytes, in NZ order two column
    # blocks of 32 rows.
    assert (found.rows.runs, found.rows.size_bytes) == (16 * 32, 16 * 32 * 64)
    assert (found.fractals.runs, found.fractals.run_bytes) == (16 * 2, 32 * 32)


def weight_advice(rows, cols, dtype="BF16"):
    """The advice for a [rows, cols] weight that is loaded whole."""
    text = program(product(dtype, m=16, k=cols, n=rows, trans=True))
    return advice_for(optimize(text, nz="suggest", verify=False), "w of k")


@pytest.mark.req("N-004")
def test_the_penalty_grows_as_rows_get_shorter():
    """Equal bytes, ever shorter row runs (pypto#2309)."""
    windows = [(64, 512), (128, 256), (256, 128), (512, 64), (1024, 32)]
    saved = [weight_advice(rows, cols).saved for rows, cols in windows]
    assert all(a < b for a, b in pairwise(saved)), saved
    assert saved[0] > 0


@pytest.mark.req("N-004")
@pytest.mark.parametrize("dtype", NUMPY)
def test_runs_of_32_bytes_are_dearer_than_fractals(dtype):
    """A window one column block wide: each row is one line of 32 bytes."""
    line = 32 // np.dtype(NUMPY[dtype]).itemsize
    found = weight_advice(128, line, dtype)
    assert (found.rows.runs, found.rows.run_bytes) == (128, 32)
    assert (found.fractals.runs, found.fractals.run_bytes) == (1, 128 * 32)
    assert found.saved > 0


@pytest.mark.req("N-004")
@pytest.mark.parametrize(("rows", "cols"), [(16, 1024), (32, 2048), (64, 1024)])
def test_wide_windows_lose_nothing(rows, cols):
    """More column blocks than rows: both orders cost the same, and packing is allowed."""
    text = program(product("BF16", m=16, k=rows, n=cols))
    result = optimize(text, nz="pack", verify=False)
    assert [item.parameter for item in result.packing] == ["w"]
    assert advice_for(result, "w of k").saved == pytest.approx(0, abs=1e-6)
    assert "never pays" in result.explain()


def test_a_bias_is_no_operand_to_pack():
    text = program(
        function(
            "k",
            f"x: {typed((32, 64), 'FP16')}, w: {typed((64, 64), 'FP16')}, "
            f"b: {typed((1, 64), 'FP32')}",
            ["y = pl.matmul(x, w, out_dtype=pl.FP32)", "z = pl.col_expand_add(y, b)", "return z"],
            typed((32, 64), "FP32"),
        )
    )
    result = optimize(text, nz="suggest")
    assert [item.operands for item in result.nz_advice] == [("x of k",), ("w of k",)]


class Fractals(Mte2Mad):
    """A model in which fractals are dear to load."""

    name = "dear_fractals"

    def price(self, op, target):
        cost = super().price(op, target)
        dear = op.op == "tile.load" and op.operands[0].layout is TensorLayout.NZ
        return 2 * cost if dear else cost


def test_what_is_dearer_by_an_own_model_stays_nd():
    stays_nd(program(product()), "w of k", "NZ order is dearer", cost_model=Fractals())


@pytest.mark.req("N-004")
def test_the_tile_of_the_report():
    """int8 256 x 512 of [2048, 4096] (pypto#2533)."""
    text = program(
        function(
            "k",
            f"x: {typed((16, 512), 'INT8')}, w: {typed((2048, 4096), 'INT8')}",
            [
                "wt = w[256:512, 1024:1536]",
                "y = pl.matmul(x, wt, b_trans=True, out_dtype=pl.INT32)",
                "return y",
            ],
            typed((16, 256), "INT32"),
        )
    )
    found = advice_for(optimize(text, nz="suggest", verify=False), "w of k")
    assert (found.rows.runs, found.rows.run_bytes) == (256, 512)
    assert (found.fractals.runs, found.fractals.run_bytes) == (16, 256 * 32)
    assert found.saved > 0
    assert found.uses > 1


def test_a_tensor_that_is_nz_already_needs_no_advice():
    text = (
        program(product())
        .replace("w: pl.Tensor[[128, 64], pl.FP16]", "w: NZ")
        .replace("w: NZ", "w: pl.Tensor[[128, 64], pl.FP16, pl.NZ]")
    )
    result = optimize(text, nz="suggest")
    assert [item.operands for item in result.nz_advice] == [("x of k",)]


def test_a_program_without_products_has_no_advice():
    text = program(
        function(
            "k", f"x: {typed((64, 64), 'FP32')}", ["y = pl.add(x, 1.0)", "return y"],
            typed((64, 64), "FP32"),
        )
    )  # fmt: skip
    for mode in ("suggest", "pack"):
        result = optimize(text, nz=mode)
        assert (result.nz_advice, result.packing) == ((), ())
        assert result.text == optimize(text).text


@pytest.mark.parametrize("mode", ["", "always", None, True])
def test_unknown_modes_are_refused(mode):
    with pytest.raises(OptionError, match="keep, suggest, pack") as caught:
        optimize(program(product()), nz=mode)
    assert caught.value.code == "E601"


def test_the_account_says_what_the_host_packs():
    result = optimize(program(product()), nz="pack")
    text = result.explain()
    assert "w of k, FP16 [128, 64] to [1, 4, 8, 16, 16]" in text
    assert "pays after" in text
    found = parse(result.text)
    assert found.functions[0].params[1].var.type.shape == result.packing[0].blocked


def test_the_command_packs_and_writes_the_plan(tmp_path):
    source, account, out = tmp_path / "k.py", tmp_path / "k.json", tmp_path / "tiles.py"
    source.write_text(program(product()))
    arguments = ["--nz", "pack", "-o", str(out), "--json", str(account)]
    done = CliRunner().invoke(command, ["optimize", str(source), *arguments])
    assert done.exit_code == 0, done.output
    assert "to be packed by the host: w of k, FP16 [128, 64] to [1, 4, 8, 16, 16]" in done.output
    (item,) = json.loads(account.read_text())["nz"]["packing"]
    assert (item["parameter"], item["dtype"], item["blocked"]) == ("w", "FP16", [1, 4, 8, 16, 16])
    assert parse(out.read_text()).functions[0].params[1].var.type.layout is TensorLayout.NZ


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(sorted(NUMPY)),
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(1, 20),
    st.integers(1, 600),
)
def test_packing_more_costs_more(dtype, lead, rows, cols):
    """The one-time price is finite for any width, and grows by whole bands of 16 rows."""
    line = 32 // np.dtype(NUMPY[dtype]).itemsize
    target, model = load_target("a2a3"), cost_model("mte2_mad")

    def cost(bands):
        shape = (*lead, 16 * bands, line * cols)
        blocked = blocked_shape(shape, DTYPES[dtype])
        item = PackedParameter("k", "w", shape, blocked, DTYPES[dtype])
        return pack_cost(item, model, target).total

    assert cost(rows) == pytest.approx(rows * cost(1))
    size = 16 * line * cols * int(np.prod(lead)) * np.dtype(NUMPY[dtype]).itemsize
    assert cost(1) > size * (1 / 143.5 + 1 / 143.5) / 2


def load_cycles(layout, dtype, rows, cols):
    """Of a [rows, cols] window of a large weight into Mat."""
    kind = tensor_type((4096, 8192), DTYPES[dtype], TensorView(layout=layout))
    window = tuple_of((rows, cols))
    call = make_call(
        "tile.load", (Var("w", kind), tuple_of((0, 0)), window), {"target_memory": Mem.Mat}
    )
    instance = OpInstance(call.op, tuple(a.type for a in call.args), dict(call.kwargs), call.type)
    return cost_model("mte2_mad").price(instance, load_target("a2a3")).mte2


@pytest.mark.req("N-004")
@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(NUMPY)), st.integers(1, 256), st.integers(1, 256))
def test_no_window_is_dearer_in_nz_order(dtype, fractals, blocks):
    rows, cols = 16 * fractals, blocks * 32 // np.dtype(NUMPY[dtype]).itemsize
    by_rows = load_cycles(TensorLayout.ND, dtype, rows, cols)
    in_order = load_cycles(TensorLayout.NZ, dtype, rows, cols)
    if blocks < rows:
        assert in_order < by_rows
    else:
        assert in_order == by_rows
