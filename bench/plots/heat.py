"""Colours for numbers: light is little, dark is much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_egg.bench.plots.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = "cividis_r"
"""Even in grey, and for any colour vision."""


@dataclass(frozen=True)
class Heat:
    """A scale of colours from `low` to `high`."""

    low: float
    high: float

    def colour(self, value: float) -> tuple[float, float, float, float]:
        """Red, green, blue and opacity, each from 0 to 1."""
        from matplotlib import colormaps

        span = self.high - self.low
        red, green, blue, opacity = colormaps[_COLOURS]((value - self.low) / span if span else 0.0)
        return float(red), float(green), float(blue), float(opacity)

    def bar(self, drawing: Drawing, axes: Axes, label: str) -> None:
        """The scale beside the axes."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        scale = ScalarMappable(Normalize(self.low, self.high), _COLOURS)
        drawing.figure.colorbar(scale, ax=axes, label=label).outline.set_visible(False)


def letters_on(fill: Sequence[float]) -> str:
    """White or black, whichever is read better on a colour (red, green, blue from 0 to 1)."""
    luminance = sum(
        weight * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
        for weight, c in zip((0.2126, 0.7152, 0.0722), fill, strict=False)
    )
    # Both have the same contrast by WCAG 2 where 1.05 / (l + 0.05) = (l + 0.05) / 0.05.
    return "#ffffff" if luminance < 0.179 else "#000000"
