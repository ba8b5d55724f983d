"""TypeCheck: recorded types agree with the type rules and with each other."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg.errors import TypeCheckError
from pypto_egg.ir.enums import FunctionType, Mem
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, Var
from pypto_egg.ir.fold import provably_le
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, For, If, Return, Stmt, While
from pypto_egg.ir.types import FRACTAL_ROWS, TensorType, TileType, TupleType, Type, UnknownType
from pypto_egg.ir.visit import (
    defined_by,
    defined_inside,
    expressions_of,
    subexpressions,
    type_vars,
    walk,
    yields_of,
)
from pypto_egg.ops.registry import lookup, make_call
from pypto_egg.ops.windows import fills_matrix
from pypto_egg.verify.finding import Finding, Property
from pypto_egg.verify.type_match import full_mismatch, kind_mismatch

DEVICE_FUNCTIONS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def check_types(function: Function, program: Program, *, tiles: bool) -> Iterator[Finding]:
    """Findings of TypeCheck in one function.

    - The type recorded in an operator call is the one that its type rule infers.
    - A variable's annotation has the kind, dtype, rank and static extents of its value; memory
      space, view and buffer are the annotation's to state.
    - Arguments of function calls fit the parameters, and results the declared returns.
    - Values carried by a loop or chosen by a branch have one type. After lowering (`tiles`) tiles
      agree in memory space, layout and valid extents too, since no operator could convert between
      them (C-150, C-271, C-273).
    - Returned values fit the declared returns, in device functions already before lowering.
    """
    for stmt in walk(function.body):
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                if isinstance(part, Call):
                    yield from _check_call(function, stmt, part)
                elif isinstance(part, FunctionCall | Submit):
                    yield from _check_function_call(function, stmt, part, program)
        match stmt:
            case Assign():
                problem = kind_mismatch(stmt.var.type, stmt.value.type)
                if problem is not None and not isinstance(stmt.value.type, UnknownType):
                    message = f"the annotation of '{stmt.var.name}' has {problem} of its value"
                    yield _finding(function, stmt, message)
            case For() | While() | If():
                yield from _check_joins(function, stmt, tiles)
            case Return() if tiles or function.type in DEVICE_FUNCTIONS:
                yield from _check_return(function, stmt)


def _finding(function: Function, stmt: Stmt, message: str, hint: str | None = None) -> Finding:
    return Finding(Property.TYPE_CHECK, f"in function '{function.name}' {message}", stmt.span, hint)


def _check_call(function: Function, stmt: Stmt, call: Call) -> Iterator[Finding]:
    if lookup(call.op) is None:
        return
    try:
        inferred = make_call(call.op, call.args, dict(call.kwargs)).type
    except TypeCheckError as error:
        yield _finding(function, stmt, error.message, error.hint)
        return
    problem = None if _flat_load(call, inferred) else full_mismatch(call.result_type, inferred)
    if problem is not None:
        yield _finding(
            function, stmt, f"the type recorded for pl.{call.op} has {problem} of its type rule"
        )


def _flat_load(call: Call, inferred: Type) -> bool:
    """Whether a load records the 2-D tile that its window of more dimensions fills."""
    recorded = call.result_type
    if call.op != "tile.load" or not isinstance(recorded, TileType):
        return False
    assert isinstance(inferred, TileType)
    same = (recorded.dtype, recorded.space) == (inferred.dtype, inferred.space)
    return same and inferred.rank != recorded.rank and fills_matrix(call, recorded.shape)


def _check_function_call(
    function: Function, stmt: Stmt, call: FunctionCall | Submit, program: Program
) -> Iterator[Finding]:
    callee = next((f for f in program.functions if f.name == call.name), None)
    if callee is None:
        if program.name:  # a function on its own may call what is not there
            yield _finding(function, stmt, f"self.{call.name} is called, but never defined")
        return
    if len(call.args) != len(callee.params):
        yield _finding(
            function,
            stmt,
            f"self.{call.name} takes {len(callee.params)} arguments, got {len(call.args)}",
        )
        return
    for arg, param in zip(call.args, callee.params, strict=True):
        problem = kind_mismatch(arg.type, param.var.type)
        if problem is not None:
            message = f"an argument of self.{call.name} has {problem} of parameter"
            yield _finding(function, stmt, f"{message} '{param.var.name}'")
    results = _results(call)
    if len(results) != len(callee.returns):
        yield _finding(
            function,
            stmt,
            f"self.{call.name} returns {len(callee.returns)} values, used as {len(results)}",
        )
        return
    for got, declared in zip(results, callee.returns, strict=True):
        problem = kind_mismatch(got, declared)
        if problem is not None:
            yield _finding(
                function, stmt, f"a result of self.{call.name} has {problem} that it returns"
            )


def _results(call: FunctionCall | Submit) -> tuple[Type, ...]:
    """The types of a call's results; a submit's own task id is not among them."""
    type_ = call.result_type
    if isinstance(call, Submit):
        return type_.items[:-1] if isinstance(type_, TupleType) else ()
    if isinstance(type_, TupleType):
        return type_.items
    return () if isinstance(type_, UnknownType) else (type_,)


def _check_joins(function: Function, stmt: For | While | If, tiles: bool) -> Iterator[Finding]:
    """Each value that meets others at a loop's start or a branch's end, against the one name."""
    if isinstance(stmt, If):
        for block in (stmt.then, stmt.orelse):
            yield from _check_values(function, stmt, stmt.results, yields_of(block), tiles)
        return
    yield from _check_values(function, stmt, stmt.iter_args, stmt.inits, tiles)
    yield from _check_values(function, stmt, stmt.iter_args, stmt.results, tiles)
    inside = _defined_within(stmt)
    yield from _check_values(function, stmt, stmt.iter_args, yields_of(stmt.body), tiles, inside)


def _check_values(
    function: Function,
    stmt: Stmt,
    names: tuple[Var, ...],
    values: tuple[Expr, ...],
    tiles: bool,
    inside: frozenset[Var] = frozenset(),
) -> Iterator[Finding]:
    for name, value in zip(names, values, strict=False):
        both_tiles = isinstance(name.type, TileType) and isinstance(value.type, TileType)
        if not (tiles and both_tiles):
            problem = kind_mismatch(value.type, name.type)
        elif _narrowing_stays(value.type, inside):
            problem = full_mismatch(value.type, name.type, valid=False)
        else:
            problem = full_mismatch(value.type, name.type)
        if problem is not None:
            shown = f"'{value.name}'" if isinstance(value, Var) else "a value"
            yield _finding(
                function,
                stmt,
                f"{shown} joins '{name.name}' with {problem} that '{name.name}' has",
                "give all values that meet in a loop or branch one type",
            )


def _narrowing_stays(yielded: Type, inside: frozenset[Var]) -> bool:
    """Whether a carried accumulator may keep wider valid extents than its body yields.

    It may if it is one block of rows, which every reader packs alike, or if the narrower extent
    is computed in the body, where the value before the loop cannot name it (C-275, C-276).
    """
    if not isinstance(yielded, TileType) or yielded.space is not Mem.Acc or yielded.rank < 2:
        return False
    if provably_le(yielded.shape[-2], FRACTAL_ROWS):
        return True
    return any(var in inside for var in type_vars(yielded))


def _defined_within(loop: For | While) -> frozenset[Var]:
    found = set(defined_inside(loop))
    for stmt in walk(loop.body):
        found.update(defined_inside(stmt), defined_by(stmt))
    return frozenset(found)


def _check_return(function: Function, stmt: Return) -> Iterator[Finding]:
    if len(stmt.values) != len(function.returns):
        yield _finding(
            function,
            stmt,
            f"{len(stmt.values)} values are returned, {len(function.returns)} are declared",
        )
        return
    for value, declared in zip(stmt.values, function.returns, strict=True):
        problem = kind_mismatch(value.type, declared)
        if problem is not None:
            yield _finding(
                function,
                stmt,
                f"a returned value has {problem} that is declared",
                _cast_hint(function, value, declared),
            )


def _cast_hint(function: Function, value: Expr, declared: Type) -> str | None:
    """Where a value of another dtype than the declared one was made, and the cast that is wanting.

    None where it is not the dtype that differs.
    """
    shaped = TensorType | TileType
    if not isinstance(value.type, shaped) or not isinstance(declared, shaped):
        return None
    if value.type.dtype == declared.dtype or not isinstance(value, Var):
        return None
    made = ""
    for stmt in walk(function.body):
        if isinstance(stmt, Assign) and stmt.var is value and isinstance(stmt.value, Call):
            line = f" in line {stmt.span.line}" if stmt.span is not None else ""
            made = f", which {stmt.value.op} makes{line},"
    return (
        f"{value.name}{made} is {value.type.dtype}: return "
        f"z = pl.cast({value.name}, target_type=pl.{declared.dtype}) instead"
    )
