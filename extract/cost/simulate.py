"""Event simulation of a tile program on one core: `simulate(program, target)` gives a Timeline.

The rules are those of pto-isa's pipeline simulator. Every queue is in order; an instruction also
waits for its operands and for the readers of the buffer that it overwrites. Each variable has a
buffer of its own, in a `pl.pipeline(stage=N)` loop N of them that take turns; a memory plan in the
types overrides that. Nothing else limits overlap.
"""

from __future__ import annotations

from pypto_egg.analysis.regions import UNKNOWN_TRIPS, trip_count
from pypto_egg.errors import LoweringError, OptionError
from pypto_egg.extract.cost.machine import Machine
from pypto_egg.extract.cost.scalars import evaluate, first
from pypto_egg.extract.cost.timeline import Timeline
from pypto_egg.extract.cost.timing import Timing, timing
from pypto_egg.extract.cost.trace import Trace
from pypto_egg.ir.enums import FunctionType, LoopKind
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Return, Scope, Stmt, While, Yield
from pypto_egg.ir.types import TileType
from pypto_egg.ops.registry import lookup
from pypto_egg.target import Target, load_target

_KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def simulate(
    program: Program | Function,
    target: str | Target = "a2a3",
    constants: str = "device",
    *,
    function: str | None = None,
    cores: int = 1,
) -> Timeline:
    """The timeline of one kernel on one core, its tile operations in program order.

    A loop whose trip count depends on data runs `UNKNOWN_TRIPS` times, and of a branch whose
    condition is not known both arms run; `Timeline.assumed` says so.

    Args:
        program: a function in tile form, or a program with one kernel.
        constants: "flat" or "hill" (pto-isa), "pypto", or "device" (fitted to whole GEMMs).
        function: which kernel of the program, if it has several.
        cores: how many cores run the kernel in step; they share L2, and differ by
            `get_block_idx`. The timeline is that of core 0.

    Raises:
        OptionError: no such constants for the target, not one kernel, or too many instructions.
        LoweringError: the function is not in tile form, or calls other functions.
    """
    chip = load_target(target) if isinstance(target, str) else target
    kernel = program if isinstance(program, Function) else kernel_of(program, function)
    durations = timing(constants, chip)
    return record(kernel, chip, durations, cores).timeline(durations)


def record(kernel: Function, target: Target, durations: Timing, cores: int = 1) -> Trace:
    """The trace of a kernel: its instructions and what each waits for.

    It may be timed with other durations of the same class, whose target has the same numbers but
    those in [schedule].

    Raises:
        as `simulate`.
    """
    if cores < 1:
        raise OptionError(f"cores is {cores}; it must be at least 1")
    machine = Machine(target, durations, cores, Trace(_buffers(kernel)))
    _run(kernel.body, machine, 1)
    return machine.trace


def kernel_of(program: Program, name: str | None = None) -> Function:
    """The kernel of that name, or the only one.

    Raises:
        OptionError: there is no such kernel, or no name was given and there are several.
    """
    kernels = [f for f in program.functions if f.type in _KERNELS]
    found = [f for f in kernels if name is None or f.name == name]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f.name for f in kernels) or "none"
    wanted = "one kernel" if name is None else f"a kernel '{name}'"
    raise OptionError(
        f"program '{program.name}' does not have {wanted}",
        hint=f"name one with `function`; its kernels are: {names}",
    )


def _buffers(kernel: Function) -> int:
    """How many buffers the kernel binds."""
    total = 0
    stack: list[tuple[Block, int]] = [(kernel.body, 1)]
    while stack:
        block, stages = stack.pop()
        for stmt in block:
            if isinstance(stmt, For | While | Scope):
                stack.append((stmt.body, _stages(stmt, stages)))
            elif isinstance(stmt, If):
                stack += [(stmt.then, stages), (stmt.orelse, stages)]
            elif isinstance(stmt, Assign) and isinstance(stmt.var.type, TileType):
                total += stages if _owns_buffer(stmt.value) else 0
    return total


