"""tensor.* gather, scatter and sort operators (PyPTO operator reference)."""

from __future__ import annotations

from pypto_egg.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, UINT32, DType
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.fold import (
    Dim,
    const_value,
    dim_add,
    dim_floordiv,
    dim_mul,
    provably_lt,
    provably_unequal,
)
from pypto_egg.ir.types import TensorType, TupleType, Type
from pypto_egg.ops.registry import Kwarg
from pypto_egg.ops.rules import Shape, demand_same_shape, fresh_tensor
from pypto_egg.ops.site import Site, declare, dims, scalar, show_dim, show_shape, tensor
from pypto_egg.ops.tensor_memory import kwarg_dtype
from pypto_egg.ops.windows import demand_length

GATHER_DTYPES = (FP16, FP32, INT16, INT32)
PAGED_DTYPES = (FP16, BF16, FP32, INT8)
MASK_PATTERN = Kwarg("mask_pattern", "int")
OUTPUT_DTYPE = Kwarg("output_dtype", "dtype", None)
COMPARE_KWARGS = (
    Kwarg("cmp_mode", "any"),
    Kwarg("offset", "int", 0, always=True),
    Kwarg("out_cols", "int"),
    Kwarg("count_dtype", "dtype", None),
)
CMP_MODES = ("eq", "ne", "lt", "le", "gt", "ge")
EXHAUSTED = Kwarg("exhausted", "bool", False, always=True)
TRANSPOSE = Kwarg("transpose", "bool", False, always=True)
SORT_RUN = 32  # elements that sort32 sorts together
MERGE_UNIT = 64  # block lengths of mrgsort_format1 are multiples of this


def index_dtype(data: DType) -> DType:
    """The integer dtype that scatter indices must have for data of this width."""
    return INT32 if data.bits == 32 else INT16


def _gather(site: Site) -> Type:
    index = site.tensor(1)
    axis = site.kwargs["dim"]
    if axis is None:
        site.demand_dtype(1, (INT32,))
        return fresh_tensor(index.shape, site.dtype(0))
    source = site.tensor(0)
    site.demand_dtype(0, GATHER_DTYPES)
    site.demand_dtype(1, (INT32, INT16) if source.dtype.bits == 16 else (INT32,))
    assert isinstance(axis, int)
    _check_gather_shapes(site, source, index, axis)
    return fresh_tensor(index.shape, source.dtype)


def _check_gather_shapes(site: Site, source: TensorType, index: TensorType, axis: int) -> None:
    if not -source.rank <= axis < source.rank:
        raise site.fault(
            f"dim is {axis}; allowed for rank {source.rank}: {-source.rank} to {source.rank - 1}"
        )
    if index.rank != source.rank:
        raise site.error(1, f"has rank {index.rank}; {site.label(0)} has rank {source.rank}")
    for position in range(source.rank):
        have, want = source.shape[position], index.shape[position]
        if position != axis % source.rank and provably_lt(have, want):
            raise site.error(
                1,
                f"has extent {show_dim(want)} on axis {position}; {site.label(0)} has only "
                f"{show_dim(have)}",
            )


def mask_columns(site: Site, columns: Dim) -> Dim:
    """The columns that a mask pattern keeps: half (1, 2), a quarter (3 to 6) or all (7)."""
    pattern = site.kwargs["mask_pattern"]
    if pattern not in range(1, 8):
        raise site.fault(f"mask_pattern is {pattern}; allowed: 1 to 7")
    if pattern == 7:
        return columns
    return dim_floordiv(columns, 2 if pattern in (1, 2) else 4)


def masked(site: Site) -> tuple[Shape, DType]:
    """Shape and dtype of a gather_mask result."""
    site.demand_rank(0, 2)
    rows, columns = site.shaped(0).shape
    given = site.kwargs["output_dtype"]
    dtype = given if isinstance(given, DType) else site.dtype(0)
    return (rows, mask_columns(site, columns)), dtype


def _gather_mask(site: Site) -> Type:
    return fresh_tensor(*masked(site))


def compared(site: Site) -> tuple[tuple[Shape, DType], tuple[Shape, DType]]:
    """Shapes and dtypes of the indices and the counts of a gather_compare."""
    site.demand_rank(0, 2)
    mode = site.kwargs["cmp_mode"]
    if mode not in CMP_MODES and mode not in range(len(CMP_MODES)):
        raise site.fault(f"cmp_mode is {mode!r}; allowed: {', '.join(CMP_MODES)} or 0 to 5")
    columns = site.kwargs["out_cols"]
    assert isinstance(columns, int)
    if columns < 1:
        raise site.fault(f"out_cols is {columns}; it must be at least 1")
    count = site.kwargs["count_dtype"]
    rows = site.shaped(0).shape[0]
    return ((rows, columns), INT32), ((1, rows), count if isinstance(count, DType) else INT32)


def _gather_compare(site: Site) -> Type:
    indices, counts = compared(site)
    return TupleType((fresh_tensor(*indices), fresh_tensor(*counts)))


