"""PyPTO's own texts are read and printed back byte for byte."""

from pathlib import Path

import pytest

from pypto_egg.text import parse, parse_file, print_program

PROGRAMS = Path(__file__).parent.parent / "programs" / "pypto"
TEXTS = sorted(PROGRAMS.glob("*.py.txt"))


def test_the_samples_are_there() -> None:
    assert len(TEXTS) == 48


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name.removesuffix(".py.txt"))
def test_round_trip(path: Path) -> None:
    text = path.read_text()
    assert print_program(parse_file(path)).rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name.removesuffix(".py.txt"))
def test_concise_form_reads_back(path: Path) -> None:
    """Without annotations the inferred types must do; printing again changes nothing."""
    concise = print_program(parse_file(path), concise=True)
    assert print_program(parse(concise), concise=True) == concise


@pytest.mark.parametrize("path", TEXTS[::7], ids=lambda path: path.name.removesuffix(".py.txt"))
def test_another_prefix(path: Path) -> None:
    program = parse_file(path)
    renamed = print_program(program, prefix="L")
    assert "from pypto import language as L" in renamed
    assert "pl." not in renamed
    assert print_program(parse(renamed)) == print_program(program)
