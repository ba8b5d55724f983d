"""The bottleneck objective: the least greatest sum over a pipe, held against plain enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.errors import ExtractionError, OptionError
from pypto_egg.extract import Constraint, Problem, extract
from pypto_egg.extract.bottleneck import bottleneck

PIPES = ("cube", "vector", "scalar")
CYCLES = [0.0, 0.125, 1.0, 2.5, 3.0, 1000.0, 1e-7]


@st.composite
def with_vectors(draw, problems, constrained=True):
    problem = draw(problems(constrained=constrained))
    row = st.lists(st.sampled_from(CYCLES), min_size=3, max_size=3)
    rows = draw(st.lists(row, min_size=problem.node_count, max_size=problem.node_count))
    return replace(problem, node_vector=np.array(rows), pipes=PIPES)


def objective(problem, choice, alone):
    sums = [
        sum((Fraction(problem.node_vector[n][i]) for n in choice.values()), Fraction())
        for i in range(3)
    ]
    others = [s for s, pipe in zip(sums, PIPES, strict=True) if pipe not in alone]
    return max(others, default=Fraction()) + sum(
        s for s, pipe in zip(sums, PIPES, strict=True) if pipe in alone
    )


@settings(max_examples=120)
@given(data=st.data())
def test_it_is_the_least_of_all_selections(data, problems, allowed_selections):
    problem = data.draw(with_vectors(problems))
    alone = data.draw(st.sampled_from([(), ("scalar",), PIPES]))
    choices = allowed_selections(problem)
    want = min((objective(problem, choice, alone) for choice in choices), default=None)
    try:
        found = extract(problem, objective="bottleneck", not_overlapped=alone)
    except ExtractionError:
        assert want is None
        return
    if want is None:
        assert found.status == "infeasible"
        assert found.conflict
        with pytest.raises(ExtractionError, match="no selection meets"):
            found.check(problem)
        return
    assert found.status == "optimal"
    assert math.isclose(found.cost, want, rel_tol=1e-9)
    assert found.bound <= found.cost
    found.check(problem)
    ties = [c for c in choices if objective(problem, c, alone) <= want * (1 + Fraction(1, 10**9))]
    cheapest = min(math.fsum(problem.node_cost[n] for n in c.values()) for c in ties)
    assert math.fsum(problem.node_cost[n] for n in found.choice.values()) == cheapest


@settings(max_examples=60)
@given(data=st.data())
def test_with_all_pipes_apart_it_is_the_serial_objective(data, problems, cheapest):
    problem = data.draw(with_vectors(problems, constrained=False))
    serial = replace(problem, node_cost=problem.node_vector.sum(axis=1))
    if cheapest(serial) is None:
        return
    apart = extract(problem, objective="bottleneck", not_overlapped=PIPES)
    assert math.isclose(apart.cost, extract(serial).cost, rel_tol=1e-9)


# class 0 needs classes 1 and 2, each on the cube or on the vector unit
TWO_WAYS = Problem(
    node_class=[0, 1, 1, 2, 2],
    node_children=[[1, 2], [], [], [], []],
    node_cost=np.array([0.0, 3.0, 4.0, 3.0, 4.0]),
    node_vector=np.array([[0, 0, 0], [3, 0, 0], [0, 4, 0], [3, 0, 0], [0, 4, 0]], dtype=float),
    pipes=PIPES,
    roots=[0],
)


def test_work_is_spread_over_pipes_where_the_serial_sum_would_keep_it_on_one():
    serial = extract(TWO_WAYS)
    assert serial.cost == 6.0
    assert bottleneck(serial.choice, TWO_WAYS) == 6.0
    spread = extract(TWO_WAYS, objective="bottleneck")
    assert spread.cost == 4.0
    assert sorted(spread.choice.values()) in ([0, 1, 4], [0, 2, 3])
    spread.check(TWO_WAYS)


def test_a_pipe_with_time_to_spare_gets_no_useless_work():
    """Class 1 is the bottleneck; class 2 could waste 3 cycles on the vector unit without harm."""
    problem = replace(
        TWO_WAYS,
        node_cost=np.array([0.0, 9.0, 9.0, 3.0, 1.0]),
        node_vector=np.array([[0, 0, 0], [9, 0, 0], [9, 0, 0], [0, 3, 0], [0, 1, 0]], dtype=float),
    )
    assert extract(problem, objective="bottleneck").choice[2] == 4


def test_the_same_problem_gives_the_same_selection():
    first, second = (extract(TWO_WAYS, objective="bottleneck") for _ in range(2))
    assert first.choice == second.choice


def test_constraints_hold():
    limit = Constraint("cube jobs", {1: 1, 3: 1}, 0)
    found = extract(TWO_WAYS, objective="bottleneck", constraints=[limit])
    assert found.cost == 8.0
    assert set(found.choice.values()) == {0, 2, 4}


def test_wrong_uses_are_refused():
    with pytest.raises(OptionError, match="extractor 'dag' cannot minimise the bottleneck"):
        extract(TWO_WAYS, "dag", objective="bottleneck")
    with pytest.raises(OptionError, match="objective 'fastest'"):
        extract(TWO_WAYS, objective="fastest")
    with pytest.raises(OptionError, match="not_overlapped is for 'bottleneck'"):
        extract(TWO_WAYS, not_overlapped=("scalar",))
    with pytest.raises(ExtractionError, match="has no pipe 'mte9'"):
        extract(TWO_WAYS, objective="bottleneck", not_overlapped=("mte9",))
    without = replace(TWO_WAYS, node_vector=None, pipes=())
    with pytest.raises(ExtractionError, match="needs the cost of each pipe"):
        extract(without, objective="bottleneck")
    negative = replace(TWO_WAYS, node_vector=-TWO_WAYS.node_vector)
    with pytest.raises(ExtractionError, match="negative or not finite"):
        extract(negative, objective="bottleneck")
