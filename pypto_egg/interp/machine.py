"""The sequential machine: functions, calls, loops, branches and operator calls of a program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import cast

from pypto_egg.errors import InternalError, InterpretError, WorkLimitError
from pypto_egg.interp.conform import Dims, as_declared, conform
from pypto_egg.interp.scalars import dimension, evaluate
from pypto_egg.interp.semantics import meaning_of
from pypto_egg.interp.site import Launch, OpSite
from pypto_egg.interp.values import TensorValue, TileValue, Value
from pypto_egg.ir.enums import FunctionType, LoopKind
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, TupleExpr, TupleItem, Var
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import (
    Assign,
    Block,
    Break,
    Continue,
    Eval,
    For,
    If,
    Return,
    Scope,
    Stmt,
    While,
    Yield,
)
from pypto_egg.ir.types import TensorType, TupleType
from pypto_egg.ops.snapshots import snapshots
from pypto_egg.source import Span

MAX_CALL_DEPTH = 64
MAX_WHILE_TRIPS = 1_000_000
# What an operator, a trip or a function call costs beside its elements: about as much time as
# this many elements of an elementwise operator.
STEP_COST = 20_000
_ON_CORE = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


class Jump(Enum):
    """A break or a continue on its way to the loop."""

    BREAK = "break"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Returned:
    """A return on its way to the caller, with its values."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Yielded:
    """A yield on its way to the loop or branch, with its values."""

    values: tuple[Value, ...]


Signal = Jump | Returned | Yielded | None


@contextmanager
def located(span: Span | None) -> Iterator[None]:
    """Give errors raised inside the place of the innermost statement or call."""
    try:
        yield
    except InterpretError as error:
        if error.span is None:
            error.span = span
        raise


class Machine:
    """Executes functions of one program; a `Frame` each.

    Args:
        budget: the work after which execution stops, None for no end (see `run`).
    """

    def __init__(self, program: Program, budget: int | None = None) -> None:
        self.functions = {function.name: function for function in program.functions}
        self.depth = 0
        self.tasks = 0
        self.budget = budget
        self.spent = 0
        self._snapshots: dict[str, frozenset[Var]] = {}

    def snapshots_of(self, function: Function) -> frozenset[Var]:
        """The views that are values in a device function."""
        if function.name not in self._snapshots:
            self._snapshots[function.name] = snapshots(function)
        return self._snapshots[function.name]

    def spend(self, result: Value = None) -> None:
        """Count one step and the elements of what it made.

        Raises:
            WorkLimitError: the budget is used up.
        """
        elements = prod(result.shape) if isinstance(result, TensorValue | TileValue) else 0
        self.spent += STEP_COST + elements
        if self.budget is not None and self.spent > self.budget:
            raise WorkLimitError(f"the run takes more than its budget of {self.budget} elements")

    def call(self, name: str, args: tuple[Value, ...], launch: Launch) -> tuple[Value, ...]:
        """The values that function `name` returns for evaluated arguments."""
        self.spend()
        function = self.functions.get(name)
        if function is None:
            raise InterpretError(f"the program has no function '{name}'")
        if function.external_source is not None:
            raise InterpretError(
                f"function '{name}' lives in {function.external_source}; it cannot be interpreted"
            )
        if len(args) != len(function.params):
            raise InterpretError(
                f"function '{name}' takes {len(function.params)} arguments, got {len(args)}"
            )
        if self.depth >= MAX_CALL_DEPTH:
            raise InterpretError(f"calls nest deeper than {MAX_CALL_DEPTH} at function '{name}'")
        on_core = launch.on_core or function.type in _ON_CORE
        frame = Frame(self, function, replace(launch, on_core=on_core))
        frame.bind_arguments(args)
        self.depth += 1
        try:
            return frame.run()
        finally:
            self.depth -= 1

    def launch(
        self, name: str, args: tuple[Value, ...], launch: Launch, blocks: int | None
    ) -> tuple[Value, ...]:
        """A call, or one call for each block of an SPMD launch (the last one's results)."""
        if blocks is None:
            return self.call(name, args, launch)
        results: tuple[Value, ...] = ()
        for block in range(blocks):
            results = self.call(name, args, replace(launch, block=block, blocks=blocks))
        return results


