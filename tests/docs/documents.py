"""Documents as things to run: fenced blocks, what they print, and what the document says.

A `python` block runs in the namespace of its document, in the README in one of its own; a `text`
block right after it is its output. A `console` block holds commands after `$` and their output;
those of `pypto-egg` are run.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run, or whenever any rule is added.
_VARYING = (
    (re.compile(r"\b\d+\.\d+ s\b"), "0.00 s"),
    (re.compile(r"\bafter \d+ iterations, \d+ nodes\b"), "after 1 iterations, 1 nodes"),
    # When a run of the harness began, and of which revision it is, with the title above them.
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d +\S+"), "2026-01-01 00:00  revision"),
    (re.compile(r"\bstarted \(UTC\) +revision"), "started (UTC)  revision"),
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and where the text stands in the document."""

    language: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Output:
    """What a block should print, where that is written, and what it printed."""

    expected: str
    actual: str
    start: int
    end: int

    @property
    def agrees(self) -> bool:
        return steady(self.expected) == steady(self.actual)


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a document, in order."""
    return [Block(m[1], m[2], m.start(2), m.end(2)) for m in _FENCE.finditer(text)]


def steady(output: str) -> str:
    """An output without times and counts that vary."""
    for pattern, fixed in _VARYING:
        output = pattern.sub(fixed, output)
    return output


def run_document(path: Path) -> list[Output]:
    """Runs every block of a document and returns what should have been printed and what was."""
    text = path.read_text(encoding="utf-8")
    found, printed = list[Output](), ""
    namespace = {"__name__": path.stem}
    for block in blocks(text):
        if block.language == "python" and ">>>" not in block.text:
            if path == README:
                namespace = {"__name__": path.stem}
            printed = _run_python(block.text, namespace, f"{path.name}:{block.start}")
        elif block.language == "text":
            found.append(Output(block.text, printed, block.start, block.end))
        elif block.language == "console":
            found.append(Output(block.text, _run_console(block.text), block.start, block.end))
    return found


def updated(text: str, outputs: list[Output]) -> str:
    """The document with the outputs that do not agree replaced by what was printed."""
    for output in reversed(outputs):
        if not output.agrees:
            text = text[: output.start] + output.actual + text[output.end :]
    return text


def _run_python(code: str, namespace: dict[str, str], name: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), namespace)
    return printed.getvalue()


def _run_console(text: str) -> str:
    """The commands of a block, each followed by what it printed."""
    shown = ""
    for line in text.splitlines():
        if not line.startswith("$ "):
            continue
        shown += line + "\n"
        if line.startswith("$ pypto-egg "):
            done = subprocess.run(
                [sys.executable, "-m", "pypto_egg", *shlex.split(line)[2:]],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                cwd=ROOT,
            )
            shown += done.stdout
    return shown
