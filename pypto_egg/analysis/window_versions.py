"""Assignments to windows in SSA form.

`out[0:16, 0:8] = t` is read as `out = tensor.assemble(out, t, [0, 0])`: the same name twice, as
PyPTO has it before its ConvertToSSA pass. Here every such assignment gets a variable of its own
(`out__ssa_v1`), which the rest of its block reads. A handle of global memory may be assigned to
inside of a loop or branch too: after it, the name of before still stands for the same memory. A
local value would have to be carried, so there it stays as it is, and is no SSA form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.names import VersionNames
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Block, Stmt, with_fields
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import (
    blocks_of,
    defined_by,
    subexpressions,
    substitute,
    substitute_block,
    walk,
)

# Operators whose result is their first operand after a store into it.
_STORES = ("tensor.assemble", "tensor.write")


def with_window_versions(program: Program) -> Program:
    """The program with a variable of its own for each assignment to a window."""
    functions = tuple(_versioned(function) for function in program.functions)
    if all(new is old for new, old in zip(functions, program.functions, strict=True)):
        return program
    return program.with_functions(functions)


def _versioned(function: Function) -> Function:
    if not any(_stored_into(stmt) is not None for stmt in walk(function.body)):
        return function
    return replace(function, body=_Versions(function).block(function.body, {}, nested=False))


def _stored_into(stmt: Stmt) -> Var | None:
    """The variable that a statement both stores into and assigns to, if it does."""
    if not isinstance(stmt, Assign) or not isinstance(stmt.value, Call):
        return None
    if stmt.value.op not in _STORES or stmt.value.args[0] is not stmt.var:
        return None
    return stmt.var


class _Versions:
    """The renaming of one function."""

    def __init__(self, function: Function) -> None:
        self._names = VersionNames(function)
        self._memory = {p.var for p in function.params if isinstance(p.var.type, TensorType)}

    def block(self, block: Block, latest: Mapping[Var, Expr], *, nested: bool) -> Block:
        """The block, whose reads of a variable mean its latest version."""
        latest = dict(latest)
        out: list[Stmt] = []
        for stmt in block:
            self._follow(stmt)
            inner = {name: self.block(body, latest, nested=True) for name, body in blocks_of(stmt)}
            old = _stored_into(stmt)
            if old is None or (nested and old not in self._memory):
                out.append(_renamed(stmt, inner, latest))
                continue
            assert isinstance(stmt, Assign)
            new = Var(self._names.fresh(old.name, "ssa"), stmt.value.type, stmt.var.span)
            if old in self._memory:
                self._memory.add(new)
            value = self._flat(substitute(stmt.value, latest), old, out)
            out.append(replace(stmt, var=new, value=value))
            latest[old] = new
        return tuple(out)

    def _follow(self, stmt: Stmt) -> None:
        """Another name of global memory is global memory."""
        if isinstance(stmt, Assign) and stmt.value in self._memory:
            self._memory.add(stmt.var)

    def _flat(self, store: Expr, owner: Var, out: list[Stmt]) -> Expr:
        """The store with what it stores computed by statements before it.

        `out[...] = pl.full(...)` holds one call for its author; the store around it is sugar.
        """
        assert isinstance(store, Call)
        named: dict[Expr, Expr] = {}
        for part in subexpressions(store.args[1]):
            if isinstance(part, Call):
                call = replace(part, args=tuple(named.get(arg, arg) for arg in part.args))
                var = Var(self._names.fresh(owner.name, "tmp"), part.type, part.span)
                out.append(Assign(var, call, span=part.span))
                named[part] = var
        first, source, *rest = store.args
        return replace(store, args=(first, named.get(source, source), *rest))


def _renamed(stmt: Stmt, inner: dict[str, Block], latest: Mapping[Var, Expr]) -> Stmt:
    """The statement with what it reads renamed; what it defines keeps its name."""
    kept = {var: version for var, version in latest.items() if var not in defined_by(stmt)}
    if not inner:
        return substitute_block((stmt,), kept)[0]
    (header,) = substitute_block((with_fields(stmt, **dict.fromkeys(inner, ())),), kept)
    return with_fields(header, **inner)
