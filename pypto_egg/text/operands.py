"""Binding a call's arguments to the operands and kwargs of an operator's declaration."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pypto_egg.ir import enums
from pypto_egg.ir.dtype import INT32, DType
from pypto_egg.ir.expr import Expr, TupleExpr, as_expr
from pypto_egg.ir.types import ArrayType, ScalarType, TensorType, TileType, TupleType, Type
from pypto_egg.ops.registry import Kwarg, OpDecl, Operand
from pypto_egg.text import dsl, read_expr, read_type, values, vocabulary
from pypto_egg.text.reader import Literal, Reader

if TYPE_CHECKING:
    from pypto_egg.text.read_operator import Arguments

Given = dict[str, ast.expr]


def bind(reader: Reader, node: ast.Call, decl: OpDecl, arguments: Arguments) -> tuple[Given, Given]:
    """The arguments by operand name and by kwarg name."""
    by_name = {operand.name: operand for operand in decl.operands}
    order = _positional_order(decl, arguments)
    if len(arguments.positional) > len(order):
        takes = ", ".join(order)
        raise reader.mismatch(
            node,
            f"pl.{decl.name} takes at most {len(order)} arguments ({takes}), "
            f"got {len(arguments.positional)}",
        )
    given: Given = {}
    options: Given = {}
    for name, arg in zip(order, arguments.positional, strict=False):
        if _is_none(arg):
            continue  # None leaves an operand or kwarg to its default
        if name in by_name:
            given[name] = arg
        else:
            options[name] = arg
    for keyword, arg in arguments.keywords.items():
        name = _operand_of_keyword(decl, keyword, given) or keyword
        if name in given or name in options:
            raise reader.fault(node, f"pl.{decl.name}: '{keyword}' is given twice")
        if _is_none(arg):
            continue
        if name in by_name:
            given[name] = arg
        else:
            options[name] = arg
    return given, options


def _positional_order(decl: OpDecl, arguments: Arguments) -> tuple[str, ...]:
    """Parameter names in the order in which this call passes them."""
    natural = tuple(o.name for o in decl.operands) + tuple(k.name for k in decl.kwargs)
    order = dsl.POSITIONAL.get(decl.name)
    if order is None:
        return natural
    probe = dsl.IR_ORDER_AT.get(decl.name)
    if probe is None or len(arguments.positional) <= probe:
        return order
    node = arguments.positional[probe]
    runtime = isinstance(arguments.value(node), Expr) if _is_value(arguments, node) else False
    return natural if runtime else order


def _is_value(arguments: Arguments, node: ast.expr) -> bool:
    return isinstance(arguments.kind(node), TensorType | TileType | ScalarType)


def _operand_of_keyword(decl: OpDecl, keyword: str, given: Given) -> str | None:
    """The operand that a keyword names, directly or by another usual name; None for a kwarg."""
    for operand in decl.operands:
        if keyword in (operand.name, operand.keyword):
            return operand.name
    if any(kwarg.name == keyword for kwarg in decl.kwargs):
        return None
    names = [operand.name for operand in decl.operands if operand.name not in given]
    for group in dsl.KEYWORD_GROUPS:
        fitting = [name for name in names if name in group]
        if keyword in group and fitting:
            return fitting[0]
    return None


def read_kwargs(reader: Reader, decl: OpDecl, options: Mapping[str, ast.expr]) -> dict[str, object]:
    """The kwargs of a call as the IR stores them."""
    declared = {kwarg.name: kwarg for kwarg in decl.kwargs}
    result: dict[str, object] = {}
    for name, node in options.items():
        kwarg = declared.get(name)
        if kwarg is None:
            result[name] = None  # make_call refuses it and names the kwargs that there are
        else:
            result[name] = _read_kwarg(reader, decl, kwarg, node)
    return result


_KWARG_ENUMS = {
    "mem": enums.Mem,
    "tensor_layout": enums.TensorLayout,
    "tile_layout": enums.TileLayout,
    "pad": enums.PadValue,
    "atomic": enums.AtomicType,
    "cache": enums.CachePolicy,
}


def _read_kwarg(reader: Reader, decl: OpDecl, kwarg: Kwarg, node: ast.expr) -> object:
    if kwarg.kind == "dtype":
        return read_type.read_dtype(reader, node)
    enum = _KWARG_ENUMS.get(kwarg.kind)
    if enum is not None:
        value = values.read_attribute(reader, node)
        if not isinstance(value, enum):
            name = vocabulary.PRINTED_ENUMS[enum]
            shown = ast.unparse(node)
            raise reader.mismatch(node, f"{kwarg.name}= takes a member of pl.{name}, got '{shown}'")
        return value
    value = _coded(decl, kwarg, values.read_attribute(reader, node))
    wanted = {"bool": bool, "int": int, "float": float, "str": str}.get(kwarg.kind)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    misread = wanted is int and isinstance(value, bool)
    if wanted is not None and (not isinstance(value, wanted) or misread):
        shown = ast.unparse(node)
        raise reader.mismatch(
            node, f"{kwarg.name}= takes a literal {wanted.__name__}, got '{shown}'"
        )
    return value


def _coded(decl: OpDecl, kwarg: Kwarg, value: object) -> object:
    """Codes and names of the same thing: comparisons are stored as ints, cast modes as names."""
    if kwarg.name in ("cmp_mode", "cmp_type") and isinstance(value, str):
        return dsl.CMP_CODES.get(value, value)
    is_mode = kwarg.name == "mode" and decl.name.endswith(".cast")
    if is_mode and isinstance(value, int) and 0 <= value < len(dsl.CAST_MODES):
        return dsl.CAST_MODES[value]
    if kwarg.kind == "int" and isinstance(value, enums.SplitMode):
        return list(enums.SplitMode).index(value)
    return value


def read_operands(
    reader: Reader,
    node: ast.Call,
    decl: OpDecl,
    given: Given,
    kwargs: Mapping[str, object],
    arguments: Arguments,
) -> tuple[Expr, ...]:
    """The operands in IR order; a missing optional one before others becomes an empty list."""
    present = [index for index, operand in enumerate(decl.operands) if operand.name in given]
    args: list[Expr] = []
    for index in range(max(present, default=-1) + 1):
        operand = decl.operands[index]
        if index not in present:
            if not operand.optional:
                raise reader.mismatch(node, f"pl.{decl.name} needs the operand '{operand.name}'")
            args.append(TupleExpr(()))
            continue
        args.append(
            _read_operand(reader, decl, index, given[operand.name], args, kwargs, arguments)
        )
    return tuple(args)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _read_operand(
    reader: Reader,
    decl: OpDecl,
    index: int,
    node: ast.expr,
    before: list[Expr],
    kwargs: Mapping[str, object],
    arguments: Arguments,
) -> Expr:
    operand = decl.operands[index]
    if isinstance(node, ast.List | ast.Tuple):
        return TupleExpr(tuple(read_expr.read_index(reader, item) for item in node.elts))
    if operand.kind == "tuple":
        return _tuple_value(reader, decl, operand, node, arguments)
    if decl.name.endswith(".alloc") and isinstance(node, ast.Attribute):
        space = read_type.read_enum(reader, node, enums.Mem, ("Mem", "MemorySpace"))
        return as_expr(list(enums.Mem).index(space))
    value = arguments.value(node)
    if isinstance(value, Expr):
        return value
    return _typed_literal(reader, decl, index, node, value, before, kwargs)


def _tuple_value(
    reader: Reader, decl: OpDecl, operand: Operand, node: ast.expr, arguments: Arguments
) -> Expr:
    value = as_expr(arguments.value(node))
    if not isinstance(value.type, TupleType):
        shown = ast.unparse(node)
        raise reader.mismatch(
            node, f"pl.{decl.name}: operand '{operand.name}' must be a list, got '{shown}'"
        )
    return value


def _typed_literal(
    reader: Reader,
    decl: OpDecl,
    index: int,
    node: ast.expr,
    value: Literal,
    before: list[Expr],
    kwargs: Mapping[str, object],
) -> Expr:
    """A literal operand as the constant that PyPTO makes of it (language reference, 12.3)."""
    leaf = decl.name.rsplit(".", 1)[1]
    operand = decl.operands[index]
    dtype = kwargs.get("dtype")
    if dsl.TYPED_BY_KWARG.get(leaf) == operand.name and isinstance(dtype, DType):
        return read_expr.typed_constant(reader, node, value, dtype)
    if isinstance(value, float | bool):
        return as_expr(value)
    if leaf in dsl.INT32_SCALARS:
        return read_expr.typed_constant(reader, node, value, INT32)
    retyped = leaf in dsl.RETYPED_FROM and index >= dsl.RETYPED_FROM[leaf]
    owner = before[0].type if before else None
    if retyped and isinstance(owner, TensorType | TileType | ArrayType):
        return read_expr.typed_constant(reader, node, value, owner.dtype)
    return as_expr(value)


def element_literal(reader: Reader, node: ast.expr, value: Literal, owner: Type) -> Expr:
    """A literal stored into one element: an integer takes the dtype of the owner."""
    if isinstance(value, int) and isinstance(owner, TensorType | TileType | ArrayType):
        return read_expr.typed_constant(reader, node, value, owner.dtype)
    return as_expr(value)
