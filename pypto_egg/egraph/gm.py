"""Views of global memory as windows of handles (C-016, C-020).

A slice, a reshape or a valid-shape change of a tensor in global memory moves no data: it is
another window, and a load reads it directly. A reshape that is not a window of the handle itself
becomes a window of a `tensor.view` of it. NZ memory has no such views: a window of it keeps one
offset for each axis of its tensor, also where it has lost the leading ones (N-109, N-120).
"""

from __future__ import annotations

from collections.abc import Iterable

from pypto_egg.egraph.terms import unsupported
from pypto_egg.egraph.values import Window
from pypto_egg.errors import NzError
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.expr import Call, Expr, Var, dims_of, tuple_of
from pypto_egg.ir.flows import flows_of
from pypto_egg.ir.fold import dim_add, dim_mul, dim_product, provably_equal, same_dims
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign
from pypto_egg.ir.types import TensorType, tensor_type
from pypto_egg.ir.visit import walk
from pypto_egg.ops.registry import make_call
from pypto_egg.ops.site import show_shape
from pypto_egg.ops.windows import align_right

Dim = int | Expr


def whole_window(handle: Var, type_: TensorType) -> Window:
    """The window that is all of a handle."""
    return Window(handle, (0,) * type_.rank, type_, exact=type_.layout is TensorLayout.ND)


def in_nz_order(handle: Var) -> bool:
    """Whether the handle's memory is annotated NZ and may be loaded as such."""
    type_ = handle.type
    return (
        isinstance(type_, TensorType) and type_.layout is TensorLayout.NZ and not type_.distributed
    )


def view_window(call: Call, source: Window, result: Var) -> tuple[Window, Assign | None]:
    """The window that a view of a window is, and the `tensor.view` it needs, if it needs one.

    Raises:
        LoweringError: the view is neither a window nor a re-reading of a whole tensor.
        NzError: a view of NZ memory whose elements lie elsewhere in NZ order.
    """
    match call.op:
        case "tensor.slice":
            return _slice(call, source, result)
        case "tensor.set_validshape":
            assert isinstance(call.type, TensorType)
            return Window(source.handle, source.offsets, _packed(call.type), source.exact), None
        case "tensor.reshape" | "tensor.view":
            return _reshaped(call, source, result)
        case "tensor.reinterpret_view":
            # The view itself is the handle: its elements are not those of the tensor.
            assert isinstance(call.type, TensorType)
            return whole_window(result, call.type), None
        case _:
            raise unsupported(call, "a view of global memory that is not a window")


def _packed(type_: TensorType) -> TensorType:
    """The type without strides: the window's bytes are described by its handle."""
    view = type_.view
    if view is None:
        return type_
    layout = TensorLayout.NZ if type_.layout is TensorLayout.NZ else TensorLayout.ND
    return tensor_type(
        type_.shape, type_.dtype, type(view)(layout=layout, valid_shape=view.valid_shape)
    )


def _slice(call: Call, source: Window, result: Var) -> tuple[Window, Assign | None]:
    assert isinstance(call.type, TensorType)
    shape, offsets = dims_of(call.args[1]), dims_of(call.args[2])
    if in_nz_order(source.handle):
        # The window has one offset for each axis of the tensor, the view may have lost some.
        offsets = align_right(offsets, len(source.offsets), 0)
    if len(offsets) != len(source.offsets):
        raise unsupported(call, "a window of lower rank than its tensor")
    moved = tuple(dim_add(a, b) for a, b in zip(source.offsets, offsets, strict=True))
    window = Window(source.handle, moved, _packed(call.type), source.exact)
    if same_dims(shape, call.type.shape):
        return window, None
    if in_nz_order(source.handle):
        _check_matrix(call, source, align_right(shape, len(offsets), 1))
        return window, None
    full_rank = tensor_type(shape, call.type.dtype)
    return _flattened(call, Window(source.handle, moved, full_rank, source.exact), result)


