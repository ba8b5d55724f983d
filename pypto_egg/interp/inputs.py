"""Random inputs for a function, reproducible from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import numpy as np

from pypto_egg.errors import InterpretError
from pypto_egg.interp.numbers import convert
from pypto_egg.interp.poison import numpy_dtype
from pypto_egg.interp.scalars import dimension
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import Direction
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, Var
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, For, While
from pypto_egg.ir.types import ScalarType, TensorType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk

DEFAULT_SYMBOL = 64
MAX_SCALAR = 4
SMALL_INT = 8
INDEX_RANGE = 4

_VIEWS = ("slice", "reshape", "load", "view", "set_validshape", "move", "cast", "transpose")
_POSITIVE_DOMAIN = ("sqrt", "rsqrt", "log")


def random_inputs(
    function: Function,
    *,
    seed: int = 0,
    symbols: Mapping[str, int] | None = None,
    program: Program | None = None,
) -> dict[str, np.ndarray | int | float | bool]:
    """Arrays and scalars for every In and InOut parameter of a function.

    Floats are uniform in [-1, 1), or in [0.25, 1.25) if the code takes roots or logarithms.
    Integers lie in -8..7 (unsigned: 0..7). Tensors used as element or row numbers lie in 0..3,
    and are distinct where they say what to overwrite. Integer scalars lie in 1..4.

    Args:
        symbols: extents of symbols by name; 64 where none is given.
        program: the program of `function`; with it, functions that it calls are looked at too.

    Raises:
        InterpretError: a parameter's extents depend on something else than symbols and scalars.
    """
    source = np.random.default_rng(seed)
    uses = ParameterUses(program.functions if program is not None else (function,))
    known: dict[Var, int] = {}
    made: dict[str, np.ndarray | int | float | bool] = {}
    wanted = [p for p in function.params if p.direction is not Direction.Out]
    for param in wanted:
        kind = param.var.type
        if isinstance(kind, ScalarType):
            value = _scalar(source, kind.dtype)
            made[param.var.name] = value
            known[param.var] = int(value)
    for param in wanted:
        kind = param.var.type
        if isinstance(kind, TensorType):
            shape = _shape(param, kind, known, symbols or {})
            made[param.var.name] = _array(source, shape, kind.dtype, uses.of(param.var))
    return {p.var.name: made[p.var.name] for p in wanted if p.var.name in made}


def _scalar(source: np.random.Generator, dtype: DType) -> int | float | bool:
    if dtype.kind == "bool":
        return bool(source.integers(0, 2))
    if dtype.is_float:
        return float(convert(np.asarray(source.uniform(-1, 1), np.float32), dtype))
    return int(source.integers(1, MAX_SCALAR + 1))


def _shape(
    param: Param, kind: TensorType, known: dict[Var, int], symbols: Mapping[str, int]
) -> tuple[int, ...]:
    def leaf(expr: Expr) -> object:
        if isinstance(expr, Var):
            if expr not in known:
                known[expr] = symbols.get(expr.name, DEFAULT_SYMBOL)
            return known[expr]
        raise InterpretError(f"an extent of parameter '{param.var.name}' cannot be evaluated")

    return tuple(dimension(dim, leaf) for dim in kind.shape)


def _array(
    source: np.random.Generator, shape: tuple[int, ...], dtype: DType, use: Use
) -> np.ndarray:
    stored = numpy_dtype(dtype)
    if dtype.kind == "bool":
        return source.integers(0, 2, size=shape).astype(np.bool_)
    if dtype.name == "FP8E8M0":
        return np.exp2(source.integers(-2, 3, size=shape).astype(np.float32)).astype(stored)
    if dtype.is_float:
        low = 0.25 if use is Use.POSITIVE else -1.0
        high = 1.25 if use is Use.POSITIVE else 1.0
        return source.uniform(low, high, size=shape).astype(np.float32).astype(stored)
    if use is Use.COLUMNS:
        return np.argsort(source.random(size=shape), axis=-1).astype(stored)
    if use is Use.ROWS:
        return source.permutation(int(np.prod(shape))).reshape(shape).astype(stored)
    if use is Use.INDEX:
        return source.integers(0, INDEX_RANGE, size=shape).astype(stored)
    low_int = -SMALL_INT if dtype.is_signed else 0
    return source.integers(low_int, SMALL_INT, size=shape).astype(stored)


class Use(Enum):
    """What a parameter's elements have to be like for a run to mean something."""

    DATA = "any data"
    POSITIVE = "data under roots and logarithms"
    INDEX = "numbers of elements or rows that are read"
    COLUMNS = "distinct numbers along the last axis"
    ROWS = "numbers that are all distinct"


