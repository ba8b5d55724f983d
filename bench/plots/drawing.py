"""What every plot shares: inks for page and paper, colours, and marks that say what they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pypto_egg.report.pages.palette import SERIES

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LONGEST = 90
_FEW_DECADES = 200.0
_LONG_LABEL = 22


@dataclass(frozen=True)
class Ink:
    """Colours of lines and letters; those of a page are replaced by the reader's scheme."""

    text: str
    line: str
    paper: str


PAPER = Ink("#1c2024", "#c4cad1", "#ffffff")
PAGE = Ink("#010203", "#040506", "#070809")


@dataclass(frozen=True)
class Style:
    """How a mark looks."""

    colour: str
    marker: str = "o"
    size: float = 6.0


@dataclass
class Drawing:
    """A figure that is being drawn.

    Args:
        tips: id of a mark -> what it says when it is pointed at.
    """

    figure: Figure
    ink: Ink
    tips: dict[str, str] = field(default_factory=dict)

    def tip(self, artist: Artist, text: str) -> None:
        """Let a mark say something."""
        name = f"mark{len(self.tips)}"
        artist.set_gid(name)
        self.tips[name] = text

    def axes(self, x: str, y: str) -> Axes:
        """Axes over the whole figure, labelled with what they measure and its unit."""
        axes = self.figure.subplots()
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        return axes

    def logarithmic(self, axes: Axes, *directions: Literal["x", "y"]) -> None:
        """Logarithmic axes with plain numbers at each power of ten, and at 2 and 5 times it where
        that many fit. Call it when everything is drawn."""
        from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

        for direction in directions:
            axes.set(**{f"{direction}scale": "log"})
            axis = axes.xaxis if direction == "x" else axes.yaxis
            low, high = axes.dataLim.intervalx if direction == "x" else axes.dataLim.intervaly
            wide = low > 0 and high / low > _FEW_DECADES
            axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))

    def point(self, axes: Axes, at: tuple[float, float], style: Style, text: str) -> None:
        """A mark at a place, and what it says."""
        (mark,) = axes.plot(
            [at[0]],
            [at[1]],
            linestyle="",
            color=style.colour,
            marker=style.marker,
            markersize=style.size,
            markeredgecolor=self.ink.paper,
            markeredgewidth=0.6,
        )
        self.tip(mark, text)

    def key(self, axes: Axes, label: str, style: Style) -> None:
        """An entry of the legend for marks."""
        axes.plot([], [], linestyle="", color=style.colour, marker=style.marker, label=label)

    def legend(self, axes: Axes, columns: int = 4) -> None:
        """The legend above the axes, where it hides nothing; in two columns if labels are long."""
        labels = axes.get_legend_handles_labels()[1]
        if max(map(len, labels), default=0) > _LONG_LABEL:
            columns = min(columns, 2)
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, frameon=False, fontsize=8.5
        )


@dataclass(frozen=True)
class Plot:
    """One plot of a run.

    Args:
        name: of its file, and of its place on a page.
        caption: what it shows, and how to read it.
        size: width and height in inches.
        draw: draws it.
    """

    name: str
    title: str
    caption: str
    size: tuple[float, float]
    draw: Callable[[Drawing], None]


def plain(text: str) -> str:
    """A name as a label: one line of printable characters, shortened where it is very long."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def place_name(*parts: str) -> str:
    """A name for a file and for a place on a page: letters, digits, "_", "." and "-"."""
    return "-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", part).strip("-.") for part in parts)


def series_style(number: int) -> Style:
    """Colour and marker of the n-th series of a plot."""
    return Style(SERIES[number % len(SERIES)], MARKERS[number % len(MARKERS)])
