"""The k cheapest selections, held against plain enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.bench.egraph_families import layers, random_graph
from pypto_egg.errors import ExtractionError, OptionError
from pypto_egg.extract import Constraint, InOrder, Problem, extract, k_best
from pypto_egg.extract.bottleneck import bottleneck

# class 0 adds two of what class 1 and 2 offer; 1 and 2 have two nodes each
TWICE_TWO = Problem(
    node_class=[0, 1, 1, 2, 2],
    node_children=[[1, 2], [], [], [], []],
    node_cost=np.array([1.0, 2.0, 3.0, 10.0, 20.0]),
    roots=[0],
)


def test_they_come_in_order_and_each_once():
    found = k_best(TWICE_TWO, 10)
    assert [s.cost for s in found.selections] == [13.0, 14.0, 23.0, 24.0]
    assert found.proven
    assert found.bound == math.inf
    for selection in found.selections:
        selection.check(TWICE_TWO)


def test_the_bound_is_that_of_the_next_one():
    found = k_best(TWICE_TWO, 2)
    assert [s.cost for s in found.selections] == [13.0, 14.0]
    assert found.bound == 23.0


def test_classes_that_are_not_selected_make_no_difference():
    """Node 2 does without class 1, of which there are two nodes: three selections, not four."""
    problem = Problem(
        node_class=[0, 0, 1, 1],
        node_children=[[1], [], [], []],
        node_cost=np.array([0.0, 5.0, 1.0, 2.0]),
        roots=[0],
    )
    assert [s.cost for s in k_best(problem, 9).selections] == [1.0, 2.0, 5.0]


@settings(max_examples=150)
@given(data=st.data())
def test_the_k_best_are_those_of_all_selections(data, problems, allowed_selections):
    problem = data.draw(problems())
    k = data.draw(st.integers(1, 8))
    want = sorted(
        sum((Fraction(float(problem.node_cost[n])) for n in choice.values()), Fraction())
        for choice in allowed_selections(problem)
    )
    try:
        found = k_best(problem, k)
    except ExtractionError:
        assert want == []
        return
    assert [s.cost for s in found.selections] == [float(cost) for cost in want[:k]]
    assert found.bound == (float(want[k]) if len(want) > k else math.inf)
    assert len({tuple(s.choice.items()) for s in found.selections}) == len(found.selections)
    for selection in found.selections:
        assert selection.status == "optimal"
        selection.check(problem)


@settings(max_examples=60)
@given(data=st.data())
def test_they_are_also_found_by_the_busiest_pipe(data, problems, allowed_selections):
    problem = data.draw(problems())
    row = st.lists(st.sampled_from([0.0, 1.0, 2.5, 7.0]), min_size=2, max_size=2)
    rows = data.draw(st.lists(row, min_size=problem.node_count, max_size=problem.node_count))
    problem = replace(problem, node_vector=np.array(rows), pipes=("cube", "vector"))
    want = sorted(bottleneck(choice, problem) for choice in allowed_selections(problem))
    try:
        found = k_best(problem, 4, objective="bottleneck")
    except ExtractionError:
        assert want == []
        return
    assert [s.cost for s in found.selections] == want[:4]
    assert found.proven


def test_constraints_hold_for_all_of_them():
    limit = Constraint("cheap ones", {1: 1, 3: 1}, 1)
    found = k_best(TWICE_TWO, 9, constraints=[limit])
    assert [s.cost for s in found.selections] == [14.0, 23.0, 24.0]


def test_no_selection_at_all_is_an_empty_ranking():
    nothing = k_best(TWICE_TWO, 3, constraints=[Constraint("none", {0: 1}, 0)])
    assert nothing.selections == ()
    assert nothing.bound == math.inf


def test_the_first_is_what_extract_finds_and_the_order_is_the_same_every_time():
    problem = random_graph(40, 12, 0.2, 3)
    first, again = k_best(problem, 12), k_best(problem, 12)
    assert first.selections[0].cost == extract(problem).cost
    assert [s.choice for s in first.selections] == [s.choice for s in again.selections]
    costs = [s.cost for s in first.selections]
    assert costs == sorted(costs)


def test_at_the_deadline_the_rest_has_a_true_bound():
    problem = layers(30, 0)
    found = k_best(problem, 50, deadline_seconds=1e-6)
    best = extract(problem).cost
    assert 1 <= len(found.selections) < 50
    assert found.bound <= best
    for selection in found.selections:
        selection.check(problem)
        assert selection.bound <= best <= selection.cost


def test_an_iterator_says_what_is_still_to_come():
    order = InOrder(TWICE_TWO)
    assert next(order).cost == 13.0
    assert order.bound == 14.0


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_is_a_whole_number_above_0(k):
    with pytest.raises(OptionError, match="k is"):
        k_best(TWICE_TWO, k)
