"""Walking and rewriting IR: statements, expressions, the expressions inside types.

Nothing here recurses over statements or expressions, so depth is bounded by memory only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from pypto_egg.ir.expr import (
    BinOp,
    Call,
    Cast,
    Expr,
    FunctionCall,
    Submit,
    TupleExpr,
    TupleItem,
    UnOp,
    Var,
    as_dim,
)
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import (
    Assign,
    Block,
    Eval,
    For,
    If,
    Return,
    Scope,
    Stmt,
    While,
    Yield,
)
from pypto_egg.ir.types import (
    MemRef,
    TensorType,
    TensorView,
    TileType,
    TileView,
    Type,
    tensor_type,
    tile_type,
)


def blocks_of(stmt: Stmt) -> tuple[tuple[str, Block], ...]:
    """The blocks nested directly in a statement, in program order, with their field names."""
    match stmt:
        case For() | While() | Scope():
            return (("body", stmt.body),)
        case If():
            return (("then", stmt.then), ("orelse", stmt.orelse))
        case _:
            return ()


def walk(block: Block) -> Iterator[Stmt]:
    """All statements of a block and of the blocks nested in it, in program order."""
    stack = list(reversed(block))
    while stack:
        stmt = stack.pop()
        yield stmt
        for _, nested in reversed(blocks_of(stmt)):
            stack.extend(reversed(nested))


def yields_of(block: Block) -> tuple[Expr, ...]:
    """What a block hands to the loop or branch around it; nothing if it does not end in a yield."""
    last = block[-1] if block else None
    return last.values if isinstance(last, Yield) else ()


def expressions_of(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement itself evaluates, in the order of their evaluation.

    Expressions of nested statements are not among them.
    """
    match stmt:
        case Assign() | Eval():
            return (stmt.value,)
        case Return() | Yield():
            return stmt.values
        case For():
            return (stmt.start, stmt.stop, stmt.step, *stmt.inits, *_values(stmt.attrs))
        case While():
            return (*stmt.inits, stmt.cond)
        case If():
            return (stmt.cond,)
        case Scope():
            return (*_expressions_in(stmt.args), *_values(stmt.kwargs))
        case _:
            return ()


def defined_by(stmt: Stmt) -> tuple[Var, ...]:
    """The variables that a statement defines for the statements after it."""
    match stmt:
        case Assign():
            return (stmt.var,)
        case For() | While() | If():
            return stmt.results
        case Scope() if stmt.var is not None and stmt.kind != "split_aiv":
            return (stmt.var,)
        case _:
            return ()


def defined_inside(stmt: Stmt) -> tuple[Var, ...]:
    """The variables that a statement defines for its own body only."""
    match stmt:
        case For():
            return (stmt.var, *stmt.iter_args)
        case While():
            return stmt.iter_args
        case Scope() if stmt.var is not None and stmt.kind == "split_aiv":
            return (stmt.var,)
        case _:
            return ()