def _reshaped(call: Call, source: Window, result: Var) -> tuple[Window, Assign | None]:
    assert isinstance(call.type, TensorType)
    if in_nz_order(source.handle):
        # All elements on one axis, in the order of their bytes: nothing else can be asked (N-130).
        return whole_window(result, call.type), None
    if call.kwarg("layout") is not None or call.type.layout is not TensorLayout.ND:
        raise unsupported(call, "a change of layout; use a transpose flag of the matmul")
    handle_type = source.handle.type
    assert isinstance(handle_type, TensorType)
    if source.type.valid_shape != source.type.shape:
        raise unsupported(call, "a partly valid window")
    if same_dims(source.type.shape, handle_type.shape):
        return _viewed(source.handle, call.type.shape, (0,) * call.type.rank, call.type, result)
    return _flattened(call, source, result)


def _check_matrix(call: Call, source: Window, shape: tuple[Dim, ...]) -> None:
    """Refuse a slice of NZ memory that drops other axes than leading ones of extent 1."""
    assert isinstance(call.type, TensorType)
    kept = call.type.shape
    if same_dims(shape[-2:], kept[-2:]) and all(extent == 1 for extent in shape[: -len(kept)]):
        return
    raise NzError(
        f"NZ tensor '{source.handle.name}' is sliced to {show_shape(shape)}, of which "
        f"{show_shape(kept)} is kept; the last two axes of an NZ tensor are one plane of fractals",
        span=call.span,
        hint="drop leading axes only, w[e, r0:r1, c0:c1]",
    )


def _flattened(call: Call, source: Window, result: Var) -> tuple[Window, Assign | None]:
    """A window without its leading unit axes: rows of the tensor with its leading axes folded."""
    assert isinstance(call.type, TensorType)
    handle_type = source.handle.type
    assert isinstance(handle_type, TensorType)
    shape, kept = source.type.shape, call.type.rank
    lead = len(shape) - kept
    if kept != 2 or lead < 1 or any(extent != 1 for extent in shape[:lead]):
        raise unsupported(call, "a window that is not whole rows of the tensor")
    if not same_dims(shape[lead:], call.type.shape):
        raise unsupported(call, "a window whose last two axes change")
    row: Dim = 0
    for offset, extent in zip(source.offsets[:-1], handle_type.shape[:-1], strict=True):
        row = dim_add(dim_mul(row, extent), offset)
    folded = (dim_product(handle_type.shape[:-1]), handle_type.shape[-1])
    return _viewed(source.handle, folded, (row, source.offsets[-1]), call.type, result)


def _viewed(
    handle: Var,
    shape: tuple[Dim, ...],
    offsets: tuple[Dim, ...],
    type_: TensorType,
    result: Var,
) -> tuple[Window, Assign]:
    call = make_call("tensor.view", (handle, tuple_of(shape)))
    view = Var(f"{result.name.split('__')[0]}_view", call.type)
    return Window(view, offsets, _packed(type_)), Assign(view, call)


def in_bounds(window: Window) -> bool:
    """Whether the window provably lies inside its handle, whatever the branches taken."""
    handle_type = window.handle.type
    assert isinstance(handle_type, TensorType)
    shape = align_right(window.type.shape, handle_type.rank, 1)
    return all(
        (isinstance(o, int) and isinstance(s, int) and isinstance(e, int) and 0 <= o <= e - s)
        or (o == 0 and provably_equal(s, e))
        for o, s, e in zip(window.offsets, shape, handle_type.shape, strict=True)
    )


def changes_layout(call: Call) -> bool:
    """Whether a view reads the bytes with its axes exchanged."""
    if call.op == "tensor.transpose":
        return True
    layout = call.type.layout if isinstance(call.type, TensorType) else None
    return call.op == "tensor.view" and layout is TensorLayout.DN


def reordered_views(function: Function, taken: Iterable[Var]) -> frozenset[Var]:
    """The variables that may stand for memory read with its axes exchanged, or read before.

    No handle names such a view, so it is a computed value to the e-graph, also where a loop or a
    branch passes it on.

    Args:
        taken: views of memory that is written after they have been taken.
    """
    flows: dict[Var, list[Var]] = {}
    found = list(taken)
    for stmt in walk(function.body):
        for target, value in flows_of(stmt):
            sources = value.args[:1] if isinstance(value, Call) else (value,)
            for source in sources:
                if isinstance(source, Var):
                    flows.setdefault(source, []).append(target)
            if isinstance(value, Call) and changes_layout(value):
                found.append(target)
    reached: set[Var] = set()
    while found:
        var = found.pop()
        if var not in reached:
            reached.add(var)
            found.extend(flows.get(var, ()))
    return frozenset(reached)
