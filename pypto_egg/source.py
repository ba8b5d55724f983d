"""Source text and positions in it, for errors that point at the user's own line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A named text: a file's content or a string given to the parser."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """The text of line `number` (1-based); empty if there is no such line."""
        lines = self.text.splitlines()
        return lines[number - 1] if 1 <= number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one line of a source: 1-based line, 1-based column, length in characters."""

    source: Source
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def picture(self) -> str:
        """The source line with a caret line under it."""
        text = self.source.line(self.line)
        number = f"{self.line} | "
        width = max(1, min(self.length, len(text) - self.column + 1))
        return f"{number}{text}\n{' ' * (len(number) + self.column - 1)}{'^' * width}"
