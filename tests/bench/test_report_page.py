"""The page of a run, as text; tests/browser opens it."""

from __future__ import annotations

import pytest
import report_rows as rows_of
from page_elements import Elements

from pypto_egg.bench.models import summary
from pypto_egg.bench.report_page import MOST_ROWS, report_page
from pypto_egg.bench.result_table import result_table, shown
from pypto_egg.bench.schema import ALIGNMENT, TABLES, Row


def page_of(command: str, rows: list[Row] | None = None, **run: object) -> Elements:
    rows = rows_of.of_command(command) if rows is None else rows
    return Elements(report_page(rows_of.run_of(command, rows, **run), rows))


@pytest.mark.parametrize("command", list(TABLES))
def test_a_page_has_plots_and_rows_and_loads_nothing(command: str) -> None:
    rows = rows_of.of_command(command)
    run = rows_of.run_of(command, rows)
    html = report_page(run, rows)
    assert html == report_page(run, rows)
    page = Elements(html)
    assert len(page.of("svg")) >= 1
    assert len(page.of("script")) == 1
    assert not [tag for tag, attrs in page.found if "src" in attrs]
    links = [href for tag, a in page.found if (href := a.get("href") or a.get("xlink:href"))]
    assert all(href.startswith(("#", "data:")) for href in links)
    ids = [attrs["id"] for _, attrs in page.found if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in links if href.startswith("#")} <= set(ids)


def test_products_lead_to_their_heat_maps() -> None:
    page = page_of("alignment")
    assert {"#product-1-heat", "#product-2-heat"} <= {a.get("href") for a in page.of("a")}
    assert "6 of 9" in page.text
    assert "5 rows are not whole fractals" in page.text


def test_the_tables_that_the_command_prints_stand_on_the_page() -> None:
    page = page_of("models")
    titles = [table.title for table in summary(rows_of.models())]
    assert len(titles) >= 3
    assert all(title in page.text for title in titles)
    tables = [attrs["id"] for attrs in page.of("table") if attrs.get("id")]
    assert tables[: len(titles)] == [f"summary-{n}" for n in range(1, len(titles) + 1)]


def test_what_is_the_same_in_all_rows_is_said_once() -> None:
    table = result_table("alignment", rows_of.alignment(), 100)
    assert {column.name: text for column, text in table.same}["model"] == "mte2_mad"
    names = [column.name for column in table.columns]
    assert names[:3] == ["workload", "m_align", "n_align"]
    assert "vec_bytes" not in names
    assert all(len(cells) == len(names) for cells in table.rows)
    assert [names[n] for n in table.numbers][:2] == ["physical_m", "physical_n"]


def test_a_single_row_is_shown_whole() -> None:
    table = result_table("alignment", rows_of.alignment()[:1], 100)
    assert table.same == ()
    assert "model" in [column.name for column in table.columns]


def test_values_in_words() -> None:
    column = {c.name: c for c in (*ALIGNMENT.columns, *TABLES["scaling"].columns)}
    assert shown(column["cycles"], 12345.6) == "12,346"
    assert shown(column["ratio_best"], 1.23456) == "1.235"
    assert shown(column["load_seconds"], 0.000123456) == "0.0001235"
    assert shown(column["legal"], True) == "yes"
    assert shown(column["cycles"], None) == ""
    assert shown(column["mat_bytes"], 65536) == "65,536"


def test_a_large_run_shows_its_first_rows_and_says_how_many_more() -> None:
    one = rows_of.scaling()[0] | {"size": 0}  # nothing to draw
    rows = [one | {"nodes": number} for number in range(MOST_ROWS + 7)]
    page = page_of("scaling", rows)
    assert "7 more rows are in the file of the results" in page.text
    assert f"{MOST_ROWS - 1:,}" in page.text
    assert f"{MOST_ROWS + 3:,}" not in page.text


def test_an_unfinished_run_says_how_to_go_on() -> None:
    page = page_of("alignment", state="interrupted", done=1)
    assert "interrupted: 1 of 4 tasks" in page.text
    assert "pypto-egg bench alignment --resume alignment-1" in page.text


def test_a_run_without_rows_has_a_page() -> None:
    page = page_of("models", [], done=0)
    assert "no rows yet" in page.text
    assert page.of("svg") == []


def test_hostile_names_are_text() -> None:
    name = "</td><script>alert(1)</script><img src=x onerror=alert(1)>"
    rows = rows_of.alignment((name, "other"))
    for row in rows:
        row["reason"] = row["reason"] and name
    page = page_of("alignment", rows, revision=name, arguments={name: [name]})
    assert len(page.of("script")) == 1
    assert page.of("img") == []
    assert page.text.count("<script>alert(1)</script>") > 10
