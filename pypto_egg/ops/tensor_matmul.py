"""tensor.matmul and tensor.matmul_acc (PyPTO operator reference, matmul)."""

from __future__ import annotations

from pypto_egg.ir.dtype import BOOL, DType, promote
from pypto_egg.ir.fold import provably_unequal
from pypto_egg.ir.types import Type
from pypto_egg.ops.registry import Kwarg
from pypto_egg.ops.rules import (
    Shape,
    accumulator_dtype,
    broadcast_shapes,
    fresh_tensor,
    swap_last,
)
from pypto_egg.ops.site import Site, declare, scalar, show_dim, show_shape, tensor

TRANS = (Kwarg("a_trans", "bool", False, always=True), Kwarg("b_trans", "bool", False, always=True))


def _operand_shape(site: Site, index: int, flag: str) -> Shape:
    shape = site.tensor(index).shape
    if not shape:
        raise site.error(index, "has rank 0; a matrix or a vector is needed")
    if not site.kwargs[flag]:
        return shape
    if len(shape) < 2:
        raise site.error(index, f"has shape {show_shape(shape)}; {flag}=True needs a matrix")
    return swap_last(shape)


def product_shape(site: Site, lhs: int, rhs: int) -> Shape:
    """The shape of `lhs @ rhs` after transpose flags, vectors as in NumPy, batch axes broadcast.

    Raises:
        TypeCheckError: the reduction extents provably differ, or batch axes do not broadcast.
    """
    a = _operand_shape(site, lhs, "a_trans")
    b = _operand_shape(site, rhs, "b_trans")
    inner_a, inner_b = a[-1], b[-2] if len(b) > 1 else b[0]
    if provably_unequal(inner_a, inner_b):
        raise site.error(
            rhs,
            f"has K = {show_dim(inner_b)} (shape {show_shape(b)} after b_trans), "
            f"{site.label(lhs)} has K = {show_dim(inner_a)} (shape {show_shape(a)} after a_trans)",
            hint="the inner dimensions must be equal; check a_trans and b_trans",
        )
    batch = broadcast_shapes(site, lhs, rhs, a[:-2], b[:-2])
    return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def _matmul(site: Site) -> Type:
    given = site.kwargs["out_dtype"]
    dtype = given if isinstance(given, DType) else promote(site.dtype(0), site.dtype(1))
    return fresh_tensor(product_shape(site, 0, 1), dtype)


def check_accumulator(site: Site) -> None:
    """Refuse an accumulator whose dtype the cube unit does not accumulate these operands in."""
    needed = accumulator_dtype(site.dtype(1))
    if site.dtype(0) != needed:
        raise site.error(
            0,
            f"has dtype {site.dtype(0).name}; products of {site.dtype(1).name} accumulate in "
            f"{needed.name}",
            hint=f"create the accumulator with dtype=pl.{needed.name}",
        )


def check_init_cond(site: Site, index: int) -> None:
    """Refuse a condition that is not a BOOL scalar."""
    if site.given(index):
        site.demand_dtype(index, (BOOL,))


def _matmul_acc(site: Site) -> Type:
    site.demand_same_dtype(1, 2)
    check_accumulator(site)
    check_init_cond(site, 3)
    acc, product = site.tensor(0), product_shape(site, 1, 2)
    if len(acc.shape) != len(product) or any(map(provably_unequal, acc.shape, product)):
        raise site.error(
            0,
            f"has shape {show_shape(acc.shape)}; the product has {show_shape(product)}",
            hint="create the accumulator with the shape of the product",
        )
    return acc


declare(
    "tensor.matmul",
    (tensor("lhs"), tensor("rhs")),
    _matmul,
    "matmul",
    (
        *TRANS,
        Kwarg("c_matrix_nz", "bool", False, always=True),
        Kwarg("out_dtype", "dtype", None),
    ),
)
declare(
    "tensor.matmul_acc",
    (tensor("acc"), tensor("lhs"), tensor("rhs"), scalar("init_cond", optional=True)),
    _matmul_acc,
    "matmul_acc",
    TRANS,
)
