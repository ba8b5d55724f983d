"""What L2 holds: distances of touches against a plain count, and shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto_egg
from pypto_egg.extract.cost.l2 import ReuseDistances, held_share
from pypto_egg.extract.cost.simulate import simulate
from pypto_egg.target import load_target

A2A3 = load_target("a2a3")


@settings(max_examples=60)
@given(st.lists(st.integers(0, 12), max_size=80))
def test_a_distance_is_the_distinct_bytes_since_the_last_touch(touches):
    found, history = ReuseDistances(), []
    for window in touches:
        if window in history:
            since = history[len(history) - 1 - history[::-1].index(window) :]
            assert found.distance(window) == sum(float(100 + w) for w in set(since))
        else:
            assert found.distance(window) == float("inf")
        found.touch([window], float(100 + window))
        history.append(window)


def test_distances_stay_right_when_there_are_many_touches():
    found = ReuseDistances()
    for turn in range(3000):
        found.touch([turn % 7], 10.0)
    last, first = (3000 - 1) % 7, 3000 % 7
    assert found.distance(last) == 10.0
    assert found.distance(first) == 70.0


def test_a_sweep_that_fits_is_held_and_of_a_larger_one_what_fits():
    distances = np.array([float("inf"), 0.0, 50.0, 100.0, 400.0])
    assert held_share(distances, 100.0).tolist() == [0.0, 1.0, 1.0, 1.0, 0.25]
    assert held_share(distances, 0.0).tolist() == [1.0] * 5


def loads(cores, capacity):
    """Cycles of the loads of a kernel whose cores in pairs read the same 64 rows, twice."""
    target = A2A3.with_(**{"schedule.device.l2_bytes": capacity})
    program = pypto_egg.parse(
        """# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[512, 64], pl.FP32]) -> pl.Tensor[[512, 64], pl.FP32]:
        core: pl.Scalar[pl.INDEX] = pl.tile.get_block_idx()
        a = pl.tile.load(x, [core // 2 * 64, 0], [64, 64], target_memory=pl.Mem.Mat)
        b = pl.tile.load(x, [core // 2 * 64, 0], [64, 64], target_memory=pl.Mem.Mat)
        return x
"""
    )
    found = simulate(program, target, "device", cores=cores)
    return [event.end - event.start for event in found.of("mte2")]


def test_the_first_touch_misses_and_the_second_hits_what_is_held():
    law = A2A3.device_law
    miss, hit = loads(2, 1e9)
    assert miss / hit == pytest.approx(law.load_bytes_per_cycle / law.miss_bytes_per_cycle)


def test_all_cores_share_what_is_held():
    """Eight cores touch four windows of 16K: half of that is held if L2 holds 32K."""
    miss, hit = loads(8, 1e9)
    _, half = loads(8, 32768.0)
    assert half == pytest.approx((miss + hit) / 2)
    assert loads(2, 32768.0) == pytest.approx([miss, hit])
