"""Buffers and regions: flat storage, and the element addresses that a value covers in it.

All layouts used by PyPTO are *separable*: the address of element (i, j, ...) is a base plus one
summand for each axis. A region keeps those summands as one integer vector an axis, so slices,
transposes and boxed tiles are all views on the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pypto_egg.errors import InternalError
from pypto_egg.interp.poison import numpy_dtype, poison_array, undefined_array
from pypto_egg.ir.dtype import DType

# Summand of an element that has no address (rows of a compact accumulator beyond its pitch).
NOWHERE = -(1 << 60)


class Buffer:
    """A flat run of bytes; `written` tells whether anything was stored into it."""

    def __init__(self, size_bytes: int) -> None:
        self.bytes = np.zeros(size_bytes, dtype=np.uint8)
        self.written = False

    def elements(self, dtype: DType) -> np.ndarray:
        """The bytes seen as elements of `dtype` (a view)."""
        stored = numpy_dtype(dtype)
        usable = self.bytes.size // stored.itemsize * stored.itemsize
        return self.bytes[:usable].view(stored)


def poisoned_buffer(count: int, dtype: DType) -> Buffer:
    """A buffer of `count` elements, all poison."""
    buffer = Buffer(count * numpy_dtype(dtype).itemsize)
    buffer.elements(dtype)[:] = poison_array((count,), dtype)
    return buffer


def undefined_buffer(count: int, dtype: DType) -> Buffer:
    """A buffer of `count` elements, all undefined: storage straight from an allocator."""
    buffer = Buffer(count * numpy_dtype(dtype).itemsize)
    buffer.elements(dtype)[:] = undefined_array((count,), dtype)
    return buffer


@dataclass(frozen=True)
class Region:
    """The elements of a buffer that a value covers.

    Args:
        base: address of element (0, 0, ...), in elements.
        axes: for each axis, the summand of each index (int64 vectors).
    """

    buffer: Buffer
    dtype: DType
    base: int
    axes: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def window(self, offset: tuple[int, ...], extent: tuple[int, ...]) -> Region:
        """The sub-region of `extent` elements that starts at `offset`; must lie inside."""
        axes = tuple(axis[o : o + e] for axis, o, e in zip(self.axes, offset, extent, strict=True))
        return Region(self.buffer, self.dtype, self.base, axes)

    def prefix(self, extent: tuple[int, ...]) -> Region:
        """The first `extent` elements on each axis."""
        return self.window((0,) * len(self.axes), extent)

    def swapped(self, axis1: int, axis2: int) -> Region:
        """The region with two axes exchanged: the same bytes read as the transpose."""
        axes = list(self.axes)
        axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
        return Region(self.buffer, self.dtype, self.base, tuple(axes))

    @cached_property
    def _strides(self) -> tuple[int, ...] | None:
        """The element strides when every axis is an arithmetic progression, else None."""
        strides = []
        for axis in self.axes:
            if axis.size < 2:
                strides.append(0)
                continue
            step = int(axis[1] - axis[0])
            if axis.size > 2 and not np.all(axis[1:] - axis[:-1] == step):
                return None
            strides.append(step)
        return tuple(strides)

    @cached_property
    def first(self) -> int:
        """The address of the first element."""
        return self.base + sum(int(axis[0]) for axis in self.axes if axis.size)

    def _view(self) -> np.ndarray | None:
        """The region as a numpy view of the buffer, when its addresses allow one."""
        strides = self._strides
        if strides is None or any(stride < 0 for stride in strides):
            return None
        elements = self.buffer.elements(self.dtype)
        last = self.first + sum(int(axis[-1] - axis[0]) for axis in self.axes)
        if self.first < 0 or last >= elements.size:
            return None
        item = elements.itemsize
        # Through unsigned integers: numpy cannot stride over every ml_dtypes type.
        bits = elements.view(f"u{item}") if elements.dtype != np.bool_ else elements
        view = np.lib.stride_tricks.as_strided(
            bits[self.first :], self.shape, tuple(s * item for s in strides)
        )
        return view.view(elements.dtype)

    def addresses(self) -> np.ndarray:
        """The address of every element; negative where there is none."""
        total = np.full((1,) * len(self.axes), self.base, dtype=np.int64)
        for position, axis in enumerate(self.axes):
            form = [1] * len(self.axes)
            form[position] = axis.size
            total = total + axis.reshape(form)
        return total.reshape(self.shape)

    def read(self) -> np.ndarray:
        """A copy of the elements; poison where an element has no address."""
        if self.size == 0:
            return poison_array(self.shape, self.dtype)
        view = self._view()
        if view is not None:
            return view.copy()
        addresses = self.addresses()
        elements = self.buffer.elements(self.dtype)
        missing = (addresses < 0) | (addresses >= elements.size)
        if not missing.any():
            return elements[addresses]
        values = elements[np.where(missing, 0, addresses)]
        values[missing] = poison_array((1,), self.dtype)[0]
        return _keep_bits(values, missing, self.dtype)

    def write(self, values: np.ndarray) -> None:
        """Store `values` (same shape, already of the region's dtype)."""
        self.buffer.written = True
        if self.size == 0:
            return
        view = self._view()
        if view is not None:
            view[...] = values
            return
        addresses = self.addresses()
        elements = self.buffer.elements(self.dtype)
        if addresses.min() < 0 or addresses.max() >= elements.size:
            raise InternalError(f"a write of {list(self.shape)} leaves its buffer")
        elements[addresses] = values


def _keep_bits(values: np.ndarray, missing: np.ndarray, dtype: DType) -> np.ndarray:
    """`values` with the exact poison pattern at `missing` (scalar assignment may renormalise)."""
    bits = values.view(f"u{values.dtype.itemsize}")
    bits[missing] = poison_array((1,), dtype).view(bits.dtype)[0]
    return values
