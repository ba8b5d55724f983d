"""The account as text and as data."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import report_programs as programs

import pypto_egg
from pypto_egg.extract.cost.model import PIPES, CostVector
from pypto_egg.lowering import Decision
from pypto_egg.report.differences import boxes, differences
from pypto_egg.report.record import record
from pypto_egg.report.summary import write_summary
from pypto_egg.report.table import Table, cost_table, plain, show
from pypto_egg.report.words import difference_words, signed_cycles

ROOT = Path(__file__).resolve().parents[2]


def test_the_record_is_json_with_the_same_keys_for_every_lowering() -> None:
    def shape(value: object) -> object:
        if isinstance(value, dict):
            return {key: shape(inner) for key, inner in value.items()}
        return type(value).__name__ if isinstance(value, list) else "value"

    full = record(pypto_egg.optimize(programs.BIASED))
    bare = record(pypto_egg.lower(programs.SOFTMAX, verify=False))
    assert json.loads(json.dumps(full)) == full
    assert list(full) == list(bare)
    assert list(full["functions"][0]) == list(bare["functions"][0])
    assert shape(full["cost"]) == shape(bare["cost"]) == dict.fromkeys((*PIPES, "total"), "value")
    assert list(full["verification"]) == list(bare["verification"])
    assert bare["baseline"] == {"cycles": None, "cost": None, "refused": None}


def test_the_record_agrees_with_the_lowering() -> None:
    lowering = pypto_egg.optimize(programs.BIASED)
    made = record(lowering)
    assert made["program"] == lowering.text
    assert made["cost"]["total"] == lowering.cost.total
    assert lowering.baseline is not None
    assert made["baseline"]["cost"]["vector"] == lowering.baseline.cost.vector
    (function,) = made["functions"]
    assert len(function["decisions"]) == len(lowering.alternatives)
    assert function["peak_bytes"] == lowering.functions[0].peak_bytes
    assert json.loads(lowering.to_json())["functions"][0]["decisions"] == function["decisions"]


def test_the_documented_fields_are_those_of_the_record() -> None:
    text = (ROOT / "docs" / "record.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([a-z_.\[\]]+)` \|", text, re.MULTILINE))

    def paths(value: object, prefix: str) -> set[str]:
        found: set[str] = set()
        items = value.items() if isinstance(value, dict) else ()
        for key, inner in items:
            path = f"{prefix}{key}"
            found.add(path)
            if key in ("cost", "peak_bytes", "matches", "seconds"):
                continue
            if isinstance(inner, list) and inner and isinstance(inner[0], dict):
                found |= paths(inner[0], f"{path}[].")
            found |= paths(inner, f"{path}.")
        return found

    assert paths(record(pypto_egg.optimize(programs.SUM, nz="pack")), "") == documented


def test_the_same_input_gives_the_same_record_whatever_the_hash_seed(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(programs.BIASED)
    records = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "pypto_egg", "optimize", str(path), "--json", "-", "-q"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        made = json.loads(done.stdout)
        for function in made["functions"]:
            del function["seconds"]
        records.append(json.dumps(made))
    assert records[0] == records[1]


def test_explain_tells_cost_decisions_memory_and_search() -> None:
    lowering = pypto_egg.optimize(programs.BIASED)
    text = lowering.explain()
    total = "total: the sum of all pipes: none overlap"
    assert text.startswith(f"target a2a3, cost model mte2_mad\n{total}\n\npipe ")
    assert "    M of d = a @ b\n      chosen     112 rows (box 16, 100 valid)" in text
    assert "      illegal    100 rows  100 rows are not whole fractals" in text
    used = lowering.functions[0].peak_bytes["Acc"]
    assert f"    Acc: {used:,} of 131,072 bytes (" in text
    assert "    saturated after " in text
    assert text.endswith("poison 0 before, 0 after\n")
    for pipe, value in lowering.cost.by_pipe().items():
        rows = re.findall(rf"^{pipe} +([0-9,]+) ", text, re.MULTILINE)
        assert rows in ([f"{value:,.0f}"], [] if value == 0 else None)
    assert re.search(r" $", text, re.MULTILINE) is None


def test_explain_says_when_the_reference_refuses() -> None:
    text = programs.program(
        "a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 24], pl.FP32]",
        "pl.Tensor[[16, 24], pl.FP32]",
        "z = pl.create_tensor([16, 24], dtype=pl.FP32)\nc = pl.matmul_acc(z, a, b)\nreturn c",
    )
    lowering = pypto_egg.optimize(text, verify=False)
    assert lowering.baseline is None
    assert "the reference lowering refuses this program: E402: " in lowering.explain()
    assert differences(lowering) == {}


def test_wider_columns_than_needed_say_what_they_save() -> None:
    """112 columns would do for 100, but the drain of an odd number of column blocks is slower."""
    lowering = pypto_egg.optimize(programs.product(64, 100, 64), verify=False)
    (line,) = boxes(lowering.functions[0].account)
    assert re.match(
        r"N of c: 100 -> 128 columns, where 112 would be legal: -\d+ cycles \(fixpipe -\d+.*\)"
        r" \(100 columns are not whole fractals of 16 columns \(C-125, C-158\)\)$",
        line,
    )
    narrow = next(o for o in n_of(lowering).options if o.what.startswith("112 columns"))
    assert f": {signed_cycles(lowering.cycles - narrow.total)} cycles (" in line


def n_of(lowering: pypto_egg.Lowering) -> Decision:
    (found,) = [d for d in lowering.alternatives if d.value.startswith("N of c")]
    return found


def test_the_total_is_that_of_the_cost_model() -> None:
    lowering = pypto_egg.optimize(programs.BIASED, cost_model="roofline", verify=False)
    busiest = max(lowering.cost.by_pipe().values())
    assert lowering.cycles == busiest < lowering.cost.total
    assert cost_table(lowering).rows[-1][:2] == ("total", f"{busiest:,.0f}")
    assert record(lowering)["cycles"] == busiest
    assert lowering.explain().splitlines()[1] == (
        "total: the busiest pipe plus scalar; the other pipes overlap with it"
    )
    shown = StringIO()
    write_summary(lowering, shown)
    assert "\ntotal of roofline: the busiest pipe plus scalar; " in shown.getvalue()
    for decision in lowering.alternatives:
        assert decision.options[0].total == busiest
        assert all(o.total is None or o.total >= busiest - 0.5 for o in decision.options)


def test_kernels_as_short_are_told_apart_by_their_other_pipes() -> None:
    """Both are bound by MTE2; the roofline alone would not say that adding in the cube is less."""
    text = programs.BIASED
    roofline = pypto_egg.optimize(text, cost_model="roofline", verify=False)
    assert roofline.text == pypto_egg.optimize(text, verify=False).text


def test_a_program_of_tiles_has_nothing_to_lower() -> None:
    tiles = pypto_egg.optimize(programs.SOFTMAX, verify=False).text
    again = pypto_egg.optimize(tiles, verify=False)
    shown = StringIO()
    write_summary(again, shown)
    assert shown.getvalue().splitlines() == [
        "nothing to lower: no InCore function holds tensor operators",
        "not verified: not asked for",
    ]
    assert "nothing to lower: " in again.explain()
    assert "pipe" not in again.explain()


def test_a_table_on_a_terminal_starts_at_once() -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    drawn = Terminal()
    show(Table(("pipe", "cycles"), (("cube", "7"),)), drawn)
    assert "pipe" in drawn.getvalue().splitlines()[0]


def test_a_lowering_is_short_in_a_session() -> None:
    shown = repr(pypto_egg.optimize(programs.SOFTMAX, verify=False))
    assert shown.startswith("<Lowering of P for a2a3: ")
    assert len(shown) < 100


def test_differences_from_the_reference() -> None:
    lowering = pypto_egg.optimize(programs.BIASED, verify=False)
    (lines,) = differences(lowering).values()
    columns, choice, *pipes = lines
    assert columns == "N of a @ b: 48 -> 64 columns: the same cycles"
    start = "a @ b: tile.matmul -> tile.matmul_bias, the bias is added in the cube: "
    assert choice.startswith(start)
    assert lowering.baseline is not None
    without = pypto_egg.optimize(programs.BIASED, without_rules=["accumulation"], verify=False)
    saved = signed_cycles(lowering.cycles - without.cycles)
    assert choice.startswith(f"{start}{saved} cycles (")
    for pipe, cycles in lowering.cost.by_pipe().items():
        more = cycles - getattr(lowering.baseline.cost, pipe)
        told = [line for line in pipes if line.startswith(f"{pipe} {signed_cycles(more)} cycles: ")]
        assert len(told) == (abs(more) >= 0.5)
    (vector,) = [line for line in pipes if line.startswith("vector ")]
    assert vector.endswith(" cycles: tile.col_expand_add 1 -> 0 times")


def test_the_same_lowering_has_no_differences() -> None:
    assert differences(pypto_egg.optimize(programs.SOFTMAX, verify=False)) == {"f": ()}


def test_padded_products_are_listed() -> None:
    lowering = pypto_egg.optimize(programs.product(100, 64, 64), verify=False)
    assert boxes(lowering.functions[0].account) == (
        "M of c: 100 -> 112 rows (100 rows are not whole fractals of 16 rows (C-125, C-135))",
    )
    whole = pypto_egg.optimize(programs.product(64, 64, 64), verify=False)
    assert boxes(whole.functions[0].account) == ()


def test_the_cost_table_has_a_row_for_each_pipe_in_use() -> None:
    lowering = pypto_egg.optimize(programs.SOFTMAX, verify=False)
    table = cost_table(lowering)
    assert [row[0] for row in table.rows] == ["mte2", "mte3", "vector", "total"]
    assert table.header == ("pipe", "cycles", "reference", "difference")
    assert {row[3] for row in table.rows} == {"0"}


def test_plain_tables_align_numbers_to_the_right() -> None:
    table = Table(("pipe", "cycles"), (("cube", "7"), ("fixpipe", "1,234")))
    assert plain(table) == "pipe     cycles\ncube          7\nfixpipe   1,234\n"
    assert plain(Table(("a", "b"), (("x", "longer"),), numbers=False)) == "a  b\nx  longer\n"


def test_differences_of_cycles_name_the_pipes() -> None:
    old, new = CostVector(mte2=100, vector=50), CostVector(mte2=220, vector=30)
    assert difference_words(100, new, old) == "+100 cycles (mte2 +120, vector -20)"
    assert difference_words(0, old, old) == "0 cycles (same pipes)"


def test_what_stands_in_for_a_search_that_was_cut_short_is_told() -> None:
    lowering = replace(pypto_egg.lower(programs.SUM, verify=False), fallback="it was cut short")
    shown = StringIO()
    write_summary(lowering, shown)
    for text in (shown.getvalue(), lowering.explain()):
        assert "\nthis is the reference lowering: it was cut short\n" in text
    assert record(lowering)["fallback"] == "it was cut short"


def test_the_account_says_which_pipe_bounds_the_kernel_and_how_far_it_is_from_that() -> None:
    serial = pypto_egg.optimize(programs.BIASED, verify=False)
    (report,) = serial.functions
    pipe, busy = report.busiest
    assert busy == max(report.cost.by_pipe().values())
    share = round(100 * busy / report.cycles)
    line = next(line for line in serial.explain().splitlines() if "bounds the kernel" in line)
    assert line.strip().startswith(f"{pipe} bounds the kernel: busy for {busy:,.0f} of ")
    assert f"({share} %); {report.cycles - busy:,.0f} more than if everything overlapped" in line
    overlapping = pypto_egg.optimize(programs.BIASED, cost_model="roofline", verify=False)
    assert "cycles, all of them" in overlapping.explain()