def definitions(function: Function) -> Iterator[Var]:
    """Every variable that a function defines, in program order: parameters come first."""
    for param in function.params:
        yield param.var
    for stmt in walk(function.body):
        yield from defined_inside(stmt)
        yield from defined_by(stmt)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression, those inside keyword arguments and attributes too."""
    match expr:
        case BinOp():
            return (expr.lhs, expr.rhs)
        case UnOp() | Cast():
            return (expr.operand,)
        case TupleExpr():
            return expr.items
        case TupleItem():
            return (expr.value,)
        case Call() | FunctionCall() | Submit():
            return (*expr.args, *_values(expr.kwargs), *_values(expr.attrs))
        case _:
            return ()


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """An expression and all below it: operands before what uses them, left before right."""
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        node, expanded = stack.pop()
        below = () if expanded else children(node)
        if not below:
            yield node
            continue
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(below))


def free_vars(expr: Expr) -> tuple[Var, ...]:
    """The variables that an expression reads, each once, in order of first occurrence."""
    return tuple(dict.fromkeys(e for e in subexpressions(expr) if isinstance(e, Var)))


def type_expressions(type_: Type) -> tuple[Expr, ...]:
    """The expressions inside a type: symbolic dimensions, strides, offsets, buffer references."""
    return tuple(_expressions_in(type_))


def type_vars(type_: Type) -> tuple[Var, ...]:
    """The variables inside a type, each once, in order of first occurrence."""
    found: dict[Var, None] = {}
    for expr in type_expressions(type_):
        found.update(dict.fromkeys(free_vars(expr)))
    return tuple(found)


def substitute(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    """The expression with variables replaced, also inside result types and keyword arguments.

    What does not change is the same object as before.
    """
    if not mapping:
        return expr
    done: dict[int, Expr] = {}
    for node in subexpressions(expr):
        if id(node) in done:
            continue
        if isinstance(node, Var):
            done[id(node)] = mapping.get(node, node)
        else:
            done[id(node)] = _rebuild(node, lambda child: done[id(child)], mapping)
    return done[id(expr)]


def substitute_type(type_: Type, mapping: Mapping[Var, Expr]) -> Type:
    """The type with variables replaced in its dimensions, in canonical form."""
    if not mapping or not type_expressions(type_):
        return type_
    changed: Type = _map_parts(type_, lambda dim: substitute(dim, mapping))
    return changed


def substitute_block(block: Block, mapping: Mapping[Var, Expr]) -> Block:
    """The block with variables replaced wherever they are read.

    A variable that the block defines and the mapping sends to another variable is renamed at its
    definition too.
    """
    if not mapping:
        return block
    done: dict[int, Stmt] = {}
    for stmt in reversed(tuple(walk(block))):
        nested = {name: tuple(done[id(s)] for s in inner) for name, inner in blocks_of(stmt)}
        done[id(stmt)] = _rebuild_stmt(stmt, nested, mapping)
    return tuple(done[id(stmt)] for stmt in block)


def _rebuild_stmt(stmt: Stmt, nested: dict[str, Block], mapping: Mapping[Var, Expr]) -> Stmt:
    changes: dict[str, Any] = {}
    for field in fields(stmt):
        old = getattr(stmt, field.name)
        if field.name in ("comments", "span"):
            continue
        if field.name in nested:
            changes[field.name] = nested[field.name]
            continue
        new = _map_value(old, lambda expr: substitute(expr, mapping))
        if new is not old:
            changes[field.name] = new
    return replace(stmt, **changes) if changes else stmt


def _rebuild(expr: Expr, new_child: Callable[[Expr], Expr], mapping: Mapping[Var, Expr]) -> Expr:
    changes: dict[str, Any] = {}
    for field in fields(expr):
        old = getattr(expr, field.name)
        new = substitute_type(old, mapping) if isinstance(old, Type) else _map_value(old, new_child)
        if new is not old:
            changes[field.name] = new
    return replace(expr, **changes) if changes else expr


def _values(pairs: tuple[tuple[str, object], ...]) -> tuple[Expr, ...]:
    return tuple(expr for _, value in pairs for expr in _expressions_in(value))


def _expressions_in(value: object) -> Iterator[Expr]:
    """The outermost expressions in a tuple, list, dictionary or type (all of them shallow)."""
    match value:
        case Expr():
            yield value
        case tuple() | list():
            for item in value:
                yield from _expressions_in(item)
        case dict():
            for item in value.values():
                yield from _expressions_in(item)
        case Type() | TensorView() | TileView() | MemRef():
            for field in fields(value):
                yield from _expressions_in(getattr(value, field.name))


def _map_value(value: object, f: Callable[[Expr], Expr]) -> object:
    match value:
        case Expr():
            return f(value)
        case tuple():
            items = tuple(_map_value(item, f) for item in value)
            return value if _same(items, value) else items
        case list():
            listed = [_map_value(item, f) for item in value]
            return value if _same(listed, value) else listed
        case dict():
            named = {key: _map_value(item, f) for key, item in value.items()}
            return value if _same(named.values(), value.values()) else named
        case _:
            return value


def _same(new: Iterable[object], old: Iterable[object]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def _map_parts(part: Any, f: Callable[[Expr], Expr]) -> Any:
    """A type, view or dimension list with `f` applied to its expressions."""
    match part:
        case Expr():
            return as_dim(f(part))
        case tuple():
            return tuple(_map_parts(item, f) for item in part)
        case Type() | TensorView() | TileView() | MemRef():
            new = {x.name: _map_parts(getattr(part, x.name), f) for x in fields(part)}
        case _:
            return part
    if isinstance(part, TileType):
        return tile_type(**new)
    return tensor_type(**new) if isinstance(part, TensorType) else replace(part, **new)