def _owns_buffer(value: Expr) -> bool:
    decl = lookup(value.op) if isinstance(value, Call) else None
    return decl is not None and not decl.inherits_memory and decl.reuses_input is None


def _stages(loop: For | While | Scope, around: int) -> int:
    """Buffers of a variable in the loop's body: those of the innermost pipeline around it."""
    if not isinstance(loop, For) or loop.kind is not LoopKind.pipeline:
        return around
    stage = dict(loop.attrs).get("stage", 1)
    number = stage if isinstance(stage, int) else getattr(stage, "value", 1)
    return int(number)


def _run(block: Block, machine: Machine, stages: int) -> tuple[Expr, ...]:
    """Execute a block; the values that it yields."""
    for stmt in block:
        match stmt:
            case Assign():
                _refuse_calls(stmt.value, stmt)
                machine.assign(stmt.var, stmt.value, stages)
            case Eval(value=Call() as call):
                machine.call(call, None, stages)
            case Eval():
                _refuse_calls(stmt.value, stmt)
            case For():
                _loop(stmt, machine, stages)
            case While():
                _while(stmt, machine, stages)
            case If():
                _branch(stmt, machine, stages)
            case Scope():
                _run(stmt.body, machine, stages)
            case Yield():
                return stmt.values
            case Return():
                return ()
    return ()


def _refuse_calls(value: Expr, stmt: Stmt) -> None:
    if isinstance(value, FunctionCall | Submit):
        raise LoweringError(
            f"the kernel calls '{value.name}', which cannot be simulated",
            span=stmt.span,
            hint="simulate the called function by itself",
        )


def _loop(loop: For, machine: Machine, stages: int) -> None:
    start, step, stop = (
        first(evaluate(e, machine.values)) for e in (loop.start, loop.step, loop.stop)
    )
    trips = trip_count(loop)
    if trips is None and start is not None and stop is not None and step:
        trips = max(0, -(-(int(stop) - int(start)) // int(step)))
    if trips is None:
        machine.assume(f"a loop of unknown length runs {UNKNOWN_TRIPS} times")
        trips = UNKNOWN_TRIPS
    begin, by = evaluate(loop.start, machine.values), evaluate(loop.step, machine.values)
    inner = _stages(loop, stages)
    for arg, init in zip(loop.iter_args, loop.inits, strict=True):
        machine.alias(arg, init)
    for turn in range(trips):
        machine.values[loop.var] = None if begin is None or by is None else begin + turn * by
        _carry(loop, _run(loop.body, machine, inner), machine)
    for result, arg in zip(loop.results, loop.iter_args, strict=False):
        machine.alias(result, arg)


def _while(loop: While, machine: Machine, stages: int) -> None:
    machine.assume(f"a loop of unknown length runs {UNKNOWN_TRIPS} times")
    for arg, init in zip(loop.iter_args, loop.inits, strict=True):
        machine.alias(arg, init)
    for _ in range(UNKNOWN_TRIPS):
        _carry(loop, _run(loop.body, machine, stages), machine)
    for result, arg in zip(loop.results, loop.iter_args, strict=False):
        machine.alias(result, arg)


def _carry(loop: For | While, values: tuple[Expr, ...], machine: Machine) -> None:
    """Hand what the body yielded to the next turn, all at once: a loop may swap its carries."""
    held = [
        (arg, machine.state_of(value)) for arg, value in zip(loop.iter_args, values, strict=False)
    ]
    for arg, state in held:
        machine.give(arg, state)


def _branch(stmt: If, machine: Machine, stages: int) -> None:
    known = first(evaluate(stmt.cond, machine.values))
    arms = [stmt.then, stmt.orelse] if known is None else [stmt.then if known else stmt.orelse]
    if known is None:
        machine.assume("both arms of a branch run whose condition is not known")
    for arm in arms:
        values = _run(arm, machine, stages)
        for result, value in zip(stmt.results, values, strict=False):
            machine.alias(result, value)
