"""Two runs of one command, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto_egg.bench.figures import SAME, Table
from pypto_egg.bench.schema import TABLES, Row, Value
from pypto_egg.bench.store import Run
from pypto_egg.errors import OptionError


@dataclass(frozen=True)
class Change:
    """One value that differs; `None` for a whole row that only one run has.

    Args:
        key: what the row is of.
        column: "" for a whole row.
    """

    key: tuple[Value, ...]
    column: str
    before: Value
    after: Value

    @property
    def relative(self) -> float | None:
        """after / before - 1, of numbers."""
        numbers = isinstance(self.before, int | float) and isinstance(self.after, int | float)
        if not numbers or isinstance(self.before, bool) or not self.before:
            return None
        assert isinstance(self.after, int | float)
        return self.after / float(self.before) - 1.0


def changes(
    before: tuple[Run, Sequence[Row]], after: tuple[Run, Sequence[Row]], *, measured: bool = False
) -> list[Change]:
    """What differs between the rows of two runs, in the order of the first.

    Args:
        measured: compare times and memory, too, which differ from run to run.

    Raises:
        OptionError: the runs are of different commands.
    """
    table = TABLES[before[0].command]
    if after[0].command != table.name:
        raise OptionError(
            f"{before[0].name} and {after[0].name} are of different commands",
            hint="compare two runs of one command",
        )
    old, new = (
        {tuple(row[name] for name in table.key): row for row in rows} for _, rows in (before, after)
    )
    compared = [
        column.name
        for column in table.columns
        if column.name not in table.key and (measured or not column.measured)
    ]
    found: list[Change] = []
    for key, row in old.items():
        other = new.get(key)
        if other is None:
            found.append(Change(key, "", "there", None))
            continue
        found += [
            Change(key, name, row[name], other[name])
            for name in compared
            if not _same(row[name], other[name])
        ]
    found += [Change(key, "", None, "there") for key in new if key not in old]
    return found


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= SAME * max(abs(one), abs(other))
    return one == other


def changes_table(found: Sequence[Change], most: int | None) -> Table:
    """The first changes, and the greatest relative ones first."""
    order = sorted(found, key=lambda one: -abs(one.relative or 0.0))
    rows = tuple(
        (" ".join(map(str, one.key)), one.column or "row", _shown(one.before), _shown(one.after),
         "" if one.relative is None else f"{one.relative:+.2%}")
        for one in order[:most]
    )  # fmt: skip
    return Table(("of", "column", "before", "after", "change"), rows)


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
