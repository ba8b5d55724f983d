"""Subscripts: element reads, slices, tuple items, and assignment to a window.

PyPTO language reference, 12.1.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pypto_egg.ir.expr import ConstInt, Expr, TupleExpr, TupleItem, as_expr
from pypto_egg.ir.fold import dim_sub
from pypto_egg.ir.types import ArrayType, ScalarType, TensorType, TileType, TupleType
from pypto_egg.ops import registry
from pypto_egg.text import read_expr
from pypto_egg.text.reader import Reader
from pypto_egg.text.write_type import print_type


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets and extents for every axis; `scalar_axes` are those indexed by one number."""

    offsets: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    scalar_axes: tuple[int, ...]

    @property
    def is_element(self) -> bool:
        return len(self.scalar_axes) == len(self.offsets)


def read_subscript(reader: Reader, node: ast.Subscript) -> Expr:
    """The value of `owner[...]`."""
    owner = read_expr.read_expr(reader, node.value)
    match owner.type:
        case TupleType() as kind:
            return TupleItem(owner, _item_index(reader, node, kind))
        case ArrayType():
            index = read_expr.read_index(reader, node.slice)
            return registry.make_call("array.get_element", (owner, index), span=reader.span(node))
        case TensorType() | TileType() as shaped:
            return _read_window(reader, node, owner, shaped)
    raise reader.mismatch(
        node, f"a value of type {print_type(owner.type)} has no elements to index"
    )


def _item_index(reader: Reader, node: ast.Subscript, kind: TupleType) -> int:
    index = read_expr.read_value(reader, node.slice)
    if isinstance(index, bool) or not isinstance(index, int):
        raise reader.fault(node, "the index of a tuple value must be an integer literal")
    if not 0 <= index < len(kind.items):
        raise reader.fault(
            node, f"the tuple has {len(kind.items)} elements, there is no element {index}"
        )
    return index


def _read_window(
    reader: Reader, node: ast.Subscript, owner: Expr, kind: TensorType | TileType
) -> Expr:
    space = "tensor" if isinstance(kind, TensorType) else "tile"
    window = read_window(reader, node.slice, kind)
    span = reader.span(node)
    if window.is_element and kind.rank > 0:
        return registry.make_call(f"{space}.read", (owner, TupleExpr(window.offsets)), span=span)
    args: tuple[Expr, ...] = (owner, TupleExpr(window.extents), TupleExpr(window.offsets))
    if window.scalar_axes:
        dropped = TupleExpr(tuple(ConstInt(axis) for axis in window.scalar_axes))
        args = (*args, TupleExpr(()), dropped)
    return registry.make_call(f"{space}.slice", args, span=span)


def read_window(reader: Reader, index: ast.expr, kind: TensorType | TileType) -> Window:
    """The window of a shaped value that an index spells; missing axes are taken whole."""
    entries = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    if len(entries) > kind.rank:
        raise reader.fault(index, f"{len(entries)} indices for a value of rank {kind.rank}")
    offsets: list[Expr] = []
    extents: list[Expr] = []
    scalar_axes: list[int] = []
    for axis, dim in enumerate(kind.shape):
        entry = entries[axis] if axis < len(entries) else ast.Slice()
        if isinstance(entry, ast.Slice):
            low, extent = _slice(reader, entry, dim)
        else:
            low, extent = read_expr.read_index(reader, entry), as_expr(1)
            scalar_axes.append(axis)
        if isinstance(low, ConstInt) and low.value < 0:
            raise reader.fault(
                entry, f"the index {low.value} is negative; indices count from the start"
            )
        offsets.append(low)
        extents.append(extent)
    return Window(tuple(offsets), tuple(extents), tuple(scalar_axes))


def _slice(reader: Reader, entry: ast.Slice, dim: int | Expr) -> tuple[Expr, Expr]:
    if entry.step is not None:
        raise reader.fault(entry.step, "a slice with a step is not part of the language")
    low = as_expr(0) if entry.lower is None else read_expr.read_index(reader, entry.lower)
    high = as_expr(dim) if entry.upper is None else read_expr.read_index(reader, entry.upper)
    return low, as_expr(dim_sub(high, low))


def assign_window(reader: Reader, target: ast.Subscript, source: Expr) -> Expr:
    """The new value of the target's owner after `owner[...] = source`."""
    owner = read_expr.read_expr(reader, target.value)
    kind = owner.type
    span = reader.span(target)
    if isinstance(kind, ArrayType):
        index = read_expr.read_index(reader, target.slice)
        args = (owner, index, source)
        return registry.make_call("array.update_element", args, span=span)
    if not isinstance(kind, TensorType | TileType):
        raise reader.mismatch(
            target, f"a value of type {print_type(kind)} has no window to assign to"
        )
    window = read_window(reader, target.slice, kind)
    if window.is_element or isinstance(source.type, ScalarType):
        name = ast.unparse(target.value)
        raise reader.fault(
            target,
            "one element cannot be assigned by a subscript",
            f"use pl.write({name}, [...], value)",
        )
    space = "tensor" if isinstance(kind, TensorType) else "tile"
    if window.scalar_axes:
        flat = (source, TupleExpr(window.extents))
        source = registry.make_call(f"{space}.reshape", flat, span=span)
    args = (owner, source, TupleExpr(window.offsets))
    return registry.make_call(f"{space}.assemble", args, span=span)
