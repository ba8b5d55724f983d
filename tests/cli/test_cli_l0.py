"""`pypto-egg l0`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pypto_egg.extract.cost.pypto_l0 import OPEN, choose
from pypto_egg.ir.dtype import BF16, FP32
from pypto_egg.target import load_target


def test_the_best_of_a_box_is_cheaper_than_what_pypto_finds_without_it(pypto_egg: Any) -> None:
    done = pypto_egg("l0", "100x256x512", "--json", "-")
    assert done.code == 0
    first = json.loads(done.out)["schedules"][0]
    unpadded = choose(100, 256, 512, BF16, BF16, FP32, load_target("a2a3"), gates=OPEN)
    assert unpadded is not None
    assert (first["m"], first["n"], first["k"], first["cycles"]) == (112, 256, 64, 5090)
    assert first["cycles"] < 0.8 * unpadded.wall_cycles


@pytest.mark.parametrize("model", ["mte2_mad", "pypto_l0", "roofline", "schedule"])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_pyptos_choice_is_marked_and_never_the_cheaper_one(
    pypto_egg: Any, model: str, target: str
) -> None:
    done = pypto_egg("l0", "96x160x240", "--cost-model", model, "--target", target, "--json", "-")
    rows = json.loads(done.out)["schedules"]
    (theirs,) = [row for row in rows if row["note"] == "PyPTO's chooser"]
    assert theirs["cycles"] >= rows[0]["cycles"]
    assert [row["cycles"] for row in rows] == sorted(row["cycles"] for row in rows)


def test_the_table_has_a_line_for_each(pypto_egg: Any) -> None:
    done = pypto_egg("l0", "256x256x256", "--top", "3")
    lines = done.out.splitlines()
    assert lines[0].split()[:4] == ["rank", "m", "n", "k"]
    assert len(lines) in (4, 5)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("12x",), "no shape"),
        (("0x16x16",), "no shape"),
        (("16x16x24",), "K = 24"),
        (("16x16x64", "--dtype", "fp99"), "fp99"),
        (("16x16x64", "--dtype", "int4"), "int4"),
        (("16x16x64", "--target", "a9"), "a9"),
    ],
)
def test_what_is_no_product_is_refused(pypto_egg: Any, args: tuple[str, ...], words: str) -> None:
    done = pypto_egg("l0", *args)
    assert done.code != 0
    assert words in done.err
    assert "hint" in done.err


def test_constants_of_a_file_bound_the_tiles(pypto_egg: Any, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text("[memory.Acc]\nusable_bytes = 16384\n")
    rows = json.loads(pypto_egg("l0", "100x256x512", "--json", "-", "--constants", file).out)
    for row in rows["schedules"]:
        assert row["m"] * row["n"] * 4 * row["accumulators"] <= 16384
