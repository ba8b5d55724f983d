"""How PyPTO's element types are stored in numpy, and the bit patterns that mark missing data.

Two patterns stand for cells that nobody may read:

* *poison* fills everything outside a valid region, and Out parameters before they are written;
* *undefined* fills fresh storage (`tensor.create`, `tile.create`).

For floats both are NaNs with different payloads, so arithmetic spreads them; for integers they
are the repeated bytes 0x5A and 0xA5. FP8E8M0 has one NaN only and uses it for both.
"""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np

from pypto_egg.errors import InterpretError
from pypto_egg.ir.dtype import DType

_NUMPY: dict[str, np.dtype] = {
    "BOOL": np.dtype(np.bool_),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "INDEX": np.dtype(np.int64),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "FP16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "FP32": np.dtype(np.float32),
    "FP8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "FP8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "FP8E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "TASK_ID": np.dtype(np.int64),
}

# Bit patterns of (poison, undefined) for the float types: quiet NaNs.
_FLOAT_PATTERNS: dict[str, tuple[int, int]] = {
    "FP32": (0x7FC0DEAD, 0x7FC5EED5),
    "FP16": (0x7E5A, 0x7EC5),
    "BF16": (0x7FDA, 0x7FC5),
    "FP8E4M3FN": (0x7F, 0xFF),
    "FP8E5M2": (0x7E, 0x7F),
    "FP8E8M0": (0xFF, 0xFF),
}


def numpy_dtype(dtype: DType) -> np.dtype:
    """The numpy dtype that stores one element of `dtype`.

    Raises:
        InterpretError: sub-byte types and HF8 have no numpy form.
    """
    found = _NUMPY.get(dtype.name)
    if found is None:
        raise InterpretError(
            f"the interpreter cannot hold {dtype.name} elements",
            hint=f"it can hold {', '.join(_NUMPY)}",
        )
    return found


@cache
def _patterns(name: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The byte patterns of one poisoned and one undefined element."""
    unsigned = np.dtype(f"u{size}")
    if name in _FLOAT_PATTERNS:
        poison, undefined = _FLOAT_PATTERNS[name]
    elif name == "BOOL":
        poison = undefined = 1
    else:
        poison = int.from_bytes(b"\x5a" * size, "little")
        undefined = int.from_bytes(b"\xa5" * size, "little")
    return np.array([poison], dtype=unsigned), np.array([undefined], dtype=unsigned)


def poison_array(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """An array full of poison."""
    stored = numpy_dtype(dtype)
    pattern = _patterns(dtype.name, stored.itemsize)[0]
    return np.full(shape, pattern[0], dtype=pattern.dtype).view(stored)


def undefined_array(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """An array full of the undefined pattern: storage that nobody has written."""
    stored = numpy_dtype(dtype)
    pattern = _patterns(dtype.name, stored.itemsize)[1]
    return np.full(shape, pattern[0], dtype=pattern.dtype).view(stored)


def is_undefined(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Where `values` still holds the undefined pattern of `dtype`, bit for bit."""
    pattern = _patterns(dtype.name, values.dtype.itemsize)[1]
    return np.ascontiguousarray(values).view(pattern.dtype) == pattern[0]


def is_poison(values: np.ndarray) -> np.ndarray:
    """Where `values` is missing: NaN for floats, either sentinel for integers."""
    if is_float_array(values):
        return np.isnan(values.astype(np.float32))
    if values.dtype == np.bool_:
        return np.zeros(values.shape, dtype=bool)
    size = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(f"u{size}")
    poison, undefined = _patterns("int", size)
    return (bits == poison[0]) | (bits == undefined[0])


def is_float_array(values: np.ndarray) -> bool:
    """True for numpy's floats and for the ml_dtypes ones."""
    return values.dtype.kind == "f" or values.dtype.name.startswith(("bfloat", "float"))
