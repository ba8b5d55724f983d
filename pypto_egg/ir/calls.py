"""What the names in a function's signature stand for at a call of it."""

from __future__ import annotations

from collections.abc import Sequence

from pypto_egg.ir.expr import Expr, Var, as_expr
from pypto_egg.ir.program import Param
from pypto_egg.ir.types import ScalarType, TensorType


def bound_names(params: Sequence[Param], args: Sequence[Expr]) -> dict[Var, Expr]:
    """Scalar parameters and symbolic extents of parameters -> what the caller gives for them.

    A symbol stands for the extent of the first argument that has it alone as an extent. The same
    symbol in the caller's own types is another one.
    """
    found: dict[Var, Expr] = {}
    for param, arg in zip(params, args, strict=False):
        kind = param.var.type
        if isinstance(kind, ScalarType) and isinstance(arg.type, ScalarType):
            found[param.var] = arg
        if not isinstance(kind, TensorType) or not isinstance(arg.type, TensorType):
            continue
        for dim, extent in zip(kind.shape, arg.type.shape, strict=False):
            if isinstance(dim, Var):
                found.setdefault(dim, as_expr(extent))
    return found
