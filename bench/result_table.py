"""Rows of results as a table of few columns: what is the same in all of them is said once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto_egg.bench.schema import BOOL, TABLES, TEXT, Column, Row, Value


@dataclass(frozen=True)
class ResultTable:
    """A part of a run's rows.

    Args:
        same: (column, value) for the columns that have one value in all rows of the run.
        columns: the other ones, in order.
        rows: the first rows, a cell for each column.
        left_out: how many rows there are beside them.
    """

    same: tuple[tuple[Column, str], ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """The places of the columns that hold numbers."""
        texts = (TEXT, BOOL)
        return tuple(n for n, column in enumerate(self.columns) if column.type not in texts)


def result_table(command: str, rows: Sequence[Row], most: int) -> ResultTable:
    """The first rows of a run, `most` of them at most; columns without any value are left out."""
    same, columns = [], []
    for column in TABLES[command].columns:
        values = {row[column.name] for row in rows}
        if values <= {None, ""}:
            continue
        if len(values) == 1 and len(rows) > 1:
            same.append((column, shown(column, values.pop())))
        else:
            columns.append(column)
    return ResultTable(
        tuple(same),
        tuple(columns),
        tuple(tuple(shown(c, row[c.name]) for c in columns) for row in rows[:most]),
        max(0, len(rows) - most),
    )


def shown(column: Column, value: Value) -> str:
    """A value in words: whole cycles and bytes, ratios to three places, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not column.name.endswith(("cycles", "_saved")):
        return f"{value:,.4g}" if column.name.endswith("seconds") else f"{value:,.3f}"
    return f"{value:,.0f}" if isinstance(value, int | float) else value
