"""Durations of single instructions: pto-isa's worked values, and the sets of constants."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.errors import OptionError
from pypto_egg.extract.cost import OpInstance, cost_model
from pypto_egg.extract.cost.timing import CONSTANTS, timing
from pypto_egg.ir.dtype import BF16, FP16, FP32, INT8, INT32
from pypto_egg.ir.enums import Mem, TensorLayout, TileLayout
from pypto_egg.ir.types import TensorView, TupleType, implicit_view, tensor_type, tile_type
from pypto_egg.target import load_target

A2A3, A5 = load_target("a2a3"), load_target("a5")
NOTHING = TupleType(())


def tile(shape, dtype, space, valid=None, outer=None):
    """A tile; `outer` swaps the order of its boxes (ZN instead of NZ)."""
    view = replace(implicit_view(shape, space), valid_shape=valid)
    if outer is TileLayout.row_major:
        view = replace(view, blayout=outer, slayout=TileLayout.col_major)
    return tile_type(shape, dtype, space, view)


def cycles(op, operands, result, constants="flat", target=A2A3):
    """The cycles of an operation of one instruction."""
    (step,) = timing(constants, target).steps(OpInstance(op, tuple(operands), {}, result))
    return step.cycles


def load(shape, dtype, constants="flat", layout=TensorLayout.ND, space=Mem.Mat):
    tensor = tensor_type((4096, 4096), dtype, TensorView(layout=layout))
    result = tile(shape, dtype, space)
    return cycles("tile.load", (tensor, NOTHING, NOTHING, NOTHING), result, constants)


def store(shape, valid=None, dst=FP32, constants="flat"):
    out = tensor_type((4096, 4096), dst)
    acc = tile(shape, FP32, Mem.Acc, valid)
    return cycles("tile.store", (acc, NOTHING, out), out, constants)


def move(shape, dtype, goal, valid=None, outer=None):
    source = tile(shape, dtype, Mem.Mat, valid, outer)
    return cycles("tile.move", (source,), tile(shape, dtype, goal, valid))


def matmul(m, n, k, dtype):
    up = [-(-extent // 32) * 32 for extent in (m, n, k)]
    lhs = tile((up[0], up[2]), dtype, Mem.Left, (m, k))
    rhs = tile((up[2], up[1]), dtype, Mem.Right, (k, n))
    acc = INT32 if dtype == INT8 else FP32
    return cycles("tile.matmul", (lhs, rhs), tile((up[0], up[1]), acc, Mem.Acc, (m, n)))


ZN = TileLayout.row_major


@pytest.mark.parametrize(
    ("found", "published"),
    [
        (load((128, 64), FP16), 209),
        (load((64, 256), FP16), 418),
        (load((100, 64), FP16), 163),
        (load((17, 40), FP16), 17),
        (load((128, 32), FP32), 209),
        (move((128, 64), FP16, Mem.Left), 65),
        (move((64, 64), FP16, Mem.Left), 33),
        (move((112, 64), FP16, Mem.Left, (100, 64)), 57),
        (move((32, 48), FP16, Mem.Left, (17, 40)), 13),
        (move((128, 32), FP32, Mem.Left), 33),
        (move((64, 256), FP16, Mem.Right, outer=ZN), 256),
        (move((64, 256), FP16, Mem.Right), 257),  # transposing
        (move((48, 48), FP16, Mem.Right, (40, 33), ZN), 36),
        (move((64, 128), FP32, Mem.Right, outer=ZN), 256),
        (matmul(128, 256, 64, FP16), 518),
        (matmul(100, 256, 64, FP16), 454),
        (matmul(17, 33, 40, FP16), 24),
        (matmul(128, 256, 32, FP32), 1030),
        (store((128, 256)), 1614),
        (store((128, 256), dst=FP16), 1614),
        (store((32, 48), (17, 33)), 28),
        # the same in Hill mode
        (load((128, 64), FP16, "hill"), 1053),
        (load((64, 256), FP16, "hill"), 2040),
        (store((128, 256), constants="hill"), 3953),
        # profiled products of its test cases
        (matmul(40, 60, 50, FP16), 54),
        (matmul(6, 8, 7, INT8), 7),
        (matmul(128, 64, 128, FP16), 262),
        (matmul(120, 50, 110, FP32), 902),
    ],
)
def test_worked_values_of_pto_isa(found, published):
    assert found == published


def test_one_byte_operands_are_transposed_in_the_fewest_intrinsics():
    """64 x 256 int8 in blocks of 32: min(2, 8) intrinsics of 8 repeats of 512 bytes."""
    rate = 220.5 * 2**30 / 1.85e9
    assert move((64, 256), INT8, Mem.Right) == 2 * (512 * 8 // rate)


def test_nz_tensors_move_whole_lines():
    assert load((100, 64), BF16, layout=TensorLayout.NZ) == 4 * 100 * 32 // (135 * 2**30 / 1.85e9)


def test_an_acc_tile_reaches_vec_through_global_memory():
    acc, vec = tile((128, 256), FP32, Mem.Acc), tile((128, 256), FP32, Mem.Vec)
    out, back = timing("flat", A2A3).steps(OpInstance("tile.move", (acc,), {}, vec))
    assert (out.queue, out.cycles) == ("fixpipe", 1614)
    assert (back.queue, back.cycles) == ("mte2_aiv", 4 * 128 * 256 // (100.9 * 2**30 / 1.85e9))


@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from([FP16, FP32]))
def test_flat_loads_are_the_bytes_at_the_flat_rate(rows, cols, dtype):
    shape = (16 * rows, 16 * cols)
    bytes_ = shape[0] * shape[1] * dtype.bytes
    assert load(shape, dtype) == bytes_ // A2A3.bytes_per_cycle(Mem.DDR, Mem.Mat)
    assert load(shape, dtype, "hill") > load(shape, dtype)


OPS = [
    ("tile.exp", [tile((64, 64), FP32, Mem.Vec)], tile((64, 64), FP32, Mem.Vec)),
    ("tile.move", [tile((64, 64), FP16, Mem.Mat)], tile((64, 64), FP16, Mem.Left)),
    ("tile.store", [tile((64, 64), FP32, Mem.Acc), NOTHING, tensor_type((64, 64), FP32)],
     tensor_type((64, 64), FP32)),
]  # fmt: skip


@pytest.mark.parametrize("target", [A2A3, A5])
@pytest.mark.parametrize(("op", "operands", "result"), OPS)
def test_pyptos_constants_are_the_prices_of_mte2_mad(op, operands, result, target):
    price = cost_model("mte2_mad").price(OpInstance(op, tuple(operands), {}, result), target)
    assert cycles(op, operands, result, "pypto", target) == price.total


def test_device_constants_are_those_of_the_target():
    """A drain by PyPTO's law with the throughput that was fitted."""
    law = A2A3.device_law
    drain = 164 + 128 * 4 * 256 / law.drain_bytes_per_cycle
    assert store((128, 256), constants="device") == pytest.approx(drain)
    slower = A2A3.with_(**{"schedule.device.drain_bytes_per_cycle": 40.0})
    out = tensor_type((4096, 4096), FP32)
    operands = (tile((128, 256), FP32, Mem.Acc), NOTHING, out)
    assert cycles("tile.store", operands, out, "device", slower) == pytest.approx(
        164 + 128 * 4 * 256 / 40
    )


def test_unknown_constants_are_refused():
    with pytest.raises(OptionError, match="no constants 'best'") as caught:
        timing("best", A2A3)
    assert all(name in str(caught.value) for name in CONSTANTS)
    with pytest.raises(OptionError, match="a5 has no constants 'hill'"):
        timing("hill", A5)


@pytest.mark.parametrize("constants", CONSTANTS)
def test_the_schedule_model_prices_an_operation_by_its_instructions(constants):
    from pypto_egg.extract.cost.schedule import Schedule

    acc, vec = tile((128, 256), FP32, Mem.Acc), tile((128, 256), FP32, Mem.Vec)
    op = OpInstance("tile.move", (acc,), {}, vec)
    out, back = timing(constants, A2A3).steps(op)
    price = Schedule(constants).price(op, A2A3)
    assert (price.fixpipe, price.mte2) == (out.cycles, back.cycles)
    assert price.total == out.cycles + back.cycles
