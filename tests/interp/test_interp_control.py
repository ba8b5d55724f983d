"""Loops, branches, calls, launches, scopes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from interp_programs import (
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
from pypto_egg.interp import run
from pypto_egg.ir.dtype import BOOL, FP32, INDEX, INT8, INT32, TASK_ID
from pypto_egg.ir.enums import FunctionType, LoopKind
from pypto_egg.ir.expr import BinOp, Cast, ConstInt, Submit, TupleItem, Var
from pypto_egg.ir.program import Program
from pypto_egg.ir.stmt import Break, Continue, If, Scope, While, Yield
from pypto_egg.ir.types import ScalarType, TupleType
from pypto_egg.source import Source, Span

ROWS = 8
KIND = tensor([ROWS, 16], FP32)
SCALAR = ScalarType(INDEX)


def floats(shape=(ROWS, 16), seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def is_equal(lhs, value):
    return BinOp("==", lhs, ConstInt(value), BOOL)


def branch(b, cond, then, orelse, types):
    """An if whose arms return the values of its results."""
    blocks = []
    for build in (then, orelse):
        inner = Body(counter=b.counter)
        values = build(inner)
        blocks.append((*inner.stmts, Yield(values=tuple(values))))
    results = tuple(Var(f"phi{n}", t) for n, t in enumerate(types))
    b.stmts.append(If(cond=cond, then=blocks[0], orelse=blocks[1], results=results))
    return results


@pytest.mark.parametrize("kind", [LoopKind.range, LoopKind.parallel, LoopKind.pipeline])
@pytest.mark.parametrize(("start", "stop", "step"), [(0, 4, 1), (1, 8, 3), (6, 0, -2), (3, 3, 1)])
def test_loops_carry_values(kind, start, stop, step):
    def build(b, x):
        def trip(b, i, acc):
            return [b.op("tensor.adds", acc, Cast(i, FP32))]

        return list(b.loop(start, stop, step, [x], trip, kind))

    x = floats()
    got = run(kernel(params(x=KIND), build), {"x": x}).returns[0]
    expected = x
    for i in range(start, stop, step):
        expected = expected + np.float32(i)
    assert np.allclose(got, expected)


def test_carries_may_be_swapped():
    def build(b, x, y):
        return list(b.loop(0, 3, 1, [x, y], lambda b, i, p, q: [q, p]))

    x, y = floats(), floats(seed=1)
    first, second = run(kernel(params(x=KIND, y=KIND), build), {"x": x, "y": y}).returns
    assert np.array_equal(first, y)
    assert np.array_equal(second, x)


def test_step_of_zero_is_an_error():
    with pytest.raises(InterpretError, match="loop over 'i' has step 0"):
        run(kernel(params(x=KIND), lambda b, x: list(b.loop(0, 4, 0, [x], lambda b, i, a: [a]))),
            {"x": floats()})  # fmt: skip


@pytest.mark.parametrize("n", [2, 3])
def test_branches_yield_their_results(n):
    def build(b, x, n):
        cond = is_equal(BinOp("%", n, ConstInt(2), INDEX), 0)
        return list(
            branch(
                b,
                cond,
                lambda b: [b.op("tensor.neg", x)],
                lambda b: [b.op("tensor.exp", x)],
                [KIND],
            )
        )

    x = floats()
    got = run(kernel(params(x=KIND, n=SCALAR), build), {"x": x, "n": n}).returns[0]
    assert np.array_equal(got, np.exp(x) if n % 2 else -x)


def test_while_runs_until_its_condition_fails():
    def build(b, x, n):
        i, acc = Var("i", SCALAR), Var("acc", KIND)
        inner = Body(counter=b.counter)
        more = inner.op("tensor.adds", acc, 1.0)
        inner.stmts.append(Yield(values=(BinOp("+", i, ConstInt(1), INDEX), more)))
        results = (Var("count", SCALAR), Var("total", KIND))
        b.stmts.append(
            While(
                cond=BinOp("<", i, n, BOOL),
                body=tuple(inner.stmts),
                iter_args=(i, acc),
                inits=(ConstInt(0), x),
                results=results,
            )
        )
        return list(results)

    x = floats()
    count, total = run(kernel(params(x=KIND, n=SCALAR), build), {"x": x, "n": 3}).returns
    assert count == 3
    assert np.allclose(total, x + 3)


def test_break_and_continue():
    """Rows 1 and 3 are written: even rows are skipped, row 5 ends the loop."""

    def build(b, x):
        def trip(b, i):
            even = is_equal(BinOp("%", i, ConstInt(2), INDEX), 0)
            b.stmts.append(If(cond=even, then=(Continue(),)))
            b.stmts.append(If(cond=is_equal(i, 5), then=(Break(),)))
            b.do(op("tensor.write", x, [i, 0], 7.0))

        b.loop(0, 8, 1, [], trip)
        return x

    x = floats()
    got = run(kernel(params(x=inout(KIND)), build), {"x": x}).params["x"]
    expected = x.copy()
    expected[[1, 3], 0] = 7
    assert np.array_equal(got, expected)


def two_functions(callee, build_main, **types):
    parameters = params(**types)
    body = Body()
    returns = build_main(body, *(p.var for p in parameters.values()))
    main = function("main", parameters, body, returns, FunctionType.Orchestration)
    return Program("P", (callee, main))


def exp_into():
    """kernel(x, o): stores exp(x) into o and returns it."""
    parameters = params(x=KIND, o=out(KIND))
    body = Body()
    x, o = (p.var for p in parameters.values())
    tile = body.op("tile.load", x, [0, 0], [ROWS, 16], target_memory=VEC)
    stored = body.op("tile.store", body.op("tile.exp", tile), [0, 0], o)
    return function("kernel", parameters, body, [stored])


def test_calls_pass_global_memory_by_reference():
    def main(b, x, o):
        y = b.let(call_of(exp_into(), x, o))
        return [y, b.let(call_of(exp_into(), y, o))]

    program = two_functions(exp_into(), main, x=KIND, o=out(KIND))
    x = floats()
    outputs = run(program, {"x": x})
    # Both results are the same memory, overwritten by the second call.
    assert np.allclose(outputs.params["o"], np.exp(np.exp(x)))
    assert np.array_equal(outputs.returns[0], outputs.returns[1])


def test_a_slice_passed_to_a_call_is_written_through():
    half = tensor([4, 16], FP32)
    parameters = params(o=out(half))
    body = Body()
    (target,) = (p.var for p in parameters.values())
    zero = body.op("tensor.full", [4, 16], 0.0, dtype=FP32)
    body.do(op("tensor.assemble", target, zero, [0, 0]))
    callee = function("clear", parameters, body, [])

    def main(b, x):
        part = b.op("tensor.slice", x, [4, 16], [4, 0])
        b.do(call_of(callee, part))
        return []

    x = floats()
    got = run(two_functions(callee, main, x=inout(KIND)), {"x": x}).params["x"]
    assert np.array_equal(got[:4], x[:4])
    assert (got[4:] == 0).all()


def test_several_results_and_submits():
    parameters = params(x=KIND)
    body = Body()
    (x,) = (p.var for p in parameters.values())
    callee = function(
        "kernel", parameters, body, [body.op("tensor.neg", x), body.op("tensor.abs", x)]
    )

    def main(b, x):
        pair = b.let(call_of(callee, x))
        first, second = (b.let(TupleItem(pair, n)) for n in range(2))
        kind = TupleType((KIND, KIND, ScalarType(TASK_ID)))
        task = b.let(Submit("submit", "kernel", (first,), kind))
        return [second, b.let(TupleItem(task, 0)), b.let(TupleItem(task, 2))]

    value = floats()
    absolute, again, task = run(two_functions(callee, main, x=KIND), {"x": value}).returns
    assert np.array_equal(absolute, np.abs(value))
    assert np.array_equal(again, value)
    assert task == 1


def rows_by_block():
    """kernel(x, o): block b writes row b of x * get_block_num() into o."""
    parameters = params(x=KIND, o=inout(KIND))
    body = Body()
    x, o = (p.var for p in parameters.values())
    block = body.op("tile.get_block_idx")
    count = body.op("tile.get_block_num")
    tile = body.op("tile.load", x, [block, 0], [1, 16], target_memory=VEC)
    scaled = body.op("tile.muls", tile, Cast(count, FP32))
    stored = body.op("tile.store", scaled, [block, 0], o)
    return function("kernel", parameters, body, [stored])


@pytest.mark.parametrize("where", ["call", "function", "submit"])
def test_spmd_launch_runs_every_block(where):
    inner = rows_by_block()
    parameters = params(x=KIND, o=inout(KIND))
    body = Body()
    wrapped = body.let(call_of(inner, *(p.var for p in parameters.values())))
    attrs = (("core_num", 5),) if where == "function" else ()
    wrapper = function("spmd", parameters, body, [wrapped], FunctionType.Spmd, attrs)

    def main(b, x, o):
        if where == "submit":
            kind = TupleType((KIND, ScalarType(TASK_ID)))
            task = b.let(Submit("spmd_submit", "spmd", (x, o), kind, (("core_num", 5),)))
            return [b.let(TupleItem(task, 0))]
        launch = (("core_num", 5),) if where == "call" else ()
        return [b.let(call_of(wrapper, x, o, attrs=launch))]

    program = two_functions(inner, main, x=KIND, o=inout(KIND))
    program = program.with_functions((inner, wrapper, program.functions[1]))
    x, o = floats(), floats(seed=1)
    expected = o.copy()
    expected[:5] = x[:5] * 5
    assert np.array_equal(run(program, {"x": x, "o": o}).params["o"], expected)


@pytest.mark.parametrize("form", ["scope", "loop"])
def test_spmd_regions_before_outlining(form):
    def build(b, x, o):
        def trip(b, *_):
            block = b.op("tensor.get_block_idx")
            row = b.op("tensor.slice", x, [1, 16], [block, 0])
            b.do(op("tensor.assemble", o, b.op("tensor.neg", row), [block, 0]))

        if form == "loop":
            b.loop(0, 3, 1, [], trip, LoopKind.spmd)
        else:
            inner = Body(counter=b.counter)
            trip(inner)
            b.stmts.append(Scope(kind="spmd", body=tuple(inner.stmts), args=(3,)))
        return []

    x, o = floats(), floats(seed=1)
    program = kernel(params(x=KIND, o=inout(KIND)), build, FunctionType.Orchestration)
    expected = o.copy()
    expected[:3] = -x[:3]
    assert np.array_equal(run(program, {"x": x, "o": o}).params["o"], expected)


def test_lanes_take_their_halves():
    def build(b, x, o):
        lane = Var("lane", SCALAR)
        inner = Body(counter=b.counter)
        half = inner.op("tensor.aiv_shard", x, split=1)
        at = BinOp("*", lane, ConstInt(ROWS // 2), INDEX)
        inner.do(op("tensor.assemble", o, inner.op("tensor.neg", half), [at, 0]))
        b.stmts.append(Scope(kind="split_aiv", body=tuple(inner.stmts), args=(2,), var=lane))
        return []

    x = floats()
    program = kernel(params(x=KIND, o=out(KIND)), build)
    assert np.array_equal(run(program, {"x": x}).params["o"], -x)


def test_arrays_are_changed_in_place():
    def build(b, n):
        array = b.op("array.create", 4, dtype=INT8)
        array = b.op("array.update_element", array, 2, ConstInt(100, INT8))
        return [b.op("array.get_element", array, 2), b.op("array.get_element", array, n)]

    program = kernel(params(n=SCALAR), build)
    assert run(program, {"n": 0}).returns == (100, 0)
    with pytest.raises(InterpretError, match="index 4 leaves"):
        run(program, {"n": 4})


def test_synchronisation_does_nothing_and_communication_is_refused():
    def build(name):
        def body(b, x):
            b.do(op(name))
            return x

        return body

    x = floats()
    assert run(kernel(params(x=KIND), build("system.bar_all")), {"x": x}).params == {}
    with pytest.raises(InterpretError, match=r"no semantics for pld\.system\.rank"):
        run(kernel(params(x=KIND), build("pld.system.rank")), {"x": x})


def test_scalar_results_wrap_to_their_variables():
    def build(b, n):
        wide = BinOp("*", n, ConstInt(3, INT32), INT32)
        return [b.let(Cast(wide, INT8))]

    assert run(kernel(params(n=ScalarType(INT32)), build), {"n": 100}).returns == (44,)


def test_endless_recursion_is_an_error():
    parameters = params(x=KIND)
    body = Body()
    (x,) = (p.var for p in parameters.values())
    stub = function("kernel", parameters, Body(), [x])
    looping = function("kernel", parameters, body, [body.let(call_of(stub, x))])
    with pytest.raises(InterpretError, match="nest deeper than 64 at function 'kernel'"):
        run(Program("P", (looping,)), {"x": floats()}, function="kernel")


def test_long_programs_take_no_stack():
    def build(b, x):
        for _ in range(3000):
            x = b.op("tensor.adds", x, 1.0)
        return x

    got = run(kernel(params(x=tensor([1, 1], FP32)), build), {"x": np.zeros((1, 1), np.float32)})
    assert got.returns[0][0, 0] == 3000


def test_branches_nested_without_end_are_an_error():
    def build(b, x):
        nested = ()
        for _ in range(2000):
            nested = (If(cond=is_equal(ConstInt(0), 0), then=nested),)
        b.stmts.extend(nested)
        return x

    with pytest.raises(InterpretError, match="nests loops, branches or calls too deeply"):
        run(kernel(params(x=KIND), build), {"x": floats()})


def test_extents_that_contradict_at_run_time_are_an_error_with_the_shapes():
    m, n = Var("M", SCALAR), Var("N", SCALAR)
    types = params(x=tensor([m, 8], FP32), i=tensor([n, 8], INT32))
    program = kernel(types, lambda b, x, i: b.op("tensor.gather", x, i, dim=-1))
    inputs = {"x": floats((3, 8)), "i": np.zeros((5, 8), np.int32)}
    with pytest.raises(InterpretError, match=r"shapes \[3, 8\], \[5, 8\] do not fit"):
        run(program, inputs)


def test_while_may_break_with_its_carries():
    def build(b, x):
        i = Var("i", SCALAR)
        inner = Body(counter=b.counter)
        inner.stmts.append(If(cond=is_equal(i, 3), then=(Break(),)))
        inner.stmts.append(Yield(values=(BinOp("+", i, ConstInt(1), INDEX),)))
        count = Var("count", SCALAR)
        b.stmts.append(
            While(
                cond=is_equal(ConstInt(0), 0),
                body=tuple(inner.stmts),
                iter_args=(i,),
                inits=(ConstInt(0),),
                results=(count,),
            )
        )
        return [count]

    assert run(kernel(params(x=KIND), build), {"x": floats()}).returns == (3,)


def test_core_regions_are_transparent():
    """In a core region tensors are values: assemble leaves its operand alone."""

    def build(b, x):
        inner = Body(counter=b.counter)
        fresh = inner.op("tensor.create", [ROWS, 16], dtype=FP32)
        first = inner.op("tensor.assemble", fresh, x, [0, 0])
        second = inner.op("tensor.assemble", first, inner.op("tensor.neg", x), [0, 0])
        task = Var("task", ScalarType(TASK_ID))
        b.stmts.append(Scope(kind="at", body=tuple(inner.stmts), var=task))
        return [first, second, task]

    x = floats()
    program = kernel(params(x=KIND), build, FunctionType.Orchestration)
    first, second, task = run(program, {"x": x}).returns
    assert np.array_equal(first, x)
    assert np.array_equal(second, -x)
    assert task == 1


def test_launch_width_may_be_an_expression():
    inner = rows_by_block()

    def main(b, x, o, n):
        width = (("core_num", BinOp("+", n, ConstInt(1), INDEX)),)
        return [b.let(call_of(inner, x, o, attrs=width))]

    program = two_functions(inner, main, x=KIND, o=inout(KIND), n=SCALAR)
    x, o = floats(), floats(seed=1)
    expected = o.copy()
    expected[:3] = x[:3] * 3
    assert np.array_equal(run(program, {"x": x, "o": o, "n": 2}).params["o"], expected)


def test_machine_queries_and_task_ids():
    def build(b):
        return [
            b.op("system.available_cluster_count"),
            b.op("system.available_aiv_count"),
            b.op("system.task_is_valid", b.op("system.task_invalid")),
            b.op("system.task_is_valid", b.op("system.task_dummy")),
            b.op("tile.get_subblock_idx"),
        ]

    program = kernel({}, build, FunctionType.Orchestration)
    assert run(program, {}).returns == (1, 2, False, True, 0)


def test_external_functions_cannot_run():
    stub = function("kernel", params(x=KIND), Body(), [])
    stub = replace(stub, external_source="kernel.cpp")
    with pytest.raises(InterpretError, match=r"'kernel' lives in kernel\.cpp"):
        run(Program("P", (stub,)), {"x": floats()})


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (tensor([ROWS, 8], FP32), r"'y' has shape \[8, 8\], its value has shape \[8, 16\]"),
        (tensor([ROWS, 16], INT32), "'y' has elements of INT32, its value of FP32"),
        (SCALAR, "'y' is a scalar of INDEX, its value is not"),
    ],
)
def test_values_must_fit_their_variables(kind, message):
    program = kernel(
        params(x=KIND), lambda b, x: [b.let(op("tensor.neg", x), name="y", type_=kind)]
    )
    with pytest.raises(InterpretError, match=message):
        run(program, {"x": floats()})


def test_errors_point_at_the_statement():
    source = Source("k.py", "x = 1\ny = pl.slice(x)\n")
    span = Span(source, 2, 5, 8)

    def build(b, x, n):
        call = replace(op("tensor.slice", x, [4, 16], [n, 0]), span=span)
        return b.let(call)

    with pytest.raises(InterpretError) as caught:
        run(kernel(params(x=KIND, n=SCALAR), build), {"x": floats(), "n": 7})
    assert caught.value.span == span
    assert "k.py:2:5" in str(caught.value)
