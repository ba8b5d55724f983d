"""Types from annotations (PyPTO language reference, 3 to 5)."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TypeVar

from pypto_egg.ir.dtype import DTYPES, INDEX, TASK_ID, DType
from pypto_egg.ir.enums import CompactMode, Mem, PadValue, TensorLayout, TileLayout
from pypto_egg.ir.expr import Expr, Var, as_dim, as_expr
from pypto_egg.ir.types import (
    ArrayType,
    HandleType,
    MemRef,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
    Type,
    UnknownType,
    implicit_view,
    tensor_type,
    tile_type,
)
from pypto_egg.text import read_expr
from pypto_egg.text.reader import Reader, closest, construct_name, dtype_hint, language_path

E = TypeVar("E", bound=Enum)
Dim = int | Expr

HANDLES = (
    "MemRefType",
    "Ptr",
    "PrefetchAsyncContext",
    "AsyncEvent",
    "AsyncSession",
    "pld.WindowBufferType",
    "pld.CommCtxType",
)
_SHORT_LAYOUTS = {
    "ND": TensorLayout.ND,
    "NZ": TensorLayout.NZ,
    "MX_A_ZZ": TensorLayout.MX_A_ZZ,
    "MX_B_NN": TensorLayout.MX_B_NN,
}
_SHAPED = ("Tensor", "Tile", "pld.DistributedTensor", "DistributedTensor")


def read_type(reader: Reader, node: ast.expr) -> Type:
    """The type that an annotation spells.

    Raises:
        ParseError: not a type of the language.
        TypeCheckError: a type whose parts contradict each other.
    """
    head, items = _head_and_items(reader, node)
    match head:
        case "Scalar":
            return ScalarType(read_dtype(reader, _only(reader, node, head, items)))
        case "TaskId" if not items:
            return ScalarType(TASK_ID)
        case "UnknownType" if not items:
            return UnknownType()
        case "Tensor" | "pld.DistributedTensor" | "DistributedTensor":
            return _tensor(reader, node, items, distributed=head != "Tensor")
        case "Tile":
            return _tile(reader, node, items)
        case "Array":
            return _array(reader, node, items)
        case "Tuple":
            return _tuple(reader, node, items)
        case _ if head in HANDLES and not items:
            return HandleType(head)
    known = ["Scalar", "TaskId", "UnknownType", "Array", "Tuple", *_SHAPED, *HANDLES]
    raise reader.fault(node, f"unknown type '{ast.unparse(node)}'", closest(head, known))


def _head_and_items(reader: Reader, node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Name and bracket contents of a type; `pl.Tensor((..), dt)` is an old spelling of it."""
    items: list[ast.expr] = []
    base = node
    if isinstance(node, ast.Subscript):
        base = node.value
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    elif isinstance(node, ast.Call) and not node.keywords:
        base, items = node.func, list(node.args)
    path = language_path(reader, base)
    if path is None:
        raise reader.fault(
            node, _not_a_type(node), "types are spelled pl.Tensor[[64, 128], pl.FP32]"
        )
    return ".".join(path), items


def _not_a_type(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return f"the string annotation {node.value!r} is not a type"
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant):
        return f"'{ast.unparse(node)}' is not a type of the language"
    return f"{construct_name(node)} is not a type"


def _only(reader: Reader, node: ast.expr, head: str, items: list[ast.expr]) -> ast.expr:
    if len(items) != 1:
        raise reader.fault(node, f"pl.{head}[...] takes one dtype, got {len(items)} entries")
    return items[0]


def read_dtype(reader: Reader, node: ast.expr) -> DType:
    """The dtype that `pl.FP32` names."""
    path = language_path(reader, node)
    if path is not None and len(path) == 1 and path[0] in DTYPES:
        return DTYPES[path[0]]
    name = path[-1] if path else ""
    shown = ast.unparse(node)
    raise reader.fault(node, f"'{shown}' is not a dtype", dtype_hint(name))


