"""Pages from templates: `page(template, title, ...)` is the HTML of one file."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from pypto_egg import __version__
from pypto_egg.report.pages.palette import QUEUE_COLOURS, SERIES

if TYPE_CHECKING:
    from jinja2 import Environment

_FIGURE = re.compile(r"[+-]?[\d,]+(\.\d+)?( ?%)?")
"""A number of a table, as opposed to words."""


def page(template: str, title: str, **values: object) -> str:
    """The page of a template; the same bytes for the same values.

    Everything that a template prints is escaped unless it is `Markup`. The page loads nothing, and
    its policy lets no script run but its own.
    """
    templates = _environment()
    script = templates.get_template("page.js").render()
    style = templates.get_template("page.css").render(series=SERIES, queues=QUEUE_COLOURS)
    return templates.get_template(template).render(
        title=title,
        version=__version__,
        style=_trusted(style),
        script=_trusted(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        **values,
    )


def fragment(template: str, **values: object) -> str:
    """A piece of HTML, for a notebook."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("pypto_egg.report.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    templates.filters["cycles"] = lambda value: f"{value:,.0f}"
    templates.filters["percent"] = lambda share: f"{100 * share:.6g}%"
    templates.filters["share"] = lambda share: f"{100 * share:.1f} %"
    templates.tests["figure"] = lambda cell: _FIGURE.fullmatch(cell) is not None
    return templates


def _trusted(text: str) -> object:
    """Text of our own, which holds no values, as it is."""
    from markupsafe import Markup

    return Markup(text)
