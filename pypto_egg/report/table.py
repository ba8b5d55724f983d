"""Small tables: plain text, or drawn by rich on a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TextIO

from pypto_egg.extract.cost.model import PIPES
from pypto_egg.lowering import Lowering
from pypto_egg.report.words import cycles, signed_cycles


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; the first column is left-aligned, `numbers` right-aligned."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: bool = True


def cost_table(lowering: Lowering) -> Table:
    """Cycles for each pipe that is used and in total, beside those of the reference lowering.

    The total is the cost model's own: what the kernel takes if pipes overlap as it assumes.
    """
    cost, baseline = lowering.cost, lowering.baseline
    own = {**cost.by_pipe(), "total": lowering.cycles}
    if baseline is None:
        used = [name for name in (*PIPES, "total") if own[name] or name == "total"]
        return Table(("pipe", "cycles"), tuple((name, cycles(own[name])) for name in used))
    old = {**baseline.cost.by_pipe(), "total": baseline.cycles}
    rows = tuple(
        (name, cycles(own[name]), cycles(old[name]), signed_cycles(own[name] - old[name]))
        for name in (*PIPES, "total")
        if own[name] or old[name] or name == "total"
    )
    return Table(("pipe", "cycles", "reference", "difference"), rows)


def plain(table: Table) -> str:
    """The table as aligned text, without colours or lines; ends with a line break."""
    lines = (table.header, *table.rows)
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.header))]
    text = ""
    for line in lines:
        cells = [
            cell.rjust(width) if table.numbers and i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        text += "  ".join(cells).rstrip() + "\n"
    return text


def show(table: Table, stream: TextIO) -> None:
    """Write the table to a stream: drawn on a terminal, plain text elsewhere."""
    if not stream.isatty():
        stream.write(plain(table))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as Drawn

    drawn = Drawn(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, title in enumerate(table.header):
        drawn.add_column(title, justify="right" if table.numbers and number else "left")
    for row in table.rows:
        drawn.add_row(*row)
    Console(file=stream).print(drawn)