def read_enum(reader: Reader, node: ast.expr, enum: type[E], names: tuple[str, ...]) -> E:
    """The member that `pl.<names>.<member>` spells."""
    path = language_path(reader, node)
    if path is not None and len(path) == 2 and path[0] in names:
        if path[1] in enum.__members__:
            return enum[path[1]]
        members = ", ".join(enum.__members__)
        raise reader.fault(node, f"pl.{names[0]} has no member '{path[1]}' (it has: {members})")
    raise reader.fault(node, f"expected a member of pl.{names[0]}, got '{ast.unparse(node)}'")


def read_shape(reader: Reader, node: ast.expr) -> tuple[Dim, ...]:
    """The dimensions of a list or tuple."""
    if not isinstance(node, ast.List | ast.Tuple):
        raise reader.fault(node, f"expected a list of dimensions, got '{ast.unparse(node)}'")
    return tuple(read_dim(reader, item) for item in node.elts)


def read_dim(reader: Reader, node: ast.expr) -> Dim:
    """One dimension: an int, or an index expression; a free name becomes a dynamic symbol."""
    reader.deeper(node)
    value = _dim(reader, node)
    reader.shallower()
    kind = as_expr(value).type
    if not isinstance(kind, ScalarType) or not kind.dtype.is_int:
        raise reader.mismatch(node, f"the dimension '{ast.unparse(node)}' is not an integer scalar")
    return as_dim(as_expr(value))


def _dim(reader: Reader, node: ast.expr) -> int | float | bool | Expr:
    match node:
        case ast.Name():
            return _dim_name(reader, node)
        case ast.BinOp() if type(node.op) in _DIM_OPERATORS:
            left, right = read_dim(reader, node.left), read_dim(reader, node.right)
            op = read_expr.BINARY[type(node.op)]
            return read_expr.combine(reader, node, op, left, right)
        case ast.Call():
            return _dim_call(reader, node)
    return read_expr.read_value(reader, node)


_DIM_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


def _dim_name(reader: Reader, node: ast.Name) -> int | float | bool | Expr:
    name = node.id
    var = reader.scope.lookup(name)
    if var is not None:
        return var
    if name in reader.program.constants:
        return reader.program.constants[name]
    symbol = reader.program.symbol(name, reader.span(node))
    reader.program.in_types.add(symbol)
    return symbol


def _dim_call(reader: Reader, node: ast.Call) -> int | float | bool | Expr:
    path = language_path(reader, node.func)
    if path in (("min",), ("max",)) and len(node.args) == 2 and not node.keywords:
        assert path is not None
        sides = (as_expr(read_dim(reader, node.args[0])), as_expr(read_dim(reader, node.args[1])))
        return read_expr.combine(reader, node, path[0], *sides)
    if path == ("const",):
        value = read_expr.read_value(reader, node)
        assert isinstance(value, Expr)
        return value
    raise reader.fault(node, f"'{ast.unparse(node)}' cannot be part of a dimension")


def _tensor(
    reader: Reader, node: ast.expr, items: list[ast.expr], *, distributed: bool
) -> TensorType:
    shape, dtype = _shape_and_dtype(reader, node, "Tensor", items)
    view: TensorView | None = None
    memref: MemRef | None = None
    for slot in items[2:]:
        kind = _slot_kind(reader, slot)
        if kind == "MemRef" and memref is None:
            memref = read_memref(reader, slot)
        elif kind in ("TensorView", "layout") and view is None and memref is None:
            view = _tensor_view(reader, slot, shape)
        elif kind in ("TensorView", "layout"):
            raise reader.fault(slot, "a tensor takes one view, and takes it before its MemRef")
        else:
            raise reader.fault(slot, f"'{ast.unparse(slot)}' does not belong in a tensor type")
    return tensor_type(shape, dtype, view, memref, distributed)


def _shape_and_dtype(
    reader: Reader, node: ast.expr, head: str, items: list[ast.expr]
) -> tuple[tuple[Dim, ...], DType]:
    if len(items) < 2:
        raise reader.fault(
            node, f"pl.{head} needs a shape and a dtype: pl.{head}[[64, 128], pl.FP32]"
        )
    return read_shape(reader, items[0]), read_dtype(reader, items[1])


