"""tile.* reductions of the vector core (PyPTO operator reference, tile reductions).

Column reductions collapse axis 0 of a tile of any rank.
"""

from __future__ import annotations

from pypto_egg.ir.dtype import INT32, DType
from pypto_egg.ir.enums import Mem, TileLayout
from pypto_egg.ir.fold import provably_lt
from pypto_egg.ir.types import TileType, Type
from pypto_egg.ops.rules import demand_same_shape, plain_tile
from pypto_egg.ops.site import Site, declare, show_shape
from pypto_egg.ops.tensor_reduce import ROW_MIN_DTYPES, check_not_empty
from pypto_egg.ops.tile_elementwise import vec


def _row_result(source: TileType, dtype: DType) -> TileType:
    shape, valid = (*source.shape[:-1], 1), (*source.valid_shape[:-1], 1)
    return plain_tile(shape, dtype, Mem.Vec, valid).with_view(blayout=TileLayout.col_major)


def _col_result(source: TileType, dtype: DType) -> TileType:
    shape, valid = (1, *source.shape[1:]), (1, *source.valid_shape[1:])
    return plain_tile(shape, dtype, Mem.Vec, valid)


def _source(site: Site) -> TileType:
    site.demand_rank_at_least(0, 1)
    source = site.tile(0)
    check_not_empty(site, source)
    return source


def _check_row_tmp(site: Site) -> None:
    site.demand_same_dtype(0, 1)
    source, tmp = site.tile(0), site.tile(1)
    same_rank = source.rank == tmp.rank
    if not same_rank or any(map(provably_lt, tmp.shape, source.shape)):
        raise site.error(
            1,
            f"has shape {show_shape(tmp.shape)}; at least {show_shape(source.shape)} is needed",
            hint="create the scratch tile with the shape of the source",
        )


def _row(site: Site) -> Type:
    source = _source(site)
    _check_row_tmp(site)
    return _row_result(source, source.dtype)


def _row_min(site: Site) -> Type:
    site.demand_dtype(0, ROW_MIN_DTYPES)
    return _row(site)


def _check_exact_tmp(site: Site) -> None:
    site.demand_same_dtype(0, 1)
    demand_same_shape(site, 0, 1)


def _row_arg(site: Site) -> Type:
    source = _source(site)
    _check_exact_tmp(site)
    return _row_result(source, INT32)


def _col(site: Site) -> Type:
    source = _source(site)
    return _col_result(source, source.dtype)


def _col_arg(site: Site) -> Type:
    source = _source(site)
    _check_exact_tmp(site)
    return _col_result(source, INT32)


def _declare() -> None:
    source, tmp = vec("tile"), vec("tmp")
    for name in ("sum", "max", "min", "prod"):
        rule = _row_min if name == "min" else _row
        declare(f"tile.row_{name}", (source, tmp), rule, "row_reduce", output_space=Mem.Vec)
    for name in ("argmax", "argmin"):
        declare(f"tile.row_{name}", (source, tmp), _row_arg, "arg_reduce", output_space=Mem.Vec)
        declare(f"tile.col_{name}", (source, tmp), _col_arg, "arg_reduce", output_space=Mem.Vec)
    with_tmp = (source, vec("tmp", optional=True))
    declare("tile.col_sum", with_tmp, _col, "col_reduce", output_space=Mem.Vec)
    for name in ("max", "min", "prod"):
        declare(f"tile.col_{name}", (source,), _col, "col_reduce", output_space=Mem.Vec)


_declare()
