"""Functions lowered under the same options, each once.

Weighing what to pack lowers a program again for each operand, and only the kernels that name the
operand differ. What a function lowers to follows from its text, the parameters that may overlap,
and the options; a function that calls others also follows from those, and is not kept.
"""

from __future__ import annotations

from pypto_egg.analysis.overlaps import Pairs
from pypto_egg.emit.emit import Emitted
from pypto_egg.ir.expr import FunctionCall, Submit
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.visit import expressions_of, subexpressions, walk
from pypto_egg.lower_function import Options, lower_function
from pypto_egg.lowering import FunctionReport
from pypto_egg.text import print_function


class LowerOnce:
    """Lowers functions, and remembers what came of them."""

    def __init__(self, chosen: Options) -> None:
        self.chosen = chosen
        self._made: dict[tuple[str, Pairs], tuple[Emitted, FunctionReport]] = {}

    def function(
        self, function: Function, source: Program, overlapping: Pairs
    ) -> tuple[Emitted, FunctionReport]:
        """The lowered function and the report on it; see `lower_function`."""
        if _calls(function):
            return lower_function(function, source, self.chosen, overlapping)
        key = print_function(function), overlapping
        if key not in self._made:
            self._made[key] = lower_function(function, source, self.chosen, overlapping)
        return self._made[key]


def _calls(function: Function) -> bool:
    return any(
        isinstance(part, FunctionCall | Submit)
        for stmt in walk(function.body)
        for expr in expressions_of(stmt)
        for part in subexpressions(expr)
    )
