"""The schedule in the Trace Event Format, as Perfetto's and Chrome's importers read it."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import report_programs as programs

import pypto_egg
from pypto_egg.extract.cost.timing import QUEUES
from pypto_egg.report.instructions import kernel_schedule

KERNELS = Path(__file__).resolve().parents[2] / "bench" / "kernels"
TWO_KERNELS = KERNELS / "hyper_connection_mix.py"


@pytest.fixture(scope="module")
def trace() -> dict[str, Any]:
    """The trace of a program with two kernels."""
    made: dict[str, Any] = json.loads(pypto_egg.optimize(TWO_KERNELS, verify=False).to_trace())
    return made


def of_phase(trace: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def test_every_event_has_what_its_phase_needs(trace: dict[str, Any]) -> None:
    needed = {
        "M": {"name", "pid", "tid", "args"},
        "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
        "s": {"name", "cat", "id", "pid", "tid", "ts"},
        "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
    }
    for event in trace["traceEvents"]:
        assert set(event) == needed[event["ph"]] | {"ph"}
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0


def test_each_kernel_is_a_process_and_each_queue_a_named_track(trace: dict[str, Any]) -> None:
    named = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in of_phase(trace, "M")
        if event["name"] in ("process_name", "thread_name")
    }
    for process, kernel in ((1, "partial_logits"), (2, "combine")):
        assert named[process, 0].startswith(f"{kernel} on a2a3")
        assert [named[process, thread + 1] for thread in range(len(QUEUES))] == list(QUEUES)
    assert {(e["pid"], e["tid"]) for e in of_phase(trace, "X")} <= set(named)


def test_the_slices_of_a_track_do_not_overlap(trace: dict[str, Any]) -> None:
    tracks = defaultdict(list)
    for event in of_phase(trace, "X"):
        tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in tracks.values():
        for (_, end), (start, _) in itertools.pairwise(slices):
            assert start >= end


def test_times_are_whole_nanoseconds_whatever_they_are_read_as(trace: dict[str, Any]) -> None:
    for event in trace["traceEvents"]:
        for time in (event.get("ts", 0.0), event.get("dur", 0.0)):
            assert 8 * time == int(8 * time)
    for event in of_phase(trace, "X"):
        assert event["dur"] == pytest.approx(event["args"]["cycles"], abs=0.13)


def test_arrows_join_slices_of_two_tracks(trace: dict[str, Any]) -> None:
    starts = {event["id"]: event for event in of_phase(trace, "s")}
    ends = {event["id"]: event for event in of_phase(trace, "f")}
    assert starts
    assert starts.keys() == ends.keys()

    def inside(flow: dict[str, Any]) -> bool:
        return any(
            (e["pid"], e["tid"]) == (flow["pid"], flow["tid"])
            and e["ts"] <= flow["ts"] < e["ts"] + e["dur"]
            for e in of_phase(trace, "X")
        )

    for key, start in starts.items():
        assert start["tid"] != ends[key]["tid"]
        assert inside(start)
        assert inside(ends[key])
        assert ends[key]["bp"] == "e"


def test_the_unit_of_time_is_stated(trace: dict[str, Any]) -> None:
    other = trace["otherData"]
    assert other["time_unit"] == "1 us in this file is 1 cycle of the AI-core clock"
    assert other["clock_hz"] == 1.85e9
    assert trace["displayTimeUnit"] == "ns"


def test_the_last_slice_ends_when_the_kernel_does() -> None:
    lowering = pypto_egg.optimize(programs.LOOP, verify=False)
    trace = json.loads(lowering.to_trace())
    schedule = kernel_schedule(lowering, lowering.functions[0])
    slices = of_phase(trace, "X")
    assert len(slices) == len(schedule.instructions)
    assert max(e["ts"] + e["dur"] for e in slices) == pytest.approx(schedule.total_cycles, abs=0.1)
    assert trace["otherData"]["kernels"]["f"]["total_cycles"] == schedule.total_cycles
    assert [n for n, e in enumerate(slices) if e["args"]["critical"]] == list(schedule.critical)
