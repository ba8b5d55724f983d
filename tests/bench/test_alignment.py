"""`bench alignment`: what is legal, what it costs, and what extraction takes."""

from __future__ import annotations

import pytest

from pypto_egg import optimize
from pypto_egg.bench import alignment
from pypto_egg.bench.alignment import FULL, OPTIMIZED, POW2, PYPTO, choices
from pypto_egg.bench.programs import product
from pypto_egg.bench.schema import ALIGNMENT, Row
from pypto_egg.bench.workloads import Workload, shapes
from pypto_egg.errors import OptionError


def rows(
    shape: str | Workload, m: str = "16,32,pow2", n: str = "16,full", **changes: object
) -> list[Row]:
    workload = shapes(shape)[0] if isinstance(shape, str) else shape
    task = {
        "workload": workload.to_json(), "layout": "nd", "target": "a2a3", "model": "mte2_mad",
        "overrides": {}, "m": choices(m), "n": choices(n), **changes,
    }  # fmt: skip
    return alignment.rows(task)


def by_choice(found: list[Row]) -> dict[tuple[object, object], Row]:
    return {(row["m_align"], row["n_align"]): row for row in found}


def test_every_pair_of_choices_has_a_row_besides_pyptos_and_the_chosen():
    found = rows("100x256x512")
    wanted = [(PYPTO, PYPTO), (OPTIMIZED, OPTIMIZED)]
    wanted += [(m, n) for m in ("16", "32", POW2) for n in ("16", FULL)]
    assert list(by_choice(found)) == wanted
    assert all(list(row) == list(ALIGNMENT.names) for row in found)


@pytest.mark.parametrize(
    ("m", "n", "extents"),
    [("16", "16", (112, 256)), ("32", "16", (128, 256)), ("48", "48", (144, 288)),
     ("pow2", "full", (128, 256)), ("100", "16", (100, 256))],
)  # fmt: skip
def test_physical_extents_are_the_logical_ones_rounded_up(m, n, extents):
    row = by_choice(rows("100x256x512", m, n))[(m, n)]
    assert (row["physical_m"], row["physical_n"]) == extents


def test_the_figures_of_a_product_by_hand():
    """100 x 256 x 512 in bf16 on a2a3: what is loaded, multiplied and drained is the valid part."""
    row = by_choice(rows("100x256x512"))[("32", "16")]
    assert row["legal"]
    assert row["mat_bytes"] == (128 + 256) * 512 * 2
    assert row["acc_bytes"] == 128 * 256 * 4
    assert row["load_bytes"] == (100 + 256) * 512 * 2
    assert row["store_bytes"] == 100 * 256 * 4
    assert row["cube_passes"] == 7 * 32 * 16
    assert (row["products"], row["block_m"], row["block_n"], row["block_k"]) == (1, 100, 256, 512)


@pytest.mark.parametrize(
    ("shape", "dtype", "m", "n", "words"),
    [
        ("100x256x512", "bf16", "8", "16", "M: 104 rows are not whole fractals of 16 rows"),
        ("16x40x64", "int8", "16", "16", "N: 48 columns are not whole fractals of 32 columns"),
        ("100x256x512", "bf16", "16", "512", "the accumulator of 112 x 512 needs 229376 bytes"),
    ],
)
def test_what_is_illegal_says_why(shape, dtype, m, n, words):
    found = by_choice(rows(shapes(shape)[0].with_dtype(dtype), m, n))
    row = found[(m, n)]
    assert not row["legal"]
    assert words in str(row["reason"])
    assert row["cycles"] is None
    assert found[(PYPTO, PYPTO)]["legal"]


def test_a_product_that_is_refused_has_rows_with_the_reason():
    found = rows("16x16x36")
    assert {row["legal"] for row in found} == {False}
    assert all("E402: " in str(row["reason"]) for row in found)


def test_what_is_no_product_has_one_row_that_says_so():
    (row,) = rows("q14_dec_rmsnorm")
    assert not row["legal"]
    assert "rmsnorm is not one product" in str(row["reason"])


@pytest.mark.parametrize("model", ["mte2_mad", "pypto_l0", "roofline", "schedule"])
@pytest.mark.parametrize("shape", ["5x100x128", "64x17408x512"])
def test_the_chosen_row_is_what_optimize_takes_and_costs(shape, model):
    workload = shapes(shape)[0]
    row = by_choice(rows(workload, model=model))[(OPTIMIZED, OPTIMIZED)]
    assert row["chosen"]
    lowering = optimize(product(workload), cost_model=model, verify=False, l0="leave")
    assert row["cycles"] == pytest.approx(lowering.cycles)


