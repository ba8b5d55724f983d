"""Running a program on numpy inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pypto_egg.errors import InterpretError
from pypto_egg.interp.conform import declares_blocked
from pypto_egg.interp.layout import blocked_nz_shape, is_blocked_nz, strided_axes
from pypto_egg.interp.machine import Frame, Machine
from pypto_egg.interp.memory import Region, poisoned_buffer
from pypto_egg.interp.numbers import wrap
from pypto_egg.interp.poison import numpy_dtype
from pypto_egg.interp.semantics_transfer import scalar_of
from pypto_egg.interp.site import Launch
from pypto_egg.interp.values import TensorValue, TileValue, Value, new_tensor
from pypto_egg.ir.enums import Direction, FunctionType
from pypto_egg.ir.expr import FunctionCall, Submit
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.types import ScalarType, TensorType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk

Input = np.ndarray | np.generic | int | float | bool
Result = np.ndarray | int | float | bool | None


@dataclass(frozen=True)
class Outputs:
    """What a run leaves behind.

    Args:
        returns: the returned tensors (as arrays of their logical shape) and scalars, in order.
        params: Out and InOut parameters, and In parameters that were written, after the run.
    """

    returns: tuple[Result, ...]
    params: dict[str, np.ndarray] = field(default_factory=dict)


def run(
    program: Program,
    inputs: Mapping[str, Input],
    *,
    function: str | None = None,
    budget: int | None = None,
) -> Outputs:
    """The outputs of one function of a program, executed sequentially.

    Args:
        inputs: parameter name -> array (ml_dtypes arrays for BF16 and FP8) or scalar. Symbols
            are bound from the shapes. Out parameters may be left out; they start as poison.
        function: the function to run; by default the entry (see `entry_function`).
        budget: the elements that operators may make before the run is given up; each operator,
            trip of a loop and function call counts as `STEP_COST` more. None: no end.

    Raises:
        InterpretError: inputs that do not fit, naming the parameter; accesses outside a tensor;
            operators without semantics.
        WorkLimitError: the budget is used up.
    """
    entry = entry_function(program, function)
    machine = Machine(program, budget)
    args = _arguments(entry, machine, inputs)
    try:
        values = machine.call(entry.name, args, Launch())
    except RecursionError:
        raise InterpretError(
            f"'{entry.name}' nests loops, branches or calls too deeply to be run"
        ) from None
    params = {
        param.var.name: arg.region.read()
        for param, arg in zip(entry.params, args, strict=True)
        if isinstance(arg, TensorValue) and _is_output(param, arg)
    }
    return Outputs(tuple(_result(value) for value in values), params)


def entry_function(program: Program, name: str | None = None) -> Function:
    """The function called `name`, or the one that a run starts with.

    That is the only Orchestration function that nobody calls, else the only function that nobody
    calls.

    Raises:
        InterpretError: there is no such function, or no single candidate; lists the names.
    """
    if name is not None:
        for function in program.functions:
            if function.name == name:
                return function
        listed = ", ".join(f.name for f in program.functions)
        raise InterpretError(f"the program has no function '{name}' (it has: {listed})")
    called = _called(program)
    free = [function for function in program.functions if function.name not in called]
    orchestration = [f for f in free if f.type is FunctionType.Orchestration]
    for candidates in (orchestration, free):
        if len(candidates) == 1:
            return candidates[0]
    listed = ", ".join(f.name for f in (orchestration or free or program.functions))
    raise InterpretError(
        f"the program has no single entry function (candidates: {listed})",
        hint="name the function to run",
    )


def entry_functions(program: Program) -> tuple[Function, ...]:
    """The functions whose runs together execute the whole program.

    These are the Orchestration and InCore functions that nobody calls.

    Raises:
        InterpretError: there are none, and there is no single other candidate.
    """
    called = _called(program)
    kinds = (FunctionType.Orchestration, FunctionType.InCore)
    found = tuple(f for f in program.functions if f.name not in called and f.type in kinds)
    return found or (entry_function(program),)


def _called(program: Program) -> set[str]:
    return {
        node.name
        for function in program.functions
        for stmt in walk(function.body)
        for expr in expressions_of(stmt)
        for node in subexpressions(expr)
        if isinstance(node, FunctionCall | Submit)
    }


def _is_output(param: Param, arg: TensorValue) -> bool:
    return param.direction is not Direction.In or arg.region.buffer.written


def _result(value: Value) -> Result:
    """A returned value as numpy sees it."""
    if isinstance(value, TensorValue):
        return value.region.read()
    if isinstance(value, TileValue):
        full = new_tensor(value.shape, value.dtype)
        full.region.prefix(value.valid).write(value.read())
        return full.region.read()
    if isinstance(value, bool | int | float) or value is None:
        return value
    raise InterpretError("the entry function returns a value that is no tensor and no scalar")


def _arguments(entry: Function, machine: Machine, inputs: Mapping[str, Input]) -> tuple[Value, ...]:
    """Inputs as run-time values, in parameter order; Out tensors that are missing as poison."""
    names = [param.var.name for param in entry.params]
    extra = [name for name in inputs if name not in names]
    if extra:
        raise InterpretError(
            f"'{extra[0]}' is not a parameter of '{entry.name}' (it has: {', '.join(names)})"
        )
    frame = Frame(machine, entry, Launch())
    given: dict[str, np.ndarray] = {}
    for param in entry.params:
        name, kind = param.var.name, param.var.type
        if name not in inputs:
            if param.direction is not Direction.Out or not isinstance(kind, TensorType):
                raise InterpretError(f"no input is given for parameter '{name}'")
        elif isinstance(kind, ScalarType):
            frame.variables[param.var] = _scalar(inputs[name], kind, name)
        elif isinstance(kind, TensorType):
            given[name] = _checked_array(inputs[name], kind, name)
            frame.bind_symbols(param.var, _declared_shape(kind, given[name]))
        else:
            raise InterpretError(f"parameter '{name}' is neither a tensor nor a scalar")
    return tuple(_argument(frame, param, given) for param in entry.params)


def _argument(frame: Frame, param: Param, given: Mapping[str, np.ndarray]) -> Value:
    kind, name = param.var.type, param.var.name
    if not isinstance(kind, TensorType):
        return frame.variables[param.var]
    shape = frame.dims.all(kind.shape)
    if shape is None:
        if name not in given:
            raise InterpretError(f"the extents of the Out parameter '{name}' are not known")
        shape = given[name].shape
    if name not in given:
        return _storage(frame, kind, shape, name)
    if _declared_shape(kind, given[name]) != shape:
        raise InterpretError(
            f"parameter '{name}' has shape {list(shape)}, its input has shape "
            f"{list(given[name].shape)}"
        )
    tensor = _storage(frame, kind, given[name].shape, name)
    tensor.region.write(given[name])
    tensor.region.buffer.written = False
    return tensor


def _declared_shape(kind: TensorType, array: np.ndarray) -> tuple[int, ...]:
    """The shape that an input has in its parameter's terms.

    Callers give NZ tensors in their logical shape, also where the parameter is blocked (N-133).
    """
    logical = array.ndim >= 2 and not is_blocked_nz(array.shape, kind.dtype)
    if declares_blocked(kind) and logical:
        return blocked_nz_shape(array.shape, kind.dtype)
    return array.shape


def _storage(frame: Frame, kind: TensorType, shape: tuple[int, ...], name: str) -> TensorValue:
    """Poisoned global memory for a tensor of a given type: packed, or with its strides."""
    strides = frame.dims.all(kind.view.stride) if kind.view is not None else ()
    if not strides:
        return new_tensor(shape, kind.dtype, layout=kind.layout, in_gm=True)
    if len(strides) != len(shape) or any(stride < 0 for stride in strides):
        raise InterpretError(f"parameter '{name}' has the strides {list(strides)}")
    axes = strided_axes(shape, strides)
    count = 1 + sum(int(axis[-1]) for axis in axes if axis.size)
    region = Region(poisoned_buffer(count, kind.dtype), kind.dtype, 0, axes)
    return TensorValue(region, shape, kind.layout, in_gm=True)


def _scalar(value: Input, kind: ScalarType, name: str) -> int | float | bool:
    number = value
    if not isinstance(number, bool | int | float):
        array = np.asarray(number)
        if array.size != 1 or array.dtype.kind in "OUSMm":
            raise InterpretError(f"parameter '{name}' is a scalar, its input is not")
        number = scalar_of(array)
    if isinstance(number, float) and not kind.dtype.is_float:
        raise InterpretError(
            f"parameter '{name}' is a scalar of {kind.dtype}, its input {number} is a float"
        )
    return wrap(number, kind.dtype)


def _checked_array(value: Input, kind: TensorType, name: str) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise InterpretError(f"parameter '{name}' is a tensor, its input is no numpy array")
    stored = numpy_dtype(kind.dtype)
    if value.dtype != stored:
        raise InterpretError(
            f"parameter '{name}' has elements of {kind.dtype} (numpy {stored}), its input has "
            f"{value.dtype}"
        )
    return value
