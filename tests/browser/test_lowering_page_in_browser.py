"""The page of a lowering in a real browser."""

from __future__ import annotations

from dataclasses import replace

import pytest
from browser_pages import Open, column, contrast, overflow

import pypto_egg
from pypto_egg import Lowering

KERNEL = "bench/kernels/flash_attention.py"


@pytest.fixture(scope="module")
def lowering(pytestconfig: pytest.Config) -> Lowering:
    return pypto_egg.optimize(pytestconfig.rootpath / KERNEL)


def test_it_opens_without_network_or_complaints(open_page: Open, lowering: Lowering) -> None:
    page, seen = open_page(lowering.to_html())
    assert len(seen.requests) == 1
    assert seen.requests[0].startswith("file://")
    assert seen.complaints == []
    assert page.title() == f"{lowering.program.name} for a2a3"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_is_legible(open_page: Open, lowering: Lowering, width: int, scheme: str) -> None:
    page, _ = open_page(lowering.to_html(), width=width, scheme=scheme)
    assert overflow(page) == 0
    for selector in ("h1", "p.soft", ".code .k", ".code .mi", "figcaption", "a"):
        assert contrast(page, selector) >= 4.5, selector
    before, after = page.locator(".programs > div").all()
    boxes = before.bounding_box(), after.bounding_box()
    assert boxes[0] is not None
    assert boxes[1] is not None
    side_by_side = boxes[0]["y"] == boxes[1]["y"]
    assert side_by_side == (width == 1280)


def test_a_click_sorts_the_decisions(open_page: Open, lowering: Lowering) -> None:
    page, _ = open_page(lowering.to_html())

    def cycles() -> list[float]:
        shown = column(page, "#decisions-1", 4)
        return [float(text.replace(",", "")) if text else float("inf") for text in shown]

    given = cycles()
    button = page.locator("#decisions-1 th").nth(3).get_by_role("button")
    button.click()
    assert cycles() == sorted(given) != given
    assert page.locator("#decisions-1 th").nth(3).get_attribute("aria-sort") == "ascending"
    button.click()
    finite = sorted((c for c in given if c != float("inf")), reverse=True)
    assert cycles()[: len(finite)] == finite
    names = page.locator("#decisions-1 th").nth(0).get_by_role("button")
    names.click()
    assert column(page, "#decisions-1", 1) == sorted(column(page, "#decisions-1", 1), key=str.lower)


def test_the_timeline_shows_every_pipe_that_works(open_page: Open, lowering: Lowering) -> None:
    page, _ = open_page(lowering.to_html())
    lanes = page.locator("#gantt-1 .lane:not(.axis)")
    labels = [text.strip() for text in lanes.locator("> span > b").all_text_contents()]
    assert labels == ["mte2", "mte1", "cube", "fixpipe", "mte2_aiv", "vector", "mte3"]
    for lane in lanes.all():
        box = lane.locator("rect.mark").first.bounding_box()
        frame = lane.locator("svg").bounding_box()
        assert box is not None
        assert frame is not None
        assert box["height"] > 5
        assert (
            frame["x"] - 1 <= box["x"] <= box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
        )


def test_pointing_at_an_instruction_says_what_it_is(open_page: Open, lowering: Lowering) -> None:
    page, _ = open_page(lowering.to_html())
    assert page.locator("#tip").is_hidden()
    page.locator("#gantt-1 rect.q-vector").first.hover(force=True)
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert "cycles" in tip.inner_text()
    page.locator("h1").hover()
    assert tip.is_hidden()


def test_the_slider_widens_the_timeline_inside_of_its_frame(
    open_page: Open, lowering: Lowering
) -> None:
    page, _ = open_page(lowering.to_html())
    lanes = page.locator("#gantt-1")
    before = lanes.bounding_box()
    page.locator("input[data-zooms=gantt-1]").fill("10")
    after = lanes.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] == pytest.approx(10 * before["width"], rel=0.01)
    assert overflow(page) == 0


def test_memory_is_drawn_for_every_space(open_page: Open, lowering: Lowering) -> None:
    page, _ = open_page(lowering.to_html())
    spaces = page.locator("#memory-1 .space > span b").all_text_contents()
    assert sorted(spaces) == sorted(lowering.functions[0].peak_bytes)
    for space in page.locator("#memory-1 .space").all():
        assert space.locator("rect.held").count() > 0
    page.locator("#memory-1 rect.held").first.hover(force=True)
    assert "bytes" in page.locator("#tip").inner_text()


def test_a_name_is_marked_on_both_sides(open_page: Open, lowering: Lowering) -> None:
    page, _ = open_page(lowering.to_html())
    tiles = page.locator(".programs > div").nth(1)
    name = tiles.locator(".n", has_text="__tile").first
    value = name.inner_text().removesuffix("__tile")
    name.hover()
    marked = page.locator(".programs .same").all_text_contents()
    assert {text.removesuffix("__tile") for text in marked} == {value}
    assert value in marked
    assert f"{value}__tile" in marked


def test_links_lead_to_their_sections(open_page: Open, lowering: Lowering) -> None:
    page, _ = open_page(lowering.to_html())
    for link in page.locator("nav a").all():
        target = link.get_attribute("href") or ""
        link.click()
        assert page.evaluate("location.hash") == target
        assert page.locator(target).count() == 1


def test_a_hostile_name_does_not_run(open_page: Open, lowering: Lowering) -> None:
    name = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    hostile = replace(lowering, program=replace(lowering.program, name=name), fallback=name)
    page, seen = open_page(hostile.to_html())
    assert page.title() == f"{name} for a2a3"
    assert page.locator("h1").inner_text() == f"{name} for a2a3"
    assert len(seen.requests) == 1
