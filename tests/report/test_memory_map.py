"""What the map of a kernel's memory shows."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import report_programs as programs

import pypto_egg
from pypto_egg.emit.liveness import buffers, peaks
from pypto_egg.ir.program import Function
from pypto_egg.report.pages.memory_map import MemoryMap, Space, memory_map
from pypto_egg.target import load_target

KERNELS = Path(__file__).resolve().parents[2] / "bench" / "kernels"
NAMES = ("flash_attention", "chained_product", "rmsnorm_matmul")


def kernels(program: str | Path) -> list[Function]:
    lowering = pypto_egg.optimize(program, verify=False)
    return [lowering.program.function(report.name) for report in lowering.functions]


def mapped(kernel: Function) -> MemoryMap:
    return memory_map(kernel, load_target("a2a3"))


def in_use(space: Space, share: float) -> list[tuple[float, float]]:
    """(bottom, top) of the tiles that are held there, lowest first."""
    return sorted(
        (held.bottom, held.bottom + held.height)
        for held in space.held
        if held.start < share < held.start + held.width
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_stack_has_no_gaps_and_holds_what_is_live(name: str) -> None:
    for kernel in kernels(KERNELS / f"{name}.py"):
        drawn = mapped(kernel)
        for space in drawn.spaces:
            scale = max(held.bottom + held.height for held in space.held) / space.peak_bytes
            own = [buffer for buffer in buffers(kernel) if buffer.space.value == space.name]
            for place in range(1, drawn.places + 1):
                stack = in_use(space, (place - 0.5) / drawn.places)
                live = sum(b.size_bytes for b in own if b.first <= place <= b.last)
                assert (stack[-1][1] if stack else 0.0) == pytest.approx(live * scale)
                assert all(
                    top == pytest.approx(bottom)
                    for (_, top), (bottom, _) in itertools.pairwise(stack)
                )


@pytest.mark.parametrize("name", NAMES)
def test_peaks_are_those_that_capacity_is_checked_with(name: str) -> None:
    for kernel in kernels(KERNELS / f"{name}.py"):
        found = {space.name: space.peak_bytes for space in mapped(kernel).spaces}
        assert found == {space.value: peak.size_bytes for space, peak in peaks(kernel).items()}


def test_the_limit_is_drawn_where_it_is_near() -> None:
    (small,) = kernels(programs.product(16, 16, 16))
    (large,) = kernels(programs.product(128, 256, 512))
    assert {space.limit for space in mapped(small).spaces} == {None}
    acc = next(space for space in mapped(large).spaces if space.name == "Acc")
    assert acc.capacity_bytes == load_target("a2a3").memory["Acc"].usable_bytes
    assert acc.limit is not None
    assert max(h.bottom + h.height for h in acc.held) <= acc.limit < 1
