"""How many bytes of each memory space are in use, and by which tiles, at the worst place.

Buffers live from their first to their last use; the result of an op that may overwrite an operand
takes over that operand's buffer if nobody needs it afterwards. Views and in-place results share
the buffer they were made from, and so do all names of a loop carry. A tile that a loop body loads
is counted once for each stage of a software pipeline, which holds that many of them at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from pypto_egg.ir.enums import LoopKind, Mem
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, For, If, Stmt, While, Yield
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import expressions_of, free_vars, walk
from pypto_egg.ops.registry import lookup
from pypto_egg.ops.sharing import may_overwrite


@dataclass
class Buffer:
    """A tile's memory: the variable that names it first, its size, and when it is in use."""

    var: Var
    space: Mem
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Peak:
    """The most bytes of a space that are in use at once, and the buffers that use them."""

    space: Mem
    size_bytes: int
    buffers: tuple[Buffer, ...]


@dataclass
class _Walk:
    buffers: dict[Var, Buffer] = field(default_factory=dict)
    overwrites: list[tuple[Buffer, list[Buffer]]] = field(default_factory=list)
    clock: int = 0

    def block(self, block: Block, stages: int) -> None:
        for stmt in block:
            self._statement(stmt, stages)

    def _statement(self, stmt: Stmt, stages: int) -> None:
        self.clock += 1
        match stmt:
            case For() | While():
                self._loop(stmt)
            case If():
                self._use_all(stmt)
                start = self.clock
                for arm in (stmt.then, stmt.orelse):
                    self.block(arm, stages)
                    self._bind(stmt.results, arm)
                self._keep_alive(start, (*stmt.then, *stmt.orelse))
            case Assign():
                self._use_all(stmt)
                self._define(stmt.var, stmt.value, stages)
            case _:
                self._use_all(stmt)

    def _loop(self, stmt: For | While) -> None:
        self._use_all(stmt)
        for arg, init in zip(stmt.iter_args, stmt.inits, strict=True):
            self._share(arg, init)
        start = self.clock
        stages = 1
        if isinstance(stmt, For) and stmt.kind is LoopKind.pipeline:
            stage = dict(stmt.attrs).get("stage", 1)
            stages = stage if isinstance(stage, int) else getattr(stage, "value", 1)
        self.block(stmt.body, stages)
        for result, arg in zip(stmt.results, stmt.iter_args, strict=True):
            self._share(result, arg)
        self.clock += 1
        self._keep_alive(start, stmt.body)

    def _keep_alive(self, start: int, body: Block) -> None:
        """What exists before a loop and is used in it stays until the loop ends."""
        for inner in walk(body):
            for expr in expressions_of(inner):
                for var in free_vars(expr):
                    buffer = self.buffers.get(var)
                    if buffer is not None and buffer.first <= start:
                        buffer.last = max(buffer.last, self.clock)

    def _use_all(self, stmt: Stmt) -> None:
        for expr in expressions_of(stmt):
            for var in free_vars(expr):
                if var in self.buffers:
                    self.buffers[var].last = self.clock

    def _define(self, var: Var, value: Expr, stages: int) -> None:
        if not isinstance(var.type, TileType):
            return
        shared = self._shared_operand(value)
        if shared is not None and shared in self.buffers:
            self.buffers[var] = self.buffers[shared]
            return
        space = var.type.space
        if space is None:
            return
        loaded = isinstance(value, Call) and value.op == "tile.load"
        size = tile_bytes(var.type) * (stages if loaded else 1)
        made = Buffer(var, space, size, self.clock, self.clock)
        self.buffers[var] = made
        if isinstance(value, Call):
            self.overwrites.append((made, self._overwritable(value, var.type)))

    def _overwritable(self, call: Call, type_: TileType) -> list[Buffer]:
        """The operands' buffers in which the result may lie, if they are not needed any more."""
        return [
            self.buffers[arg]
            for i, arg in enumerate(call.args)
            if isinstance(arg, Var)
            and arg in self.buffers
            and isinstance(arg.type, TileType)
            and arg.type.dtype.bits == type_.dtype.bits
            and may_overwrite(call.op, i)
        ]

    def reuse(self) -> None:
        """End the life of operands whose buffer the result of their last use takes over."""
        for made, operands in self.overwrites:
            for buffer in operands:
                if buffer.last == made.first and buffer.size_bytes >= made.size_bytes:
                    buffer.last = made.first - 1
                    break

    def _shared_operand(self, value: Expr) -> Var | None:
        """The operand whose buffer the result is, if it is one."""
        if isinstance(value, Var):
            return value
        if not isinstance(value, Call):
            return None
        decl = lookup(value.op)
        if decl is None:
            return None
        index = 0 if decl.inherits_memory else decl.reuses_input
        if index is None and decl.operands and decl.operands[0].effect_for({}).writes:
            index = 0
        operand = value.args[index] if index is not None else None
        return operand if isinstance(operand, Var) else None

    def _bind(self, results: tuple[Var, ...], arm: Block) -> None:
        last = arm[-1] if arm else None
        if isinstance(last, Yield):
            for result, value in zip(results, last.values, strict=False):
                self._share(result, value)

    def _share(self, var: Var, value: Expr) -> None:
        if isinstance(value, Var) and value in self.buffers:
            self.buffers.setdefault(var, self.buffers[value])


def tile_bytes(type_: TileType) -> int:
    """Bytes that a tile occupies: its physical extents, dynamic ones left out."""
    elements = prod(extent for extent in type_.shape if isinstance(extent, int))
    return -(-elements * type_.dtype.bits // 8)


def buffers(function: Function) -> tuple[Buffer, ...]:
    """The buffers of a function's tiles, in the order in which they are first used.

    `first` and `last` are places in program order, both included: every statement is one, and so
    is the end of every loop.
    """
    walked = _Walk()
    walked.block(function.body, 1)
    walked.reuse()
    return tuple({id(buffer): buffer for buffer in walked.buffers.values()}.values())


def peaks(function: Function) -> dict[Mem, Peak]:
    """The peak of each on-chip space that the function uses."""
    every = buffers(function)
    found: dict[Mem, Peak] = {}
    for space in Mem:
        held = [buffer for buffer in every if buffer.space is space]
        if not held:
            continue
        best: tuple[int, tuple[Buffer, ...]] = (0, ())
        for moment in sorted({buffer.first for buffer in held}):
            live = tuple(b for b in held if b.first <= moment <= b.last)
            size = sum(buffer.size_bytes for buffer in live)
            if size > best[0]:
                best = (size, live)
        found[space] = Peak(space, *best)
    return found
