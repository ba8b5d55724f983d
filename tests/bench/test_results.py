"""Results as objects, read from a file and shown by a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_rows as rows_of
from IPython.core.formatters import DisplayFormatter

from pypto_egg.bench.results import Results, results
from pypto_egg.bench.store import Store
from pypto_egg.errors import OptionError


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A file with one run, of scaling."""
    store = Store(tmp_path / "results.duckdb")
    run = store.begin("scaling", {"family": ["layers"]}, tasks=1, revision="r", versions={})
    store.append(run, [(0, rows_of.scaling())])
    store.set_state(run, "finished")
    return store.path


def test_a_run_is_read_by_name_or_as_the_last_one(db: Path) -> None:
    found = results("scaling-1", db)
    assert list(found.rows) == rows_of.scaling()
    assert results(db=db).run.name == "scaling-1"
    assert repr(found) == "<Results of scaling-1: 3 rows, finished>"
    with pytest.raises(OptionError, match="there is no run 'models-1'"):
        results("models-1", db)


def test_a_notebook_shows_plots_and_rows(db: Path) -> None:
    data, _ = DisplayFormatter().format(results(db=db))
    assert data["text/plain"] == "<Results of scaling-1: 3 rows, finished>"
    html = data["text/html"]
    assert html.count("<svg") == 2
    assert html.count("<tr>") == 4
    assert "<script" not in html


def test_pages_and_files_are_made_from_it(db: Path, tmp_path: Path) -> None:
    found = results(db=db)
    assert "Scaling with program size (scaling-1)" in found.to_html()
    files = found.save_plots(tmp_path / "plots", ("svg",))
    assert [path.name for path in files] == ["scaling-1-time.svg", "scaling-1-size.svg"]


def test_names_are_escaped_in_a_notebook() -> None:
    rows = rows_of.alignment(("<script>alert(1)</script>", "other"))
    found = Results(rows_of.run_of("alignment", rows, revision="<b onclick=x>"), tuple(rows))
    assert "<script" not in found._repr_html_()
    assert "<b onclick" not in found._repr_html_()
