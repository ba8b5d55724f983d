"""Packing on the host, against the address formula of NZ elements."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto_egg.nz
from pypto_egg.errors import NzError
from pypto_egg.ir.dtype import FP16, HF8, INT4
from pypto_egg.nz import pack, unpack

ELEMENTS = [
    *(np.dtype(t) for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")),
    *(np.dtype(t) for t in ("uint64", "float16", "float32", ml_dtypes.bfloat16)),
    *(np.dtype(t) for t in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)),
    np.dtype(ml_dtypes.float8_e8m0fnu),
]
arrays = st.builds(
    lambda lead, rows, cols, kind: ((*lead, 16 * rows, 32 // kind.itemsize * cols), kind),
    st.lists(st.integers(1, 3), max_size=3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(ELEMENTS),
)


def numbered(shape, kind):
    """Random bytes, so that no two elements are confused by a symmetric pattern."""
    rng = np.random.default_rng(prod(shape))
    return rng.integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8).view(kind)[..., 0]


def offset(index, shape, itemsize):
    """Where element `index` lies in an NZ tensor, in elements."""
    *lead, r, c = index
    *extents, rows, cols = shape
    c0 = 32 // itemsize
    batch = 0
    for i, extent in zip(lead, extents, strict=True):
        batch = batch * extent + i
    return batch * rows * cols + (c // c0) * rows * c0 + r * c0 + c % c0


def same_bytes(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.req("N-006", "N-008", "N-120")
@settings(max_examples=40)
@given(arrays)
def test_every_element_lies_where_the_formula_says(made):
    shape, kind = made
    array = numbered(shape, kind)
    flat = pack(array).reshape(-1)
    for index in np.ndindex(shape):
        place = offset(index, shape, kind.itemsize)
        assert flat[place].tobytes() == array[index].tobytes()


@settings(max_examples=60)
@given(arrays)
def test_unpacking_gives_the_array_back(made):
    shape, kind = made
    array = numbered(shape, kind)
    packed = pack(array)
    assert packed.flags.c_contiguous
    assert same_bytes(unpack(packed, shape), array)
    assert same_bytes(unpack(packed.reshape(-1), shape), array)
    assert same_bytes(pack(unpack(packed, shape)), packed)


@pytest.mark.req("N-008")
def test_element_17_33_of_an_int8_weight():
    array = np.zeros((256, 512), np.int8)
    array[17, 33] = 1
    assert pack(array).shape == (1, 16, 16, 16, 32)
    assert np.flatnonzero(pack(array)).tolist() == [8737]


@pytest.mark.req("N-002")
def test_packing_leaves_the_array_alone():
    array = numbered((32, 32), np.dtype(np.float16))
    before = array.copy()
    packed = pack(array)
    packed[:] = 0
    assert same_bytes(array, before)
    assert pypto_egg.nz.pack is pack


def test_the_element_type_of_bytes_can_be_stated():
    raw = numbered((16, 64), np.dtype(np.uint8))
    assert same_bytes(pack(raw, HF8), pack(raw))
    with pytest.raises(NzError, match="8 bits; FP16 has 16"):
        pack(raw, FP16)


@pytest.mark.req("N-135", "N-136")
@pytest.mark.parametrize("kind", [bool, ml_dtypes.int4, ml_dtypes.float4_e2m1fn])
def test_elements_below_a_byte_are_refused(kind):
    with pytest.raises(NzError, match="8 bits or more"):
        pack(np.zeros((16, 64), kind))


@pytest.mark.req("N-135")
def test_a_carrier_byte_does_not_make_a_type_packable():
    with pytest.raises(NzError, match="INT4"):
        pack(np.zeros((16, 64), np.uint8), INT4)


@pytest.mark.req("N-086", "N-087", "N-096")
@pytest.mark.parametrize("shape", [(15, 32), (16, 31), (32,)])
def test_arrays_that_are_no_whole_fractals_are_refused(shape):
    with pytest.raises(NzError):
        pack(np.zeros(shape, np.int8))
    with pytest.raises(NzError):
        unpack(np.zeros(shape, np.int8), shape)


def test_other_faults_are_named():
    with pytest.raises(NzError, match=r"512 elements is unpacked to \[32, 32\]"):
        unpack(np.zeros((16, 32), np.int8), (32, 32))
    with pytest.raises(NzError, match="complex64"):
        pack(np.zeros((16, 32), np.complex64))


@pytest.mark.req("N-001")
def test_packed_bytes_have_the_order_of_the_device():
    """Least significant byte first, whatever order the array is kept in."""
    array = numbered((16, 64), np.dtype(np.int16))
    swapped = array.astype(array.dtype.newbyteorder(">"))
    assert same_bytes(pack(swapped), pack(array))
    assert same_bytes(unpack(pack(array).astype(">i2"), (16, 64)), array)


@pytest.mark.parametrize("given", [[[1.0] * 16] * 16, None, 3.0])
def test_what_is_no_array_is_refused(given):
    with pytest.raises(NzError, match="is no array") as caught:
        pack(given)
    assert "numpy array" in caught.value.hint


@pytest.mark.parametrize("shape", [512, (32.0, 16), (32, -16), "32x16"])
def test_what_is_no_shape_is_refused(shape):
    with pytest.raises(NzError, match="is no shape of an array"):
        unpack(np.zeros(512, np.int16), shape)
    assert unpack(np.zeros(512, np.int16), (np.int64(32), 16)).shape == (32, 16)
