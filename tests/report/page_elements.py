"""What a page consists of, for tests that look at its elements and its text."""

from __future__ import annotations

from html.parser import HTMLParser


class Elements(HTMLParser):
    """All elements of a page with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, tag: str, **attrs: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.found if t == tag and attrs.items() <= a.items()]
