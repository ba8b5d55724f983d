"""Random programs for property tests, from the generator of `pypto-egg fuzz`."""

from __future__ import annotations

from hypothesis import strategies as st

from pypto_egg.bench.random_programs import random_program, sample

__all__ = ["programs", "sample"]


@st.composite
def programs(draw: st.DrawFn, most: int = 6) -> str:
    """Programs of one to `most` steps, which shrink towards the first of all options."""
    return random_program(
        lambda options: draw(st.sampled_from(list(options))), draw(st.integers(1, most))
    )
