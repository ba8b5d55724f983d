"""Broadcasting and valid regions, checked against sets of element positions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pypto_egg.errors import TypeCheckError
from pypto_egg.ir.dtype import BF16, FP16, FP32, INDEX, INT32, UINT32
from pypto_egg.ir.enums import Mem, PadValue, TensorLayout
from pypto_egg.ir.expr import BinOp, ConstInt, Var, tuple_of
from pypto_egg.ir.types import ScalarType, TensorView, TileView, tensor_type, tile_type
from pypto_egg.ops.registry import make_call


def tensor(shape, dtype=FP32, name="x", distributed=False, **view):
    given_view = TensorView(**view) if view else None
    return Var(name, tensor_type(tuple(shape), dtype, given_view, distributed=distributed))


def tile(shape, dtype=FP32, space=Mem.Vec, valid=None, name="t"):
    plain = tile_type(tuple(shape), dtype, space)
    return Var(name, plain if valid is None else plain.with_view(valid_shape=tuple(valid)))


def index(name):
    return Var(name, ScalarType(INDEX))


EXTENT = st.integers(1, 6)
SHAPES = st.lists(EXTENT, min_size=1, max_size=3).map(tuple)


@given(SHAPES, SHAPES)
def test_shapes_broadcast_as_in_numpy(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        expected = None
    args = (tensor(a, name="a"), tensor(b, name="b"))
    if expected is None:
        with pytest.raises(TypeCheckError, match=r"operand 'rhs' \(b\) .* does not broadcast"):
            make_call("tensor.add", args)
    else:
        assert make_call("tensor.add", args).type == tensor_type(expected, FP32)


def test_symbolic_dimensions_broadcast_when_they_are_provably_equal():
    n, m = index("n"), index("m")
    same = BinOp("+", n, ConstInt(0), INDEX)
    result = make_call("tensor.mul", (tensor((n, 16)), tensor((same, 1)))).type
    assert result.shape[1] == 16
    with pytest.raises(TypeCheckError, match="m against n"):
        make_call("tensor.mul", (tensor((n, 16)), tensor((m, 16))))


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (FP16, BF16, FP16),
        (BF16, FP16, BF16),
        (INT32, FP16, FP16),
        (INT32, UINT32, INT32),
        (UINT32, INT32, INT32),
        (FP16, FP32, FP32),
    ],
)
def test_mixed_dtypes_promote(a, b, result):
    assert make_call("tensor.add", (tensor((4, 8), a), tensor((4, 8), b))).type.dtype == result


PART = {"valid_shape": (3, 8)}


class TestElementwiseTensors:
    def test_a_shared_valid_region_is_kept(self):
        args = (tensor((4, 8), **PART), tensor((4, 8), **PART))
        assert make_call("tensor.add", args).type.valid_shape == (3, 8)

    def test_different_valid_regions_make_the_result_full(self):
        args = (tensor((4, 8), **PART), tensor((4, 8)))
        assert make_call("tensor.add", args).type.valid_shape == (4, 8)

    def test_broadcast_operands_make_the_result_full(self):
        args = (tensor((4, 8), **PART), tensor((1, 8)))
        assert make_call("tensor.add", args).type.valid_shape == (4, 8)

    @pytest.mark.parametrize("op", ["part_add", "cmp"])
    def test_some_ops_never_keep_it(self, op):
        args = (tensor((4, 8), **PART), tensor((4, 8), **PART))
        assert make_call(f"tensor.{op}", args).type.view is None

    @pytest.mark.parametrize("op", ["neg", "exp", "abs"])
    def test_unary_ops_keep_it(self, op):
        source = tensor((4, 8), **PART)
        assert make_call(f"tensor.{op}", (source,)).type.valid_shape == (3, 8)

    def test_results_are_plain_packed_tensors(self):
        source = tensor((8, 4), stride=(1, 8), layout=TensorLayout.DN)
        assert make_call("tensor.exp", (source,)).type == tensor_type((8, 4), FP32)
        remote = tensor((8, 4), distributed=True, valid_shape=(2, 4))
        assert make_call("tensor.exp", (remote,)).type == tensor_type((8, 4), FP32)


class TestTileValidRegions:
    def test_the_left_operand_decides_even_when_the_result_is_larger(self):
        result = make_call("tile.add", (tile((1, 128)), tile((64, 128)))).type
        assert result.shape == (64, 128)
        assert result.valid_shape == (1, 128)

    def test_division_needs_equal_valid_regions(self):
        with pytest.raises(TypeCheckError, match=r"valid in \[8, 8\].*must provably be the same"):
            make_call("tile.div", (tile((16, 8), valid=(4, 8)), tile((16, 8), valid=(8, 8))))

    def test_row_reductions_keep_the_valid_rows(self):
        source, tmp = tile((16, 64), valid=(5, 60)), tile((16, 64))
        result = make_call("tile.row_sum", (source, tmp)).type
        assert (result.shape, result.valid_shape) == ((16, 1), (5, 1))

    def test_column_reductions_of_a_tile_collapse_axis_0_of_a_tensor_axis_minus_2(self):
        assert make_call("tile.col_max", (tile((4, 8, 16)),)).type.shape == (1, 8, 16)
        assert make_call("tensor.col_max", (tensor((4, 8, 16)),)).type.shape == (4, 1, 16)

    def test_an_empty_region_cannot_be_reduced(self):
        with pytest.raises(TypeCheckError, match=r"empty valid region \[0, 64\]"):
            make_call("tile.row_max", (tile((16, 64), valid=(0, 64)), tile((16, 64))))


# --- windows -----------------------------------------------------------------------------------

SPAN = st.tuples(EXTENT, EXTENT)


@st.composite
def windows(draw):
    shape = draw(SPAN)
    valid = tuple(draw(st.integers(0, size)) for size in shape)
    offset = tuple(draw(st.integers(0, size - 1)) for size in shape)
    extent = tuple(
        draw(st.integers(1, size - start)) for size, start in zip(shape, offset, strict=True)
    )
    return shape, valid, offset, extent


def box(valid, offset=(0, 0)):
    ranges = [range(start, start + size) for start, size in zip(offset, valid, strict=True)]
    return set(itertools.product(*ranges))


@given(windows())
def test_a_slice_is_valid_where_its_source_is(window):
    shape, valid, offset, extent = window
    source = tensor(shape, valid_shape=valid)
    result = make_call("tensor.slice", (source, tuple_of(extent), tuple_of(offset))).type
    assert result.shape == extent
    assert box(result.valid_shape, offset) == box(valid) & box(extent, offset)


@given(windows())
def test_a_load_is_valid_where_its_source_is(window):
    shape, valid, offset, extent = window
    args = (tensor(shape, valid_shape=valid), *map(tuple_of, (offset, extent, extent)))
    result = make_call("tile.load", args, {"target_memory": Mem.Vec}).type
    assert box(result.valid_shape, offset) == box(valid) & box(extent, offset)


@given(windows(), st.booleans())
def test_an_assembled_target_is_valid_in_the_union_or_the_union_is_no_box(window, on_chip):
    shape, valid, offset, part = window
    assume(all(valid))
    if on_chip:
        args = (tile(shape, valid=valid), tile(part), tuple_of(offset))
    else:
        args = (tensor(shape, valid_shape=valid), tensor(part), tuple_of(offset))
    union = box(valid) | box(part, offset)
    ends = tuple(1 + max(position[axis] for position in union) for axis in range(2))
    name = "tile.assemble" if on_chip else "tensor.assemble"
    if box(ends) == union:
        assert make_call(name, args).type.valid_shape == ends
    else:
        with pytest.raises(TypeCheckError, match=r"L-shaped|leave a gap"):
            make_call(name, args)


@given(SPAN, st.data())
def test_a_reshape_keeps_the_valid_elements_or_refuses(shape, data):
    valid = tuple(data.draw(st.integers(1, size)) for size in shape)
    count = math.prod(shape)
    rows = data.draw(st.sampled_from([r for r in range(1, count + 1) if count % r == 0]))
    target = (rows, count // rows)
    flat = {row * shape[1] + column for row, column in box(valid)}
    boxes = itertools.product(*(range(size + 1) for size in target))
    fitting = [b for b in boxes if {r * target[1] + c for r, c in box(b)} == flat]
    args = (tensor(shape, valid_shape=valid), tuple_of(target))
    if not fitting:
        with pytest.raises(TypeCheckError, match="which is no box"):
            make_call("tensor.reshape", args)
        return
    try:
        found = make_call("tensor.reshape", args).type.valid_shape
    except TypeCheckError:
        # Only flat prefixes and inserted unit dimensions are mapped.
        assert flat != set(range(len(flat)))
    else:
        assert found in fitting


def test_a_symbolic_valid_row_count_survives_a_reshape_that_keeps_rows_whole():
    n = index("n")
    source = tensor((16, 128), valid_shape=(n, 128))
    split = make_call("tensor.reshape", (source, tuple_of((16, 2, 64)))).type
    assert split.valid_shape == (n, 2, 64)
    lifted = make_call("tensor.reshape", (source, tuple_of((1, 16, 128)))).type
    assert lifted.valid_shape == (1, n, 128)
    with pytest.raises(TypeCheckError, match="fillpad"):
        make_call("tensor.reshape", (source, tuple_of((4, 512))))


def test_a_partially_valid_source_gives_a_slice_a_clipped_symbolic_region():
    n, k = index("n"), index("k")
    source = tensor((128, 64), valid_shape=(n, 64))
    result = make_call("tensor.slice", (source, tuple_of((16, 64)), tuple_of((k, 0)))).type
    left = BinOp("max", BinOp("-", n, k, INDEX), ConstInt(0), INDEX)
    assert result.valid_shape == (BinOp("min", left, ConstInt(16), INDEX), 64)


def test_slices_refuse_what_provably_leaves_the_source():
    source = tensor((32, 64))
    with pytest.raises(TypeCheckError, match="window of 16 at 24 on axis 0, beyond the extent 32"):
        make_call("tensor.slice", (source, tuple_of((16, 64)), tuple_of((24, 0))))
    with pytest.raises(TypeCheckError, match="negative on axis 1: -1"):
        make_call("tensor.slice", (source, tuple_of((16, 64)), tuple_of((0, -1))))
    inside = (source, tuple_of((16, 64)), tuple_of((24, 0)), tuple_of((8, 64)))
    assert make_call("tensor.slice", inside).type.valid_shape == (8, 64)


def test_clamp_cuts_the_window_at_the_physical_end():
    args = (tensor((32, 64)), tuple_of((16, 64)), tuple_of((24, 0)))
    assert make_call("tensor.slice", args, {"clamp": True}).type.valid_shape == (8, 64)


def test_scalar_indexed_axes_are_dropped():
    absent = tuple_of(())
    args = (tensor((32, 64)), tuple_of((1, 64)), tuple_of((3, 0)), absent, tuple_of((0,)))
    assert make_call("tensor.slice", args).type == tensor_type((64,), FP32)
    on_chip = (tile((32, 64)), *args[1:])
    assert make_call("tile.slice", on_chip).type.shape == (1, 64)
    wide = (tensor((32, 64)), tuple_of((2, 64)), tuple_of((3, 0)), absent, tuple_of((0,)))
    with pytest.raises(TypeCheckError, match="drops axis 0 of extent 2"):
        make_call("tensor.slice", wide)


def test_a_slice_of_a_fractal_tensor_stays_fractal_and_of_a_strided_one_is_plain():
    fractal = tensor((4, 256, 512), layout=TensorLayout.NZ)
    args = (fractal, tuple_of((1, 256, 512)), tuple_of((2, 0, 0)))
    assert make_call("tensor.slice", args).type.layout is TensorLayout.NZ
    strided = tensor((64, 32), stride=(1, 64), layout=TensorLayout.DN)
    plain = make_call("tensor.slice", (strided, tuple_of((16, 32)), tuple_of((0, 0)))).type
    assert plain == tensor_type((16, 32), FP32)


def test_fillpad_makes_everything_valid_and_tiles_record_the_pad():
    partial = tile((16, 64), valid=(9, 64))
    padded = make_call("tile.fillpad", (partial,), {"pad_value": PadValue.min}).type
    assert padded == tile_type((16, 64), FP32, Mem.Vec, TileView(pad=PadValue.min))
    source = tensor((16, 64), valid_shape=(9, 64))
    assert make_call("tensor.fillpad", (source,)).type == tensor_type((16, 64), FP32)
    grown = make_call("tensor.fillpad_expand", (source, tuple_of((32, 64)))).type
    assert grown.view == TensorView(pad=PadValue.zero)
