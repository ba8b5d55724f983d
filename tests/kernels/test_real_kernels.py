"""Kernels of real models, from text to a checked tile program, on both targets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from real_kernels import EXACT, FOLDER, KERNELS, Arrays, Kernel, largest_error

from pypto_egg import Lowering, load_target, optimize, parse, parse_file, print_program, run
from pypto_egg.interp import Outputs
from pypto_egg.ir.enums import FunctionType, Mem, TileLayout
from pypto_egg.ir.equal import first_difference
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import definitions, expressions_of, subexpressions, walk
from pypto_egg.ops.registry import lookup
from pypto_egg.verify import verify_program

TARGETS = ("a2a3", "a5")
# N of an accumulated product is 24, which the reference never pads (C-167).
REFUSED_BY_THE_REFERENCE = ("hyper_connection_mix",)
every_kernel = pytest.mark.parametrize("name", KERNELS)
both_targets = pytest.mark.parametrize("target", TARGETS)


@cache
def source(name: str) -> Program:
    return parse_file(KERNELS[name].path)


@cache
def optimized(name: str, target: str) -> Lowering:
    return optimize(source(name), target=target, verify=True)


@cache
def inputs(name: str) -> Arrays:
    return KERNELS[name].random_inputs()


def in_core(program: Program) -> list[Function]:
    return [f for f in program.functions if f.type is FunctionType.InCore]


def tiles(program: Program) -> Iterator[tuple[str, TileType]]:
    for function in in_core(program):
        for var in definitions(function):
            if isinstance(var.type, TileType):
                yield var.name, var.type


def products(program: Program) -> Iterator[tuple[TileType, TileType, TileType]]:
    """Left operand, right operand and result of every cube product."""
    for function in in_core(program):
        for stmt in walk(function.body):
            for expr in expressions_of(stmt):
                for call in subexpressions(expr):
                    if isinstance(call, Call) and "matmul" in call.op:
                        yield product_tiles(call)


def product_tiles(call: Call) -> tuple[TileType, TileType, TileType]:
    decl = lookup(call.op)
    assert decl is not None
    by_name = {o.name: a.type for o, a in zip(decl.operands, call.args, strict=False)}
    lhs, rhs, result = by_name["lhs"], by_name["rhs"], call.type
    assert isinstance(lhs, TileType)
    assert isinstance(rhs, TileType)
    assert isinstance(result, TileType)
    return lhs, rhs, result


def whole_block(tile: TileType) -> tuple[int, int]:
    """Rows and columns of which a cube tile is a multiple: 16 lines of 32 bytes, 16 x 16 in L0C."""
    if tile.space is Mem.Acc:
        return 16, 16
    line = 32 // tile.dtype.bytes
    return (16, line) if tile.layout.slayout is TileLayout.row_major else (line, 16)


def assert_computes(kernel: Kernel, outputs: Outputs) -> None:
    expected = kernel.expected(inputs(kernel.name))
    assert len(outputs.returns) == len(expected)
    for actual, wanted in zip(outputs.returns, expected, strict=True):
        assert isinstance(actual, np.ndarray)
        assert actual.shape == wanted.shape
        if kernel.tolerance == EXACT:
            assert np.array_equal(actual, wanted)
        else:
            # A poisoned element is NaN, and NaN is not below any tolerance.
            assert largest_error(actual, wanted) <= kernel.tolerance


def test_every_kernel_file_has_a_reference():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(KERNELS)


@every_kernel
def test_the_text_says_where_its_shapes_come_from(name):
    head = KERNELS[name].path.read_text(encoding="utf-8").split("import pypto", 1)[0]
    assert all(line.startswith("#") for line in head.strip().splitlines())
    assert "# Shape: p" in head


@every_kernel
def test_the_text_survives_printing_and_reading(name):
    program = source(name)
    text = print_program(program)
    again = parse(text)
    assert first_difference(program, again) is None
    assert print_program(again) == text


@every_kernel
def test_the_tensor_program_computes_the_reference(name):
    assert_computes(KERNELS[name], run(source(name), inputs(name)))


@every_kernel
@both_targets
def test_the_tile_program_computes_the_reference(name, target):
    assert_computes(KERNELS[name], run(optimized(name, target).program, inputs(name)))


@every_kernel
@both_targets
def test_tensor_and_tile_program_agree_and_no_padding_is_read(name, target):
    result = optimized(name, target)
    assert result.verified
    assert result.comparison is not None
    assert result.comparison.equal
    assert result.comparison.poison_after == 0
    assert result.comparison.compared > 0


@every_kernel
@both_targets
def test_the_tile_program_is_text_that_reads_back(name, target):
    result = optimized(name, target)
    again = parse(result.text)
    assert first_difference(result.program, again) is None
    verify_program(again, stage="tile")
    calls = [
        call.op
        for function in in_core(again)
        for stmt in walk(function.body)
        for expr in expressions_of(stmt)
        for call in subexpressions(expr)
        if isinstance(call, Call)
    ]
    # A view of global memory is the one tensor operator that names no data movement.
    assert {op for op in calls if op.startswith("tensor.")} <= {"tensor.view"}


@every_kernel
@both_targets
def test_it_costs_no_more_than_the_reference_lowering(name, target):
    result = optimized(name, target)
    assert result.cost.total > 0
    if name in REFUSED_BY_THE_REFERENCE:
        assert result.baseline is None
        assert result.baseline_refused.startswith("E402")
    else:
        assert result.baseline is not None
        assert result.cost.total <= result.baseline.cost.total


@pytest.mark.parametrize("name", ["chained_product", "bias_matmul", "attention_block"])
@both_targets
def test_alternatives_pay_where_a_value_would_leave_the_cube(name, target):
    """Rounding in the drain, the sum that goes on from L0C, the bias row in the cube."""
    result = optimized(name, target)
    assert result.baseline is not None
    assert result.cost.total < result.baseline.cost.total


@pytest.mark.req("C-125", "C-126", "C-128", "C-161", "C-163", "C-164", "C-165")
@every_kernel
@both_targets
def test_cube_tiles_are_whole_boxes(name, target):
    for var, tile in tiles(optimized(name, target).program):
        if tile.space not in (Mem.Mat, Mem.Left, Mem.Right, Mem.Acc):
            continue
        *leading, rows, cols = tile.shape
        if rows == 1 and tile.layout.slayout is TileLayout.none_box:
            continue
        block_rows, block_cols = whole_block(tile)
        packed = int(np.prod(leading)) * rows
        assert packed % block_rows == 0, (var, tile)
        assert cols % block_cols == 0, (var, tile)


@pytest.mark.req("C-128", "C-131", "C-133", "C-145", "C-168")
@every_kernel
@both_targets
def test_products_keep_their_logical_extents(name, target):
    found = []
    lowered = optimize(source(name), target=target, verify=False, l0="leave")
    for lhs, rhs, result in products(lowered.program):
        m, k = lhs.valid_shape[-2:]
        n = rhs.valid_shape[-1]
        assert rhs.valid_shape[-2] == k
        assert tuple(result.valid_shape[-2:]) == (m, n)
        assert lhs.shape[-1] == rhs.shape[-2] == k, "K is never padded"
        assert tuple(result.shape[-2:]) == (lhs.shape[-2], rhs.shape[-1])
        found.append((m, n, k))
    assert sorted(found) == sorted(KERNELS[name].products)


@every_kernel
@both_targets
def test_vector_tiles_have_whole_lines_of_32_bytes(name, target):
    for var, tile in tiles(optimized(name, target).program):
        if tile.space is not Mem.Vec:
            continue
        column = tile.layout.blayout is TileLayout.col_major
        extent = tile.shape[-2] if column else tile.shape[-1]
        assert extent * tile.dtype.bytes % 32 == 0, (var, tile)
        assert all(v <= s for v, s in zip(tile.valid_shape, tile.shape, strict=True)), (var, tile)


@every_kernel
@both_targets
def test_tiles_fit_on_chip(name, target):
    chip = load_target(target)
    result = optimized(name, target)
    assert [report.name for report in result.functions] == [f.name for f in in_core(result.source)]
    for report in result.functions:
        assert report.peak_bytes
        for space, peak in report.peak_bytes.items():
            assert 0 < peak <= chip.memory[space].usable_bytes
    for var, tile in tiles(result.program):
        size = int(np.prod(tile.shape)) * tile.dtype.bytes
        peak = max(report.peak_bytes.get(tile.space.value, 0) for report in result.functions)
        assert size <= peak, (var, tile)
