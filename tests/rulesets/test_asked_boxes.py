"""Physical extents that somebody asks for."""

from __future__ import annotations

import pytest
from firing import cube

from pypto_egg import optimize
from pypto_egg.rulesets.asked_boxes import asked_boxes

PRODUCT = cube("y = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn y", (20, 48), a=(20, 64), b=(64, 48))


def offers(logical: tuple[int, int], m: int, n: int) -> bool:
    """Whether the extents are offered for the product of 20 x 48, which still computes the same."""
    result = optimize(PRODUCT, rules=[asked_boxes(logical, [(m, n)])], verify=True)
    name = f"asked-box-{logical[0]}x{logical[1]}-as-{m}x{n}"
    return result.functions[0].saturation.matches[name] > 0


def test_whole_fractals_are_offered() -> None:
    assert offers((20, 48), 48, 112)


@pytest.mark.parametrize(("m", "n"), [(40, 64), (32, 56), (4096, 64)])
def test_parts_of_fractals_and_what_l0c_does_not_hold_are_not(m: int, n: int) -> None:
    assert not offers((20, 48), m, n)


def test_other_products_are_left_alone() -> None:
    assert not offers((20, 64), 48, 112)


def test_the_same_question_gives_the_same_rules() -> None:
    assert asked_boxes((20, 48), [(48, 64), (32, 64)]) is asked_boxes(
        (20, 48), [(32, 64), (48, 64)]
    )
