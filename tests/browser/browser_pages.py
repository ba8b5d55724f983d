"""What tests read off a page that is open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import Page


@dataclass
class Seen:
    """What a page did: the addresses that it asked for, and what it complained about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


Opened = tuple[Page, Seen]
Open = Callable[..., Opened]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    return int(
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )


def column(page: Page, table: str, number: int) -> list[str]:
    """The text of a column of a table's body, from the top; hidden rows are left out."""
    cells = page.locator(f"{table} tbody tr:not([hidden]) td:nth-child({number})")
    return [text.strip() for text in cells.all_text_contents()]


def contrast(page: Page, selector: str) -> float:
    """The contrast of an element's text with the page, by WCAG 2's formula (1 to 21)."""
    return float(
        page.evaluate(
            """(selector) => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => {
      const s = Number(c) / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const text = light(getComputedStyle(document.querySelector(selector)).color);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return (Math.max(text, paper) + 0.05) / (Math.min(text, paper) + 0.05);
}""",
            selector,
        )
    )
