"""Comparisons and selection.

A tensor comparison gives 1 or 0 in the promoted type. A tile comparison gives a mask of one bit an
element, packed little-endian into UINT8, that only `sel` and `sels` read.
"""

from __future__ import annotations

import numpy as np

from pypto_egg.interp.numbers import convert, widen
from pypto_egg.interp.semantics_elementwise import (
    Kernel,
    elementwise,
    read_for,
    scalar_array,
)
from pypto_egg.interp.site import OpSite, semantics
from pypto_egg.interp.values import Shape, Value
from pypto_egg.ir.dtype import promote

# cmp_type / cmp_mode in PyPTO's numbering.
COMPARE: tuple[Kernel, ...] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
)
COMPARE_NAMES = ("eq", "ne", "lt", "le", "gt", "ge")


@semantics("tensor.cmp")
def compare_tensor(site: OpSite) -> Value:
    kernel = COMPARE[comparison(site)]
    lhs = site.shaped(0)
    if site.is_scalar(1):
        dtype = promote(lhs.dtype, site.scalar_dtype(1))
        constant = widen(scalar_array(site, 1, dtype))
        return elementwise(site, lambda x: kernel(x, constant).astype(x.dtype), [lhs], dtype)
    rhs = site.shaped(1)
    dtype = promote(lhs.dtype, rhs.dtype)
    return elementwise(site, lambda x, y: kernel(x, y).astype(x.dtype), [lhs, rhs], dtype)


def comparison(site: OpSite) -> int:
    """The comparison's number, from `cmp_type` or `cmp_mode` (an int or its name)."""
    given = site.kwarg("cmp_type", site.kwarg("cmp_mode", 0))
    if isinstance(given, str) and given in COMPARE_NAMES:
        return COMPARE_NAMES.index(given)
    if isinstance(given, int) and 0 <= given < len(COMPARE):
        return given
    raise site.error(f"comparison {given!r} is not one of 0..5 ({', '.join(COMPARE_NAMES)})")


@semantics("tile.cmp", "tile.cmps")
def compare_tile(site: OpSite) -> Value:
    """A mask of one bit an element, packed little-endian into UINT8."""
    kernel = COMPARE[comparison(site)]
    lhs = site.tile(0)
    if site.name == "cmps":
        rhs = scalar_array(site, 1, lhs.dtype)
        dtype = lhs.dtype
    else:
        rhs = read_for(site.tile(1), lhs.shape, lhs.valid)
        dtype = promote(lhs.dtype, site.tile(1).dtype)
    with np.errstate(all="ignore"):
        bits = kernel(widen(convert(lhs.read(), dtype)), widen(convert(rhs, dtype)))
    packed = np.packbits(np.broadcast_to(bits, lhs.valid), axis=-1, bitorder="little")
    valid = (*lhs.valid[:-1], packed.shape[-1])
    result = site.new_tile(valid)
    result.region.prefix(valid).write(packed)
    return result


@semantics("tile.sel")
def select(site: OpSite) -> Value:
    lhs, rhs = site.tile(1), site.tile(2)
    mask = _mask_bits(site, lhs.valid)
    values = np.where(mask, lhs.read(), read_for(rhs, lhs.shape, lhs.valid))
    return site.filled(convert(values, site.result_dtype), lhs.shape, lhs.valid)


@semantics("tile.sels")
def select_scalar(site: OpSite) -> Value:
    source = site.tile(1)
    mask = _mask_bits(site, source.valid)
    values = np.where(mask, source.read(), scalar_array(site, 3, source.dtype))
    return site.filled(values, source.shape, source.valid)


def _mask_bits(site: OpSite, extent: Shape) -> np.ndarray:
    mask = site.tile(0)
    width = -(-extent[-1] // 8)
    need = (*extent[:-1], width)
    if any(n > size for n, size in zip(need, mask.shape, strict=True)):
        raise site.error(
            f"the mask {site.operand(0)} of shape {list(mask.shape)} is too small for "
            f"{list(extent)} elements"
        )
    bits = np.unpackbits(mask.read(need), axis=-1, bitorder="little")
    return bits[..., : extent[-1]].astype(bool)
