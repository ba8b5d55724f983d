"""What commands read and write: files, and "-" for the standard streams."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from pypto_egg.errors import OptionError, ParseError

if TYPE_CHECKING:
    from pypto_egg.ir.program import Program
    from pypto_egg.lowering import Lowering

STANDARD = "-"


def read_program(file: str) -> Program:
    """The program in a file, or on standard input."""
    from pypto_egg.text import parse, parse_file

    if file == STANDARD:
        return parse(_standard_input(), "<stdin>")
    return parse_file(file)


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParseError(f"standard input is not UTF-8 text: {error.reason}") from None


def check_streams(output: str | None, json_file: str | None) -> None:
    """Refuse two things on one standard output."""
    if output == json_file == STANDARD:
        raise click.UsageError("-o - and --json - would both write to stdout: name a file for one")


def write_lowering(
    lowering: Lowering, output: str | None, json_file: str | None, explain: bool, quiet: bool
) -> None:
    """The program, and its account: on stdout where that is free, else on stderr."""
    from pypto_egg.report.explain import explain as explanation
    from pypto_egg.report.summary import write_summary

    if json_file is not None:
        _write(json_file, lowering.to_json() + "\n")
    if output is not None:
        _write(output, lowering.text)
    elif json_file != STANDARD:
        click.echo(lowering.text, nl=False)
        sys.stdout.flush()
    account = sys.stdout if output not in (None, STANDARD) and json_file != STANDARD else sys.stderr
    if explain:
        account.write(explanation(lowering))
    elif not quiet:
        write_summary(lowering, account)


def _write(path: str, text: str) -> None:
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
