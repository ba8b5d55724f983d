"""Plots of `bench alignment`: costs over M and N alignment, pipes, bytes against cycles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_egg.bench.figures import geometric_mean
from pypto_egg.bench.plots.drawing import Drawing, Plot, place_name, plain
from pypto_egg.bench.plots.heat import Heat, letters_on
from pypto_egg.bench.plots.matrix import matrix_plot
from pypto_egg.bench.plots.pareto import Point, pareto_plot
from pypto_egg.bench.plots.pipes import Stack, pipe_bars
from pypto_egg.bench.schema import ALIGNMENT, SPACES, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PRODUCTS = 12
"""Products that get plots of their own: those for which the choice matters most."""
WHOLE_KERNELS = ("pypto", "optimized")
"""Stand for an alignment in the rows of the kernel of PyPTO's rule and of the optimized one."""
_LEAST_SPAN = 0.2
_PRODUCT = ("workload", "dtype_a", "layout", "target", "model")
assert set(_PRODUCT) <= set(ALIGNMENT.key)


@dataclass(frozen=True)
class Choices:
    """All rows of one product on one target under one cost model, in the order of the run."""

    number: int
    key: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        workload, dtype, layout, target, model = self.key
        return plain(f"{workload}, {dtype} {layout}, {target}, {model}")

    @property
    def name(self) -> str:
        """The place of its plots on the page."""
        return f"product-{self.number}"

    @property
    def legal(self) -> list[Row]:
        return [row for row in self.rows if row["legal"]]

    @property
    def grid(self) -> list[Row]:
        """The rows of asked alignments; the others are of the two whole kernels."""
        return [row for row in self.rows if row["m_align"] not in WHOLE_KERNELS]

    @property
    def spread(self) -> float:
        """How many times as dear the worst legal choice is as the best."""
        return max((_number(row["ratio_best"]) for row in self.legal), default=0.0)

    def one(self, mark: str) -> Row | None:
        """The first legal row that is marked as `pypto` or `chosen`."""
        return next((row for row in self.legal if row[mark]), None)


