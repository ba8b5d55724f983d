"""What an annotation does to an assigned value (PyPTO language reference, 9).

Kind, dtype, rank and static dimensions must agree with what is inferred. Memory space, view and
MemRef are taken from the annotation where it spells them, from the inferred type where not.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from pypto_egg.ir.dtype import BOOL, INDEX, DType
from pypto_egg.ir.expr import Call, ConstInt, Expr, FunctionCall, as_expr
from pypto_egg.ir.types import (
    HandleType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
    tensor_type,
    tile_type,
)
from pypto_egg.ops.windows import fills_matrix
from pypto_egg.source import Span
from pypto_egg.text import read_expr, read_type
from pypto_egg.text.reader import Literal, Reader
from pypto_egg.text.write_type import print_type


def annotated(
    reader: Reader,
    annotation: ast.expr | None,
    node: ast.expr,
    value: Expr | Literal,
    name: str,
) -> tuple[Expr, Type]:
    """The value to assign and the type of the variable.

    Raises:
        TypeCheckError: the annotation contradicts the inferred type; names both.
    """
    if annotation is None:
        expr = as_expr(value)
        return expr, expr.type
    spelled = read_type.read_type(reader, annotation)
    if not isinstance(value, Expr):
        value = _literal(reader, node, value, spelled, name)
    if isinstance(value, ConstInt) and value.dtype == INDEX and _is_int(spelled):
        assert isinstance(spelled, ScalarType)
        value = read_expr.typed_constant(reader, node, value.value, spelled.dtype)
    if isinstance(value.type, UnknownType):
        return _declared(value, spelled)
    merged = _merged(reader, annotation, spelled, value, name)
    if isinstance(value, Call) and _flattened(spelled, value):
        value = replace(value, result_type=merged)
    return value, merged


def annotated_result(reader: Reader, annotation: ast.expr, value: Expr, name: str) -> Type:
    """The type of a loop or branch result: the annotation, if it fits what is yielded.

    Unlike at an assignment, nothing but a missing memory space comes from the yielded value: the
    result is a place of its own.
    """
    spelled = read_type.read_type(reader, annotation)
    if isinstance(value.type, UnknownType):
        return spelled
    merged = _merged(reader, annotation, spelled, value, name)
    decided = not isinstance(spelled, TileType) or spelled.space is not None
    return spelled if decided else merged


def check_agreement(
    reader: Reader, node: ast.AST | Span, result: Type, value: Expr, name: str
) -> None:
    """Refuse a value that does not fit a result whose type another branch has fixed."""
    if _agrees(result, value.type) or isinstance(value.type, UnknownType):
        return
    raise reader.mismatch(
        node,
        f"the result '{name}' is {print_type(result)} in one branch and "
        f"{print_type(value.type)} in the other",
    )


def fits(wanted: Type, given: Type) -> bool:
    """Whether a value of one type can stand where another is expected, space and view aside."""
    return _agrees(wanted, given) or UnknownType() in (wanted, given)


def _is_int(kind: Type) -> bool:
    return isinstance(kind, ScalarType) and kind.dtype.is_int


def _literal(reader: Reader, node: ast.expr, value: Literal, spelled: Type, name: str) -> Expr:
    """A literal takes the annotated dtype."""
    plain = as_expr(value)
    if not isinstance(spelled, ScalarType):
        return plain
    assert isinstance(plain.type, ScalarType)
    if _literal_fits(value, spelled.dtype):
        return read_expr.typed_constant(reader, node, value, spelled.dtype)
    _refuse(reader, node, spelled, plain.type, name)
    return plain


def _literal_fits(value: Literal, dtype: DType) -> bool:
    if isinstance(value, bool):
        return dtype == BOOL
    return dtype.is_float if isinstance(value, float) else dtype.is_int


def _declared(value: Expr, spelled: Type) -> tuple[Expr, Type]:
    """A value of unknown type has the type that the annotation states."""
    if isinstance(value, Call | FunctionCall):
        value = replace(value, result_type=spelled)
    return value, spelled


def _refuse(reader: Reader, node: ast.AST, spelled: Type, inferred: Type, name: str) -> None:
    raise reader.mismatch(
        node,
        f"'{name}' is annotated {print_type(spelled)}, but the value is {print_type(inferred)}",
        "kind, dtype, rank and static dimensions must agree; drop the annotation to infer it",
    )


def _merged(reader: Reader, annotation: ast.expr, spelled: Type, value: Expr, name: str) -> Type:
    inferred = value.type
    if not _agrees(spelled, inferred) and not _flattened(spelled, value):
        _refuse(reader, annotation, spelled, inferred, name)
    match spelled, inferred:
        case TensorType(), TensorType():
            return _merged_tensor(spelled, inferred)
        case TileType(), TileType():
            return _merged_tile(spelled, inferred)
        case ((ScalarType() | TupleType() | HandleType()), _):
            return spelled
    return inferred


def _agrees(spelled: Type, inferred: Type) -> bool:
    match spelled, inferred:
        case UnknownType() | HandleType(), _:
            return not isinstance(inferred, TensorType | TileType | ScalarType)
        case ScalarType(), ScalarType():
            return _same_scalar(spelled.dtype, inferred.dtype)
        case (TensorType(), TensorType()) | (TileType(), TileType()):
            return _same_elements(spelled, inferred)
        case TupleType(), TupleType():
            return len(spelled.items) == len(inferred.items) and all(
                _agrees(a, b) for a, b in zip(spelled.items, inferred.items, strict=True)
            )
    return spelled == inferred


def _same_scalar(first: DType, second: DType) -> bool:
    if first == second:
        return True
    return first.is_int and second.is_int and INDEX in (first, second)


def _same_elements(spelled: Type, inferred: Type) -> bool:
    assert isinstance(spelled, TensorType | TileType)
    assert isinstance(inferred, TensorType | TileType)
    if spelled.dtype != inferred.dtype or spelled.rank != inferred.rank:
        return False
    if getattr(spelled, "distributed", False) != getattr(inferred, "distributed", False):
        return False
    return all(
        a == b or not isinstance(a, int) or not isinstance(b, int)
        for a, b in zip(spelled.shape, inferred.shape, strict=True)
    )


def _flattened(spelled: Type, value: Expr) -> bool:
    """Whether a 2-D tile annotates a load of more dimensions, as after flattening tiles to 2-D."""
    inferred = value.type
    if not isinstance(value, Call) or value.op != "tile.load":
        return False
    if not isinstance(spelled, TileType) or not isinstance(inferred, TileType):
        return False
    if spelled.rank != 2 or inferred.rank < 3 or spelled.dtype != inferred.dtype:
        return False
    return fills_matrix(value, spelled.shape)


def _merged_tensor(spelled: TensorType, inferred: TensorType) -> TensorType:
    if spelled.view is not None or spelled.memref is not None:
        return spelled
    return tensor_type(
        spelled.shape, spelled.dtype, inferred.view, inferred.memref, inferred.distributed
    )


def _merged_tile(spelled: TileType, inferred: TileType) -> TileType:
    space = spelled.space if spelled.space is not None else inferred.space
    view = spelled.view
    if view is None and spelled.rank == inferred.rank:
        view = inferred.view
    return tile_type(spelled.shape, spelled.dtype, space, view, spelled.memref)
