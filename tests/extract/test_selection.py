"""A selection checks itself: every way to corrupt one is noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pypto_egg.errors import ExtractionError, InternalError
from pypto_egg.extract import Constraint, Problem, extract

# class 0 = root, 1 = left, 2 = right, 3 = shared; nodes 5 and 6 make a cycle between 1 and 2
PROBLEM = Problem(
    node_class=[0, 1, 2, 3, 3, 1, 2],
    node_children=[[1, 2], [3], [3], [], [], [2], [1]],
    node_cost=np.array([1.0, 2.0, 2.0, 5.0, 6.0, 0.5, 0.5]),
    roots=[0],
    node_vector=np.array([[1, 0], [2, 0], [1, 1], [0, 5], [0, 6], [0.5, 0], [0.5, 0]]),
    pipes=["cube", "vector"],
)
BEST = extract(PROBLEM)


def test_the_cheapest_selection_shares_and_has_no_cycle():
    BEST.check(PROBLEM)
    assert dict(BEST.choice) == {0: 0, 1: 1, 2: 6, 3: 3} or dict(BEST.choice) == {
        0: 0,
        1: 5,
        2: 2,
        3: 3,
    }
    assert (BEST.cost, BEST.bound, BEST.status, BEST.method) == (8.5, 8.5, "optimal", "exact")
    assert BEST.price(PROBLEM) == 8.5


def test_classes_are_ordered_after_their_children():
    place = {cls: i for i, cls in enumerate(BEST.order(PROBLEM))}
    for cls, node in BEST.choice.items():
        assert all(place[child] < place[cls] for child in PROBLEM.node_children[node])


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({1: 1, 2: 2, 3: 3}, "class 'c0' has no selected node although it is a root"),
        ({0: 0, 1: 1, 3: 3}, "class 'c2' has no selected node although node 'n0'"),
        ({0: 0, 1: 1, 2: 3, 3: 3}, "class 'c2' has node 3 selected, not one of its own"),
        ({0: 0, 1: 99, 2: 2, 3: 3}, "class 'c1' has node 99"),
        ({0: 0, 1: 5, 2: 6}, "cycle"),
        ({0: 0, 1: 5, 2: 6, 3: 3}, "class 3 is selected although nothing needs it"),
    ],
)
def test_a_broken_selection_is_noticed(choice, words):
    with pytest.raises(InternalError, match=words):
        replace(BEST, choice=choice).check(PROBLEM)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cost": 8.0, "bound": 8.0}, "says it costs 8.0, but costs 8.5"),
        ({"bound": 9.0}, "below its bound"),
        ({"bound": 1.0}, "status 'optimal' does not fit"),
        ({"status": "feasible"}, "status 'feasible' does not fit"),
    ],
)
def test_wrong_numbers_are_noticed(changes, words):
    with pytest.raises(InternalError, match=words):
        replace(BEST, **changes).check(PROBLEM)


def test_a_class_that_is_required_must_be_selected():
    problem = replace(PROBLEM, node_requires=[[], [], [], [], [], [], []])
    needing = replace(problem, node_requires=[[4], [], [], [], [], [], []], class_name=())
    with pytest.raises(InternalError, match="class 'c4' has no selected node although node 'n0'"):
        BEST.check(needing)


def test_broken_limits_are_the_users_matter():
    narrow = replace(PROBLEM, constraints=[Constraint("Vec bytes", {3: 100, 4: 50}, 80)])
    with pytest.raises(ExtractionError, match=r"'Vec bytes': .* weigh 100, the limit is 80"):
        BEST.check(narrow)
    apart = replace(PROBLEM, forbidden=[[0, 3]])
    with pytest.raises(ExtractionError, match=r"although forbidden: node 'n0' .* and node 'n3'"):
        BEST.check(apart)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("infeasible", "no selection meets these constraints together: 'Vec bytes'"),
        ("timeout", "deadline passed after"),
        ("unknown", "extractor 'exact' found no selection that meets: 'Vec bytes'"),
    ],
)
def test_no_selection_raises_with_the_reason(status, words):
    nothing = replace(BEST, choice={}, status=status, conflict=("Vec bytes",))
    with pytest.raises(ExtractionError, match=words):
        nothing.check(PROBLEM)
