"""Plots of `bench extraction`: what each extractor finds, and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence

from pypto_egg.bench.plots.drawing import Drawing, Plot, plain, series_style
from pypto_egg.bench.schema import Row

_LEAST_SECONDS = 1e-4


def extraction_plots(rows: Sequence[Row]) -> tuple[Plot, ...]:
    """Cost against time for every graph and extractor."""
    extractors = list(dict.fromkeys(str(row["extractor"]) for row in rows))

    def draw(drawing: Drawing) -> None:
        axes = drawing.axes("seconds of the search", "cost / least that was found")
        for number, extractor in enumerate(extractors):
            style = series_style(number)
            for row in rows:
                ratio, seconds = row["ratio_best"], row["seconds"]
                if row["extractor"] != extractor or not isinstance(ratio, int | float):
                    continue
                took = max(float(seconds or 0.0), _LEAST_SECONDS)
                drawing.point(axes, (took, float(ratio)), style, _words(row))
            drawing.key(axes, plain(extractor), style)
        drawing.logarithmic(axes, "x")
        axes.grid(alpha=0.6, linewidth=0.5)
        axes.margins(0.06)
        drawing.legend(axes)

    caption = "One mark for each e-graph and extractor; on the lowest line the cost is the least."
    return (Plot("extractors", "Cost against time", caption, (6.6, 4.2), draw),)


def _words(row: Row) -> str:
    gap = row["gap"]
    proof = f"{100 * gap:.2f} % above the best bound" if isinstance(gap, int | float) else ""
    return (
        f"{row['graph']}: {row['classes']} classes, {row['nodes']} nodes\n{row['extractor']}: "
        f"cost {row['cost']}, {row['status']}\n{proof}"
    ).strip()
