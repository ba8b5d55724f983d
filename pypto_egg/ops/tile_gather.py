"""tile.* gather, scatter and sort operators (PyPTO operator reference)."""

from __future__ import annotations

from pypto_egg.ir.dtype import INT16, INT32, UINT8, UINT32, DType
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.fold import dim_product
from pypto_egg.ir.types import TupleType, Type
from pypto_egg.ops.registry import Channel, Effect, Kwarg, Kwargs, Operand
from pypto_egg.ops.rules import Shape, demand_same_shape, plain_tile
from pypto_egg.ops.site import Rule, Site, declare, dims, scalar, show_dim, tensor, tile
from pypto_egg.ops.tensor_gather import (
    COMPARE_KWARGS,
    EXHAUSTED,
    MASK_PATTERN,
    OUTPUT_DTYPE,
    TRANSPOSE,
    check_block_len,
    check_gather_row,
    check_scatter_mask,
    check_scatter_update,
    compared,
    masked,
    merged_shape,
    sorted_shape,
)
from pypto_egg.ops.tile_elementwise import vec
from pypto_egg.ops.tile_memory import target_space
from pypto_egg.ops.windows import check_valid

_COALESCE = ("elem", "row")


def _gather(site: Site) -> Type:
    site.demand_dtype(1, (INT32, INT16) if site.dtype(0).bits == 16 else (INT32,))
    indices = site.tile(1)
    demand_same_shape(site, 1, 2)
    return plain_tile(indices.shape, site.dtype(0), Mem.Vec)


def _gather_mask(site: Site) -> Type:
    shape, dtype = masked(site)
    return plain_tile(shape, dtype, Mem.Vec)


def _gather_compare(site: Site) -> Type:
    indices, counts = compared(site)
    site.demand_dtype(2, (UINT8,))
    return TupleType((plain_tile(*indices, Mem.Vec), plain_tile(*counts, Mem.Vec)))


def _gatherb(site: Site) -> Type:
    site.demand_dtype(1, (UINT32,))
    given = site.kwargs["output_dtype"]
    dtype = given if isinstance(given, DType) else site.dtype(0)
    return plain_tile(site.tile(1).shape, dtype, Mem.Vec)


def scratch_effect(kwargs: Kwargs) -> Effect:
    """mgather writes its scratch only where it gathers single elements into Mat."""
    into_mat = kwargs.get("target_memory") is Mem.Mat and kwargs.get("coalesce") == "elem"
    return Effect.WRITE if into_mat else Effect.NONE


def _mgather(site: Site) -> Type:
    site.demand_dtype(1, (INT32,))
    space, mode = target_space(site), site.kwargs["coalesce"]
    if space not in (Mem.Vec, Mem.Mat):
        raise site.fault(f"target_memory is {space}; allowed: pl.Mem.Vec, pl.Mem.Mat")
    if mode not in _COALESCE:
        raise site.fault(f"coalesce is {mode!r}; allowed: {', '.join(map(repr, _COALESCE))}")
    shape = site.tile(1).shape
    if mode == "row":
        site.demand_rank(0, 2)
        shape = (dim_product(shape), site.tensor(0).shape[1])
    valid: Shape | None = None
    if site.given(3):
        valid = site.dims(3)
        check_valid(site, 3, valid, shape)
    return plain_tile(shape, site.dtype(0), space, valid)


def _mscatter(site: Site) -> Type:
    site.demand_dtype(1, (INT32,))
    site.demand_same_dtype(2, 0)
    return site.tensor(2)


def _gather_row(site: Site) -> Type:
    check_gather_row(site)
    return site.tile(0)


def _scatter(site: Site) -> Type:
    site.demand_same_dtype(0, 1)
    wide = site.dtype(0).bits == 32
    site.demand_dtype(2, (INT32,) if wide else (INT16,))
    demand_same_shape(site, 1, 2)
    return site.tile(0)


def _scatter_mask(site: Site) -> Type:
    check_scatter_mask(site, 1, 0)
    return site.tile(0)


def _scatter_update(site: Site) -> Type:
    check_scatter_update(site)
    return site.tile(0)


# --- sort --------------------------------------------------------------------------------------


def _sort32(site: Site) -> Type:
    return plain_tile(sorted_shape(site), site.dtype(0), Mem.Vec)


