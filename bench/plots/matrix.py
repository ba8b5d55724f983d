"""A matrix of numbers as a heat map with the numbers in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto_egg.bench.plots.drawing import Drawing, Plot, plain
from pypto_egg.bench.plots.heat import Heat, letters_on

_LEVEL_LETTERS = 9
"""Longer labels of columns would run into each other if they were not turned."""


def matrix_plot(
    name: str,
    title: str,
    caption: str,
    axes_words: tuple[str, str],
    down: Sequence[str],
    across: Sequence[str],
    cells: Mapping[tuple[str, str], tuple[float, str, str]],
    *,
    least_span: float,
) -> Plot:
    """Rows `down` against columns `across`; a cell is its number, its text, what it says.

    Pairs without a cell are left blank. The darkest colour is for the greatest number, or for one
    that is `least_span` above the least, so that small differences look small.
    """

    def draw(drawing: Drawing) -> None:
        from matplotlib.patches import Rectangle

        x_words, y_words = axes_words
        axes = drawing.axes(x_words, y_words)
        numbers = [number for number, _, _ in cells.values()]
        low = min(numbers, default=0.0)
        heat = Heat(low, max(*numbers, low + least_span))
        for (row, column), (number, text, words) in cells.items():
            x, y = across.index(column), down.index(row)
            fill = heat.colour(number)
            cell = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=fill, edgecolor=drawing.ink.paper)
            drawing.tip(axes.add_patch(cell), words)
            axes.text(x, y, text, ha="center", va="center", fontsize=9, color=letters_on(fill))
        axes.set_xlim(-0.5, len(across) - 0.5)
        axes.set_ylim(len(down) - 0.5, -0.5)
        turned = 20 if max(map(len, across), default=0) > _LEVEL_LETTERS else 0
        axes.set_xticks(range(len(across)), [plain(label) for label in across], rotation=turned)
        axes.set_yticks(range(len(down)), [plain(label) for label in down])
        axes.tick_params(length=0)

    size = (1.6 + 0.75 * len(across), 1.5 + 0.45 * len(down))
    return Plot(name, title, caption, size, draw)
