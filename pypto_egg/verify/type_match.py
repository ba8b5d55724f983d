"""How two types differ, in words; None where they agree as far as it matters."""

from __future__ import annotations

from dataclasses import replace

from pypto_egg.ir.fold import Dim, provably_unequal, same_dims
from pypto_egg.ir.types import ScalarType, TensorType, TileType, TupleType, Type
from pypto_egg.ops.site import show_shape


def kind_mismatch(found: Type, wanted: Type) -> str | None:
    """How kind, dtype, rank or static extents of `found` differ, as "dtype X instead of Y".

    Integer scalars are interchangeable, and so are plain and distributed tensors. A symbolic
    extent may be any number. (PyPTO language reference, annotation check.)
    """
    match found, wanted:
        case ScalarType(), ScalarType():
            both_int = found.dtype.is_int and wanted.dtype.is_int
            return None if both_int else _differ("dtype", found.dtype, wanted.dtype)
        case TensorType(), TensorType():
            return _shape_mismatch(found, wanted)
        case TileType(), TileType():
            return _shape_mismatch(found, wanted)
        case TupleType(), TupleType():
            return _items_mismatch(found, wanted)
        case _ if type(found) is type(wanted):
            return None if found == wanted else f"type {found} instead of {wanted}"
    return f"type {_name(found)} instead of {_name(wanted)}"


def full_mismatch(found: Type, wanted: Type, *, valid: bool = True) -> str | None:
    """Like `kind_mismatch`, and in memory space, layout and valid extents; buffers do not count.

    Args:
        valid: False to leave the valid extents (and compactness, which follows from them) out.
    """
    problem = kind_mismatch(found, wanted)
    if problem is not None:
        return problem
    match found, wanted:
        case TileType(), TileType():
            return _tile_mismatch(found, wanted, valid)
        case TensorType(), TensorType():
            return _tensor_mismatch(found, wanted)
        case TupleType(), TupleType():
            pairs = zip(found.items, wanted.items, strict=True)
            problems = (full_mismatch(a, b, valid=valid) for a, b in pairs)
            return next((problem for problem in problems if problem is not None), None)
        case ScalarType(), ScalarType():
            return _differ("dtype", found.dtype, wanted.dtype)
        case _:
            return None


def _shape_mismatch(found: TensorType | TileType, wanted: TensorType | TileType) -> str | None:
    if found.dtype != wanted.dtype:
        return _differ("dtype", found.dtype, wanted.dtype)
    unequal = found.rank != wanted.rank or any(map(provably_unequal, found.shape, wanted.shape))
    return _shapes("shape", found.shape, wanted.shape) if unequal else None


def _items_mismatch(found: TupleType, wanted: TupleType) -> str | None:
    if len(found.items) != len(wanted.items):
        return f"{len(found.items)} elements instead of the {len(wanted.items)}"
    problems = (kind_mismatch(a, b) for a, b in zip(found.items, wanted.items, strict=True))
    return next((problem for problem in problems if problem is not None), None)


def _tile_mismatch(found: TileType, wanted: TileType, valid: bool) -> str | None:
    if not same_dims(found.shape, wanted.shape):
        return _shapes("shape", found.shape, wanted.shape)
    if found.space is not wanted.space and found.space is not None and wanted.space is not None:
        return f"memory space {found.space.value} instead of the {wanted.space.value}"
    if valid and not same_dims(found.valid_shape, wanted.valid_shape):
        return _shapes("valid shape", found.valid_shape, wanted.valid_shape)
    # A space that is not decided yet implies no layout either.
    if found.space is not wanted.space:
        return None
    ours, theirs = replace(found.layout, valid_shape=None), replace(wanted.layout, valid_shape=None)
    if not valid:
        ours = replace(ours, compact=theirs.compact)
    return None if ours == theirs else f"layout {ours} instead of the {theirs}"


def _tensor_mismatch(found: TensorType, wanted: TensorType) -> str | None:
    if not same_dims(found.shape, wanted.shape):
        return _shapes("shape", found.shape, wanted.shape)
    if not same_dims(found.valid_shape, wanted.valid_shape):
        return _shapes("valid shape", found.valid_shape, wanted.valid_shape)
    if found.layout is not wanted.layout:
        return f"layout {found.layout.value} instead of the {wanted.layout.value}"
    ours = found.view.stride if found.view is not None else ()
    theirs = wanted.view.stride if wanted.view is not None else ()
    return None if same_dims(ours, theirs) else _shapes("strides", ours, theirs)


def _differ(what: str, found: object, wanted: object) -> str | None:
    return None if found == wanted else f"{what} {found} instead of the {wanted}"


def _shapes(what: str, found: tuple[Dim, ...], wanted: tuple[Dim, ...]) -> str:
    return f"{what} {show_shape(found)} instead of the {show_shape(wanted)}"


def _name(type_: Type) -> str:
    return type(type_).__name__.removesuffix("Type")
