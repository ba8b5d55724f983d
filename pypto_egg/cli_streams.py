"""What commands read and write: files, and "-" for the standard streams."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from pypto_egg.errors import OptionError, ParseError

if TYPE_CHECKING:
    from pypto_egg.ir.program import Program
    from pypto_egg.lowering import Lowering

STANDARD = "-"
FILE = click.argument("file", metavar="FILE")


def read_program(file: str) -> Program:
    """The program in a file, or on standard input."""
    from pypto_egg.text import parse, parse_file

    if file == STANDARD:
        return parse(standard_input(), "<stdin>")
    return parse_file(file)


def standard_input() -> str:
    """The text on standard input.

    Raises:
        ParseError: it is not UTF-8.
    """
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParseError(f"standard input is not UTF-8 text: {error.reason}") from None


@dataclass(frozen=True)
class Destinations:
    """Where the parts of a lowering go: paths, "-" for standard output, None for nowhere.

    The program goes to standard output unless `output` is given or something else goes there.

    Raises:
        click.UsageError: two of them are standard output.
    """

    output: str | None = None
    json: str | None = None
    html: str | None = None
    trace: str | None = None

    def __post_init__(self) -> None:
        given = {"-o": self.output, "--json": self.json, "--html": self.html}
        given["--trace"] = self.trace
        both = [option for option, path in given.items() if path == STANDARD]
        if len(both) > 1:
            raise click.UsageError(
                f"{both[0]} - and {both[1]} - would both write to stdout: name a file for one"
            )

    @property
    def data_on_stdout(self) -> bool:
        """Whether something else than the program is what standard output is for."""
        return STANDARD in (self.json, self.html, self.trace)


def write_lowering(lowering: Lowering, to: Destinations, explain: bool, quiet: bool) -> None:
    """The program, and its account: on stdout where that is free, else on stderr."""
    from pypto_egg.report.explain import explain as explanation
    from pypto_egg.report.summary import write_summary

    if to.json is not None:
        write_text(to.json, lowering.to_json() + "\n")
    if to.html is not None:
        write_text(to.html, lowering.to_html())
    if to.trace is not None:
        write_text(to.trace, lowering.to_trace() + "\n")
    if to.output is not None:
        write_text(to.output, lowering.text)
    elif not to.data_on_stdout:
        click.echo(lowering.text, nl=False)
        sys.stdout.flush()
    free = to.output not in (None, STANDARD) and not to.data_on_stdout
    account = sys.stdout if free else sys.stderr
    if explain:
        account.write(explanation(lowering))
    elif not quiet:
        write_summary(lowering, account)


def write_egraphs(lowering: Lowering, folder: str) -> None:
    """The e-graph of each lowered function as FUNCTION.json in a folder, which is made.

    Raises:
        OptionError: a file cannot be written.
    """
    from pypto_egg.extract import problem_to_json

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot make {folder}: {error.strerror or error}") from None
    for report in lowering.functions:
        text = problem_to_json(lowering.extraction_problem(report.name))
        write_text(str(Path(folder) / f"{report.name}.json"), text + "\n")


def write_text(path: str, text: str) -> None:
    """Write text to a file, or to standard output for "-".

    Raises:
        OptionError: the file cannot be written.
    """
    if path == STANDARD:
        click.echo(text, nl=False)
        return
    with _writable(path) as stream:
        stream.write(text)


@contextmanager
def _writable(path: str) -> Iterator[TextIO]:
    try:
        with Path(path).open("w", encoding="utf-8") as stream:
            yield stream
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None
