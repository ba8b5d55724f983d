"""Large e-graphs: never dearer than greedy DAG extraction, and in time."""

from __future__ import annotations

import pytest
from greedy_dag import greedy_dag_cost

from pypto_egg.bench.egraph_families import algebra, cover, layers, library, random_graph
from pypto_egg.extract import extract

MIDDLE = {
    "layers": lambda seed: layers(60, seed),
    "cyclic": lambda seed: random_graph(400, 40, 0.2, seed),
    "wide": lambda seed: random_graph(400, 200, 0.3, seed),
    "cover": lambda seed: cover(120, 60, seed),
    "algebra": lambda seed: algebra(700, seed),
    "library": lambda seed: library(300, seed),
}


@pytest.mark.parametrize("family", MIDDLE)
def test_the_heuristic_is_never_dearer_than_greedy_cost_sets(family: str) -> None:
    problem = MIDDLE[family](1)
    found = extract(problem, "dag")
    found.check(problem)
    assert found.cost <= greedy_dag_cost(problem)


def test_thousands_of_nodes_with_cycles_are_selected_far_better_than_greedily() -> None:
    problem = random_graph(2000, 400, 0.3, 0)
    assert problem.node_count > 5_500
    found = extract(problem, "dag")
    found.check(problem)
    assert found.cost < 0.8 * greedy_dag_cost(problem)


def test_the_heuristic_gives_the_same_selection_every_time() -> None:
    problem = MIDDLE["library"](5)
    assert extract(problem, "dag").choice == extract(problem, "dag").choice


@pytest.mark.parametrize("method", ["dag", "exact"])
def test_a_deadline_that_is_over_at_once_still_gives_a_selection(method: str) -> None:
    problem = MIDDLE["library"](4)
    found = extract(problem, method, deadline_seconds=1e-6)
    found.check(problem)
    assert found.status == "feasible"
    assert found.cost <= extract(problem, "tree").cost
