"""C23: accumulators carried through a loop keep the valid rows that their products have."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import calls, kernel, lines, loops, shape_of, tensor, valid_of

from pypto_egg import Lowering, lower, optimize
from pypto_egg.interp import compare, random_inputs, run
from pypto_egg.ir.enums import CompactMode, Mem
from pypto_egg.ir.expr import ConstInt
from pypto_egg.ir.types import TileType
from pypto_egg.verify import verify_program

MAKERS = pytest.mark.parametrize("make", [lower, optimize], ids=["lower", "optimize"])
N, K, STEP = 128, 128, 64
LOOPS = {
    "range": f"pl.range(0, {K}, {STEP}, init_values=(seed,))",
    "pipeline": f"pl.pipeline(0, {K}, {STEP}, stage=2, init_values=(seed,))",
}


def split_k(rows: int, loop: str = "pipeline", dtype: str = "INT8", inside: bool = False) -> str:
    """The split-K loop of C-270: a full-box seed, a left operand of `v` runtime rows."""
    total = "INT32" if dtype == "INT8" else "FP32"
    extent = f"    e = pl.min({rows}, v)" if inside else ""
    valid = "e" if inside else "v"
    body = f"""
seed = pl.create_tensor([{rows}, {N}], pl.{total})
for k0, (acc,) in {LOOPS[loop]}:
{extent}
    xk = pl.slice(x, [{rows}, {STEP}], [0, k0], valid_shape=[{valid}, {STEP}])
    wk = pl.slice(w, [{N}, {STEP}], [0, k0])
    s = pl.matmul_acc(acc, xk, wk, b_trans=True)
    r = pl.yield_(s)
return r"""
    params = {"x": tensor([rows, K], dtype), "w": tensor([N, K], dtype), "v": "pl.Scalar[pl.INDEX]"}
    return kernel(params, body, tensor([rows, N], total))


def agrees(result: Lowering, rows: int, valid: int) -> bool:
    """Whether both programs compute the same from `valid` rows, all others undefined."""
    entry = result.source.function("kernel")
    inputs = {**random_inputs(entry, program=result.source), "v": valid}
    comparison = compare(result.source, result.program, inputs)
    assert comparison.poison_before == (rows - valid) * N
    return comparison.equal


def carried(result: Lowering) -> tuple[TileType, TileType, TileType]:
    """The types of the carried accumulator: before the loop, inside of it, and after it."""
    (loop,) = loops(result)
    (init,), (arg,), (result_,) = loop.inits, loop.iter_args, loop.results
    found = init.type, arg.type, result_.type
    assert all(isinstance(type_, TileType) for type_ in found)
    return found


@MAKERS
@pytest.mark.req("C-270", "C-271", "C-272", "C-273", "C-285")
@pytest.mark.parametrize("loop", LOOPS)
def test_the_seed_is_declared_as_narrow_as_the_yield(make: object, loop: str) -> None:
    result = make(split_k(64, loop), verify=False)
    rows = result.program.function("kernel").params[2].var
    for type_ in carried(result):
        assert list(type_.shape) == [64, N]
        assert type_.valid_shape == (rows, N)
        assert type_.layout.compact is CompactMode.normal
    (created,) = calls(result, "tile.create")
    assert created.kwarg("compact") is True
    assert valid_of(created) == shape_of(created)
    (narrowed,) = calls(result, "tile.set_validshape")
    assert narrowed.args[1:] == (rows, ConstInt(N))
    verify_program(result.program, stage="tile")


@MAKERS
@pytest.mark.req("C-270", "C-272")
@pytest.mark.parametrize("valid", [1, 16, 20, 33, 64])
@pytest.mark.parametrize("dtype", ["INT8", "FP16"])
def test_any_number_of_valid_rows_computes_the_same(make: object, valid: int, dtype: str) -> None:
    result = make(split_k(64, dtype=dtype), verify=False)
    assert agrees(result, 64, valid)


@MAKERS
@pytest.mark.req("C-275")
def test_one_block_of_rows_is_left_as_it_is(make: object) -> None:
    result = make(split_k(16), verify=False)
    for type_ in carried(result):
        assert list(type_.valid_shape) == [16, N]
    assert calls(result, "tile.set_validshape") == []
    assert agrees(result, 16, 5)
    verify_program(result.program, stage="tile")


@MAKERS
@pytest.mark.req("C-276")
def test_an_extent_that_only_the_body_knows_leaves_the_seed_as_it_is(make: object) -> None:
    result = make(split_k(64, inside=True), verify=False)
    before, _, _ = carried(result)
    assert list(before.valid_shape) == [64, N]
    (loop,) = loops(result)
    defined = next(n for n, t in enumerate(lines(result)) if t.startswith("for k0"))
    used = next(n for n, t in enumerate(lines(result)) if t.startswith("e: "))
    assert used > defined
    assert loop.results[0].type == before
    verify_program(result.program, stage="tile")


@MAKERS
@pytest.mark.req("C-274")
def test_batched_accumulators_are_left_to_the_pass_that_unrolls_them(make: object) -> None:
    body = """
