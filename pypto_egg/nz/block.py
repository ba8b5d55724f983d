"""BlockNzTensorViews: NZ tensors of tile programs in their physical form.

`block_nz` gives every NZ tensor the shape `[B, C/c0, R/16, 16, c0]` and rewrites what reads and
writes it. Nothing is converted: the annotation states the order of bytes that are there (N-001,
N-002), and afterwards no type or coordinate needs to know of NZ (N-027). What has no blocked form
is an error that names the tensor and the way out; nothing is addressed by a guess (N-085).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pypto_egg.errors import InternalError, NzError
from pypto_egg.ir.expr import (
    Call,
    Expr,
    FunctionCall,
    Submit,
    Var,
    tuple_of,
)
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Eval, For, If, Return, Stmt, While, with_fields
from pypto_egg.ir.types import TensorType, TileType, TupleType, Type, UnknownType
from pypto_egg.ir.visit import (
    blocks_of,
    definitions,
    expressions_of,
    subexpressions,
    substitute_block,
    walk,
    yields_of,
)
from pypto_egg.nz.acc_store import blocked_store
from pypto_egg.nz.access import Access, blocked_load, blocked_slice, flattened_whole
from pypto_egg.nz.layout import Named, block_type, has_blocked_form, has_nz, is_nz
from pypto_egg.nz.proofs import Proofs
from pypto_egg.source import Span
from pypto_egg.target.target import Target

MARKER = "nz_tensor_views_blocked"
# The operand through which each supported operator reads or writes an NZ tensor.
_ACCESSES = {"tile.load": 0, "tile.store": 2, "tensor.slice": 0, "tensor.reshape": 0}


def block_nz(program: Program, target: Target) -> Program:
    """The program with all NZ tensors, and all accesses to them, in blocked form.

    It belongs after tiles are flattened to two axes and before strides are materialised (N-016 to
    N-021). Functions that hold NZ tensors get the marker `nz_tensor_views_blocked`; functions
    that have it already are left as they are (N-140).

    Args:
        target: decides whether accumulators can be written to NZ memory, and the limits of loads.

    Raises:
        NzError: a tensor without a blocked form, or a use of one that has none.
    """
    return program.with_functions(
        tuple(_Blocker(function, program, target).blocked() for function in program.functions)
    )


def is_blocked(function: Function) -> bool:
    """True for a function that this pass has rewritten."""
    return bool(function.attr(MARKER, False))


def check_nz_views_blocked(program: Program) -> None:
    """Nothing, if no NZ tensor of the program has a logical shape.

    Raises:
        InternalError: one has. Whoever derives strides or views from types must come after
            `block_nz` (N-019, N-138).
    """
    for function in program.functions:
        for var in definitions(function):
            kind = var.type
            if not isinstance(kind, TensorType) or not is_nz(kind):
                continue
            if not is_blocked(function) or not has_blocked_form(kind):
                raise InternalError(
                    f"NZ tensor '{var.name}' of function '{function.name}' is not blocked: "
                    "BlockNzTensorViews has not run"
                )


class _Blocker:
    """Rewrites one function."""

    def __init__(self, function: Function, program: Program, target: Target) -> None:
        self.function = function
        self.callees = {callee.name: callee for callee in program.functions}
        self.target = target
        self.proofs = Proofs(function)
        self.roots: dict[Var, Var] = {}

    def blocked(self) -> Function:
        function = self.function
        if is_blocked(function):
            return function
        for stmt in walk(function.body):
            self._find_root(stmt)
            self._check_handles(stmt)
        nz = [var for var in definitions(function) if has_nz(var.type)]
        if not nz and not any(map(has_nz, function.returns)):
            return function
        mapping = {var: Var(var.name, self._type(var), var.span) for var in nz}
        body = substitute_block(self._body(), mapping)
        params = tuple(
            Param(mapping.get(param.var, param.var), param.direction) for param in function.params
        )
        where = Named(f"returned by {function.name}", function.span)
        returns = tuple(block_type(kind, where) for kind in function.returns)
        attrs = (*function.attrs, (MARKER, True))
        return replace(function, params=params, returns=returns, body=body, attrs=attrs)

    def _type(self, var: Var) -> Type:
        return block_type(var.type, self._about(var, var.span))

    def _about(self, handle: Expr, span: Span | None) -> Named:
        if not isinstance(handle, Var):
            return Named("(unnamed)", span)
        root = self.roots.get(handle, handle)
        if (span or handle.span) is None:
            return Named(root.name, root.span)  # only the emitted program has such a handle
        return Named(handle.name, span or handle.span, root.name)

    def _find_root(self, stmt: Stmt) -> None:
        """Remember of which tensor a handle is a view, or the state in a loop, for errors."""
        if isinstance(stmt, For | While):
            for carried, start in zip(stmt.iter_args, stmt.inits, strict=True):
                if isinstance(start, Var) and is_nz(carried.type):
                    self.roots[carried] = self.roots.get(start, start)
        if not isinstance(stmt, Assign) or not is_nz(stmt.var.type):
            return
        source = stmt.value
        if isinstance(source, Call) and source.op in _ACCESSES:
            source = source.args[_ACCESSES[source.op]]
        if isinstance(source, Var):
            self.roots[stmt.var] = self.roots.get(source, source)

    # --- statements ------------------------------------------------------------------------------

    def _body(self) -> tuple[Stmt, ...]:
        done: dict[int, Stmt] = {}
        for stmt in reversed(tuple(walk(self.function.body))):
            nested = {name: tuple(done[id(s)] for s in inner) for name, inner in blocks_of(stmt)}
            done[id(stmt)] = self._statement(with_fields(stmt, **nested) if nested else stmt)
        return tuple(done[id(stmt)] for stmt in self.function.body)

    def _statement(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Assign | Eval):
            return stmt
        value = stmt.value
        match value:
            case Call() if value.op == "tensor.create" and is_nz(value.type):
                return replace(stmt, value=self._created(value, stmt))
            case Call() if self._nz_operands(value):
                return replace(stmt, value=self._access(value, stmt))
            case FunctionCall() | Submit() if has_nz(value.type):
                about = Named(f"result of {value.name}", value.span or stmt.span)
                return replace(
                    stmt, value=replace(value, result_type=block_type(value.type, about))
                )
            case _:
                return stmt

    def _created(self, call: Call, stmt: Assign | Eval) -> Call:
        about = Named("(unnamed)", call.span or stmt.span)
        if isinstance(stmt, Assign):
            about = self._about(stmt.var, call.span or stmt.span)
        kind = block_type(call.type, about)
        assert isinstance(kind, TensorType)
        return replace(call, args=(tuple_of(kind.shape), *call.args[1:]), result_type=kind)

    def _nz_operands(self, call: Call) -> list[int]:
        return [i for i, arg in enumerate(call.args) if has_nz(arg.type)]

    def _access(self, call: Call, stmt: Assign | Eval) -> Call:
        index = _ACCESSES.get(call.op)
        span = call.span or stmt.span
        if index is None or self._nz_operands(call) != [index]:
            raise self._no_access(call, span)
        kind = call.args[index].type
        assert isinstance(kind, TensorType)
        about = self._about(call.args[index], span)
        access = Access(call, kind, about, self.proofs, self.target)
        match call.op:
            case "tile.load":
                return blocked_load(access, _loaded_tile(call, stmt))
            case "tile.store":
                return blocked_store(access)
            case "tensor.slice":
                return blocked_slice(access)
            case _:
                return flattened_whole(access)

    def _no_access(self, call: Call, span: Span | None) -> NzError:
        handle = call.args[self._nz_operands(call)[0]]
        return self._about(handle, span).error(
            f"is used by {call.op}, which has no NZ form; an NZ tensor can be loaded to Mat, "
            "written from an accumulator, sliced on leading axes, or flattened as a whole",
            "keep the tensor ND where it is used like this",
        )

    # --- what passes handles on ----------------------------------------------------------------

    def _check_handles(self, stmt: Stmt) -> None:
        """Refuse what neither is a supported access nor passes an NZ tensor on as one."""
        top = stmt.value if isinstance(stmt, Assign | Eval) else None
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                if isinstance(part, Call) and part is not top and self._nz_operands(part):
                    raise self._no_access(part, part.span or stmt.span)
                if isinstance(part, FunctionCall | Submit):
                    self._check_arguments(part, stmt)
        for given, name, what in _joins(stmt, self.function):
            kind = name.type if isinstance(name, Var) else name
            if _layouts(given.type) != _layouts(kind) and not isinstance(given.type, UnknownType):
                into = f"'{name.name}'" if isinstance(name, Var) else f"a result of {what}"
                raise self._mixed(given, kind, into, stmt.span)

    def _check_arguments(self, call: FunctionCall | Submit, stmt: Stmt) -> None:
        callee = self.callees.get(call.name)
        if callee is None:
            return
        for arg, param in zip(call.args, callee.params, strict=False):
            if _layouts(arg.type) != _layouts(param.var.type):
                into = f"parameter '{param.var.name}' of {call.name}"
                raise self._mixed(arg, param.var.type, into, call.span or stmt.span)

    def _mixed(self, given: Expr, kind: Type, into: str, span: Span | None) -> NzError:
        about = self._about(given, span)
        orders = (
            ("is in NZ order", "is not") if has_nz(given.type) else ("is not", "is in NZ order")
        )
        message = (
            f"tensor '{about.name}' {orders[0]}, but {into}, which takes it, {orders[1]}; the "
            "annotation converts no bytes"
        )
        return NzError(message, span=about.span, hint="annotate both with pl.NZ, or neither")


def _loaded_tile(call: Call, stmt: Assign | Eval) -> TileType:
    """The type of a loaded tile; that of its name if only the name is flattened to two axes."""
    kind = call.type
    assert isinstance(kind, TileType)
    if kind.rank != 2 and isinstance(stmt, Assign) and isinstance(stmt.var.type, TileType):
        return stmt.var.type
    return kind


def _layouts(kind: Type) -> tuple[bool, ...]:
    """Which tensors of a type are NZ."""
    items = kind.items if isinstance(kind, TupleType) else (kind,)
    return tuple(is_nz(item) for item in items)


def _joins(stmt: Stmt, function: Function) -> Iterator[tuple[Expr, Var | Type, str]]:
    """Values and the names or declared types that take them over in a statement."""
    match stmt:
        case Assign():
            yield stmt.value, stmt.var, ""
        case For() | While():
            yielded = yields_of(stmt.body)
            for values in (stmt.inits, yielded):
                for value, name in zip(values, stmt.iter_args, strict=False):
                    yield value, name, ""
            for name, result in zip(stmt.iter_args, stmt.results, strict=False):
                yield name, result, ""
        case If():
            for block in (stmt.then, stmt.orelse):
                for value, name in zip(yields_of(block), stmt.results, strict=False):
                    yield value, name, ""
        case Return():
            for value, kind in zip(stmt.values, function.returns, strict=False):
                yield value, kind, f"function '{function.name}'"
