"""Run-time values: tensors, tiles, scalars, arrays and tuples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pypto_egg.errors import InterpretError
from pypto_egg.interp.layout import (
    TileOrder,
    accumulator_pitch,
    blocked_nz_shape,
    dn_axes,
    nz_axes,
    packed_axes,
    storage_elems,
    tile_axes,
)
from pypto_egg.interp.memory import Buffer, Region, poisoned_buffer, undefined_buffer
from pypto_egg.interp.poison import poison_array
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import CompactMode, Mem, PadValue, TensorLayout

Shape = tuple[int, ...]
Scalar = int | float | bool


@dataclass(frozen=True)
class TensorValue:
    """A tensor: where its elements are and how far they are valid.

    `in_gm` is True for handles of global memory (parameters, buffers created by orchestration
    code), which `tensor.assemble` writes in place; other tensors are values.
    """

    region: Region
    valid: Shape
    layout: TensorLayout = TensorLayout.ND
    in_gm: bool = False

    @property
    def shape(self) -> Shape:
        """Its extents."""
        return self.region.shape

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.region.dtype

    def copied(self) -> TensorValue:
        """The elements as they are now, in memory of their own."""
        bytes_ = self.region.buffer
        own = Buffer(bytes_.bytes.size)
        own.bytes[:] = bytes_.bytes
        return replace(self, region=replace(self.region, buffer=own), in_gm=False)

    def read(self, extent: Shape | None = None) -> np.ndarray:
        """A copy of the leading `extent` elements (of the valid region by default).

        Elements outside the valid region read as poison, whatever global memory holds there: a
        load would not have fetched them.
        """
        if extent is None or all(e <= v for e, v in zip(extent, self.valid, strict=True)):
            return self.region.prefix(self.valid if extent is None else extent).read()
        values = poison_array(extent, self.dtype)
        seen = tuple(min(e, v) for e, v in zip(extent, self.valid, strict=True))
        # Through the bits: assigning NaNs between arrays may change their payload.
        bits = values.view(f"u{values.dtype.itemsize}")
        part = self.region.prefix(seen).read()
        bits[tuple(slice(0, e) for e in seen)] = part.view(bits.dtype)
        return values

    def elements(self) -> np.ndarray:
        """A copy of all elements, poison outside the valid region."""
        return self.read(self.shape)


@dataclass(frozen=True)
class TileValue:
    """A tile: bytes in their real order, physical extent, and the valid part.

    `whole` is True while the tile covers its own buffer from the start, so that its addresses
    can be derived again from a changed view (the pitch of an accumulator).
    """

    region: Region
    valid: Shape
    order: TileOrder
    space: Mem | None = None
    pad: PadValue = PadValue.null
    compact: CompactMode = CompactMode.null
    whole: bool = True

    @property
    def shape(self) -> Shape:
        """Its physical extents."""
        return self.region.shape

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.region.dtype

    def read(self, extent: Shape | None = None) -> np.ndarray:
        """A copy of the leading `extent` elements; of the valid region by default."""
        return self.region.prefix(self.valid if extent is None else extent).read()

    def elements(self) -> np.ndarray:
        """A copy of all physical elements."""
        return self.region.read()

    def viewed(self, valid: Shape, compact: CompactMode, space: Mem | None) -> TileValue:
        """The same bytes under a view with other valid extents, compactness or space.

        A compact accumulator is read with the pitch that its valid rows imply, any other with
        its physical rows (C-152).
        """
        changed = replace(self, valid=valid, compact=compact, space=space)
        if not (self.whole and self.order.accumulator):
            return changed
        axes = _axes_for(self.shape, self.order, valid, compact)
        return replace(changed, region=replace(self.region, axes=axes))


Shaped = TensorValue | TileValue


@dataclass
class ArrayValue:
    """An on-core array of scalars (`pl.Array`); changed in place."""

    elements: np.ndarray
    dtype: DType


Value = TensorValue | TileValue | ArrayValue | Scalar | tuple | None


def _axes_for(
    shape: Shape, order: TileOrder, valid: Shape, compact: CompactMode
) -> tuple[np.ndarray, ...]:
    pitch = None
    if order.accumulator and compact is CompactMode.normal and len(shape) == 2:
        pitch = accumulator_pitch(valid[0])
    return tile_axes(shape, order, pitch)


def new_tile(
    shape: Shape,
    dtype: DType,
    order: TileOrder,
    valid: Shape,
    *,
    space: Mem | None = None,
    pad: PadValue = PadValue.null,
    compact: CompactMode = CompactMode.null,
    undefined: bool = False,
) -> TileValue:
    """A tile in a buffer of its own, filled with poison or with the undefined pattern."""
    fill = undefined_buffer if undefined else poisoned_buffer
    buffer = fill(storage_elems(shape, order), dtype)
    region = Region(buffer, dtype, 0, _axes_for(shape, order, valid, compact))
    return TileValue(region, valid, order, space, pad, compact)


def tensor_axes(shape: Shape, dtype: DType, layout: TensorLayout) -> tuple[np.ndarray, ...]:
    """Address summands of a packed tensor of the given layout.

    Raises:
        InterpretError: the microscaling layouts, whose byte order is not public.
    """
    match layout:
        case TensorLayout.ND:
            return packed_axes(shape)
        case TensorLayout.DN:
            return dn_axes(shape)
        case TensorLayout.NZ:
            return nz_axes(shape, dtype)
        case _:
            raise InterpretError(f"a tensor of layout {layout.value} cannot be interpreted")


def new_tensor(
    shape: Shape,
    dtype: DType,
    *,
    valid: Shape | None = None,
    layout: TensorLayout = TensorLayout.ND,
    in_gm: bool = False,
    undefined: bool = False,
) -> TensorValue:
    """A tensor in a buffer of its own, filled with poison or with the undefined pattern."""
    count = int(np.prod(shape, dtype=np.int64))
    buffer: Buffer = (undefined_buffer if undefined else poisoned_buffer)(count, dtype)
    region = Region(buffer, dtype, 0, tensor_axes(shape, dtype, layout))
    return TensorValue(region, shape if valid is None else valid, layout, in_gm)


def blocked(tensor: TensorValue) -> TensorValue:
    """An NZ tensor of logical shape under its blocked shape: the same bytes (N-134).

    Raises:
        InterpretError: the tensor is a window with gaps.
    """
    shape = blocked_nz_shape(tensor.shape, tensor.dtype)
    region = tensor.region
    last = region.first + sum(int(axis[-1] - axis[0]) for axis in region.axes if axis.size)
    if last - region.first + 1 != region.size or tensor.valid != tensor.shape:
        raise InterpretError(
            f"a window of shape {list(tensor.shape)} of an NZ tensor has no blocked form"
        )
    dense = Region(region.buffer, region.dtype, region.first, packed_axes(shape))
    return replace(tensor, region=dense, valid=shape)


def tensor_from(values: np.ndarray, dtype: DType, valid: Shape | None = None) -> TensorValue:
    """A tensor value that holds `values` in its valid region and poison elsewhere."""
    shape = values.shape
    tensor = new_tensor(shape, dtype, valid=valid)
    extent = tensor.valid
    tensor.region.prefix(extent).write(values[tuple(slice(0, e) for e in extent)])
    return tensor
