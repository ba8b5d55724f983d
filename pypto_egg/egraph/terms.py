"""Tensor ops as terms of the e-graph.

The terms say what the tensor program computes, conversions included: where PyPTO's type rule
promotes (an FP16 tensor times an FP32 literal is FP32), the promotion is a cast in the term,
because tile ops keep the dtype of their tile (PyPTO operator reference, hazards).
"""

from __future__ import annotations

from collections.abc import Callable

from pypto_egg.egraph.attrs import encode
from pypto_egg.egraph.bulk import Term, node
from pypto_egg.egraph.values import Keys, Local
from pypto_egg.errors import LoweringError, UnsupportedDTypeError
from pypto_egg.ir.dtype import DType, promote
from pypto_egg.ir.expr import Call, Cast, ConstFloat, ConstInt, Expr, dims_of
from pypto_egg.ir.fold import const_value, fold
from pypto_egg.ir.types import ScalarType, TensorType
from pypto_egg.ops.registry import lookup
from pypto_egg.source import Span

# Conversions that PyPTO's type rules imply are widening, where every mode gives the same value.
WIDEST_EXACT = "rint"

# Tensor ops that keep one name for a tensor and a scalar right operand; tile ops have two.
SCALAR_FORM = {
    "tensor.maximum": "tensor.maximums",
    "tensor.minimum": "tensor.minimums",
    "tensor.cmp": "tensor.cmps",
}


