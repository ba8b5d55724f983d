"""Means, exponents, rows as text, and differences of runs."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.bench.diff import changes, changes_table
from pypto_egg.bench.figures import fitted_exponent, geometric_mean
from pypto_egg.bench.output import to_csv, to_json, to_markdown
from pypto_egg.bench.schema import EXTRACTION, Row
from pypto_egg.bench.store import Run
from pypto_egg.errors import OptionError

POSITIVE = st.floats(1e-6, 1e6)
VALUES = st.none() | st.floats(allow_nan=False, allow_infinity=False)


def run(name: str = "extraction-1") -> Run:
    when = datetime(2026, 1, 2, 3, 4)
    return Run(name, name.partition("-")[0], {}, 1, "finished", when, when, "abc",
               {"pypto_egg": "0.1"}, 1, 1)  # fmt: skip


def row(graph: str, extractor: str = "dag", **values: object) -> Row:
    known = {"graph": graph, "extractor": extractor, **values}
    return {**dict.fromkeys(EXTRACTION.names), **known}


@given(st.lists(POSITIVE, min_size=1, max_size=20), POSITIVE)
def test_the_geometric_mean_scales_and_lies_between(values, factor):
    mean = geometric_mean(values)
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    assert geometric_mean(v * factor for v in values) == pytest.approx(mean * factor)


@given(st.floats(-3, 3), POSITIVE, st.lists(st.integers(1, 10**6), min_size=2, unique=True))
def test_the_exponent_of_a_power_law_is_its_power(power, scale, sizes):
    fitted = fitted_exponent([(size, scale * size**power) for size in sizes])
    assert fitted == pytest.approx(power, abs=1e-6)


@pytest.mark.parametrize("points", [[], [(1, 2.0)], [(2, 1.0), (2, 3.0)], [(1, 0.0), (2, 1.0)]])
def test_there_is_no_exponent_of_one_size_or_of_nothing(points):
    assert fitted_exponent(points) is None


@given(st.text(), VALUES)
def test_csv_and_json_give_the_values_back(graph, cost):
    rows = [row(graph, cost=cost)]
    (read,) = csv.DictReader(io.StringIO(to_csv(run(), rows), newline=""))
    assert (read["run"], read["revision"], read["version"]) == ("extraction-1", "abc", "0.1")
    assert read["graph"] == graph
    assert read["cost"] == "" if cost is None else float(read["cost"]) == cost
    assert json.loads(to_json(run(), rows))["rows"] == rows


def test_markdown_tells_once_what_all_rows_share():
    text = to_markdown(run(), [row("a|b", nodes=3, cost=1.5), row("c", nodes=3, cost=2.0)])
    assert "In all rows: extractor dag; nodes 3." in text
    assert text.splitlines()[-4:] == [
        "| graph | cost |", "| --- | --- |", "| a\\|b | 1.5 |", "| c | 2.0 |",
    ]  # fmt: skip


def test_equal_rows_have_no_differences_but_times_do():
    one, other = [row("a", cost=0.1, seconds=1.0)], [row("a", cost=0.1, seconds=2.0)]
    assert changes((run(), one), (run("extraction-2"), other)) == []
    (change,) = changes((run(), one), (run("extraction-2"), other), measured=True)
    assert (change.column, change.relative) == ("seconds", 1.0)


def test_changes_are_by_row_and_column_and_the_greatest_first():
    before = [row("a", cost=100.0, status="optimal"), row("b", cost=1.0), row("gone")]
    after = [row("b", cost=2.0), row("a", cost=101.0, status="feasible"), row("new")]
    found = changes((run(), before), (run("extraction-2"), after))
    assert [(c.key[0], c.column, c.before, c.after) for c in found] == [
        ("a", "status", "optimal", "feasible"), ("a", "cost", 100.0, 101.0),
        ("b", "cost", 1.0, 2.0), ("gone", "", "there", None), ("new", "", None, "there"),
    ]  # fmt: skip
    table = changes_table(found, 2)
    assert [line[-1] for line in table.rows] == ["+100.00%", "+1.00%"]


def test_the_last_digit_of_a_sum_is_no_difference():
    one, other = [row("a", cost=0.1 + 0.2)], [row("a", cost=0.3)]
    assert not math.isclose(0.1 + 0.2, 0.3, rel_tol=0.0)
    assert changes((run(), one), (run("extraction-2"), other)) == []


def test_runs_of_two_commands_are_not_compared():
    with pytest.raises(OptionError, match="different commands"):
        changes((run(), []), (run("models-1"), []))
