"""Write-back of accumulators to NZ tensors: coordinates, and every condition of its table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nz_programs import A2A3, A5, blocked, calls, kernel, operands, out, refused

from pypto_egg.errors import CapacityError, NzError
from pypto_egg.ir.dtype import FP32
from pypto_egg.ir.enums import AtomicType
from pypto_egg.ir.expr import ConstInt
from pypto_egg.nz import check_actual_stores
from pypto_egg.nz.layout import blocked_strides


def store(
    tile, offsets, target, *, window="", dtype="FP32", out_dtype="FP32", space="Acc", before=(),
    params="",
):  # fmt: skip
    """A kernel that stores an accumulator of extents `tile` to an NZ tensor `o`."""
    at = str(offsets).replace("'", "")
    pad = "    " * sum(line.rstrip().endswith(":") for line in before)
    return kernel(
        f"o: {out(target, out_dtype)}{params}",
        f"acc = pl.tile.create({list(tile)}, dtype=pl.{dtype}, target_memory=pl.Mem.{space})",
        *before,
        f"{pad}o1 = pl.tile.store(acc, {at}, o{window})",
    )


def with_store(given, **changes):
    """The program with its last call, the store, changed."""
    *body, stmt = given.functions[0].body
    body.append(replace(stmt, value=replace(stmt.value, **changes)))
    return given.with_functions((replace(given.functions[0], body=tuple(body)),))


def stored(given):
    """Offsets and partition of the store of a blocked program."""
    (call,) = calls(blocked(given), "tile.store")
    return operands(call, 1, 3)


@pytest.mark.req("N-029", "N-031", "N-032", "N-033", "N-036", "N-103")
def test_a_whole_tile():
    given = store((64, 16), [0, 0], (64, 16))
    assert stored(given) == [[0, 0, 0, 0, 0], [1, 2, 4, 16, 8]]
    assert blocked_strides((64, 16), FP32) == (1024, 512, 128, 8, 1)


@pytest.mark.req("N-030")
def test_no_kernel_and_no_statement_is_added():
    given = store((64, 16), [0, 0], (64, 16))
    result = blocked(given)
    assert len(result.functions) == len(given.functions) == 1
    assert len(result.functions[0].body) == len(given.functions[0].body) == 2


@pytest.mark.req("N-034")
def test_the_result_is_the_target():
    result = blocked(store((64, 16), [0, 0], (64, 16)))
    (call,) = calls(result, "tile.store")
    target = result.functions[0].params[0].var
    assert call.args[2] is target
    assert call.type == target.type == result.functions[0].body[-1].var.type
    assert target.type.shape == (1, 2, 4, 16, 8)


@pytest.mark.req("N-029", "N-035")
def test_tile_keywords_and_attributes_are_kept():
    given = with_store(
        store((64, 16), [0, 0], (64, 16)),
        kwargs=(("atomic", AtomicType.None_),),
        attrs=(("st_phase", "Final"),),
    )
    (before,) = calls(given, "tile.store")
    (after,) = calls(blocked(given), "tile.store")
    assert after.args[0] is before.args[0]
    assert (after.kwargs, after.attrs) == (before.kwargs, before.attrs)


@pytest.mark.req("N-040", "N-042", "N-056")
@pytest.mark.parametrize(
    ("tile", "offsets", "target", "coordinates"),
    [
        ((128, 16), [0, 16], (128, 32), [[0, 2, 0, 0, 0], [1, 2, 8, 16, 8]]),
        ((64, 16), [0, 40], (64, 64), [[0, 5, 0, 0, 0], [1, 2, 4, 16, 8]]),
        ((64, 512), [0, 512], (64, 1024), [[0, 64, 0, 0, 0], [1, 64, 4, 16, 8]]),
    ],
)
def test_columns_of_a_wider_target(tile, offsets, target, coordinates):
    assert stored(store(tile, offsets, target)) == coordinates


@pytest.mark.req("N-041", "N-059")
def test_one_panel_of_several():
    expected = [[3, 0, 0, 0, 0], [1, 2, 4, 16, 8]]
    panel = ", [1, 64, 16]"
    assert stored(store((64, 16), [3, 0, 0], (4, 64, 16), window=panel)) == expected
    params = ", p: pl.Scalar[pl.INDEX]"
    given = store((64, 16), ["p", 0, 0], (4, 64, 16), window=panel, params=params)
    offsets, partition = stored(given)
    assert (offsets[0].name, offsets[1:], partition) == ("p", [0, 0, 0, 0], expected[1])


@pytest.mark.req("N-043", "N-090")
def test_a_column_offset_with_a_proof():
    loop = ("for nb in pl.range(4):", "    n0 = nb * 16")
    offsets, partition = stored(store((64, 16), [0, "n0"], (64, 64), before=loop))
    assert (offsets[1].op, offsets[1].lhs.name, offsets[1].rhs) == ("//", "n0", ConstInt(8))
    assert [offsets[0], *offsets[2:]] == [0, 0, 0, 0]
    assert partition == [1, 2, 4, 16, 8]


@pytest.mark.req("N-043", "N-092")
@pytest.mark.parametrize(
    ("before", "name", "problem"),
    [
        ((), "p", "not provably a multiple of 8"),
        (("n0 = p * 16",), "n0", "not provably non-negative"),
        (("n0 = -8",), "n0", "not provably non-negative"),
    ],
)
def test_a_column_offset_without_a_proof(before, name, problem):
    params = ", p: pl.Scalar[pl.INDEX]"
    given = store((64, 16), [0, name], (64, 64), before=before, params=params)
    assert problem in refused(given).message


@pytest.mark.req("N-042")
@pytest.mark.parametrize("offset", [36, -8])
def test_column_offsets_that_are_no_column_block(offset):
    given = store((64, 16), [0, 0], (64, 64))
    (call,) = calls(given, "tile.store")
    moved = replace(call.args[1], items=(ConstInt(0), ConstInt(offset)))
    given = with_store(given, args=(call.args[0], moved, *call.args[2:]))
    assert f"column offset {offset}" in refused(given).message


@pytest.mark.req("N-036", "N-044")
@pytest.mark.parametrize(
    ("dtype", "out_dtype"), [("INT32", "INT32"), ("FP32", "FP16"), ("INT32", "FP32")]
)
def test_only_fp32_to_fp32(dtype, out_dtype):
    error = refused(store((64, 32), [0, 0], (64, 32), dtype=dtype, out_dtype=out_dtype))
    assert f"of {out_dtype} is written from an accumulator of {dtype}" in error.message


@pytest.mark.req("N-037", "N-046")
@pytest.mark.parametrize("tile", [(64, 24), (64, 8)])
def test_columns_are_multiples_of_16_even_in_one_column_block(tile):
    error = refused(store(tile, [0, 0], (64, 64)))
    assert f"tile of 64 x {tile[1]}" in error.message
    assert "multiples of 16" in error.message


@pytest.mark.req("N-037")
def test_rows_are_multiples_of_16():
    assert "tile of 60 x 16" in refused(store((60, 16), [0, 0], (64, 16))).message


def narrowed(valid, params="", before=()):
    return kernel(
        f"o: {out((64, 16))}{params}",
        *before,
        "acc = pl.tile.create([64, 16], dtype=pl.FP32, target_memory=pl.Mem.Acc)",
        f"part = pl.tile.set_validshape(acc, {valid})",
        "o1 = pl.tile.store(part, [0, 0], o)",
    )


@pytest.mark.req("N-037", "N-045")
def test_partly_valid_tiles_are_refused_by_their_valid_shape():
    assert "valid in [48, 16] of [64, 16]" in refused(narrowed("48, 16")).message
    dynamic = narrowed("m, 16", params=", m: pl.Scalar[pl.INDEX]")
    assert "valid in [m, 16] of [64, 16]" in refused(dynamic).message


@pytest.mark.req("N-029", "N-036", "N-045")
def test_a5_writes_no_nz():
    given = store((64, 16), [0, 0], (64, 16))
    assert blocked(given, A2A3)
    error = refused(given, A5)
    assert "is written on a5" in error.message
    assert "a2a3" in error.message


@pytest.mark.req("N-045")
@pytest.mark.parametrize("space", ["Vec", "Mat"])
def test_only_accumulators_are_written(space):
    given = store((64, 16), [0, 0], (64, 16))
    (call,) = calls(given, "tile.store")
    other = store((64, 16), [0, 0], (64, 16), space=space) if space == "Vec" else None
    if other is None:  # the operator takes no Mat tile, so the program is made by hand
        mat = next(calls(kernel(
            "x: pl.Tensor[[64, 16], pl.FP32]",
            "m = pl.tile.load(x, [0, 0], [64, 16], target_memory=pl.Mem.Mat)",
        ), "tile.load"))  # fmt: skip
        other = with_store(given, args=(mat, *call.args[1:]))
    assert f"from a tile in {space}" in refused(other).message


@pytest.mark.req("N-044")
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"kwargs": (("atomic", AtomicType.Add),)}, "atomic=Add"),
        ({"kwargs": (("pre_quant", "deq"),)}, "pre_quant=deq"),
        ({"attrs": (("pre_relu", True),)}, "pre_relu=True"),
        ({"attrs": (("pre_quant_scalar", 0.5),)}, "pre_quant_scalar=0.5"),
    ],
)
def test_nothing_happens_to_the_values_on_the_way(changes, named):
    given = with_store(store((64, 16), [0, 0], (64, 16)), **changes)
    assert f"is written with {named}" in refused(given).message


@pytest.mark.req("N-040", "N-057", "N-058", "N-059", "N-085")
@pytest.mark.parametrize("row", [0, 64])
def test_a_part_of_the_rows_is_refused(row):
    error = refused(store((64, 16), [row, 0], (128, 32)))
    assert f"of 128 rows is written in 64 rows from row {row}" in error.message
    assert "[PANELS, R, C]" in error.hint
    # Column blocks of the target are 1024 elements apart; the store would step by 64 * 8.
    strides = blocked_strides((128, 32), FP32)
    assert (strides[1], 64 * 8) == (1024, 512)


@pytest.mark.req("N-059")
def test_panels_stacked_by_rows_are_refused():
    assert "[PANELS, R, C]" in refused(store((64, 16), [64, 0], (256, 16))).hint


@pytest.mark.req("N-041", "N-060")
def test_two_panels_at_once_are_refused():
    given = store((128, 16), [0, 0, 0], (4, 64, 16), window=", [2, 64, 16]")
    assert "window of [2, 64, 16] from a tile of 128 x 16" in refused(given).message
    given = with_store(store((64, 16), [0, 0, 0], (4, 64, 16), window=", [1, 64, 16]"))
    (call,) = calls(given, "tile.store")
    window = replace(call.args[3], items=(ConstInt(2), ConstInt(64), ConstInt(16)))
    error = refused(with_store(given, args=(*call.args[:3], window)))
    assert "[2] panels at once" in error.message


def test_a_window_beyond_the_target_is_refused():
    given = store((64, 16), [0, 0], (64, 16))
    (call,) = calls(given, "tile.store")
    at = replace(call.args[1], items=(ConstInt(0), ConstInt(8)))
    given = with_store(given, args=(call.args[0], at, *call.args[2:]))
    assert "beyond its end" in refused(given).message
    flat = store((64, 16), [64, 0], (4, 64, 16))
    assert "one offset for each axis" in refused(flat).hint


# --- what is checked on stores that are emitted --------------------------------------------------


@pytest.mark.req("N-021", "N-048", "N-053", "N-055")
def test_a_result_larger_than_l0c_passes_here_and_is_refused_when_it_is_emitted():
    large = blocked(store((64, 1024), [0, 0], (64, 1024)))
    with pytest.raises(CapacityError) as caught:
        check_actual_stores(large, A2A3)
    assert "262144 bytes; L0C has 131072" in caught.value.message
    assert "'o'" in caught.value.message


@pytest.mark.req("N-039", "N-053")
def test_what_l0c_holds():
    check_actual_stores(blocked(store((64, 512), [0, 0], (64, 100000))), A2A3)
    with pytest.raises(CapacityError, match="135168 bytes"):
        check_actual_stores(blocked(store((64, 528), [0, 0], (64, 1056))), A2A3)


@pytest.mark.req("N-038")
@pytest.mark.parametrize(
    ("tile", "accepted"),
    [((65520, 16), True), ((65536, 16), False), ((16, 4080), True), ((16, 4096), False)],
)
def test_what_the_fields_of_a_store_hold(tile, accepted):
    roomy = A2A3.with_(**{"memory.Acc.usable_bytes": 1 << 30})
    given = blocked(store(tile, [0, 0], tile), roomy)
    if accepted:
        check_actual_stores(given, roomy)
        return
    with pytest.raises(NzError, match="65520 rows and 4080 columns"):
        check_actual_stores(given, roomy)


def test_other_stores_are_no_concern():
    plain = kernel(
        f"o: {out((64, 1024), layout='')}",
        "acc = pl.tile.create([64, 1024], dtype=pl.FP32, target_memory=pl.Mem.Acc)",
        "o1 = pl.tile.store(acc, [0, 0], o)",
    )
    check_actual_stores(plain, A2A3)
    assert blocked(plain) == plain
