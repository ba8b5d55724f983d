"""How much of a load L2 holds, from the windows that all cores have touched so far.

The cores run the same kernel in step. A window that nobody has touched is not held; one that was
is held in the share C / D, where D is how many distinct bytes all cores have touched from then to
now and C the bytes that L2 holds, and wholly if D is no more than C. That is what a cache keeps of
a sweep that is larger than itself and repeats.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

Window = Hashable


def held_share(distance_bytes: NDArray[np.float64], capacity_bytes: float) -> NDArray[np.floating]:
    """The shares that a cache holds of windows at these distances; capacity 0 holds everything."""
    if not capacity_bytes:
        return np.ones_like(distance_bytes)
    return np.minimum(1.0, capacity_bytes / np.maximum(distance_bytes, 1.0))


class ReuseDistances:
    """Distances of touches, in the distinct bytes that were touched in between.

    A binary indexed tree over the touches holds the bytes of each window at its last touch.
    """

    def __init__(self) -> None:
        self._last: dict[Window, tuple[int, float]] = {}
        self._tree = [0.0] * 1025
        self._touches = 0
        self._total = 0.0

    def distance(self, window: Window) -> float:
        """Distinct bytes from the last touch of `window` to now, itself included; inf if none."""
        if window not in self._last:
            return float("inf")
        at, _ = self._last[window]
        return self._total - self._sum(at - 1)

    def touch(self, windows: Iterable[Window], bytes_: float) -> None:
        """All cores touch their windows, of `bytes_` each."""
        for window in windows:
            if window in self._last:
                self._add(*self._last[window], -1.0)
            self._touches += 1
            if self._touches >= len(self._tree):
                self._grow()
            self._last[window] = (self._touches, bytes_)
            self._add(self._touches, bytes_, 1.0)

    def _add(self, at: int, bytes_: float, sign: float) -> None:
        self._total += sign * bytes_
        while at < len(self._tree):
            self._tree[at] += sign * bytes_
            at += at & -at

    def _sum(self, at: int) -> float:
        total = 0.0
        while at > 0:
            total += self._tree[at]
            at -= at & -at
        return total

    def _grow(self) -> None:
        """Twice the room: node 2^n is the only new one that covers what is there."""
        size = len(self._tree) - 1
        self._tree += [0.0] * size
        self._tree[2 * size] = self._tree[size]