def _mrgsort1(site: Site) -> Type:
    check_block_len(site)
    source = site.tile(0)
    return plain_tile(source.shape, source.dtype, Mem.Vec)


def _mrgsort2(site: Site) -> Type:
    """Two to four sources, and a scratch tile last."""
    last = len(site.args) - 1
    shape = merged_shape(site, last)
    site.demand_same_dtype(0, last)
    scratch, needed = dim_product(site.tile(last).shape), dim_product(shape)
    if isinstance(scratch, int) and isinstance(needed, int) and scratch < needed:
        raise site.error(last, f"has {scratch} elements; the merge needs {show_dim(needed)}")
    return plain_tile(shape, site.dtype(0), Mem.Vec)


def _declare_gathers() -> None:
    three = (vec("src"), vec("indices"), vec("tmp"))
    declare("tile.gather", three, _gather, "gather", output_space=Mem.Vec)
    kwargs = (MASK_PATTERN, OUTPUT_DTYPE)
    declare("tile.gather_mask", (vec("src"),), _gather_mask, "gather", kwargs, output_space=Mem.Vec)
    compare = (vec("src"), scalar("kvalue"), vec("tmp"))
    declare(
        "tile.gather_compare",
        compare,
        _gather_compare,
        "gather",
        COMPARE_KWARGS,
        output_space=Mem.Vec,
    )
    by_byte = (vec("src"), vec("offset"))
    declare("tile.gatherb", by_byte, _gatherb, "gather", (OUTPUT_DTYPE,), output_space=Mem.Vec)
    declare(
        "tile.mgather",
        (
            tensor("mem"),
            vec("idx"),
            tile("scratch", optional=True, effect=scratch_effect, keyword="scratch"),
            dims("valid_shape", optional=True, keyword="valid_shape"),
        ),
        _mgather,
        "gather",
        (
            Kwarg("coalesce", "str", "elem", always=True),
            Kwarg("gather_oob", "any", None),
            Kwarg("target_memory", "mem", Mem.Vec),
        ),
        output_space="kwarg",
    )
    row = (
        tile("dst", effect=Effect.READ_WRITE),
        tensor("src"),
        dims("dst_offset"),
        dims("src_offset"),
        dims("shapes"),
        dims("valid_shape", optional=True, keyword="valid_shape"),
    )
    _declare_in_place("tile.gather_row", row, _gather_row, (TRANSPOSE,), family="gather")


def _declare_in_place(
    name: str,
    operands: tuple[Operand, ...],
    rule: Rule,
    kwargs: tuple[Kwarg, ...] = (),
    family: str = "scatter",
) -> None:
    """Declare an operator whose result is its first operand, read and written."""
    declare(
        name, operands, rule, family, kwargs, output_space="inherit", reuses_input=0, pure=False
    )


def _declare_scatters() -> None:
    target = tile("dst", Mem.Vec, effect=Effect.READ_WRITE)
    _declare_in_place("tile.scatter", (target, vec("src"), vec("indexes")), _scatter)
    _declare_in_place("tile.scatter_mask", (target, vec("src")), _scatter_mask, (MASK_PATTERN,))
    rows = (Kwarg("dim", "int", -2, always=True),)
    updated = tile("input", Mem.Vec, effect=Effect.READ_WRITE)
    operands = (updated, vec("index"), vec("src"))
    _declare_in_place("tile.scatter_update", operands, _scatter_update, rows)
    declare(
        "tile.mscatter",
        (vec("src"), vec("idx"), tensor("output_tensor", effect=Effect.WRITE)),
        _mscatter,
        "scatter",
        reuses_input=2,
        channel=Channel.DMA,
        pure=False,
    )


def _declare_sorts() -> None:
    pair = (vec("src"), vec("idx"))
    declare("tile.sort32", pair, _sort32, "sort", output_space=Mem.Vec)
    runs = (vec("src"), scalar("block_len"))
    declare("tile.mrgsort_format1", runs, _mrgsort1, "sort", output_space=Mem.Vec)
    merged = (
        vec("src0"),
        vec("src1"),
        vec("src2_or_tmp"),
        vec("src3_or_tmp", optional=True),
        vec("tmp", optional=True),
    )
    declare("tile.mrgsort_format2", merged, _mrgsort2, "sort", (EXHAUSTED,), output_space=Mem.Vec)


_declare_gathers()
_declare_scatters()
_declare_sorts()
