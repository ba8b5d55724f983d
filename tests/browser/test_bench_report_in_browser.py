"""The pages of the harness' results in a real browser."""

from __future__ import annotations

from functools import cache

import pytest
import report_rows as rows_of
from browser_pages import Open, column, contrast, overflow

from pypto_egg.bench.report_page import report_page
from pypto_egg.bench.schema import TABLES


@cache
def page_of(command: str) -> str:
    rows = rows_of.of_command(command)
    return report_page(rows_of.run_of(command, rows), rows)


@pytest.mark.parametrize("command", list(TABLES))
def test_it_opens_without_network_or_complaints(open_page: Open, command: str) -> None:
    page, seen = open_page(page_of(command))
    assert len(seen.requests) == 1
    assert seen.complaints == []
    assert page.title().endswith(f"({command}-1)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("command", list(TABLES))
def test_it_is_legible(open_page: Open, command: str, width: int, scheme: str) -> None:
    page, _ = open_page(page_of(command), width=width, scheme=scheme)
    assert overflow(page) == 0
    for selector in ("h1", "p.soft", "a", "figcaption", "#row-table td"):
        assert contrast(page, selector) >= 4.5, selector
    ink = page.evaluate("getComputedStyle(document.body).color")
    for plot in page.locator(".plot svg").all():
        box = plot.bounding_box()
        assert box is not None
        assert box["width"] > 200
        assert box["height"] > 60
        letters = plot.locator("text").first
        assert page.evaluate("e => getComputedStyle(e).fill", letters.element_handle()) == ink


def test_a_click_sorts_numbers_as_numbers(open_page: Open) -> None:
    page, _ = open_page(page_of("alignment"))
    titles = [text.strip() for text in page.locator("#row-table th").all_text_contents()]
    place = titles.index("mte2_cycles")

    def cycles() -> list[int]:
        return [int(text.replace(",", "")) for text in column(page, "#row-table", place + 1)]

    given = cycles()
    button = page.locator("#row-table th").nth(place).get_by_role("button")
    button.click()
    assert cycles() == sorted(given)
    assert sorted(map(str, given)) != list(map(str, sorted(given)))
    button.click()
    assert cycles() == sorted(given, reverse=True)


def test_rows_without_a_value_go_last_both_ways(open_page: Open) -> None:
    page, _ = open_page(page_of("alignment"))
    titles = [text.strip() for text in page.locator("#row-table th").all_text_contents()]
    place = titles.index("ratio_best")
    button = page.locator("#row-table th").nth(place).get_by_role("button")
    for _ in range(2):
        button.click()
        shown = column(page, "#row-table", place + 1)
        assert shown[-3:] == ["", "", ""]
        assert "" not in shown[:-3]


def test_the_keyboard_sorts_too(open_page: Open) -> None:
    page, _ = open_page(page_of("baseline"))
    page.locator("#row-table th").first.get_by_role("button").focus()
    page.keyboard.press("Enter")
    names = column(page, "#row-table", 1)
    assert names == sorted(names)
    assert page.locator("#row-table th").first.get_attribute("aria-sort") == "ascending"


def test_words_filter_the_rows(open_page: Open) -> None:
    page, _ = open_page(page_of("alignment"))
    box = page.locator("input[data-filters=row-table]")
    box.fill("gate full")
    rows = page.locator("#row-table tbody tr:not([hidden])").all_text_contents()
    assert 0 < len(rows) < 9
    assert all("gate" in row and "full" in row for row in rows)
    box.fill("")
    assert len(column(page, "#row-table", 1)) == 18


def test_letters_in_cells_are_black_or_white(open_page: Open) -> None:
    page, _ = open_page(page_of("alignment"), scheme="dark")
    inks = page.locator("#product-1-heat svg text").evaluate_all(
        "all => all.filter(e => /^\\d\\.\\d\\d$/.test(e.textContent))"
        ".map(e => getComputedStyle(e).fill)"
    )
    assert len(inks) >= 9
    assert {"rgb(0, 0, 0)", "rgb(255, 255, 255)"} == set(inks)


def test_pointing_at_a_cell_says_what_it_is(open_page: Open) -> None:
    page, _ = open_page(page_of("alignment"))
    heat = page.locator("#product-1-heat svg")
    heat.scroll_into_view_if_needed()
    cells = heat.locator("g[id*=mark]")
    assert cells.count() == 9
    cells.nth(4).hover(force=True)
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert tip.inner_text().startswith("M to 32, N to 32")
    assert "chosen by extraction" in tip.inner_text()


def test_a_tap_on_a_phone_says_what_a_cell_is(open_page: Open) -> None:
    page, _ = open_page(page_of("alignment"), width=400, touch=True)
    cell = page.locator("#product-1-heat svg g[id*=mark]").first
    cell.scroll_into_view_if_needed()
    cell.tap(force=True)
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert tip.inner_text().startswith("M to 16, N to 16")
    box = tip.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 400
    page.locator("#product-1-heat figcaption").tap()
    assert tip.is_hidden()


def test_pointing_at_a_column_says_what_it_means(open_page: Open) -> None:
    page, _ = open_page(page_of("alignment"))
    page.locator("#row-table th", has_text="physical_m").hover()
    assert page.locator("#tip").inner_text().startswith("rows of one product's accumulator")


def test_a_product_leads_to_its_heat_map(open_page: Open) -> None:
    page, _ = open_page(page_of("alignment"))
    page.get_by_role("link", name="gate up").click()
    assert page.evaluate("location.hash") == "#product-2-heat"
    box = page.locator("#product-2-heat").bounding_box()
    assert box is not None
    assert -1 <= box["y"] < 800