def check_gather_row(site: Site) -> None:
    """Check windows, dtypes and the optional valid_shape of a gather_row (C-238 to C-247).

    Raises:
        TypeCheckError: run-time extents in `shapes`, a valid shape outside them, or a valid shape
            together with transpose=True.
    """
    acc, source = site.shaped(0), site.tensor(1)
    site.demand_same_dtype(0, 1)
    demand_length(site, 2, acc.rank, "one offset a dimension of the accumulator")
    demand_length(site, 3, source.rank, "one offset a dimension of the source")
    shapes = site.constant_dims(4)
    demand_length(site, 4, source.rank, "one extent a dimension of the source")
    if not site.given(5):
        return
    if site.kwargs["transpose"]:
        raise site.error(
            5,
            "cannot be combined with transpose=True",
            hint="gather whole windows when transposing, or transpose the product instead",
        )
    valid = site.dims(5)
    demand_length(site, 5, len(shapes), "one extent a dimension of shapes")
    for axis, (part, limit) in enumerate(zip(valid, shapes, strict=True)):
        if provably_lt(part, 0) or provably_lt(limit, part):
            raise site.error(
                5, f"is {show_dim(part)} on axis {axis}; allowed: 0 to {limit} (shapes)"
            )


def _gather_row(site: Site) -> Type:
    check_gather_row(site)
    return site.tensor(0)


def _paged_gather(site: Site) -> Type:
    site.demand_rank(0, 2)
    site.demand_dtype(0, PAGED_DTYPES)
    site.demand_dtype(1, (INT32,))
    site.demand_dtype(2, (INT32,))
    space, transposed = site.kwargs["space"], bool(site.kwargs["is_trans"])
    if space not in (Mem.Mat, Mem.Vec):
        raise site.fault(f"space is {space}; allowed: pl.Mem.Mat, pl.Mem.Vec")
    if transposed and space is not Mem.Mat:
        raise site.fault(
            "is_trans=True with space=pl.Mem.Vec; only a Mat buffer can be filled transposed",
            hint="use space=pl.Mem.Mat",
        )
    rows, size = site.kwargs["max_indices"], site.kwargs["size"]
    assert isinstance(rows, int)
    assert isinstance(size, int)
    return fresh_tensor((size, rows) if transposed else (rows, size), site.dtype(0))


def _create_l1(site: Site) -> Type:
    return fresh_tensor(site.constant_dims(0), kwarg_dtype(site))


# --- scatter -----------------------------------------------------------------------------------


def _scatter(site: Site) -> Type:
    site.demand_rank(0, 2)
    site.demand_same_dtype(0, 2)
    site.demand_dtype(1, (index_dtype(site.dtype(0)),))
    demand_same_shape(site, 1, 2)
    if site.kwargs["dim"] not in (-1, 1):
        raise site.fault(f"dim is {site.kwargs['dim']}; allowed: -1 (along the columns)")
    return site.tensor(0)


def check_scatter_mask(site: Site, source: int, target: int) -> None:
    """Check that the source holds the columns that the pattern takes of the target."""
    site.demand_rank(source, 2)
    site.demand_rank(target, 2)
    site.demand_same_dtype(target, source)
    kept = mask_columns(site, site.shaped(target).shape[1])
    have = site.shaped(source).shape
    if provably_unequal(have[1], kept):
        raise site.error(
            source,
            f"has shape {show_shape(have)}; mask_pattern {site.kwargs['mask_pattern']} takes "
            f"{show_dim(kept)} columns",
        )


def _scatter_mask(site: Site) -> Type:
    check_scatter_mask(site, 0, 1)
    return site.tensor(1)


def check_scatter_update(site: Site) -> None:
    """Check a whole-row update: dim -2, integer indices, one source row an index."""
    target, index, source = site.shaped(0), site.shaped(1), site.shaped(2)
    if target.rank not in (2, 4):
        raise site.error(0, f"has rank {target.rank}; allowed: 2, 4")
    site.demand_rank(1, 2)
    site.demand_int(1)
    site.demand_same_dtype(0, 2)
    axis = site.kwargs["dim"]
    assert isinstance(axis, int)
    if axis not in (-2, target.rank - 2):
        raise site.fault(f"dim is {axis}; only whole rows can be updated, dim=-2")
    if source.rank != target.rank:
        raise site.error(2, f"has rank {source.rank}; {site.label(0)} has rank {target.rank}")
    count = dim_mul(index.shape[0], index.shape[1])
    if target.rank == 2 and provably_unequal(source.shape[0], count):
        raise site.error(
            2,
            f"has {show_dim(source.shape[0])} rows; {site.label(1)} names {show_dim(count)}",
            hint="give one source row for each index",
        )
    if provably_unequal(source.shape[-1], target.shape[-1]):
        raise site.error(
            2,
            f"has {show_dim(source.shape[-1])} columns; the input has {show_dim(target.shape[-1])}",
        )


