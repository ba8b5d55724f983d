"""SSAForm and UseBeforeDef: every variable is defined once, before and in reach of its uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pypto_egg.ir.dtype import INDEX
from pypto_egg.ir.expr import Expr, Var
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Block, For, If, Scope, Stmt, While
from pypto_egg.ir.types import ScalarType
from pypto_egg.ir.visit import (
    blocks_of,
    defined_by,
    defined_inside,
    definitions,
    expressions_of,
    free_vars,
    type_vars,
    walk,
    yields_of,
)
from pypto_egg.source import Span
from pypto_egg.verify.finding import Finding, Property


def check_ssa(function: Function, program: Program) -> Iterator[Finding]:
    """Findings of SSAForm (C-004) and UseBeforeDef in one function.

    A symbol, which nothing defines, is an INDEX scalar that occurs in a type of the program.
    """
    yield from _defined_twice(function)
    yield from _bad_carries(function)
    yield from _out_of_reach(function, _symbols(program))


def _defined_twice(function: Function) -> Iterator[Finding]:
    first: dict[Var, Span | None] = {param.var: param.var.span for param in function.params}
    if len(first) < len(function.params):
        yield Finding(
            Property.SSA_FORM,
            f"function '{function.name}' has the same variable as parameter twice",
            function.span,
        )
    for stmt in walk(function.body):
        for var in (*defined_inside(stmt), *defined_by(stmt)):
            if var in first:
                before = f", first at {first[var]}" if first[var] else ""
                yield Finding(
                    Property.SSA_FORM,
                    f"function '{function.name}' defines '{var.name}' twice{before}",
                    stmt.span,
                    "give every value a name of its own",
                )
            else:
                first[var] = stmt.span


def _bad_carries(function: Function) -> Iterator[Finding]:
    for stmt in walk(function.body):
        blocks: tuple[Block, ...]
        match stmt:
            case For() | While():
                carried, blocks = len(stmt.iter_args), (stmt.body,)
                if not carried == len(stmt.inits) == len(stmt.results):
                    yield _carry_finding(
                        function,
                        stmt,
                        f"a loop has {carried} iteration arguments, {len(stmt.inits)} initial "
                        f"values and {len(stmt.results)} results",
                    )
                    continue
            case If():
                carried, blocks = len(stmt.results), (stmt.then, stmt.orelse)
            case _:
                continue
        what = "a branch with results" if isinstance(stmt, If) else "a loop with carried values"
        for block in blocks:
            yielded = len(yields_of(block))
            if yielded != carried:
                yield _carry_finding(
                    function, stmt, f"{what} needs {carried} yielded values, not {yielded}"
                )


def _carry_finding(function: Function, stmt: Stmt, problem: str) -> Finding:
    return Finding(
        Property.SSA_FORM,
        f"in function '{function.name}' {problem}",
        stmt.span,
        "end the body in one pl.yield_ with as many values as the header carries",
    )


class _Reach:
    """The variables in reach at a point of a function, block by block."""

    def __init__(self, outer: set[Var]) -> None:
        self._visible = set(outer)
        self._blocks: list[list[Var]] = [[]]

    def __contains__(self, var: Var) -> bool:
        return var in self._visible

    def enter(self, defined: tuple[Var, ...]) -> None:
        self._blocks.append([])
        self.define(defined)

    def define(self, defined: tuple[Var, ...]) -> None:
        self._visible.update(defined)
        self._blocks[-1].extend(defined)

    def leave(self) -> None:
        self._visible.difference_update(self._blocks.pop())


def _out_of_reach(function: Function, symbols: set[Var]) -> Iterator[Finding]:
    defined = set(definitions(function))
    reach = _Reach(symbols - defined)
    reach.define(tuple(param.var for param in function.params))
    # A step is a statement to check, or what to do once the blocks before it are through.
    steps: list[Stmt | Callable[[], None]] = list(reversed(function.body))
    while steps:
        step = steps.pop()
        if not isinstance(step, Stmt):
            step()
            continue
        before = step.inits if isinstance(step, While) else expressions_of(step)
        yield from _unknown(function, step, before, reach, defined)
        if isinstance(step, While):  # its condition reads what it carries
            reach.enter(step.iter_args)
            yield from _unknown(function, step, (step.cond,), reach, defined)
            reach.leave()
        steps.append(partial(_define, reach, step))
        steps.extend(_nested(reach, step))


def _define(reach: _Reach, stmt: Stmt) -> None:
    reach.define(defined_by(stmt))


def _nested(reach: _Reach, stmt: Stmt) -> list[Stmt | Callable[[], None]]:
    """The steps of a statement's blocks, last one first."""
    steps: list[Stmt | Callable[[], None]] = []
    for _, block in reversed(blocks_of(stmt)):
        if isinstance(stmt, Scope):  # a `with` region keeps its names in reach afterwards
            steps.extend(reversed(block))
            continue
        steps.append(reach.leave)
        steps.extend(reversed(block))
        steps.append(partial(reach.enter, defined_inside(stmt)))
    if isinstance(stmt, Scope):
        steps.append(partial(reach.define, defined_inside(stmt)))
    return steps


def _unknown(
    function: Function,
    stmt: Stmt,
    read: tuple[Expr, ...],
    reach: _Reach,
    defined: set[Var],
) -> Iterator[Finding]:
    used = dict.fromkeys(var for expr in read for var in free_vars(expr))
    for var in defined_by(stmt):
        used.update(dict.fromkeys(type_vars(var.type)))
    for var in used:
        if var in reach:
            continue
        if var in defined:
            problem = f"uses '{var.name}' before its definition or outside the block that has it"
            hint = "hand the value out of the block by pl.yield_, or move its definition up"
        else:
            problem = f"uses '{var.name}', which nothing defines"
            hint = "add it as a parameter; only INDEX symbols of shapes need no definition"
        yield Finding(
            Property.USE_BEFORE_DEF, f"function '{function.name}' {problem}", stmt.span, hint
        )


def _symbols(program: Program) -> set[Var]:
    """The INDEX scalars that occur in types of the program, such as pl.dynamic("M")."""
    return {
        var
        for function in program.functions
        for type_ in (*function.returns, *(var.type for var in definitions(function)))
        for var in type_vars(type_)
        if var.type == ScalarType(INDEX)
    }
