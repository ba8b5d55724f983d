"""A matrix of numbers as a heat map with the numbers in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto_egg.bench.plots.drawing import Drawing, Plot, plain
from pypto_egg.bench.plots.heat import Heat, letters_on


def matrix_plot(
    name: str,
    title: str,
    caption: str,
    axes_words: tuple[str, str],
    down: Sequence[str],
    across: Sequence[str],
    cells: Mapping[tuple[str, str], tuple[float, str, str]],
) -> Plot:
    """Rows `down` against columns `across`; a cell is its number, its text, what it says.

    Pairs without a cell are left blank.
    """

    def draw(drawing: Drawing) -> None:
        from matplotlib.patches import Rectangle

        x_words, y_words = axes_words
        axes = drawing.axes(x_words, y_words)
        numbers = [number for number, _, _ in cells.values()]
        low, high = min(numbers, default=0.0), max(numbers, default=1.0)
        heat = Heat(low, high)
        for (row, column), (number, text, words) in cells.items():
            x, y = across.index(column), down.index(row)
            fill = heat.colour(number)
            cell = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=fill, edgecolor=drawing.ink.paper)
            drawing.tip(axes.add_patch(cell), words)
            axes.text(x, y, text, ha="center", va="center", fontsize=9, color=letters_on(fill))
        axes.set_xlim(-0.5, len(across) - 0.5)
        axes.set_ylim(len(down) - 0.5, -0.5)
        axes.set_xticks(range(len(across)), [plain(label) for label in across], rotation=20)
        axes.set_yticks(range(len(down)), [plain(label) for label in down])
        axes.tick_params(length=0)

    size = (2.4 + 1.0 * len(across), 1.5 + 0.5 * len(down))
    return Plot(name, title, caption, size, draw)
