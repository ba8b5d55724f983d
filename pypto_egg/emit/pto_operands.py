"""Tiles and windows of one kernel as PTO operands: buffers, views, partitions.

A tile's buffer is made at the head of the function; one with extents of the run time where those
are known. A GM parameter has one view; each access is a partition of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto_egg.emit.pto_scalars import Scalars
from pypto_egg.emit.pto_types import (
    Names,
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
    """A tile's buffer: its name and the type it was made with."""

    handle: str
    kind: TileType


class Operands:
    """Makes the operands of one function.

    Args:
        emit: takes each line of the body.
    """

    def __init__(self, names: Names, scalars: Scalars, emit: Callable[[str], None]) -> None:
        self._names = names
        self._scalars = scalars
        self._emit = emit
        self._views: dict[str, str] = {}
        self.allocated: list[str] = []

    def alloc(self, name: str, kind: TileType, span: Span | None) -> Tile:
        """A buffer for a tile, with its valid extents."""
        written = tile_buf(kind, name, span)
        handle = self._names.claim(name)
        given = [
            (axis, dim)
            for axis, dim in zip(("valid_row", "valid_col"), kind.valid_shape, strict=True)
            if const_value(dim) is None
        ]
        if not given:
            self.allocated.append(f"{handle} = pto.alloc_tile : {written}")
            return Tile(handle, kind)
        what = f"the valid extent of '{name}'"
        extents = " ".join(
            f"{axis} = {self._scalars.index(dim, what, span)}" for axis, dim in given
        )
        self._emit(f"{handle} = pto.alloc_tile {extents} : {written}")
        return Tile(handle, kind)

    def type(self, tile: Tile, span: Span | None) -> str:
        """The type of a tile's buffer."""
        return tile_buf(tile.kind, tile.handle.removeprefix("%"), span)

    def instruction(
        self, op: str, operands: tuple[Tile, ...], out: Tile, span: Span | None
    ) -> None:
        """Write an instruction on tiles in its two lines or three."""
        handles = ", ".join(tile.handle for tile in operands)
        kinds = ", ".join(self.type(tile, span) for tile in operands)
        self._emit(f"{op} ins({handles} : {kinds})")
        self.outs(out, out.handle, span)

    def outs(self, tile: Tile, name: str, span: Span | None) -> None:
        """Write the result operand of an instruction."""
        for line in outs_tile(tile.handle, tile.kind, name, span):
            self._emit(line)

    def view(self, source: Global, span: Span | None) -> str:
        """The view of a parameter, made where it is first needed."""
        if source.argument in self._views:
            return self._views[source.argument]
        kind, name = source.kind, source.name
        layout, what = layout_name(kind, name, span), f"the shape of '{name}'"
        shape = ", ".join(self._scalars.index(dim, what, span) for dim in kind.shape)
        strides = ", ".join(self._scalars.index(dim, what, span) for dim in strides_of(kind))
        view = self._names.claim(f"{name}_view")
        element = element_type(kind.dtype, name, span)
        self._emit(f"{view} = pto.make_tensor_view {source.argument},")
        self._emit(f"    shape = [{shape}],")
        self._emit(f"    strides = [{strides}]")
        self._emit(f"    {{layout = #pto.layout<{layout}>}} : {view_type(kind, element)}")
        self._views[source.argument] = view
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
