"""In-place tile ops that overwrite a value which is still needed.

An accumulating product leaves its sum in its accumulator's buffer, an assemble writes into its
target (PyPTO operator reference, argument effects). The names of a buffer are versions of it: to
use a name after its version was overwritten is to read another value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Stmt, While, Yield
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import expressions_of, free_vars
from pypto_egg.ops.registry import OpDecl, lookup


@dataclass(frozen=True)
class Hazard:
    """A name that is used although its value is gone.

    Args:
        lost: the variable whose value is still needed.
        by: the result of the op that overwrote it; None for an op without a result.
    """

    lost: Var
    by: Var | None


_Place = tuple[int, int]  # a buffer and the version of its content


@dataclass
class _Walk:
    """Which version of which buffers each variable stands for, as statements run."""

    places: dict[Var, frozenset[_Place]] = field(default_factory=dict)
    current: dict[int, int] = field(default_factory=dict)
    writer: dict[_Place, Var | None] = field(default_factory=dict)
    made: int = 0
    overwrites: int = 0
    hazards: dict[tuple[Var, Var | None], Hazard] = field(default_factory=dict)

    def block(self, block: Block) -> tuple[Expr, ...]:
        """Run a block; the values that it yields."""
        for stmt in block:
            if isinstance(stmt, Yield):
                self._use(stmt)
                return stmt.values
            self._statement(stmt)
        return ()

    def _statement(self, stmt: Stmt) -> None:
        self._use(stmt)
        match stmt:
            case Assign():
                self._define(stmt.var, stmt.value)
            case Eval():
                self._overwrite(stmt.value, None)
            case For() | While():
                self._loop(stmt)
            case If():
                self._branch(stmt)

    def _branch(self, stmt: If) -> None:
        before = dict(self.current)
        then = [self._of(value) for value in self.block(stmt.then)]
        ends = [self.current]
        self.current = dict(before)
        orelse = [self._of(value) for value in self.block(stmt.orelse)]
        ends.append(self.current)
        # A buffer that either arm overwrote is overwritten. Behind the branch its content has a
        # version of its own, which is what either arm left in it.
        self.current = {**ends[0], **ends[1]}
        for buffer, version in before.items():
            left = max(end[buffer] for end in ends)
            self.current[buffer] = left + 1 if left > version else version
        for i, result in enumerate(stmt.results):
            self.places[result] = frozenset(
                (buffer, self.current[buffer] if version == end[buffer] else version)
                for values, end in zip((then, orelse), ends, strict=True)
                for buffer, version in (values[i] if i < len(values) else ())
            )

    def _loop(self, stmt: For | While) -> None:
        values = stmt.inits
        # The second round meets what the first one overwrote, if it did: nests of loops that work
        # on nothing in place are walked once.
        for _ in range(2):
            before = self.overwrites
            for arg, value in zip(stmt.iter_args, values, strict=False):
                self.places[arg] = self._of(value)
            values = self.block(stmt.body) or values
            if self.overwrites == before:
                break
        for result, value in zip(stmt.results, values, strict=False):
            self.places[result] = self._of(value)

    def _use(self, stmt: Stmt) -> None:
        for expr in expressions_of(stmt):
            for var in free_vars(expr):
                for buffer, version in sorted(self.places.get(var, ())):
                    if version != self.current[buffer]:
                        by = self.writer[(buffer, version)]
                        self.hazards.setdefault((var, by), Hazard(var, by))

    def _define(self, var: Var, value: Expr) -> None:
        if not isinstance(var.type, TileType):
            return
        operand = self._overwrite(value, var)
        if operand is None and isinstance(value, Call):
            decl = lookup(value.op)
            if decl is not None and decl.inherits_memory and isinstance(value.args[0], Var):
                operand = value.args[0]
        if operand is None and isinstance(value, Var):
            operand = value
        self.places[var] = self._of(operand) if operand is not None else self._fresh()

    def _overwrite(self, value: Expr, result: Var | None) -> Var | None:
        """The operand that a call overwrites; its buffers have a new version after it."""
        if not isinstance(value, Call):
            return None
        operand = _overwritten(value, lookup(value.op))
        if operand is None or operand not in self.places:
            return None
        moved = set()
        for buffer, version in self.places[operand]:
            # A version that is lost already keeps the op that overwrote it first.
            self.writer.setdefault((buffer, version), result)
            self.writer.setdefault((buffer, self.current[buffer]), result)
            self.current[buffer] += 1
            self.overwrites += 1
            moved.add((buffer, self.current[buffer]))
        # An op without a result updates the name itself, as tile.write does.
        self.places[operand if result is None else result] = frozenset(moved)
        return result

    def _of(self, value: Expr | None) -> frozenset[_Place]:
        return self.places.get(value, frozenset()) if isinstance(value, Var) else frozenset()

    def _fresh(self) -> frozenset[_Place]:
        buffer = self.made
        self.made += 1
        self.current[buffer] = 0
        return frozenset({(buffer, 0)})


def _overwritten(call: Call, decl: OpDecl | None) -> Var | None:
    if decl is None:
        return None
    for arg, operand in zip(call.args, decl.operands, strict=False):
        writes = operand.effect_for(dict(call.kwargs)).writes
        if writes and isinstance(arg, Var) and isinstance(arg.type, TileType):
            return arg
    return None


def hazards(function: Function) -> list[Hazard]:
    """The values of a tile function that are overwritten while they are still needed."""
    walked = _Walk()
    walked.block(function.body)
    return list(walked.hazards.values())
