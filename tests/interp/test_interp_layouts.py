"""Byte orders of tiles and tensors against the address formulas of the fractal layouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.errors import InterpretError
from pypto_egg.interp.layout import (
    accumulator_pitch,
    nz_axes,
    order_of,
    storage_elems,
    tile_axes,
)
from pypto_egg.interp.memory import Region, poisoned_buffer
from pypto_egg.interp.poison import is_poison, numpy_dtype
from pypto_egg.interp.values import new_tensor, new_tile
from pypto_egg.ir.dtype import (
    BF16,
    FP8E4M3FN,
    FP8E5M2,
    FP8E8M0,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
)
from pypto_egg.ir.enums import CompactMode, TensorLayout, TileLayout
from pypto_egg.ir.types import TileView

ROW, COL, NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
DTYPES = [FP32, FP16, BF16, INT8, UINT8, INT16, INT32, FP8E4M3FN, FP8E5M2]
VIEWS = {
    "NZ": TileView(blayout=COL, slayout=ROW),
    "ZZ": TileView(blayout=ROW, slayout=ROW),
    "ZN": TileView(blayout=ROW, slayout=COL),
    "NN": TileView(blayout=COL, slayout=COL),
    "NZ acc": TileView(blayout=COL, slayout=ROW, fractal=1024),
    "ZZ scale": TileView(blayout=ROW, slayout=ROW, fractal=32),
    "NN scale": TileView(blayout=COL, slayout=COL, fractal=32),
}


def address(name: str, row: int, col: int, rows: int, cols: int, box: tuple[int, int]) -> int:
    """The published formulas, spelled out element by element."""
    br, bc = box
    grid_rows, grid_cols = rows // br, cols // bc
    R, r = divmod(row, br)
    C, c = divmod(col, bc)
    match name.split()[0]:
        case "NZ":
            return ((C * grid_rows + R) * br + r) * bc + c
        case "ZZ":
            return ((R * grid_cols + C) * br + r) * bc + c
        case "ZN":
            return ((R * grid_cols + C) * bc + c) * br + r
        case _:
            return ((C * grid_rows + R) * bc + c) * br + r


def random_elements(dtype, shape, seed):
    source = np.random.default_rng(seed)
    stored = numpy_dtype(dtype)
    values = source.integers(-8, 8, size=shape).astype(np.float32)
    return np.abs(values).astype(stored) if dtype is UINT8 else values.astype(stored)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(max_examples=6)
@given(grid=st.tuples(st.integers(1, 4), st.integers(1, 4)), seed=st.integers(0, 99))
def test_elements_lie_where_the_formula_says_and_come_back(name, dtype, grid, seed):
    order = order_of(VIEWS[name], dtype)
    shape = (grid[0] * order.box[0], grid[1] * order.box[1])
    tile = new_tile(shape, dtype, order, shape)
    values = random_elements(dtype, shape, seed)
    tile.region.write(values)
    raw = tile.region.buffer.elements(dtype)
    assert raw.size == values.size
    for row in range(shape[0]):
        for col in range(shape[1]):
            assert raw[address(name, row, col, *shape, order.box)] == values[row, col]
    assert np.array_equal(tile.read(), values)


@pytest.mark.parametrize(
    ("dtype", "space_view", "box"),
    [
        (FP32, "NZ", (16, 8)),
        (FP16, "NZ", (16, 16)),
        (INT8, "NZ", (16, 32)),
        (FP32, "ZN", (8, 16)),
        (INT8, "ZN", (32, 16)),
        (FP32, "NZ acc", (16, 16)),
        (INT32, "NZ acc", (16, 16)),
        (FP8E8M0, "ZZ scale", (16, 2)),
        (FP8E8M0, "NN scale", (2, 16)),
    ],
)
def test_box_shapes(dtype, space_view, box):
    assert order_of(VIEWS[space_view], dtype).box == box


@pytest.mark.parametrize("dtype", [FP32, BF16, INT8], ids=str)
def test_transposing_the_view_of_nz_bytes_is_zn(dtype):
    nz, zn = order_of(VIEWS["NZ"], dtype), order_of(VIEWS["ZN"], dtype)
    assert nz.transposed() == zn
    tile = new_tile((64, 96), dtype, nz, (64, 96))
    values = random_elements(dtype, (64, 96), 3)
    tile.region.write(values)
    read_as_zn = Region(tile.region.buffer, dtype, 0, tile_axes((96, 64), zn))
    assert np.array_equal(read_as_zn.read(), values.T)
    assert np.array_equal(tile.region.swapped(0, 1).addresses(), read_as_zn.addresses())


@pytest.mark.parametrize("view", [TileView(blayout=ROW), TileView(blayout=COL)])
def test_unboxed_tiles_are_plain_matrices(view):
    tile = new_tile((6, 8), FP32, order_of(view, FP32), (6, 8))
    values = random_elements(FP32, (6, 8), 1)
    tile.region.write(values)
    order = "C" if view.blayout is ROW else "F"
    assert np.array_equal(tile.region.buffer.elements(FP32), values.flatten(order))


def test_tile_of_rank_three_is_stored_as_a_matrix():
    order = order_of(VIEWS["NZ"], FP16)
    tile = new_tile((4, 32, 64), FP16, order, (4, 32, 64))
    values = random_elements(FP16, (4, 32, 64), 2)
    tile.region.write(values)
    flat = Region(tile.region.buffer, FP16, 0, tile_axes((128, 64), order))
    assert np.array_equal(flat.read(), values.reshape(128, 64))


def test_pages_that_split_a_box_are_refused():
    with pytest.raises(InterpretError, match="not a whole number of boxes"):
        tile_axes((4, 20, 64), order_of(VIEWS["ZZ"], FP16))


def test_partial_boxes_take_whole_boxes_of_storage():
    assert storage_elems((100, 40), order_of(VIEWS["NZ"], FP16)) == 112 * 48


@pytest.mark.req("C-152", "C-270")
def test_compact_accumulator_is_addressed_by_the_pitch_of_its_valid_rows():
    order = order_of(VIEWS["NZ acc"], FP32)
    plain = new_tile((64, 32), FP32, order, (20, 32))
    compact = plain.viewed((20, 32), CompactMode.normal, None)
    assert accumulator_pitch(20) == 32
    assert plain.region.addresses()[0, 16] == 64 * 16
    assert compact.region.addresses()[0, 16] == 32 * 16
    assert compact.region.addresses()[19, 17] == (32 + 19) * 16 + 1
    # Rows beyond the pitch have no address and read as poison.
    assert is_poison(compact.read((64, 32)))[32:].all()


@pytest.mark.req("N-005", "N-006", "N-007", "N-008")
@pytest.mark.parametrize("dtype", [FP32, FP16, INT8], ids=str)
def test_nz_tensor_is_the_blocked_row_major_array(dtype):
    c0 = 256 // dtype.bits
    shape = (3, 48, 2 * c0)
    tensor = new_tensor(shape, dtype, layout=TensorLayout.NZ)
    values = random_elements(dtype, shape, 5)
    tensor.region.write(values)
    blocked = values.reshape(3, 3, 16, 2, c0).transpose(0, 3, 1, 2, 4)
    assert np.array_equal(tensor.region.buffer.elements(dtype), blocked.reshape(-1))
    assert np.array_equal(tensor.read(), values)


@pytest.mark.req("N-008")
def test_nz_address_of_one_element():
    rows, cols = nz_axes((256, 512), INT8)
    assert rows[17] + cols[33] == 8737


@pytest.mark.req("N-010", "N-013")
def test_blocked_nz_shape_has_row_major_strides():
    axes = nz_axes((1, 16, 16, 16, 32), INT8)
    assert [int(a[1]) if a.size > 1 else None for a in axes] == [None, 8192, 512, 32, 1]


@pytest.mark.req("N-086", "N-087")
@pytest.mark.parametrize("shape", [(40, 64), (48, 40), (64,)])
def test_nz_tensor_of_partial_fractals_is_refused(shape):
    with pytest.raises(InterpretError, match="whole fractals of 16 x 16"):
        nz_axes(shape, FP16)


@pytest.mark.parametrize("shape", [(5,), (4, 6), (2, 4, 6)])
def test_dn_tensor_stores_the_last_two_axes_column_major(shape):
    tensor = new_tensor(shape, FP32, layout=TensorLayout.DN)
    values = random_elements(FP32, shape, 7)
    tensor.region.write(values)
    stored = values if len(shape) < 2 else np.swapaxes(values, -1, -2)
    assert np.array_equal(tensor.region.buffer.elements(FP32), stored.reshape(-1))


@settings(max_examples=40)
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.booleans(),
    st.sampled_from([INT64, BF16]),
)
def test_windows_and_swaps_of_regions_are_numpy_views(extent, offset, swap, dtype):
    tensor = new_tensor((8, 8), dtype)
    values = random_elements(dtype, (8, 8), 11)
    tensor.region.write(values)
    region = tensor.region.swapped(0, 1) if swap else tensor.region
    model = values.T if swap else values
    window = region.window(offset, extent)
    area = tuple(slice(o, o + e) for o, e in zip(offset, extent, strict=True))
    assert np.array_equal(window.read(), model[area])
    window.write(np.zeros(extent, dtype=numpy_dtype(dtype)))
    model[area] = 0
    assert np.array_equal(region.read(), model)


def test_fresh_storage_is_poison_and_the_two_patterns_differ():
    for dtype in (*DTYPES, INT64):
        poison = new_tensor((4,), dtype)
        undefined = new_tensor((4,), dtype, undefined=True)
        assert is_poison(poison.read()).all()
        assert is_poison(undefined.read()).all()
        assert poison.region.buffer.bytes.tobytes() != undefined.region.buffer.bytes.tobytes()


def test_region_outside_its_buffer_reads_poison():
    region = Region(poisoned_buffer(4, INT32), INT32, 0, (np.arange(4, dtype=np.int64) * 2,))
    region.buffer.elements(INT32)[:] = 7
    assert is_poison(region.read()).tolist() == [False, False, True, True]
    assert replace(region, base=-1).read()[1] == 7


@pytest.mark.parametrize("layout", [TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN])
def test_microscaling_layouts_are_refused_by_name(layout):
    with pytest.raises(InterpretError, match=layout.value):
        new_tensor((16, 4), FP8E8M0, layout=layout)