class Frame:
    """One activation of a function: its variables and where it runs."""

    def __init__(self, machine: Machine, function: Function, launch: Launch) -> None:
        self.machine = machine
        self.function = function
        self.launch = launch
        on_core = function.type in _ON_CORE
        self.snapshots = machine.snapshots_of(function) if on_core else frozenset[Var]()
        self.variables: dict[Var, Value] = {}
        self.dims = Dims(self.dim, self.variables.__contains__)

    # --- values ------------------------------------------------------------------------------

    def bind_arguments(self, args: tuple[Value, ...]) -> None:
        """Bind parameters, and the symbols in their types from the arguments' shapes.

        Raises:
            InterpretError: naming the parameter whose argument does not fit.
        """
        pairs = [
            (param, as_declared(param.var.type, arg))
            for param, arg in zip(self.function.params, args, strict=True)
        ]
        for param, arg in pairs:
            if not isinstance(arg, TensorValue):
                self.variables[param.var] = conform(arg, param.var.type, param.var.name, self.dims)
        for param, arg in pairs:
            if isinstance(arg, TensorValue):
                self.bind_symbols(param.var, arg.shape)
        for param, arg in pairs:
            if isinstance(arg, TensorValue):
                inlined = self.function.type is FunctionType.Inline
                self.bind(param.var, arg if inlined else replace(arg, in_gm=True))

    def bind_symbols(self, var: Var, shape: tuple[int, ...]) -> None:
        """Bind the symbols that stand alone as extents of a parameter's type."""
        kind = var.type
        if not isinstance(kind, TensorType):
            raise InterpretError(f"parameter '{var.name}' is not a tensor, its argument is one")
        if len(kind.shape) != len(shape):
            raise InterpretError(
                f"parameter '{var.name}' has rank {len(kind.shape)}, its argument has shape "
                f"{list(shape)}"
            )
        for dim, extent in zip(kind.shape, shape, strict=True):
            if isinstance(dim, Var) and dim not in self.variables:
                self.variables[dim] = extent

    def bind(self, var: Var, value: Value) -> None:
        """Give a variable its value, converted to the variable's type."""
        self.variables[var] = conform(value, var.type, var.name, self.dims)

    def dim(self, dim: int | Expr) -> int:
        """The value of an extent."""
        return dimension(dim, self.leaf)

    def number(self, expr: Expr) -> int:
        """The value of an index expression."""
        return dimension(expr, self.leaf)

    def value(self, expr: Expr) -> Value:
        """The value of any expression."""
        return cast("Value", evaluate(expr, self.leaf))

    def leaf(self, expr: Expr) -> Value:
        """The value of a variable, tuple or call."""
        match expr:
            case Var():
                if expr not in self.variables:
                    raise InterpretError(
                        f"'{expr.name}' has no value in function '{self.function.name}'"
                    )
                return self.variables[expr]
            case TupleExpr(items):
                return tuple(self.value(item) for item in items)
            case TupleItem(owner, index):
                return self.item(owner, index)
            case Call():
                return self.operator(expr)
            case FunctionCall():
                return self.function_call(expr)
            case Submit():
                return self.submit(expr)
            case _:
                raise InternalError(f"no semantics for the expression {type(expr).__name__}")

    def item(self, owner: Expr, index: int) -> Value:
        """An element of a tuple."""
        values = self.value(owner)
        if not isinstance(values, tuple) or not -len(values) <= index < len(values):
            raise InterpretError(f"there is no element {index} in this value")
        return values[index]

    # --- calls -------------------------------------------------------------------------------

    def operator(self, call: Call, for_effect: bool = False) -> Value:
        """What an operator's semantics make of the values of its operands."""
        with located(call.span):
            meaning = meaning_of(call.op)
            args = tuple(self.value(arg) for arg in call.args)
            site = OpSite(
                call, args, self.dim, self.variables.__contains__, self.launch, for_effect
            )
            try:
                made = meaning(site)
            except (ValueError, IndexError) as error:
                # Extents that only the run knows can contradict each other in many ways; numpy
                # notices all of them.
                shapes = [list(v.shape) for v in args if isinstance(v, TensorValue | TileValue)]
                listed = ", ".join(map(str, shapes))
                raise site.error(f"operands of shapes {listed} do not fit: {error}") from error
            self.machine.spend(made)
            return made

    def blocks(self, call: FunctionCall | Submit) -> int | None:
        """The launch width that a call or its callee states, or None."""
        callee = self.machine.functions.get(call.name)
        stated = dict(callee.attrs) if callee is not None else {}
        width = {**stated, **dict(call.attrs), **dict(call.kwargs)}.get("core_num")
        if width is None:
            return None
        if isinstance(width, Expr):
            return self.number(width)
        if isinstance(width, int):
            return width
        raise InterpretError(f"core_num of the call of '{call.name}' is {width!r}, not a number")

    def results(self, call: FunctionCall | Submit) -> tuple[Value, ...]:
        """What a called function returns."""
        args = tuple(self.value(arg) for arg in call.args)
        values = self.machine.launch(call.name, args, self.launch, self.blocks(call))
        if self.launch.on_core:
            return values
        # What a kernel hands back to orchestration code lives in global memory.
        return tuple(replace(v, in_gm=True) if isinstance(v, TensorValue) else v for v in values)

    def function_call(self, call: FunctionCall) -> Value:
        """The value of a call: one value, a tuple, or None."""
        with located(call.span):
            values = self.results(call)
            if isinstance(call.result_type, TupleType):
                return values
            return values[0] if values else None

    def submit(self, call: Submit) -> Value:
        """The results of a submitted function and the number of its task."""
        with located(call.span):
            if dict(call.kwargs).get("predicate") is not None:
                raise InterpretError(f"the submit of '{call.name}' has a predicate")
            values = self.results(call)
            self.machine.tasks += 1
            task = self.machine.tasks
            if isinstance(call.result_type, TupleType):
                return (*values, task)
            return task

    # --- statements --------------------------------------------------------------------------

    def run(self) -> tuple[Value, ...]:
        """The values that the function returns."""
        signal = self.block(self.function.body)
        return signal.values if isinstance(signal, Returned) else ()

    def block(self, block: Block) -> Signal:
        """Execute statements until one leaves the block."""
        for stmt in block:
            with located(stmt.span):
                signal = self.statement(stmt)
            if signal is not None:
                return signal
        return None

    def statement(self, stmt: Stmt) -> Signal:
        """How a statement ended: None where the next one follows."""
        match stmt:
            case Assign(var=var, value=value):
                made = self.value(value)
                if var in self.snapshots and isinstance(made, TensorValue):
                    made = made.copied()
                self.bind(var, made)
                return None
            case Eval(value=value):
                if isinstance(value, Call):
                    self.operator(value, for_effect=True)
                else:
                    self.value(value)
                return None
            case Return(values=values):
                return Returned(tuple(self.value(v) for v in values))
            case Yield(values=values):
                return Yielded(tuple(self.value(v) for v in values))
            case For():
                return self.loop(stmt)
            case While():
                return self.while_loop(stmt)
            case If():
                return self.branch(stmt)
            case Scope():
                return self.scope(stmt)
            case Break():
                return Jump.BREAK
            case Continue():
                return Jump.CONTINUE
            case _:
                raise InternalError(f"no semantics for the statement {type(stmt).__name__}")

    def branch(self, stmt: If) -> Signal:
        """Execute the arm that the condition chooses."""
        signal = self.block(stmt.then if self.value(stmt.cond) else stmt.orelse)
        if not isinstance(signal, Yielded) or not stmt.results:
            return signal
        self.bind_all(stmt.results, signal.values)
        return None

    def bind_all(self, variables: tuple[Var, ...], values: tuple[Value, ...]) -> None:
        """Give variables their values, one each."""
        if len(variables) != len(values):
            raise InterpretError(f"{len(values)} values are yielded to {len(variables)} variables")
        for var, value in zip(variables, values, strict=True):
            self.bind(var, value)

    def loop(self, stmt: For) -> Signal:
        """Execute a for loop; `spmd` loops see a block number in each iteration."""
        trips = range(*self.bounds(stmt))
        carried = tuple(self.value(init) for init in stmt.inits)
        outer = self.launch
        signal: Signal = None
        for position, index in enumerate(trips):
            if stmt.kind is LoopKind.spmd:
                self.launch = replace(outer, block=position, blocks=len(trips))
            self.bind(stmt.var, index)
            carried, signal = self.trip(stmt, carried)
            if signal is Jump.BREAK or isinstance(signal, Returned):
                break
        self.launch = outer
        if isinstance(signal, Returned):
            return signal
        self.bind_all(stmt.results, carried)
        return None

    def bounds(self, stmt: For) -> tuple[int, int, int]:
        """Start, stop and step of a loop."""
        step = self.number(stmt.step)
        if step == 0:
            raise InterpretError(f"the loop over '{stmt.var.name}' has step 0")
        return self.number(stmt.start), self.number(stmt.stop), step

    def trip(
        self, stmt: For | While, carried: tuple[Value, ...]
    ) -> tuple[tuple[Value, ...], Signal]:
        """One iteration: the carried values after it, and how it ended."""
        self.machine.spend()
        self.bind_all(stmt.iter_args, carried)
        signal = self.block(stmt.body)
        if isinstance(signal, Yielded):
            return signal.values, None
        return carried, signal

    def while_loop(self, stmt: While) -> Signal:
        """Execute a while loop, whose condition is over the carried values."""
        carried = tuple(self.value(init) for init in stmt.inits)
        for _ in range(MAX_WHILE_TRIPS):
            self.bind_all(stmt.iter_args, carried)
            if not self.value(stmt.cond):
                self.bind_all(stmt.results, carried)
                return None
            carried, signal = self.trip(stmt, carried)
            if signal is Jump.BREAK:
                self.bind_all(stmt.results, carried)
                return None
            if isinstance(signal, Returned):
                return signal
        raise InterpretError(f"a while loop ran for {MAX_WHILE_TRIPS} iterations")

    def scope(self, stmt: Scope) -> Signal:
        """Transparent, but `spmd` repeats its body for each block and `split_aiv` for each lane."""
        if stmt.kind in ("spmd", "split_aiv"):
            return self.replicated(stmt)
        if stmt.var is not None:
            self.machine.tasks += 1
            self.variables[stmt.var] = self.machine.tasks
        outer = self.launch
        self.launch = replace(outer, on_core=outer.on_core or stmt.kind == "at")
        signal = self.block(stmt.body)
        self.launch = outer
        return signal

    def replicated(self, stmt: Scope) -> Signal:
        """Execute a scope's body once for each block or lane."""
        width = stmt.args[0] if stmt.args else dict(stmt.kwargs).get("core_num", 1)
        count = self.number(width) if isinstance(width, Expr) else width
        if not isinstance(count, int):
            raise InterpretError(f"the width of the {stmt.kind} scope is {count!r}, not a number")
        outer = self.launch
        for position in range(count):
            self.machine.spend()
            if stmt.kind == "spmd":
                self.launch = replace(outer, block=position, blocks=count)
            else:
                self.launch = replace(outer, lane=position)
            if stmt.var is not None:
                self.variables[stmt.var] = position
            signal = self.block(stmt.body)
            if signal is not None:
                self.launch = outer
                return signal
        self.launch = outer
        return None
