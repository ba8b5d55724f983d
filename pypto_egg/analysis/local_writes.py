"""Scalar writes into local tensors in SSA form (C-084).

`pl.write(t, [0, i], v)` updates `t` in place. For a tensor that lives on chip, each update becomes
a value of its own, `t__ssa_v1 = pl.write(t, [0, i], v)`, which later statements read and which
loops and branches pass on. Writes into global memory stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pypto_egg.analysis.provenance import Provenance, Root, RootKind, provenance_of
from pypto_egg.analysis.store_forms import write_of
from pypto_egg.errors import LoweringError
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.names import VersionNames
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Stmt, While, Yield, with_fields
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import (
    blocks_of,
    defined_by,
    expressions_of,
    free_vars,
    substitute_block,
    walk,
)


def with_local_write_versions(function: Function) -> Function:
    """The function in which every write into a local tensor makes a new value.

    Raises:
        LoweringError: a write through a view of a local tensor, or into one that goes by two
            names at once; names it.
    """
    memory = provenance_of(function)
    roots = _written_roots(function, memory)
    if not roots:
        return function
    function = _under_one_name(function, roots, memory)
    memory = provenance_of(function)
    roots = _written_roots(function, memory)
    _refuse_second_names(function, roots, memory)
    written = _targets(function, roots, memory)
    return replace(function, body=_Versions(function, written).block(function.body, {}))


def _written_roots(function: Function, memory: Provenance) -> frozenset[Root]:
    """The local tensors into which a function writes scalars."""
    found: set[Root] = set()
    for stmt in walk(function.body):
        call = write_of(stmt)
        roots = memory.roots_of(call.args[0]) if call is not None else ()
        if not any(root.kind in (RootKind.PARAM, RootKind.CALL) for root in roots):
            found.update(roots)
    return frozenset(found)


def _under_one_name(function: Function, roots: frozenset[Root], memory: Provenance) -> Function:
    """The function in which plain aliases of these tensors are read by the tensor's own name."""
    names: dict[Var, Expr] = {}
    for stmt in walk(function.body):
        if not isinstance(stmt, Assign) or roots.isdisjoint(memory.roots_of(stmt.var)):
            continue
        call = write_of(stmt)
        source = stmt.value if isinstance(stmt.value, Var) else call.args[0] if call else None
        if isinstance(source, Var):
            names[stmt.var] = names.get(source, source)
    if not names:
        return function
    body = _without_aliases(function.body, frozenset(names))
    return replace(function, body=substitute_block(body, names))


def _without_aliases(block: Block, aliases: frozenset[Var]) -> Block:
    """The statements without those that only give another name; writes lose their result."""
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Assign) and stmt.var in aliases:
            if not isinstance(stmt.value, Var):
                out.append(Eval(stmt.value, span=stmt.span, comments=stmt.comments))
            continue
        inner = {name: _without_aliases(body, aliases) for name, body in blocks_of(stmt)}
        out.append(with_fields(stmt, **inner) if inner else stmt)
    return tuple(out)


def _targets(function: Function, roots: frozenset[Root], memory: Provenance) -> frozenset[Var]:
    """The names through which scalars are written into the tensors."""
    made = {s.var: s.value for s in walk(function.body) if isinstance(s, Assign)}
    written: set[Var] = set()
    for stmt in walk(function.body):
        call = write_of(stmt)
        target = call.args[0] if call is not None else None
        if not isinstance(target, Var) or roots.isdisjoint(memory.roots_of(target)):
            continue
        value = made.get(target)
        if isinstance(value, Call) and value.op in _VIEWS:
            raise LoweringError(
                f"'{target.name}' is a view of a local tensor, and is written by scalars",
                span=stmt.span,
                hint="write into the tensor itself, at the view's offset",
            )
        written.add(target)
    return frozenset(written)


def _refuse_second_names(function: Function, roots: frozenset[Root], memory: Provenance) -> None:
    """Refuse to follow one tensor under two names, its own and that of a loop or a branch."""
    statements = list(walk(function.body))
    for position, stmt in enumerate(statements):
        passed = stmt.inits if isinstance(stmt, For | While) else ()
        passed = stmt.values if isinstance(stmt, Yield) else passed
        for value in passed:
            if not isinstance(value, Var) or roots.isdisjoint(memory.roots_of(value)):
                continue
            again = any(_reads(later, value) for later in statements[position + 1 :])
            if again or passed.count(value) > 1:
                raise LoweringError(
                    f"'{value.name}' is passed on by a loop or a branch and used afterwards by its "
                    "own name, or passed on twice, and scalars are written into it",
                    span=stmt.span,
                    hint="go on with the name that the loop or branch gives it",
                )


