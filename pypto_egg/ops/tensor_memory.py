"""tensor.* creation, windows and element access (PyPTO operator reference, memory and creation)."""

from __future__ import annotations

from pypto_egg.ir.dtype import BF16, FP16, FP32, INDEX, INT8, INT16, INT32, UINT16, UINT32, DType
from pypto_egg.ir.enums import AtomicType, PadValue, TensorLayout
from pypto_egg.ir.fold import provably_lt
from pypto_egg.ir.types import (
    HandleType,
    ScalarType,
    TensorType,
    TensorView,
    Type,
    tensor_type,
)
from pypto_egg.ops.registry import Channel, Effect, Kwarg, Kwargs
from pypto_egg.ops.rules import (
    FRACTAL_LAYOUTS,
    Shape,
    fresh_tensor,
    tensor_with_valid,
)
from pypto_egg.ops.site import Site, declare, declare_view, dims, either, scalar, show_dim, tensor
from pypto_egg.ops.windows import (
    align_right,
    check_valid,
    check_window,
    clamp_to,
    demand_length,
    union_valid,
    window_of_valid,
)

ATOMIC_DTYPES = (FP32, BF16, FP16, INT32, INT16, INT8)
CI_DTYPES = (INT16, INT32, UINT16, UINT32)
ATOMIC = Kwarg("atomic", "atomic", AtomicType.None_)
RANDOM_KEYS = tuple(
    scalar(name) for name in ("key0", "key1", "counter0", "counter1", "counter2", "counter3")
)
RANDOM_KWARGS = (
    Kwarg("dtype", "dtype", UINT32, always=True),
    Kwarg("rounds", "int", 10, always=True),
)
CI_KWARGS = (Kwarg("dtype", "dtype"), Kwarg("descending", "bool", False, always=True))


def atomic_effect(kwargs: Kwargs) -> Effect:
    """Write for a plain store, read and write for an atomic one (C-050)."""
    plain = kwargs.get("atomic", AtomicType.None_) is AtomicType.None_
    return Effect.WRITE if plain else Effect.READ_WRITE


def check_atomic(site: Site, index: int) -> None:
    """Refuse an atomic store into a dtype that has no atomic add."""
    if site.kwargs["atomic"] is not AtomicType.None_:
        site.demand_dtype(index, ATOMIC_DTYPES)


def kwarg_dtype(site: Site, name: str = "dtype") -> DType:
    """The dtype given by a keyword argument."""
    dtype = site.kwargs[name]
    assert isinstance(dtype, DType)
    return dtype


def check_extents(site: Site, index: int, shape: Shape) -> Shape:
    """The shape, after provably negative extents are refused."""
    for axis, dim in enumerate(shape):
        if provably_lt(dim, 0):
            raise site.error(index, f"has extent {show_dim(dim)} on axis {axis}; it must be >= 0")
    return shape


def element_read(site: Site) -> Type:
    """The type of one element of a tensor or a tile, at one index for each axis."""
    demand_length(site, 1, site.shaped(0).rank, "one index a dimension")
    return ScalarType(site.dtype(0))


def element_write(site: Site) -> Type:
    """The type of a tensor or a tile after one element is written: unchanged."""
    demand_length(site, 1, site.shaped(0).rank, "one index a dimension")
    site.demand_same_dtype(0, 2)
    return site.shaped(0)


def _create(site: Site) -> Type:
    layout = site.kwargs["layout"]
    assert isinstance(layout, TensorLayout)
    shape = check_extents(site, 0, site.dims(0))
    return tensor_type(shape, kwarg_dtype(site), TensorView(layout=layout))


def _slice(site: Site) -> Type:
    source, shape, offset = site.tensor(0), site.dims(1), site.dims(2)
    demand_length(site, 2, source.rank, "one offset a dimension")
    if len(shape) > source.rank:
        raise site.error(1, f"has {len(shape)} elements; the source has rank {source.rank}")
    check_extents(site, 1, shape)
    valid = _slice_valid(site, source, shape, offset)
    layout = source.layout if source.layout in FRACTAL_LAYOUTS else TensorLayout.ND
    pad = site.kwargs["pad_value"]
    pad = pad if isinstance(pad, PadValue) else PadValue.null
    kept = _kept_axes(site, shape)
    return tensor_type(
        tuple(shape[axis] for axis in kept),
        source.dtype,
        TensorView(tuple(valid[axis] for axis in kept), layout=layout, pad=pad),
        distributed=source.distributed,
    )


