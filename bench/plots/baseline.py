"""Plots of `bench baseline`: how much faster, and on which pipes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pypto_egg.bench.plots.drawing import Drawing, Plot, Style, place_name, plain
from pypto_egg.bench.plots.pipes import Stack, pipe_bars
from pypto_egg.bench.schema import Row
from pypto_egg.extract.cost.model import PIPES
from pypto_egg.report.pages.palette import SERIES

MOST_SPEEDUPS, MOST_PIPES = 60, 20
"""Programs that are drawn: those with the greatest difference."""
_COLOURS = {"win": SERIES[2], "loss": SERIES[1], "equal": SERIES[6]}


def baseline_plots(rows: Sequence[Row]) -> tuple[Plot, ...]:
    """For each comparison of the run the speedups, and the pipes of what differs most."""
    plots = []
    for against in dict.fromkeys(str(row["against"]) for row in rows):
        own = [row for row in rows if row["against"] == against and row["speedup"] is not None]
        if own:
            differing = sorted(own, key=lambda row: -abs(float(row["speedup"] or 1.0) - 1.0))
            plots.append(speedup_plot(against, differing[:MOST_SPEEDUPS], len(own)))
            groups = list(_pipes(differing[:MOST_PIPES], against))
            plots.append(
                pipe_bars(place_name("pipes", against), f"Pipes: {against}", _PIPES, groups)
            )
    return tuple(plots)


_PIPES = (
    "Upper bar: the optimized program; lower bar: what it is compared with. Lengths are relative "
    "to all pipes of the lower bar together."
)


def speedup_plot(against: str, rows: Sequence[Row], among: int) -> Plot:
    """The speedup of each program, the greatest first; `among` is how many were compared."""
    ordered = sorted(rows, key=lambda row: -float(row["speedup"] or 0.0))

    def draw(drawing: Drawing) -> None:
        axes = drawing.axes(f"cycles of {against} / cycles of optimize", "")
        for place, row in enumerate(ordered):
            ratio, verdict = float(row["speedup"] or 0.0), str(row["verdict"])
            style = Style(_COLOURS.get(verdict, SERIES[0]))
            axes.plot([1, ratio], [place, place], color=drawing.ink.line, zorder=0)
            words = f"{_name(row)}\n{ratio:.3f} times as fast: {verdict}"
            drawing.point(axes, (ratio, place), style, words)
        axes.axvline(1.0, color=drawing.ink.text, linewidth=0.8)
        axes.set_yticks(range(len(ordered)), [plain(_name(row)) for row in ordered], fontsize=8)
        axes.set_ylim(len(ordered) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        for verdict, colour in _COLOURS.items():
            drawing.key(axes, verdict, Style(colour))
        drawing.legend(axes)

    return Plot(
        place_name("speedup", against),
        f"Against {against}",
        f"To the right of the line optimize is faster. The {len(rows)} of {among} comparisons that "
        "differ most.",
        (7.6, 1.3 + 0.21 * len(ordered)),
        draw,
    )


def _pipes(rows: Sequence[Row], against: str) -> Iterator[tuple[str, list[Stack]]]:
    for row in rows:
        own = Stack.of("optimize", row)
        other = {pipe: own.cycles[pipe] + float(row[f"{pipe}_saved"] or 0.0) for pipe in PIPES}
        yield plain(_name(row)), [own, Stack(against, other)]


def _name(row: Row) -> str:
    return f"{row['program']}, {row['target']}, {row['model']}"
