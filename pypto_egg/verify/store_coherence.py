"""GmStoreCoherence: no tensor in global memory is stored both in bulk and by scalars."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg.analysis.effects import check_store_paths
from pypto_egg.analysis.overlaps import Pairs
from pypto_egg.analysis.store_forms import with_bulk_stores
from pypto_egg.errors import CoherenceError
from pypto_egg.ir.enums import FunctionType
from pypto_egg.ir.program import Function, Program
from pypto_egg.verify.finding import Finding, Property


def check_store_coherence(
    function: Function, program: Program, overlapping: Pairs, stage: str
) -> Iterator[Finding]:
    """Findings of GmStoreCoherence in one function (C-065 to C-069).

    Args:
        overlapping: parameters that callers may give the same memory.
        stage: before lowering ("tensor") the stores count that are left once constant fills and
            staged updates are on the bulk path, as lowering brings them there first (C-069).
    """
    if stage == "tensor" and function.type is FunctionType.InCore:
        function = with_bulk_stores(function, overlapping)
    try:
        check_store_paths(function, program, overlapping)
    except CoherenceError as error:
        yield Finding(Property.GM_STORE_COHERENCE, error.message, error.span, error.hint)