def _slice_valid(site: Site, source: TensorType, shape: Shape, offset: Shape) -> Shape:
    clamp = bool(site.kwargs["clamp"])
    window = align_right(shape, source.rank, 1)
    given = site.dims(3) if site.given(3) else None
    if given is not None:
        check_valid(site, 3, given, shape)
    read = window if given is None else align_right(given, source.rank, 1)
    if not clamp:
        check_window(site, 2, offset, read, source.shape)
    if given is None:
        read = window_of_valid(source, offset, window, clamp)
    if clamp:
        read = clamp_to(read, offset, source.shape)
    return read[source.rank - len(shape) :]


def dropped_axes(site: Site, index: int, shape: Shape) -> tuple[int, ...]:
    """The axes that a drop_dims operand removes, ascending; each must have extent 1."""
    if not site.given(index):
        return ()
    axes = site.constant_dims(index)
    for axis in axes:
        if not 0 <= axis < len(shape):
            raise site.error(index, f"names axis {axis} of a rank-{len(shape)} window")
        if shape[axis] != 1:
            raise site.error(
                index,
                f"drops axis {axis} of extent {show_dim(shape[axis])}; only extent 1 can go",
                hint="reshape the slice instead",
            )
    return tuple(sorted(set(axes)))


def _kept_axes(site: Site, shape: Shape) -> list[int]:
    dropped = dropped_axes(site, 4, shape)
    return [axis for axis in range(len(shape)) if axis not in dropped]


def _assemble(site: Site) -> Type:
    target, source, offset = site.tensor(0), site.shaped(1), site.dims(2)
    demand_length(site, 2, target.rank, "one offset a dimension of the target")
    if source.rank > target.rank:
        raise site.error(1, f"has rank {source.rank}; the target has rank {target.rank}")
    check_atomic(site, 0)
    part = align_right(source.valid_shape, target.rank, 1)
    check_window(site, 2, offset, part, target.shape)
    return tensor_with_valid(target, union_valid(site, 0, target, part, offset))


def _fillpad(site: Site) -> Type:
    source = site.tensor(0)
    pad = source.view.pad if source.view is not None else PadValue.null
    return tensor_type(source.shape, source.dtype, TensorView(pad=pad))


def check_expansion(site: Site, source: Shape, shape: Shape) -> None:
    """Refuse a fillpad_expand target that is provably smaller than its source."""
    if len(shape) != len(source):
        raise site.error(1, f"has {len(shape)} elements; the source has rank {len(source)}")
    for axis, (have, want) in enumerate(zip(source, shape, strict=True)):
        if provably_lt(want, have):
            raise site.error(
                1, f"is {show_dim(want)} on axis {axis}; the source has {show_dim(have)}"
            )


def _fillpad_expand(site: Site) -> Type:
    shape, pad = site.dims(1), site.kwargs["pad_value"]
    assert isinstance(pad, PadValue)
    check_expansion(site, site.tensor(0).shape, shape)
    return tensor_type(shape, site.dtype(0), TensorView(pad=pad))


def _full(site: Site) -> Type:
    return fresh_tensor(check_extents(site, 0, site.dims(0)), kwarg_dtype(site))


def check_ci(site: Site) -> tuple[Shape, DType]:
    """Shape and dtype of a ci operator, after its limits are checked."""
    shape, dtype = site.dims(1), kwarg_dtype(site)
    if dtype not in CI_DTYPES:
        names = ", ".join(d.name for d in CI_DTYPES)
        raise site.fault(f"dtype is {dtype.name}; allowed: {names}")
    if not shape or shape[-1] == 1 or any(dim != 1 for dim in shape[:-1]):
        raise site.error(
            1,
            "must be [1, ..., n] with n other than 1",
            hint="count along one row and expand it (col_expand)",
        )
    return shape, dtype


