"""Statements. Blocks are tuples; loops and branches carry their phi values explicitly.

A loop with carries has parallel tuples `iter_args`, `inits` and `results`; its body ends in a
`Yield` of as many values. An `If` with results ends both branches in such a `Yield`. The names
that PyPTO prints on the left of `pl.yield_` are the results of the enclosing loop or branch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pypto_egg.ir.enums import LoopKind
from pypto_egg.ir.expr import Expr, Var
from pypto_egg.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Stmt:
    """Base of all statements."""

    comments: tuple[str, ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


Block = tuple[Stmt, ...]
SomeStmt = TypeVar("SomeStmt", bound=Stmt)


def with_fields(stmt: SomeStmt, **changes: Any) -> SomeStmt:
    """The statement with some of its fields changed, for callers that know them by name only.

    Raises:
        TypeError: the statement has no such field.
    """
    return replace(stmt, **changes)


@dataclass(frozen=True, slots=True)
class Assign(Stmt):
    """`var: T = value`."""

    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class Eval(Stmt):
    """An expression evaluated for its effect."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Return(Stmt):
    """`return values`."""

    values: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Yield(Stmt):
    """Values handed to the enclosing loop's next iteration or to the enclosing branch's results."""

    values: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class For(Stmt):
    """`for var, (iter_args) in pl.<kind>(start, stop, step, init_values=(inits)):`.

    `attrs` are the further keywords of the header in printed order (`stage`, `attrs`, ...).
    """

    kind: LoopKind
    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: Block
    iter_args: tuple[Var, ...] = ()
    inits: tuple[Expr, ...] = ()
    results: tuple[Var, ...] = ()
    attrs: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class While(Stmt):
    """`while cond:` without carries, or `for (iter_args) in pl.while_(init_values=...)`."""

    cond: Expr
    body: Block
    iter_args: tuple[Var, ...] = ()
    inits: tuple[Expr, ...] = ()
    results: tuple[Var, ...] = ()


@dataclass(frozen=True, slots=True)
class If(Stmt):
    """`if cond:`; with results, both arms end in a `Yield` of as many values."""

    cond: Expr
    then: Block
    orelse: Block = ()
    results: tuple[Var, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope(Stmt):
    """`with pl.<kind>(args, kwargs) as var:` or `for var in pl.split_aiv(...)`."""

    kind: str
    body: Block
    args: tuple[object, ...] = ()
    kwargs: tuple[tuple[str, object], ...] = ()
    var: Var | None = None


@dataclass(frozen=True, slots=True)
class Break(Stmt):
    """`break`."""


@dataclass(frozen=True, slots=True)
class Continue(Stmt):
    """`continue`."""
