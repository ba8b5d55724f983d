"""tile.* matrix products of the cube core (PyPTO operator reference, matmul family).

The type rules take operands in any space; the declared spaces are where they must be when the
product executes.
"""

from __future__ import annotations

from pypto_egg.ir.dtype import FP8E4M3FN, FP8E8M0, FP32, DType
from pypto_egg.ir.enums import CompactMode, Mem
from pypto_egg.ir.fold import (
    Dim,
    dim_min,
    provably_equal,
    provably_lt,
    provably_unequal,
)
from pypto_egg.ir.types import TileType, Type, tile_type
from pypto_egg.ops.registry import Effect, Kwarg
from pypto_egg.ops.rules import (
    Shape,
    accumulator_dtype,
    broadcast_shapes,
    demand_equal_dim,
    mark_partial,
    plain_tile,
)
from pypto_egg.ops.site import Site, declare, scalar, show_dim, show_shape, tile
from pypto_egg.ops.tensor_matmul import check_accumulator, check_init_cond

LHS, RHS = tile("lhs", Mem.Left), tile("rhs", Mem.Right)
LHS_SCALE, RHS_SCALE = tile("lhs_scale", Mem.LeftScale), tile("rhs_scale", Mem.RightScale)
BIAS = tile("bias", Mem.Bias)
ACC = tile("acc", Mem.Acc, effect=Effect.READ_WRITE)
GEMV_ROWS = 16  # one accumulator fractal


def _check_inner(site: Site, lhs: int, rhs: int) -> None:
    """Refuse operands whose reduction extents provably differ, or leave valid K uncovered."""
    a, b = site.tile(lhs), site.tile(rhs)
    if provably_unequal(a.shape[-1], b.shape[-2]):
        raise site.error(
            rhs,
            f"has K = {show_dim(b.shape[-2])} (shape {show_shape(b.shape)}), {site.label(lhs)} "
            f"has K = {show_dim(a.shape[-1])} (shape {show_shape(a.shape)})",
            hint="columns of the left operand must equal rows of the right one",
        )
    valid_a, valid_b = a.valid_shape[-1], b.valid_shape[-2]
    if provably_lt(valid_b, valid_a):
        raise site.error(
            rhs,
            f"has {show_dim(valid_b)} valid rows; the {show_dim(valid_a)} valid columns of "
            f"{site.label(lhs)} must be covered",
            hint="load the whole reduction extent of the right operand, or pad it with zeros",
        )


