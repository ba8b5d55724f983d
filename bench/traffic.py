"""What a tile kernel moves and computes, counted from its text: bytes of GM, cube passes."""

from __future__ import annotations

from dataclasses import dataclass

from pypto_egg.extract.cost.extents import ceil_div, matrix
from pypto_egg.extract.cost.kernel import executed_calls
from pypto_egg.extract.cost.l0 import k_fractal_elems, passes_of
from pypto_egg.extract.cost.model import OpInstance
from pypto_egg.extract.cost.product import PRODUCTS, operands_of
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function
from pypto_egg.ir.types import TensorType
from pypto_egg.target import Target


@dataclass(frozen=True)
class Traffic:
    """Sums over a whole run of a kernel.

    Args:
        load_bytes: valid bytes of tiles that are loaded from GM.
        store_bytes: valid elements that are stored, in the width they have in GM.
        cube_passes: cycles of the cube, issue apart: p * ceil(m/16) * ceil(k/fractal) * ceil(n/16)
            of each product, by valid extents, p passes for each pair of fractals (C-130).
        products: cube calls.
    """

    load_bytes: int
    store_bytes: int
    cube_passes: int
    products: int


def traffic(kernel: Function, target: Target) -> Traffic:
    """What a tile kernel moves and computes; a loop's body counts as often as it runs."""
    loaded = stored = passes = products = 0
    for call, times in executed_calls(kernel):
        if call.op == "tile.load":
            loaded += times * round(matrix(call.type, call.op).valid_bytes)
        elif call.op == "tile.store":
            stored += times * _stored_bytes(call)
        elif call.op in PRODUCTS:
            passes, products = passes + times * _passes(call, target), products + times
    return Traffic(loaded, stored, passes, products)


def _stored_bytes(call: Call) -> int:
    tensor = call.args[2].type
    assert isinstance(tensor, TensorType)
    return matrix(call.args[0].type, call.op).elems * tensor.dtype.bits // 8


def _passes(call: Call, target: Target) -> int:
    op = OpInstance(call.op, tuple(arg.type for arg in call.args), dict(call.kwargs), call.type)
    at = operands_of(op, target)
    a, b, c = (matrix(shaped, call.op) for shaped in (at.lhs, at.rhs, call.type))
    blocks = ceil_div(a.rows, 16) * ceil_div(b.cols, 16)
    deep = ceil_div(a.cols, k_fractal_elems(target, at.lhs.dtype))
    return c.batch * passes_of(target, at.lhs.dtype) * blocks * deep
