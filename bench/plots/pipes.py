"""Stacked bars: what each pipe does, for kernels side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_egg.bench.plots.drawing import Drawing, Plot
from pypto_egg.bench.schema import Row
from pypto_egg.extract.cost.model import PIPES
from pypto_egg.report.pages.palette import QUEUE_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR, _STEP = 0.36, 0.4


@dataclass(frozen=True)
class Stack:
    """One kernel: what it is, and the busy cycles of each pipe."""

    label: str
    cycles: Mapping[str, float]

    @classmethod
    def of(cls, label: str, row: Row) -> Stack:
        """The `..._cycles` columns of a row."""
        return cls(label, {pipe: float(row[f"{pipe}_cycles"] or 0.0) for pipe in PIPES})

    @property
    def total(self) -> float:
        return sum(self.cycles.values())


def pipe_bars(
    name: str, title: str, caption: str, groups: Sequence[tuple[str, Sequence[Stack]]]
) -> Plot:
    """Groups of bars, relative to the last bar of each, its pipes taken together."""

    def draw(drawing: Drawing) -> None:
        axes = drawing.axes("busy cycles of all pipes / those of the lowest bar", "")
        used = [pipe for pipe in PIPES if any(s.cycles[pipe] for _, g in groups for s in g)]
        for place, (group, stacks) in enumerate(groups):
            whole = stacks[-1].total or 1.0
            for number, stack in enumerate(stacks):
                _bar(drawing, axes, group, stack, place + _STEP * number, whole)
        for pipe in used:
            axes.barh([0], [0], color=QUEUE_COLOURS[pipe], label=pipe)
        axes.set_yticks([n + _STEP * (len(s) - 1) / 2 for n, (_, s) in enumerate(groups)])
        axes.set_yticklabels([group for group, _ in groups], fontsize=8)
        axes.set_ylim(len(groups) - 0.3, -0.4)
        axes.tick_params(axis="y", length=0)
        drawing.legend(axes, 7)

    return Plot(name, title, caption, (7.6, 1.2 + 0.42 * max(len(groups), 1)), draw)


def _bar(drawing: Drawing, axes: Axes, group: str, stack: Stack, y: float, whole: float) -> None:
    left = 0.0
    for pipe, cycles in stack.cycles.items():
        if not cycles:
            continue
        (bar,) = axes.barh(
            y, cycles / whole, _BAR, left, color=QUEUE_COLOURS[pipe],
            edgecolor=drawing.ink.paper, linewidth=0.4,
        )  # fmt: skip
        share = f"{100 * cycles / (stack.total or 1.0):.0f} % of all pipes"
        drawing.tip(bar, f"{group}\n{stack.label}, {pipe}: {cycles:,.0f} cycles, {share}")
        left += cycles / whole
