"""`bench models`, `baseline`, `scaling` and `extraction`: their rows, and what is told of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pypto_egg import PyptoEggError, lower, optimize
from pypto_egg.bench import baseline, extraction, inputs, models, scaling
from pypto_egg.bench.programs import shared_operand
from pypto_egg.bench.schema import BASELINE, EXTRACTION, MODELS, SCALING, Row
from pypto_egg.errors import OptionError
from pypto_egg.extract import extractor_names
from pypto_egg.extract.serialize import read_problem
from pypto_egg.target import load_target

GRAPHS = Path(__file__).resolve().parents[1] / "extract" / "graphs"
ALL = ["mte2_mad", "pypto_l0", "roofline", "schedule"]


def task(name: str, **values: object) -> dict[str, object]:
    (source,) = inputs.sources(name)
    return {"program": source.to_json(), "target": "a2a3", "overrides": {}, **values}


# --- inputs --------------------------------------------------------------------------------------


def test_programs_are_kernels_products_sizes_and_files(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("# anything")
    names = [one.name for one in inputs.sources(f"bias*,q14_dec_qk,16x32x64,{mine}")]
    assert names == ["bias_matmul", "q14_dec_qk", "16x32x64", "mine"]
    every = inputs.sources(None)
    assert len(every) == 129 + len(list(inputs.kernels()))


def test_measurements_that_ship_are_those_of_the_gemms():
    found = inputs.measurements("published")
    assert [(one.name, one.cores, one.cycles) for one in found] == [
        ("gemm_1536", 24, 71780), ("gemm_3072", 24, 382395), ("gemm_6144", 24, 2786100),
        ("gemm_7680", 24, 5860800),
    ]  # fmt: skip
    assert inputs.measurements(None) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [("program\nx.py\n", "no column 'cycles'"), ("program,cycles\nx.py,fast\n", "line 2"),
     ("program,cycles\nx.py,0\n", "positive"), ("program,cycles\nx.py,5\n", "cannot read")],
)  # fmt: skip
def test_measurements_that_cannot_be_used_are_refused(tmp_path, text, words):
    path = tmp_path / "measured.csv"
    path.write_text(text)
    with pytest.raises(OptionError, match=words):
        inputs.measurements(str(path))


# --- models --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared() -> list[Row]:
    return models.rows(task("chained_product", models=ALL))


def test_every_model_prices_every_choice(compared):
    pairs = [(row["chosen_by"], row["priced_by"]) for row in compared]
    assert pairs == [(one, other) for one in ALL for other in ALL]
    assert all(list(row) == list(MODELS.names) for row in compared)


def test_a_model_prices_its_own_choice_as_optimize_says(compared):
    for row in compared:
        if row["chosen_by"] == row["priced_by"]:
            said = optimize(
                task("chained_product")["program"]["text"],
                cost_model=str(row["priced_by"]), verify=False, l0="leave",
            )  # fmt: skip
            assert row["cycles"] == pytest.approx(said.cycles)
            assert row["regret"] == pytest.approx(0.0)


def test_nobody_regrets_an_own_choice_more_than_anothers(compared):
    assert all(float(row["regret"] or 0.0) >= -1e-9 for row in compared)


def test_regret_is_what_the_choice_of_another_costs_more():
    found = models.rows(task("100x208x512", models=["mte2_mad", "pypto_l0"]))
    own = {row["priced_by"]: row for row in found if row["priced_by"] == row["chosen_by"]}
    for row in found:
        least = own[row["priced_by"]]["cycles"]
        assert row["own_cycles"] == least
        assert row["regret"] == pytest.approx(row["cycles"] / least - 1.0)


def test_a_refused_program_has_rows_with_the_reason():
    found = models.rows(task("16x16x36", models=["mte2_mad"]))
    assert {row["legal"] for row in found} == {False}
    assert "E402" in str(found[0]["reason"])
    assert models.summary(found)[-1].title == "refused"


def test_schedule_predicts_a_measured_gemm():
    (measured, *_) = models.arguments_of([], inputs.measurements("published"))["measured"]
    found = models.rows(
        {"measured": measured, "target": "a2a3", "overrides": {}, "models": ["schedule"]}
    )
    (row,) = found
    assert (row["chosen_by"], row["measured_cycles"]) == ("given", 71780)
    assert abs(float(row["error"] or 1.0)) < 0.06
    assert models.summary(found)[0].title == "against measurements"


def priced_row(program: str, chosen: str, by: str, cycles: float, regret: float | None) -> Row:
    return {
        **dict.fromkeys(MODELS.names), "program": program, "target": "a2a3", "legal": True,
        "chosen_by": chosen, "priced_by": by, "cycles": cycles, "regret": regret,
        "own_cycles": cycles, "text_hash": program + chosen,
    }  # fmt: skip


def test_rank_correlation_of_models_that_agree_and_of_those_that_do_not():
    rows = []
    for i, program in enumerate("abcd"):
        rows += [priced_row(program, "x", "x", 10.0**i, 0.0)]
        rows += [priced_row(program, "x", "up", 3.0 * i + 1, 0.0)]
        rows += [priced_row(program, "x", "down", 100.0 - i, 0.0)]
        rows += [priced_row(program, "x", "flat", 7.0, 0.0)]
    assert models.rank_correlation(rows, "x", "up") == (pytest.approx(1.0), 4)
    assert models.rank_correlation(rows, "x", "down") == (pytest.approx(-1.0), 4)
    assert models.rank_correlation(rows, "x", "flat") == (None, 4)


def test_the_regret_table_has_means_and_the_greatest():
    rows = [priced_row("a", "x", "y", 2.0, 1.0), priced_row("b", "x", "y", 1.0, 0.0)]
    table = models.summary(rows)[0]
    assert table.rows == (("x", "+41.42% / +100.0%"),)


def test_disagreements_are_told_where_there_are_any():
    agreed, regretted = priced_row("a", "x", "y", 2.0, 0.0), priced_row("b", "x", "y", 2.0, 1.0)
    titles = [[table.title for table in models.summary(rows)] for rows in ([agreed], [regretted])]
    assert ["where they disagree most" in found for found in titles] == [False, True]


# --- baseline ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("name", ["chained_product", "bias_matmul", "64x64x64"])
def test_optimize_is_compared_with_lower_and_with_pyptos_l0_tiles(name, model):
    found = baseline.rows(task(name, model=model))
    assert [row["against"] for row in found] == ["reference", "l0_chooser"]
    for row in found:
        assert list(row) == list(BASELINE.names)
        assert row["verdict"] in ("win", "equal")
        assert row["cycles"] <= row["other_cycles"] * (1 + 1e-9)
        assert row["speedup"] == pytest.approx(row["other_cycles"] / row["cycles"])


@pytest.mark.parametrize(("mode", "place"), [("leave", 0), ("schedule", 1)])
def test_cycles_saved_are_those_of_the_two_programs(mode, place):
    row = baseline.rows(task("chained_product", model="mte2_mad"))[place]
    best = optimize(inputs.sources("chained_product")[0].text, verify=False, l0=mode)
    assert best.baseline is not None
    assert row["cycles"] == pytest.approx(best.cycles)
    assert row["other_cycles"] == pytest.approx(best.baseline.cycles)
    assert row["mte2_saved"] == pytest.approx(best.baseline.cost.mte2 - best.cost.mte2)
    assert row["verdict"] == "win"
    assert baseline.failures([row]) == []


def test_a_loss_is_a_failure():
    rows = baseline.rows(task("64x64x64", model="mte2_mad"))
    rows[0]["verdict"] = "loss"
    (line,) = baseline.failures(rows)
    assert line.startswith("64x64x64 on a2a3 by mte2_mad: ")


def test_what_cannot_be_lowered_is_told_by_its_code():
    found = baseline.rows(task("16x16x36", model="mte2_mad"))
    assert [row["verdict"] for row in found] == ["E402", "E402"]
    titles = [table.title for table in baseline.summary(found)]
    assert titles[-1] == "not compared"


# --- scaling -------------------------------------------------------------------------------------


def test_scaling_has_every_stage_and_the_size_of_the_e_graph():
    values = {"family": "layers", "size": 3, "target": "a2a3", "model": "mte2_mad", "repeats": 1}
    (row,) = scaling.rows({**values, "overrides": {}})
    assert list(row) == list(SCALING.names)
    assert row["statements"] == 3 * 3 + 1
    stages = [str(c.name) for c in SCALING.columns if c.name.endswith("_seconds")]
    assert all(float(row[name] or 0.0) > 0.0 for name in stages)
    told = sum(float(row[name] or 0.0) for name in stages[:7])
    assert told <= float(row["total_seconds"] or 0.0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not say how much it was")
def test_peak_memory_is_that_of_the_process_itself():
    """A process that is started by a large one does not begin with the memory of that one."""
    own = "from pypto_egg.bench import scaling; print(scaling.peak_bytes())"
    starter = (
        "import subprocess, sys; block = bytearray(2**30); "
        f"subprocess.run([sys.executable, '-c', {own!r}], check=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", starter], capture_output=True, text=True, check=True
    )
    assert 2**24 < int(done.stdout) < 2**29


@pytest.mark.parametrize("count", [1, 3])
def test_products_that_share_an_operand_compute_what_the_text_says(count):
    result = optimize(shared_operand(count), verify=True)
    assert result.verified
    assert result.text.count("pl.tile.exp(") == count


def test_exponents_stand_in_the_last_line():
    rows = [
        {**dict.fromkeys(SCALING.names), "family": "f", "target": "t", "model": "m", "size": size,
         "e_nodes": 5 * size**2, "total_seconds": 0.5 * size}
        for size in (1, 2, 4)
    ]  # fmt: skip
    (table,) = scaling.summary(rows)
    last = dict(zip(table.header, table.rows[-1], strict=True))
    assert (last["size"], last["e-nodes"], last["total"], last["load"]) == (
        "size^", "2.00", "1.00", "",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["0", "x", "1,,2", "-3"])
def test_a_size_is_a_whole_number(text):
    with pytest.raises(OptionError, match="no size"):
        scaling.sizes(text)
    assert scaling.sizes("20,5,20") == [5, 20]


# --- extraction ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def extracted() -> list[Row]:
    arguments = extraction.arguments_of(str(GRAPHS), extractor_names(), 30.0)
    return [row for one in extraction.tasks(arguments) for row in extraction.rows(one)]


def test_every_graph_and_extractor_has_a_row_with_the_known_cost(extracted):
    assert len(extracted) == len(list(GRAPHS.glob("*.json"))) * len(extractor_names())
    for row in extracted:
        assert list(row) == list(EXTRACTION.names)
        known = float((GRAPHS / str(row["graph"])).with_suffix(".cost").read_text().split()[0])
        problem = read_problem(GRAPHS / str(row["graph"]))
        assert row["nodes"] == problem.node_count
        if row["extractor"] == "exact":
            assert (row["status"], row["gap"]) == ("optimal", pytest.approx(0.0))
            assert row["cost"] == pytest.approx(known)
        elif row["cost"] is not None:
            assert row["ratio_best"] == pytest.approx(row["cost"] / known)
            assert row["gap"] == pytest.approx(row["cost"] / known - 1.0)


def test_a_file_that_is_no_e_graph_is_a_row_with_the_code(tmp_path):
    (tmp_path / "bad.json").write_text(json.dumps({"nodes": {}}))
    arguments = extraction.arguments_of(str(tmp_path), ["tree", "exact"], 1.0)
    (one,) = extraction.tasks(arguments)
    found = extraction.rows(one)
    assert [row["status"] for row in found] == ["E502", "E502"]
    assert extraction.summary(found)[0].rows[0][:3] == ("tree", "1", "0")


def test_a_file_that_changed_since_is_not_used(tmp_path):
    path = tmp_path / "one.json"
    path.write_text((GRAPHS / "two-limits.json").read_text())
    (one,) = extraction.tasks(extraction.arguments_of(str(tmp_path), ["tree"], 1.0))
    path.write_text(path.read_text() + "\n")
    (row,) = extraction.rows(one)
    assert (row["status"], row["cost"]) == ("E601", None)
    assert "was changed after the run began" in str(row["reason"])


def test_a_folder_without_e_graphs_is_refused(tmp_path):
    for folder, words in ((tmp_path, "no .json files"), (tmp_path / "none", "no folder")):
        with pytest.raises(OptionError, match=words):
            extraction.arguments_of(str(folder), ["tree"], 1.0)
    with pytest.raises(OptionError, match="no extractor 'best'"):
        extraction.known_extractors("tree,best")


# --- constants -----------------------------------------------------------------------------------


def test_the_hash_of_constants_changes_with_any_of_them():
    a2a3, a5 = load_target("a2a3"), load_target("a5")
    changed = a2a3.with_(**{"l0.issue_cycles": 22})
    hashes = {target.fingerprint() for target in (a2a3, a5, changed)}
    assert len(hashes) == 3
    assert load_target("a2a3").fingerprint() == a2a3.fingerprint()
    assert a2a3.with_(**{"l0.issue_cycles": a2a3.l0.issue_cycles}).fingerprint() == (
        a2a3.fingerprint()
    )


def test_constants_that_are_changed_change_the_rows():
    usual = baseline.rows(task("64x64x64", model="mte2_mad"))[0]
    slower = baseline.rows(
        {**task("64x64x64", model="mte2_mad"), "overrides": {"path.DDR.Mat.gib_per_s": 10.0}}
    )[0]
    assert slower["constants"] != usual["constants"]
    assert slower["mte2_cycles"] > usual["mte2_cycles"]


def test_what_lower_refuses_is_refused_here_too():
    with pytest.raises(PyptoEggError):
        lower(inputs.sources("16x16x36")[0].text)
