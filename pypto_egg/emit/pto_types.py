"""PTO's own text: types of views and tiles, names, and the assembler that reads it.

The forms are those that PyPTO's PTO backend writes; a tile's fields stand in the order of the NZ
document's example: place, extents, order of blocks and boxes, valid extents, padding. Source:
PyPTO, BlockNzTensorViews ("generated code", "assembler versions"); PTO IR manual, `!pto.tile_buf`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pypto_egg.errors import NzError, OptionError, PtoTextError
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import CompactMode, Mem, PadValue, TensorLayout
from pypto_egg.ir.fold import Dim, const_value
from pypto_egg.ir.program import Function
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.source import Span

NZ_RANK = 5
FIRST_NZ_ASSEMBLER = (0, 61)
# PyPTO's spelling (pto_type_utils.cpp). Packed 4-bit types are left out: their tiles are counted in
# pairs of elements, which no tile of this package is.
_ELEMENTS = {
    "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64", "INDEX": "index", "BOOL": "i1",
    "UINT8": "ui8", "UINT16": "ui16", "UINT32": "ui32", "UINT64": "ui64",
    "FP16": "f16", "BF16": "bf16", "FP32": "f32",
    "FP8E4M3FN": "f8E4M3FN", "FP8E5M2": "f8E5M2", "FP8E8M0": "!pto.f8E8M0", "HF8": "!pto.hif8",
}  # fmt: skip
_SPACES = {Mem.LeftScale: "scaling", Mem.RightScale: "scaling"}
_PAD = {PadValue.null: 0, PadValue.zero: 1, PadValue.max: 2, PadValue.min: 3}
_LAYOUTS = {TensorLayout.ND: "nd", TensorLayout.DN: "dn", TensorLayout.NZ: "nz"}
_TAKEN = re.compile(r"(c|cm|arg)\d.*")


class Names:
    """Names of SSA values in one function, each given out once."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def claim(self, wanted: str) -> str:
        """`%wanted`, or `%wanted_1` and so on where that is taken or is a constant's form."""
        wanted = plain_name(wanted)
        base = f"{wanted}_v" if _TAKEN.fullmatch(wanted) else wanted
        name, count = base, 0
        while name in self._used:
            count += 1
            name = f"{base}_{count}"
        self._used.add(name)
        return f"%{name}"


def plain_name(name: str) -> str:
    """A name as MLIR takes it bare: other letters than ASCII by their numbers."""
    return "".join(c if c.isascii() else f"u{ord(c):x}" for c in name)


def element_type(dtype: DType, name: str, span: Span | None) -> str:
    """The element type as MLIR spells it.

    Raises:
        PtoTextError: a dtype without a form here.
    """
    found = _ELEMENTS.get(dtype.name)
    if found is None:
        raise PtoTextError(
            f"'{name}' has elements of {dtype.name}, which have no PTO text here",
            span=span,
            hint=f"forms exist for {', '.join(_ELEMENTS)}",
        )
    return found


def layout_name(kind: TensorType, name: str, span: Span | None) -> str:
    """The layout of a view as the assembler is told it: nd, dn or nz.

    Raises:
        NzError: an NZ tensor that is not in blocked form of rank 5, which the assembler refuses
            (N-011, N-142).
        PtoTextError: another fractal layout.
    """
    found = _LAYOUTS.get(kind.layout)
    if found is None:
        raise PtoTextError(
            f"'{name}' has the layout {kind.layout.name}, which has no PTO text here", span=span
        )
    if kind.layout is TensorLayout.NZ and kind.rank != NZ_RANK:
        raise NzError(
            f"NZ tensor '{name}' has rank {kind.rank}; the assembler reports "
            "'pto.make_tensor_view' op user-specified layout=nz requires a rank-5 view",
            span=span,
            hint="give it the blocked form [B, C/c0, R/16, 16, c0], as lowering does",
        )
    return found


