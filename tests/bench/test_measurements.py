"""What the measuring programs measure: their inputs and sums, not the times."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg import optimize
from pypto_egg.bench.extraction_solvers import problems_of, whole
from pypto_egg.bench.programs import layer_chain
from pypto_egg.bench.speed import (
    attention_block,
    growth_exponent,
    one_matmul,
    reference_seconds,
    stage_seconds,
)
from pypto_egg.extract import extract
from pypto_egg.extract.cp_sat import solve_with_cp_sat


@given(power=st.floats(0.1, 3), scale=st.floats(1e-3, 10))
def test_the_exponent_of_a_power_law_is_its_power(power, scale):
    seconds = {depth: scale * depth**power for depth in (25, 50, 100, 200)}
    assert growth_exponent(seconds) == pytest.approx(power)


@pytest.mark.parametrize("layers", [1, 4])
def test_a_chain_has_a_product_and_an_exponential_in_every_layer(layers):
    result = optimize(layer_chain(layers), verify=True)
    assert result.text.count("pl.tile.matmul(") == layers
    assert result.text.count("pl.tile.exp(") == layers


def test_the_matmul_is_one_product_and_the_attention_two():
    assert one_matmul().count("pl.matmul") == 1
    assert attention_block().count("pl.matmul(") == 2


def test_stages_add_up_to_what_the_reports_say():
    result = optimize(attention_block(), verify=False)
    said = sum(sum(report.seconds.values()) for report in result.functions)
    assert math.isclose(sum(stage_seconds(result).values()), said)
    assert reference_seconds(result) > 0


def test_a_solver_that_gets_all_of_our_e_graph_finds_what_we_find():
    ((_, problem),) = problems_of("attention_block", attention_block())
    part = whole(problem)
    answer = solve_with_cp_sat(part.graph, part.landmarks, part.known, None)
    assert answer.cost is not None
    best = extract(problem, "exact")
    assert math.isclose(answer.cost / 2.0**part.graph.shift, best.cost)
