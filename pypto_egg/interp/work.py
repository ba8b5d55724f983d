"""Estimates made without running: how much a run costs, how long reductions get."""

from __future__ import annotations

from math import prod

from pypto_egg.errors import InterpretError
from pypto_egg.interp.run import entry_function
from pypto_egg.interp.scalars import evaluate
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Block, For, Scope, Stmt, While
from pypto_egg.ir.types import TensorType, TileType, TupleType, Type
from pypto_egg.ir.visit import blocks_of, expressions_of, subexpressions

UNKNOWN_TRIPS = 8
UNKNOWN_EXTENT = 64


def _known(expr: int | Expr) -> int | None:
    """The value of a constant expression, or None."""

    def unknown(leaf: Expr) -> object:
        raise InterpretError(f"{leaf} is not constant")

    if isinstance(expr, int):
        return expr
    try:
        value = evaluate(expr, unknown)
    except InterpretError:
        return None
    return int(value) if isinstance(value, int | float) else None


def trips(stmt: Stmt) -> int:
    """How often a statement runs its body; 8 where that is not known."""
    match stmt:
        case For():
            start, stop, step = (_known(e) for e in (stmt.start, stmt.stop, stmt.step))
            if start is None or stop is None or not step:
                return UNKNOWN_TRIPS
            return len(range(start, stop, step))
        case While():
            return UNKNOWN_TRIPS
        case Scope(kind="spmd" | "split_aiv"):
            width = stmt.args[0] if stmt.args else dict(stmt.kwargs).get("core_num", 1)
            known = _known(width) if isinstance(width, int | Expr) else None
            return UNKNOWN_TRIPS if known is None else known
        case _:
            return 1


def _weighted(block: Block) -> list[tuple[Expr, int]]:
    """Every expression under a block with the number of times it is evaluated."""
    found: list[tuple[Expr, int]] = []
    stack = [(stmt, 1) for stmt in reversed(block)]
    while stack:
        stmt, times = stack.pop()
        inner = times * trips(stmt)
        for expr in expressions_of(stmt):
            found.extend((node, times) for node in subexpressions(expr))
        for _, nested in reversed(blocks_of(stmt)):
            stack.extend((child, inner) for child in reversed(nested))
    return found


def _elems(kind: Type) -> int:
    if isinstance(kind, TupleType):
        return sum(_elems(item) for item in kind.items)
    if not isinstance(kind, TensorType | TileType):
        return 1
    extents = (_known(dim) for dim in kind.shape)
    return max(1, prod(UNKNOWN_EXTENT if e is None else e for e in extents))


def _inner_extent(call: Call) -> int:
    """K of a product; 1 for other operators."""
    name = call.op.split(".")[-1]
    if "matmul" not in name and "gemv" not in name:
        return 1
    position = 1 if "_acc" in name else 0
    kind = call.args[position].type
    if not isinstance(kind, TensorType | TileType) or not kind.shape:
        return 1
    axis = -2 if call.kwarg("a_trans", False) and len(kind.shape) > 1 else -1
    known = _known(kind.shape[axis])
    return UNKNOWN_EXTENT if known is None else known


def _cost(call: Call) -> int:
    moved = sum(_elems(arg.type) for arg in call.args if not _is_tuple(arg))
    # A store or a scalar access touches its window, not the whole tensor it names.
    if call.op in ("tile.store", "tensor.read", "tensor.write", "tile.load"):
        tiles = [_elems(k) for k in (call.result_type, *(a.type for a in call.args)) if _tile(k)]
        return max(tiles, default=1)
    return moved + _elems(call.result_type) * _inner_extent(call)


def _is_tuple(expr: Expr) -> bool:
    return isinstance(expr.type, TupleType)


def _tile(kind: Type) -> bool:
    return isinstance(kind, TileType)


def work(program: Program, *, function: str | None = None) -> int:
    """An upper estimate of the scalar operations of a run.

    Loops multiply; unknown trip counts count as 8, unknown extents as 64; both arms of a branch
    count.
    """
    bodies = {f.name: _weighted(f.body) for f in program.functions}
    totals: dict[str, int] = {}

    def total(name: str, active: tuple[str, ...]) -> int:
        if name in totals or name in active or name not in bodies:
            return totals.get(name, 0)
        cost = 0
        for node, times in bodies[name]:
            if isinstance(node, Call):
                cost += times * _cost(node)
            elif isinstance(node, FunctionCall | Submit):
                cost += times * _blocks(program, node) * total(node.name, (*active, name))
        totals[name] = cost
        return cost

    return total(entry_function(program, function).name, ())


def input_elements(function: Function) -> int:
    """The elements of all parameters; unknown extents count as 64."""
    return sum(_elems(param.var.type) for param in function.params)


def _blocks(program: Program, call: FunctionCall | Submit) -> int:
    stated = {**dict(call.attrs), **dict(call.kwargs)}.get("core_num")
    if stated is None:
        callees = (f for f in program.functions if f.name == call.name)
        stated = next((callee.attr("core_num") for callee in callees), None)
    if stated is None:
        return 1
    known = _known(stated) if isinstance(stated, int | Expr) else None
    return UNKNOWN_TRIPS if known is None else known


def longest_reduction(program: Program) -> int:
    """The most terms that one element may sum: K or a reduced extent, times the loops around."""
    longest = 1
    for function in program.functions:
        for node, times in _weighted(function.body):
            if not isinstance(node, Call):
                continue
            name = node.op.split(".")[-1]
            if "_acc" in name or "matmul" in name:
                longest = max(longest, _inner_extent(node) * times)
            elif name in ("row_sum", "col_sum", "row_prod", "col_prod", "adds", "add"):
                reduced = _elems(node.args[0].type) // max(1, _elems(node.result_type))
                longest = max(longest, reduced * times)
    return longest
