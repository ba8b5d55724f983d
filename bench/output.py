"""Rows of a run as CSV, JSON and Markdown, and tables of them for reading."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import TextIO

from pypto_egg.bench.figures import Table
from pypto_egg.bench.schema import TABLES, Row, Value
from pypto_egg.bench.store import Run


def to_csv(run: Run, rows: Sequence[Row]) -> str:
    """The rows with run, revision and version in front, under a header; empty for no value."""
    version = run.versions.get("pypto_egg", "")
    lines = [_csv_line(["run", "revision", "version", *TABLES[run.command].names])]
    for row in rows:
        lines.append(_csv_line([run.name, run.revision, version, *map(_cell, row.values())]))
    return "".join(lines)


def _csv_line(cells: Sequence[str]) -> str:
    """One line; the writer quotes those line breaks that its own line end consists of."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def to_json(run: Run, rows: Sequence[Row]) -> str:
    """An object with the run, what each column means, and the rows."""
    record = {
        "run": {
            "name": run.name,
            "command": run.command,
            "arguments": dict(run.arguments),
            "state": run.state,
            "started": run.started.isoformat(),
            "revision": run.revision,
            "versions": dict(run.versions),
        },
        "columns": {column.name: column.what for column in TABLES[run.command].columns},
        "rows": list(rows),
    }
    return json.dumps(record, indent=1) + "\n"


def to_markdown(run: Run, rows: Sequence[Row]) -> str:
    """A table of the columns that differ from row to row, below a list of those that do not."""
    names = TABLES[run.command].names
    same = [n for n in names if rows and all(row[n] == rows[0][n] for row in rows)]
    if len(rows) == 1:
        same = []
    told = [f"{n} {_cell(rows[0][n])}" for n in same if rows[0][n] is not None]
    version = run.versions.get("pypto_egg", "")
    lines = [f"{run.name}, revision {run.revision}, version {version}"]
    lines += ["", "In all rows: " + "; ".join(told) + "."] if told else []
    shown = [n for n in names if n not in same]
    lines += ["", _line(shown), _line(["---"] * len(shown))]
    lines += [_line([_cell(row[n]) for n in shown]) for row in rows]
    return "\n".join(lines) + "\n"


def write_tables(tables: Sequence[Table], stream: TextIO) -> None:
    """Tables for reading, each under its title: drawn on a terminal, plain text elsewhere."""
    from pypto_egg.report.table import Table as Plain
    from pypto_egg.report.table import show

    for number, table in enumerate(tables):
        if number:
            stream.write("\n")
        if table.title:
            stream.write(table.title + "\n")
        show(Plain(table.header, table.rows), stream)


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
