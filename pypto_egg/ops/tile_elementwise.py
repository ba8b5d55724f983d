"""tile.* elementwise operators and broadcast helpers of the vector core.

Dtype, valid region and layout of a result are those of the left operand unless a rule says
otherwise, and results live in Vec (PyPTO operator reference, tile ops).
"""

from __future__ import annotations

from pypto_egg.ir.dtype import FP16, FP32, INT16, UINT8, UINT16, DType, promote
from pypto_egg.ir.enums import Mem, TileLayout
from pypto_egg.ir.fold import dim_ceildiv, dim_round_up, provably_equal, same_dims
from pypto_egg.ir.types import TileType, Type
from pypto_egg.ops.registry import Kwarg, Operand
from pypto_egg.ops.rules import broadcast, demand_same_shape, like_tile
from pypto_egg.ops.site import Rule, Site, declare, scalar, show_dim, show_shape, tile
from pypto_egg.ops.tensor_elementwise import (
    CMP_TYPE,
    DIV_DTYPES,
    HIGH_PRECISION,
    ROW_ADD_DTYPES,
    SUBS_DTYPES,
    check_cast,
    check_cmp_type,
    check_column_vector,
    check_high_precision,
    check_row_vector,
    check_shift,
    demand_typed_scalar,
)
from pypto_egg.ops.windows import align_right

MASK_ROW_BYTES = 32  # a compare mask holds one bit a column, in rows of whole 32-byte lines
# The scalar of tile.sels has the tile's dtype, with unsigned tiles taking the signed twin.
_SIGNED_TWIN = {"UINT8": "INT8", "UINT16": "INT16", "UINT32": "INT32", "UINT64": "INT64"}


def vec(name: str, *, optional: bool = False) -> Operand:
    """A tile operand that must be in Vec."""
    return tile(name, Mem.Vec, optional=optional)


def _like_first(site: Site, dtype: DType | None = None) -> TileType:
    source = site.tile(0)
    return like_tile(source, source.shape, dtype or source.dtype, Mem.Vec, source.valid_shape)


def _pair_dtype(site: Site) -> DType:
    return promote(site.dtype(0), site.dtype(1))


def _pair(site: Site) -> Type:
    shape, lhs = broadcast(site, 0, 1), site.tile(0)
    valid = align_right(lhs.valid_shape, len(shape), 1)
    return like_tile(lhs, shape, _pair_dtype(site), Mem.Vec, valid)


def _div(site: Site) -> Type:
    site.demand_dtype(0, DIV_DTYPES)
    site.demand_same_dtype(0, 1)
    check_high_precision(site, site.dtype(0))
    demand_same_shape(site, 0, 1)
    a, b = site.tile(0).valid_shape, site.tile(1).valid_shape
    if not same_dims(a, b):
        raise site.error(
            1,
            f"is valid in {show_shape(b)}, {site.label(0)} in {show_shape(a)}; "
            "both must provably be the same",
            hint="set the same valid shape on both (set_validshape), or pad them (fillpad)",
        )
    return _like_first(site)


def _bits(site: Site) -> Type:
    site.demand_int(0, 1)
    return _pair(site)


def _shift(site: Site) -> Type:
    site.demand_int(0, 1)
    broadcast(site, 0, 1)
    return _like_first(site)


def _with_scalar(site: Site) -> Type:
    demand_typed_scalar(site, 1)
    return _like_first(site)


def _subs(site: Site) -> Type:
    site.demand_dtype(0, SUBS_DTYPES)
    return _with_scalar(site)


def _bits_with_scalar(site: Site) -> Type:
    site.demand_int(0, 1)
    return _like_first(site)


def _shift_scalar(site: Site) -> Type:
    check_shift(site, 1)
    return _bits_with_scalar(site)


def _three(site: Site) -> Type:
    shape = broadcast(site, 0, 1)
    broadcast(site, 0, 2)
    lhs = site.tile(0)
    dtype = promote(_pair_dtype(site), site.dtype(2))
    return like_tile(lhs, shape, dtype, Mem.Vec, align_right(lhs.valid_shape, len(shape), 1))


def _scalar_and_tile(site: Site) -> Type:
    demand_typed_scalar(site, 1)
    broadcast(site, 0, 2)
    return _like_first(site)


def _prelu(site: Site) -> Type:
    broadcast(site, 0, 1)
    return _like_first(site)


# --- unary -------------------------------------------------------------------------------------


def _unary(site: Site) -> Type:
    return _like_first(site)


def _unary_only(*allowed: DType) -> Rule:
    def rule(site: Site) -> Type:
        site.demand_dtype(0, allowed)
        return _like_first(site)

    return rule


def _recip(site: Site) -> Type:
    check_high_precision(site, site.dtype(0))
    return _like_first(site)