def _slot_kind(reader: Reader, slot: ast.expr) -> str:
    base: ast.expr = slot
    while isinstance(base, ast.Subscript):
        base = base.value
    if isinstance(base, ast.Call):
        path = language_path(reader, base.func)
        return path[-1] if path else ""
    path = language_path(reader, base)
    if path is None:
        return ""
    if len(path) == 2 and path[0] in ("Mem", "MemorySpace"):
        return "Mem"
    is_layout = path[-1] in TensorLayout.__members__ and len(path) == 1
    return "layout" if is_layout or path[0] == "TensorLayout" else ""


def _tensor_view(reader: Reader, slot: ast.expr, shape: tuple[Dim, ...]) -> TensorView:
    if not isinstance(slot, ast.Call):
        return TensorView(layout=_short_layout(reader, slot))
    fields = _keywords(reader, slot, ("valid_shape", "stride", "layout", "pad"))
    if fields and "layout" not in fields:
        raise reader.fault(slot, "a TensorView with other fields needs layout=pl.TensorLayout.X")
    valid = _field_shape(reader, fields, "valid_shape", shape)
    stride = _field_shape(reader, fields, "stride", shape)
    layout = TensorLayout.ND
    if "layout" in fields:
        layout = read_enum(reader, fields["layout"], TensorLayout, ("TensorLayout",))
    return TensorView(valid or None, stride, layout, _pad(reader, fields))


def _short_layout(reader: Reader, slot: ast.expr) -> TensorLayout:
    path = language_path(reader, slot)
    assert path is not None
    if path[-1] in _SHORT_LAYOUTS:
        return _SHORT_LAYOUTS[path[-1]]
    raise reader.fault(
        slot,
        f"the layout {path[-1]} needs strides",
        "spell pl.TensorView(stride=[...], layout=pl.TensorLayout.DN)",
    )


def _field_shape(
    reader: Reader, fields: dict[str, ast.expr], name: str, shape: tuple[Dim, ...]
) -> tuple[Dim, ...]:
    if name not in fields:
        return ()
    dims = read_shape(reader, fields[name])
    if dims and len(dims) != len(shape):
        raise reader.mismatch(
            fields[name], f"{name} has {len(dims)} entries, but the shape has rank {len(shape)}"
        )
    return dims


def _pad(reader: Reader, fields: dict[str, ast.expr]) -> PadValue:
    if "pad" not in fields:
        return PadValue.null
    return read_enum(reader, fields["pad"], PadValue, ("PadValue",))


def _keywords(reader: Reader, call: ast.Call, known: tuple[str, ...]) -> dict[str, ast.expr]:
    """The keyword arguments of a type part, checked against the ones it has."""
    name = ast.unparse(call.func)
    if call.args:
        raise reader.fault(call, f"{name}(...) takes keyword arguments only: {', '.join(known)}")
    for keyword in call.keywords:
        if keyword.arg not in known:
            raise reader.fault(
                call, f"{name}(...) has no field '{keyword.arg}' ({', '.join(known)})"
            )
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}


def _tile(reader: Reader, node: ast.expr, items: list[ast.expr]) -> TileType:
    shape, dtype = _shape_and_dtype(reader, node, "Tile", items)
    slots: dict[str, ast.expr] = {}
    for slot in items[2:]:
        kind = _slot_kind(reader, slot)
        if kind not in ("MemRef", "Mem", "TileView"):
            raise reader.fault(slot, f"'{ast.unparse(slot)}' does not belong in a tile type")
        if kind in slots:
            raise reader.fault(slot, f"a tile type takes one {kind}")
        slots[kind] = slot
    space = None
    if "Mem" in slots:
        space = read_enum(reader, slots["Mem"], Mem, ("Mem", "MemorySpace"))
    memref = read_memref(reader, slots["MemRef"]) if "MemRef" in slots else None
    if memref is not None and space is None:
        raise reader.fault(slots["MemRef"], "a tile with a MemRef needs a memory space (pl.Mem.X)")
    view = _tile_view(reader, slots["TileView"], shape, space) if "TileView" in slots else None
    return tile_type(shape, dtype, space, view, memref)


