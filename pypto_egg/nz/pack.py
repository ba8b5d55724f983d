"""Host side: arrays between row-major order and NZ order."""

from __future__ import annotations

from math import prod
from numbers import Integral

import numpy as np

from pypto_egg.errors import NzError
from pypto_egg.ir.dtype import DTYPES, DType
from pypto_egg.ir.types import FRACTAL_ROWS
from pypto_egg.nz.layout import Named, blocked_shape, c0_elems

# Element types by the names of numpy and ml_dtypes.
_BY_NUMPY_NAME: dict[str, str] = {
    "bool": "BOOL",
    **{f"int{bits}": f"INT{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"UINT{bits}" for bits in (4, 8, 16, 32, 64)},
    "float4_e2m1fn": "FP4",
    "float8_e4m3fn": "FP8E4M3FN",
    "float8_e5m2": "FP8E5M2",
    "float8_e8m0fnu": "FP8E8M0",
    "float16": "FP16",
    "bfloat16": "BF16",
    "float32": "FP32",
}
_ARRAY = Named("(array)")


def pack(array: np.ndarray, dtype: DType | None = None) -> np.ndarray:
    """The elements of `[.., R, C]` in NZ order, as a new array `[B, C/c0, R/16, 16, c0]`.

    Its bytes are what a tensor annotated `pl.NZ` of the array's shape has in global memory.

    Args:
        dtype: the element type, where numpy's does not say it (HF8 held as uint8).

    Raises:
        NzError: the shape is no whole number of fractals, or the elements are not of a dtype
            that NZ covers.
    """
    array = _in_device_order(array)
    kind = _element_type(array, dtype)
    batch, c1, r1, r0, c0 = _blocked(array.shape, kind)
    planes = array.reshape(batch, r1, r0, c1, c0)
    return np.ascontiguousarray(planes.transpose(0, 3, 1, 2, 4))


def unpack(array: np.ndarray, shape: tuple[int, ...], dtype: DType | None = None) -> np.ndarray:
    """The elements of an array in NZ order as a new row-major array of logical `shape`.

    Args:
        array: `[B, C/c0, R/16, 16, c0]` or any other row-major view of the same elements.

    Raises:
        NzError: as `pack`, or the array has not as many elements as `shape`.
    """
    array = _in_device_order(array)
    kind = _element_type(array, dtype)
    batch, c1, r1, r0, c0 = _blocked(shape, kind)
    if array.size != prod(shape):
        raise NzError(
            f"an array of {array.size} elements is unpacked to {list(shape)}, which has "
            f"{prod(shape)}",
            hint="give the logical shape that the array was packed from",
        )
    blocked = array.reshape(batch, c1, r1, r0, c0)
    return np.ascontiguousarray(blocked.transpose(0, 2, 3, 1, 4)).reshape(shape)


def _in_device_order(array: np.ndarray) -> np.ndarray:
    """The array with the least significant byte of each element first, as the device reads it."""
    if not isinstance(array, np.ndarray):
        raise NzError(
            f"a {type(array).__name__} is no array that could be packed",
            hint="give it as a numpy array of the elements' dtype",
        )
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _blocked(shape: tuple[int, ...], kind: DType) -> tuple[int, int, int, int, int]:
    # A whole number of fractals, or an error; all extents of an array are ints.
    if not isinstance(shape, tuple | list) or not all(
        isinstance(n, Integral) and n >= 0 for n in shape
    ):
        raise NzError(f"{shape!r} is no shape of an array", hint="give a tuple of whole numbers")
    shape = tuple(map(int, shape))
    blocked_shape(shape, kind, _ARRAY)
    c0 = c0_elems(kind, _ARRAY)
    rows, cols = shape[-2:]
    return prod(shape[:-2]), cols // c0, rows // FRACTAL_ROWS, FRACTAL_ROWS, c0


def _element_type(array: np.ndarray, dtype: DType | None) -> DType:
    if dtype is None:
        name = _BY_NUMPY_NAME.get(array.dtype.name)
        if name is None:
            raise NzError(
                f"an array of numpy dtype {array.dtype.name} holds no element type of PyPTO",
                hint=f"convert it to one of: {', '.join(_BY_NUMPY_NAME)}",
            )
        return DTYPES[name]
    if dtype.bits >= 8 and dtype.bits != array.dtype.itemsize * 8:
        raise NzError(
            f"an array of numpy dtype {array.dtype.name} has elements of "
            f"{array.dtype.itemsize * 8} bits; {dtype.name} has {dtype.bits}",
            hint="leave dtype out, or pass the array's own element type",
        )
    return dtype
