"""How long single instructions take: the sets of constants that the simulation can run on.

"flat" and "hill" are pto-isa's cost model (include/pto/costmodel/a2a3), instruction by instruction,
each intrinsic cut to whole cycles. "pypto" is `mte2_mad`'s law with PyPTO's constants, "device" the
same law with constants fitted to whole kernels on a device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import floor

import numpy as np

from pypto_egg.errors import OptionError
from pypto_egg.extract.cost.extents import Matrix, ceil_div, matrix, round_up
from pypto_egg.extract.cost.l0 import Floats, Product, product_cycles
from pypto_egg.extract.cost.model import OpInstance
from pypto_egg.extract.cost.movement import space_of, tensor_of, tile_of
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.extract.cost.product import PRODUCTS, in_l0, operands_of, side_operands
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import Mem, PipeType, TensorLayout, TileLayout
from pypto_egg.ir.types import TileType, Type
from pypto_egg.target import Target
from pypto_egg.target.facts import FlatLaw, TransferLaw

QUEUES = ("scalar", "mte2", "mte1", "cube", "fixpipe", "mte2_aiv", "vector", "mte3")
"""The queues of one core: "mte2" is the engine of the AIC, "mte2_aiv" that of the AIV."""

CONSTANTS = ("flat", "hill", "pypto", "device")

# The order of the parts of an op that works on several pipes, for example a drain to GM and the
# load from there.
_CHAIN = ("scalar", "mte1", "cube", "fixpipe", "mte3", "mte2", "vector")
_QUEUE = {PipeType.MTE2: "mte2", PipeType.MTE1: "mte1", PipeType.MTE3: "mte3",
          PipeType.FIX: "fixpipe", PipeType.V: "vector"}  # fmt: skip
_MTE2_TO_VEC = "mte2_aiv"


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: the queue it waits in and how long it keeps that queue busy."""

    queue: str
    cycles: float


class Timing(ABC):
    """Durations of instructions on one target.

    `launch_cycles` pass before the first instruction of a kernel, `binding_cycles` for each of its
    buffers.
    """

    launch_cycles: float = 0.0
    binding_cycles: float = 0.0

    @abstractmethod
    def steps(self, op: OpInstance) -> tuple[Step, ...]:
        """The instructions of `op`, each after the one before; none for views and metadata.

        A product must have its operands in L0, unless the target's L0 chooser has no tile for it.
        """

    @abstractmethod
    def to_l0(self, goal: Mem, rows: int, cols: int, dtype: DType, transposing: bool) -> float:
        """Cycles of MTE1 to bring a window of an L1 tile into Left or Right."""

    @abstractmethod
    def multiply(self, m: int, n: int, k: int, lhs: DType) -> float:
        """Cycles of one TMATMUL of these valid extents."""

    @abstractmethod
    def side_operands(self, op: OpInstance) -> float:
        """Cycles of MTE1 for the bias row and the block scales of a product still in L1."""

    def load_share(self, held: Floats) -> Floats:
        """How much longer loads take of which L2 holds the shares `held` than if it held all."""
        return np.ones_like(held)

    @property
    def cache_bytes(self) -> float:
        """What L2 holds of the loads to L1; 0: everything."""
        return 0.0


@lru_cache(maxsize=64)
def timing(constants: str, target: Target) -> Timing:
    """The durations of a set of constants.

    Raises:
        OptionError: there is no such set, or not for this target.
    """
    if constants == "pypto":
        return LawTiming(target)
    if constants == "device":
        return DeviceTiming(target)
    if constants in target.flat_laws:
        return FlatTiming(target, target.flat_laws[constants])
    if constants in CONSTANTS:
        raise OptionError(
            f"target {target.name} has no constants '{constants}'",
            hint="pto-isa models cube and transfers on a2a3 only; use 'device' or 'pypto'",
        )
    raise OptionError(f"no constants '{constants}'", hint=f"known: {', '.join(CONSTANTS)}")


