"""With how many valid rows the products of one sum are made (C-270 to C-276).

The cube writes an accumulator with the pitch of the left operand's valid rows, rounded up to whole
fractals (C-270). All products of one sum therefore need the same number of valid rows, unless the
accumulator is a single fractal, whose pitch is the same for any number.
"""

from __future__ import annotations

from dataclasses import replace

from pypto_egg.egraph.bulk import node
from pypto_egg.egraph.facts import Facts
from pypto_egg.egraph.values import Dim, Local, static_extents
from pypto_egg.errors import LoweringError
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.fold import dim_min, provably_equal
from pypto_egg.ir.types import FRACTAL_ROWS, TensorType, TensorView, tensor_type
from pypto_egg.ops.site import show_dim


def product_valid(call: Call) -> tuple[Dim, Dim]:
    """The valid rows and columns of a product: its left operand's M, its right one's N."""
    first = _left(call)
    left, right = call.args[first].type, call.args[first + 1].type
    assert isinstance(left, TensorType)
    assert isinstance(right, TensorType)
    return left.valid_shape[_m_axis(call)], right.valid_shape[_n_axis(call)]


def with_whole_factors(call: Call, operands: dict[int, Local], facts: Facts) -> dict[int, Local]:
    """The operands of a product with all of its rows and columns declared valid.

    What the program left undefined there is then added to what is undefined in the sum. A single
    fractal needs no such declaration.
    """
    if _is_one_fractal(operands[0].type):
        return operands
    first = _left(call)
    left = _widened(operands[first], _m_axis(call), facts)
    right = _widened(operands[first + 1], _n_axis(call), facts)
    return {**operands, first: left, first + 1: right}


def _widened(operand: Local, axis: int, facts: Facts) -> Local:
    valid, whole = list(operand.type.valid_shape), operand.type.shape[axis]
    if provably_equal(valid[axis], whole):
        return operand
    valid[axis] = whole
    dims = (facts.keys.index(dim) for dim in valid)
    term = facts.bind(node("tensor.set_validshape", operand.term, *dims))
    made = replace(operand, term=term, type=with_valid(operand.type, *valid), window=None)
    facts.describe(made, None)
    return made


def product_type(call: Call, operands: dict[int, Local]) -> TensorType:
    """The type of a product of two matrices, valid where its sum is.

    Raises:
        LoweringError: it is added to a sum that has another number of valid rows.
    """
    type_ = call.type
    assert isinstance(type_, TensorType)
    if type_.rank != 2 or call.op not in ("tensor.matmul", "tensor.matmul_acc"):
        return type_
    rows, cols = product_valid(call)
    if call.op == "tensor.matmul":
        return with_valid(type_, rows, cols)
    sum_ = operands[0]
    if not sum_.settled:
        return type_
    have = sum_.type.valid_shape
    if sum_.defined and not (provably_equal(have[0], rows) or _is_one_fractal(type_)):
        raise LoweringError(
            f"{call.op} adds '{_name(call.args[1])}', of {show_dim(rows)} valid rows, to "
            f"'{_name(call.args[0])}', of {show_dim(have[0])}: the cube writes an accumulator with "
            "the pitch of the valid rows, which must be the same for all products of a sum",
            span=call.span,
            hint="give all left operands the same valid_shape, the least of theirs",
        )
    return with_valid(type_, *map(_overlap, have, (rows, cols), type_.shape))


def _overlap(have: Dim, add: Dim, whole: Dim) -> Dim:
    if provably_equal(have, whole) or provably_equal(have, add):
        return add
    return have if provably_equal(add, whole) else dim_min(have, add)


def with_valid(type_: TensorType, *valid: Dim) -> TensorType:
    """The type with these valid extents."""
    view = replace(type_.view or TensorView(), valid_shape=valid)
    return tensor_type(type_.shape, type_.dtype, view, type_.memref, type_.distributed)


def _left(call: Call) -> int:
    return 1 if call.op == "tensor.matmul_acc" else 0


def _m_axis(call: Call) -> int:
    return -1 if call.kwarg("a_trans") else -2


def _n_axis(call: Call) -> int:
    return -2 if call.kwarg("b_trans") else -1


def _is_one_fractal(type_: TensorType) -> bool:
    rows = static_extents(type_)[0]
    return isinstance(rows, int) and rows <= FRACTAL_ROWS


def _name(expr: Expr) -> str:
    return expr.name if isinstance(expr, Var) else "an operand"