def _ci(site: Site) -> Type:
    return fresh_tensor(*check_ci(site))


def check_random(site: Site, shape_index: int) -> tuple[Shape, DType]:
    """Shape and dtype of a random operator, after its limits are checked."""
    for index in range(6):
        site.demand_dtype(index, (INT32,))
    demand_length(site, shape_index, 2, "random makes 2-D data")
    dtype, rounds = kwarg_dtype(site), site.kwargs["rounds"]
    if dtype not in (INT32, UINT32):
        raise site.fault(f"dtype is {dtype.name}; allowed: INT32, UINT32")
    if rounds not in (7, 10):
        raise site.fault(f"rounds is {rounds}; allowed: 7, 10")
    return site.dims(shape_index), dtype


def _random(site: Site) -> Type:
    return fresh_tensor(*check_random(site, 6))


def _dim(site: Site) -> Type:
    site.axis(1, site.shaped(0).rank)
    return ScalarType(INDEX)


def index_query(site: Site) -> Type:
    """The type of an operator that reads a launch index."""
    return ScalarType(INDEX)


def memref_handle(site: Site) -> Type:
    """The type of an allocation: an opaque buffer handle."""
    return HandleType("MemRefType")


def _declare_access() -> None:
    declare("tensor.read", (tensor("tensor"), dims("indices")), element_read, "read")
    declare(
        "tensor.write",
        (tensor("tensor", effect=Effect.WRITE), dims("indices"), scalar("value")),
        element_write,
        "write",
        reuses_input=0,
        channel=Channel.SCALAR,
        pure=False,
    )
    declare_view(
        "tensor.slice",
        (
            tensor("input"),
            dims("shape"),
            dims("offset"),
            dims("valid_shape", optional=True),
            dims("drop_dims", optional=True),
        ),
        _slice,
        "slice",
        (Kwarg("pad_value", "pad", None), Kwarg("clamp", "bool", False)),
    )
    declare(
        "tensor.assemble",
        (tensor("target", effect=atomic_effect), either("source"), dims("offset")),
        _assemble,
        "assemble",
        (ATOMIC,),
        reuses_input=0,
        channel=Channel.DMA,
        pure=False,
    )


def _declare_creation() -> None:
    kwargs = (
        Kwarg("dtype", "dtype"),
        Kwarg("layout", "tensor_layout", TensorLayout.ND, always=True),
        Kwarg("manual_dep", "bool", False),
        Kwarg("init_value", "float", None),
    )
    shape = dims("shape")
    declare("tensor.create", (shape,), _create, "create", kwargs, instruction=False, pure=False)
    filled = (shape, scalar("value", keyword="value"))
    declare("tensor.full", filled, _full, "full", (Kwarg("dtype", "dtype"),), lowers_to="tile.full")
    counted = (scalar("start"), shape)
    declare("tensor.ci", counted, _ci, "misc", CI_KWARGS, lowers_to="tile.ci")
    drawn = (*RANDOM_KEYS, shape)
    declare("tensor.random", drawn, _random, "misc", RANDOM_KWARGS, lowers_to="tile.random")
    pad = (Kwarg("pad_value", "pad", PadValue.zero, always=True),)
    declare("tensor.fillpad", (tensor("tensor"),), _fillpad, "fillpad", pad)
    expanded = (tensor("tensor"), shape)
    declare("tensor.fillpad_expand", expanded, _fillpad_expand, "fillpad", pad)


def _declare_queries() -> None:
    declare(
        "tensor.dim",
        (either("tensor", effect=Effect.NONE), scalar("axis")),
        _dim,
        "query",
        instruction=False,
    )
    for name in ("get_block_idx", "get_subblock_idx", "get_block_num"):
        op, tile_op = f"tensor.{name}", f"tile.{name}"
        declare(op, (), index_query, "query", lowers_to=tile_op, instruction=False)
    declare(
        "tensor.alloc",
        (either("memory_space"), either("size")),
        memref_handle,
        "misc",
        instruction=False,
        pure=False,
    )


_declare_access()
_declare_creation()
_declare_queries()
