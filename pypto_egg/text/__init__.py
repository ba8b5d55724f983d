"""PyPTO's Python-syntax text form: reading it, and printing programs in its canonical form."""

from __future__ import annotations

from pathlib import Path

from pypto_egg.errors import ParseError
from pypto_egg.ir.program import Program
from pypto_egg.text.read_program import parse
from pypto_egg.text.write_expr import print_expr
from pypto_egg.text.write_program import print_function, print_program
from pypto_egg.text.write_type import print_type

__all__ = [
    "parse",
    "parse_file",
    "print_expr",
    "print_function",
    "print_program",
    "print_type",
]


def parse_file(path: str | Path) -> Program:
    """The program that a file states.

    Raises:
        ParseError: the file cannot be read, or what `parse` refuses.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ParseError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not UTF-8 text: {error.reason}") from None
    return parse(text, str(path))
