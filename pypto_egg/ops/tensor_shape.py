"""tensor.* shape, view and layout operators (PyPTO operator reference, shape and view)."""

from __future__ import annotations

from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.expr import as_dim
from pypto_egg.ir.fold import (
    Dim,
    const_value,
    dim_add,
    dim_floordiv,
    dim_mul,
    provably_lt,
    same_dims,
)
from pypto_egg.ir.types import TensorType, TensorView, TileType, Type, tensor_type
from pypto_egg.ops.registry import Kwarg
from pypto_egg.ops.rules import (
    FRACTAL_LAYOUTS,
    Shape,
    demand_equal_dim,
    fresh_tensor,
    is_full,
    refuse_fractal,
    swap_axes,
    swap_last,
    tensor_with_valid,
)
from pypto_egg.ops.site import (
    Site,
    declare,
    declare_view,
    dims,
    scalar,
    show_dim,
    show_shape,
    tensor,
)
from pypto_egg.ops.tensor_memory import check_extents, kwarg_dtype
from pypto_egg.ops.windows import check_element_count, check_valid, reshape_valid

DN, ND = TensorLayout.DN, TensorLayout.ND


def packed_strides(shape: Shape, layout: TensorLayout) -> Shape:
    """Strides in elements of a packed tensor: row-major, or with the last two axes swapped (DN)."""
    order = swap_last(shape) if layout is DN and len(shape) >= 2 else shape
    strides: list[Dim] = []
    step: Dim = 1
    for dim in reversed(order):
        strides.append(step)
        step = dim_mul(dim, step)
    strides.reverse()
    return swap_last(tuple(strides)) if layout is DN and len(shape) >= 2 else tuple(strides)


def strides_of(operand: TensorType) -> Shape:
    """The strides in force: the stated ones, or packed by the layout."""
    stated = operand.view.stride if operand.view is not None else ()
    return stated or packed_strides(operand.shape, operand.layout)


def is_packed(operand: TensorType) -> bool:
    """True if the elements provably lie without gaps in the order of the layout."""
    return same_dims(strides_of(operand), packed_strides(operand.shape, operand.layout))


def _reshape(site: Site) -> Type:
    source, shape = site.tensor(0), site.dims(1)
    if source.layout in FRACTAL_LAYOUTS and len(shape) != 1:
        refuse_fractal(site, 0, "only a full flattening to rank 1 keeps a fractal tensor's order")
    check_extents(site, 1, shape)
    check_element_count(site, source.shape, shape, 1)
    if site.given(2):
        check_valid(site, 2, site.dims(2), shape)
        return fresh_tensor(shape, source.dtype, site.dims(2))
    return fresh_tensor(shape, source.dtype, reshape_valid(site, source, shape))


def _transpose(site: Site) -> Type:
    source = site.tensor(0)
    refuse_fractal(site, 0, "keep the tensor ND, or transpose before packing it")
    first, second = site.axis(1, source.rank), site.axis(2, source.rank)
    shape = swap_axes(source.shape, first, second)
    valid = swap_axes(source.valid_shape, first, second)
    if site.given(3):
        valid = site.dims(3)
        check_valid(site, 3, valid, shape)
    strides = swap_axes(strides_of(source), first, second)
    layout = source.layout
    if first != second and {first, second} == {source.rank - 2, source.rank - 1}:
        layout = ND if layout is DN else DN
    plain = layout is ND and same_dims(strides, packed_strides(shape, ND))
    view = TensorView(valid, () if plain else strides, layout)
    return tensor_type(shape, source.dtype, view)


def _view(site: Site) -> Type:
    source = site.tensor(0)
    refuse_fractal(site, 0, "a fractal tensor can only be sliced, loaded or flattened")
    wanted = site.kwargs["layout"]
    layout = wanted if isinstance(wanted, TensorLayout) else source.layout
    if layout in FRACTAL_LAYOUTS:
        raise site.fault(
            f"layout={layout.name} would not reorder any bytes; allowed: ND, DN",
            hint=f"annotate the parameter with pl.{layout.name} if its bytes are in that order",
        )
    shape, valid, strides = _viewed(site, source, layout)
    if site.given(2):
        valid = site.dims(2)
        check_valid(site, 2, valid, shape)
    view = TensorView(valid, strides, layout)
    return tensor_type(shape, source.dtype, view, distributed=source.distributed)


def _viewed(site: Site, source: TensorType, layout: TensorLayout) -> tuple[Shape, Shape, Shape]:
    """Shape, valid shape and strides of a view before a given valid_shape replaces the valid."""
    if not site.given(1):
        if layout is source.layout:
            return source.shape, source.valid_shape, strides_of(source)
        site.demand_rank_at_least(0, 2)
        return swap_last(source.shape), swap_last(source.valid_shape), swap_last(strides_of(source))
    shape = check_extents(site, 1, site.dims(1))
    check_element_count(site, source.shape, shape, 1)
    if not is_full(source):
        raise site.error(
            0,
            f"is valid only in {show_shape(source.valid_shape)}; a new shape needs it whole",
            hint="pass the valid_shape with a slice after the view",
        )
    if not is_packed(source):
        raise site.error(
            0, f"has strides {show_shape(strides_of(source))}; a new shape needs it packed"
        )
    return shape, shape, packed_strides(shape, layout)