class LawTiming(Timing):
    """`mte2_mad`'s prices as durations."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._model = Mte2Mad()

    def steps(self, op: OpInstance) -> tuple[Step, ...]:
        cost = self._model.price(op, self._target)
        parts = ((pipe, getattr(cost, pipe)) for pipe in _CHAIN)
        return tuple(Step(_queue_of(pipe, op.result), cycles) for pipe, cycles in parts if cycles)

    def to_l0(self, goal: Mem, rows: int, cols: int, dtype: DType, transposing: bool) -> float:
        c0, l0 = self._target.c0_elems(dtype), self._target.l0
        box = (
            (self._target.fractal.rows, c0) if goal is Mem.Left else (c0, self._target.fractal.rows)
        )
        bytes_ = round_up(rows, box[0]) * round_up(cols, box[1]) * dtype.bits / 8
        return bytes_ / (l0.left_bytes_per_cycle if goal is Mem.Left else l0.right_bytes_per_cycle)

    def side_operands(self, op: OpInstance) -> float:
        return side_operands(op, self._target).mte1

    def multiply(self, m: int, n: int, k: int, lhs: DType) -> float:
        size = (m, n, k)
        one = Product(size, size, lhs, lhs, lhs, lhs_in_l0=True, rhs_in_l0=True)
        return product_cycles(one, self._target)[1]


class DeviceTiming(LawTiming):
    """`mte2_mad`'s law with the constants of [schedule.device] in it."""

    def __init__(self, target: Target) -> None:
        law = target.device_law
        rate = {space: target.bytes_per_cycle(Mem.Mat, space) for space in (Mem.Left, Mem.Right)}
        gib = target.hops["DDR", "Mat"].gib_per_s / target.bytes_per_cycle(Mem.DDR, Mem.Mat)
        super().__init__(
            target.with_(
                **{
                    "l0.issue_cycles": law.issue_cycles,
                    "l0.left_bytes_per_cycle": law.l0_rate_scale * rate[Mem.Left],
                    "l0.right_bytes_per_cycle": law.l0_rate_scale * rate[Mem.Right],
                    "l0.drain_bytes_per_cycle": law.drain_bytes_per_cycle,
                    "path.DDR.Mat.gib_per_s": law.load_bytes_per_cycle * gib,
                }
            )
        )
        self._law = law
        self.launch_cycles = law.launch_cycles

    def load_share(self, held: Floats) -> Floats:
        slower = self._law.load_bytes_per_cycle / self._law.miss_bytes_per_cycle
        return held + (1.0 - held) * slower

    @property
    def cache_bytes(self) -> float:
        return self._law.l2_bytes


