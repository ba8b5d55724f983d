"""Call sites of functions that gained Out parameters.

Spmd and Group wrappers forward one call: they gain the same parameters and pass them on
(C-095..C-101). Everybody else owns the buffers: a `tensor.create` for each before the call
(C-102..C-106).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pypto_egg.emit.names import Names
from pypto_egg.errors import LoweringError
from pypto_egg.ir.calls import bound_names
from pypto_egg.ir.enums import Direction, FunctionType
from pypto_egg.ir.expr import Call, ConstInt, FunctionCall, Submit, Var, tuple_of
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Block, For, If, Scope, Stmt, While, with_fields
from pypto_egg.ir.types import TensorType, Type
from pypto_egg.ir.visit import definitions, free_vars, substitute_type, type_vars, walk
from pypto_egg.ops.registry import make_call

WRAPPERS = (FunctionType.Spmd, FunctionType.Group)
DEVICE_FUNCTIONS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def update_callers(program: Program, gained: Mapping[str, tuple[Param, ...]]) -> Program:
    """The program with every call of a function in `gained` passing the new outputs.

    Args:
        gained: function name -> the Out parameters that lowering appended to it.

    Raises:
        LoweringError: a wrapper with several such calls, or such a call in device code.
    """
    outputs = dict(gained)
    callees = {function.name: function for function in program.functions}
    wrappers: dict[str, Function] = {}
    for function in _innermost_first(program):
        wrappers[function.name], new = _wrapper(function, outputs, callees)
        if new:
            outputs[function.name] = new
    functions = []
    for function in program.functions:
        _check_device_calls(function, outputs)
        if function.type in WRAPPERS:
            function = wrappers[function.name]
        elif function.name not in gained:
            function = _call_sites(function, outputs, callees)
        functions.append(function)
    return program.with_functions(tuple(functions))


def _innermost_first(program: Program) -> list[Function]:
    """The wrappers, each after the wrappers that it forwards to, wherever they are written."""
    pending = [function for function in program.functions if function.type in WRAPPERS]
    order: list[Function] = []
    while pending:
        names = {function.name for function in pending}
        ready = [f for f in pending if not any(c.name in names for c in _calls(f.body))]
        # Wrappers that forward to each other end in no kernel; any order will do.
        order.extend(ready or pending)
        pending = [function for function in pending if function not in order] if ready else []
    return order


def _check_device_calls(function: Function, outputs: Mapping[str, tuple[Param, ...]]) -> None:
    """Refuse device code that would have to create a buffer in global memory."""
    if function.type not in DEVICE_FUNCTIONS:
        return
    for call in _calls(function.body):
        if outputs.get(call.name):
            raise LoweringError(
                f"{function.type.value} function '{function.name}' calls '{call.name}', whose "
                "result needs a buffer in global memory, which device code cannot create",
                span=call.span,
                hint=f"call '{call.name}' from orchestration code, or give it an Out parameter "
                "that it writes and returns",
            )


def _wrapper(
    function: Function,
    outputs: Mapping[str, tuple[Param, ...]],
    callees: Mapping[str, Function],
) -> tuple[Function, tuple[Param, ...]]:
    calls = [call for call in _calls(function.body) if outputs.get(call.name)]
    if not calls:
        return function, ()
    if len(calls) > 1:
        names = ", ".join(call.name for call in calls)
        raise LoweringError(
            f"wrapper '{function.name}' calls several functions that gained outputs: {names}",
            span=calls[1].span,
            hint="a Spmd or Group wrapper forwards exactly one call",
        )
    names_ = Names(var.name for var in definitions(function))
    # What the wrapper cannot name stays the callee's symbol, to which the new parameter gives a
    # value.
    bound = bound_names(callees[calls[0].name].params, calls[0].args)
    known = _named(function)
    bound = {name: to for name, to in bound.items() if known.issuperset(free_vars(to))}
    new = tuple(
        Param(
            Var(names_.unique(param.var.name), substitute_type(param.var.type, bound)),
            Direction.Out,
        )
        for param in outputs[calls[0].name]
    )
    body = _with_arguments(function.body, calls[0].name, tuple(param.var for param in new))
    return replace(function, params=(*function.params, *new), body=body), new


def _calls(body: Block) -> list[FunctionCall | Submit]:
    found = []
    for stmt in walk(body):
        value = getattr(stmt, "value", None)
        if isinstance(value, FunctionCall | Submit):
            found.append(value)
    return found


def _with_arguments(body: Block, name: str, extra: tuple[Var, ...]) -> Block:
    def changed(stmt: Stmt) -> tuple[Stmt, ...]:
        value = getattr(stmt, "value", None)
        if not isinstance(value, FunctionCall | Submit) or value.name != name:
            return (stmt,)
        return (with_fields(stmt, value=replace(value, args=(*value.args, *extra))),)

    return _map(body, changed)


def _named(function: Function) -> set[Var]:
    """What the function can name: its variables, and extents that its parameters give alone."""
    shapes = [p.var.type.shape for p in function.params if isinstance(p.var.type, TensorType)]
    return {*definitions(function), *(d for s in shapes for d in s if isinstance(d, Var))}


def _call_sites(
    function: Function,
    outputs: Mapping[str, tuple[Param, ...]],
    callees: Mapping[str, Function],
) -> Function:
    if not any(outputs.get(call.name) for call in _calls(function.body)):
        return function
    known = _named(function)
    names = Names(var.name for var in known)

    def changed(stmt: Stmt) -> tuple[Stmt, ...]:
        value = getattr(stmt, "value", None)
        if not isinstance(value, FunctionCall | Submit) or not outputs.get(value.name):
            return (stmt,)
        extents = _Extents(callees[value.name], value, known, names)
        made = [_created(param, names, extents) for param in outputs[value.name]]
        call = replace(value, args=(*value.args, *(create.var for create in made)))
        return (*extents.read, *made, with_fields(stmt, value=call))

    return replace(function, body=_map(function.body, changed))


class _Extents:
    """A callee's extents in its caller's terms.

    An extent that the caller cannot name, as that of a tensor which another function returned, is
    read by `tensor.dim` from the argument that has it.

    Args:
        read: the statements that read extents.
    """

    def __init__(
        self, callee: Function, call: FunctionCall | Submit, known: set[Var], names: Names
    ) -> None:
        self.read: list[Stmt] = []
        self._callee = callee
        self._call = call
        self._known = known
        self._names = names
        self._bound = bound_names(callee.params, call.args)

    def of(self, type_: Type) -> Type:
        """The type with all extents in the caller's terms.

        Raises:
            LoweringError: no argument tells an extent.
        """
        for symbol in type_vars(type_):
            extent = self._bound.get(symbol)
            if extent is None or not self._known.issuperset(free_vars(extent)):
                self._bound[symbol] = self._measured(symbol)
        return substitute_type(type_, self._bound)

    def _measured(self, symbol: Var) -> Var:
        for param, arg in zip(self._callee.params, self._call.args, strict=False):
            shape = param.var.type.shape if isinstance(param.var.type, TensorType) else ()
            if symbol not in shape:
                continue
            dim = make_call("tensor.dim", (arg, ConstInt(shape.index(symbol))))
            var = Var(self._names.unique(symbol.name.lower()), dim.type)
            self.read.append(Assign(var, dim))
            return var
        raise LoweringError(
            f"the caller of '{self._callee.name}' cannot create its result: no argument has the "
            f"extent '{symbol.name}'",
            span=self._call.span,
            hint=f"let a parameter of '{self._callee.name}' have '{symbol.name}' as an extent",
        )


def _created(param: Param, names: Names, extents: _Extents) -> Assign:
    type_ = extents.of(param.var.type)
    assert isinstance(type_, TensorType)
    kwargs = {"dtype": type_.dtype, "layout": type_.layout}
    call: Call = make_call("tensor.create", (tuple_of(type_.shape),), kwargs)
    return Assign(Var(names.unique(param.var.name), call.type), call)


def _map(body: Block, changed: Callable[[Stmt], tuple[Stmt, ...]]) -> Block:
    """Every statement replaced by what `changed` makes of it, nested blocks included."""
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For() | While() | Scope():
                out.append(replace(stmt, body=_map(stmt.body, changed)))
            case If():
                out.append(
                    replace(stmt, then=_map(stmt.then, changed), orelse=_map(stmt.orelse, changed))
                )
            case _:
                out.extend(changed(stmt))
    return tuple(out)