_TILE_FIELDS = (
    "valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal", "pad", "compact",
)  # fmt: skip


def _tile_view(
    reader: Reader, slot: ast.expr, shape: tuple[Dim, ...], space: Mem | None
) -> TileView:
    if not isinstance(slot, ast.Call):
        raise reader.fault(slot, "a tile view is spelled pl.TileView(...)")
    fields = _keywords(reader, slot, _TILE_FIELDS)
    implicit = implicit_view(shape, space)
    blayout, slayout = implicit.blayout, implicit.slayout
    if "blayout" in fields:
        blayout = read_enum(reader, fields["blayout"], TileLayout, ("TileLayout",))
    if "slayout" in fields:
        slayout = read_enum(reader, fields["slayout"], TileLayout, ("TileLayout",))
    fractal = implicit.fractal
    if "fractal" in fields:
        fractal = read_int(reader, fields["fractal"], "fractal")
    compact = CompactMode.null
    if "compact" in fields:
        compact = read_enum(reader, fields["compact"], CompactMode, ("CompactMode",))
    offset = as_expr(read_dim(reader, fields["start_offset"])) if "start_offset" in fields else None
    return TileView(
        _field_shape(reader, fields, "valid_shape", shape) or None,
        _field_shape(reader, fields, "stride", shape),
        offset,
        blayout,
        slayout,
        fractal,
        _pad(reader, fields),
        compact,
    )


def read_int(reader: Reader, node: ast.expr, what: str) -> int:
    """A plain integer that is known while reading."""
    value = read_expr.read_value(reader, node)
    if isinstance(value, bool) or not isinstance(value, int):
        raise reader.fault(node, f"{what} must be an integer literal, got '{ast.unparse(node)}'")
    return value


def read_memref(reader: Reader, slot: ast.expr) -> MemRef:
    """A buffer reference; passed through, except that its names must exist."""
    index: Dim | None = None
    if isinstance(slot, ast.Subscript):
        index = as_dim(read_expr.read_index(reader, slot.slice))
        slot = slot.value
    if not isinstance(slot, ast.Call):
        raise reader.fault(slot, "a buffer is spelled pl.MemRef(...)")
    slots = None
    for keyword in slot.keywords:
        if keyword.arg != "slots":
            raise reader.fault(slot, f"pl.MemRef has no field '{keyword.arg}' (it has: slots)")
        slots = read_int(reader, keyword.value, "slots")
    if len(slot.args) not in (1, 3):
        raise reader.fault(slot, "pl.MemRef takes a name, or a base, a byte offset and a size")
    return MemRef(tuple(_memref_arg(reader, arg) for arg in slot.args), slots, index)


def _memref_arg(reader: Reader, node: ast.expr) -> str | Dim:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return as_dim(read_expr.read_expr(reader, node))


def _array(reader: Reader, node: ast.expr, items: list[ast.expr]) -> ArrayType:
    if len(items) != 2:
        raise reader.fault(node, "an array type is spelled pl.Array[N, pl.DT]")
    extent = read_int(reader, items[0], "the extent of an array")
    if extent < 1:
        raise reader.fault(items[0], f"the extent of an array must be positive, got {extent}")
    return ArrayType(extent, read_dtype(reader, items[1]))


def _tuple(reader: Reader, node: ast.expr, items: list[ast.expr]) -> TupleType:
    entries = tuple(read_type(reader, item) for item in items)
    for item, entry in zip(items, entries, strict=True):
        if isinstance(entry, TupleType):
            raise reader.fault(item, "tuples cannot be nested")
    return TupleType(entries)


def is_dim_symbol(reader: Reader, var: Var) -> bool:
    """Whether a variable is a dynamic symbol of the program."""
    return var.var_type == ScalarType(INDEX) and var in reader.program.symbols.values()
