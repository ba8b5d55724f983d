"""IncoreTileOps: device functions compute on tiles only."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg.analysis.effects import DEVICE_FUNCTIONS
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function
from pypto_egg.ir.visit import expressions_of, subexpressions, walk
from pypto_egg.ops.registry import lookup
from pypto_egg.verify.finding import Finding, Property

# Scalar accesses to global memory and queries about it have no tile form (C-055, C-057, C-224).
_STAY = frozenset({"tensor.read", "tensor.write", "tensor.dim", "tensor.alloc"})


def check_incore_tiles(function: Function) -> Iterator[Finding]:
    """Findings of IncoreTileOps in one function (C-013, C-284).

    A device function may read and write scalars of global memory, ask for its extents and make
    zero-copy views of it. Every other `tensor.*` operator has to be gone.
    """
    if function.type not in DEVICE_FUNCTIONS:
        return
    for stmt in walk(function.body):
        for expr in expressions_of(stmt):
            for call in subexpressions(expr):
                if isinstance(call, Call) and _computes_on_tensors(call):
                    yield Finding(
                        Property.INCORE_TILE_OPS,
                        f"function '{function.name}' of type {function.type.value} still has "
                        f"pl.{call.op} (C-013; what may stay is Q-01)",
                        call.span or stmt.span,
                        "lower it to tile operators",
                    )


def _computes_on_tensors(call: Call) -> bool:
    if not call.op.startswith("tensor.") or call.op in _STAY:
        return False
    decl = lookup(call.op)
    return decl is None or not decl.inherits_memory
