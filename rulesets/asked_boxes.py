"""Physical extents of cube products that somebody asks for, beside those that the rules offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from egglog import eq, i64

from pypto_egg.egraph.language import (
    Index,
    Tensor,
    acc_dtype,
    batch,
    capacity,
    cols,
    element_bytes,
    extents,
    m_granularity,
    n_granularity,
    pads_n,
    product,
    rows,
)
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

Extents = tuple[int, int]
"""M and N, in elements."""


def asked_boxes(logical: Extents, physical: Iterable[Extents]) -> RuleSet:
    """A ruleset that offers physical extents for the products of these logical extents.

    Extents that are not whole fractals, or whose accumulator does not fit L0C, are not offered.
    """
    return _asked_boxes(logical, tuple(sorted(set(physical))))


@lru_cache(maxsize=64)
def _asked_boxes(logical: Extents, physical: tuple[Extents, ...]) -> RuleSet:
    ruleset = RuleSet("asked-boxes", "physical extents that were asked for")
    for wanted in physical:
        name = f"asked-box-{logical[0]}x{logical[1]}-as-{wanted[0]}x{wanted[1]}"
        ruleset.add(name, _rule(logical, wanted))
    return ruleset


def _rule(logical: Extents, wanted: Extents) -> Callable[..., Body]:
    m, n = wanted

    def asked_box(t: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, g: i64, h: i64) -> Body:
        """Any whole number of fractals that holds the logical extents is legal (A-01, A-02)."""
        return when(
            product(t, x, y, i, j), pads_n(t), eq(batch(t)).to(i64(0)),
            eq(rows(t)).to(Index(logical[0])), eq(cols(t)).to(Index(logical[1])),
            eq(g).to(m_granularity(t)), eq(h).to(n_granularity(t)),
            eq(i64(m) % g).to(i64(0)), eq(i64(n) % h).to(i64(0)),
            i64(m) * i64(n) * element_bytes(acc_dtype(t)) <= capacity("Acc"),
        ).then(extents(t, Index(m), Index(n)))  # fmt: skip

    return asked_box
