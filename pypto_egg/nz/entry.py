"""Where logical arguments meet blocked parameters: the entry of a program.

Callers allocate by logical shape; only the compiled parameter is blocked. The entry reshapes each
NZ argument once, a change of metadata only, and every view taken of it has rank 5 (N-133, N-134).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto_egg.errors import InternalError
from pypto_egg.ir.expr import FunctionCall, Submit
from pypto_egg.ir.fold import const_value
from pypto_egg.ir.program import Program
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk
from pypto_egg.nz.block import is_blocked
from pypto_egg.nz.layout import Named, blocked_shape, is_nz
from pypto_egg.ops.site import show_shape
from pypto_egg.source import Span


@dataclass(frozen=True, slots=True)
class EntryReshape:
    """The reshape of one NZ argument at an entry function.

    Args:
        function, param: whose parameter it is.
        kind: the parameter's type as declared, of logical shape.
    """

    function: str
    param: str
    kind: TensorType
    span: Span | None = None

    def blocked(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The blocked shape of an argument of logical `shape`.

        Raises:
            NzError: the argument has another rank than declared, even if its blocked shape would
                fit (N-125), or other extents.
        """
        about = Named(self.param, self.span)
        declared = self.kind.shape
        if len(shape) != len(declared):
            raise about.error(
                f"of '{self.function}' is declared {show_shape(declared)}; its argument has rank "
                f"{len(shape)}, {list(shape)}",
                f"pass an argument of rank {len(declared)}: its batch is read from its first axis",
            )
        for axis, (dim, extent) in enumerate(zip(declared, shape, strict=True)):
            fixed = const_value(dim)
            if fixed is not None and fixed != extent:
                raise about.error(
                    f"of '{self.function}' is declared {show_shape(declared)}; its argument has "
                    f"{extent} on axis {axis}, {list(shape)}",
                    f"pass an argument of {fixed} on axis {axis}",
                )
        found = [const_value(dim) for dim in blocked_shape(shape, self.kind.dtype, about)]
        return tuple(extent for extent in found if extent is not None)


def entry_reshapes(program: Program) -> tuple[EntryReshape, ...]:
    """One reshape for each NZ parameter of the functions that nobody in the program calls.

    Args:
        program: before `block_nz`, which leaves no trace of logical shapes.
    """
    called = {
        part.name
        for function in program.functions
        for stmt in walk(function.body)
        for expr in expressions_of(stmt)
        for part in subexpressions(expr)
        if isinstance(part, FunctionCall | Submit)
    }
    found = []
    for function in program.functions:
        if is_blocked(function):
            raise InternalError(f"the logical shapes of '{function.name}' are gone: it is blocked")
        if function.name in called:
            continue
        for param in function.params:
            kind = param.var.type
            if isinstance(kind, TensorType) and is_nz(kind):
                found.append(EntryReshape(function.name, param.var.name, kind, param.var.span))
    return tuple(found)
