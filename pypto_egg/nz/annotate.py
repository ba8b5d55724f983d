"""Which handles of a program are one tensor, and the program with such a tensor in NZ order.

The annotation belongs to the bytes, so all that names the same memory must carry it: parameters
along calls, slices, aliases, what loops and branches pass on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from pypto_egg.ir.enums import Direction, TensorLayout
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, Var
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Return, Stmt, While, with_fields
from pypto_egg.ir.types import TensorType, TensorView, tensor_type
from pypto_egg.ir.visit import (
    blocks_of,
    expressions_of,
    subexpressions,
    substitute_block,
    walk,
    yields_of,
)
from pypto_egg.nz.layout import Named, block_type, is_nz
from pypto_egg.nz.plan import PackedParameter
from pypto_egg.ops.registry import make_call

_KEEP_ORDER = ("tensor.slice",)  # views that stay NZ tensors


@dataclass(frozen=True, slots=True)
class Handles:
    """All variables that name one tensor, in the whole program.

    Args:
        params: the parameters among them, each with its function, in program order.
        entries: those of functions that nobody in the program calls.
    """

    variables: frozenset[Var]
    params: tuple[tuple[Function, Param], ...]
    entries: tuple[tuple[Function, Param], ...]


class Tensors:
    """The tensors of a program as sets of handles."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._leader: dict[Var, Var] = {}
        self._made: dict[Var, str] = {}
        self._called: set[str] = set()
        callees = {function.name: function for function in program.functions}
        for function in program.functions:
            for stmt in walk(function.body):
                self._statement(stmt, function, callees)

    def of(self, function: str, parameter: str) -> Handles:
        """All handles of the tensor that a function takes as `parameter`."""
        params = [(f, p) for f in self._program.functions for p in f.params]
        (start,) = (p for f, p in params if (f.name, p.var.name) == (function, parameter))
        leader = self._find(start.var)
        mine = tuple((f, p) for f, p in params if self._find(p.var) is leader)
        variables = {var for var in self._leader if self._find(var) is leader}
        return Handles(
            frozenset({*variables, *(p.var for _, p in mine)}),
            mine,
            tuple((f, p) for f, p in mine if f.name not in self._called),
        )

    def check_packable(self, handles: Handles, lowered: Program) -> None:
        """Nothing, if the tensor comes from the host and is only read.

        Args:
            lowered: the program after lowering, whose parameters say which are written.

        Raises:
            NzError: the program writes, makes or returns it; names the handle.
        """
        directions = {
            (function.name, param.var.name): param.direction
            for function in lowered.functions
            for param in function.params
        }
        for function, param in handles.params:
            if directions[function.name, param.var.name] is not Direction.In:
                raise _about(param.var).error(
                    f"of '{function.name}' is written, and is no weight that the host packs once",
                    "annotate it with pl.NZ by hand if its product may be written in NZ order",
                )
        for var, why in self._made.items():
            if var in handles.variables:
                raise _about(var).error(
                    f"{why}; only what the host passes in can be packed by it",
                    "pass the tensor to the entry function, or keep it ND",
                )

    # --- one tensor under several names ----------------------------------------------------------

    def _statement(self, stmt: Stmt, function: Function, callees: dict[str, Function]) -> None:
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                if isinstance(part, FunctionCall | Submit) and part.name in callees:
                    self._call(part, callees[part.name])
        for value, name in _passes(stmt):
            self._join(value, name)
        match stmt:
            case Assign(var, FunctionCall() | Submit() as call):
                self._made[var] = f"is a result of '{call.name}'"
            case Assign(var, Call() as call) if call.op not in _KEEP_ORDER:
                self._made[var] = f"is made by {call.op}"
            case Return():
                for value in stmt.values:
                    if isinstance(value, Var):
                        self._made[value] = f"is returned by '{function.name}'"

    def _call(self, call: FunctionCall | Submit, callee: Function) -> None:
        self._called.add(call.name)
        for arg, param in zip(call.args, callee.params, strict=False):
            self._join(arg, param.var)

    def _join(self, value: Expr, name: Var) -> None:
        if not isinstance(value, Var) or not isinstance(value.type, TensorType):
            return
        a, b = self._find(value), self._find(name)
        if a is not b:
            self._leader[b] = a

    def _find(self, var: Var) -> Var:
        self._leader.setdefault(var, var)
        while self._leader[var] is not var:
            self._leader[var] = self._leader[self._leader[var]]
            var = self._leader[var]
        return var


