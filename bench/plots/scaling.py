"""Plots of `bench scaling`: time and memory over program size, with fitted exponents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto_egg.bench.figures import fitted_exponent, geometric_mean
from pypto_egg.bench.plots.drawing import Drawing, Plot, Style, plain, series_style
from pypto_egg.bench.schema import SCALING, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STAGES = tuple(name for name in SCALING.names if name.endswith("_seconds"))


def scaling_plots(rows: Sequence[Row]) -> tuple[Plot, ...]:
    """For each family and target one plot of times, one of sizes."""
    plots = []
    groups = dict.fromkeys((str(r["family"]), str(r["target"]), str(r["model"])) for r in rows)
    for number, key in enumerate(groups, 1):
        own = [r for r in rows if (str(r["family"]), str(r["target"]), str(r["model"])) == key]
        of = plain(", ".join(key))
        times = {name.removesuffix("_seconds"): _points(own, name) for name in STAGES}
        sizes = {
            "e-nodes": _points(own, "e_nodes"),
            "nodes of the tile graph": _points(own, "nodes"),
            "KiB of memory": [(x, y / 1024) for x, y in _points(own, "memory_bytes")],
        }
        for kind, unit, series in (("Time", "seconds", times), ("Size", "count, KiB", sizes)):
            if any(series.values()):
                name = f"scaling-{number}-{kind.lower()}"
                plots.append(_log_log(name, f"{kind}: {of}", unit, series))
    return tuple(plots)


def fitted(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """(factor, exponent) of the power law through the points, by least squares of the logarithms;
    None unless there are two different sizes."""
    exponent = fitted_exponent(points)
    if exponent is None:
        return None
    return geometric_mean(y / x**exponent for x, y in points), exponent


def _points(rows: Sequence[Row], name: str) -> list[tuple[float, float]]:
    """(size, value) where both are above zero, by size."""
    found = []
    for row in rows:
        size, value = row["size"], row[name]
        if isinstance(size, int) and isinstance(value, int | float) and size > 0 and value > 0:
            found.append((float(size), float(value)))
    return sorted(found)


def _log_log(
    name: str, title: str, unit: str, series: dict[str, list[tuple[float, float]]]
) -> Plot:
    def draw(drawing: Drawing) -> None:
        axes = drawing.axes("size of the program (layers, blocks or products)", unit)
        for number, (label, points) in enumerate(series.items()):
            _series(drawing, axes, number, label, points)
        drawing.logarithmic(axes, "x", "y")
        axes.grid(alpha=0.6, linewidth=0.5)
        drawing.legend(axes, 3)

    caption = (
        "Logarithmic axes; lines are power laws fitted by least squares of the logarithms. An "
        "exponent of 1 is linear growth."
    )
    return Plot(name, title, caption, (6.6, 4.8), draw)


def _series(
    drawing: Drawing, axes: Axes, number: int, label: str, points: list[tuple[float, float]]
) -> None:
    if not points:
        return
    style, law = series_style(number), fitted(points)
    if label == "total":
        style = Style(drawing.ink.text, "h")
    words = label
    if law is not None:
        factor, exponent = law
        words = f"{label}: size^{exponent:z.2f}"
        ends = [points[0][0], points[-1][0]]
        axes.plot(ends, [factor * x**exponent for x in ends], color=style.colour, linewidth=1)
    for x, y in points:
        drawing.point(axes, (x, y), style, f"{words}\nsize {x:,.0f}: {y:,.4g}")
    drawing.key(axes, words, style)