def computed_term(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    """The term of a call whose tensor operands are `operands` (position -> value).

    Raises:
        LoweringError: no ruleset lowers this op; names it.
    """
    decl = lookup(call.op)
    build = _BUILDERS.get(decl.family) if decl is not None else None
    if decl is None or build is None:
        raise unsupported(call)
    return build(call, operands, keys)


def unsupported(call: Call, why: str = "") -> LoweringError:
    """The refusal of an op that no ruleset lowers."""
    return LoweringError(
        f"{call.op} in an InCore function cannot be lowered{why and ': ' + why}",
        span=call.span,
        hint="move it to orchestration code, or write the tile ops by hand",
    )


def check_holdable(type_: TensorType, name: str, span: Span | None) -> None:
    """Nothing, if a tile can hold such a tensor.

    Raises:
        LoweringError: the tensor has no axis, or an extent that is not positive.
        UnsupportedDTypeError: its elements are smaller than a byte.
    """
    shape = f"shape {list(type_.shape)}"
    if not type_.shape:
        raise LoweringError(
            f"tensor '{name}' has rank 0; a tile has one axis at least",
            span=span,
            hint="pass it as a scalar, or with shape [1]",
        )
    if any(isinstance(extent, int) and extent < 1 for extent in type_.shape):
        raise LoweringError(
            f"tensor '{name}' has {shape}; every extent of a tile is 1 at least",
            span=span,
            hint="leave out what works on an empty tensor",
        )
    if type_.dtype.bits < 8:
        raise UnsupportedDTypeError(
            f"tensor '{name}' has elements of {type_.dtype} ({type_.dtype.bits} bits); tiles are "
            "loaded and computed on in whole bytes",
            span=span,
            hint="cast it to INT8 or FP16 beforehand",
        )


def operand_dtype(call: Call) -> DType | None:
    """The dtype to which PyPTO's type rule implies that tensor operands are converted; None where
    each keeps its own."""
    decl = lookup(call.op)
    if decl is None or not isinstance(call.type, TensorType):
        return None
    if decl.family == "cmp" and isinstance(call.args[1].type, TensorType):
        return promote(
            *(arg.type.dtype for arg in call.args[:2] if isinstance(arg.type, TensorType))
        )
    return call.type.dtype if decl.family in _CONVERTING else None


_CONVERTING = (
    "unary", "binary", "binary_scalar", "row_expand", "col_expand", "fill", "assemble", "cmp",
    "concat",
)  # fmt: skip


def _result(call: Call) -> TensorType:
    assert isinstance(call.type, TensorType)
    return call.type


def _attrs(call: Call) -> str:
    return encode({k: v for k, v in call.kwargs if k not in ("axis", "keep_dim")})


def _unary(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    return node("tensor.unary", call.op, _attrs(call), operands[0].term)


def _cast(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    target, mode = call.kwarg("target_type"), call.kwarg("mode")
    assert isinstance(target, DType)
    return node("tensor.cast", operands[0].term, target.name, str(mode))


def _binary(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    if 1 not in operands:
        return _with_scalar(call, operands, keys)
    return node("tensor.binary", call.op, _attrs(call), operands[0].term, operands[1].term)


def _with_scalar(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    dtype = _result(call).dtype
    scalar = keys.scalar(scalar_as(call.args[1], dtype))
    name = SCALAR_FORM.get(call.op, call.op)
    return node("tensor.with_scalar", name, _attrs(call), operands[0].term, scalar)


def scalar_as(scalar: Expr, dtype: DType) -> Expr:
    """A scalar operand in the element type of the tile op that uses it."""
    if not isinstance(scalar.type, ScalarType) or scalar.type.dtype == dtype:
        return scalar
    if isinstance(scalar, ConstInt | ConstFloat):
        if dtype.is_float:
            return ConstFloat(float(scalar.value), dtype)
        if float(scalar.value).is_integer():
            return ConstInt(int(scalar.value), dtype)
    return Cast(scalar, dtype)


def _fillpad(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    if call.op != "tensor.fillpad":
        raise unsupported(call, "a result of another shape")
    return node("tensor.unary", call.op, _attrs(call), operands[0].term)


def _reduce(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    if call.kwarg("keep_dim", True) is not True:
        raise unsupported(call, "keep_dim=False has no tile form")
    source = operands[0].type
    rows = call.op.startswith("tensor.row_")
    axis = call.kwarg("axis", -1 if rows else -2)
    last = axis in (-1, source.rank - 1) if rows else axis in (-2, source.rank - 2)
    if not last or (not rows and source.rank != 2):
        raise unsupported(call, f"axis {axis} of a rank-{source.rank} tensor has no tile form")
    return node("tensor.reduce", call.op, operands[0].term)


def _transpose(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    rank = operands[0].type.rank
    axes = [const_value(axis) for axis in call.args[1:3]]
    if rank != 2 or sorted(axis % rank if axis is not None else -1 for axis in axes) != [0, 1]:
        raise unsupported(call, f"only the two axes of a rank-2 value, not {axes} of rank {rank}")
    if len(call.args) > 3:
        raise unsupported(call, "an explicit valid_shape operand")
    return node("tensor.transpose", operands[0].term)


def _matmul(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    x, y = operands[0], operands[1]
    if min(x.type.rank, y.type.rank) < 2:
        raise unsupported(call, "a rank-1 operand; reshape it to a matrix")
    if call.kwarg("c_matrix_nz"):
        raise unsupported(call, "c_matrix_nz")
    flags = (int(bool(call.kwarg("a_trans"))), int(bool(call.kwarg("b_trans"))))
    return node("tensor.matmul", x.term, y.term, *flags, _result(call).dtype.name)


def _matmul_acc(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    flags = (int(bool(call.kwarg("a_trans"))), int(bool(call.kwarg("b_trans"))))
    terms = (*(operands[i].term for i in range(3)), *flags)
    if len(call.args) == 3:
        return node("tensor.matmul_acc", *terms)
    if _result(call).rank > 2:
        raise unsupported(call, "init_cond of a batched accumulator")
    return node("tensor.matmul_acc_from", *terms, keys.scalar(call.args[3]))


def _slice(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    if len(call.args) > 4 and dims_of(call.args[4]):
        raise unsupported(call, "drop_dims of a value on chip; reshape the result instead")
    result = _result(call)
    return node(
        "tensor.slice",
        operands[0].term,
        keys.indices(dims_of(call.args[2])),
        keys.indices(result.shape),
        keys.indices(result.valid_shape),
    )


def _reshape(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    source = operands[0].type
    if source.valid_shape != source.shape:
        raise unsupported(call, "a partly valid value on chip")
    return node("tensor.reshape", operands[0].term, keys.indices(_result(call).shape))


def _set_validshape(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    rows, cols = (keys.index(fold(arg)) for arg in call.args[1:3])
    return node("tensor.set_validshape", operands[0].term, rows, cols)


def _full(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    result = _result(call)
    return node(
        "tensor.full", keys.scalar(call.args[1]), keys.indices(result.shape), result.dtype.name
    )


def _create(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    if call.kwarg("init_value") is not None:
        raise unsupported(call, "init_value; use tensor.full")
    key = len(keys.created) + 1
    keys.created[key] = _result(call)
    return node("tensor.create", key)


def _assemble(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    return node(
        "tensor.assemble", operands[0].term, operands[1].term, keys.indices(dims_of(call.args[2]))
    )


def _write(call: Call, operands: dict[int, Local], keys: Keys) -> Term:
    indices, value = keys.indices(dims_of(call.args[1])), keys.scalar(call.args[2])
    return node("tensor.write", operands[0].term, indices, value)


_BUILDERS: dict[str, Callable[[Call, dict[int, Local], Keys], Term]] = {
    "unary": _unary,
    "cast": _cast,
    "binary": _binary,
    "cmp": _binary,
    "concat": _binary,
    "fillpad": _fillpad,
    "binary_scalar": _with_scalar,
    "fill": _with_scalar,
    "row_expand": _binary,
    "col_expand": _binary,
    "row_reduce": _reduce,
    "col_reduce": _reduce,
    "arg_reduce": _reduce,
    "transpose": _transpose,
    "matmul": _matmul,
    "matmul_acc": _matmul_acc,
    "slice": _slice,
    "reshape": _reshape,
    "set_validshape": _set_validshape,
    "full": _full,
    "create": _create,
    "assemble": _assemble,
    "write": _write,
}
