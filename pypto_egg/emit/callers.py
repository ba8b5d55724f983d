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
from pypto_egg.ir.enums import Direction, FunctionType
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, Var, tuple_of
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Scope, Stmt, While
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import definitions, walk
from pypto_egg.ops.registry import make_call

WRAPPERS = (FunctionType.Spmd, FunctionType.Group)


def update_callers(program: Program, gained: Mapping[str, tuple[Param, ...]]) -> Program:
    """The program with every call of a function in `gained` passing the new outputs.

    Args:
        gained: function name -> the Out parameters that lowering appended to it.

    Raises:
        LoweringError: a call whose result nobody takes, or a wrapper with several such calls.
    """
    outputs = dict(gained)
    functions = []
    for function in program.functions:
        if function.type in WRAPPERS:
            function, new = _wrapper(function, outputs)
            if new:
                outputs[function.name] = new
        functions.append(function)
    return program.with_functions(
        tuple(
            function
            if function.type in WRAPPERS or function.name in gained
            else _call_sites(function, outputs)
            for function in functions
        )
    )


def _wrapper(
    function: Function, outputs: Mapping[str, tuple[Param, ...]]
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
    new = tuple(
        Param(Var(names_.unique(param.var.name), param.var.type), Direction.Out)
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
        return (replace(stmt, value=replace(value, args=(*value.args, *extra))),)  # type: ignore[call-arg]

    return _map(body, changed)


def _call_sites(function: Function, outputs: Mapping[str, tuple[Param, ...]]) -> Function:
    if not any(outputs.get(call.name) for call in _calls(function.body)):
        return function
    names = Names(var.name for var in definitions(function))

    def changed(stmt: Stmt) -> tuple[Stmt, ...]:
        value = getattr(stmt, "value", None)
        if not isinstance(value, FunctionCall | Submit) or not outputs.get(value.name):
            return (stmt,)
        if isinstance(stmt, Eval):
            raise LoweringError(
                f"the result of '{value.name}' is not assigned in '{function.name}', but the "
                "function returns a computed tensor",
                span=stmt.span,
                hint=f"assign it: result = self.{value.name}(...)",
            )
        created: list[Stmt] = []
        extra: list[Expr] = []
        for param in outputs[value.name]:
            made = _created(param, names, function)
            created.append(made)
            extra.append(made.var)
        call = replace(value, args=(*value.args, *extra))
        return (*created, replace(stmt, value=call))  # type: ignore[call-arg]

    return replace(function, body=_map(function.body, changed))


def _created(param: Param, names: Names, function: Function) -> Assign:
    type_ = param.var.type
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
