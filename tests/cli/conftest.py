"""The command in this process, as the shell would start it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pypto_egg.cli import main

ROOT = Path(__file__).resolve().parents[2]

BIASED = """import pypto.language as pl


@pl.program
class Biased:
    @pl.function(type=pl.FunctionType.InCore)
    def linear(
        self,
        a: pl.Tensor[[100, 64], pl.FP32],
        b: pl.Tensor[[64, 48], pl.FP32],
        bias: pl.Tensor[[1, 48], pl.FP32],
    ) -> pl.Tensor[[100, 48], pl.FP32]:
        c = pl.matmul(a, b)
        d = pl.col_expand_add(c, bias)
        e = pl.exp(d)
        return e
"""


@dataclass(frozen=True)
class Done:
    """What a run of the command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture
def pypto_egg(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command with arguments, and text or bytes on its standard input."""

    def run(*args: str | Path, stdin: str | bytes = "") -> Done:
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "argv", ["pypto-egg", *map(str, args)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        return Done(int(stopped.value.code or 0), out, err)

    return run


@pytest.fixture
def biased(tmp_path: Path) -> Path:
    """A file with a linear layer whose 100 rows are no whole fractals."""
    path = tmp_path / "biased.py"
    path.write_text(BIASED, encoding="utf-8")
    return path