def test_ratios_are_to_the_best_and_to_pyptos_rule():
    found = rows("100x208x512", "16,32,128", "16,48,80", model="pypto_l0")
    legal = [row for row in found if row["legal"]]
    cycles = [float(row["cycles"]) for row in legal]
    rule = next(row for row in legal if row["pypto"])
    for row in legal:
        assert row["ratio_best"] == pytest.approx(row["cycles"] / min(cycles))
        assert row["ratio_pypto"] == pytest.approx(row["cycles"] / rule["cycles"])


@pytest.mark.parametrize("shape", ["100x5120x5120", "1000x1000x1024"])
def test_a_product_too_large_for_on_chip_memory_is_priced_in_blocks(shape):
    m, n, _ = map(int, shape.split("x"))
    legal = [row for row in rows(shape, "16,128", "16") if row["legal"]]
    assert legal
    for row in legal:
        assert row["block_m"] <= m
        assert row["block_n"] < n
        assert row["products"] >= -(-m // row["block_m"]) * -(-n // row["block_n"])
        assert row["acc_bytes"] <= 128 * 1024
        assert row["store_bytes"] == m * n * 4


def test_a_wrong_alignment_is_refused():
    for text in ("x", "0", "-16", "16,,32", "1.5"):
        with pytest.raises(OptionError, match="no alignment"):
            choices(text)


# Constants of PyPTO's chooser for a2a3 and the flat rate from GM to L1, as in docs/cost.md.
ISSUE, FIXED, ROW, PENALTY, DRAIN_RATE = 21, 164.0, 4.45, 2.6, 118.0
GM_TO_L1 = 135 * 2**30 / 1.85e9


def drained(m: int, columns: int, physical: tuple[int, int]) -> float:
    """The drain of an FP32 accumulator in the column tiles that cost least, by hand."""

    def row(n: int) -> float:
        odd = -(-n // 8)
        while odd % 2 == 0:
            odd //= 2
        return max(ROW, 4 * n / DRAIN_RATE) + PENALTY * (odd - 1)

    tiles = {n: -(-columns // n) for n in range(16, physical[1] + 1, 16)}
    return min(count * (FIXED + m * row(n)) for n, count in tiles.items())


@pytest.mark.parametrize(
    ("shape", "m", "n", "physical"),
    [
        ("100x256x512", "16", "16", (112, 256)),
        ("100x256x512", "32", "16", (128, 256)),
        ("100x192x256", "16", "16", (112, 192)),
        ("100x192x256", "16", "128", (112, 256)),
        ("100x192x256", "full", "full", (128, 256)),
        ("5x100x128", "16", "16", (16, 112)),
        ("5x100x128", "pow2", "pow2", (16, 128)),
        ("5x100x128", "64", "80", (64, 160)),
        ("17x96x80", "16", "16", (32, 96)),
        ("17x96x80", "48", "48", (48, 96)),
    ],
)
def test_ten_rows_recomputed_by_hand(shape, m, n, physical):
    """Rows whose product fits on chip: every figure from the extents and published constants."""
    rows_, columns, depth = map(int, shape.split("x"))
    row = by_choice(rows(shape, m, n))[(m, n)]
    assert (row["physical_m"], row["physical_n"]) == physical
    assert row["mat_bytes"] == (physical[0] + physical[1]) * depth * 2
    assert row["acc_bytes"] == physical[0] * physical[1] * 4
    assert row["load_bytes"] == (rows_ + columns) * depth * 2
    assert row["store_bytes"] == rows_ * columns * 4
    fractals = -(-rows_ // 16) * -(-columns // 16) * -(-depth // 16)
    assert row["cube_passes"] == fractals
    assert (row["cube_cycles"] - fractals) % ISSUE == 0
    assert row["cube_cycles"] > fractals
    assert row["fixpipe_cycles"] == pytest.approx(drained(rows_, columns, physical))
    assert row["mte2_cycles"] >= row["load_bytes"] / GM_TO_L1
    pipes = ("mte1", "mte2", "mte3", "fixpipe", "cube", "vector", "scalar")
    assert row["cycles"] == pytest.approx(sum(row[f"{pipe}_cycles"] for pipe in pipes))
