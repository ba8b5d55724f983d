"""Printed names: which variables a function defines and uses, and one identifier for each.

PyPTO language reference, 11: names that occur once are kept; variables that share a name become
`x, x_1, x_2, ...` in the order parameters, definitions, uses.
"""

from __future__ import annotations

import keyword as python
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pypto_egg.ir.expr import (
    BinOp,
    Call,
    Cast,
    FunctionCall,
    Submit,
    TupleExpr,
    TupleItem,
    UnOp,
    Var,
)
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Return, Scope, Stmt, While, Yield
from pypto_egg.ir.types import TensorType, TileType, TupleType, Type

FREE_SUFFIX = "__FREE_VAR"


@dataclass(slots=True)
class Variables:
    """The variables of one function, each in order of first appearance.

    Args:
        defined: parameters, then everything the body defines.
        used: what the body's expressions mention.
        in_types: what printed types mention.
        in_valid: what the valid shapes of parameter types mention.
        callees: functions of the program that are called.
    """

    defined: dict[Var, None] = field(default_factory=dict)
    used: dict[Var, None] = field(default_factory=dict)
    in_types: dict[Var, None] = field(default_factory=dict)
    in_valid: dict[Var, None] = field(default_factory=dict)
    callees: dict[str, None] = field(default_factory=dict)

    def define(self, var: Var) -> None:
        self.defined.setdefault(var)
        self.mention(var.type)

    def mention(self, kind: Type) -> None:
        for var in variables_of_type(kind):
            self.in_types.setdefault(var)

    def use(self, value: object) -> None:
        """Everything an expression, or a kwarg value, mentions."""
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, Var):
                self.used.setdefault(item)
            elif isinstance(item, FunctionCall | Submit):
                self.callees.setdefault(item.name)
            stack.extend(reversed(_parts(item)))


def _parts(item: object) -> list[object]:
    """The direct constituents of an expression or kwarg value that may hold variables."""
    match item:
        case tuple():
            return list(item)
        case BinOp():
            return [item.lhs, item.rhs]
        case UnOp() | Cast():
            return [item.operand]
        case TupleExpr():
            return list(item.items)
        case TupleItem():
            return [item.value]
        case Call() | FunctionCall() | Submit():
            named = [value for _, value in (*item.kwargs, *item.attrs)]
            return [*item.args, *named]
    return []


def variables_of_type(kind: Type) -> Iterator[Var]:
    """The variables that dimensions, views and buffers of a type mention."""
    parts: list[object] = []
    match kind:
        case TensorType() | TileType():
            parts += kind.shape
            if kind.view is not None:
                parts += [*(kind.view.valid_shape or ()), *kind.view.stride]
            if isinstance(kind, TileType) and kind.view is not None:
                parts.append(kind.view.start_offset)
            if kind.memref is not None:
                parts += [*kind.memref.args, kind.memref.index]
        case TupleType():
            for item in kind.items:
                yield from variables_of_type(item)
    found = Variables()
    for part in parts:
        found.use(part)
    yield from found.used


def variables_of(function: Function) -> Variables:
    """Everything that naming needs to know of a function."""
    found = Variables()
    for param in function.params:
        found.define(param.var)
        _collect_valid(found, param.var.type)
    for result in function.returns:
        found.mention(result)
    for _, value in function.attrs:
        found.use(value)
    _collect_block(found, function.body)
    return found


def _collect_valid(found: Variables, kind: Type) -> None:
    if isinstance(kind, TensorType | TileType) and kind.view is not None:
        inner = Variables()
        inner.use(tuple(kind.view.valid_shape or ()))
        found.in_valid.update(inner.used)


def _collect_block(found: Variables, block: Block) -> None:
    for stmt in block:
        _collect_stmt(found, stmt)