def assembler_version(text: str) -> tuple[int, ...]:
    """The numbers of a version such as "0.61" or "v0.61.2".

    Raises:
        OptionError: it is none.
    """
    if not re.fullmatch(r"v?\d+\.\d+(\.\d+)*", text):
        raise OptionError(
            f"{text!r} is no version of the assembler", hint='give it as "0.61" or "v0.61.2"'
        )
    return tuple(int(part) for part in text.removeprefix("v").split("."))


def check_assembler(functions: Iterable[Function], version: str) -> None:
    """Refuse NZ tensors where the assembler takes no NZ view (N-141 to N-143, N-145).

    Up to 0.60 it infers the layout from strides, finds nd in every blocked view, and stops.

    Raises:
        NzError: there is an NZ parameter and the version is below 0.61.
        OptionError: the version is none.
    """
    if assembler_version(version) >= FIRST_NZ_ASSEMBLER:
        return
    for function in functions:
        for param in function.params:
            kind = param.var.type
            if isinstance(kind, TensorType) and kind.layout is TensorLayout.NZ:
                raise NzError(
                    f"NZ tensor '{param.var.name}' of '{function.name}' cannot be assembled by "
                    f"PTOAS {version}: layout mismatch: user-specified layout=nz but inferred=nd",
                    span=param.var.span or function.span,
                    hint="use PTOAS 0.61 or later, or keep the tensor ND",
                )


def view_type(kind: TensorType, element: str) -> str:
    """`!pto.tensor_view<?x?xf16>`: extents are operands of the view, not of its type."""
    return f"!pto.tensor_view<{'?x' * kind.rank}{element}>"


def partition_type(sizes: Sequence[Dim], element: str) -> str:
    """`!pto.partition_tensor_view<16x32xf16>`, with `?` for extents of the run time."""
    return f"!pto.partition_tensor_view<{''.join(f'{_extent(s)}x' for s in sizes)}{element}>"


def _extent(dim: Dim) -> str:
    value = const_value(dim)
    return "?" if value is None else str(value)


def dynamic_valid(kind: TileType) -> bool:
    """Whether the valid extents of a tile are those of the run time."""
    return any(const_value(dim) is None for dim in kind.valid_shape)


def _fields(kind: TileType, name: str, span: Span | None) -> tuple[str, str]:
    """The fields of a tile's type: what it is of, and how it lies and is filled."""
    extents = [const_value(dim) for dim in kind.shape]
    if len(extents) != 2 or None in extents or kind.space is None:
        raise PtoTextError(
            f"tile '{name}' needs two static axes and a memory space to have PTO text",
            span=span,
            hint="flatten tiles to two axes, and place them with target_memory",
        )
    view = kind.layout
    if view.stride or view.start_offset is not None:
        raise PtoTextError(
            f"tile '{name}' is a view with strides or an offset, which has no PTO text here",
            span=span,
            hint="extract the part into a tile of its own",
        )
    element = element_type(kind.dtype, name, span)
    place = _SPACES.get(kind.space, kind.space.name.lower())
    head = f"loc={place}, dtype={element}, rows={extents[0]}, cols={extents[1]},"
    # PTOAS takes two static valid extents or two of the run time, not one of each.
    rows, cols = ("?", "?") if dynamic_valid(kind) else map(_extent, kind.valid_shape)
    tail = (
        f"blayout={view.blayout.value}, slayout={view.slayout.value}, fractal={view.fractal}, "
        f"v_row={rows}, v_col={cols}, pad={_PAD[view.pad]}"
    )
    return head, tail + (", compact=1" if view.compact is CompactMode.normal else "")


def tile_buf(kind: TileType, name: str, span: Span | None) -> str:
    """`!pto.tile_buf<...>` with every field.

    Raises:
        PtoTextError: the tile is no plain matrix, or its elements have no form.
    """
    head, tail = _fields(kind, name, span)
    return f"!pto.tile_buf<{head} {tail}>"


def outs_tile(handle: str, kind: TileType, name: str, span: Span | None) -> list[str]:
    """The two lines of `outs(%t : !pto.tile_buf<...>)`, fields of the second below the first."""
    head, tail = _fields(kind, name, span)
    start = f"          outs({handle} : !pto.tile_buf<"
    return [start + head, " " * len(start) + tail + ">)"]
