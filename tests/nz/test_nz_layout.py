"""Blocked shapes and strides of NZ tensors, and what has none."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.errors import LoweringError, NzError
from pypto_egg.ir.dtype import (
    BF16,
    BOOL,
    DTYPES,
    FP4,
    FP16,
    FP32,
    HF4,
    INDEX,
    INT4,
    INT8,
    INT16,
    UINT4,
)
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.expr import Var
from pypto_egg.ir.types import ScalarType, TensorType, TensorView, TupleType, tensor_type
from pypto_egg.nz import pack
from pypto_egg.nz.layout import (
    Named,
    block_type,
    blocked_shape,
    blocked_strides,
    c0_elems,
    fold_offsets,
    fold_window,
    has_blocked_form,
    matrix_of,
)
from pypto_egg.ops.tensor_shape import packed_strides
from pypto_egg.source import Source, Span

BYTES = [d for d in DTYPES.values() if d.bits >= 8 and d.kind != "opaque"]


def symbol(name):
    return Var(name, ScalarType(INDEX))


def nz(shape, dtype, **view):
    return tensor_type(shape, dtype, TensorView(layout=TensorLayout.NZ, **view))


@pytest.mark.req("N-005")
@pytest.mark.parametrize(
    ("dtype", "elems"), [(INT8, 32), (FP32, 8), (FP16, 16), (BF16, 16), (INT16, 16)], ids=str
)
def test_a_line_holds_32_bytes(dtype, elems):
    assert c0_elems(dtype) == elems


@pytest.mark.req("N-006", "N-010", "N-022", "N-023", "N-093", "N-094", "N-095", "N-120", "N-126")
@pytest.mark.parametrize(
    ("logical", "dtype", "blocked"),
    [
        ([48, 64], FP16, [1, 4, 3, 16, 16]),
        ([256, 512], INT8, [1, 16, 16, 16, 32]),
        ([64, 16], FP32, [1, 2, 4, 16, 8]),
        ([32, 2048, 4096], INT8, [32, 128, 128, 16, 32]),
        ([2, 3, 256, 512], INT8, [6, 16, 16, 16, 32]),
        ([8, 4, 256, 512], INT8, [32, 16, 16, 16, 32]),
        ([2, 2, 2, 16, 32], INT8, [8, 1, 1, 16, 32]),
        ([48, 40], FP32, [1, 5, 3, 16, 8]),
    ],
)
def test_blocked_shape(logical, dtype, blocked):
    assert list(blocked_shape(logical, dtype)) == blocked


@pytest.mark.req("N-007", "N-012", "N-120")
@pytest.mark.parametrize(
    ("logical", "dtype", "strides"),
    [
        ([48, 64], FP16, [3072, 768, 256, 16, 1]),
        ([256, 512], INT8, [131072, 8192, 512, 32, 1]),
        ([64, 16], FP32, [1024, 512, 128, 8, 1]),
        ([2, 3, 256, 512], INT8, [131072, 8192, 512, 32, 1]),
    ],
)
def test_blocked_strides(logical, dtype, strides):
    assert list(blocked_strides(logical, dtype)) == strides


planes = st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from(BYTES))


@pytest.mark.req("N-007", "N-012", "N-013")
@given(planes, st.lists(st.integers(1, 4), max_size=3))
def test_strides_are_the_row_major_ones_of_the_blocked_shape(plane, leading):
    rows, cols, dtype = plane[0] * 16, plane[1] * (256 // plane[2].bits), plane[2]
    c0 = 256 // dtype.bits
    shape = (*leading, rows, cols)
    assert blocked_strides(shape, dtype) == (cols * rows, rows * c0, 16 * c0, c0, 1)
    assert blocked_strides(shape, dtype) == packed_strides(
        blocked_shape(shape, dtype), TensorLayout.ND
    )
    assert prod(blocked_shape(shape, dtype)) == prod(shape)


@pytest.mark.req("N-015")
def test_two_strides_describe_no_plane_of_several_lines():
    """Row and column steps of the addresses of a logical plane are not constant."""
    rows, cols = 48, 64
    packed = np.argsort(pack(np.arange(rows * cols, dtype=np.int16).reshape(rows, cols)).ravel())
    address = packed.reshape(rows, cols)
    assert len(set(np.diff(address, axis=0).ravel())) == 1
    assert len(set(np.diff(address, axis=1).ravel())) == 2
    assert len(blocked_strides((rows, cols), INT16)) == 5


@pytest.mark.req("N-008", "N-009")
def test_address_of_an_element_read_inside_out():
    strides = blocked_strides((256, 512), INT8)

    def address(r, c):
        return sum(
            i * s for i, s in zip((0, c // 32, r // 16, r % 16, c % 32), strides, strict=True)
        )

    assert address(17, 33) == 8192 + 512 + 32 + 1 == 8737
    # A tile with column-major blocks of row-major 16 x 32 boxes has the same order.
    block_rows = 256 // 16
    for r, c in [(0, 0), (17, 33), (255, 511), (100, 300)]:
        box = (c // 32) * block_rows + r // 16
        assert address(r, c) == (box * 16 + r % 16) * 32 + c % 32


@pytest.mark.req("N-124")
def test_the_batch_of_a_rank_3_tensor_may_be_dynamic():
    b = symbol("b")
    assert blocked_shape((b, 256, 512), INT8) == (b, 16, 16, 16, 32)


def refused(shape, dtype):
    with pytest.raises(NzError) as caught:
        blocked_shape(shape, dtype, Named("w"))
    assert caught.value.code == "E410"
    assert "NZ tensor 'w'" in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.req("N-085", "N-086")
def test_a_part_of_a_fractal_has_no_form():
    error = refused((40, 64), INT8)
    assert "40 rows" in error.message
    assert "multiple of 16" in error.message
    assert "48" in error.hint


@pytest.mark.req("N-085", "N-087")
def test_a_part_of_a_line_has_no_form():
    error = refused((48, 40), INT8)
    assert "40 columns" in error.message
    assert "multiple of 32" in error.message
    assert "64" in error.hint
    assert blocked_shape((48, 40), FP32)


@pytest.mark.req("N-088")
@pytest.mark.parametrize(("shape", "what"), [(("n", 512), "rows, n"), ((256, "k"), "columns, k")])
def test_a_dynamic_plane_is_refused(shape, what):
    error = refused(tuple(symbol(d) if isinstance(d, str) else d for d in shape), INT8)
    assert f"dynamic number of {what}" in error.message


@pytest.mark.req("N-096")
def test_rank_1_is_refused():
    assert "rank 1" in refused((4096,), INT8).message


@pytest.mark.req("N-097", "N-123")
@pytest.mark.parametrize(("shape", "axis"), [(("g", 3, 256, 512), 0), ((3, "g", 256, 512), 1)])
def test_a_dynamic_extent_cannot_be_folded(shape, axis):
    error = refused(tuple(symbol(d) if isinstance(d, str) else d for d in shape), INT8)
    assert f"dynamic extent g on axis {axis}" in error.message
    assert "rank 3" in error.hint


@pytest.mark.req("N-135", "N-136")
@pytest.mark.parametrize("dtype", [INT4, UINT4, HF4, BOOL, FP4], ids=str)
def test_elements_below_a_byte_are_refused(dtype):
    error = refused((256, 512), dtype)
    assert dtype.name in error.message
    assert "8 bits" in error.message


@pytest.mark.req("N-137")
def test_the_error_stands_at_the_annotation():
    source = Source("kernel.py", "w: pl.Tensor[[40, 64], pl.INT8, pl.NZ]")
    span = Span(source, 1, 1)
    with pytest.raises(LoweringError) as caught:
        block_type(nz((40, 64), INT8), Named("w", span))
    assert str(caught.value).startswith("kernel.py:1:1: E410")


@pytest.mark.req("N-014", "N-022")
def test_types_change_their_shape_only():
    kind = block_type(nz((256, 512), INT8))
    assert isinstance(kind, TensorType)
    assert kind.shape == (1, 16, 16, 16, 32)
    assert kind.view == TensorView(layout=TensorLayout.NZ)
    assert has_blocked_form(kind)
    plain = tensor_type((256, 512), INT8)
    assert block_type(plain) is plain
    assert block_type(TupleType((plain, nz((256, 512), INT8)))) == TupleType((plain, kind))


@pytest.mark.req("N-105")
def test_strides_and_partial_tensors_are_refused():
    with pytest.raises(NzError, match=r"'w' states the strides \[1024, 1\]"):
        block_type(nz((256, 512), INT8, stride=(1024, 1)), Named("w"))
    with pytest.raises(NzError, match=r"valid only in \[240, 512\] of \[256, 512\]"):
        block_type(nz((256, 512), INT8, valid_shape=(240, 512)), Named("w"))


@pytest.mark.req("N-108")
def test_distributed_tensors_are_refused():
    view = TensorView(layout=TensorLayout.NZ)
    with pytest.raises(NzError, match="'w' is a distributed tensor"):
        block_type(tensor_type((256, 512), INT8, view, distributed=True), Named("w"))


@pytest.mark.req("N-139")
def test_a_logical_shape_may_look_blocked():
    logical = nz((2, 2, 2, 16, 32), INT8)
    assert has_blocked_form(logical)
    assert block_type(logical).shape == (8, 1, 1, 16, 32)


@pytest.mark.req("N-121", "N-122")
def test_leading_offsets_fold_row_major():
    assert fold_offsets((1, 2), (2, 3)) == 5
    assert fold_offsets((), ()) == 0
    g, e = symbol("g"), symbol("e")
    folded = fold_offsets((g, e), (2, 3))
    assert (folded.op, folded.rhs) == ("+", e)
    assert (folded.lhs.op, folded.lhs.lhs, folded.lhs.rhs.value) == ("*", g, 3)


def test_windows_of_several_planes_must_be_contiguous():
    about = Named("w")
    assert fold_window((1, 1), (2, 3), about) == 1
    assert fold_window((1, 2), (2, 3), about) == 2
    assert fold_window((2, 3), (2, 3), about) == 6
    assert fold_window((), (), about) == 1
    with pytest.raises(NzError, match=r"window of \[2, 1\] planes of \[2, 3\]"):
        fold_window((2, 1), (2, 3), about)


@pytest.mark.req("N-025")
def test_the_matrix_of_a_blocked_window():
    assert matrix_of((1, 16, 16, 16, 32)) == (256, 512)
    assert matrix_of((2, 4, 3, 16, 8)) == (96, 32)
