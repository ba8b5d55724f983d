"""Which buffers of global memory each tensor handle of a function may stand for.

PyPTO tensors are handles: a slice, a view, an alias, the result of a store or of a write all
name the memory of the tensor they came from, and loops, branches and calls pass handles on.
A `Root` is a buffer; every tensor variable has the set of roots it may alias (C-026, C-066).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum

from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, TupleExpr, TupleItem, Var
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, For, If, Return, While
from pypto_egg.ir.types import TensorType, TupleType, Type
from pypto_egg.ir.visit import expressions_of, subexpressions, walk, yields_of
from pypto_egg.ops.registry import lookup


class RootKind(Enum):
    """Where a buffer comes from."""

    PARAM = "parameter"
    CREATE = "allocated tensor"
    VALUE = "computed tensor"
    CALL = "result of a call"


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """One buffer.

    Args:
        id: its number in program order; parameters come first.
        var: the variable that names it first: the parameter, or the result that creates it.
        param: the index of the parameter, for a parameter.
    """

    id: int
    kind: RootKind
    var: Var
    param: int | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """What one result of a function may be: some of its parameters' buffers, or a new buffer."""

    params: tuple[int, ...]
    fresh: bool


# A place that holds one handle: a tensor variable, or one element of a tuple-valued variable.
_Slot = tuple[Var, int]


class Provenance:
    """The roots of a function and the roots that each of its tensor handles may alias."""

    def __init__(
        self, function: Function, returned: dict[str, tuple[Returned, ...] | None]
    ) -> None:
        self.function = function
        self.roots: list[Root] = []
        self._returned = returned
        self._of_slot: dict[_Slot, set[Root]] = {}
        self._flows_to: dict[_Slot, list[_Slot]] = {}
        self._collect()
        self._propagate()

    def roots_of(self, handle: Expr) -> tuple[Root, ...]:
        """The buffers that a tensor-valued expression may stand for, by root id.

        Empty for whatever is not a tensor.
        """
        if not isinstance(handle.type, TensorType):
            return ()
        slots, _ = self._sources(handle, 0)
        found = {root for slot in slots for root in self._of_slot.get(slot, ())}
        return tuple(sorted(found, key=lambda root: root.id))

    def root_of_param(self, index: int) -> Root | None:
        """The root of parameter `index`; None if it is not a tensor."""
        return next((root for root in self.roots if root.param == index), None)

    def returned(self) -> tuple[Returned, ...]:
        """What each result of the function may be, from all of its return statements."""
        params: list[set[int]] = []
        fresh: list[bool] = []
        for stmt in walk(self.function.body):
            if not isinstance(stmt, Return):
                continue
            for i, value in enumerate(stmt.values):
                if i == len(params):
                    params.append(set())
                    fresh.append(False)
                roots = self.roots_of(value)
                params[i] |= {root.param for root in roots if root.param is not None}
                fresh[i] |= any(root.param is None for root in roots)
        return tuple(Returned(tuple(sorted(p)), f) for p, f in zip(params, fresh, strict=True))

    def _collect(self) -> None:
        for i, param in enumerate(self.function.params):
            for slot in _slots(param.var):
                self._new_root(RootKind.PARAM, slot, i)
        for stmt in walk(self.function.body):
            match stmt:
                case Assign():
                    for slot in _slots(stmt.var):
                        self._bind(slot, stmt.value)
                case For() | While():
                    yielded = yields_of(stmt.body)
                    self._join(stmt.iter_args, stmt.inits)
                    self._join(stmt.iter_args, yielded)
                    self._join(stmt.results, stmt.inits)
                    self._join(stmt.results, yielded)
                case If():
                    self._join(stmt.results, yields_of(stmt.then))
                    self._join(stmt.results, yields_of(stmt.orelse))

    def _join(self, targets: tuple[Var, ...], values: tuple[Expr, ...]) -> None:
        for target, value in zip(targets, values, strict=False):
            for slot in _slots(target):
                self._bind(slot, value)

    def _bind(self, slot: _Slot, value: Expr) -> None:
        sources, fresh = self._sources(value, slot[1])
        for source in sources:
            self._flows_to.setdefault(source, []).append(slot)
        if fresh is not None:
            self._new_root(fresh, slot)

    def _new_root(self, kind: RootKind, slot: _Slot, param: int | None = None) -> None:
        root = Root(len(self.roots), kind, slot[0], param)
        self.roots.append(root)
        self._of_slot.setdefault(slot, set()).add(root)

    def _sources(self, value: Expr, index: int) -> tuple[list[_Slot], RootKind | None]:
        """The slots that element `index` of a value comes from, and the kind of new buffer it
        may be instead."""
        slots: list[_Slot] = []
        fresh: RootKind | None = None
        pending: list[tuple[Expr, int]] = [(value, index)]
        while pending:
            expr, i = pending.pop()
            match expr:
                case Var():
                    slots.append((expr, i))
                case TupleItem():
                    pending.append((expr.value, expr.index))
                case TupleExpr():
                    pending.append((expr.items[i], 0))
                case Call():
                    passed, made = _passed_by_op(expr)
                    pending.extend((arg, 0) for arg in passed)
                    fresh = fresh or made
                case FunctionCall() | Submit():
                    passed, made = self._passed_by_function(expr, i)
                    pending.extend((arg, 0) for arg in passed)
                    fresh = fresh or made
        return slots, fresh

    def _passed_by_function(
        self, call: FunctionCall | Submit, result: int
    ) -> tuple[tuple[Expr, ...], RootKind | None]:
        returned = self._returned.get(call.name)
        if returned is None or result >= len(returned):
            return _tensors(call.args), RootKind.CALL
        known = returned[result]
        args = tuple(call.args[i] for i in known.params if i < len(call.args))
        return args, RootKind.CALL if known.fresh or not args else None

    def _propagate(self) -> None:
        pending = deque(self._of_slot)
        while pending:
            slot = pending.popleft()
            known = self._of_slot[slot]
            for target in self._flows_to.get(slot, ()):
                there = self._of_slot.setdefault(target, set())
                if not known <= there:
                    there |= known
                    pending.append(target)


