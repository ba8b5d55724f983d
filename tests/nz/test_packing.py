"""What is packed, what the packed program computes, and what cannot be packed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from packing_programs import (
    ACC,
    NUMPY,
    advice_for,
    data,
    function,
    grouped,
    product,
    program,
    stays_nd,
    typed,
)

from pypto_egg import optimize, parse, print_program
from pypto_egg.cli import command
from pypto_egg.errors import OptionError
from pypto_egg.interp import run
from pypto_egg.ir.dtype import DTYPES
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.nz import pack
from pypto_egg.nz.layout import blocked_shape


def follow(plan, inputs):
    """The arguments of a packed program, made as its plan says."""
    packed = dict(inputs)
    for item in plan:
        array = inputs[item.parameter]
        assert array.shape == item.shape
        packed[item.parameter] = pack(array, item.dtype)
        assert packed[item.parameter].shape == item.blocked
    return packed


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
@settings(max_examples=20)
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
