"""Arguments whose rows do not lie one after the other, in functions that read them in one run.

A slice of some columns of a tensor keeps the strides of the tensor. A function may load and store
windows of it, but a `tensor.view` of it under another shape takes it to be packed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_egg.analysis.overlaps import callers_first, calls_of
from pypto_egg.analysis.provenance import aliased_operand, provenance_of
from pypto_egg.errors import LoweringError
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, Var, dims_of
from pypto_egg.ir.fold import same_dims
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import walk


@dataclass(frozen=True)
class _Strided:
    """A call and the argument of it that has gaps between its rows."""

    call: FunctionCall | Submit
    argument: Var


def check_views_are_of_packed_memory(program: Program) -> None:
    """Nothing, if no function views a parameter in another shape that some call gives gaps.

    Args:
        program: the lowered program, where views that are left are views of memory.

    Raises:
        LoweringError: names the call, its argument and the parameter.
    """
    strided = _strided_parameters(program)
    for function in program.functions:
        gaps = {i: found for (name, i), found in strided.items() if name == function.name}
        if not gaps:
            continue
        memory = provenance_of(function, program)
        for stmt in walk(function.body):
            view = _reshaping(stmt.value) if isinstance(stmt, Assign) else None
            for root in memory.roots_of(view.args[0]) if view is not None else ():
                if root.param in gaps:
                    raise _refused(function, root.var, gaps[root.param])


def _refused(function: Function, param: Var, found: _Strided) -> LoweringError:
    return LoweringError(
        f"self.{found.call.name} is given '{found.argument.name}', a window whose rows do not lie "
        f"one after the other, and '{function.name}' reads its parameter '{param.name}' in another "
        "shape, for which they would have to",
        span=found.call.span,
        hint=f"slice whole rows, or let '{function.name}' compute on the shape that it is given",
    )


def _reshaping(value: Expr) -> Call | None:
    """A view of a tensor under another shape."""
    if not isinstance(value, Call) or value.op not in ("tensor.view", "tensor.reshape"):
        return None
    before, after = value.args[0].type, value.type
    if not isinstance(before, TensorType) or not isinstance(after, TensorType):
        return None
    if value.kwarg("layout") is not None or same_dims(before.shape, after.shape):
        return None
    return value


def _strided_parameters(program: Program) -> dict[tuple[str, int], _Strided]:
    """(function, index of a parameter) -> the first call that gives it memory with gaps."""
    found: dict[tuple[str, int], _Strided] = {}
    changed = True
    while changed:
        changed = False
        for function in callers_first(program):
            made = {s.var: s.value for s in walk(function.body) if isinstance(s, Assign)}
            gaps = {p.var for i, p in enumerate(function.params) if (function.name, i) in found}
            for call in calls_of(function):
                for i, arg in enumerate(call.args):
                    key = (call.name, i)
                    if key in found or not isinstance(arg, Var) or _packed(arg, made, gaps):
                        continue
                    found[key] = _Strided(call, arg)
                    changed = True
    return found


def _packed(handle: Expr, made: Mapping[Var, Expr], gaps: set[Var]) -> bool:
    """False for a handle that is known to have gaps between its rows."""
    while isinstance(handle, Var):
        value = made.get(handle)
        if isinstance(value, Var):
            handle = value
            continue
        source = aliased_operand(value) if isinstance(value, Call) else None
        if source is None:
            return handle not in gaps
        assert isinstance(value, Call)
        if value.op == "tensor.slice" and not _is_one_run(value):
            return False
        handle = value.args[source]
    return True


def _is_one_run(slice_: Call) -> bool:
    """Whether the elements of a slice of packed memory lie one after the other."""
    source = slice_.args[0].type
    assert isinstance(source, TensorType)
    shape = dims_of(slice_.args[1])
    first = next((axis for axis, extent in enumerate(shape) if extent != 1), len(shape))
    return same_dims(shape[first + 1 :], source.shape[first + 1 :])
