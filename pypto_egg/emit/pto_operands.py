"""Tiles and windows of one kernel as PTO operands: buffers, views, partitions.

A tile's buffer is made at the head of the function; one with extents of the run time where those
are known. A GM parameter has one view; each access is a partition of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pypto_egg.emit.pto_scalars import Scalars, Value
from pypto_egg.emit.pto_types import (
    Names,
    dynamic_valid,
    element_type,
    layout_name,
    outs_tile,
    partition_type,
    tile_buf,
    view_type,
)
from pypto_egg.errors import PtoTextError
from pypto_egg.ir.fold import Dim, const_value
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.ops.tensor_shape import strides_of
from pypto_egg.source import Span


@dataclass(frozen=True, slots=True)
class Global:
    """A GM parameter: its argument, its type, its name in the program."""

    argument: str
    kind: TensorType
    name: str


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile: its name, the type it was made with, and the buffer that it is, or is a view of."""

    handle: str
    kind: TileType
    buffer: str


class Operands:
    """Makes the operands of one function.

    Args:
        emit: takes each line of the body.
    """

    def __init__(self, names: Names, scalars: Scalars, emit: Callable[[str], None]) -> None:
        self._names = names
        self._scalars = scalars
        self._emit = emit
        self._views: dict[tuple[str, TensorType], str] = {}
        self.allocated: list[str] = []

    def alloc(self, name: str, kind: TileType, span: Span | None) -> Tile:
        """A buffer for a tile, with its valid extents."""
        written = tile_buf(kind, name, span)
        handle = self._names.claim(name)
        if not dynamic_valid(kind):
            self.allocated.append(f"{handle} = pto.alloc_tile : {written}")
            return Tile(handle, kind, handle)
        rows, cols = self.valid(kind, name, span)
        self._emit(f"{handle} = pto.alloc_tile valid_row = {rows} valid_col = {cols} : {written}")
        return Tile(handle, kind, handle)

    def valid(self, kind: TileType, name: str, span: Span | None) -> tuple[str, str]:
        """The valid extents of a tile as indices."""
        what = f"the valid extent of '{name}'"
        rows, cols = (self._scalars.index(dim, what, span) for dim in kind.valid_shape)
        return rows, cols

    def reshaped(self, source: Tile, name: str, kind: TileType, span: Span | None) -> Tile:
        """The same bytes as a tile of another type."""
        tile = Tile(self._names.claim(name), kind, source.buffer)
        self._emit(f"{tile.handle} = pto.treshape {source.handle} : {self.type(source, span)}")
        self._emit(f"    -> {self.type(tile, span)}")
        return tile

    def window(
        self, source: Tile, name: str, kind: TileType, at: tuple[Dim, Dim], span: Span | None
    ) -> Tile:
        """A part of a tile, from row and column `at` on, with its own valid extents."""
        for start, extent, whole in zip(at, kind.shape, source.kind.shape, strict=True):
            low, size, end = const_value(start) or 0, const_value(extent), const_value(whole)
            if size is None or end is None or low + size > end:
                raise PtoTextError(
                    f"'{name}' is a window of {size} from {low} on of a tile of {end}: with its "
                    "padding it leaves the tile, which has no PTO text",
                    span=span,
                    hint="cut at extents that need no padding",
                )
        row, col = (self._scalars.index(dim, f"the place of '{name}'", span) for dim in at)
        rows, cols = self.valid(kind, name, span)
        sizes = ", ".join(str(const_value(dim)) for dim in kind.shape)
        tile = Tile(self._names.claim(name), kind, source.buffer)
        self._emit(
            f"{tile.handle} = pto.subview {source.handle}[{row}, {col}] sizes [{sizes}] "
            f"valid [{rows}, {cols}]"
        )
        self._emit(f"    : {self.type(source, span)} -> {self.type(tile, span)}")
        return tile

    def type(self, tile: Tile, span: Span | None) -> str:
        """The type of a tile's buffer."""
        return tile_buf(tile.kind, tile.handle.removeprefix("%"), span)

    def instruction(
        self,
        op: str,
        operands: Sequence[Tile | Value],
        out: Tile,
        span: Span | None,
        inside: str = "",
        behind: str = "",
    ) -> None:
        """Write an instruction on tiles and scalars.

        Args:
            inside, behind: attributes behind the operands, and behind the result.
        """
        pairs = [
            (part.handle, self.type(part, span)) if isinstance(part, Tile) else part
            for part in operands
        ]
        names, kinds = (", ".join(parts) for parts in zip(*pairs, strict=True))
        self._emit(f"{op} ins({names}{inside and ' ' + inside} : {kinds})")
        self.outs(out, span, behind)

    def outs(self, tile: Tile, span: Span | None, behind: str = "") -> None:
        """Write the result operand of an instruction."""
        *lines, last = outs_tile(tile.handle, tile.kind, tile.handle.removeprefix("%"), span)
        for line in (*lines, last + behind):
            self._emit(line)

    def view(self, source: Global, span: Span | None) -> str:
        """The view of a parameter, made where it is first needed."""
        kind, name = source.kind, source.name
        key = (source.argument, kind)
        if key in self._views:
            return self._views[key]
        layout, what = layout_name(kind, name, span), f"the shape of '{name}'"
        shape = ", ".join(self._scalars.index(dim, what, span) for dim in kind.shape)
        strides = ", ".join(self._scalars.index(dim, what, span) for dim in strides_of(kind))
        view = self._names.claim(f"{name}_view")
        element = element_type(kind.dtype, name, span)
        self._emit(f"{view} = pto.make_tensor_view {source.argument},")
        self._emit(f"    shape = [{shape}],")
        self._emit(f"    strides = [{strides}]")
        self._emit(f"    {{layout = #pto.layout<{layout}>}} : {view_type(kind, element)}")
        self._views[key] = view
        return view

    def partition(
        self,
        source: Global,
        offsets: tuple[Dim, ...],
        sizes: tuple[Dim, ...],
        span: Span | None,
    ) -> tuple[str, str]:
        """A window of a parameter: its name and type."""
        name = source.name
        if not len(offsets) == len(sizes) == source.kind.rank:
            raise PtoTextError(
                f"a window of {len(sizes)} axes of '{name}', which has {source.kind.rank}, has no "
                "PTO text",
                span=span,
                hint="give one offset and one extent for each axis of the tensor",
            )
        view, element = self.view(source, span), element_type(source.kind.dtype, name, span)
        starts = ", ".join(self._scalars.index(d, f"the offset of '{name}'", span) for d in offsets)
        extents = ", ".join(self._scalars.index(d, f"the window of '{name}'", span) for d in sizes)
        part, kind = self._names.claim(f"{name}_pview"), partition_type(sizes, element)
        self._emit(f"{part} = pto.partition_view {view},")
        self._emit(f"    offsets = [{starts}], sizes = [{extents}]")
        self._emit(f"    : {view_type(source.kind, element)} -> {kind}")
        return part, kind
