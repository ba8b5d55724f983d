"""Tables of text with a title, and the means that are told in them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

SAME = 1e-9
"""Relative difference below which two totals are the same: what rounding of sums does."""


@dataclass(frozen=True)
class Table:
    """A table to read: its title, a header, and cells of text."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers; 1 of none.

    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    found = list(values)
    return math.exp(math.fsum(map(math.log, found)) / len(found)) if found else 1.0


def fitted_exponent(points: Iterable[tuple[float, float]]) -> float | None:
    """The slope of the straight line through (log size, log value), by least squares.

    None of fewer than two sizes, or where a value is not positive.

    >>> fitted_exponent([(1, 3.0), (2, 12.0), (4, 48.0)])
    2.0
    """
    found = [(x, y) for x, y in points]
    if len({x for x, _ in found}) < 2 or any(x <= 0 or y <= 0 for x, y in found):
        return None
    xs, ys = [math.log(x) for x, _ in found], [math.log(y) for _, y in found]
    x_mean, y_mean = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    above = math.fsum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return above / math.fsum((x - x_mean) ** 2 for x in xs)
