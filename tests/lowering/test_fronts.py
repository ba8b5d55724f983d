"""`pareto`: cycles against the bytes of one memory space, for whole programs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import pypto_egg
from pypto_egg.errors import OptionError
from pypto_egg.extract import InOrder
from pypto_egg.lower_function import try_selection

KERNELS = Path(__file__).parents[2] / "bench" / "kernels"


def enumerated_front(kernel: str, space: str, most: float) -> list[tuple[int, int]]:
    """Cycles (rounded) and peak bytes of the front, by emitting every selection up to `most`."""
    (report,) = pypto_egg.optimize(kernel, verify=False).functions
    a = report.account
    pairs = set()
    for selection in InOrder(a.priced.problem):
        if selection.cost > most:
            break
        trial = try_selection(a.function, a.skeleton, a.graph, a.priced, selection.choice, a.target)
        if trial.fits:
            used = {s.value: peak.size_bytes for s, peak in trial.used.items()}
            pairs.add((round(a.cycles(selection.choice)), used.get(space, 0)))
    front: list[tuple[int, int]] = []
    for pair in sorted(pairs):
        if not front or pair[1] < front[-1][1]:
            front.append(pair)
    return front


def test_the_front_is_that_of_all_kernels_that_can_be_emitted() -> None:
    kernel = str(KERNELS / "bias_matmul.py")
    points = pypto_egg.pareto(kernel, "Mat", verify=False)
    found = [(round(point.cycles), point.peak_bytes["Mat"]) for point in points]
    expected = enumerated_front(kernel, "Mat", points[-1].cycles + 1)
    assert len(expected) > 1
    assert found[: len(expected)] == expected


def test_below_what_one_kernel_needs_the_product_is_made_in_blocks() -> None:
    points = pypto_egg.pareto(KERNELS / "bias_matmul.py", "Mat", verify=True)
    least = points[-1]
    assert "pl.pipeline" in least.lowering.text
    assert least.peak_bytes["Mat"] < points[0].peak_bytes["Mat"] / 2
    for a, b in pairwise(points):
        assert a.cycles < b.cycles
        assert a.peak_bytes["Mat"] > b.peak_bytes["Mat"]


def test_each_point_is_a_lowering_that_was_executed() -> None:
    points = pypto_egg.pareto(KERNELS / "bias_matmul.py", "Mat", verify=True)
    best = pypto_egg.optimize(KERNELS / "bias_matmul.py", verify=False)
    assert points[0].cycles == best.cycles
    assert all(point.lowering.verified for point in points)
    assert len({point.lowering.text for point in points}) == len(points)


def test_a_space_that_is_not_used_has_one_point() -> None:
    (point,) = pypto_egg.pareto(KERNELS / "chained_product.py", "Vec", verify=False)
    assert "Vec" not in point.peak_bytes


def test_an_unknown_space_is_refused() -> None:
    with pytest.raises(OptionError, match="has no memory space 'L1'"):
        pypto_egg.pareto(KERNELS / "chained_product.py", "L1")