def _scatter_update(site: Site) -> Type:
    check_scatter_update(site)
    return site.tensor(0)


# --- sort --------------------------------------------------------------------------------------


def sorted_shape(site: Site) -> Shape:
    """The shape of sort32: the last dimension doubled for (value, index) pairs."""
    site.demand_dtype(0, (FP16, FP32))
    site.demand_dtype(1, (UINT32,))
    site.demand_rank_at_least(0, 1)
    demand_same_shape(site, 0, 1)
    shape = site.shaped(0).shape
    if isinstance(shape[-1], int) and shape[-1] % SORT_RUN:
        raise site.error(0, f"has last dimension {shape[-1]}; a multiple of {SORT_RUN} is needed")
    return (*shape[:-1], dim_mul(shape[-1], 2))


def _sort32(site: Site) -> Type:
    return fresh_tensor(sorted_shape(site), site.dtype(0))


def check_block_len(site: Site) -> None:
    """Refuse a constant block length that is no multiple of 64."""
    site.demand_int(1)
    length = const_value(site.args[1])
    if length is not None and (length <= 0 or length % MERGE_UNIT):
        raise site.error(1, f"is {length}; a positive multiple of {MERGE_UNIT} is needed")


def _mrgsort1(site: Site) -> Type:
    check_block_len(site)
    source = site.tensor(0)
    return fresh_tensor(source.shape, source.dtype)


def merged_shape(site: Site, count: int) -> Shape:
    """The shape of a merge of the first `count` operands: last dimensions added."""
    first = site.shaped(0).shape
    total: Dim = 0
    for index in range(count):
        site.demand_rank_at_least(index, 1)
        site.demand_same_dtype(0, index)
        shape = site.shaped(index).shape
        if len(shape) != len(first):
            raise site.error(index, f"has rank {len(shape)}; {site.label(0)} has {len(first)}")
        total = dim_add(total, shape[-1])
    return (*first[:-1], total)


def _mrgsort2(site: Site) -> Type:
    return fresh_tensor(merged_shape(site, len(site.args)), site.dtype(0))


def _declare_gathers() -> None:
    source = tensor("input")
    dim = (Kwarg("dim", "int", None),)
    declare("tensor.gather", (source, tensor("index")), _gather, "gather", dim)
    kwargs = (MASK_PATTERN, OUTPUT_DTYPE)
    declare(
        "tensor.gather_mask",
        (source,),
        _gather_mask,
        "gather",
        kwargs,
        lowers_to="tile.gather_mask",
    )
    operands = (source, scalar("kvalue"))
    declare("tensor.gather_compare", operands, _gather_compare, "gather", COMPARE_KWARGS)
    row = (
        tensor("acc"),
        tensor("src"),
        dims("dst_offset"),
        dims("src_offset"),
        dims("shapes"),
        dims("valid_shape", optional=True, keyword="valid_shape"),
    )
    declare("tensor.gather_row", row, _gather_row, "gather", (TRANSPOSE,))
    paged = (
        Kwarg("block_size", "int"),
        Kwarg("size", "int"),
        Kwarg("max_indices", "int"),
        Kwarg("col_off", "any", 0, always=True),
        Kwarg("is_trans", "bool", False, always=True),
        Kwarg("is_b_matrix", "bool", False, always=True),
        Kwarg("space", "mem", Mem.Mat, always=True),
    )
    pages = (tensor("src"), tensor("indices"), tensor("block_table"))
    declare("tensor.paged_gather", pages, _paged_gather, "gather", paged)
    created = (Kwarg("dtype", "dtype"), TRANSPOSE)
    declare(
        "tensor.create_l1",
        (dims("shape"),),
        _create_l1,
        "create",
        created,
        instruction=False,
        pure=False,
    )


def _declare_scatters() -> None:
    operands = (tensor("input"), tensor("index"), tensor("src"))
    last = (Kwarg("dim", "int", -1, always=True),)
    declare("tensor.scatter", operands, _scatter, "scatter", last)
    rows = (Kwarg("dim", "int", -2, always=True),)
    declare("tensor.scatter_update", operands, _scatter_update, "scatter", rows)
    masked_pair = (tensor("input"), tensor("dst"))
    declare("tensor.scatter_mask", masked_pair, _scatter_mask, "scatter", (MASK_PATTERN,))


def _declare_sorts() -> None:
    pair = (tensor("src"), tensor("idx"))
    declare("tensor.sort32", pair, _sort32, "sort", lowers_to="tile.sort32")
    runs = (tensor("src"), scalar("block_len"))
    declare("tensor.mrgsort_format1", runs, _mrgsort1, "sort", lowers_to="tile.mrgsort_format1")
    sources = tuple(tensor(f"src{i}", optional=i >= 2) for i in range(4))
    declare("tensor.mrgsort_format2", sources, _mrgsort2, "sort", (EXHAUSTED,))


_declare_gathers()
_declare_scatters()
_declare_sorts()
