"""Windows: bounds, alignment to boxes, and how valid extents pass through slices and reshapes."""

from __future__ import annotations

from math import prod

from pypto_egg.interp.layout import is_blocked_nz, line_elems
from pypto_egg.interp.site import OpSite
from pypto_egg.interp.values import Shape, Shaped, TensorValue, TileValue
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.types import FRACTAL_ROWS


def check_window(site: OpSite, index: int, shape: Shape, offset: Shape, extent: Shape) -> None:
    """Refuse a window that leaves operand `index` (of extents `shape`).

    Raises:
        InterpretError: naming the operand, the window and the axis.
    """
    if not len(shape) == len(offset) == len(extent):
        raise site.error(
            f"a window at {list(offset)} of {list(extent)} does not match the rank of "
            f"{site.operand(index)}, shape {list(shape)}"
        )
    for axis, (size, start, count) in enumerate(zip(shape, offset, extent, strict=True)):
        if count < 0 or start < 0 or (count > 0 and start + count > size):
            raise site.error(
                f"the window at {list(offset)} of {list(extent)} leaves {site.operand(index)} "
                f"of shape {list(shape)} on axis {axis}",
                hint="shorten the valid extents or correct the offset",
            )


def check_boxes(
    site: OpSite, index: int, offset: Shape, box: tuple[int, int], what: str = "box"
) -> None:
    """Refuse a window of a boxed operand that does not start on a box (targets, TEXTRACT).

    Raises:
        InterpretError: naming the offset and the box.
    """
    row, col = offset[-2], offset[-1]
    if row % box[0] or col % box[1]:
        raise site.error(
            f"the offset [{row}, {col}] into {site.operand(index)} is not on a {what} boundary "
            f"of {box[0]} x {box[1]}"
        )


def check_nz_offset(site: OpSite, index: int, tensor: TensorValue, offset: Shape) -> None:
    """Refuse a window of an NZ tensor that starts inside a fractal (N-089)."""
    if tensor.layout is not TensorLayout.NZ or len(offset) < 2:
        return
    if is_blocked_nz(tensor.shape, tensor.dtype):
        if any(offset[-2:]):
            raise site.error(
                f"the offset {list(offset)} starts inside a fractal of {site.operand(index)}"
            )
        return
    check_boxes(site, index, offset, (FRACTAL_ROWS, line_elems(tensor.dtype)), "fractal")


def window_of_valid(source: Shaped, offset: Shape, extent: Shape) -> Shape:
    """The valid part of a window: `min(max(V - offset, 0), extent)`.

    A full source gives a full window.
    """
    if source.valid == source.shape:
        return extent
    return tuple(
        min(max(v - o, 0), e) for v, o, e in zip(source.valid, offset, extent, strict=True)
    )


def union_valid(target: Shaped, offset: Shape, extent: Shape) -> Shape:
    """Valid extents after a window is written into a target."""
    if 0 in extent:
        return target.valid
    return tuple(max(v, o + e) for v, o, e in zip(target.valid, offset, extent, strict=True))


def reshaped_valid(site: OpSite, shape: Shape, valid: Shape, new_shape: Shape) -> Shape:
    """Valid extents of a reshape (PyPTO operator reference, reshape).

    Full stays full, empty stays empty, unit axes come and go; otherwise the valid data must be a
    prefix of the flat order.

    Raises:
        InterpretError: the valid data is not a flat prefix that the new shape can state.
    """
    if valid == shape:
        return new_shape
    if 0 in valid:
        return (0,) * len(new_shape)
    if [e for e in shape if e != 1] == [e for e in new_shape if e != 1]:
        kept = iter([v for v, e in zip(valid, shape, strict=True) if e != 1])
        return tuple(1 if e == 1 else next(kept) for e in new_shape)
    count = prod(valid)
    if _is_prefix(shape, valid):
        for axis in range(len(new_shape)):
            row = prod(new_shape[axis + 1 :])
            if count % row == 0 and count // row <= new_shape[axis]:
                return (*(1,) * axis, count // row, *new_shape[axis + 1 :])
    raise site.error(
        f"the valid region {list(valid)} of {list(shape)} cannot be stated in the shape "
        f"{list(new_shape)}"
    )


def _is_prefix(shape: Shape, valid: Shape) -> bool:
    """True if the valid cells come first in row-major order."""
    partial = [i for i, (v, s) in enumerate(zip(valid, shape, strict=True)) if v != s]
    return all(v == 1 for v in valid[: partial[-1]])


def matrix_valid(site: OpSite, shape: Shape, valid: Shape) -> Shape:
    """The valid extents of an N-D window that is kept as a matrix [leading product, last]."""
    rows, row_valid = shape[:-1], valid[:-1]
    flat = reshaped_valid(site, rows, row_valid, (prod(rows),)) if rows else (1,)
    return (*flat, valid[-1])


def is_packed(value: Shaped) -> bool:
    """True if the value's elements follow each other in row-major order, without gaps."""
    expected = 1
    for axis in reversed(value.region.axes):
        size = int(axis.size)
        if size > 1:
            steps = axis[1:] - axis[:-1]
            if not (steps == expected).all():
                return False
        expected *= size
    return True


def is_box_packed(tile: TileValue) -> bool:
    """True if a tile covers its own buffer, so that its bytes can be read in another shape."""
    return tile.whole or is_packed(tile)
