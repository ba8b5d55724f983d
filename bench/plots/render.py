"""Plots as files for papers, and as SVG for pages: the same bytes for the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from pypto_egg.bench.plots.drawing import PAGE, PAPER, Drawing, Ink, Plot
from pypto_egg.errors import OptionError

if TYPE_CHECKING:
    from markupsafe import Markup

FORMATS = ("png", "svg", "pdf")
_DOTS_PER_INCH = 200
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# The colours of our pages; elsewhere, as in a notebook, what is legible on any paper.
_SCHEME = {
    PAGE.text: "currentColor",
    PAGE.line: "var(--line, #9aa3ad)",
    PAGE.paper: "var(--paper, transparent)",
}


def save_plots(plots: tuple[Plot, ...], folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """Write each plot in each format; the files, in order.

    Raises:
        OptionError: there is no such format, or the folder cannot be written.
    """
    for form in formats:
        if form not in FORMATS:
            raise OptionError(
                f"plots cannot be written as '{form}'", hint=f"known: {', '.join(FORMATS)}"
            )
    written = []
    for plot in plots:
        for form in formats:
            path = folder / f"{plot.name}.{form}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_bytes(_rendered(plot, PAPER, form)[0])
            except OSError as error:
                raise OptionError(f"cannot write {path}: {error.strerror or error}") from None
            written.append(path)
    return written


def inline_svg(plot: Plot) -> Markup:
    """The plot as an SVG element: letters are text, colours follow the page, marks say what they
    are when they are pointed at."""
    from markupsafe import Markup

    made, drawing = _rendered(plot, PAGE, "svg")
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(made)
    for meta in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(meta)
    for element in root.iter():
        text = drawing.tips.get(element.get("id", ""))
        if text is not None:
            title = ElementTree.Element(f"{{{_SVG}}}title")
            title.text = text
            element.insert(0, title)
        _localise(element, plot.name)
    width = root.attrib.pop("width")
    root.attrib.pop("height")
    root.set("style", f"width: 100%; max-width: {float(width.removesuffix('pt')) * 4 / 3:.0f}px")
    root.set("role", "img")
    root.set("aria-label", plot.title)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _localise(element: ElementTree.Element, prefix: str) -> None:
    """Make ids the plot's own, and colours the page's."""
    for name, value in list(element.attrib.items()):
        if name == "id":
            value = f"{prefix}-{value}"
        elif name == f"{{{_XLINK}}}href":
            value = value.replace("#", f"#{prefix}-")
        value = value.replace("url(#", f"url(#{prefix}-")
        for colour, own in _SCHEME.items():
            value = value.replace(colour, own)
        element.set(name, value)


def _rendered(plot: Plot, ink: Ink, form: str) -> tuple[bytes, Drawing]:
    from matplotlib.figure import Figure

    with _style(ink, letters_as_text=ink is PAGE):
        drawing = Drawing(Figure(figsize=plot.size, layout="constrained"), ink)
        plot.draw(drawing)
        stream = BytesIO()
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
        drawing.figure.savefig(
            stream,
            format=form,
            dpi=_DOTS_PER_INCH,
            metadata=dates[form],
            transparent=ink is PAGE,
        )
    return stream.getvalue(), drawing


@contextmanager
def _style(ink: Ink, *, letters_as_text: bool) -> Iterator[None]:
    import matplotlib

    settings: Any = {  # the stubs know the names of all settings, and no dict of str
        "svg.fonttype": "none" if letters_as_text else "path",
        "text.parse_math": False,
        "svg.hashsalt": "pypto-egg",
        "font.family": ["DejaVu Sans"],
        "font.size": 9.5,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "hatch.linewidth": 0.6,
        "hatch.color": ink.line,
        "pdf.fonttype": 42,
    }
    settings |= dict.fromkeys(
        ("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink.text
    )
    settings |= {"axes.edgecolor": ink.line, "grid.color": ink.line}
    with matplotlib.rc_context(settings):
        yield
