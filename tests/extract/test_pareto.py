"""Pareto fronts, held against plain enumeration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.bench.egraph_families import layers
from pypto_egg.errors import ExtractionError
from pypto_egg.extract import Constraint, Problem, extract, pareto
from pypto_egg.extract.bottleneck import bottleneck

# class 0 needs 1 and 2; the fast node of each is the heavy one
FAST_OR_LIGHT = Problem(
    node_class=[0, 1, 1, 2, 2],
    node_children=[[1, 2], [], [], [], []],
    node_cost=np.array([1.0, 2.0, 5.0, 3.0, 4.0]),
    roots=[0],
)
BYTES = {1: 100, 2: 20, 3: 64, 4: 32}


def front_of(pairs):
    """The pairs that no other is as good as in both, the first ascending."""
    kept = []
    for pair in sorted(set(pairs)):
        if not kept or pair[1] < kept[-1][1]:
            kept.append(pair)
    return kept


def test_a_front_goes_from_the_fastest_to_the_lightest():
    front = pareto(FAST_OR_LIGHT, BYTES)
    assert [(p.cost, p.weight) for p in front.points] == [
        (6.0, 164.0),
        (7.0, 132.0),
        (9.0, 84.0),
        (10.0, 52.0),
    ]
    assert front.complete
    for point in front.points:
        point.selection.check(FAST_OR_LIGHT)


def test_of_equally_cheap_selections_the_lightest_is_on_the_front():
    problem = replace(FAST_OR_LIGHT, node_cost=np.array([1.0, 2.0, 2.0, 3.0, 3.0]))
    assert [(p.cost, p.weight) for p in pareto(problem, BYTES).points] == [(6.0, 52.0)]


@settings(max_examples=120)
@given(data=st.data())
def test_the_front_is_that_of_all_selections(data, problems, allowed_selections):
    problem = data.draw(problems())
    nodes = st.integers(0, problem.node_count - 1)
    weights = data.draw(st.dictionaries(nodes, st.integers(0, 6), max_size=10))
    want = front_of(
        (
            sum((Fraction(float(problem.node_cost[n])) for n in choice.values()), Fraction()),
            sum(weights.get(n, 0) for n in choice.values()),
        )
        for choice in allowed_selections(problem)
    )
    try:
        extract(problem)
    except ExtractionError:
        with pytest.raises(ExtractionError, match="no finite term"):
            pareto(problem, weights)
        return
    found = pareto(problem, weights)
    assert [(p.cost, p.weight) for p in found.points] == want
    assert found.complete


@settings(max_examples=60)
@given(data=st.data())
def test_the_busiest_pipe_may_be_one_of_the_objectives(data, problems, allowed_selections):
    problem = data.draw(problems())
    row = st.lists(st.sampled_from([0.0, 1.0, 2.5, 7.0]), min_size=2, max_size=2)
    rows = data.draw(st.lists(row, min_size=problem.node_count, max_size=problem.node_count))
    problem = replace(problem, node_vector=np.array(rows), pipes=("cube", "vector"))
    nodes = st.integers(0, problem.node_count - 1)
    weights = data.draw(st.dictionaries(nodes, st.integers(0, 6), max_size=10))
    want = front_of(
        (bottleneck(choice, problem), sum(weights.get(n, 0) for n in choice.values()))
        for choice in allowed_selections(problem)
    )
    if not want:
        return
    found = pareto(problem, weights, objective="bottleneck")
    assert [(p.cost, p.weight) for p in found.points] == want


def test_weights_may_be_fractions():
    front = pareto(FAST_OR_LIGHT, {1: 0.1, 3: 0.2, 4: 0.3})
    assert [p.weight for p in front.points] == [float(Fraction(0.1) + Fraction(0.2)), 0.2]


def test_a_limit_holds_for_the_whole_front():
    front = pareto(FAST_OR_LIGHT, BYTES, constraints=[Constraint("fast nodes", {1: 1, 3: 1}, 1)])
    assert [(p.cost, p.weight) for p in front.points] == [(7.0, 132.0), (9.0, 84.0), (10.0, 52.0)]


def test_at_the_deadline_the_front_does_not_claim_to_be_complete():
    problem = layers(40, 0)
    front = pareto(problem, {n: n % 7 for n in range(problem.node_count)}, deadline_seconds=1e-6)
    assert front.points
    assert not front.complete


def test_wrong_weights_are_refused():
    with pytest.raises(ExtractionError, match="a weight must be finite and not negative"):
        pareto(FAST_OR_LIGHT, {1: -1})
    with pytest.raises(ExtractionError, match="names node 9"):
        pareto(FAST_OR_LIGHT, {9: 1})
