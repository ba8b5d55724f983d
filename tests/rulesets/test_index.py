"""Index arithmetic of offsets and extents."""

from __future__ import annotations

import pytest
from egglog import EGraph, eq
from firing import names

from pypto_egg.egraph.language import Index
from pypto_egg.rulesets.index import INDEX

N = Index.sym("n")
CASES = {
    "constants-add": ((Index(3) + Index(4), Index(7)), (N + Index(4), Index(7))),
    "zero-is-neutral": ((N + Index(0), N), (N + Index(1), N)),
    "constants-multiply": ((Index(3) * Index(4), Index(12)), (N * Index(4), Index(12))),
}


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == names(INDEX)


@pytest.mark.parametrize("rule", CASES)
def test_equal_and_not_equal(rule: str) -> None:
    (left, right), (other, another) = CASES[rule]
    egraph = EGraph()
    for term in (left, right, other, another):
        egraph.register(term)
    egraph.run(INDEX.as_egglog() * 4)
    egraph.check(eq(left).to(right))
    egraph.check_fail(eq(other).to(another))


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (Index(2) * Index(3) + Index(4) * Index(5), 26),
        ((Index(2) + Index(3)) * (Index(0) + Index(4)), 20),
        (Index(0) + Index(0), 0),
    ],
)
def test_nested_constants_fold(term: Index, value: int) -> None:
    egraph = EGraph()
    egraph.register(term, Index(value))
    egraph.run(INDEX.as_egglog() * 6)
    egraph.check(eq(term).to(Index(value)))
