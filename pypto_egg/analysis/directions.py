"""The directions of a function's parameters as its body really uses them (C-044 to C-053)."""

from __future__ import annotations

from pypto_egg.analysis.effects import analyse_effects
from pypto_egg.ir.enums import Direction
from pypto_egg.ir.program import Function, Program
from pypto_egg.ops.registry import Effect

_DIRECTION_OF = {
    Effect.NONE: Direction.In,
    Effect.READ: Direction.In,
    Effect.WRITE: Direction.Out,
    Effect.READ_WRITE: Direction.InOut,
}


def upgraded_directions(
    function: Function, program: Program | None = None
) -> tuple[Direction, ...]:
    """The direction of each parameter, in order.

    A parameter declared `In` becomes `Out` if the body only writes it and `InOut` if it reads it
    as well; declared `Out` and `InOut` stay. Reads and writes count wherever they go through an
    alias, a view, a loop, a branch or a called function (looked up in `program`).
    """
    if not function.body:
        return tuple(param.direction for param in function.params)
    found = analyse_effects(function, program).param_effects()
    return tuple(
        _DIRECTION_OF[effect] if param.direction is Direction.In else param.direction
        for param, effect in zip(function.params, found.effects, strict=True)
    )
