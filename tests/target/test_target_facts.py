"""The target files as PyPTO and pto-isa state them, and what-if copies of a target."""

import doctest
from pathlib import Path as FilePath

import pytest

from pypto_egg.errors import InternalError, OptionError
from pypto_egg.ir.dtype import (
    BF16,
    FP4,
    FP8E4M3FN,
    FP8E5M2,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    UINT8,
)  # fmt: skip
from pypto_egg.ir.enums import Mem, PipeType, TileLayout
from pypto_egg.target import Path, load_target, target_names
from pypto_egg.target.facts import Clock
from pypto_egg.target.target import _record

A2A3, A5 = load_target("a2a3"), load_target("a5")
K = 1024
DOCS = FilePath(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("space", "a2a3", "a5"),
    [
        (Mem.Mat, 512 * K, 512 * K),
        (Mem.Left, 64 * K, 64 * K),
        (Mem.Right, 64 * K, 64 * K),
        (Mem.Acc, 128 * K, 256 * K),
        (Mem.Bias, 1 * K, 4 * K),
        (Mem.LeftScale, 0, 4 * K),
        (Mem.RightScale, 0, 4 * K),
        (Mem.Vec, 184 * K, 240 * K),
    ],
)
@pytest.mark.req("K-26")
def test_capacity_is_what_tiles_may_use(space, a2a3, a5):
    assert A2A3.capacity_bytes(space) == a2a3
    assert A5.capacity_bytes(space) == a5


def test_physical_size_of_ub_is_larger_than_the_usable_one():
    assert A2A3.memory["Vec"].physical_bytes == 192 * K
    assert A5.memory["Vec"].physical_bytes == 256 * K


def test_global_memory_has_no_capacity():
    with pytest.raises(InternalError, match="DDR has no capacity on a2a3"):
        A2A3.capacity_bytes(Mem.DDR)


@pytest.mark.parametrize("alias", ["910B", "910b", "910C", "a2", "A3", "a2a3"])
def test_aliases_name_the_same_target(alias):
    assert load_target(alias) == A2A3


@pytest.mark.parametrize("alias", ["950", "950PR", "A5"])
def test_aliases_of_a5(alias):
    assert load_target(alias) == A5


def test_unknown_target_lists_names_and_aliases():
    with pytest.raises(OptionError, match="no target 'h100'") as caught:
        load_target("h100")
    assert "a2a3 (910B, 910C, a2, a3), a5 (950" in str(caught.value)
    assert target_names() == ("a2a3", "a5")


FIX, MTE1, MTE2, MTE3 = PipeType.FIX, PipeType.MTE1, PipeType.MTE2, PipeType.MTE3


@pytest.mark.parametrize(
    ("source", "goal", "a2a3", "a5"),
    [
        (Mem.DDR, Mem.Mat, (MTE2,), (MTE2,)),
        (Mem.DDR, Mem.Vec, (MTE2,), (MTE2,)),
        (Mem.Mat, Mem.Left, (MTE1,), (MTE1,)),
        (Mem.Mat, Mem.Right, (MTE1,), (MTE1,)),
        (Mem.Mat, Mem.Bias, (MTE1,), (MTE1,)),
        (Mem.Mat, Mem.LeftScale, None, (MTE1,)),
        (Mem.Acc, Mem.DDR, (FIX,), (FIX,)),
        (Mem.Acc, Mem.Mat, (FIX,), (FIX,)),
        (Mem.Vec, Mem.Vec, (PipeType.V,), (PipeType.V,)),
        (Mem.Vec, Mem.DDR, (MTE3,), (MTE3,)),
        (Mem.Mat, Mem.DDR, (MTE3,), None),
        (Mem.Acc, Mem.Vec, (FIX, MTE2), (FIX,)),
        (Mem.Vec, Mem.Mat, (MTE3, MTE2), (MTE3,)),
        (Mem.DDR, Mem.Left, None, None),
        (Mem.Vec, Mem.Right, None, None),
        (Mem.Left, Mem.Mat, None, None),
        (Mem.Bias, Mem.DDR, None, None),
    ],
)
def test_paths(source, goal, a2a3, a5):
    for target, pipes in ((A2A3, a2a3), (A5, a5)):
        expected = None if pipes is None else Path(pipes, via_gm=len(pipes) == 2)
        assert target.path(source, goal) == expected


@pytest.mark.parametrize(
    ("source", "goal", "rate"),
    [
        (Mem.DDR, Mem.Vec, 58.56),
        (Mem.DDR, Mem.Mat, 78.35),
        (Mem.Vec, Mem.DDR, 109.38),
        (Mem.Mat, Mem.DDR, 18.57),
        (Mem.Vec, Mem.Vec, 594.33),
        (Mem.Acc, Mem.DDR, 40.63),
        (Mem.Acc, Mem.Mat, 74.29),
        (Mem.Mat, Mem.Left, 255.96),
        (Mem.Mat, Mem.Right, 127.98),
        (Mem.Mat, Mem.Bias, 18.57),
    ],
)
def test_flat_rates_of_a2a3_in_bytes_for_a_cycle(source, goal, rate):
    assert A2A3.bytes_per_cycle(source, goal) == pytest.approx(rate, abs=0.006)


def test_a_path_without_a_rate_is_refused():
    with pytest.raises(InternalError, match="no flat rate from Acc to Vec on a5"):
        A5.bytes_per_cycle(Mem.Acc, Mem.Vec)


