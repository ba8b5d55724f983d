"""All meanings of operators, by IR name."""

from __future__ import annotations

from pypto_egg.errors import InterpretError
from pypto_egg.interp import (
    semantics_compare,
    semantics_create,
    semantics_elementwise,
    semantics_gather,
    semantics_matmul,
    semantics_reduce,
    semantics_sort,
    semantics_system,
    semantics_transfer,
    semantics_views,
)
from pypto_egg.interp.site import SEMANTICS, Semantics

# Importing a module registers its operators.
MODULES = (
    semantics_elementwise,
    semantics_compare,
    semantics_reduce,
    semantics_matmul,
    semantics_transfer,
    semantics_views,
    semantics_create,
    semantics_gather,
    semantics_sort,
    semantics_system,
)


def meaning_of(op: str) -> Semantics:
    """The function that executes operator `op`.

    Raises:
        InterpretError: the interpreter does not define the operator.
    """
    found = SEMANTICS.get(op)
    if found is None:
        raise InterpretError(
            f"the interpreter has no semantics for {op}",
            hint="verification by execution is not possible for programs that use it",
        )
    return found
