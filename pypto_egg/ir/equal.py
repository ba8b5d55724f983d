"""Structural equality: the same program up to names, spans and comments.

Variables match by position: the variable that one side defines or first uses at a place stands
for the one that the other side has there, one to one (PyPTO language reference, names).
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import Enum

from pypto_egg.ir.dtype import DType
from pypto_egg.ir.expr import Call, ConstInt, Expr, FunctionCall, Submit, Var
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Stmt

# Fields that say how something was written, not what it is.
_IGNORED = frozenset({"span", "comments"})
# Lists of named values whose order carries no meaning.
_NAMED = frozenset({"kwargs", "attrs"})


def structurally_equal(a: Program | Function, b: Program | Function) -> bool:
    """Whether two programs or functions are the same up to names, spans and comments.

    The names of variables, of the program and of a bare function do not count. Functions of a
    program are matched by name, since calls refer to them by name; their order does not count.
    """
    return first_difference(a, b) is None


def first_difference(a: Program | Function, b: Program | Function) -> str | None:
    """Where and how two programs or functions first differ, or None if they are the same.

    For example `main.body[2].value.args[1]: 64 against 32`.
    """
    if isinstance(a, Program) and isinstance(b, Program):
        return _programs(a, b)
    if isinstance(a, Function) and isinstance(b, Function):
        return _Matcher().compare(a, b, a.name)
    return f"{type(a).__name__} against {type(b).__name__}"


def _programs(a: Program, b: Program) -> str | None:
    ours = {function.name: function for function in a.functions}
    theirs = {function.name: function for function in b.functions}
    for name in ours:
        if name not in theirs:
            return f"function {name}: only in the first program"
    for name in theirs:
        if name not in ours:
            return f"function {name}: only in the second program"
    # Symbols such as pl.dynamic("M") belong to the program, so one matcher serves all functions.
    matcher = _Matcher()
    differences = (matcher.compare(ours[name], theirs[name], name) for name in ours)
    return next((difference for difference in differences if difference is not None), None)


class _Matcher:
    """Compares trees of IR objects with an explicit stack and pairs variables as they occur."""

    def __init__(self) -> None:
        self._pair: dict[Var, Var] = {}
        self._back: dict[Var, Var] = {}
        self._pending: list[tuple[object, object, str]] = []

    def compare(self, a: Function, b: Function, path: str) -> str | None:
        self._pending = []
        self._push_fields(a, b, path, skip=frozenset({"name"}))
        while self._pending:
            left, right, where = self._pending.pop()
            problem = self._step(left, right, where)
            if problem is not None:
                return problem
        return None

    def _step(self, a: object, b: object, path: str) -> str | None:
        if isinstance(a, Var) and isinstance(b, Var):
            return self._match(a, b, path)
        if type(a) is not type(b):
            return _against(a, b, path)
        if isinstance(a, tuple | list):
            assert isinstance(b, tuple | list)
            return self._push_items(a, b, path)
        if isinstance(a, dict):
            assert isinstance(b, dict)
            return self._push_named(tuple(a.items()), tuple(b.items()), path)
        if is_dataclass(a) and not isinstance(a, DType):
            return self._push_node(a, b, path)
        return None if _same_value(a, b) else _against(a, b, path)

    def _match(self, a: Var, b: Var, path: str) -> str | None:
        known = self._pair.get(a)
        if known is b:
            return None
        if known is not None or b in self._back:
            return f"{path}: variable {a.name} against {b.name}, which stands for another one"
        self._pair[a] = b
        self._back[b] = a
        self._pending.append((a.type, b.type, f"{path}.type"))
        return None

    def _push_node(self, a: object, b: object, path: str) -> str | None:
        if isinstance(a, Call | FunctionCall | Submit) and isinstance(b, type(a)):
            name = "op" if isinstance(a, Call) else "name"
            ours, theirs = getattr(a, name), getattr(b, name)
            if ours != theirs:
                return f"{path}: call of {ours} against {theirs}"
        self._push_fields(a, b, path)
        return None

    def _push_fields(
        self, a: object, b: object, path: str, skip: frozenset[str] = frozenset()
    ) -> None:
        assert is_dataclass(a)
        for field in reversed(fields(a)):
            if field.name in _IGNORED or field.name in skip:
                continue
            ours, theirs = getattr(a, field.name), getattr(b, field.name)
            if field.name in _NAMED:
                ours, theirs = dict(ours), dict(theirs)
            self._pending.append((ours, theirs, f"{path}.{field.name}"))

    def _push_items(
        self, a: tuple[object, ...] | list[object], b: tuple[object, ...] | list[object], path: str
    ) -> str | None:
        if len(a) != len(b):
            longer, at = (a, len(b)) if len(a) > len(b) else (b, len(a))
            more = f", where only one side has {_shown(longer[at])}"
            return f"{path}: {len(a)} against {len(b)} items{more}"
        for i in reversed(range(len(a))):
            self._pending.append((a[i], b[i], f"{path}[{i}]"))
        return None

    def _push_named(
        self, a: tuple[tuple[object, object], ...], b: tuple[tuple[object, object], ...], path: str
    ) -> str | None:
        theirs = dict(b)
        missing = [key for key, _ in a if key not in theirs]
        added = [key for key, _ in b if key not in dict(a)]
        for key in (*missing, *added):
            return f"{path}.{key}: only on one side"
        for key, value in reversed(a):
            self._pending.append((value, theirs[key], f"{path}.{key}"))
        return None


def _same_value(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        both_nan = math.isnan(a) and math.isnan(b)
        return both_nan or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))
    return a == b


def _against(a: object, b: object, path: str) -> str:
    return f"{path}: {_shown(a)} against {_shown(b)}"


def _shown(value: object) -> str:
    match value:
        case Var():
            return f"variable {value.name}"
        case ConstInt():
            return str(value.value)
        case Call():
            return f"a call of {value.op}"
        case Stmt() | Expr():
            return type(value).__name__
        case Enum():
            return str(value)
        case _:
            return repr(value)
