"""Every extractor's claim, held against plain enumeration on random e-graphs."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pypto_egg.errors import ExtractionError
from pypto_egg.extract import extract

EXAMPLES = settings(max_examples=200)


@EXAMPLES
@given(data=st.data())
def test_exact_finds_the_cheapest_selection_or_proves_that_there_is_none(data, problems, cheapest):
    problem = data.draw(problems())
    want = cheapest(problem)
    try:
        selection = extract(problem, "exact")
    except ExtractionError:
        assert want is None
        return
    if want is None:
        assert selection.status == "infeasible"
        assert selection.conflict
        with pytest.raises(ExtractionError, match="no selection meets"):
            selection.check(problem)
        return
    assert selection.status == "optimal"
    assert math.isclose(selection.cost, want, rel_tol=1e-12)
    assert selection.bound <= want
    selection.check(problem)


@EXAMPLES
@given(data=st.data())
def test_exact_is_at_most_dag_and_dag_at_most_tree(data, problems, cheapest):
    problem = data.draw(problems(constrained=False))
    assume(cheapest(problem) is not None)
    tree, dag, exact = (extract(problem, name) for name in ("tree", "dag", "exact"))
    assert exact.cost <= dag.cost <= tree.cost
    for selection in (tree, dag, exact):
        selection.check(problem)
        assert selection.bound <= exact.cost


@EXAMPLES
@given(data=st.data())
def test_heuristics_never_claim_more_than_they_know(data, problems, cheapest):
    problem = data.draw(problems())
    want = cheapest(problem)
    for name in ("tree", "dag"):
        try:
            selection = extract(problem, name)
        except ExtractionError:
            assert want is None
            return
        if selection.found:
            selection.check(problem)
            assert want is not None
            assert selection.cost >= float(want)
            assert selection.bound <= want
        elif selection.status == "infeasible":
            assert want is None
