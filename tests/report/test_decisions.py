"""Decisions: what could have been otherwise, priced by extracting the kernel anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import report_programs as programs
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto_egg
from pypto_egg.extract.cost.model import CostVector
from pypto_egg.extract.registry import extract
from pypto_egg.lowering import Decision, Lowering, Option
from pypto_egg.report.decisions import decisions
from pypto_egg.report.words import cube_call

SAME = pytest.approx


def optimized(text: str, **options: Any) -> Lowering:
    return pypto_egg.optimize(text, verify=False, **options)


def decision(lowering: Lowering, value: str) -> Decision:
    """The one decision whose value starts with these words."""
    (found,) = [d for d in lowering.alternatives if d.value.startswith(value)]
    return found


def option(found: Decision, words: str) -> Option:
    """The one option that starts with these words."""
    (one,) = [o for o in found.options if o.what.startswith(words)]
    return one


@pytest.mark.req("C-125", "C-135")
def test_rows_that_are_no_whole_fractals_are_an_illegal_option_with_its_reason() -> None:
    m = decision(optimized(programs.product(100, 64, 256)), "M of c = a @ b")
    assert m.options[0].status == "chosen"
    assert m.options[0].what == "112 rows (box 16, 100 valid)"
    assert m.options[-1] == Option(
        "100 rows",
        CostVector(),
        None,
        "illegal",
        "100 rows are not whole fractals of 16 rows (C-125, C-135)",
    )


@pytest.mark.req("C-137")
def test_a_transposed_left_operand_has_m_on_columns_of_32_bytes() -> None:
    text = programs.product(100, 64, 64, "INT8", a_trans=True).replace("FP32", "INT32")
    m = decision(optimized(text), "M of c")
    assert m.options[0].what == "128 rows (box 32, 100 valid)"
    assert "whole fractals of 32 rows" in m.options[-1].why


@pytest.mark.req("C-158")
def test_columns_are_whole_fractals_of_all_three_spaces() -> None:
    n = decision(optimized(programs.product(64, 24, 64, "FP32")), "N of c")
    assert {o.what for o in n.options if o.status != "illegal"} >= {
        "32 columns (box 16, 24 valid)",
        "64 columns (box 64, 24 valid)",
    }
    assert n.options[-1].why == "24 columns are not whole fractals of 16 columns (C-125, C-158)"


def test_whole_extents_have_no_illegal_option() -> None:
    m = decision(optimized(programs.product(64, 64, 64)), "M of c")
    assert [o.status for o in m.options] == ["chosen", "equal"]
    assert m.options[0].what == "64 rows"


def test_wider_boxes_at_the_same_cycles_say_what_they_take() -> None:
    m = decision(optimized(programs.product(100, 64, 256)), "M of c")
    wide = option(m, "128 rows")
    assert wide.status == "equal"
    # 16 more rows of a in Mat (bf16) and of c in Acc (fp32).
    assert wide.why == f"the same cycles, {16 * 256 * 2 + 16 * 64 * 4:,} more bytes of tiles"


def test_the_bias_in_the_cube_against_the_vector_unit() -> None:
    lowering = optimized(programs.BIASED)
    ways = decision(lowering, "d: how it is computed")
    cube = option(ways, "tile.matmul_bias")
    vector = option(ways, "tile.col_expand_add <- tile.move Acc to Vec <- tile.matmul")
    assert (cube.status, vector.status) == ("chosen", "dearer")
    without = optimized(programs.BIASED, without_rules=["accumulation"])
    assert vector.total == SAME(without.cost.total)
    assert "vector +" in vector.why


def test_a_sum_of_products_in_the_accumulator_against_an_add() -> None:
    ways = decision(optimized(programs.SUM), "s: how it is computed")
    assert option(ways, "tile.matmul_acc").status == "chosen"
    without = optimized(programs.SUM, without_rules=["accumulation"])
    assert option(ways, "tile.add").total == SAME(without.cost.total)


def test_every_product_has_its_boxes() -> None:
    values = [d.value for d in optimized(programs.SUM).alternatives]
    boxes = [value for value in values if value.startswith(("M of ", "N of "))]
    assert sorted((v.split(" = ")[1], v[0]) for v in boxes) == [
        ("a @ b", "M"),
        ("a @ b", "N"),
        ("c @ b", "M"),
        ("c @ b", "N"),
    ]


def test_a_cast_to_even_in_the_drain_against_the_vector_unit() -> None:
    text = programs.narrowed("rint")
    places = decision(optimized(text), "store of ")
    assert option(places, "tile.store from Acc <- tile.matmul").status == "chosen"
    cast = option(places, "tile.store from Vec <- tile.cast")
    assert cast.total == SAME(optimized(text, without_rules=["rounding-drain"]).cost.total)


def test_a_cast_that_rounds_ties_away_is_not_folded_and_says_why() -> None:
    found = decision(optimized(programs.narrowed("round")), "e")
    taken, refused = found.options
    assert (taken.status, refused.status) == ("chosen", "illegal")
    assert taken.what == "tile.cast of c in Vec"
    assert refused.why.startswith("mode 'round' rounds ties away from zero, FIXPIPE to even")


def test_with_reassociation_the_fold_is_an_option() -> None:
    lowering = optimized(programs.narrowed("round"), allow_reassociation=True)
    assert [d for d in lowering.alternatives if d.value == "e"] == []
    places = decision(lowering, "store of ")
    assert option(places, "tile.store from Acc <- tile.matmul").status == "chosen"


@pytest.mark.req("C-019")
def test_a_transposed_operand_as_a_view_or_by_its_load() -> None:
    routes = decision(optimized(programs.TRANSPOSED), "b as Mat [64, 64] BF16")
    assert option(routes, "tile.transpose_view <- tile.load to Mat").status == "chosen"
    assert option(routes, "tile.load to Mat of the DN view").status in ("equal", "dearer")


def test_a_load_before_the_loop_against_one_in_each_trip() -> None:
    lowering = optimized(programs.LOOP)
    place = decision(lowering, "a as Mat [64, 256] BF16 in a loop")
    hoisted, at_use = place.options
    assert hoisted.what == "made outside the loop <- tile.load to Mat"
    assert at_use.what == "tile.load to Mat"
    # The loop makes eight trips; seven of the loads are saved.
    assert at_use.total - lowering.cost.total == SAME(at_use.cost.total * 7 / 8)


def test_what_does_not_fit_on_chip_is_illegal_and_says_so() -> None:
    """Both left operands fit L1 beside the windows only one after the other, in the loop."""
    target = pypto_egg.load_target("a2a3").with_(**{"memory.Mat.usable_bytes": 100 * 1024})
    roomy, small = (
        optimized(programs.TWO_IN_A_LOOP),
        optimized(programs.TWO_IN_A_LOOP, target=target),
    )
    assert roomy.functions[0].peak_bytes["Mat"] > 100 * 1024
    for name in ("a", "d"):
        taken = decision(small, f"{name} as Mat [64, 256] BF16 in a loop")
        assert taken.options[0].what == "tile.load to Mat"
        assert taken.options[1].what.startswith("made outside the loop")
        assert taken.options[1].status == "illegal"
        why = taken.options[1].why
        assert why.startswith("with it the tiles do not fit on chip together: Mat of function")
        assert "bytes needed at once, 102400 available: " in why


def test_what_a_tile_op_refused_is_listed_with_its_reason() -> None:
    account = optimized(programs.SOFTMAX).functions[0].account
    reason = "tile.exp: operand 'x' has dtype INT32"
    account.graph.refused.extend([("e", "tile.exp", reason), ("e", "tile.exp", reason)])
    assert decisions(account) == (
        Decision("e", "f", (Option("tile.exp", CostVector(), None, "illegal", reason),)),
    )


def test_too_many_options_are_listed_without_a_total(monkeypatch: pytest.MonkeyPatch) -> None:
    account = optimized(programs.BIASED).functions[0].account
    monkeypatch.setattr("pypto_egg.report.forced._WORK", 0)
    monkeypatch.setattr("pypto_egg.report.forced._LEAST_EXTRACTIONS", 1)
    found = decisions(account)
    assert [d.value for d in found] == [d.value for d in optimized(programs.BIASED).alternatives]
    # Tiles of L0 are priced by themselves, without extracting the kernel anew.
    extracted = [d for d in found if not d.value.startswith("L0 tiles")]
    statuses = [o.status for d in extracted for o in d.options]
    assert statuses.count("equal") + statuses.count("dearer") == 1
    assert "not priced" in statuses


def test_what_the_search_missed_is_called_cheaper() -> None:
    best = optimized(programs.BIASED)
    account = best.functions[0].account
    problem = account.priced.problem
    biased = [i for i, n in enumerate(account.priced.nodes) if cube_call(n) == "tile.matmul_bias"]
    worse = extract(replace(problem, forbidden=[(node,) for node in biased]))
    found = decisions(replace(account, selection=replace(worse, status="feasible")))
    (ways,) = [d for d in found if d.value == "d: how it is computed"]
    assert [o.status for o in ways.options] == ["chosen", "cheaper"]
    assert ways.options[0].what.startswith("tile.col_expand_add")
    assert ways.options[1].total == SAME(best.cost.total)
    assert ways.options[1].why.endswith("; the search ended before it")


def test_a_function_without_alternatives_has_no_decisions() -> None:
    assert optimized(programs.SOFTMAX).alternatives == ()


def test_the_reference_has_decisions_only_where_it_has_a_choice() -> None:
    reference = pypto_egg.lower(programs.BIASED, verify=False)
    values = [d.value for d in reference.alternatives]
    assert all(len(d.options) > 1 for d in reference.alternatives)
    assert values[0] == "M of c = a @ b"
    assert not any(v.startswith("N of") for v in values)


@settings(max_examples=12)
@given(
    m=st.integers(1, 128),
    n=st.integers(1, 128),
    k=st.sampled_from([16, 64, 256]),
    transposed=st.booleans(),
)
def test_no_option_is_cheaper_than_an_optimal_choice(
    m: int, n: int, k: int, transposed: bool
) -> None:
    lowering = optimized(programs.product(m, n, k, a_trans=transposed))
    assert lowering.functions[0].extraction == "optimal"
    for found in lowering.alternatives:
        assert [o.status for o in found.options].count("chosen") == 1
        assert found.options[0].status == "chosen"
        for one in found.options:
            assert one.total is None or one.total >= lowering.cost.total - 0.5
            assert (one.status == "illegal") == (one.total is None)
            assert one.why or one.status == "chosen"