def provenance_of(function: Function, program: Program | None = None) -> Provenance:
    """The provenance of a function's tensor handles.

    Args:
        program: where the functions that it calls are looked up. The result of a call of an
            unknown, external or recursive function may be any of its tensor arguments or new.
    """
    returned: dict[str, tuple[Returned, ...] | None] = {}
    for callee in callees_first(function, program):
        if callee is not function:
            known = callee.external_source is None and callee.body
            returned[callee.name] = Provenance(callee, returned).returned() if known else None
    return Provenance(function, returned)


def callees_first(function: Function, program: Program | None) -> list[Function]:
    """The functions that a function reaches by calls, callees before callers, itself last.

    On a cycle of calls the order is that of a depth-first search.
    """
    if program is None:
        return [function]
    by_name = {f.name: f for f in program.functions}
    order: list[Function] = []
    seen: set[str] = set()
    stack: list[tuple[Function, bool]] = [(function, False)]
    while stack:
        at, done = stack.pop()
        if done:
            order.append(at)
        elif at.name not in seen:
            seen.add(at.name)
            stack.append((at, True))
            stack.extend((by_name[n], False) for n in _called_names(at) if n in by_name)
    return order


def aliased_operand(call: Call) -> int | None:
    """The index of the operand whose buffer a tensor-valued operator result is, if it is one.

    Views and transposes alias operand 0, in-place operators the operand that they declare.
    """
    decl = lookup(call.op)
    if decl is None or not isinstance(call.type, TensorType):
        return None
    index = decl.reuses_input
    if index is None and (decl.inherits_memory or decl.family == "transpose"):
        index = 0
    if index is None or index >= len(call.args):
        return None
    return index if isinstance(call.args[index].type, TensorType) else None


def _passed_by_op(call: Call) -> tuple[tuple[Expr, ...], RootKind | None]:
    decl = lookup(call.op)
    if decl is None:
        return _tensors(call.args), RootKind.CALL
    alias = aliased_operand(call)
    if alias is not None:
        return (call.args[alias],), None
    return (), RootKind.CREATE if decl.family == "create" else RootKind.VALUE


def _called_names(function: Function) -> list[str]:
    names: dict[str, None] = {}
    for stmt in walk(function.body):
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                if isinstance(part, FunctionCall | Submit):
                    names[part.name] = None
    return list(names)


def _slots(var: Var) -> tuple[_Slot, ...]:
    return tuple((var, i) for i in _tensor_items(var.type))


def _tensor_items(type_: Type) -> tuple[int, ...]:
    match type_:
        case TensorType():
            return (0,)
        case TupleType():
            return tuple(i for i, item in enumerate(type_.items) if isinstance(item, TensorType))
        case _:
            return ()


def _tensors(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(arg for arg in args if isinstance(arg.type, TensorType))
