"""A headless Chromium that opens pages from files, and may not reach any network.

It is Debian's `chromium` (`apt-get install chromium`), or what PYPTO_EGG_BROWSER names. Where there
is none the tests are skipped; with PYPTO_EGG_REQUIRE_BROWSER=1, as in `.ci/run`, they fail.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).parent
# Makes `browser_pages` importable, and the rows that pages of results are made from.
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

from browser_pages import Open, Opened, Seen  # noqa: E402  (found by the path above)

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def _executable() -> str:
    named = os.environ.get("PYPTO_EGG_BROWSER")
    found = named or next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        why = "no Chromium here: apt-get install chromium, or name one in PYPTO_EGG_BROWSER"
        if os.environ.get("PYPTO_EGG_REQUIRE_BROWSER") == "1":
            pytest.fail(why)
        pytest.skip(why)  # a checkout without a browser can still run all other tests
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = _executable()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=list(_ARGS))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens HTML from a file, at a width and in a colour scheme, maybe by touch; offline."""
    contexts = []

    def opened(
        html: str, *, width: int = 1280, scheme: str = "light", touch: bool = False
    ) -> Opened:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if scheme == "dark" else "light",
            has_touch=touch,
            offline=True,
        )
        contexts.append(context)
        page, seen = context.new_page(), Seen()
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("console", lambda message: seen.complaints.append(message.text))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.goto(path.as_uri())
        return page, seen

    yield opened
    for context in contexts:
        context.close()
