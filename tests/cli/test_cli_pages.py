"""`optimize --html` and `--trace`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.parametrize("command", ["optimize", "lower"])
def test_page_and_trace_are_written_beside_the_program(
    pypto_egg: Command, biased: Path, tmp_path: Path, command: str
) -> None:
    html, trace = tmp_path / "out.html", tmp_path / "out.json"
    done = pypto_egg(command, biased, "--html", html, "--trace", trace)
    assert done.code == 0
    assert done.out.startswith("# pypto.program: Biased")
    assert html.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    assert {event["name"] for event in events} >= {"tile.load", "tile.matmul_bias"} or (
        command == "lower"
    )


@pytest.mark.parametrize(("option", "start"), [("--html", "<!DOCTYPE html>"), ("--trace", "{")])
def test_a_dash_is_standard_output(
    pypto_egg: Command, biased: Path, option: str, start: str
) -> None:
    done = pypto_egg("optimize", biased, option, "-")
    assert done.code == 0
    assert done.out.startswith(start)
    assert "@pl.program" not in done.out.splitlines()[0]
    assert "verified by execution" in done.err


def test_two_things_on_one_stream_are_refused(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("optimize", biased, "--html", "-", "--trace", "-")
    assert done.code == 2
    assert "--html - and --trace - would both write to stdout" in done.err


def test_a_place_that_cannot_be_written_is_an_error(pypto_egg: Command, biased: Path) -> None:
    done = pypto_egg("optimize", biased, "--html", biased / "page.html")
    assert done.code == 1
    assert "cannot write" in done.err