def _product(site: Site, lhs: int, rhs: int, batched: bool) -> TileType:
    for index in (lhs, rhs):
        if batched:
            site.demand_rank_at_least(index, 2)
        else:
            site.demand_rank(index, 2)
    site.demand_same_dtype(lhs, rhs)
    _check_inner(site, lhs, rhs)
    a, b = site.tile(lhs), site.tile(rhs)
    batch = broadcast_shapes(site, lhs, rhs, a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    valid = (*batch, a.valid_shape[-2], b.valid_shape[-1])
    return mark_partial(plain_tile(shape, accumulator_dtype(a.dtype), Mem.Acc, valid))


def _matmul(site: Site) -> Type:
    return _product(site, 0, 1, batched=False)


def _batch_matmul(site: Site) -> Type:
    return _product(site, 0, 1, batched=True)


def check_bias(site: Site, index: int, cols: Dim, dtype: DType) -> None:
    """Refuse a bias that is not one row of the product's columns in its dtype."""
    site.demand_rank(index, 2)
    site.demand_dtype(index, (dtype,))
    rows, found = site.tile(index).shape
    demand_equal_dim(site, index, "rows", rows, 1)
    demand_equal_dim(site, index, "columns", found, cols)


def _matmul_bias(site: Site) -> Type:
    product = _product(site, 0, 1, batched=False)
    check_bias(site, 2, product.shape[-1], product.dtype)
    return product


def _accumulated(site: Site, product: TileType, lhs: int) -> TileType:
    """The accumulator after `product` is added; its valid region is what both have.

    Raises:
        TypeCheckError: physical extents provably differ; the message names both tiles.
    """
    acc = site.tile(0)
    if acc.rank != product.rank:
        raise site.error(
            0, f"has shape {show_shape(acc.shape)}; the product has {show_shape(product.shape)}"
        )
    if provably_unequal(acc.shape[-2], product.shape[-2]):
        raise site.error(
            0,
            f"has {show_dim(acc.shape[-2])} physical rows; {site.label(lhs)} has "
            f"{show_dim(product.shape[-2])}",
            hint="align the accumulator and the left operand to the same physical M",
        )
    if any(map(provably_unequal, acc.shape, product.shape)):
        raise site.error(
            0, f"has shape {show_shape(acc.shape)}; the product has {show_shape(product.shape)}"
        )
    return _narrowed(acc, product.valid_shape)


def _narrowed(acc: TileType, valid: Shape) -> TileType:
    """The accumulator in Acc, valid where it and the product are."""
    both = tuple(
        have if provably_equal(have, add) else _overlap(have, add, whole)
        for have, add, whole in zip(acc.valid_shape, valid, acc.shape, strict=True)
    )
    if acc.space is Mem.Acc:
        held = acc.with_view(valid_shape=both)
    else:
        held = plain_tile(acc.shape, acc.dtype, Mem.Acc, both)
        if acc.layout.compact is CompactMode.normal:
            held = held.with_view(compact=CompactMode.normal)
    return mark_partial(tile_type(held.shape, held.dtype, Mem.Acc, held.layout, acc.memref))


def _overlap(have: Dim, add: Dim, whole: Dim) -> Dim:
    """The valid extent common to accumulator and product; a full one limits nothing."""
    if provably_equal(have, whole):
        return add
    return have if provably_equal(add, whole) else dim_min(have, add)


def _matmul_acc(site: Site) -> Type:
    check_accumulator(site)
    check_init_cond(site, 3)
    return _accumulated(site, _product(site, 1, 2, batched=False), 1)


def _batch_matmul_acc(site: Site) -> Type:
    check_accumulator(site)
    return _accumulated(site, _product(site, 1, 2, batched=True), 1)


# --- matrix-vector -----------------------------------------------------------------------------


def _one_row_product(site: Site, lhs: int, rhs: int) -> TileType:
    """`[16, N]` valid `[1, N]`: one row of the product in one accumulator fractal."""
    product = _product(site, lhs, rhs, batched=False)
    rows = site.tile(lhs).shape[0]
    if rows != 1:
        raise site.error(
            lhs,
            f"has {show_dim(rows)} rows; gemv takes exactly 1",
            hint="use the matmul of the same name",
        )
    shape, valid = (GEMV_ROWS, product.shape[1]), (1, product.valid_shape[1])
    return mark_partial(plain_tile(shape, product.dtype, Mem.Acc, valid))


def _gemv(site: Site) -> Type:
    return _one_row_product(site, 0, 1)


def _gemv_bias(site: Site) -> Type:
    product = _one_row_product(site, 0, 1)
    check_bias(site, 2, product.shape[-1], product.dtype)
    return product


def _gemv_acc(site: Site) -> Type:
    check_accumulator(site)
    return _accumulated(site, _one_row_product(site, 1, 2), 1)


# --- microscaling ------------------------------------------------------------------------------


def _scaled_product(site: Site, first: int) -> TileType:
    """The FP32 product of FP8 operands `first` and `first + 2`, each followed by its scales."""
    lhs, rhs = first, first + 2
    for index in (lhs, rhs):
        site.demand_rank(index, 2)
        site.demand_dtype(index, (FP8E4M3FN,))
        site.demand_rank(index + 1, 2)
        site.demand_dtype(index + 1, (FP8E8M0,))
    _check_inner(site, lhs, rhs)
    a, b = site.tile(lhs), site.tile(rhs)
    for what, index, extent, unit in (
        ("M", lhs, a.shape[0], 16),
        ("K", lhs, a.shape[1], 64),
        ("N", rhs, b.shape[1], 16),
    ):
        if isinstance(extent, int) and extent % unit:
            raise site.error(index, f"has {what} = {extent}; it must be a multiple of {unit}")
    valid = (a.valid_shape[0], b.valid_shape[1])
    return mark_partial(plain_tile((a.shape[0], b.shape[1]), FP32, Mem.Acc, valid))


def _matmul_mx(site: Site) -> Type:
    return _scaled_product(site, 0)


def _matmul_mx_bias(site: Site) -> Type:
    product = _scaled_product(site, 0)
    check_bias(site, 4, product.shape[-1], product.dtype)
    return product


def _matmul_mx_acc(site: Site) -> Type:
    site.demand_dtype(0, (FP32,))
    return _accumulated(site, _scaled_product(site, 1), 1)


def _scale_addr(site: Site) -> Type:
    return site.tile(0)


def _declare_plain() -> None:
    pair, with_bias = (LHS, RHS), (LHS, RHS, BIAS)
    phase = (Kwarg("acc_phase", "any", None),)
    declare("tile.matmul", pair, _matmul, "matmul", output_space=Mem.Acc)
    declare("tile.batch_matmul", pair, _batch_matmul, "batch_matmul", output_space=Mem.Acc)
    declare("tile.gemv", pair, _gemv, "matmul", phase, output_space=Mem.Acc)
    declare("tile.matmul_bias", with_bias, _matmul_bias, "matmul_bias", output_space=Mem.Acc)
    declare("tile.gemv_bias", with_bias, _gemv_bias, "matmul_bias", phase, output_space=Mem.Acc)


def _declare_accumulating() -> None:
    phase = (Kwarg("acc_phase", "any", None),)
    operands, cond = (ACC, LHS, RHS), scalar("init_cond", optional=True)
    scaled = (ACC, LHS, LHS_SCALE, RHS, RHS_SCALE)
    for name, taken, rule, kwargs in (
        ("matmul_acc", (*operands, cond), _matmul_acc, ()),
        ("batch_matmul_acc", operands, _batch_matmul_acc, ()),
        ("gemv_acc", operands, _gemv_acc, phase),
        ("matmul_mx_acc", scaled, _matmul_mx_acc, ()),
    ):
        declare(
            f"tile.{name}",
            taken,
            rule,
            "matmul_mx" if name == "matmul_mx_acc" else "matmul_acc",
            kwargs,
            output_space=Mem.Acc,
            reuses_input=0,
            pure=False,
        )


def _declare_scaled() -> None:
    operands = (LHS, LHS_SCALE, RHS, RHS_SCALE)
    declare("tile.matmul_mx", operands, _matmul_mx, "matmul_mx", output_space=Mem.Acc)
    with_bias = (*operands, BIAS)
    declare("tile.matmul_mx_bias", with_bias, _matmul_mx_bias, "matmul_mx", output_space=Mem.Acc)
    declare(
        "tile.tget_scale_addr",
        (tile("dst_scale", effect=Effect.WRITE), tile("src")),
        _scale_addr,
        "misc",
        output_space="inherit",
        reuses_input=0,
        pure=False,
    )


_declare_plain()
_declare_accumulating()
_declare_scaled()
