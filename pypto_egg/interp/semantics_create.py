"""Creation and filling: create, full, ci, tri, random, fillpad."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pypto_egg.interp.numbers import convert, highest, lowest, wrap
from pypto_egg.interp.poison import numpy_dtype
from pypto_egg.interp.semantics_elementwise import scalar_array
from pypto_egg.interp.site import OpSite, both, semantics
from pypto_egg.interp.values import Shape, Value, new_tensor
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import PadValue, TensorLayout


@semantics("tensor.create", "tensor.create_l1")
def create_tensor(site: OpSite) -> Value:
    """Undefined storage (or `init_value` everywhere); in global memory for orchestration code."""
    layout = site.kwarg("layout", TensorLayout.ND)
    tensor = new_tensor(
        site.dims(0),
        site.result_dtype,
        layout=layout if isinstance(layout, TensorLayout) else TensorLayout.ND,
        in_gm=not site.launch.on_core,
        undefined=True,
    )
    start = site.kwarg("init_value")
    if isinstance(start, int | float):
        filled = np.full(tensor.shape, start, dtype=np.float32)
        tensor.region.write(convert(filled, tensor.dtype))
        tensor.region.buffer.written = False
    return tensor


@semantics("tile.create")
def create_tile(site: OpSite) -> Value:
    return site.new_tile(site.result_shape(), undefined=True)


@semantics(*both("full"))
def full(site: OpSite) -> Value:
    shape = site.dims(0)
    value = scalar_array(site, 1, site.result_dtype)
    return site.filled(np.broadcast_to(value, shape), shape, shape)


@semantics(*both("ci"))
def ci(site: OpSite) -> Value:
    """start, start + 1, ... along the last axis (or descending)."""
    shape = site.dims(1)
    step = -1 if site.kwarg("descending", False) else 1
    line = site.index(0) + step * np.arange(shape[-1], dtype=np.int64)
    values = np.broadcast_to(line.astype(numpy_dtype(site.result_dtype)), shape)
    return site.filled(values, shape, shape)


@semantics("tile.tri")
def tri(site: OpSite) -> Value:
    """1 where column <= row + diagonal (or >= with upper), 0 elsewhere."""
    diagonal, shape = site.index(0), site.dims(1)
    valid = site.dims(2) if site.has(2) else shape
    rows, cols = np.arange(shape[-2])[:, None], np.arange(shape[-1])[None, :]
    upper = bool(site.kwarg("upper", False))
    inside = cols >= rows + diagonal if upper else cols <= rows + diagonal
    values = convert(inside.astype(np.int32), site.result_dtype)
    return site.filled(values[tuple(slice(0, v) for v in valid)], shape, valid)


@semantics(*both("random"))
def random(site: OpSite) -> Value:
    """Philox4x32 of the element's number: two key words, four counter words."""
    shape = site.dims(6)
    valid = site.dims(7) if site.has(7) else shape
    words = [np.uint64(site.index(i) & 0xFFFFFFFF) for i in range(6)]
    rounds = site.kwarg("rounds", 10)
    assert isinstance(rounds, int)
    count = int(np.prod(shape))
    values = philox(words[:2], words[2:], -(-count // 4), rounds).reshape(-1)[:count]
    bits = values.astype(np.uint32).view(numpy_dtype(site.result_dtype)).reshape(shape)
    return site.filled(bits[tuple(slice(0, v) for v in valid)], shape, valid)


def philox(key: list[np.uint64], counter: list[np.uint64], blocks: int, rounds: int) -> np.ndarray:
    """Philox4x32 (Salmon et al., 2011): `blocks` x 4 words for consecutive counters."""
    mask = np.uint64(0xFFFFFFFF)
    low = np.uint64(32)
    with np.errstate(over="ignore"):
        x0 = counter[0] + np.arange(blocks, dtype=np.uint64)
        carry = x0 >> low
        x1 = counter[1] + carry
        x2 = counter[2] + (x1 >> low)
        x3 = (counter[3] + (x2 >> low)) & mask
        x0, x1, x2 = x0 & mask, x1 & mask, x2 & mask
        k0, k1 = key
        for _ in range(rounds):
            first, second = np.uint64(0xD2511F53) * x0, np.uint64(0xCD9E8D57) * x2
            x0, x1, x2, x3 = (
                (second >> low) ^ x1 ^ k0,
                second & mask,
                (first >> low) ^ x3 ^ k1,
                first & mask,
            )
            k0 = (k0 + np.uint64(0x9E3779B9)) & mask
            k1 = (k1 + np.uint64(0xBB67AE85)) & mask
    return np.stack([x0, x1, x2, x3], axis=1)


def _pad(site: OpSite, dtype: DType) -> np.ndarray:
    """The padding element: zero, the greatest or the least of the type."""
    pad = site.kwarg("pad_value", PadValue.zero)
    value: int | float = 0
    if pad is PadValue.max:
        value = highest(dtype)
    elif pad is PadValue.min:
        value = lowest(dtype)
    return convert(np.asarray(wrap(value, dtype)), dtype)


def _padded(site: OpSite, shape: Shape) -> np.ndarray:
    source = site.shaped(0)
    values = np.full(shape, _pad(site, source.dtype), dtype=numpy_dtype(source.dtype))
    values[tuple(slice(0, v) for v in source.valid)] = source.read()
    return values


@semantics(*both("fillpad"))
def fillpad(site: OpSite) -> Value:
    """The source with everything outside its valid region set to the padding element."""
    shape = site.shaped(0).shape
    return site.filled(_padded(site, shape), shape, shape)


@semantics(*both("fillpad_expand"))
def fillpad_expand(site: OpSite) -> Value:
    source, shape = site.shaped(0), site.dims(1)
    if any(new < old for new, old in zip(shape, source.shape, strict=True)):
        raise site.error(
            f"the shape {list(shape)} is smaller than {site.operand(0)} of {list(source.shape)}"
        )
    return site.filled(_padded(site, shape), shape, shape)


@semantics("tile.fillpad_inplace")
def fillpad_inplace(site: OpSite) -> Value:
    source = site.tile(0)
    values = _padded(site, source.shape)
    target = source.viewed(source.shape, source.compact, source.space)
    target.region.write(values)
    pad = site.kwarg("pad_value", PadValue.zero)
    return replace(target, pad=pad) if isinstance(pad, PadValue) else target
