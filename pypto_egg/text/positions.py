"""Where things stand in a source text: spans for syntax nodes, comments for statements."""

from __future__ import annotations

import ast
import bisect
import io
import tokenize
from dataclasses import dataclass, field

from pypto_egg.source import Source, Span


@dataclass(slots=True)
class Positions:
    """Spans of the nodes of one parsed text, and the comments not yet attached to a statement."""

    source: Source
    lines: list[str] = field(init=False)
    _comments: list[tuple[int, int, str]] = field(init=False)  # line, column (0-based), text
    _next_comment: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        text = self.source.text.replace("\r\n", "\n").replace("\r", "\n")
        self.lines = text.split("\n")
        self._comments = _comments_of(text)

    def span(self, node: ast.AST) -> Span:
        """The span of a node; a node over several lines gives the part on its first line."""
        line = getattr(node, "lineno", 1)
        start = self._column(line, getattr(node, "col_offset", 0))
        end_line = getattr(node, "end_lineno", line)
        if end_line != line:
            end = len(self.lines[line - 1]) if line <= len(self.lines) else start + 1
        else:
            end = self._column(line, getattr(node, "end_col_offset", start + 1))
        return Span(self.source, line, start + 1, max(1, end - start))

    def at(self, line: int, column: int) -> Span:
        """A one-character span; line and column are 1-based and clipped to the text."""
        line = min(max(1, line), max(1, len(self.lines)))
        return Span(self.source, line, max(1, column))

    def skip_comments(self, line: int) -> None:
        """Go on with the comments from `line` on; those before belong to no statement of a body."""
        self._next_comment = bisect.bisect_left(self._comments, (line, -1, ""))

    def take_comments(self, line: int, column: int) -> tuple[str, ...]:
        """The comments up to and including `line` that belong to the statement there.

        A comment indented deeper than the statement, on an earlier line, closed an inner block and
        belongs to no statement; PyPTO drops it as well.
        """
        taken = []
        while self._pending(line):
            at_line, at_column, text = self._comments[self._next_comment]
            self._next_comment += 1
            if at_column <= column or at_line == line or self._trails_code(at_line, at_column):
                taken.append(text)
        return tuple(taken)

    def _pending(self, line: int) -> bool:
        return self._next_comment < len(self._comments) and (
            self._comments[self._next_comment][0] <= line
        )

    def _trails_code(self, line: int, column: int) -> bool:
        return bool(self.lines[line - 1][:column].strip())

    def _column(self, line: int, utf8_offset: int) -> int:
        """The 0-based character column of a UTF-8 byte offset in a line."""
        if line > len(self.lines) or self.lines[line - 1].isascii():
            return utf8_offset
        head = self.lines[line - 1].encode("utf-8", "surrogatepass")[:utf8_offset]
        return len(head.decode("utf-8", "ignore"))


def _comments_of(text: str) -> list[tuple[int, int, str]]:
    """All comments of a text that Python's grammar accepts, in order."""
    if "#" not in text:
        return []
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found.append((token.start[0], token.start[1], token.string[1:].strip()))
    except (tokenize.TokenError, SyntaxError):
        return found
    return found
