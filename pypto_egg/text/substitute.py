"""Replacing scalar variables inside types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pypto_egg.ir.expr import BinOp, Cast, Expr, UnOp, Var, as_dim
from pypto_egg.ir.types import TensorType, TileType, TupleType, Type, tensor_type, tile_type

Dim = int | Expr


def substitute_type(kind: Type, mapping: Mapping[Var, Expr]) -> Type:
    """The type with the variables of its dimensions replaced."""
    if not mapping:
        return kind
    match kind:
        case TensorType():
            view = kind.view
            if view is not None:
                valid = None if view.valid_shape is None else _dims(view.valid_shape, mapping)
                view = replace(view, valid_shape=valid, stride=_dims(view.stride, mapping))
            return tensor_type(
                _dims(kind.shape, mapping), kind.dtype, view, kind.memref, kind.distributed
            )
        case TileType():
            tile_view = kind.view
            if tile_view is not None:
                seen = tile_view.valid_shape
                valid = None if seen is None else _dims(seen, mapping)
                stride = _dims(tile_view.stride, mapping)
                tile_view = replace(tile_view, valid_shape=valid, stride=stride)
            return tile_type(
                _dims(kind.shape, mapping), kind.dtype, kind.space, tile_view, kind.memref
            )
        case TupleType():
            return TupleType(tuple(substitute_type(item, mapping) for item in kind.items))
    return kind


def _dims(dims: tuple[Dim, ...], mapping: Mapping[Var, Expr]) -> tuple[Dim, ...]:
    return tuple(dim if isinstance(dim, int) else as_dim(_substitute(dim, mapping)) for dim in dims)


def _substitute(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    match expr:
        case Var():
            return mapping.get(expr, expr)
        case BinOp():
            return replace(
                expr, lhs=_substitute(expr.lhs, mapping), rhs=_substitute(expr.rhs, mapping)
            )
        case UnOp() | Cast():
            return replace(expr, operand=_substitute(expr.operand, mapping))
    return expr
