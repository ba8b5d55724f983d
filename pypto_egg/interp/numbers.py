"""Conversions between element types: rounding modes, saturation, wrap-around.

* float to narrower float: by mode (`none` acts as `rint`), overflow as the type has it;
* float to integer: rounded by mode, then saturated; NaN becomes 0;
* integer to integer: truncated to the low bits;
* integer to float: round to nearest even.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pypto_egg.errors import InterpretError
from pypto_egg.interp.poison import is_float_array, numpy_dtype
from pypto_egg.ir.dtype import DType

# PyPTO language reference, enums: cast modes in numeric order.
CAST_MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")


def widen(values: np.ndarray) -> np.ndarray:
    """`values` in the type that arithmetic runs in: float32 for every float type."""
    if is_float_array(values) and values.dtype != np.float32:
        return values.astype(np.float32)
    return values


def convert(values: np.ndarray, dtype: DType) -> np.ndarray:
    """`values` stored as `dtype`: nearest even for floats, truncation for floats to ints."""
    stored = numpy_dtype(dtype)
    if values.dtype == stored:
        return values
    if stored == np.bool_:
        return values != 0
    if dtype.is_float or not is_float_array(values):
        with np.errstate(over="ignore", invalid="ignore"):
            return widen(values).astype(stored)
    return _saturated(np.trunc(widen(values)), stored)


def cast(values: np.ndarray, dtype: DType, mode: str) -> np.ndarray:
    """`tensor.cast` / `tile.cast`: `values` converted to `dtype` with a rounding mode.

    Raises:
        InterpretError: the mode is not one of `CAST_MODES`.
    """
    if mode not in CAST_MODES:
        raise InterpretError(
            f"cast mode '{mode}' is not known", hint=f"known modes: {', '.join(CAST_MODES)}"
        )
    stored = numpy_dtype(dtype)
    if not is_float_array(values) or values.dtype == stored or stored == np.bool_:
        return convert(values, dtype)
    wide = widen(values)
    if dtype.is_float:
        return _narrow(wide, stored, mode)
    return _saturated(_ROUND[mode](wide), stored)


def _half_away(values: np.ndarray) -> np.ndarray:
    # float64: |x| + 0.5 is exact for every float32 x that has a fraction.
    exact = values.astype(np.float64)
    return np.copysign(np.floor(np.abs(exact) + 0.5), exact)


def _to_odd(values: np.ndarray) -> np.ndarray:
    exact = values.astype(np.float64)
    low = np.floor(exact)
    even = np.mod(low, 2) == 0
    return np.where(exact == low, low, np.where(even, low + 1, low))


_ROUND: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": np.rint,
    "rint": np.rint,
    "round": _half_away,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "odd": _to_odd,
}


def _saturated(values: np.ndarray, stored: np.dtype) -> np.ndarray:
    """Whole floats as integers of type `stored`, clamped to its range."""
    limits = np.iinfo(stored)
    exact = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    high, low = exact >= float(limits.max), exact <= float(limits.min)
    inside = np.where(high | low, 0.0, exact)
    result = inside.astype(stored)
    result[high] = limits.max
    result[low] = limits.min
    return result


def _narrow(wide: np.ndarray, stored: np.dtype, mode: str) -> np.ndarray:
    """float32 values rounded to a narrower float type by `mode`."""
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = wide.astype(stored)
    back = nearest.astype(np.float32)
    inexact = np.isfinite(wide) & np.isfinite(back) & (back != wide)
    if mode in ("none", "rint") or not inexact.any():
        return nearest
    below = np.where(back < wide, back, _neighbour(nearest, -1).astype(np.float32))
    above = np.where(back > wide, back, _neighbour(nearest, +1).astype(np.float32))
    chosen = _choose(wide, below, above, stored, mode)
    return np.where(inexact, chosen, back).astype(stored)


def _choose(
    wide: np.ndarray, below: np.ndarray, above: np.ndarray, stored: np.dtype, mode: str
) -> np.ndarray:
    if mode == "floor":
        return below
    if mode == "ceil":
        return above
    toward_zero = np.where(wide > 0, below, above)
    if mode == "trunc":
        return toward_zero
    if mode == "odd":
        bits = below.astype(stored).view(f"u{stored.itemsize}")
        return np.where(bits & 1 == 1, below, above)
    exact = wide.astype(np.float64)
    gap_below, gap_above = exact - below, above - exact
    away = np.where(wide > 0, above, below)
    return np.where(gap_below == gap_above, away, np.where(gap_below < gap_above, below, above))


def _neighbour(values: np.ndarray, direction: int) -> np.ndarray:
    """The next value of the same float type upwards (+1) or downwards (-1)."""
    size = values.dtype.itemsize
    bits = values.view(f"u{size}").astype(np.int64)
    sign = 1 << (size * 8 - 1)
    line = np.where(bits & sign, sign - bits, bits) + direction
    return np.where(line < 0, sign - line, line).astype(f"u{size}").view(values.dtype)


def lowest(dtype: DType) -> float | int:
    """The least value of a dtype; minus infinity for floats that have one."""
    stored = numpy_dtype(dtype)
    if not dtype.is_float:
        return int(np.iinfo(stored).min) if stored != np.bool_ else 0
    return float(_finite_limit(stored, -1))


def highest(dtype: DType) -> float | int:
    """The greatest finite value of a dtype."""
    stored = numpy_dtype(dtype)
    if not dtype.is_float:
        return int(np.iinfo(stored).max) if stored != np.bool_ else 1
    return float(_finite_limit(stored, +1))


def _finite_limit(stored: np.dtype, sign: int) -> float:
    import ml_dtypes

    return sign * float(ml_dtypes.finfo(stored).max)


def wrap(value: int | float | bool, dtype: DType) -> int | float | bool:
    """A Python number as a scalar of `dtype`: integers wrap, floats round to nearest even."""
    if dtype.kind == "bool":
        return bool(value)
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return float(np.float32(value).astype(numpy_dtype(dtype)))
    if dtype.kind == "opaque":
        return int(value)
    whole = int(value) & ((1 << dtype.bits) - 1)
    if dtype.is_signed and whole >> (dtype.bits - 1):
        whole -= 1 << dtype.bits
    return whole
