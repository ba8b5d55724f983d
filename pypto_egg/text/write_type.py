"""Types as PyPTO prints them (PyPTO language reference, 3 to 5)."""

from __future__ import annotations

from pypto_egg.errors import InternalError
from pypto_egg.ir.enums import CompactMode, PadValue
from pypto_egg.ir.expr import Expr, Var, as_dim
from pypto_egg.ir.types import (
    ArrayType,
    HandleType,
    MemRef,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TupleType,
    Type,
    UnknownType,
    implicit_view,
)
from pypto_egg.text import write_expr, write_value
from pypto_egg.text.style import Style

Dim = int | Expr


def print_type(kind: Type, *, prefix: str = "pl") -> str:
    """The text of one type; variables print their own names."""
    return write_type(Style(prefix), kind)


def write_type(style: Style, kind: Type) -> str:
    """The text of a type in a style."""
    pl = style.prefix
    match kind:
        case ScalarType():
            return f"{pl}.Scalar[{pl}.{kind.dtype.name}]"
        case TensorType():
            return _tensor(style, kind)
        case TileType():
            return _tile(style, kind)
        case ArrayType():
            return f"{pl}.Array[{kind.extent}, {pl}.{kind.dtype.name}]"
        case TupleType():
            items = ", ".join(write_type(style, item) for item in kind.items)
            return f"{pl}.Tuple[{items or '()'}]"
        case HandleType():
            return kind.name if kind.name.startswith("pld.") else f"{pl}.{kind.name}"
        case UnknownType():
            return f"{pl}.UnknownType"
    raise InternalError(f"{type(kind).__name__} has no spelling in the language")


def write_dim(style: Style, dim: Dim) -> str:
    """A dimension; constants inside of a composite one are typed, so that none is folded."""
    if isinstance(dim, int):
        return str(dim)
    if isinstance(dim, Var):
        return style.name(dim)
    return write_expr.write_expr(style.with_typed(), dim)


def write_shape(style: Style, dims: tuple[Dim, ...]) -> str:
    return f"[{', '.join(write_dim(style, dim) for dim in dims)}]"


def _tensor(style: Style, kind: TensorType) -> str:
    head = "pld.DistributedTensor" if kind.distributed else f"{style.prefix}.Tensor"
    slots = [write_shape(style, kind.shape), f"{style.prefix}.{kind.dtype.name}"]
    if kind.view is not None:
        slots.append(_tensor_view(style, kind.view))
    if kind.memref is not None:
        slots.append(_memref(style, kind.memref))
    return f"{head}[{', '.join(slots)}]"


def _tensor_view(style: Style, view: TensorView) -> str:
    """Stride and layout always print: PyPTO cannot read a view without them."""
    pl = style.prefix
    fields = []
    if view.valid_shape is not None:
        fields.append(f"valid_shape={write_shape(style, view.valid_shape)}")
    fields.append(f"stride={write_shape(style, view.stride)}")
    fields.append(f"layout={pl}.TensorLayout.{view.layout.name}")
    if view.pad is not PadValue.null:
        fields.append(f"pad={pl}.PadValue.{view.pad.name}")
    return f"{pl}.TensorView({', '.join(fields)})"


def _tile(style: Style, kind: TileType) -> str:
    pl = style.prefix
    slots = [write_shape(style, kind.shape), f"{pl}.{kind.dtype.name}"]
    if kind.memref is not None:
        slots.append(_memref(style, kind.memref))
    if kind.space is not None:
        slots.append(f"{pl}.Mem.{kind.space.name}")
    if kind.view is not None:
        slots.append(_tile_view(style, kind))
    return f"{pl}.Tile[{', '.join(slots)}]"


def _tile_view(style: Style, kind: TileType) -> str:
    """The fields in which the view differs from the implicit one."""
    pl, view = style.prefix, kind.layout
    implicit = implicit_view(kind.shape, kind.space)
    fields = []
    if view.valid_shape is not None:
        fields.append(f"valid_shape={write_shape(style, view.valid_shape)}")
    if view.stride:
        fields.append(f"stride={write_shape(style, view.stride)}")
    if view.start_offset is not None:
        fields.append(f"start_offset={_offset(style, view.start_offset)}")
    if view.blayout is not implicit.blayout:
        fields.append(f"blayout={pl}.TileLayout.{view.blayout.name}")
    if view.slayout is not implicit.slayout:
        fields.append(f"slayout={pl}.TileLayout.{view.slayout.name}")
    if view.fractal != implicit.fractal:
        fields.append(f"fractal={view.fractal}")
    if view.pad is not PadValue.null:
        fields.append(f"pad={pl}.PadValue.{view.pad.name}")
    if view.compact is not CompactMode.null:
        fields.append(f"compact={pl}.CompactMode.{view.compact.name}")
    return f"{pl}.TileView({', '.join(fields)})"


def _offset(style: Style, offset: Expr) -> str:
    return write_dim(style, as_dim(offset))


def _memref(style: Style, memref: MemRef) -> str:
    parts = []
    for arg in memref.args:
        if isinstance(arg, str):
            parts.append(write_value.double_quoted(arg))
        else:
            parts.append(str(arg) if isinstance(arg, int) else write_expr.write_expr(style, arg))
    if memref.slots is not None:
        parts.append(f"slots={memref.slots}")
    text = f"{style.prefix}.MemRef({', '.join(parts)})"
    if memref.index is None:
        return text
    index = memref.index
    shown = str(index) if isinstance(index, int) else write_expr.write_expr(style, index)
    return f"{text}[{shown}]"
