"""Prices of the matmul family: cube passes, and the L1 -> L0 traffic of operands still in Mat."""

from __future__ import annotations

from dataclasses import dataclass

from pypto_egg.errors import InternalError, UnsupportedDTypeError
from pypto_egg.extract.cost.extents import matrix
from pypto_egg.extract.cost.l0 import Product, product_cycles
from pypto_egg.extract.cost.model import CostVector, OpInstance
from pypto_egg.extract.cost.movement import bias_cycles, tile_of, transfer_tile
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.types import TileType
from pypto_egg.target import Target


@dataclass(frozen=True, slots=True)
class _Positions:
    """Positions of the operands of one op of the family."""

    lhs: int
    rhs: int
    lhs_scale: int | None = None
    rhs_scale: int | None = None
    bias: int | None = None


@dataclass(frozen=True, slots=True)
class Operands:
    """What is multiplied, and the accumulator's dtype.

    Args:
        accumulates: the product is added to an accumulator that exists.
        has_bias: a bias row is added.
    """

    lhs: TileType
    rhs: TileType
    acc: DType
    accumulates: bool
    has_bias: bool


_FAMILY = {
    "tile.matmul": _Positions(0, 1),
    "tile.matmul_acc": _Positions(1, 2),
    "tile.matmul_bias": _Positions(0, 1, bias=2),
    "tile.batch_matmul": _Positions(0, 1),
    "tile.batch_matmul_acc": _Positions(1, 2),
    "tile.gemv": _Positions(0, 1),
    "tile.gemv_acc": _Positions(1, 2),
    "tile.gemv_bias": _Positions(0, 1, bias=2),
    "tile.matmul_mx": _Positions(0, 2, lhs_scale=1, rhs_scale=3),
    "tile.matmul_mx_acc": _Positions(1, 3, lhs_scale=2, rhs_scale=4),
    "tile.matmul_mx_bias": _Positions(0, 2, lhs_scale=1, rhs_scale=3, bias=4),
}
PRODUCTS = tuple(_FAMILY)


def price_product(op: OpInstance, target: Target) -> CostVector:
    """tile.matmul and its family: passes by valid extents (C-130), MTE1 for operands in Mat.

    An operand in Left or Right was paid for by its move. A batch costs each of its products; the
    accumulator is added to where it lies and the result stays there, so draining it is the price
    of the store or move that follows.
    """
    at = operands_of(op, target)
    a, b, c = (matrix(shaped, op.op) for shaped in (at.lhs, at.rhs, op.result))
    product = Product(
        valid=(a.rows, b.cols, a.cols),
        physical=(a.physical_rows, b.physical_cols, a.physical_cols),
        lhs=at.lhs.dtype,
        rhs=at.rhs.dtype,
        acc=at.acc,
        lhs_in_l0=in_l0(at.lhs, Mem.Left, op.op),
        rhs_in_l0=in_l0(at.rhs, Mem.Right, op.op),
    )
    load, cube = product_cycles(product, target)
    cost = c.batch * CostVector(mte1=load, cube=cube)
    return cost + side_operands(op, target)


def operands_of(op: OpInstance, target: Target) -> Operands:
    """The operands of a product, found by their positions.

    Raises:
        UnsupportedDTypeError: the target's cube has no such product.
    """
    at = _FAMILY[op.op]
    lhs, rhs = tile_of(op.operands[at.lhs], op.op), tile_of(op.operands[at.rhs], op.op)
    acc = target.cube_accumulator(lhs.dtype, rhs.dtype, mx=at.lhs_scale is not None)
    if acc is None:
        raise UnsupportedDTypeError(
            f"{op.op}: the cube of {target.name} has no product {lhs.dtype} x {rhs.dtype}",
            hint="cast an operand, or choose a target that has it",
        )
    return Operands(lhs, rhs, acc, op.op.endswith("_acc"), at.bias is not None)


def in_l0(tile: TileType, l0: Mem, op: str) -> bool:
    if tile.space in (Mem.Mat, None):
        return False
    if tile.space is not l0:
        raise InternalError(f"{op}: operand in {tile.space}, expected Mat or {l0.value}")
    return True


def side_operands(op: OpInstance, target: Target) -> CostVector:
    """MTE1 for a bias row and for block scales that are still in Mat."""
    at, cost = _FAMILY[op.op], CostVector()
    if at.bias is not None:
        bias = tile_of(op.operands[at.bias], op.op)
        if bias.space is not Mem.Bias:
            cost += CostVector(mte1=bias_cycles(bias, op.op, target))
    for index, space in ((at.lhs_scale, Mem.LeftScale), (at.rhs_scale, Mem.RightScale)):
        if index is None:
            continue
        scale = tile_of(op.operands[index], op.op)
        if scale.space is not space:
            moved = TileType(scale.shape, scale.dtype, space, scale.view)
            cost += transfer_tile(Mem.Mat, moved, scale.dtype, op.op, target)
    return cost
