"""Running and comparing: inputs and their errors, outputs, tolerance, estimates."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from interp_programs import (
    MAT,
    VEC,
    Body,
    call_of,
    function,
    inout,
    kernel,
    op,
    out,
    params,
    tensor,
)

from pypto_egg.errors import InterpretError
from pypto_egg.interp import compare, entry_function, random_inputs, run, work
from pypto_egg.interp.compare import tolerance_of
from pypto_egg.interp.work import longest_reduction
from pypto_egg.ir.dtype import BF16, BOOL, FP8E8M0, FP16, FP32, INDEX, INT4, INT8, INT32, UINT8
from pypto_egg.ir.enums import FunctionType, TensorLayout
from pypto_egg.ir.expr import BinOp, ConstInt, Var
from pypto_egg.ir.program import Program
from pypto_egg.ir.types import ScalarType

KIND = tensor([8, 16], FP32)


def floats(shape=(8, 16), seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def neg():
    return kernel(params(x=KIND), lambda b, x: b.op("tensor.neg", x))


# --- inputs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "no input is given for parameter 'x'"),
        ({"x": floats(), "y": floats()}, "'y' is not a parameter of 'kernel'"),
        ({"x": floats((8, 17))}, r"'x' has shape \[8, 16\], its input has shape \[8, 17\]"),
        ({"x": floats((8,))}, "'x' has rank 2"),
        ({"x": floats().astype(np.float64)}, "'x' has elements of FP32 .* float64"),
        ({"x": 3.0}, "'x' is a tensor, its input is no numpy array"),
    ],
)
def test_wrong_inputs_name_the_parameter(inputs, message):
    with pytest.raises(InterpretError, match=message):
        run(neg(), inputs)


@pytest.mark.parametrize(
    ("value", "message"),
    [(1.5, "scalar of INT32, its input 1.5 is a float"), ("one", "'n' is a scalar")],
)
def test_wrong_scalars_name_the_parameter(value, message):
    program = kernel(params(n=ScalarType(INT32)), lambda b, n: [b.let(n)])
    with pytest.raises(InterpretError, match=message):
        run(program, {"n": value})


@pytest.mark.parametrize("value", [7, np.int64(7), np.array(7), True])
def test_scalars_may_be_numpy(value):
    program = kernel(params(n=ScalarType(INT32)), lambda b, n: [b.let(n)])
    assert run(program, {"n": value}).returns == (int(value),)


def test_bf16_scalars():
    program = kernel(params(n=ScalarType(BF16)), lambda b, n: [b.let(n)])
    assert run(program, {"n": ml_dtypes.bfloat16(0.1)}).returns == (float(ml_dtypes.bfloat16(0.1)),)


def test_symbols_are_bound_from_shapes_and_must_agree():
    m = Var("M", ScalarType(INDEX))
    kind = tensor([m, 16], FP32)
    twice = tensor([BinOp("*", m, ConstInt(2), INDEX), 16], FP32)
    program = kernel(params(x=kind, y=kind, z=twice), lambda b, x, y, z: b.op("tensor.add", x, y))
    x, z = floats((5, 16)), floats((10, 16))
    assert np.array_equal(run(program, {"x": x, "y": x, "z": z}).returns[0], x + x)
    with pytest.raises(InterpretError, match=r"'y' has shape \[5, 16\], its input .* \[6, 16\]"):
        run(program, {"x": x, "y": floats((6, 16)), "z": z})
    with pytest.raises(InterpretError, match=r"'z' has shape \[10, 16\]"):
        run(program, {"x": x, "y": x, "z": floats((9, 16))})


def test_inputs_are_never_changed_and_written_parameters_are_reported():
    def build(b, x, y):
        b.op("tensor.write", x, [0, 0], 9.0)
        return y

    x, y = floats(), floats(seed=1)
    before = x.copy()
    outputs = run(kernel(params(x=KIND, y=KIND), build), {"x": x, "y": y})
    assert np.array_equal(x, before)
    assert list(outputs.params) == ["x"]
    assert outputs.params["x"][0, 0] == 9


def test_out_parameters_start_as_poison_or_as_given():
    program = kernel(params(o=out(KIND)), lambda b, o: [])
    assert np.isnan(run(program, {}).params["o"]).all()
    given = floats()
    assert np.array_equal(run(program, {"o": given}).params["o"], given)


def test_out_parameter_of_unknown_extent_must_be_given():
    m = Var("M", ScalarType(INDEX))
    program = kernel(params(o=out(tensor([m, 4], FP32))), lambda b, o: [])
    with pytest.raises(InterpretError, match="extents of the Out parameter 'o' are not known"):
        run(program, {})
    assert run(program, {"o": floats((3, 4))}).params["o"].shape == (3, 4)


def test_entry_function():
    callee = neg().functions[0]
    body = Body()
    parameters = params(x=KIND)
    (x,) = (p.var for p in parameters.values())
    main = function(
        "main", parameters, body, [body.let(call_of(callee, x))], FunctionType.Orchestration
    )
    assert entry_function(Program("P", (callee, main))).name == "main"
    assert entry_function(Program("P", (callee,))).name == "kernel"
    other = replace(main, name="other")
    with pytest.raises(InterpretError, match="candidates: main, other"):
        entry_function(Program("P", (callee, main, other)))
    with pytest.raises(InterpretError, match=r"no function 'gone' \(it has: kernel, main\)"):
        entry_function(Program("P", (callee, main)), "gone")


def test_errors_carry_the_code():
    with pytest.raises(InterpretError) as caught:
        run(neg(), {})
    assert "E701" in str(caught.value)


# --- comparison ------------------------------------------------------------------------------


def sum_of_rows(order):
    """Adds the rows of x one by one in the given order."""

    def build(b, x):
        total = b.op("tensor.slice", x, [1, 16], [order[0], 0])
        for row in order[1:]:
            total = b.op("tensor.add", total, b.op("tensor.slice", x, [1, 16], [row, 0]))
        return total

    return kernel(params(x=KIND), build)


def test_another_order_of_summation_is_equal_within_rounding():
    verdict = compare(sum_of_rows(range(8)), sum_of_rows([7, 2, 5, 0, 3, 1, 6, 4]), {"x": floats()})
    assert verdict.equal
    assert 0 < verdict.max_abs_error < 1e-6
    assert verdict.where is None


def test_a_missing_row_is_a_difference_and_its_place_is_named():
    verdict = compare(sum_of_rows(range(8)), sum_of_rows(range(7)), {"x": floats()})
    assert not verdict.equal
    assert verdict.where is not None
    assert verdict.where.output == "return 0"
    assert verdict.where.index == (0, 0)
    assert "values differ beyond rounding" in str(verdict)


def integers(shift):
    return kernel(
        params(x=tensor([4], INT32)), lambda b, x: b.op("tensor.adds", x, ConstInt(shift, INT32))
    )


def test_integers_must_be_equal_to_the_bit():
    inputs = {"x": np.full(4, 10**9, np.int32)}
    assert compare(integers(1), integers(1), inputs).equal
    verdict = compare(integers(1), integers(2), inputs)
    assert not verdict.equal
    assert (verdict.where.before, verdict.where.after) == (10**9 + 1, 10**9 + 2)


def partly(rows):
    def build(b, x, o):
        part = b.op("tile.load", x, [0, 0], [8, 16], [rows, 16], target_memory=VEC)
        return b.op("tile.store", part, [0, 0], o)

    return kernel(params(x=KIND, o=out(KIND)), build)


def test_poison_must_stand_at_the_same_places():
    x = floats()
    same = compare(partly(5), partly(5), {"x": x})
    assert same.equal
    assert same.poison_before == same.poison_after == 2 * 3 * 16
    verdict = compare(partly(5), partly(4), {"x": x})
    assert not verdict.equal
    assert verdict.where.index == (4, 0)
    assert verdict.where.reason == "poison after only"


def test_integer_poison_of_either_kind_is_poison():
    def created(b, o):
        return b.op("tile.store", b.op("tile.create", [4, 32], dtype=INT8), [0, 0], o)

    kind = tensor([4, 32], INT8)
    untouched = kernel(params(o=out(kind)), lambda b, o: o)
    assert compare(kernel(params(o=out(kind)), created), untouched, {}).equal


def test_a_stray_write_is_a_difference():
    def stray(b, x):
        y = b.op("tensor.neg", x)
        b.op("tensor.write", x, [0, 0], 1.0)
        return y

    verdict = compare(neg(), kernel(params(x=KIND), stray), {"x": floats()})
    assert not verdict.equal
    assert verdict.where.output == "x"
    assert verdict.where.index == (0, 0)
    assert verdict.where.after == 1.0


def test_number_of_results_is_compared():
    double = kernel(params(x=KIND), lambda b, x: [b.op("tensor.neg", x), b.op("tensor.neg", x)])
    assert not compare(neg(), double, {"x": floats()}).equal


def test_out_parameters_that_a_lowering_adds_to_the_entry_are_no_difference():
    def lowered(b, x, o):
        tile = b.op("tile.load", x, [0, 0], [8, 16], target_memory=VEC)
        return b.op("tile.store", b.op("tile.neg", tile), [0, 0], o)

    after = kernel(params(x=KIND, ret0__out=out(KIND)), lowered)
    assert compare(neg(), after, {"x": floats()}).equal


@pytest.mark.req("N-022", "N-023", "N-031", "N-133", "N-134")
def test_blocked_nz_parameters_take_logical_arrays_and_give_them_back():
    """A product with an NZ weight and an NZ output, before and after its types are blocked."""

    def build(w_offset, w_window, o_offset, o_window):
        def body(b, a, w, o):
            left = b.op("tile.load", a, [0, 0], [64, 32], target_memory=MAT)
            call = op("tile.load", w, w_offset, w_window, target_memory=MAT)
            shaped = op("tile.create", [32, 16], dtype=FP32, target_memory=MAT).type
            product = b.op("tile.matmul", left, b.let(replace(call, result_type=shaped)))
            return b.op("tile.store", product, o_offset, o, *o_window)

        return body

    def program(w, o, *places):
        nz = TensorLayout.NZ
        types = params(a=tensor([64, 32], FP32), w=tensor(w, FP32, nz), o=out(tensor(o, FP32, nz)))
        return kernel(types, build(*places))

    logical = program([64, 32], [64, 32], [32, 16], [32, 16], [0, 16], [[64, 16]])
    physical = program(
        [1, 4, 4, 16, 8], [1, 4, 4, 16, 8],
        [0, 2, 2, 0, 0], [1, 2, 2, 16, 8], [0, 2, 0, 0, 0], [[1, 2, 4, 16, 8]],
    )  # fmt: skip
    a, w = floats((64, 32)), floats((64, 32), 1)
    expected = run(logical, {"a": a, "w": w}).params["o"]
    assert np.allclose(expected[:, 16:], a @ w[32:, 16:], atol=1e-5)
    assert np.isnan(expected[:, :16]).all()
    verdict = compare(logical, physical, {"a": a, "w": w})
    assert verdict.equal, str(verdict)
    assert verdict.poison_before == verdict.poison_after == 2 * 64 * 16


def product(dtype, k, rounded=None):
    def build(b, a, w):
        y = b.op("tensor.matmul", a, w, out_dtype=FP32)
        if rounded is None:
            return y
        y = b.op("tensor.cast", y, target_type=rounded, mode="rint")
        return b.op("tensor.cast", y, target_type=FP32, mode="rint")

    return kernel(params(a=tensor([16, k], dtype), w=tensor([k, 16], dtype)), build)


def test_tolerance_grows_with_reductions_and_with_coarse_intermediate_types():
    short, long = product(BF16, 64), product(BF16, 4096)
    assert longest_reduction(short) == 64
    assert longest_reduction(long) == 4096
    assert tolerance_of(short, short) < tolerance_of(long, long) < 1e-4
    # Inputs of a narrow type round nothing; a cast in between does.
    coarse = product(BF16, 64, rounded=BF16)
    assert tolerance_of(coarse, coarse) > 4 * 2.0**-8


def test_a_wrong_scale_is_not_rounding():
    a, w = floats((16, 4096)), floats((4096, 16), 1)
    right = product(FP32, 4096)

    def build(b, a, w):
        return b.op("tensor.muls", b.op("tensor.matmul", a, w), 1.001)

    wrong = kernel(params(a=tensor([16, 4096], FP32), w=tensor([4096, 16], FP32)), build)
    assert not compare(right, wrong, {"a": a, "w": w}).equal


# --- random inputs and estimates -------------------------------------------------------------


def test_random_inputs_fit_and_repeat():
    m = Var("M", ScalarType(INDEX))
    types = params(
        x=tensor([m, 16], BF16), n=ScalarType(INDEX), s=ScalarType(FP16), f=ScalarType(BOOL),
        i=inout(tensor([4, 4], INT8)), u=tensor([4], UINT8), o=out(tensor([m, 16], FP32)),
    )  # fmt: skip
    program = kernel(types, lambda b, *xs: [])
    made = random_inputs(program.functions[0], seed=3, symbols={"M": 10})
    again = random_inputs(program.functions[0], seed=3, symbols={"M": 10})
    other = random_inputs(program.functions[0], seed=4, symbols={"M": 10})
    assert list(made) == ["x", "n", "s", "f", "i", "u"]
    assert made["x"].shape == (10, 16)
    assert made["x"].dtype == ml_dtypes.bfloat16
    assert 1 <= made["n"] <= 4
    assert made["i"].min() < 0 <= made["u"].min()
    assert np.abs(made["x"].astype(np.float32)).max() <= 1
    assert np.array_equal(made["x"], again["x"])
    assert not np.array_equal(made["x"], other["x"])
    assert run(program, made).params["o"].shape == (10, 16)


def wrapped(callee):
    """The callee under an orchestration function of the same parameters."""
    parameters = {p.var.name: replace(p, var=Var(p.var.name, p.var.type)) for p in callee.params}
    body = Body()
    result = body.let(call_of(callee, *(p.var for p in parameters.values())))
    main = function("main", parameters, body, [result], FunctionType.Orchestration)
    return Program("P", (callee, main))


def test_inputs_suit_what_called_functions_do_with_them():
    def build(b, x, i, s):
        return b.op("tensor.sqrt", b.op("tensor.scatter", x, i, s, dim=-1))

    types = params(x=tensor([8, 16], FP32), i=tensor([8, 4], INT32), s=tensor([8, 4], FP32))
    program = wrapped(kernel(types, build).functions[0])
    made = random_inputs(entry_function(program), program=program)
    assert made["x"].min() > 0
    assert all(np.unique(row).size == 4 for row in made["i"])
    assert not np.isnan(run(program, made).returns[0]).any()


def test_work_multiplies_loops_launches_and_products():
    def loop(count):
        def build(b, x):
            return list(b.loop(0, count, 1, [x], lambda b, i, a: [b.op("tensor.neg", a)]))

        return kernel(params(x=KIND, n=ScalarType(INDEX)), lambda b, x, n: build(b, x))

    once, many = work(loop(1)), work(loop(100))
    assert once >= 8 * 16
    assert many == 100 * once

    def unknown(b, x, n):
        return list(b.loop(0, n, 1, [x], lambda b, i, a: [b.op("tensor.neg", a)]))

    assert work(kernel(params(x=KIND, n=ScalarType(INDEX)), unknown)) == 8 * once
    assert work(product(BF16, 64)) >= 16 * 16 * 64
    assert work(wrapped(neg().functions[0])) == work(neg())


def test_random_indices_are_row_numbers_where_rows_are_read_or_replaced():
    types = params(
        x=tensor([32, 8], FP32), i=tensor([2, 4], INT32), s=tensor([8, 8], FP32),
        g=tensor([32, 8], INT32), scale=tensor([4, 2], FP8E8M0), flag=tensor([4], BOOL),
    )  # fmt: skip

    def build(b, x, i, s, g, scale, flag):
        y = b.op("tensor.scatter_update", x, i, s, dim=-2)
        return b.op("tensor.gather", y, g, dim=-1)

    program = kernel(types, build)
    made = random_inputs(program.functions[0])
    assert sorted(made["i"].reshape(-1)) == list(range(8))
    assert 0 <= made["g"].min() <= made["g"].max() < 4
    assert made["flag"].dtype == np.bool_
    assert set(np.log2(made["scale"].astype(np.float32)).reshape(-1)) <= {-2, -1, 0, 1, 2}
    assert run(program, made).returns[0].shape == (32, 8)


def test_booleans_compare_bit_for_bit():
    flags = kernel(params(x=tensor([4], BOOL)), lambda b, x: x)
    given = {"x": np.array([True, False, True, False])}
    assert compare(flags, flags, given).equal


def test_results_of_another_shape_are_a_difference():
    def turned(b, x):
        return b.op("tensor.transpose", x, 0, 1)

    verdict = compare(neg(), kernel(params(x=KIND), turned), {"x": floats()})
    assert not verdict.equal
    assert "float32[8, 16] before, float32[16, 8] after" in verdict.where.reason


def test_tiles_may_be_returned():
    def build(b, x):
        return b.op("tile.load", x, [0, 0], [8, 16], [5, 16], target_memory=VEC)

    x = floats()
    got = run(kernel(params(x=KIND), build), {"x": x}).returns[0]
    assert np.array_equal(got[:5], x[:5])
    assert np.isnan(got[5:]).all()


def test_types_that_numpy_cannot_hold_are_named():
    program = kernel(params(x=tensor([4], INT4)), lambda b, x: x)
    with pytest.raises(InterpretError, match="cannot hold INT4 elements"):
        run(program, {"x": np.zeros(4, np.int8)})
