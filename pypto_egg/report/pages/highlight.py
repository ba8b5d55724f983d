"""Program text with its tokens marked up."""

from __future__ import annotations

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


def highlighted(text: str) -> Markup:
    """PyPTO text as HTML: spans with Pygments' short class names, everything escaped."""
    return Markup(highlight(text, PythonLexer(), HtmlFormatter(cssclass="code", wrapcode=False)))
