"""What goes wrong is told in a line or two, with an exit code, and never with a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pypto_egg.errors import InternalError

Command = Callable[..., Any]


def test_a_parse_error_points_at_the_place(pypto_egg: Command, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        "import pypto.language as pl\n\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def f(self, x: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:\n"
        "        y = pl.no_such_op(x)\n        return y\n"
    )
    done = pypto_egg("optimize", path)
    first, line, caret, *_ = done.err.splitlines()
    assert done.code == 1
    assert done.out == ""
    assert first.startswith(f"error: {path}:7:13: E102: ")
    assert line == "7 |         y = pl.no_such_op(x)"
    assert caret.strip("^ ") == ""
    assert line[caret.index("^") :].startswith("pl.no_such_op")


def test_a_lowering_error_names_what_is_needed(pypto_egg: Command) -> None:
    text = (
        "import pypto.language as pl\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def f(self, a: pl.Tensor[[16, 20], pl.FP32], b: pl.Tensor[[20, 16], pl.FP32])"
        " -> pl.Tensor[[16, 16], pl.FP32]:\n"
        "        c = pl.matmul(a, b)\n        return c\n"
    )
    done = pypto_egg("optimize", "-", stdin=text)
    assert done.code == 1
    assert done.err.startswith("error: <stdin>:6:13: E402: ")
    assert "K = 20" in done.err


def test_a_missing_file(pypto_egg: Command, tmp_path: Path) -> None:
    done = pypto_egg("print", tmp_path / "nothing.py")
    assert done.code == 1
    assert done.err.startswith("error: E101: cannot read ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", ["print", "optimize", "verify"])
def test_a_folder_is_no_file(pypto_egg: Command, tmp_path: Path, command: str) -> None:
    done = pypto_egg(command, tmp_path)
    assert done.code == 1
    assert done.err.startswith(f"error: E101: cannot read {tmp_path}: ")


def test_bytes_that_are_no_text(pypto_egg: Command) -> None:
    done = pypto_egg("print", "-", stdin=b"\xff\xfe\x00")
    assert done.code == 1
    assert done.err.startswith("error: E101: standard input is not UTF-8 text")


def test_an_output_that_cannot_be_written(pypto_egg: Command, biased: Path, tmp_path: Path) -> None:
    done = pypto_egg("lower", biased, "-o", tmp_path / "no" / "such" / "folder.py")
    assert done.code == 1
    assert done.err.startswith("error: E601: cannot write ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--target", "h100"), "no target 'h100'"),
        (("--cost-model", "guess"), "no cost model 'guess'"),
        (("--without-rules", "magic"), "there is no ruleset 'magic'"),
        (("--deadline", "0"), "deadline_seconds is 0"),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(
    pypto_egg: Command, biased: Path, args: tuple[str, ...], message: str
) -> None:
    done = pypto_egg("optimize", biased, *args)
    assert done.code == 1
    assert message in done.err


@pytest.mark.parametrize(
    "args",
    [
        ("optimize",),
        ("optimise", "x.py"),
        ("optimize", "x.py", "--extractor", "best"),
        ("optimize", "x.py", "--node-limit", "0"),
        ("optimize", "x.py", "-o", "-", "--json", "-"),
        ("run", "x.py", "--seed", "one"),
        ("--no-such-option",),
    ],
)
def test_wrong_usage_exits_with_2(pypto_egg: Command, args: tuple[str, ...]) -> None:
    done = pypto_egg(*args)
    assert done.code == 2
    assert done.err.startswith("Usage: ")


@pytest.mark.parametrize("symbol", ["M", "M=", "=4", "M=0", "M=-1", "M=x"])
def test_a_symbol_is_a_name_and_an_extent(pypto_egg: Command, biased: Path, symbol: str) -> None:
    done = pypto_egg("run", biased, "--symbol", symbol)
    assert done.code == 2
    assert "NAME=N" in done.err


def test_an_interrupt_exits_with_130(
    pypto_egg: Command, biased: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pypto_egg.interp.random_inputs", interrupted)
    done = pypto_egg("run", biased)
    assert done.code == 130
    assert "Traceback" not in done.err


def test_a_fault_of_ours_is_a_line_unless_the_traceback_is_asked_for(
    pypto_egg: Command, biased: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise InternalError("no such class")

    monkeypatch.setattr("pypto_egg.interp.random_inputs", broken)
    done = pypto_egg("run", biased)
    assert done.code == 70
    assert done.err.startswith("error: InternalError: no such class\nthis is a fault of pypto-egg")
    assert "Traceback" not in done.err
    told = pypto_egg("--traceback", "run", biased)
    assert told.code == 70
    assert told.err.startswith("Traceback ")
    assert ", in broken\n" in told.err


@pytest.mark.parametrize("args", [("print", "-"), ("rules",)])
def test_a_reader_that_goes_away_is_no_error(args: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    text = "import pypto.language as pl\n@pl.program\nclass P:\n    pass\n"
    with os.fdopen(writing, "wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "pypto_egg", *args],
            input=text.encode(),
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
    assert done.returncode == 1
