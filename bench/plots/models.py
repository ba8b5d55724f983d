"""Plots of `bench models`: regret, disagreement, and predictions beside measurements."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

from pypto_egg.bench.figures import geometric_mean
from pypto_egg.bench.plots.drawing import Drawing, Plot, place_name, plain, series_style
from pypto_egg.bench.plots.matrix import matrix_plot
from pypto_egg.bench.schema import Row

GIVEN = "given"
"""Stands for a model where a program was measured as it is and nothing was chosen."""


def models_plots(rows: Sequence[Row]) -> tuple[Plot, ...]:
    """The plots of a run: one regret matrix for each target, one comparison with measurements."""
    plots = []
    for target in dict.fromkeys(str(row["target"]) for row in rows):
        own = [row for row in rows if row["target"] == target]
        if any(row["regret"] is not None for row in own):
            plots.append(regret_plot(target, own))
    if any(row["measured_cycles"] is not None for row in rows):
        plots.append(measured_plot(rows))
    return tuple(plots)


def regret_plot(target: str, rows: Sequence[Row]) -> Plot:
    """How much dearer each model finds the choices of each other one, over all programs."""
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for row in rows:
        regret = row["regret"]
        if isinstance(regret, int | float) and row["chosen_by"] != GIVEN:
            pair = str(row["chosen_by"]), str(row["priced_by"])
            found.setdefault(pair, []).append((float(regret), str(row["program"])))
    cells = {}
    for (chosen, priced), regrets in found.items():
        mean = 100 * mean_regret([regret for regret, _ in regrets])
        worst, program = max(regrets)
        words = (
            f"choices of {chosen}, priced by {priced}\n{mean:.2f} % dearer than its own over "
            f"{len(regrets)} programs\nat most {100 * worst:.1f} %: {program}"
        )
        cells[chosen, priced] = (mean, f"{mean:.1f} %", words)
    return matrix_plot(
        place_name("regret", target),
        plain(f"Regret on {target}"),
        "What a model's choice costs under another model, above that model's own choice: the "
        "geometric mean over all programs, in percent. 0 on the diagonal.",
        ("priced by", "chosen by"),
        list(dict.fromkeys(chosen for chosen, _ in found)),
        list(dict.fromkeys(priced for _, priced in found)),
        cells,
        least_span=10.0,
    )


def mean_regret(regrets: Sequence[float]) -> float:
    """The geometric mean of the ratios 1 + regret, less 1."""
    return geometric_mean(1 + regret for regret in regrets) - 1


def measured_plot(rows: Sequence[Row]) -> Plot:
    """What each model says beside what was measured, on logarithmic axes."""
    pairs: dict[str, list[tuple[float, float, Row]]] = {}
    for row in rows:
        measured, said = row["measured_cycles"], row["cycles"]
        if isinstance(measured, int | float) and isinstance(said, int | float) and said > 0:
            pairs.setdefault(str(row["priced_by"]), []).append((float(measured), float(said), row))

    def draw(drawing: Drawing) -> None:
        axes = drawing.axes("measured cycles", "cycles by the model")
        every = [value for points in pairs.values() for x, y, _ in points for value in (x, y)]
        ends = [min(every, default=1.0), max(every, default=10.0)]
        axes.plot(ends, ends, color=drawing.ink.text, linewidth=0.8, label="equal")
        for number, (model, points) in enumerate(pairs.items()):
            style = series_style(number)
            for x, y, row in points:
                drawing.point(axes, (x, y), style, _measured_words(model, x, y, row))
            drawing.key(axes, plain(model), style)
        drawing.logarithmic(axes, "x", "y")
        axes.grid(alpha=0.6, linewidth=0.5)
        drawing.legend(axes)

    caption = "One mark for each measured program and model; on the line they agree."
    return Plot("measured", "Models beside measurements", caption, (5.6, 4.4), draw)


def _measured_words(model: str, measured: float, said: float, row: Row) -> str:
    error = 100 * (said / measured - 1)
    apart = abs(log(said / measured))
    return (
        f"{row['program']} on {row['target']}\n{model}: {said:,.0f} cycles, measured "
        f"{measured:,.0f}\n{error:+.1f} % (a factor of {exp(apart):.2f})"
    )
