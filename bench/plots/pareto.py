"""Two costs against each other, and the choices that no other one beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto_egg.bench.plots.drawing import Drawing, Plot, Style
from pypto_egg.report.pages.palette import SERIES

_TAKEN, _OTHER = Style(SERIES[1], "s", 8.0), Style(SERIES[0])


@dataclass(frozen=True)
class Point:
    """A choice: its two costs, what it says, and whether it was taken."""

    x: float
    y: float
    text: str
    taken: bool = False


def front(points: Sequence[Point]) -> list[Point]:
    """The points that no other one undercuts in one cost without exceeding it in the other, by x;
    of equal ones the first."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.x, p.y)):
        if not best or point.y < best[-1].y:
            best.append(point)
    return best


def pareto_plot(
    name: str, title: str, caption: str, units: tuple[str, str], points: Sequence[Point]
) -> Plot:
    """All points, and the front as a line of steps."""

    def draw(drawing: Drawing) -> None:
        axes = drawing.axes(*units)
        edge = front(points)
        axes.step(
            [p.x for p in edge], [p.y for p in edge], where="post", color=SERIES[1], zorder=1,
            linewidth=1.2, label="Pareto front",
        )  # fmt: skip
        places: dict[tuple[float, float], list[Point]] = {}
        for point in points:
            places.setdefault((point.x, point.y), []).append(point)
        for (x, y), here in places.items():
            taken = any(point.taken for point in here)
            drawing.point(axes, (x, y), _TAKEN if taken else _OTHER, _text(here))
        drawing.key(axes, "chosen", _TAKEN)
        drawing.key(axes, "other choices", _OTHER)
        axes.grid(alpha=0.6, linewidth=0.5)
        axes.margins(0.08)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.tick_params(axis="x", rotation=20)
        drawing.legend(axes, 3)

    return Plot(name, title, caption, (4.6, 3.3), draw)


def _text(here: Sequence[Point]) -> str:
    others = f"\nand {len(here) - 1} choices of the same costs" if len(here) > 1 else ""
    first = next((point for point in here if point.taken), here[0])
    return first.text + others
