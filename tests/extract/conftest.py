"""The slow, obvious judge of extraction, and random problems small enough for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from pypto_egg.extract import Constraint, Problem

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside the tests

COSTS = [0.0, 0.125, 1.0, 2.0, 2.5, 3.0, 4.0, 7.0]


def _selections(problem: Problem) -> list[dict[int, int]]:
    """Every acyclic closed selection, by trying every node of every class that is needed."""
    found = []
    stack = [({}, tuple(problem.roots))]
    while stack:
        choice, todo = stack.pop()
        todo = tuple(cls for cls in todo if cls not in choice)
        if not todo:
            if _acyclic(problem, choice):
                found.append(choice)
            continue
        for node in problem.class_nodes[todo[0]]:
            needs = (*problem.node_children[node], *problem.node_requires[node])
            stack.append(({**choice, todo[0]: node}, (*todo[1:], *needs)))
    return found


def _acyclic(problem: Problem, choice: dict[int, int]) -> bool:
    left = dict(choice)
    while left:
        done = [c for c, n in left.items() if not any(k in left for k in problem.node_children[n])]
        if not done:
            return False
        for cls in done:
            del left[cls]
    return True


def _allowed(problem: Problem, choice: dict[int, int]) -> bool:
    nodes = set(choice.values())
    for constraint in problem.constraints:
        weight = sum(Fraction(w) for n, w in constraint.weights.items() if n in nodes)
        if weight > Fraction(constraint.limit):
            return False
    return not any(nodes.issuperset(group) for group in problem.forbidden)


def _cheapest(problem: Problem) -> Fraction | None:
    costs = [
        sum((Fraction(float(problem.node_cost[n])) for n in choice.values()), Fraction())
        for choice in _selections(problem)
        if _allowed(problem, choice)
    ]
    return min(costs, default=None)


@pytest.fixture(scope="session")
def cheapest() -> Callable[[Problem], Fraction | None]:
    """Exact cost of the cheapest allowed selection, by enumeration; None when there is none."""
    return _cheapest


@pytest.fixture(scope="session")
def allowed_selections() -> Callable[[Problem], list[dict[int, int]]]:
    """Every acyclic closed selection that meets the limits and the forbidden sets."""
    return lambda problem: [c for c in _selections(problem) if _allowed(problem, c)]


@st.composite
def _problems(draw: st.DrawFn, *, constrained: bool = True) -> Problem:
    classes = draw(st.integers(1, 6))
    cyclic = draw(st.booleans())
    node_class, children, requires, cost = [], [], [], []
    for cls in range(classes):
        below = st.integers(0, classes - 1) if cyclic else st.integers(0, cls - 1)
        for _ in range(draw(st.integers(1, 3))):
            node_class.append(cls)
            leaf = cls == 0 and not cyclic
            children.append([] if leaf else draw(st.lists(below, max_size=3)))
            requires.append(draw(st.lists(st.integers(0, classes - 1), max_size=1)))
            cost.append(draw(st.sampled_from(COSTS)))
    nodes = st.integers(0, len(node_class) - 1)
    constraints, forbidden = [], []
    if constrained:
        weights = st.dictionaries(nodes, st.integers(0, 5), max_size=8)
        for i in range(draw(st.integers(0, 2))):
            constraints.append(Constraint(f"limit {i}", draw(weights), draw(st.integers(0, 12))))
        forbidden = draw(st.lists(st.sets(nodes, min_size=1, max_size=3), max_size=2))
    return Problem(
        node_class=node_class,
        node_children=children,
        node_cost=np.array(cost),
        roots=draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=2)),
        node_requires=requires,
        constraints=constraints,
        forbidden=[sorted(group) for group in forbidden],
    )


@pytest.fixture(scope="session")
def problems() -> Callable[..., st.SearchStrategy[Problem]]:
    """Strategy for random problems with sharing, cycles, loop carries and constraints."""
    return _problems
