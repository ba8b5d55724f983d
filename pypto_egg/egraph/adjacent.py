"""Windows of one tensor that lie side by side, which one larger load could bring at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pypto_egg.egraph.values import Keys, Window, element_line
from pypto_egg.ir.expr import Expr
from pypto_egg.ir.fold import dim_add

Dim = int | Expr


@dataclass(frozen=True)
class Adjacent:
    """Two windows and the larger one that they tile.

    Args:
        axis: 0 if the second lies below the first, 1 if it lies to the right of it.
    """

    first: Window
    second: Window
    both: Window
    axis: int

    def offsets(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where the two lie in the larger one."""
        extent = self.first.type.shape[self.axis]
        assert isinstance(extent, int)
        return (0, 0), ((extent, 0) if self.axis == 0 else (0, extent))


def adjacent_windows(windows: Iterable[Window], keys: Keys) -> list[Adjacent]:
    """The pairs of windows that together are a larger window of their tensor.

    Only matrices that are valid as a whole are considered, and side by side only where the second
    starts at a whole 32-byte block of the larger window's lines.
    """
    matrices = [window for window in windows if _is_matrix(window)]
    found: list[Adjacent] = []
    for axis in (0, 1):
        starts = {_place(window, axis, window.offsets[axis], keys): window for window in matrices}
        for first in matrices:
            extent = first.type.shape[axis]
            assert isinstance(extent, int)
            if axis == 1 and extent % element_line(first.type.dtype):
                continue
            end = dim_add(first.offsets[axis], extent)
            second = starts.get(_place(first, axis, end, keys))
            if second is not None:
                found.append(Adjacent(first, second, _joined(first, second, axis), axis))
    return found


def _is_matrix(window: Window) -> bool:
    type_ = window.type
    whole = window.exact and type_.rank == 2 and type_.valid_shape == type_.shape
    return whole and all(isinstance(extent, int) for extent in type_.shape)


def _place(window: Window, axis: int, start: Dim, keys: Keys) -> tuple[str, ...]:
    """What two neighbours along an axis agree on, and where on the axis the later one starts."""
    other = 1 - axis
    across = (window.offsets[other], window.type.shape[other])
    return (keys.handle(window.handle), keys.text(start), *map(keys.text, across))


def _joined(first: Window, second: Window, axis: int) -> Window:
    shape = list(first.type.shape)
    shape[axis] = dim_add(first.type.shape[axis], second.type.shape[axis])
    return replace(first, type=replace(first.type, shape=tuple(shape), view=None))
