"""Elementwise operators: one numpy function an operator, shared by tensor and tile forms.

Floats narrower than FP32 are computed in float32 and rounded once at the end. Integers wrap.
Integer division truncates towards zero; a zero divisor gives 0. The result covers the valid
region of the left operand (PyPTO operator reference, tile result types); reads of an operand
beyond its own valid region see poison.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pypto_egg.interp.numbers import CAST_MODES, cast, convert, widen
from pypto_egg.interp.scalars import wrap
from pypto_egg.interp.site import OpSite, both, semantics
from pypto_egg.interp.values import Shape, Shaped, Value
from pypto_egg.ir.dtype import BF16, FP16, FP32, DType

Kernel = Callable[..., np.ndarray]


def _div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b)
    quotient = a // safe
    if a.dtype.kind == "i":
        inexact = (quotient * safe != a) & ((a < 0) != (safe < 0))
        quotient = quotient + inexact.astype(a.dtype)
    return np.where(b == 0, 0, quotient).astype(a.dtype)


def _fmod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _rem(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.mod(a, b)
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _shl(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bits = a.dtype.itemsize * 8
    inside = (b >= 0) & (b < bits)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0).astype(a.dtype)


def _shr(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bits = a.dtype.itemsize * 8
    return np.right_shift(a, np.clip(b, 0, bits - 1)).astype(a.dtype)


def _expdif(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp(a - b)


BINARY: dict[str, Kernel] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _div,
    "fmod": _fmod,
    "rem": _rem,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": _shl,
    "shr": _shr,
}

UNARY: dict[str, Kernel] = {
    "neg": np.negative,
    "abs": np.abs,
    "not": np.bitwise_not,
    "relu": lambda x: np.maximum(x, 0),
}

# Computed in float32 whatever the element type.
REAL: dict[str, Kernel] = {
    "exp": np.exp,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
}

EXPAND: dict[str, Kernel] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _div,
    "max": np.maximum,
    "min": np.minimum,
    "expdif": _expdif,
}


def broadcast_shape(site: OpSite, shapes: list[Shape]) -> Shape:
    """The common shape of operands, numpy style.

    Raises:
        InterpretError: the shapes do not broadcast.
    """
    rank = max(len(shape) for shape in shapes)
    result = [1] * rank
    for shape in shapes:
        for axis, extent in enumerate(shape, start=rank - len(shape)):
            if extent == 1 or extent == result[axis]:
                continue
            if result[axis] != 1:
                listed = " and ".join(str(list(s)) for s in shapes)
                raise site.error(f"operands of shapes {listed} do not broadcast")
            result[axis] = extent
    return tuple(result)


def left_valid(site: OpSite, shape: Shape, operands: list[Shaped]) -> Shape:
    """Valid extents of an elementwise result: the left operand's.

    A tensor's left operand that broadcasts along an axis leaves that axis to the others; a tile's
    does not, so a narrow left tile marks a wide result as valid in its first row only.
    """
    valid = []
    for axis, extent in enumerate(shape):
        chosen = extent
        for operand in operands:
            position = axis - (len(shape) - len(operand.shape))
            if position < 0 or (operand.shape[position] == 1 != extent and not site.on_tiles):
                continue
            chosen = operand.valid[position]
            break
        valid.append(chosen)
    return tuple(valid)


def read_for(operand: Shaped, shape: Shape, valid: Shape) -> np.ndarray:
    """The part of an operand that a result of `valid` extents needs; extent 1 where it expands."""
    lead = len(shape) - len(operand.shape)
    extent = tuple(
        min(1, valid[lead + i]) if size == 1 else min(valid[lead + i], size)
        for i, size in enumerate(operand.shape)
    )
    return operand.read(extent)


def compute(kernel: Kernel, arrays: list[np.ndarray], dtype: DType) -> np.ndarray:
    """`kernel` applied in `dtype`: operands converted to it first, floats evaluated in float32."""
    ready = [widen(convert(array, dtype)) for array in arrays]
    with np.errstate(all="ignore"):
        return convert(np.asarray(kernel(*ready)), dtype)


def elementwise(
    site: OpSite, kernel: Kernel, operands: list[Shaped], dtype: DType | None = None
) -> Value:
    """The result of an elementwise kernel over tensors or tiles of broadcasting shapes."""
    shape = broadcast_shape(site, [operand.shape for operand in operands])
    valid = left_valid(site, shape, operands)
    arrays = [read_for(operand, shape, valid) for operand in operands]
    values = compute(kernel, arrays, dtype or site.result_dtype)
    return site.filled(np.broadcast_to(convert(values, site.result_dtype), valid), shape, valid)


def scalar_array(site: OpSite, index: int, dtype: DType) -> np.ndarray:
    """A scalar operand rounded or wrapped to `dtype`."""
    value = site.scalar(index)
    if not dtype.is_float and isinstance(value, float):
        return convert(np.asarray(value, dtype=np.float32), dtype)
    return convert(np.asarray(wrap(value, FP32 if dtype.is_float else dtype)), dtype)


def _with_scalar(site: OpSite, kernel: Kernel, index: int = 1) -> Value:
    dtype = site.result_dtype
    constant = scalar_array(site, index, dtype)
    return elementwise(site, lambda x: kernel(x, widen(constant)), [site.shaped(0)])


@semantics(*both("add", "sub", "mul", "div", "fmod", "and", "or", "xor", "shl", "shr"), "tile.rem")
def binary_op(site: OpSite) -> Value:
    kernel = BINARY[site.name]
    return elementwise(site, kernel, [site.shaped(0), site.shaped(1)])


@semantics(
    *both("adds", "subs", "muls", "divs", "fmods", "ands", "ors", "xors", "shls", "shrs"),
    "tile.rems",
)
def binary_scalar_op(site: OpSite) -> Value:
    return _with_scalar(site, BINARY[site.name[:-1]])


@semantics(*both("maximum", "minimum"), "tile.maximums", "tile.minimums")
def extremum_op(site: OpSite) -> Value:
    kernel = BINARY[site.name.removesuffix("s")]
    if site.is_scalar(1):
        return _with_scalar(site, kernel)
    return elementwise(site, kernel, [site.shaped(0), site.shaped(1)])


@semantics(*both("neg", "abs", "not"), "tile.relu")
def unary_op(site: OpSite) -> Value:
    return elementwise(site, UNARY[site.name], [site.shaped(0)])


@semantics(*both("exp", "sqrt", "rsqrt", "recip", "log", "sin", "cos"))
def real_op(site: OpSite) -> Value:
    kernel = REAL[site.name]
    return elementwise(site, kernel, [site.shaped(0)], _real_dtype(site.shaped(0).dtype))


def _real_dtype(dtype: DType) -> DType:
    """The type in which a transcendental is rounded: narrow floats in themselves."""
    return dtype if dtype in (FP16, BF16) else FP32


@semantics(*both("cast"))
def cast_op(site: OpSite) -> Value:
    source = site.shaped(0)
    mode = site.kwarg("mode", "round")
    name = CAST_MODES[mode] if isinstance(mode, int) else str(mode)
    values = cast(source.read(), site.result_dtype, name)
    return site.filled(values, source.shape, source.valid)


@semantics("tile.lrelu", "tile.prelu")
def leaky_relu(site: OpSite) -> Value:
    def kernel(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
        return np.where(x > 0, x, x * slope)

    if site.is_scalar(1):
        return _with_scalar(site, kernel)
    return elementwise(site, kernel, [site.shaped(0), site.shaped(1)])


@semantics("tile.addc", "tile.subc", "tile.addsc", "tile.subsc")
def three_operand(site: OpSite) -> Value:
    kernel = BINARY[site.name[:3]]

    def twice(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return kernel(kernel(a, b), c)

    if not site.is_scalar(1):
        return elementwise(site, twice, [site.shaped(0), site.shaped(1), site.shaped(2)])
    constant = widen(scalar_array(site, 1, site.result_dtype))
    return elementwise(site, lambda a, c: twice(a, constant, c), [site.shaped(0), site.shaped(2)])


@semantics(*both("part_add", "part_mul", "part_max", "part_min"))
def partial_op(site: OpSite) -> Value:
    """`op` where both operands are valid, the valid one where only one is."""
    names = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}
    kernel = BINARY[names[site.name.removeprefix("part_")]]
    a, b = site.shaped(0), site.shaped(1)
    if a.shape != b.shape:
        raise site.error(f"operands of shapes {list(a.shape)} and {list(b.shape)} differ")
    extent = tuple(max(x, y) for x, y in zip(a.valid, b.valid, strict=True))
    left, right = (
        convert(a.read(extent), site.result_dtype),
        convert(b.read(extent), site.result_dtype),
    )
    in_a, in_b = inside(a.valid, extent), inside(b.valid, extent)
    combined = compute(kernel, [left, right], site.result_dtype)
    values = np.where(in_a & in_b, combined, np.where(in_a, left, right))
    valid = a.valid if site.on_tiles else extent
    kept = values[tuple(slice(0, v) for v in valid)]
    return site.filled(kept, a.shape, valid)


def inside(valid: Shape, extent: Shape) -> np.ndarray:
    """Mask over `extent` of the cells within `valid`."""
    mask = np.zeros(extent, dtype=bool)
    mask[tuple(slice(0, v) for v in valid)] = True
    return mask


@semantics(
    *both(*(f"{axis}_expand_{op}" for axis in ("row", "col") for op in EXPAND)),
)
def expand_op(site: OpSite) -> Value:
    """`t op r` with r broadcast along rows (`row_*`) or columns (`col_*`)."""
    axis, op = site.name.split("_expand_")
    target = site.shaped(0)
    vector = _expanded(site, axis, target)
    dtype = site.result_dtype
    values = compute(EXPAND[op], [target.read(), vector], dtype)
    return site.filled(values, target.shape, target.valid)


@semantics(*both("row_expand", "col_expand"))
def plain_expand(site: OpSite) -> Value:
    target = site.shaped(0)
    vector = convert(_expanded(site, site.name.split("_")[0], target), site.result_dtype)
    return site.filled(np.broadcast_to(vector, target.valid), target.shape, target.valid)


def _expanded(site: OpSite, axis: str, target: Shaped) -> np.ndarray:
    """The vector operand, one element thick along the axis on which it expands."""
    vector = site.shaped(1)
    thin = -1 if axis == "row" else -2
    extent = list(target.valid)
    extent[thin] = min(1, target.valid[thin])
    for position, (need, size) in enumerate(zip(extent, vector.shape, strict=True)):
        if need > size:
            raise site.error(
                f"{site.operand(1)} has {size} elements on axis {position}, "
                f"{need} valid ones of {site.operand(0)} need it"
            )
    return vector.read(tuple(extent))


@semantics(*both("expands"))
def expand_scalar(site: OpSite) -> Value:
    target = site.shaped(0)
    value = scalar_array(site, 1, site.result_dtype)
    return site.filled(np.broadcast_to(value, target.valid), target.shape, target.valid)
