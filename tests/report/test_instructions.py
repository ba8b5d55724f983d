"""The timed instructions of kernels and their critical path."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import report_programs as programs

import pypto_egg
from pypto_egg.extract.cost.schedule import Schedule
from pypto_egg.extract.cost.simulate import simulate
from pypto_egg.report.instructions import KernelSchedule, kernel_schedule

KERNELS = Path(__file__).resolve().parents[2] / "bench" / "kernels"


def schedules(program: str | Path, **options: object) -> list[KernelSchedule]:
    lowering = pypto_egg.optimize(program, verify=False, **options)
    return [kernel_schedule(lowering, report) for report in lowering.functions]


@pytest.mark.parametrize("kernel", ["flash_attention", "hyper_connection_mix", "rmsnorm_matmul"])
def test_the_critical_path_accounts_for_every_cycle(kernel: str) -> None:
    for schedule in schedules(KERNELS / f"{kernel}.py"):
        on_path = sum(schedule.critical_cycles().values())
        assert schedule.launch_cycles + on_path == pytest.approx(schedule.total_cycles)
        path = [schedule.instructions[n] for n in schedule.critical]
        assert path[0].start == pytest.approx(schedule.launch_cycles)
        for before, after in itertools.pairwise(path):
            assert before.end == pytest.approx(after.start)


def test_instructions_are_those_of_the_simulation() -> None:
    lowering = pypto_egg.optimize(programs.LOOP, verify=False)
    (schedule,) = schedules(programs.LOOP)
    timeline = simulate(lowering.program, "a2a3")
    assert schedule.total_cycles == timeline.total_cycles
    assert [(i.queue, i.op, i.start, i.end) for i in schedule.instructions] == list(timeline.events)


def test_nothing_starts_before_what_it_waited_for_has_ended() -> None:
    for schedule in schedules(KERNELS / "flash_attention.py"):
        for one in schedule.instructions:
            if one.waited_for is not None:
                other = schedule.instructions[one.waited_for]
                assert one.start == pytest.approx(max(other.end, schedule.launch_cycles))


def test_words_name_the_tile_and_the_extents_of_a_product() -> None:
    (schedule,) = schedules(programs.product(100, 64, 128))
    words = {one.what for one in schedule.instructions}
    assert "tile.load: Mat [112, 128] BF16, valid [100, 128]" in words
    assert "tile.matmul: [100, 128] @ [128, 64] BF16" in words
    assert any(what.startswith("tile.store: Acc [112, 64] FP32") for what in words)


def test_the_constants_of_the_cost_model_are_used() -> None:
    (device,) = schedules(programs.BIASED)
    (flat,) = schedules(programs.BIASED, cost_model=Schedule("flat"))
    assert (device.constants, flat.constants) == ("device", "flat")
    assert flat.total_cycles < device.total_cycles
