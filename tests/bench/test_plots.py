"""Plots of the harness' results: what they hold, as files and as parts of pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import report_rows as rows_of
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pypto_egg.bench.plots.alignment import MOST_PRODUCTS, alignment_plots, products, shown
from pypto_egg.bench.plots.catalogue import plots
from pypto_egg.bench.plots.drawing import PAGE, Plot, place_name, plain
from pypto_egg.bench.plots.heat import Heat, letters_on
from pypto_egg.bench.plots.models import mean_regret
from pypto_egg.bench.plots.pareto import Point, front
from pypto_egg.bench.plots.render import FORMATS, inline_svg, save_plots
from pypto_egg.bench.plots.scaling import fitted
from pypto_egg.bench.schema import TABLES
from pypto_egg.errors import OptionError

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(plot: Plot) -> ElementTree.Element:
    return ElementTree.fromstring(inline_svg(plot))


def tips(plot: Plot) -> list[str]:
    return [title.text or "" for title in drawn(plot).iter(f"{SVG}title")]


def letters(plot: Plot) -> list[str]:
    return ["".join(text.itertext()) for text in drawn(plot).iter(f"{SVG}text")]


def plot_of(command: str, name: str) -> Plot:
    return next(p for p in plots(command, rows_of.of_command(command)) if p.name == name)


@pytest.mark.parametrize("command", list(TABLES))
def test_every_plot_labels_its_axes_and_has_marks(command: str) -> None:
    made = plots(command, rows_of.of_command(command))
    assert made
    assert len({plot.name for plot in made}) == len(made)
    for plot in made:
        assert plot.caption
        assert len(tips(plot)) >= 2
        assert len(letters(plot)) > 4


def test_no_rows_no_plots() -> None:
    assert all(plots(command, []) == () for command in TABLES)


def test_a_heat_map_has_a_cell_for_each_choice() -> None:
    plot = plot_of("alignment", "product-2-heat")
    said = tips(plot)
    assert len(said) == 9
    assert sum("not legal: 5 rows are not whole fractals" in text for text in said) == 3
    (chosen,) = [text for text in said if "chosen by extraction" in text]
    assert chosen.startswith("M to 32, N to 32\n32 x 32 of physical extents\n2,500 cycles, 1.250")
    shown_ratios = [text for text in letters(plot) if text in ("1.20", "1.25", "1.50")]
    assert shown_ratios == ["1.20", "1.25", "1.50"]
    assert {"alignment of M (rows)", "alignment of N (columns)", "cycles / best"} <= set(
        letters(plot)
    )


def test_the_mean_over_all_products_counts_legal_choices_only() -> None:
    (plot,) = [p for p in alignment_plots(rows_of.alignment()) if p.name.startswith("overall")]
    assert "M to 16, N to 16\n1.000 of the best, legal for 1 products\nat most 1.00" in tips(plot)
    assert any(t.startswith("M to 32, N to 32\n1.250 of the best, legal for 2") for t in tips(plot))
    single = alignment_plots(rows_of.alignment(("one",)))
    assert not [p for p in single if p.name.startswith("overall")]


def test_of_many_products_those_are_drawn_for_which_the_choice_matters() -> None:
    many = rows_of.alignment(tuple(f"w{n}" for n in range(MOST_PRODUCTS + 5)))
    for row in many:
        if row["workload"] == "w3" and row["legal"]:
            row["ratio_best"] = 1.0
    kept = shown(products(many))
    assert len(kept) == MOST_PRODUCTS
    assert "w3" not in {choices.key[0] for choices in kept}
    assert [choices.number for choices in kept] == sorted(choices.number for choices in kept)


def test_bars_say_how_busy_each_pipe_is() -> None:
    said = tips(plot_of("alignment", "pipes"))
    assert "qkv, BF16 nd, a2a3, mte2_mad\nchosen, mte2: 625 cycles, 50 % of all pipes" in said
    both = tips(plot_of("baseline", "pipes-reference"))
    assert any("reference, mte2: 1,000 cycles" in text for text in both)


def test_regret_is_a_geometric_mean_with_the_worst_program_named() -> None:
    said = tips(plot_of("models", "regret-a2a3"))
    assert (
        "choices of a, priced by b\n10.00 % dearer than its own over 2 programs\nat most 21.0 %: p"
        in said
    )
    assert mean_regret([0.21, 0.0]) == pytest.approx(0.1)


def test_predictions_are_compared_with_measurements() -> None:
    said = tips(plot_of("models", "measured"))
    assert "gemm on a2a3\na: 9,500 cycles, measured 10,000\n-5.0 % (a factor of 1.05)" in said
    assert len(said) == 2


def test_the_legend_states_the_fitted_exponents() -> None:
    assert "saturation: size^1.50" in letters(plot_of("scaling", "scaling-1-time"))
    assert "e-nodes: size^1.00" in letters(plot_of("scaling", "scaling-1-size"))


@given(st.floats(0.01, 100), st.floats(-2, 3))
def test_a_power_law_is_found_again(factor: float, exponent: float) -> None:
    found = fitted([(x, factor * x**exponent) for x in (1.0, 3.0, 20.0)])
    assert found is not None
    assert found == pytest.approx((factor, exponent), rel=1e-6, abs=1e-6)
    assert fitted([(2.0, 1.0), (2.0, 3.0)]) is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1))
def test_the_front_is_what_nothing_beats(costs: list[tuple[int, int]]) -> None:
    points = [Point(float(x), float(y), "") for x, y in costs]
    edge = {(point.x, point.y) for point in front(points)}

    def beaten(x: float, y: float) -> bool:
        return any(a <= x and b <= y and (a, b) != (x, y) for a, b in costs)

    assert edge == {(x, y) for x, y in costs if not beaten(x, y)}


@given(st.floats(0, 1))
def test_letters_can_be_read_on_every_colour_of_a_heat_map(value: float) -> None:
    fill = Heat(0.0, 1.0).colour(value)

    def light(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    paper = sum(w * light(c) for w, c in zip((0.2126, 0.7152, 0.0722), fill, strict=False))
    ink = 1.0 if letters_on(fill) == "#ffffff" else 0.0
    assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 4.5


def test_a_page_s_plot_has_ids_of_its_own_and_the_page_s_colours() -> None:
    both = [inline_svg(p) for p in alignment_plots(rows_of.alignment()) if "heat" in p.name]
    ids = [{e.get("id") for e in ElementTree.fromstring(svg).iter() if e.get("id")} for svg in both]
    assert not ids[0] & ids[1]
    for svg in both:
        assert "currentColor" in svg
        assert PAGE.text not in svg
        assert PAGE.line not in svg
        assert "<script" not in svg


HOSTILE = "<script>alert(1)</script> $x_1$ & \x00\n" + "long " * 40


def test_hostile_names_are_letters() -> None:
    rows = rows_of.alignment((HOSTILE, "other"))
    for plot in alignment_plots(rows):
        svg = inline_svg(plot)
        assert "<script" not in svg
    (bars,) = [plot for plot in alignment_plots(rows) if plot.name == "pipes"]
    assert any(text.startswith("<script>alert(1)</script> $x_1$ & ") for text in letters(bars))
    assert len(plain(HOSTILE)) == 90
    assert plain("a\nb\x00") == "a b "


def test_no_name_leaves_the_folder_of_plots() -> None:
    rows = rows_of.alignment()
    for row in rows:
        row["model"] = '../a b/c"<x>'
    for plot in alignment_plots(rows):
        assert re.fullmatch(r"[\w.-]+", plot.name)
        assert not plot.name.startswith(".")
    assert place_name("overall", "../x/..", "a b") == "overall-x-a-b"


def test_plots_are_files_for_papers(tmp_path: Path) -> None:
    made = plots("scaling", rows_of.scaling())
    written = save_plots(made, tmp_path / "new" / "folder", FORMATS)
    assert [path.name for path in written[:3]] == [
        f"scaling-1-time.{form}" for form in ("png", "svg", "pdf")
    ]
    with Image.open(written[0]) as picture:
        assert picture.size == (1320, 960)
        colours = picture.convert("RGB").getcolors(1 << 20)
        assert colours is not None
        assert len(colours) > 10
    assert ElementTree.parse(written[1]).getroot().tag == f"{SVG}svg"
    assert written[2].read_bytes().startswith(b"%PDF")


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    made = plots("scaling", rows_of.scaling())
    with pytest.raises(OptionError, match="plots cannot be written as 'gif'") as caught:
        save_plots(made, tmp_path, ("gif",))
    assert caught.value.hint == "known: png, svg, pdf"
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="cannot write"):
        save_plots(made, tmp_path / "file", ("svg",))


def test_the_same_rows_give_the_same_bytes_in_every_process() -> None:
    code = (
        "import sys, hashlib; sys.path.insert(0, 'tests/bench'); import report_rows as r\n"
        "from pathlib import Path; from tempfile import mkdtemp\n"
        "from pypto_egg.bench.plots.catalogue import plots\n"
        "from pypto_egg.bench.plots.render import inline_svg, save_plots\n"
        "made = plots('alignment', r.alignment())\n"
        "files = save_plots(made[:1], Path(mkdtemp()), ('png', 'svg', 'pdf'))\n"
        "pages = ''.join(inline_svg(plot) for plot in made[:3]).encode()\n"
        "all_ = b''.join(file.read_bytes() for file in files) + pages\n"
        "print(hashlib.sha256(all_).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "HOME": str(Path.home())},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