def scaled_shape(
    site: Site, shape: Shape, from_bits: int, to_bits: int, axis: int, what: str
) -> Shape:
    """The shape with one axis rescaled so that its bytes stay the same.

    Raises:
        TypeCheckError: the bytes of the axis are no whole number of new elements.
    """
    dim = shape[axis]
    if from_bits >= to_bits and from_bits % to_bits == 0:
        return (*shape[:axis], dim_mul(dim, from_bits // to_bits), *shape[axis + 1 :])
    value = const_value(dim)
    if value is not None and value * from_bits % to_bits != 0:
        raise site.error(
            0,
            f"has {what} {show_dim(dim)} of {from_bits} bits on axis {axis}, which is no whole "
            f"number of {to_bits}-bit elements",
        )
    scaled = dim_floordiv(dim_mul(dim, from_bits), to_bits)
    return (*shape[:axis], scaled, *shape[axis + 1 :])


def reinterpreted(site: Site, source: TensorType | TileType, axis: int) -> tuple[Shape, Shape]:
    """Shape and valid shape of the same bytes read as another dtype."""
    old, new = source.dtype.bits, kwarg_dtype(site).bits
    shape = scaled_shape(site, source.shape, old, new, axis, "extent")
    valid = scaled_shape(site, source.valid_shape, old, new, axis, "valid extent")
    if not site.given(1):
        return shape, valid
    given = check_extents(site, 1, site.dims(1))
    if same_dims(given, shape):
        return shape, valid
    check_element_count(site, shape, given, 1)
    if not is_full(source):
        raise site.error(
            0,
            f"is valid only in {show_shape(source.valid_shape)}; a new shape needs it whole",
            hint="leave the shape out, or pad the operand first",
        )
    return given, given


def _reinterpret_view(site: Site) -> Type:
    source = site.tensor(0)
    refuse_fractal(site, 0, "load it first and reinterpret the tile")
    if source.distributed:
        raise site.error(0, "is a distributed tensor; its bytes cannot be reinterpreted")
    site.demand_rank_at_least(0, 1)
    if not is_packed(source):
        raise site.error(
            0,
            f"has strides {show_shape(strides_of(source))}; it must be packed to be reinterpreted",
        )
    axis = source.rank - 2 if source.layout is DN else source.rank - 1
    shape, valid = reinterpreted(site, source, axis)
    stated = source.view is not None and bool(source.view.stride)
    strides = packed_strides(shape, source.layout) if stated else ()
    return tensor_type(shape, kwarg_dtype(site), TensorView(valid, strides, source.layout))


def check_concat(site: Site) -> Shape:
    """The shape of a column concatenation, after its operands are checked."""
    site.demand_rank(0, 2)
    site.demand_rank(1, 2)
    site.demand_same_dtype(0, 1)
    a, b = site.shaped(0).shape, site.shaped(1).shape
    demand_equal_dim(site, 1, "rows", b[0], a[0])
    return (a[0], dim_add(a[1], b[1]))


def _concat(site: Site) -> Type:
    return fresh_tensor(check_concat(site), site.dtype(0))


def given_valid(site: Site) -> Shape:
    """The valid shape that set_validshape states, after constants are checked against the shape."""
    site.demand_rank(0, 2)
    site.demand_int(1, 2)
    shape = site.shaped(0).shape
    valid = (as_dim(site.args[1]), as_dim(site.args[2]))
    for index, part, limit in zip((1, 2), valid, shape, strict=True):
        if provably_lt(part, 0) or provably_lt(limit, part):
            raise site.error(index, f"is {show_dim(part)}; allowed: 0 to {show_dim(limit)}")
    return valid


def _set_validshape(site: Site) -> Type:
    valid = given_valid(site)
    return tensor_with_valid(site.tensor(0), valid)


def _declare() -> None:
    shape, valid = dims("shape"), dims("valid_shape", optional=True)
    maybe_shape = dims("shape", optional=True)
    data = tensor("input")
    operands = (data, shape, valid)
    declare_view("tensor.reshape", operands, _reshape, "reshape", lowers_to="tile.reshape")
    axes = (scalar("axis1"), scalar("axis2"))
    declare("tensor.transpose", (data, *axes, valid), _transpose, "transpose")
    layout = (Kwarg("layout", "tensor_layout", None),)
    declare_view("tensor.view", (data, maybe_shape, valid), _view, "view", layout)
    declare_view(
        "tensor.reinterpret_view",
        (tensor("data"), dims("shape", optional=True, keyword="shape")),
        _reinterpret_view,
        "reinterpret_view",
        (Kwarg("dtype", "dtype"),),
        lowers_to="tile.reinterpret_view",
    )
    pair = (tensor("src0"), tensor("src1"))
    declare("tensor.concat", pair, _concat, "concat", lowers_to="tile.concat")
    declare_view(
        "tensor.set_validshape",
        (tensor("tensor"), scalar("rows"), scalar("cols")),
        _set_validshape,
        "set_validshape",
        reuses_input=0,
        lowers_to="tile.set_validshape",
    )


_declare()