# Operand positions that hold element or row numbers.
_INDEX_OPERANDS: dict[str, tuple[tuple[int, Use], ...]] = {
    "tensor.gather": ((1, Use.INDEX),),
    "tile.gather": ((1, Use.INDEX),),
    "tensor.scatter": ((1, Use.COLUMNS),),
    "tile.scatter": ((2, Use.ROWS),),
    "tensor.scatter_update": ((1, Use.ROWS),),
    "tile.scatter_update": ((1, Use.ROWS),),
    "tensor.paged_gather": ((1, Use.INDEX), (2, Use.INDEX)),
    "tile.mgather": ((1, Use.INDEX),),
    "tile.mscatter": ((1, Use.ROWS),),
}


class ParameterUses:
    """How the parameters of functions are used, also through the functions that they call."""

    def __init__(self, functions: tuple[Function, ...]) -> None:
        self._functions = {function.name: function for function in functions}
        self._roots: dict[Var, Var] = {}
        self._direct: dict[Var, Use] = {}
        self._passed: dict[Var, list[Var]] = {}
        self._positive = False
        for function in functions:
            self._scan(function)

    def of(self, param: Var) -> Use:
        """The use of a parameter, or of the parameters that it is passed on to."""
        pending, seen = [param], {param}
        while pending:
            var = pending.pop()
            if var in self._direct:
                return self._direct[var]
            fresh = [v for v in self._passed.get(var, []) if v not in seen]
            seen.update(fresh)
            pending.extend(reversed(fresh))
        return Use.POSITIVE if self._positive else Use.DATA

    def _scan(self, function: Function) -> None:
        for param in function.params:
            self._roots[param.var] = param.var
        for stmt in walk(function.body):
            if isinstance(stmt, For | While):
                for carried, init in zip(stmt.iter_args, stmt.inits, strict=True):
                    self._follow(carried, init)
            for expr in expressions_of(stmt):
                for node in subexpressions(expr):
                    self._note(node)
            if isinstance(stmt, Assign):
                self._follow(stmt.var, stmt.value)

    def _root(self, value: Expr) -> Var | None:
        return self._roots.get(value) if isinstance(value, Var) else None

    def _follow(self, var: Var, value: Expr) -> None:
        """A view of a parameter has the parameter's elements."""
        if isinstance(value, Call) and value.op.split(".")[-1] in _VIEWS and value.args:
            value = value.args[0]
        root = self._root(value)
        if root is not None:
            self._roots[var] = root

    def _note(self, node: Expr) -> None:
        if isinstance(node, FunctionCall | Submit) and node.name in self._functions:
            callee = self._functions[node.name]
            for arg, param in zip(node.args, callee.params, strict=False):
                root = self._root(arg)
                if root is not None:
                    self._passed.setdefault(root, []).append(param.var)
        if not isinstance(node, Call):
            return
        self._positive |= node.op.split(".")[-1] in _POSITIVE_DOMAIN
        for position, use in _INDEX_OPERANDS.get(node.op, ()):
            root = self._root(node.args[position])
            if root is not None:
                self._direct[root] = use