def test_cube_products_and_their_accumulators():
    for target in (A2A3, A5):
        assert target.cube_accumulator(FP16, FP16) == FP32
        assert target.cube_accumulator(BF16, BF16) == FP32
        assert target.cube_accumulator(FP32, FP32) == FP32
        assert target.cube_accumulator(INT8, INT8) == INT32
        assert target.cube_accumulator(FP16, BF16) is None
        assert target.cube_accumulator(INT16, INT16) is None
    assert A2A3.cube_accumulator(FP8E4M3FN, FP8E5M2) is None
    assert A5.cube_accumulator(FP8E4M3FN, FP8E5M2) == FP32


def test_block_scaled_products_are_on_a5_only():
    assert A5.cube_accumulator(FP4, FP4, mx=True) == FP32
    assert A5.cube_accumulator(FP4, FP4) is None
    assert A5.cube_accumulator(FP16, FP16, mx=True) is None
    assert A2A3.cube_accumulator(FP8E4M3FN, FP8E4M3FN, mx=True) is None


def test_what_fixpipe_writes():
    assert A2A3.drain_supported(FP32, BF16)
    assert not A2A3.drain_supported(FP32, INT8)
    assert A2A3.drain_supported(FP32, INT8, quantised=True)
    assert not A2A3.drain_supported(FP32, FP32, Mem.Mat)
    assert A5.drain_supported(FP32, FP32, Mem.Mat)
    assert not A2A3.drain_supported(FP32, FP32, Mem.Vec)
    assert A5.drain_supported(INT32, INT32, Mem.Vec)


def test_conversions_of_one_instruction():
    assert A2A3.converts(FP32, BF16)
    assert A5.converts(FP32, BF16)
    assert A2A3.converts(INT32, FP16)
    assert not A5.converts(INT32, FP16)
    assert A5.converts(BF16, FP16)
    assert not A2A3.converts(BF16, FP16)
    assert not A2A3.converts(UINT8, FP32)


def test_bias_conversions():
    assert A2A3.bias_supported(FP16, FP32)
    assert not A2A3.bias_supported(BF16, FP32)
    assert A5.bias_supported(BF16, FP32)


def test_accumulator_rows():
    assert A2A3.alignment_rows_acc(INT32) == 32
    assert A2A3.alignment_rows_acc(FP32) == 16
    assert A5.alignment_rows_acc(INT32) == 16


@pytest.mark.parametrize(("dtype", "elems"), [(FP32, 8), (BF16, 16), (INT8, 32), (FP4, 64)])
def test_elements_of_a_line(dtype, elems):
    assert A2A3.c0_elems(dtype) == elems


def test_layouts_of_the_cube_spaces():
    assert A2A3.layouts["Left"].order == "ZZ"
    assert A5.layouts["Left"].order == "NZ"
    right = A2A3.layouts["Right"]
    assert (right.blayout, right.slayout) == (TileLayout.row_major, TileLayout.col_major)
    assert A2A3.layouts["Acc"].box_bytes == 1024


def test_limits_and_granularity():
    assert A2A3.limits.matmul_extent == 4095
    assert (A2A3.limits.acc_store_rows_nd, A2A3.limits.acc_store_rows_nz) == (8192, 65535)
    assert A2A3.gm.access_granularity_bytes == 512
    assert A5.gm.access_granularity_bytes == 128
    assert (A2A3.cores.aic, A5.cores.aic, A5.cores.aiv_per_aic) == (24, 32, 2)


def test_an_override_changes_one_number_of_a_copy():
    small = A2A3.with_(**{"memory.Acc.usable_bytes": 64 * K})
    assert small.capacity_bytes(Mem.Acc) == 64 * K
    assert small.capacity_bytes(Mem.Mat) == A2A3.capacity_bytes(Mem.Mat)
    assert A2A3.capacity_bytes(Mem.Acc) == 128 * K
    assert small != A2A3


def test_overrides_add_up_and_equal_ones_are_the_same_target():
    one = A2A3.with_(**{"l0.issue_cycles": 6}).with_(**{"clock.hz": 1.8e9})
    other = A2A3.with_(**{"clock.hz": 1.8e9, "l0.issue_cycles": 6})
    assert one is other
    assert (one.l0.issue_cycles, one.clock.hz) == (6, 1.8e9)
    assert one.overrides == (("clock.hz", 1.8e9), ("l0.issue_cycles", 6))


@pytest.mark.parametrize("target", [A2A3, A5])
def test_every_number_can_be_overridden(target):
    numbers = target.numbers()
    assert len(numbers) > 150
    for key, value in numbers.items():
        assert target.with_(**{key: value + 1}).numbers()[key] == value + 1


def test_a_target_file_with_wrong_keys_names_them():
    with pytest.raises(InternalError, match="Clock: unknown key 'mhz', no 'hz'"):
        _record(Clock, {"mhz": 1850})


def test_the_document_runs():
    found = doctest.testfile(str(DOCS / "targets.md"), module_relative=False)
    assert found.attempted >= 7
    assert found.failed == 0


def test_unknown_key_lists_the_section():
    with pytest.raises(OptionError, match=r"target a5 has no number 'l0\.head'") as caught:
        A5.with_(**{"l0.head": 3})
    assert "l0.issue_cycles" in str(caught.value)
    with pytest.raises(OptionError, match="has no number 'speed'") as caught:
        A5.with_(speed=3)
    assert "memory.*" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("l0.step", 1.5, "is a whole number, got 1.5"),
        ("l0.step", True, "is a number, got True"),
        ("clock.hz", "fast", "is a number, got 'fast'"),
        ("clock.hz", 0, "must be finite and positive, got 0"),
        ("clock.hz", float("inf"), "must be finite and positive, got inf"),
        ("clock.hz", float("nan"), "must be finite and positive, got nan"),
        ("memory.Vec.usable_bytes", -1, "must be finite and not negative, got -1"),
    ],
)
def test_bad_override_values(key, value, why):
    with pytest.raises(OptionError, match=why):
        A2A3.with_(**{key: value})