def _rsqrt(site: Site) -> Type:
    if site.given(1):
        check_scratch(site, 1)
    return _like_first(site)


def check_scratch(site: Site, index: int) -> None:
    """Refuse a scratch tile of another dtype or shape than the first operand."""
    site.demand_same_dtype(0, index)
    demand_same_shape(site, 0, index)


def _cast(site: Site) -> Type:
    return _like_first(site, check_cast(site))


# --- compare and select ------------------------------------------------------------------------


def _mask(site: Site, lhs: TileType) -> TileType:
    site.demand_rank_at_least(0, 1)
    packed = dim_ceildiv(lhs.shape[-1], 8)
    shape = (*lhs.shape[:-1], dim_round_up(packed, MASK_ROW_BYTES))
    valid = (*lhs.valid_shape[:-1], dim_ceildiv(lhs.valid_shape[-1], 8))
    return like_tile(lhs, shape, UINT8, Mem.Vec, valid)


def _cmp(site: Site) -> Type:
    check_cmp_type(site)
    broadcast(site, 0, 1)
    return _mask(site, site.tile(0))


def _cmps(site: Site) -> Type:
    check_cmp_type(site)
    demand_typed_scalar(site, 1)
    return _mask(site, site.tile(0))


def _check_mask(site: Site) -> None:
    site.demand_dtype(0, (UINT8,))


def _sel(site: Site) -> Type:
    _check_mask(site)
    site.demand_same_dtype(1, 2)
    demand_same_shape(site, 1, 2)
    lhs = site.tile(1)
    return like_tile(lhs, lhs.shape, lhs.dtype, Mem.Vec, lhs.valid_shape)


def _sels(site: Site) -> Type:
    _check_mask(site)
    source = site.tile(1)
    wanted = _SIGNED_TWIN.get(source.dtype.name, source.dtype.name)
    if site.scalar(3).name not in (wanted, source.dtype.name):
        raise site.error(
            3,
            f"has dtype {site.scalar(3).name}; {wanted} is needed",
            hint=f"write pl.const(v, pl.{wanted})",
        )
    return like_tile(source, source.shape, source.dtype, Mem.Vec, source.valid_shape)


# --- row and column broadcast ------------------------------------------------------------------


def _row_expand(site: Site) -> Type:
    check_row_vector(site)
    return _like_first(site, _pair_dtype(site))


def _row_expand_add(site: Site) -> Type:
    site.demand_rank_at_least(0, 2)
    site.demand_rank_at_least(1, 2)
    site.demand_same_dtype(0, 1)
    site.demand_dtype(0, ROW_ADD_DTYPES)
    wide, narrow = site.tile(0), site.tile(1)
    if wide.layout.blayout is not TileLayout.row_major:
        raise site.error(
            0,
            f"has blayout {wide.layout.blayout.name}; row_major is needed",
            hint="move it to Vec in row-major order first",
        )
    _check_carrier(site, narrow)
    rows, needed = narrow.valid_shape[-2], wide.valid_shape[-2]
    if not provably_equal(rows, needed):
        raise site.error(
            1,
            f"has {show_dim(rows)} valid rows; they must provably be the {show_dim(needed)} of "
            f"{site.label(0)}",
        )
    return _like_first(site)


def _check_carrier(site: Site, narrow: TileType) -> None:
    """Refuse a row vector that is neither one column nor one 32-byte line a row."""
    cols = narrow.shape[-1]
    line = 256 // narrow.dtype.bits
    is_line = narrow.layout.blayout is TileLayout.row_major and provably_equal(cols, line)
    if not (provably_equal(cols, 1) or is_line):
        raise site.error(
            1,
            f"has shape {show_shape(narrow.shape)}; allowed: [M, 1], or a row-major "
            f"[M, {line}] of 32-byte rows",
        )


def _col_expand(site: Site) -> Type:
    check_column_vector(site)
    return _like_first(site, _pair_dtype(site))


def _declare_binary() -> None:
    pair = (vec("lhs"), vec("rhs"))
    for name in (
        "add", "sub", "mul", "maximum", "minimum", "fmod",
        "part_add", "part_mul", "part_max", "part_min",
    ):  # fmt: skip
        declare(f"tile.{name}", pair, _pair, "binary", output_space=Mem.Vec)
    declare("tile.div", pair, _div, "binary", (HIGH_PRECISION,), output_space=Mem.Vec)
    for name in ("and", "or"):
        declare(f"tile.{name}", pair, _bits, "binary", output_space=Mem.Vec)
    for name in ("shl", "shr"):
        declare(f"tile.{name}", pair, _shift, "binary", output_space=Mem.Vec)
    with_tmp = (*pair, vec("tmp"))
    declare("tile.xor", with_tmp, _bits, "binary", output_space=Mem.Vec)
    declare("tile.rem", with_tmp, _pair, "binary", output_space=Mem.Vec)
    triple = (vec("a"), vec("b"), vec("c"))
    for name in ("addc", "subc"):
        declare(f"tile.{name}", triple, _three, "misc", output_space=Mem.Vec)
    prelu = (vec("tile"), vec("slope"), vec("tmp"))
    declare("tile.prelu", prelu, _prelu, "misc", output_space=Mem.Vec)


