"""What a notebook shows of results."""

from __future__ import annotations

from dataclasses import replace

import report_programs as programs
from IPython.core.formatters import DisplayFormatter

import pypto_egg
from pypto_egg.report.table import cost_table


def test_a_lowering_shows_cycles_changes_and_the_program() -> None:
    lowering = pypto_egg.optimize(programs.BIASED)
    data, _ = DisplayFormatter().format(lowering)
    assert data["text/plain"] == repr(lowering)
    html = data["text/html"]
    for row in cost_table(lowering).rows:
        for cell in row:
            assert f">{cell}</td>" in html
    assert "executed and equal" in html
    assert "the bias is added in the cube" in html
    assert "tile.matmul_bias" in html.split("<details>")[1]


def test_names_are_escaped() -> None:
    lowering = pypto_egg.optimize(programs.BIASED, verify=False)
    hostile = replace(lowering, program=replace(lowering.program, name="<b onclick=x>"))
    assert "<b onclick" not in hostile._repr_html_()
    assert "not verified" in hostile._repr_html_()