seed = pl.create_tensor([2, 64, 32], pl.FP32)
for k0, (acc,) in pl.range(0, 128, 64, init_values=(seed,)):
    xk = pl.slice(x, [2, 64, 64], [0, 0, k0])
    wk = pl.slice(w, [2, 64, 32], [0, k0, 0])
    s = pl.matmul_acc(acc, xk, wk)
    r = pl.yield_(s)
return r"""
    params = {"x": tensor([2, 64, 128], "FP16"), "w": tensor([2, 128, 32], "FP16")}
    result = make(kernel(params, body, tensor([2, 64, 32], "FP32")), verify=True)
    assert result.verified
    assert calls(result, "tile.set_validshape") == []
    for type_ in carried(result):
        assert list(type_.shape) == list(type_.valid_shape) == [2, 64, 32]


@pytest.mark.req("C-270")
def test_twenty_rows_of_sixty_four() -> None:
    """The document's numbers: written 32 rows apart, where a reader of the box takes 64."""
    result = lower(split_k(64), verify=False)
    inputs = {**random_inputs(result.source.function("kernel"), program=result.source), "v": 20}
    expected = inputs["x"][:20].astype(np.int64) @ inputs["w"].astype(np.int64).T
    (got,) = run(result.program, {**inputs, "ret0__out": np.zeros([64, N], np.int32)}).returns
    assert np.array_equal(got[:20], expected)


CONDITIONAL = f"""
seed = pl.create_tensor([64, {N}], pl.INT32)
for k0, (acc,) in {LOOPS["pipeline"]}:
    xk = pl.slice(x, [64, {STEP}], [0, k0], valid_shape=[v, {STEP}])
    wk = pl.slice(w, [{N}, {STEP}], [0, k0])
    if k0 == 0:
        first = pl.matmul(xk, wk, b_trans=True, out_dtype=pl.INT32)
        s = pl.yield_(first)
    else:
        more = pl.matmul_acc(acc, xk, wk, b_trans=True)
        s = pl.yield_(more)
    r = pl.yield_(s)
return r"""
NESTED = f"""
seed = pl.create_tensor([64, {N}], pl.INT32)
for j, (part,) in {LOOPS["range"]}:
    for k0, (acc,) in pl.pipeline(0, {STEP}, 32, stage=2, init_values=(part,)):
        xk = pl.slice(x, [64, 32], [0, j + k0], valid_shape=[v, 32])
        wk = pl.slice(w, [{N}, 32], [0, j + k0])
        more = pl.matmul_acc(acc, xk, wk, b_trans=True)
        s = pl.yield_(more)
    r = pl.yield_(s)
return r"""


@MAKERS
@pytest.mark.req("C-270", "C-271", "C-272")
@pytest.mark.parametrize("valid", [1, 20, 64])
@pytest.mark.parametrize("body", [CONDITIONAL, NESTED], ids=["first step in a branch", "nested"])
def test_branches_and_inner_loops_narrow_the_seed_too(make: object, body: str, valid: int) -> None:
    params = {
        "x": tensor([64, K], "INT8"), "w": tensor([N, K], "INT8"), "v": "pl.Scalar[pl.INDEX]",
    }  # fmt: skip
    result = make(kernel(params, body, tensor([64, N], "INT32")), verify=False)
    rows = result.program.function("kernel").params[2].var
    for loop in loops(result):
        for type_ in (loop.inits[0].type, loop.iter_args[0].type, loop.results[0].type):
            assert type_.valid_shape == (rows, N)
    verify_program(result.program, stage="tile")
    assert agrees(result, 64, valid)


@MAKERS
@pytest.mark.req("C-270")
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("rows", "valid", "stays"),
    [("v", "v, 128", True), ("v", "v, 96", True), ("32", "v, 128", False), ("32", "20, 96", False)],
)
def test_an_accumulator_is_narrowed_in_place_unless_its_rows_change(
    make: object, target: str, rows: str, valid: str, stays: bool
) -> None:
    """Other rows would be read with another pitch than they were written with."""
    body = f"""
xs = pl.slice(x, [32, 64], [0, 0], [{rows}, 64])
z = pl.matmul(xs, w, out_dtype=pl.FP32)
zv = pl.set_validshape(z, {valid})
o1 = pl.assemble(o, zv, [0, 0])
return o1"""
    whole = tensor([32, 128], "FP32")
    params = {
        "x": tensor([32, 64], "FP16"), "w": tensor([64, 128], "FP16"), "v": "pl.Scalar[pl.INDEX]",
        "o": f"pl.Out[{whole}]",
    }  # fmt: skip
    result = make(kernel(params, body, whole), verify=True, target=target)
    (stored,) = calls(result, "tile.store")
    assert (stored.args[0].type.space is Mem.Acc) is stays
    arrays = random_inputs(result.source.function("kernel"), program=result.source)
    inputs = {**arrays, "v": 20, "o": np.zeros((32, 128), np.float32)}
    product = arrays["x"].astype(np.float32) @ arrays["w"].astype(np.float32)
    cols = int(valid.split(", ")[1])
    left = run(result.program, inputs).params["o"]
    np.testing.assert_allclose(left[:20, :cols], product[:20, :cols], rtol=1e-3, atol=1e-3)
    assert not np.any(left[20:])
    assert not np.any(left[:, cols:])
