"""The page of a lowering, as text; tests/browser opens it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import report_programs as programs
from page_elements import Elements

import pypto_egg
from pypto_egg.bench.random_programs import sample
from pypto_egg.report.instructions import kernel_schedule
from pypto_egg.report.pages.gantt import gantt
from pypto_egg.report.words import cycles, roofline_words

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "</title><script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


def test_both_programs_stand_on_the_page_word_for_word() -> None:
    lowering = pypto_egg.optimize(programs.LOOP)
    text = Elements(lowering.to_html()).text
    assert lowering.text.strip() in text
    assert pypto_egg.print_program(lowering.source).strip() in text


def test_every_option_of_every_decision_is_a_row() -> None:
    lowering = pypto_egg.optimize(programs.BIASED)
    page = Elements(lowering.to_html())
    options = [option for decision in lowering.alternatives for option in decision.options]
    statuses = [option.status for option in options]
    assert len(set(statuses)) > 1
    rows = [attrs["class"] for attrs in page.of("tr") if attrs.get("class")]
    assert rows == statuses
    for option in options:
        assert option.what in page.text
        assert option.why in page.text
    assert cycles(lowering.cycles) in page.text
    assert roofline_words(lowering.functions[0]) in page.text


def test_the_page_loads_nothing() -> None:
    page = pypto_egg.optimize(programs.BIASED).to_html()
    elements = Elements(page)
    assert {a.get("href") for a in elements.of("link")} == {"data:,"}
    assert all(href.startswith("#") for a in elements.of("a") if (href := a["href"]) is not None)
    assert not [tag for tag, attrs in elements.found if "src" in attrs]
    assert "url(" not in page
    assert "@import" not in page
    (policy,) = elements.of("meta", **{"http-equiv": "Content-Security-Policy"})
    assert (policy["content"] or "").startswith("default-src 'none'")


def test_hostile_names_are_text() -> None:
    lowering = pypto_egg.optimize(programs.BIASED, verify=False)
    hostile = replace(
        lowering,
        program=replace(lowering.program, name=HOSTILE),
        source=replace(lowering.source, name=HOSTILE),
        fallback=HOSTILE,
        verification=HOSTILE,
    )
    page = Elements(hostile.to_html())
    assert len(page.of("script")) == 1
    assert page.of("img") == []
    assert page.text.count("<script>alert('x')</script>") >= 4


def test_the_page_is_the_same_in_every_process() -> None:
    code = (
        "import sys, pypto_egg, hashlib\n"
        "l = pypto_egg.optimize('bench/kernels/bias_matmul.py')\n"
        "print(hashlib.sha256((l.to_html() + l.to_trace()).encode()).hexdigest())"
    )
    found = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        found.add(done.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_have_pages_and_traces(seed: int) -> None:
    lowering = pypto_egg.optimize(sample(seed, 4), target=("a2a3", "a5")[seed % 2])
    page = Elements(lowering.to_html())
    for report in lowering.functions:
        assert f"Kernel {report.name}" in page.text
        schedule = kernel_schedule(lowering, report)
        path = schedule.launch_cycles + sum(schedule.critical_cycles().values())
        assert path == pytest.approx(schedule.total_cycles)
    slices = [e for e in json.loads(lowering.to_trace())["traceEvents"] if e["ph"] == "X"]
    assert bool(slices) == bool(lowering.functions)


def test_a_kernel_that_cannot_be_simulated_says_so() -> None:
    lowering = pypto_egg.optimize(programs.BIASED, verify=False)
    # Tensor operations have no instructions.
    text = Elements(replace(lowering, program=lowering.source).to_html()).text
    assert "There is no timeline: E401: tensor.matmul cannot be simulated" in text
    assert "The kernel holds no tiles." in text


def test_a_long_kernel_is_drawn_with_a_bounded_number_of_marks() -> None:
    loop = programs.program(
        "x: pl.Tensor[[16, 128], pl.FP32]",
        "pl.Tensor[[16, 128], pl.FP32]",
        "for i, (y,) in pl.range(0, 20000, 1, init_values=(x,)):\n"
        "    z = pl.exp(y)\n    r = pl.yield_(z)\nreturn r",
    )
    lowering = pypto_egg.optimize(loop, verify=False)
    schedule = kernel_schedule(lowering, lowering.functions[0])
    drawn = gantt(schedule)
    assert len(schedule.instructions) > 20_000
    assert sum(len(lane.marks) for lane in drawn.lanes) < 5_000
    vector = next(lane for lane in drawn.lanes if lane.queue == "vector")
    counted = sum(int(m[1]) for mark in vector.marks if (m := re.match(r"(\d+) inst", mark.text)))
    single = sum(1 for mark in vector.marks if "instructions:" not in mark.text)
    assert counted + single == sum(1 for i in schedule.instructions if i.queue == "vector")


def test_a_program_without_tensor_work_has_a_page() -> None:
    program = """import pypto.language as pl
@pl.program
class Idle:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
        return x
"""
    lowering = pypto_egg.optimize(program)
    assert "nothing to lower" in Elements(lowering.to_html()).text
    assert '"traceEvents": []' in lowering.to_trace()