def _declare_scalar() -> None:
    operands = (vec("lhs"), scalar("rhs"))
    rules: dict[str, Rule] = {
        "adds": _with_scalar,
        "subs": _subs,
        "muls": _with_scalar,
        "divs": _with_scalar,
        "fmods": _with_scalar,
        "maximums": _with_scalar,
        "minimums": _with_scalar,
        "ands": _bits_with_scalar,
        "ors": _bits_with_scalar,
        "shls": _shift_scalar,
        "shrs": _shift_scalar,
        "lrelu": _with_scalar,
    }
    for name, rule in rules.items():
        declare(f"tile.{name}", operands, rule, "binary_scalar", output_space=Mem.Vec)
    with_tmp = (*operands, vec("tmp"))
    declare("tile.xors", with_tmp, _bits_with_scalar, "binary_scalar", output_space=Mem.Vec)
    declare("tile.rems", with_tmp, _with_scalar, "binary_scalar", output_space=Mem.Vec)
    mixed = (vec("a"), scalar("b"), vec("c"))
    for name in ("addsc", "subsc"):
        declare(f"tile.{name}", mixed, _scalar_and_tile, "misc", output_space=Mem.Vec)
    fill = (vec("target"), scalar("value"))
    declare("tile.expands", fill, _unary, "fill", output_space=Mem.Vec)


def _declare_unary() -> None:
    source = (vec("tile"),)
    rules: dict[str, Rule] = {
        "neg": _unary,
        "abs": _unary,
        "exp": _unary,
        "sqrt": _unary,
        "relu": _unary,
        "sin": _unary_only(FP32),
        "cos": _unary_only(FP32),
        "not": _unary_only(INT16, UINT16),
    }
    for name, rule in rules.items():
        declare(f"tile.{name}", source, rule, "unary", output_space=Mem.Vec)
    precise = (HIGH_PRECISION,)
    declare("tile.recip", source, _recip, "unary", precise, output_space=Mem.Vec)
    log = _unary_only(FP16, FP32)
    declare("tile.log", source, log, "unary", precise, output_space=Mem.Vec)
    with_tmp = (*source, vec("tmp", optional=True))
    declare("tile.rsqrt", with_tmp, _rsqrt, "unary", output_space=Mem.Vec)
    kwargs = (Kwarg("target_type", "dtype"), Kwarg("mode", "any", "round", always=True))
    declare("tile.cast", source, _cast, "cast", kwargs, output_space=Mem.Vec)


def _declare_select() -> None:
    cmp_kwargs = (CMP_TYPE,)
    pair, mixed = (vec("lhs"), vec("rhs")), (vec("lhs"), scalar("rhs"))
    declare("tile.cmp", pair, _cmp, "cmp", cmp_kwargs, output_space=Mem.Vec)
    declare("tile.cmps", mixed, _cmps, "cmp", cmp_kwargs, output_space=Mem.Vec)
    mask, tmp = vec("mask"), vec("tmp")
    declare("tile.sel", (mask, *pair, tmp), _sel, "select", output_space=Mem.Vec)
    sels = (mask, vec("src"), tmp, scalar("value"))
    declare("tile.sels", sels, _sels, "select", output_space=Mem.Vec)


def _declare_broadcasts() -> None:
    row = (vec("tile"), vec("row_vec"))
    for name in ("sub", "div", "mul", "max", "min", "expdif"):
        op = f"tile.row_expand_{name}"
        declare(op, row, _row_expand, "row_expand", output_space=Mem.Vec)
    add = (*row, vec("tmp", optional=True))
    declare("tile.row_expand_add", add, _row_expand_add, "row_expand", output_space=Mem.Vec)
    declare("tile.row_expand", row, _row_expand, "row_expand", output_space=Mem.Vec)
    column = (vec("tile"), vec("col_tile"))
    for name in ("add", "sub", "mul", "div", "max", "min", "expdif"):
        op = f"tile.col_expand_{name}"
        declare(op, column, _col_expand, "col_expand", output_space=Mem.Vec)
    declare("tile.col_expand", column, _col_expand, "col_expand", output_space=Mem.Vec)


_declare_binary()
_declare_scalar()
_declare_unary()
_declare_select()
_declare_broadcasts()
