"""A run of the harness as one page: plots and tables that sort; it works offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from markupsafe import Markup

from pypto_egg.bench.figures import Table
from pypto_egg.bench.plots.alignment import Choices, products, shown
from pypto_egg.bench.plots.catalogue import plots
from pypto_egg.bench.plots.drawing import Plot
from pypto_egg.bench.plots.render import inline_svg
from pypto_egg.bench.result_table import result_table
from pypto_egg.bench.schema import Row
from pypto_egg.bench.store import Run
from pypto_egg.report.pages.page import fragment, page

MOST_ROWS = 2000
"""Rows of a page's table; the file of the results has all of them."""


_CELL_PLOTS, _CELL_ROWS = 2, 8
_REASONS = 2
_WIDE_INCHES = 7.0
_TITLES = {
    "alignment": "Alignment of M and N",
    "models": "Cost models compared",
    "baseline": "Optimize against the baselines",
    "scaling": "Scaling with program size",
    "extraction": "Extractors compared",
}


@dataclass(frozen=True)
class Drawn:
    """A plot on the page."""

    name: str
    title: str
    caption: str
    svg: Markup
    wide: bool


@dataclass(frozen=True)
class ProductRow:
    """One product of an alignment run: what PyPTO's rule takes, what was chosen, the best.

    Args:
        place: of its heat map on the page; empty if it has none.
        legal: how many of the choices are legal.
        spread: how many times as dear the worst legal choice is as the best.
        refused: why choices are not legal, each reason once, up to two of them.
    """

    title: str
    place: str
    legal: str
    pypto: str
    chosen: str
    best_cycles: float | None
    pypto_ratio: float | None
    chosen_ratio: float | None
    spread: float | None
    refused: str


def report_page(run: Run, rows: Sequence[Row]) -> str:
    """One HTML file; the same bytes for the same run."""
    return page(
        "bench.html.j2",
        f"{_TITLES[run.command]} ({run.name})",
        run=run,
        started=f"{run.started:%Y-%m-%d %H:%M} UTC",
        arguments=[(name, _words(value)) for name, value in run.arguments.items() if value],
        drawn=[_drawn(plot) for plot in plots(run.command, rows)],
        summaries=_summaries(run.command, rows) if rows else (),
        products=_products(rows) if run.command == "alignment" else (),
        table=result_table(run.command, rows, MOST_ROWS) if rows else None,
    )


def results_cell(run: Run, rows: Sequence[Row]) -> str:
    """The run in a notebook's cell: its first plots and rows, as HTML."""
    return fragment(
        "bench_cell.html.j2",
        run=run,
        drawn=[_drawn(plot) for plot in plots(run.command, rows)[:_CELL_PLOTS]],
        table=result_table(run.command, rows, _CELL_ROWS) if rows else None,
    )


def _drawn(plot: Plot) -> Drawn:
    wide = plot.size[0] > _WIDE_INCHES
    return Drawn(plot.name, plot.title, plot.caption, inline_svg(plot), wide)


def _words(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_words(item) for item in value)
    if isinstance(value, Mapping):
        # A workload by its name; what else it is stands in the rows.
        return _words(value.get("name") or [f"{name} {_words(of)}" for name, of in value.items()])
    return "" if value is None else str(value)


def _summaries(command: str, rows: Sequence[Row]) -> Sequence[Table]:
    """The tables that the command prints; those of alignments are the page's own."""
    if command == "alignment":
        return ()
    tables: Sequence[Table] = import_module(f"pypto_egg.bench.{command}").summary(rows)
    return tables


def _products(rows: Sequence[Row]) -> tuple[ProductRow, ...]:
    every = products(rows)
    drawn = {choices.number for choices in shown(every)}
    return tuple(_product(choices, choices.number in drawn) for choices in every)


def _product(choices: Choices, drawn: bool) -> ProductRow:
    pypto, chosen = choices.one("pypto"), choices.one("chosen")
    costs = [cycles for row in choices.legal if (cycles := _ratio(row, "cycles")) is not None]
    return ProductRow(
        title=choices.title,
        place=f"{choices.name}-heat" if drawn else "",
        legal=f"{len(choices.legal)} of {len(choices.rows)}",
        pypto=_extents(pypto),
        chosen=_extents(chosen),
        best_cycles=min(costs, default=None),
        pypto_ratio=_ratio(pypto, "ratio_best"),
        chosen_ratio=_ratio(chosen, "ratio_best"),
        spread=choices.spread or None,
        refused=_refused(choices),
    )


def _refused(choices: Choices) -> str:
    reasons = list(dict.fromkeys(str(row["reason"]) for row in choices.rows if not row["legal"]))
    more = len(reasons) - _REASONS
    return "; ".join(reasons[:_REASONS]) + (f"; and {more} more reasons" if more > 0 else "")


def _extents(row: Row | None) -> str:
    return f"{row['physical_m']} x {row['physical_n']}" if row is not None else "none"


def _ratio(row: Row | None, name: str) -> float | None:
    value = row[name] if row is not None else None
    return float(value) if isinstance(value, int | float) else None
