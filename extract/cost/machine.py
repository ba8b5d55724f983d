"""One core that executes tile operations: buffers, global memory, L2, and the queues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

import numpy as np

from pypto_egg.errors import InternalError, LoweringError
from pypto_egg.extract.cost.extents import extents, matrix, round_up
from pypto_egg.extract.cost.l2 import ReuseDistances, Window
from pypto_egg.extract.cost.model import OpInstance
from pypto_egg.extract.cost.movement import space_of, tile_of
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.extract.cost.nest import Nest
from pypto_egg.extract.cost.product import PRODUCTS, in_l0, operands_of
from pypto_egg.extract.cost.pypto_l0 import Gates, choose
from pypto_egg.extract.cost.scalars import Value, evaluate, first
from pypto_egg.extract.cost.timing import Timing, transposes
from pypto_egg.extract.cost.trace import Buffer, Kind, Multiply, OpStep, SideOperands, ToL0, Trace
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call, Expr, TupleExpr, Var
from pypto_egg.ir.types import ScalarType, TensorType, TileType
from pypto_egg.ir.visit import free_vars
from pypto_egg.ops.registry import OpDecl, lookup
from pypto_egg.target import Target

_PRICED = frozenset(Mte2Mad.known_ops())
_LEAVES_FIRST = frozenset({"tile.move", "tile.aiv_shard", "tile.aic_gather"})
L0_BUFFERS = 2


@dataclass
class Ring:
    """The buffers of a variable that a pipeline defines again and again."""

    buffers: list[Buffer]
    fills: int = 0

    def next(self) -> Buffer:
        """The buffer of the next fill: the one that was filled longest ago."""
        self.fills += 1
        return self.buffers[(self.fills - 1) % len(self.buffers)]


@dataclass(frozen=True, slots=True)
class State:
    """What a variable stands for: a scalar and when it is known, a tile's buffer, a tensor."""

    value: Value
    ready: int
    buffer: Buffer | None
    tensor: Var | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What one call of the kernel's text always does.

    Args:
        kinds: its instructions, one after the other; a product is cut into others.
        side: of a product, the bias row and the block scales still in L1.
        uses: (operand, whether it is read, whether it is written) for tiles and tensors.
        scalars: variables whose values it needs.
    """

    decl: OpDecl
    op: OpInstance
    kinds: tuple[Kind, ...]
    side: Kind | None
    uses: tuple[tuple[Var, bool, bool], ...]
    scalars: tuple[Var, ...]


@dataclass
class Machine:
    """State of the core while the kernel is walked.

    Args:
        cores: how many cores run the kernel in step; they share L2.
        timing: names the instructions that an operation consists of.
    """

    target: Target
    timing: Timing
    cores: int
    trace: Trace = field(default_factory=Trace)
    values: dict[Var, Value] = field(default_factory=dict)
    ready: dict[Var, int] = field(default_factory=dict)
    buffers: dict[Var, Buffer] = field(default_factory=dict)
    tensors: dict[Var, Var] = field(default_factory=dict)
    _prepared: dict[int, tuple[Call, Prepared]] = field(default_factory=dict)
    _rings: dict[object, Ring] = field(default_factory=dict)
    _stored: dict[Var, dict[Window, Buffer]] = field(default_factory=dict)
    _touched: ReuseDistances = field(default_factory=ReuseDistances)

    def assign(self, var: Var, value: Expr, stages: int) -> None:
        """Execute `var = value`; `stages` buffers take turns if it makes a tile."""
        if isinstance(value, Call):
            self.call(value, var, stages)
        elif isinstance(value, Var):
            self.alias(var, value)
        elif isinstance(var.type, ScalarType):
            self.values[var] = evaluate(value, self.values)
            self.ready[var] = self._known_after(free_vars(value))

    def alias(self, var: Var, value: Expr) -> None:
        """Let `var` stand for what `value` is now."""
        self.give(var, self.state_of(value))

    def state_of(self, value: Expr) -> State:
        """What a value is now."""
        if not isinstance(value, Var):
            return State(
                evaluate(value, self.values), self._known_after(free_vars(value)), None, None
            )
        return State(
            self.values.get(value),
            self.ready.get(value, -1),
            self.buffers.get(value),
            self.root(value),
        )

    def give(self, var: Var, state: State) -> None:
        """Let `var` be what a value was when its state was taken."""
        self.values[var], self.ready[var] = state.value, state.ready
        if state.buffer is not None:
            self.buffers[var] = state.buffer
        if state.tensor is not None:
            self.tensors[var] = state.tensor

    def assume(self, what: str) -> None:
        """Note what had to be taken for granted."""
        self.trace.assumed[what] = None

    def root(self, tensor: Var) -> Var:
        """The tensor whose memory a handle names."""
        return self.tensors.get(tensor, tensor)

    def call(self, call: Call, var: Var | None, stages: int) -> None:
        """Execute an operation; `var` takes its result.

        Raises:
            LoweringError: it is not an operation of tile programs.
        """
        known = self._prepared.get(id(call))
        if known is None:
            known = self._prepared[id(call)] = (call, self._prepare(call))
        at = known[1]
        if var is not None and call.op.endswith("get_block_idx"):
            self.values[var] = np.arange(self.cores)
        if var is not None and call.op.endswith("get_block_num"):
            self.values[var] = self.cores
        result = self._result(at.decl, call, var, stages)
        if call.op in PRODUCTS:
            self._product(at, call, result)
        elif at.kinds:
            self._chain(at, call, var, result)

    def _prepare(self, call: Call) -> Prepared:
        decl = lookup(call.op)
        if decl is None or call.op not in _PRICED:
            raise LoweringError(
                f"{call.op} cannot be simulated: it is not an operation of a tile program",
                span=call.span,
                hint="lower the function first",
            )
        op = OpInstance(call.op, tuple(arg.type for arg in call.args), dict(call.kwargs), call.type)
        try:
            steps = self.timing.steps(op)
        except InternalError as error:  # the program puts a tile where no instruction takes it
            raise LoweringError(
                f"{call.op} cannot be simulated: {error}",
                span=call.span,
                hint="put every operand into a memory space that the operation can read",
            ) from error
        kinds = tuple(Kind(step.queue, op.op, OpStep(op, i)) for i, step in enumerate(steps))
        side = None
        if call.op in PRODUCTS and self.timing.side_operands(op):
            side = Kind("mte1", op.op, SideOperands(op))
        uses = []
        for operand, arg in zip(decl.operands, call.args, strict=False):
            effect = operand.effect_for(op.kwargs)
            if isinstance(arg, Var) and isinstance(arg.type, TensorType | TileType):
                uses.append((arg, effect.reads, effect.writes))
        scalars = [var for arg in call.args for var in free_vars(arg)]
        return Prepared(decl, op, kinds, side, tuple(uses), tuple(scalars))

    def _result(self, decl: OpDecl, call: Call, var: Var | None, stages: int) -> Buffer | None:
        """The buffer that takes the result, known under `var` then; None if it is no tile."""
        shared = 0 if decl.inherits_memory else decl.reuses_input
        origin = call.args[shared] if shared is not None else None
        if isinstance(call.type, TensorType):
            if var is not None and isinstance(origin, Var):
                self.tensors[var] = self.root(origin)
            return None
        if not isinstance(call.type, TileType):
            return None
        if isinstance(origin, Var) and origin in self.buffers:
            made = self.buffers[origin]
        else:
            made = self._ring(call.type, var, stages).next()
        if var is not None:
            self.buffers[var] = made
        return made

    def _ring(self, tile: TileType, var: Var | None, stages: int) -> Ring:
        """The ring of a variable, or the one buffer that the memory plan gives its tile.

        No more buffers take turns than the space has room for.
        """
        key: object = var
        memref = tile.memref
        if memref is not None:
            key, stages = (tile.space, memref.args), memref.slots or 1
        if key not in self._rings:
            room = self._room(tile)
            self._rings[key] = Ring([Buffer() for _ in range(max(1, min(stages, room)))])
        return self._rings[key]

    def _room(self, tile: TileType) -> int:
        """How many such tiles the space holds."""
        bits = prod(extents(tile.shape)) * tile.dtype.bits
        return self.target.capacity_bytes(tile.space or Mem.Vec) * 8 // max(bits, 1)

    def _chain(self, at: Prepared, call: Call, var: Var | None, result: Buffer | None) -> None:
        """Issue the instructions of one operation, one after the other."""
        distance = self._distance(call)
        reads, writes = self._operands(at, call)
        if result is not None and result not in writes:
            writes.append(result)
        end = self._known_after(at.scalars)
        for number, kind in enumerate(at.kinds):
            last = number == len(at.kinds) - 1
            left_behind = number > 0 and call.op in _LEAVES_FIRST
            end = self.trace.issue(
                kind, () if left_behind else reads, writes if last else (), end, distance
            )
        if var is not None and isinstance(var.type, ScalarType):
            self.ready[var] = end

    def _operands(self, at: Prepared, call: Call) -> tuple[list[Buffer], list[Buffer]]:
        """(buffers that are read, buffers that are written) among the operands."""
        reads: list[Buffer] = []
        writes: list[Buffer] = []
        for var, is_read, is_written in at.uses:
            if isinstance(var.type, TensorType):
                reads += self._stores_before(var, call) if is_read else []
                writes += [self._store(var, call)] if is_written else []
            elif var in self.buffers:
                reads += [self.buffers[var]] if is_read else []
                writes += [self.buffers[var]] if is_written else []
        return reads, writes

    def _store(self, tensor: Var, call: Call) -> Buffer:
        """The buffer that stands for the window of `tensor` that the call writes."""
        window = self._window(call)
        if window is not None:
            written = matrix(call.args[0].type, call.op).valid_bytes
            self._touched.touch(self._windows(tensor, window), written)
        return self._stored.setdefault(self.root(tensor), {}).setdefault(_first(window), Buffer())

    def _stores_before(self, tensor: Var, call: Call) -> list[Buffer]:
        """The windows of `tensor` that were written and may overlap with what the call reads."""
        written = self._stored.get(self.root(tensor))
        if not written:
            return []
        window = _first(self._window(call))
        return [buffer for key, buffer in written.items() if _may_overlap(key, window)]

    def _window(self, call: Call) -> tuple[tuple[Value, int], ...] | None:
        """(offset, extent) on each axis of the window that a load or store addresses, if known."""
        if call.op not in ("tile.load", "tile.store") or not isinstance(call.args[1], TupleExpr):
            return None
        shaped = call.type if call.op == "tile.load" else call.args[0].type
        offsets = [evaluate(item, self.values) for item in call.args[1].items]
        if not isinstance(shaped, TileType) or any(offset is None for offset in offsets):
            return None
        shape = extents(shaped.valid_shape)
        shape = (1,) * (len(offsets) - len(shape)) + shape
        return tuple(zip(offsets, shape, strict=False))

    def _windows(self, tensor: Var, window: tuple[tuple[Value, int], ...]) -> list[Window]:
        """The window on every core, each once."""
        columns = [np.broadcast_to(np.asarray(offset), self.cores) for offset, _ in window]
        shape = tuple(extent for _, extent in window)
        rows = dict.fromkeys(zip(*(column.tolist() for column in columns), strict=True))
        return [(self.root(tensor), row, shape) for row in rows]

    def _distance(self, call: Call) -> float:
        """How far back a load to L1 was touched last, in bytes; 0 for everything else.

        Loads to UB are touches, but nothing is known of how L2 speeds them up.
        """
        if call.op != "tile.load" or not isinstance(call.args[0], Var):
            return 0.0
        window = self._window(call)
        if window is None:
            self.assume("L2 holds what is loaded from places that are not known")
            return 0.0
        windows = self._windows(call.args[0], window)
        tile = tile_of(call.type, call.op)
        distance = self._touched.distance(windows[0]) if space_of(tile) is Mem.Mat else 0.0
        self._touched.touch(windows, matrix(tile, call.op).valid_bytes)
        return distance

    def _product(self, prepared: Prepared, call: Call, result: Buffer | None) -> None:
        """A product: one instruction if its operands are in L0, else a nest of L0 tiles."""
        op = prepared.op
        at = operands_of(op, self.target)
        reads, writes = self._operands(prepared, call)
        writes += [result] if result is not None and result not in writes else []
        end = self._known_after(prepared.scalars)
        a, b, c = (matrix(shaped, op.op) for shaped in (at.lhs, at.rhs, op.result))
        lhs_there = in_l0(at.lhs, Mem.Left, op.op)
        rhs_there = in_l0(at.rhs, Mem.Right, op.op)
        if prepared.side is not None:
            end = self.trace.issue(prepared.side, reads, (), end)
        if lhs_there and rhs_there:
            work = Multiply(a.rows, b.cols, a.cols, at.lhs.dtype, c.batch)
            self.trace.issue(Kind("cube", op.op, work), reads, writes, end)
            return
        m, n, k = (round_up(extent, self.target.l0.step) for extent in (a.rows, b.cols, a.cols))
        tile = choose(
            m, n, k, at.lhs.dtype, at.rhs.dtype, at.acc, self.target, gates=Gates(k_boundary=True)
        )
        if tile is None:
            for kind in prepared.kinds:
                end = self.trace.issue(kind, reads, writes, end)
            return
        nest = Nest(op.op, at.lhs, at.rhs, (a.rows, b.cols, a.cols), tile, lhs_there, rhs_there)
        for _ in range(c.batch):
            self._tiles(nest, reads, writes, end)

    def _tiles(self, nest: Nest, reads: list[Buffer], writes: list[Buffer], after: int) -> None:
        """The instructions of a product whose operands are in L1."""
        there: dict[Mem, tuple[object, Buffer]] = {}
        for row, col, deep in nest.windows():
            operands = []
            for space, tile, window in nest.moved(row, col, deep):
                if space not in there or there[space][0] != window:
                    buffer = self._l0_ring(space).next()
                    (_, rows), (_, cols) = window
                    work = ToL0(space, rows, cols, tile.dtype, transposes(tile, space))
                    self.trace.issue(Kind("mte1", nest.op, work), reads, [buffer], after)
                    there[space] = (window, buffer)
                operands.append(there[space][1])
            multiply = Multiply(row[1], col[1], deep[1], nest.lhs.dtype)
            self.trace.issue(Kind("cube", nest.op, multiply), [*operands, *reads], writes, after)

    def _l0_ring(self, space: Mem) -> Ring:
        if space not in self._rings:
            self._rings[space] = Ring([Buffer() for _ in range(L0_BUFFERS)])
        return self._rings[space]

    def _known_after(self, scalars: Iterable[Var]) -> int:
        """The instruction after which all of these scalars are known; -1: they are known.

        Scalars come from one queue, so the last of the instructions that make them is enough.
        """
        return max((self.ready.get(var, -1) for var in scalars), default=-1)


def _first(window: tuple[tuple[Value, int], ...] | None) -> Window:
    """The window on the first core: (offset, extent) for each axis."""
    if window is None:
        return None
    return tuple((first(offset), extent) for offset, extent in window)


def _may_overlap(one: Window, other: Window) -> bool:
    if not isinstance(one, tuple) or not isinstance(other, tuple) or len(one) != len(other):
        return True
    return all(a < b + q and b < a + p for (a, p), (b, q) in zip(one, other, strict=True))