def products(rows: Sequence[Row]) -> tuple[Choices, ...]:
    """The rows of a run by product, target and model."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(str(row[name]) for name in _PRODUCT), []).append(row)
    return tuple(
        Choices(number, key, tuple(own)) for number, (key, own) in enumerate(found.items(), 1)
    )


def shown(every: Sequence[Choices]) -> tuple[Choices, ...]:
    """The products that get plots of their own, in the order of the run."""
    most = sorted(every, key=lambda choices: (-choices.spread, choices.number))[:MOST_PRODUCTS]
    kept = (choices for choices in most if any(row["legal"] for row in choices.grid))
    return tuple(sorted(kept, key=lambda choices: choices.number))


def alignment_plots(rows: Sequence[Row]) -> tuple[Plot, ...]:
    """The plots of a run."""
    every = products(rows)
    plots = list(overall_heat_maps(every))
    plots.append(pipe_bars("pipes", _TITLE, _PIPES, list(_stacks(shown(every)))))
    for choices in shown(every):
        plots.append(heat_map(choices))
        plots.append(
            pareto_plot(
                f"{choices.name}-pareto",
                f"Cycles against on-chip bytes: {choices.title}",
                "Each legal choice; the line joins those that no other one beats in both.",
                ("KiB in use on chip, all spaces", "cycles"),
                [_point(row) for row in choices.legal],
            )
        )
    return tuple(plots)


_TITLE = "Busy cycles by pipe, chosen alignment beside PyPTO's rule"
_PIPES = (
    "Upper bar: what extraction chose; lower bar: the least legal extents, PyPTO's rule. Lengths "
    "are relative to all pipes of PyPTO's rule together; pipes overlap if the cost model says so."
)


def overall_heat_maps(every: Sequence[Choices]) -> Iterator[Plot]:
    """For each target and model cycles over the choices for M and N, the mean of all products;
    nothing for those with a single product."""
    for target, model in dict.fromkeys(choices.key[3:] for choices in every):
        own = [choices for choices in every if choices.key[3:] == (target, model)]
        if len(own) == 1:
            continue
        ratios: dict[tuple[str, str], list[float]] = {}
        for row in (row for choices in own for row in choices.grid if row["legal"]):
            pair = str(row["m_align"]), str(row["n_align"])
            ratios.setdefault(pair, []).append(_number(row["ratio_best"]))
        yield matrix_plot(
            place_name("overall", target, model),
            plain(f"Cycles over M and N alignment, all products: {target}, {model}"),
            f"The geometric mean of cycles over those of the best choice, of the products (of "
            f"{len(own)}) for which the choice is legal.",
            ("alignment of N (columns)", "alignment of M (rows)"),
            list(dict.fromkeys(m for m, _ in ratios)),
            list(dict.fromkeys(n for _, n in ratios)),
            {pair: _overall_cell(pair, found) for pair, found in ratios.items()},
            least_span=_LEAST_SPAN,
        )


def _overall_cell(pair: tuple[str, str], ratios: list[float]) -> tuple[float, str, str]:
    mean = geometric_mean(ratios)
    words = (
        f"M to {pair[0]}, N to {pair[1]}\n{mean:.3f} of the best, legal for {len(ratios)} products"
        f"\nat most {max(ratios):.2f}"
    )
    return mean, f"{mean:.2f}", words


def heat_map(choices: Choices) -> Plot:
    """Cycles over the choices for M and N, relative to the best one."""
    down = list(dict.fromkeys(str(row["m_align"]) for row in choices.grid))
    across = list(dict.fromkeys(str(row["n_align"]) for row in choices.grid))
    first = choices.rows[0]
    return Plot(
        f"{choices.name}-heat",
        f"Cycles over M and N alignment: {choices.title}",
        f"M {first['m']}, N {first['n']}, K {first['k']}. Numbers are cycles over those of the "
        f"best choice; hatched: not legal. Framed: the extents that extraction chose"
        f"{_of(choices.one('chosen'))}; dotted: those of PyPTO's rule{_of(choices.one('pypto'))}.",
        (1.9 + 0.62 * len(across), 1.5 + 0.42 * len(down)),
        lambda drawing: _draw_heat(drawing, choices, down, across),
    )


def _of(row: Row | None) -> str:
    return f", {row['physical_m']} x {row['physical_n']}" if row is not None else ""


def _draw_heat(drawing: Drawing, choices: Choices, down: list[str], across: list[str]) -> None:
    axes = drawing.axes("alignment of N (columns)", "alignment of M (rows)")
    heat = Heat(1.0, max(choices.spread, 1.0 + _LEAST_SPAN))
    for row in choices.grid:
        at = across.index(str(row["n_align"])), down.index(str(row["m_align"]))
        _cell(drawing, axes, at, row, heat)
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(len(down) - 0.5, -0.5)
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(down)), down)
    axes.tick_params(length=0)
    heat.bar(drawing, axes, "cycles / best")


def _cell(drawing: Drawing, axes: Axes, at: tuple[int, int], row: Row, heat: Heat) -> None:
    """One choice: its colour, its ratio, its frames, and all of it in words."""
    from matplotlib.patches import Rectangle

    x, y = at
    corner = (x - 0.5, y - 0.5)
    if not row["legal"]:
        cell = Rectangle(corner, 1, 1, facecolor="none", hatch="////", edgecolor=drawing.ink.line)
        drawing.tip(axes.add_patch(cell), f"{_extents(row)}\nnot legal: {row['reason']}")
        return
    ratio = _number(row["ratio_best"])
    fill = heat.colour(ratio)
    cell = Rectangle(corner, 1, 1, facecolor=fill, edgecolor=drawing.ink.paper, linewidth=1)
    drawing.tip(axes.add_patch(cell), _words(row))
    axes.text(
        x, y, f"{ratio:.2f}", ha="center", va="center", fontsize=8,
        color=letters_on(fill),
    )  # fmt: skip
    for mark, style, inset in (("chosen", "solid", 0.06), ("pypto", "dotted", 0.13)):
        if row[mark]:
            frame = Rectangle(
                (corner[0] + inset, corner[1] + inset), 1 - 2 * inset, 1 - 2 * inset,
                fill=False, linewidth=1.8, linestyle=style, edgecolor="#d55e00",
            )  # fmt: skip
            axes.add_patch(frame)


def _extents(row: Row) -> str:
    return f"M to {row['m_align']}, N to {row['n_align']}"


def _words(row: Row) -> str:
    lines = [
        _extents(row),
        f"{row['physical_m']} x {row['physical_n']} of physical extents",
        f"{_number(row['cycles']):,.0f} cycles, {_number(row['ratio_best']):.3f} of the best",
    ]
    if row["ratio_pypto"] is not None:
        lines.append(f"{_number(row['ratio_pypto']):.3f} of PyPTO's rule")
    lines += [words for mark, words in _MARKS.items() if row[mark]]
    return "\n".join(lines)


_MARKS = {"chosen": "chosen by extraction", "pypto": "PyPTO's rule"}


def _stacks(every: Sequence[Choices]) -> Iterator[tuple[str, list[Stack]]]:
    for choices in every:
        chosen, pypto = choices.one("chosen"), choices.one("pypto")
        both = [
            Stack.of(label, row)
            for label, row in (("chosen", chosen), ("PyPTO's rule", pypto))
            if row is not None
        ]
        if both:
            yield choices.title, both


def _point(row: Row) -> Point:
    held = sum(_number(row[f"{space}_bytes"]) for space in SPACES) / 1024
    words = f"{_words(row)}\n{held:,.1f} KiB on chip"
    return Point(held, _number(row["cycles"]), words, bool(row["chosen"]))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