class FlatTiming(Timing):
    """pto-isa's flat bandwidth model, and its Hill mode, which adds a latency to some paths.

    Elements count `elem_bytes` where that model does so whatever the dtype is: in moves to Left, in
    transposing moves and in drains.
    """

    def __init__(self, target: Target, law: FlatLaw) -> None:
        self._target = target
        self._law = law
        self._other = LawTiming(target)
        self.binding_cycles = law.binding_cycles

    def steps(self, op: OpInstance) -> tuple[Step, ...]:
        if op.op in PRODUCTS:
            return self._product(op)
        own = _FLAT.get(op.op)
        if own is not None:
            return own(self, op)
        return tuple(Step(step.queue, float(round(step.cycles))) for step in self._other.steps(op))

    def side_operands(self, op: OpInstance) -> float:
        return float(floor(self._other.side_operands(op)))

    def multiply(self, m: int, n: int, k: int, lhs: DType) -> float:
        passes = 2 if lhs.bits == 32 else 1
        fractals = ceil_div(m, 16) * ceil_div(k, self._target.c0_elems(lhs)) * ceil_div(n, 16)
        return self._law.issue_cycles + passes * fractals

    def to_l0(self, goal: Mem, rows: int, cols: int, dtype: DType, transposing: bool) -> float:
        setup, size = self._law.setup_cycles, self._law.elem_bytes
        c0 = self._target.c0_elems(dtype)
        if transposing and dtype.bits == 8:
            r, c = ceil_div(rows, 32), ceil_div(cols, 32)
            return min(r, c) * self._intrinsic(512 * max(r, c), Mem.Mat, goal)
        if transposing:
            moved = size * round_up(rows, 16) * round_up(cols, 16)
            return setup + self._intrinsic(moved, Mem.Mat, goal)
        if goal is Mem.Left:
            moved = size * round_up(rows, 16) * round_up(cols, c0)
            return setup + self._intrinsic(moved, Mem.Mat, goal)
        r, c = ceil_div(rows, c0), ceil_div(cols, 16)
        return min(r, c) * self._intrinsic(512 * max(r, c), Mem.Mat, goal)

    def _product(self, op: OpInstance) -> tuple[Step, ...]:
        at = operands_of(op, self._target)
        if not (in_l0(at.lhs, Mem.Left, op.op) and in_l0(at.rhs, Mem.Right, op.op)):
            return self._other.steps(op)
        a, b, c = (matrix(shaped, op.op) for shaped in (at.lhs, at.rhs, op.result))
        return (Step("cube", c.batch * self.multiply(a.rows, b.cols, a.cols, at.lhs.dtype)),)

    def load(self, op: OpInstance) -> tuple[Step, ...]:
        tensor, tile = tensor_of(op.operands[0], op.op), tile_of(op.result, op.op)
        goal, moved = space_of(tile), matrix(tile, op.op)
        bytes_ = moved.rows * moved.cols * moved.bits / 8
        if tensor.layout is TensorLayout.NZ:
            bytes_ = ceil_div(moved.cols, self._target.c0_elems(tensor.dtype)) * moved.rows * 32
        cycles = moved.batch * self._intrinsic(bytes_, Mem.DDR, goal)
        return (Step(_queue_of("mte2", tile), cycles),)

    def store(self, op: OpInstance) -> tuple[Step, ...]:
        tile, tensor = tile_of(op.operands[0], op.op), tensor_of(op.operands[2], op.op)
        return (self._leave(tile, matrix(tile, op.op), tensor.layout is not TensorLayout.NZ),)

    def move(self, op: OpInstance) -> tuple[Step, ...]:
        source, tile = tile_of(op.operands[0], op.op), tile_of(op.result, op.op)
        origin, goal, moved = space_of(source), space_of(tile), matrix(tile, op.op)
        path = self._target.path(origin, goal)
        if path is None or goal in (Mem.LeftScale, Mem.RightScale):
            return self._other.steps(op)
        if path.via_gm:
            out = self._leave(source, moved, row_by_row=True)
            back = moved.batch * self._intrinsic(_bytes(moved), Mem.DDR, goal)
            return (out, Step(_queue_of("mte2", tile), back))
        if goal in (Mem.Left, Mem.Right):
            across = transposes(source, goal)
            each = self.to_l0(goal, moved.rows, moved.cols, tile.dtype, across)
            return (Step("mte1", moved.batch * each),)
        cycles = moved.batch * self._on_chip(op, origin, tile, moved)
        return (Step(_QUEUE[path.pipes[0]], cycles),)

    def _on_chip(self, op: OpInstance, origin: Mem, tile: TileType, moved: Matrix) -> float:
        goal = space_of(tile)
        if origin is Mem.Acc:
            rows = moved.physical_rows if op.op == "tile.move" else moved.rows
            cols = round_up(moved.cols, 256 // tile.dtype.bits)
            return self._intrinsic(self._law.elem_bytes * rows * cols, origin, goal)
        if goal is Mem.Bias:
            whole = round_up(ceil_div(moved.cols * moved.rows * moved.bits, 8), 64)
            return self._intrinsic(whole, origin, goal)
        blocks = 32 * ceil_div(moved.cols * moved.bits, 256)
        if moved.cols == moved.physical_cols:
            return self._intrinsic(moved.rows * blocks, origin, goal)
        return moved.rows * self._intrinsic(blocks, origin, goal)

    def _leave(self, tile: TileType, moved: Matrix, row_by_row: bool) -> Step:
        """The write of `moved` from the tile's space to GM."""
        origin = space_of(tile)
        if origin is not Mem.Acc:
            cycles = moved.batch * self._intrinsic(_bytes(moved), origin, Mem.DDR)
            return Step(_QUEUE[PipeType.MTE3], cycles)
        drained = self._law.elem_bytes * moved.rows * moved.cols
        setup = self._law.setup_cycles if row_by_row else 0.0
        return Step("fixpipe", moved.batch * (setup + self._intrinsic(drained, origin, Mem.DDR)))

    def _intrinsic(self, bytes_: float, origin: Mem, goal: Mem) -> float:
        law = self._law.paths.get((origin.value, goal.value))
        if law is None:
            law = TransferLaw(self._target.bytes_per_cycle(origin, goal))
        return float(floor(law.latency_cycles + bytes_ / law.bytes_per_cycle))


_FLAT: Mapping[str, Callable[[FlatTiming, OpInstance], tuple[Step, ...]]] = {
    "tile.load": FlatTiming.load,
    "tile.store": FlatTiming.store,
    "tile.move": FlatTiming.move,
    "tile.extract": FlatTiming.move,
}


def transposes(source: TileType, goal: Mem) -> bool:
    """Whether a move from L1 to Left or Right swaps rows and columns in the boxes.

    Left takes NZ tiles as they are, Right takes ZN ones, which B stored [N, K] becomes.
    """
    outer = source.layout.blayout
    return outer is (TileLayout.row_major if goal is Mem.Left else TileLayout.col_major)


def _bytes(moved: Matrix) -> float:
    return moved.rows * moved.cols * moved.bits / 8


def _queue_of(pipe: str, result: Type) -> str:
    to_vec = isinstance(result, TileType) and space_of(result) is Mem.Vec
    return _MTE2_TO_VEC if pipe == "mte2" and to_vec else pipe
