"""Random inputs for a function, reproducible from a seed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pypto_egg.errors import InterpretError
from pypto_egg.interp.numbers import convert
from pypto_egg.interp.poison import numpy_dtype
from pypto_egg.interp.scalars import dimension
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import Direction
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit, Var
from pypto_egg.ir.program import Function, Param
from pypto_egg.ir.stmt import Assign, For, While
from pypto_egg.ir.types import ScalarType, TensorType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk

DEFAULT_SYMBOL = 64
MAX_SCALAR = 4
SMALL_INT = 8

# Operand positions that hold element or row numbers.
_INDEX_OPERANDS: dict[str, tuple[int, ...]] = {
    "tensor.gather": (1,),
    "tile.gather": (1,),
    "tensor.scatter": (1,),
    "tile.scatter": (2,),
    "tensor.scatter_update": (1,),
    "tile.scatter_update": (1,),
    "tensor.paged_gather": (1, 2),
    "tile.mgather": (1,),
    "tile.mscatter": (1,),
}
_INDEX_RANGE = 4
_VIEWS = ("slice", "reshape", "load", "view", "set_validshape", "move", "cast", "transpose")


def random_inputs(
    function: Function, *, seed: int = 0, symbols: Mapping[str, int] | None = None
) -> dict[str, np.ndarray | int | float | bool]:
    """Arrays and scalars for every In and InOut parameter of a function.

    Floats are uniform in [-1, 1); integers lie in -8..7 (unsigned 0..7), but tensors that may
    serve as indices (an index operand, or an argument of a call) in 0..3, distinct along the
    last axis where they are scattered to; integer scalars lie in 1..4.

    Args:
        symbols: extents of symbols by name; 64 where none is given.

    Raises:
        InterpretError: a parameter's extents depend on something else than symbols and scalars.
    """
    source = np.random.default_rng(seed)
    known: dict[Var, int] = {}
    made: dict[str, np.ndarray | int | float | bool] = {}
    wanted = [p for p in function.params if p.direction is not Direction.Out]
    for param in wanted:
        kind = param.var.type
        if isinstance(kind, ScalarType):
            value = _scalar(source, kind.dtype)
            made[param.var.name] = value
            known[param.var] = int(value)
    numbers = _index_parameters(function)
    for param in wanted:
        kind = param.var.type
        if isinstance(kind, TensorType):
            shape = _shape(param, kind, known, symbols or {})
            role = numbers.get(param.var)
            made[param.var.name] = _array(source, shape, kind.dtype, role)
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
    source: np.random.Generator, shape: tuple[int, ...], dtype: DType, role: str | None
) -> np.ndarray:
    stored = numpy_dtype(dtype)
    if dtype.kind == "bool":
        return source.integers(0, 2, size=shape).astype(np.bool_)
    if dtype.name == "FP8E8M0":
        return np.exp2(source.integers(-2, 3, size=shape).astype(np.float32)).astype(stored)
    if dtype.is_float:
        return source.uniform(-1, 1, size=shape).astype(np.float32).astype(stored)
    if role == "distinct":
        return _distinct(source, shape).astype(stored)
    if role == "small":
        return source.integers(0, _INDEX_RANGE, size=shape).astype(stored)
    low = -SMALL_INT if dtype.is_signed else 0
    return source.integers(low, SMALL_INT, size=shape).astype(stored)


def _distinct(source: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers that differ along the last axis."""
    order = np.argsort(source.random(size=shape), axis=-1)
    return np.asarray(order)


def _index_parameters(function: Function) -> dict[Var, str]:
    """Parameters whose elements may be used as element or row numbers."""
    roots = {param.var: param.var for param in function.params}
    roles: dict[Var, str] = {}
    for stmt in walk(function.body):
        if isinstance(stmt, For | While):
            for carried, init in zip(stmt.iter_args, stmt.inits, strict=True):
                _follow(roots, carried, init)
        for expr in expressions_of(stmt):
            for node in subexpressions(expr):
                _note(node, roots, roles)
        if isinstance(stmt, Assign):
            _follow(roots, stmt.var, stmt.value)
    return roles


def _follow(roots: dict[Var, Var], var: Var, value: Expr) -> None:
    """A view of a parameter has the parameter's elements."""
    if isinstance(value, Call) and value.op.split(".")[-1] in _VIEWS and value.args:
        value = value.args[0]
    if isinstance(value, Var) and value in roots:
        roots[var] = roots[value]


def _note(node: Expr, roots: dict[Var, Var], roles: dict[Var, str]) -> None:
    if isinstance(node, FunctionCall | Submit):
        for arg in node.args:
            if isinstance(arg, Var) and arg in roots:
                roles.setdefault(roots[arg], "small")
    if not isinstance(node, Call):
        return
    for position in _INDEX_OPERANDS.get(node.op, ()):
        arg = node.args[position]
        if isinstance(arg, Var) and arg in roots:
            roles[roots[arg]] = "distinct" if "scatter" in node.op else "small"