def _reads(stmt: Stmt, var: Var) -> bool:
    if isinstance(stmt, Yield):
        return False
    return any(var in free_vars(expr) for expr in expressions_of(stmt))


_VIEWS = ("tensor.slice", "tensor.reshape", "tensor.view", "tensor.set_validshape")


@dataclass
class _Versions:
    """The renaming of one function."""

    function: Function
    written: frozenset[Var]

    def __post_init__(self) -> None:
        self.names = VersionNames(self.function)

    def block(self, block: Block, latest: dict[Var, Var]) -> Block:
        """The block over the latest versions; `latest` is brought up to its end."""
        out: list[Stmt] = []
        for stmt in block:
            out.append(self._statement(stmt, latest))
        return tuple(out)

    def _statement(self, stmt: Stmt, latest: dict[Var, Var]) -> Stmt:
        if isinstance(stmt, For | While):
            return self._loop(stmt, latest)
        if isinstance(stmt, If):
            return self._branch(stmt, latest)
        call = write_of(stmt)
        (current,) = substitute_block((stmt,), dict(latest))
        if call is None or call.args[0] not in self.written:
            return current
        target = call.args[0]
        assert isinstance(target, Var)
        assert isinstance(current, Assign | Eval)
        var = self._version(target, "ssa")
        latest[target] = var
        if isinstance(stmt, Assign):
            latest[stmt.var] = var
        return Assign(var, current.value, span=stmt.span, comments=stmt.comments)

    def _loop(self, stmt: For | While, latest: dict[Var, Var]) -> Stmt:
        changed = self._changed((stmt.body,))
        carried = [var for var in changed if var not in stmt.iter_args]
        args = [self._version(var, "iter") for var in carried]
        inside = {**latest, **dict(zip(carried, args, strict=True))}
        body = self.block(stmt.body, inside)
        (header,) = substitute_block((replace(stmt, body=()),), dict(latest))
        assert isinstance(header, For | While)
        results = [self._version(var, "rv") for var in carried]
        inits = [latest.get(var, var) for var in carried]
        latest.update(zip(carried, results, strict=True))
        if isinstance(stmt, While) and carried:
            (header,) = substitute_block((header,), dict(zip(inits, args, strict=True)))
            assert isinstance(header, While)
        return replace(
            header,
            body=_yielding(body, tuple(inside[var] for var in carried)),
            iter_args=(*header.iter_args, *args),
            inits=(*header.inits, *inits),
            results=(*header.results, *results),
        )

    def _branch(self, stmt: If, latest: dict[Var, Var]) -> Stmt:
        merged = self._changed((stmt.then, stmt.orelse))
        arms: list[Block] = []
        for arm in (stmt.then, stmt.orelse):
            inside = dict(latest)
            body = self.block(arm, inside)
            arms.append(_yielding(body, tuple(inside.get(var, var) for var in merged)))
        (header,) = substitute_block((replace(stmt, then=(), orelse=()),), dict(latest))
        assert isinstance(header, If)
        results = [self._version(var, "phi") for var in merged]
        latest.update(zip(merged, results, strict=True))
        return replace(header, then=arms[0], orelse=arms[1], results=(*header.results, *results))

    def _changed(self, blocks: tuple[Block, ...]) -> list[Var]:
        """The variables of outside that the blocks write, in the order of the writes."""
        changed: dict[Var, None] = {}
        inside: set[Var] = set()
        for block in blocks:
            for stmt in walk(block):
                inside.update(defined_by(stmt))
                call = write_of(stmt)
                if call is not None and isinstance(call.args[0], Var):
                    changed.setdefault(call.args[0])
        return [var for var in changed if var in self.written and var not in inside]

    def _version(self, var: Var, role: str) -> Var:
        assert isinstance(var.type, TensorType)
        return Var(self.names.fresh(var.name, role), var.type, var.span)


def _yielding(body: Block, values: tuple[Var, ...]) -> Block:
    if not values:
        return body
    last = body[-1] if body else None
    if isinstance(last, Yield):
        return (*body[:-1], replace(last, values=(*last.values, *values)))
    return (*body, Yield(values))
