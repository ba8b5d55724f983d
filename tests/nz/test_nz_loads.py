"""Loads of NZ tensors in blocked coordinates, and the loads that have none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nz_programs import (
    A2A3,
    A5,
    blocked,
    calls,
    kernel,
    load_operands,
    operands,
    refused,
    tensor,
)

from pypto_egg.errors import NzError
from pypto_egg.interp.numbers import wrap
from pypto_egg.interp.scalars import evaluate
from pypto_egg.ir.dtype import INDEX, INT32
from pypto_egg.ir.enums import Mem, TileLayout
from pypto_egg.ir.expr import BinOp, ConstInt, Var, tuple_of
from pypto_egg.ir.fold import fold
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.types import ScalarType
from pypto_egg.nz.layout import Named
from pypto_egg.nz.row_gap import check_row_gap
from pypto_egg.ops.registry import make_call
from pypto_egg.text import print_program


def weight(shape, *load, dtype="INT8", params="", tile=None, before=(), space="pl.Mem.Mat"):
    """A kernel that loads a window of an NZ weight `w`, in the loops of `before`."""
    offsets, sizes, *valid = load
    rows, cols = tile or sizes[-2:]
    window = ", ".join(str(part).replace("'", "") for part in (offsets, sizes, *valid))
    line = (
        f"wt: pl.Tile[[{rows}, {cols}], pl.{dtype}, {space}] = "
        f"pl.tile.load(w, {window}, target_memory={space})"
    )
    pad = "    " * sum(text.rstrip().endswith(":") for text in before)
    return kernel(f"w: {tensor(shape, dtype)}{params}", *before, pad + line)


@pytest.mark.req("N-017", "N-018", "N-020", "N-022", "N-024", "N-025", "N-026")
def test_a_window_of_a_stacked_weight():
    given = weight((32, 2048, 4096), [1, 256, 512], [1, 256, 512])
    (before,) = calls(given, "tile.load")
    result = blocked(given)
    (call,) = calls(result, "tile.load")
    assert operands(call, 1, 2) == [[1, 16, 16, 0, 0], [1, 16, 16, 16, 32]]
    assert call.type == before.type
    assert (call.type.shape, call.type.space) == ((256, 512), Mem.Mat)
    assert call.kwargs == before.kwargs
    assert result.functions[0].params[0].var.type.shape == (32, 128, 128, 16, 32)


def with_three_axes(given, *, name_too):
    """The program whose load makes a tile of three axes, as before tiles are flattened."""
    (stmt,) = given.functions[0].body
    call = make_call("tile.load", stmt.value.args, dict(stmt.value.kwargs))
    assert call.type.rank == 3
    changed = replace(stmt, value=call, var=Var("wt", call.type) if name_too else stmt.var)
    return given.with_functions((replace(given.functions[0], body=(changed,)),))


@pytest.mark.req("N-018", "N-026")
def test_a_load_that_only_its_name_flattens():
    given = weight((32, 2048, 4096), [1, 256, 512], [1, 256, 512])
    (call,) = calls(blocked(with_three_axes(given, name_too=False)), "tile.load")
    assert call.type.shape == (256, 512)


@pytest.mark.req("N-018")
def test_tiles_of_three_axes_must_be_flattened_first():
    given = weight((4, 256, 512), [1, 0, 0], [1, 256, 512])
    error = refused(with_three_axes(given, name_too=True))
    assert "rank 3" in error.message
    assert "flatten" in error.hint


@pytest.mark.req("N-144")
@pytest.mark.parametrize(
    ("window", "coordinates"),
    [
        (([0, 0], [256, 512]), [[0, 0, 0, 0, 0], [1, 16, 16, 16, 32]]),
        (([256, 0], [256, 512]), [[0, 0, 16, 0, 0], [1, 16, 16, 16, 32]]),
        (([0, 512], [256, 512]), [[0, 16, 0, 0, 0], [1, 16, 16, 16, 32]]),
        (([16, 32], [32, 64]), [[0, 1, 1, 0, 0], [1, 2, 2, 16, 32]]),
    ],
)
def test_each_axis_of_a_rank_2_weight(window, coordinates):
    assert load_operands(weight((2048, 4096), *window)) == coordinates


@pytest.mark.req("N-074", "N-077", "N-090")
def test_the_grouped_matmul_weight():
    before = ("for nb in pl.spmd(8):", "    n0 = nb * 256")
    loop = "    for k0 in pl.pipeline(512, 4096, 512, stage=2):"
    given = weight((2048, 4096), ["n0", "k0"], [256, 512], before=(*before, loop))
    offsets, sizes = load_operands(given)
    assert sizes == [1, 16, 16, 16, 32]
    batch, col, row, *rest = offsets
    assert (batch, rest) == (0, [0, 0])
    for dim, name, divisor in ((row, "n0", 16), (col, "k0", 32)):
        assert (dim.op, dim.lhs.name, dim.rhs) == ("//", name, ConstInt(divisor))
    assert "[0, k0 // 32, n0 // 16, 0, 0]" in print_program(blocked(given))


@pytest.mark.req("N-077", "N-078", "N-079", "N-080")
def test_an_offset_that_wraps_is_divided_as_evaluated():
    """x * 256 wraps to 0 in 32 bits: the fractal is 0, not x * 16."""
    kind = ScalarType(INT32)
    x = Var("x", kind)
    product = BinOp("*", x, ConstInt(256, INT32), INT32)
    given = weight((2048, 4096), [0, 0], [256, 512])
    item = given.functions[0]
    load = item.body[0]
    args = (load.value.args[0], tuple_of((product, 0)), *load.value.args[2:])
    body = (
        Assign(x, ConstInt(1 << 24, INT32)),
        replace(load, value=replace(load.value, args=args)),
    )
    (call,) = calls(blocked(given.with_functions((replace(item, body=body),))), "tile.load")
    (offsets,) = operands(call, 1)
    assert offsets[2] == BinOp("//", product, ConstInt(16, INT32), INT32)
    value = {x: 1 << 24}.__getitem__
    assert evaluate(offsets[2], value) == 0
    associated = BinOp("*", x, ConstInt(256 // 16, INT32), INT32)
    assert evaluate(associated, value) == 268435456 == wrap(1 << 28, INT32)
    # Nor does folding constants bring the two together.
    assert fold(BinOp("//", fold(product), ConstInt(16, INT32), INT32)) != fold(associated)


@pytest.mark.req("N-073")
def test_a_quotient_rounds_down():
    assert evaluate(BinOp("//", ConstInt(-1), ConstInt(16), INDEX), None) == -1


@pytest.mark.req("N-085", "N-089")
@pytest.mark.parametrize(
    ("offsets", "what", "divisor", "near"),
    [([8, 0], "row offset 8", 16, "0 or 16"), ([0, 48], "column offset 48", 32, "32 or 64")],
)
def test_an_offset_inside_a_fractal(offsets, what, divisor, near):
    error = refused(weight((256, 512), offsets, [16, 32]))
    assert "NZ tensor 'w'" in error.message
    assert what in error.message
    assert f"multiple of {divisor}" in error.message
    assert near in error.hint
    assert error.span is not None


LOOP = ("for nb in pl.range(0, 4, 1):",)


@pytest.mark.req("N-062", "N-075", "N-085", "N-091")
def test_an_offset_of_unknown_alignment():
    error = refused(weight((256, 512), ["n0", 0], [16, 32], before=(*LOOP, "    n0 = nb * 8")))
    assert "row offset n0, which is not provably a multiple of 16" in error.message
    assert "no factor of (nb * 8)" in error.message
    for form in ("sums and products", "for loops", "min and max", "get_block_idx", "constants"):
        assert form in error.hint


@pytest.mark.req("N-043", "N-075")
def test_an_offset_that_is_a_parameter():
    error = refused(weight((512, 512), ["p", 0], [256, 512], params=", p: pl.Scalar[pl.INDEX]"))
    assert "'p' is a parameter, of which nothing is known" in error.message


@pytest.mark.req("N-071", "N-081", "N-085", "N-092")
def test_an_offset_of_unknown_sign():
    error = refused(
        weight((1024, 512), ["n0", 0], [256, 512], before=(*LOOP, "    n0 = (nb - 1) * 256"))
    )
    assert "not provably non-negative" in error.message
    assert "(nb - 1) is a difference" in error.message
    assert "read as 0" in error.hint


@pytest.mark.req("N-081", "N-082")
def test_negative_literals_and_names_are_refused_alike():
    literal = weight((512, 512), [0, 0], [256, 512])
    (load,) = literal.functions[0].body
    args = (load.value.args[0], tuple_of((-16, 0)), *load.value.args[2:])
    body = (replace(load, value=replace(load.value, args=args)),)
    literal = literal.with_functions((replace(literal.functions[0], body=body),))
    assert "row offset -16" in refused(literal).message
    named = refused(weight((512, 512), ["n0", 0], [256, 512], before=("n0 = -16",)))
    assert "not provably non-negative" in named.message
    assert "the constant -16" in named.message


@pytest.mark.req("N-076")
def test_a_carried_offset_is_refused_and_the_loop_variable_is_not():
    load = "pl.tile.load(w, [{}, 0], [16, 32], target_memory=pl.Mem.Mat)"
    carried = kernel(
        f"w: {tensor((64, 32))}",
        "for i, (off,) in pl.range(4, init_values=(0,)):",
        f"    wt = {load.format('off')}",
        "    off1 = off + 16",
        "    last = pl.yield_(off1)",
    )
    assert "'off' is a value carried by a loop" in refused(carried).message
    plain = kernel(
        f"w: {tensor((64, 32))}",
        "for i in pl.range(4):",
        "    n0 = i * 16",
        f"    wt = {load.format('n0')}",
    )
    assert load_operands(plain)[1] == [1, 1, 1, 16, 32]


@pytest.mark.req("N-098")
def test_only_mat_takes_nz():
    to_vec = weight((256, 512), [0, 0], [16, 32], space="pl.Mem.Vec")
    error = refused(to_vec)
    assert "is loaded into Vec" in error.message
    assert "Mat" in error.hint
    (load,) = to_vec.functions[0].body
    body = (replace(load, value=replace(load.value, kwargs=())),)
    unset = to_vec.with_functions((replace(to_vec.functions[0], body=body),))
    assert "is loaded without target_memory" in refused(unset).message


@pytest.mark.req("N-120", "N-121", "N-122")
def test_leading_offsets_of_any_kind_fold():
    params = ", g: pl.Scalar[pl.INDEX], e: pl.Scalar[pl.INDEX]"
    given = weight((2, 3, 256, 512), ["g", "e", 0, 0], [1, 1, 256, 512], params=params)
    offsets, sizes = load_operands(given)
    assert sizes == [1, 16, 16, 16, 32]
    assert evaluate(offsets[0], lambda var: {"g": 1, "e": 2}[var.name]) == 5
    offsets, _ = load_operands(weight((2, 3, 256, 512), [1, 2, 0, 0], [1, 1, 256, 512]))
    assert offsets == [5, 0, 0, 0, 0]


def test_several_planes_at_once_only_if_they_follow_each_other():
    given = weight((2, 3, 32, 64), [1, 0, 0, 0], [1, 3, 32, 64], tile=(96, 64))
    assert load_operands(given) == [[3, 0, 0, 0, 0], [3, 2, 2, 16, 32]]
    error = refused(weight((2, 3, 32, 64), [0, 1, 0, 0], [2, 1, 32, 64], tile=(64, 64)))
    assert "window of [2, 1] planes of [2, 3]" in error.message


# --- valid extents -----------------------------------------------------------------------------


@pytest.mark.req("N-066", "N-106")
def test_the_last_tile_may_have_fewer_fractals():
    before = ("for o0 in pl.range(0, 800, 256):", "    rows = pl.min(800 - o0, 256)")
    given = weight((800, 512), ["o0", 0], [256, 512], ["rows", 512], before=before)
    offsets, sizes, valid = load_operands(given)
    assert sizes == [1, 16, 16, 16, 32]
    assert (offsets[2].op, offsets[2].lhs.name, offsets[2].rhs.value) == ("//", "o0", 16)
    assert (valid[2].op, valid[2].lhs.name, valid[2].rhs.value) == ("//", "rows", 16)
    assert [*valid[:2], *valid[3:]] == [1, 16, 16, 32]


@pytest.mark.req("N-066", "N-071")
def test_what_suffices_for_a_count_does_not_for_an_offset():
    before = ("for o0 in pl.range(0, 800, 16):", "    rows = pl.min(800 - o0, 256)")
    error = refused(weight((1024, 512), ["rows", 0], [16, 512], before=before))
    assert "(800 - o0) is a difference" in error.message


@pytest.mark.req("N-085", "N-107")
def test_rows_that_may_end_inside_a_fractal():
    before = ("for o0 in pl.range(0, 800, 16):", "    rows = pl.min(n - o0, 256)")
    params = ", n: pl.Scalar[pl.INDEX]"
    error = refused(
        weight((800, 512), ["o0", 0], [256, 512], ["rows", 512], before=before, params=params)
    )
    assert "rows valid rows, which may end inside a fractal" in error.message
    assert "'n' is a parameter" in error.message


@pytest.mark.req("N-107")
@pytest.mark.parametrize(("valid", "what"), [([40, 512], "40 rows"), ([64, 40], "40 columns")])
def test_static_valid_extents_are_whole_fractals(valid, what):
    error = refused(weight((256, 512), [0, 0], [64, 512], valid))
    assert what in error.message


def test_dynamic_columns_are_proven_too():
    loop = ("for c in pl.range(32, 512, 32):",)
    given = weight((256, 512), [0, 0], [64, 512], [64, "c"], before=loop)
    assert load_operands(given)[2][1].rhs.value == 32
    loop = ("for c in pl.range(16, 512, 16):",)
    error = refused(weight((256, 512), [0, 0], [64, 512], [64, "c"], before=loop))
    assert "multiple of 32" in error.message


@pytest.mark.req("N-005", "N-116")
def test_padded_columns_may_overhang_the_tensor():
    given = weight((64, 24), [0, 0], [64, 32], [64, 24], dtype="FP32")
    assert load_operands(given)[1:] == [[1, 4, 4, 16, 8], [1, 3, 4, 16, 8]]


def test_rows_of_several_planes_are_loaded_whole():
    given = weight((4, 32, 64), [0, 0, 0], [2, 32, 64], [2, 16, 64], tile=(64, 64))
    assert "16 of 32 rows of several planes" in refused(given).message


def test_a_tile_of_another_box_order_is_refused():
    given = weight((256, 512), [0, 0], [64, 512])
    (load,) = given.functions[0].body
    kind = load.value.type.with_view(blayout=TileLayout.row_major, slayout=TileLayout.col_major)
    body = (replace(load, value=replace(load.value, result_type=kind)),)
    broken = given.with_functions((replace(given.functions[0], body=body),))
    assert "another box order" in refused(broken).message


def test_clamped_loads_are_refused():
    given = kernel(
        f"w: {tensor((64, 64))}",
        "wt = pl.tile.load(w, [0, 0], [64, 64], target_memory=pl.Mem.Mat, clamp=True)",
    )
    assert "clamp=True" in refused(given).message


# --- the row gap ---------------------------------------------------------------------------------


class TestRowGap:
    """The guard against pto-isa#317; to be removed with it."""

    @pytest.mark.req("N-110", "N-113", "N-114", "N-119")
    @pytest.mark.parametrize(
        ("rows", "tile", "gap", "accepted"),
        [(65536, 16, 65520, True), (65552, 16, 65536, False), (65552, 32, 65520, True)],
    )
    @pytest.mark.parametrize("target", [A2A3, A5], ids=lambda target: target.name)
    def test_rows_and_row_tiles(self, rows, tile, gap, accepted, target):
        given = weight((rows, 64), [0, 0], [tile, 64])
        if accepted:
            assert rows - tile == gap <= 65535
            assert blocked(given, target)
            return
        error = refused(given, target)
        assert "NZ tensor 'w'" in error.message
        assert f"skips {gap} 32-byte blocks" in error.message
        assert "at least 32 rows" in error.hint
        assert "[LAYERS, R, C]" in error.hint

    @pytest.mark.req("N-111", "N-112")
    @pytest.mark.parametrize("dtype", ["INT8", "FP16", "FP32"])
    def test_the_gap_depends_on_rows_only(self, dtype):
        cols = 64 if dtype == "INT8" else 32
        assert (
            "skips 65536" in refused(weight((65552, cols), [0, 0], [16, cols], dtype=dtype)).message
        )
        # (gStride1 - gShape2 * gShape3 * gShape4) * sizeof(T) / 32 with R = 256, TR = 64
        size, c0 = {"INT8": (1, 32), "FP16": (2, 16), "FP32": (4, 8)}[dtype]
        assert (256 * c0 - 64 // 16 * 16 * c0) * size // 32 == 192 == 256 - 64

    @pytest.mark.req("N-115")
    def test_stacking_on_a_leading_axis_avoids_it(self):
        given = weight((17, 3856, 64), [3, 16, 0], [1, 16, 64])
        assert load_operands(given) == [[3, 0, 1, 0, 0], [1, 2, 1, 16, 32]]

    @pytest.mark.req("N-116")
    def test_the_valid_window_is_measured(self):
        error = refused(weight((65552, 64), [0, 0], [32, 64], [16, 64]))
        assert "skips 65536" in error.message

    @pytest.mark.req("N-117")
    def test_dynamic_rows_count_as_none(self):
        loop = ("for r in pl.range(16, 32, 16):",)
        assert blocked(weight((65520, 64), [0, 0], [32, 64], ["r", 64], before=loop))
        error = refused(weight((65536, 64), [0, 0], [32, 64], ["r", 64], before=loop))
        assert "takes a dynamic number of" in error.message
        assert "skips 65536" in error.message

    @pytest.mark.req("N-118")
    def test_one_column_block_is_exempt(self):
        assert load_operands(weight((65552, 64), [0, 32], [16, 32]))[0] == [0, 1, 0, 0, 0]
        assert load_operands(weight((65552, 64), [0, 0], [16, 64], [16, 32]))[2][1] == 1
        loop = ("for c in pl.range(0, 64, 32):",)
        assert (
            "column blocks"
            in refused(weight((65552, 64), [0, 0], [16, 64], [16, "c"], before=loop)).message
        )

    @pytest.mark.req("N-113", "N-119")
    def test_the_guard_is_one_function(self):
        check_row_gap(65552, 32, 2, A2A3, Named("w"))
        with pytest.raises(NzError, match="'w' has 65552 rows"):
            check_row_gap(65552, 16, 2, A2A3, Named("w"))