def _collect_stmt(found: Variables, stmt: Stmt) -> None:
    match stmt:
        case Assign():
            found.define(stmt.var)
            found.use(stmt.value)
        case Eval():
            found.use(stmt.value)
        case Return() | Yield():
            found.use(stmt.values)
        case For():
            _define_all(found, (stmt.var, *stmt.iter_args))
            found.use((stmt.start, stmt.stop, stmt.step, *stmt.inits))
            found.use(tuple(value for _, value in stmt.attrs))
            _collect_block(found, stmt.body)
            _define_all(found, stmt.results)
        case While():
            _define_all(found, stmt.iter_args)
            found.use((stmt.cond, *stmt.inits))
            _collect_block(found, stmt.body)
            _define_all(found, stmt.results)
        case If():
            found.use(stmt.cond)
            _collect_block(found, stmt.then)
            _define_all(found, stmt.results)
            _collect_block(found, stmt.orelse)
        case Scope():
            found.use((*stmt.args, *(value for _, value in stmt.kwargs)))
            if stmt.var is not None:
                found.define(stmt.var)
            _collect_block(found, stmt.body)


def _define_all(found: Variables, names: Iterable[Var]) -> None:
    for var in names:
        found.define(var)


def unique_names(variables: Iterable[Var], taken: Iterable[str]) -> dict[Var, str]:
    """One identifier for each variable, in the order given; `taken` ones are never used."""
    ordered = list(dict.fromkeys(variables))
    counts: dict[str, int] = {}
    for var in ordered:
        counts[var.name] = counts.get(var.name, 0) + 1
    used = set(taken)
    names: dict[Var, str] = {}
    for var in ordered:
        if counts[var.name] == 1 and _is_free(var.name, used):
            names[var] = var.name
            used.add(var.name)
    suffixes: dict[str, int] = {}
    for var in ordered:
        if var not in names:
            names[var] = _next_name(var.name, used, suffixes)
            used.add(names[var])
    return names


def _is_free(name: str, used: set[str]) -> bool:
    return name not in used and name.isidentifier() and not python.iskeyword(name)


def _next_name(hint: str, used: set[str], suffixes: dict[str, int]) -> str:
    """The first of `x, x_1, x_2, ...` that is not used.

    PyPTO reserves the double underscore (`base__role`), so the number goes to the base.
    """
    base, mark, role = (hint if hint.isidentifier() else "v").partition("__")
    while True:
        count = suffixes.get(hint, 0)
        suffixes[hint] = count + 1
        name = f"{base}_{count}{mark}{role}" if count else f"{base}{mark}{role}"
        if _is_free(name, used):
            return name


@dataclass(frozen=True, slots=True)
class ProgramNames:
    """Printed names of a program: its dynamic symbols, and the variables of each function."""

    dynamic: tuple[str, ...]
    functions: dict[str, dict[Var, str]]
    callees: dict[str, tuple[str, ...]]


def program_names(functions: tuple[Function, ...], reserved: tuple[str, ...]) -> ProgramNames:
    """Names for everything in the functions; `reserved` are the names of the language."""
    variables = {function.name: variables_of(function) for function in functions}
    defined = {var for found in variables.values() for var in found.defined}
    free = [var for found in variables.values() for var in found.in_types if var not in defined]
    symbols = unique_names(free, reserved)
    names: dict[str, dict[Var, str]] = {}
    dynamic = set(symbols.values())
    for function, found in variables.items():
        names[function] = _function_names(found, symbols, reserved)
        # A parameter that a parameter's valid shape reads is declared as well, because Python
        # evaluates annotations before there are parameters.
        dynamic.update(names[function][var] for var in found.in_valid)
    callees = {function: tuple(found.callees) for function, found in variables.items()}
    return ProgramNames(tuple(sorted(dynamic)), names, callees)


def _function_names(
    found: Variables, symbols: dict[Var, str], reserved: tuple[str, ...]
) -> dict[Var, str]:
    mentioned = {var: symbols[var] for var in (*found.in_types, *found.used) if var in symbols}
    local = [var for var in (*found.defined, *found.used) if var not in symbols]
    taken = (*reserved, *mentioned.values())
    names = unique_names(local, taken)
    for var in found.used:
        if var not in found.defined and var not in symbols:
            names[var] += FREE_SUFFIX
    return {**mentioned, **names}