def _passes(stmt: Stmt) -> Iterator[tuple[Expr, Var]]:
    """Values and the variables that take them over as they are."""
    match stmt:
        case Assign(var, Call() as call) if call.op in _KEEP_ORDER:
            yield call.args[0], var
        case Assign(var, Var() as value):
            yield value, var
        case For() | While():
            yield from zip(stmt.inits, stmt.iter_args, strict=False)
            yield from zip(yields_of(stmt.body), stmt.iter_args, strict=False)
            yield from zip(stmt.iter_args, stmt.results, strict=False)
        case If():
            for block in (stmt.then, stmt.orelse):
                yield from zip(yields_of(block), stmt.results, strict=False)


def _about(var: Var) -> Named:
    return Named(var.name, var.span)


def packed_parameters(handles: Handles) -> tuple[PackedParameter, ...]:
    """What the host packs for a tensor.

    Raises:
        NzError: the tensor has no blocked form.
    """
    found = []
    for function, param in handles.entries:
        kind = param.var.type
        assert isinstance(kind, TensorType)
        blocked = block_type(in_nz_type(kind), _about(param.var))
        assert isinstance(blocked, TensorType)
        found.append(
            PackedParameter(function.name, param.var.name, kind.shape, blocked.shape, kind.dtype)
        )
    return tuple(found)


def in_nz_type(kind: TensorType) -> TensorType:
    """The tensor type with its bytes in NZ order, still of logical shape."""
    view = replace(kind.view or TensorView(), layout=TensorLayout.NZ)
    return tensor_type(kind.shape, kind.dtype, view, kind.memref, kind.distributed)


def in_nz_order(program: Program, variables: Collection[Var]) -> Program:
    """The program with the handles of a tensor annotated NZ; no other bytes change.

    Raises:
        TypeCheckError: an operator that takes one of them does not take NZ tensors.
    """
    mapping: dict[Var, Expr] = {}
    for var in variables:
        assert isinstance(var.type, TensorType)
        mapping[var] = Var(var.name, in_nz_type(var.type), var.span)
    return program.with_functions(
        tuple(_annotated(function, mapping) for function in program.functions)
    )


def _annotated(function: Function, mapping: dict[Var, Expr]) -> Function:
    params = []
    for param in function.params:
        var = mapping.get(param.var, param.var)
        assert isinstance(var, Var)
        params.append(replace(param, var=var))
    body = substitute_block(function.body, mapping)
    return replace(function, params=tuple(params), body=_retyped(body))


def _retyped(body: Block) -> Block:
    """The body with the types of tensor operators on NZ tensors inferred again."""
    done: dict[int, Stmt] = {}
    for stmt in reversed(tuple(walk(body))):
        nested = {name: tuple(done[id(s)] for s in inner) for name, inner in blocks_of(stmt)}
        new = with_fields(stmt, **nested) if nested else stmt
        value = new.value if isinstance(new, Assign | Eval) else None
        if isinstance(value, Call) and value.op.startswith("tensor."):
            new = with_fields(new, value=_inferred(value))
        if isinstance(new, Assign) and new.var.type != new.value.type and is_nz(new.value.type):
            raise _about(new.var).error(
                f"is made by {_op(new.value)}, which has no NZ form",
                "keep the tensor ND where it is used like this",
            )
        done[id(stmt)] = new
    return tuple(done[id(stmt)] for stmt in body)


def _op(value: Expr) -> str:
    return value.op if isinstance(value, Call) else "an expression"


def _inferred(call: Call) -> Call:
    if not any(is_nz(arg.type) for arg in call.args):
        return call
    return make_call(call.op, call.args, dict(call.kwargs), attrs=call.attrs, span=call.span)
