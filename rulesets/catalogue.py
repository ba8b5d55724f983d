"""All rulesets by name, and which of them each entry point runs."""

from __future__ import annotations

from collections.abc import Sequence

from pypto_egg.errors import OptionError
from pypto_egg.rulesets.accumulation import ACCUMULATION, ROUNDING_DRAIN
from pypto_egg.rulesets.algebra import ALGEBRA, OPERAND_ORDER
from pypto_egg.rulesets.boxing import ACCUMULATED_N, BOXING, WIDER_BOXES
from pypto_egg.rulesets.broadcast import BROADCAST
from pypto_egg.rulesets.control_flow import CONTROL_FLOW
from pypto_egg.rulesets.l0_tiles import L0_TILES, L0_TILES_TO_MAT
from pypto_egg.rulesets.matmul import MATMUL
from pypto_egg.rulesets.metadata import METADATA
from pypto_egg.rulesets.placement import (
    DRAIN_TO_MAT,
    LEGALITY,
    PLACEMENT,
    SINKING,
    TRANSPOSED_LOAD,
)
from pypto_egg.rulesets.reassociation import REASSOCIATION
from pypto_egg.rulesets.reduction import REDUCTION
from pypto_egg.rulesets.ruleset import RuleSet
from pypto_egg.rulesets.vector import EXTENTS, VECTOR

# What the source document's own pass decides: one lowering for each op, the least boxes.
LOWERING: tuple[RuleSet, ...] = (
    EXTENTS, LEGALITY, PLACEMENT, BOXING, MATMUL, VECTOR, BROADCAST, REDUCTION, METADATA,
    CONTROL_FLOW,
)  # fmt: skip

# What `optimize` weighs besides.
ALTERNATIVES: tuple[RuleSet, ...] = (
    ALGEBRA, OPERAND_ORDER, WIDER_BOXES, ACCUMULATED_N, ACCUMULATION, ROUNDING_DRAIN,
    DRAIN_TO_MAT, TRANSPOSED_LOAD, SINKING,
)  # fmt: skip

# What is added where L0 schedules are chosen: what PyPTO's AutoTileMatmulL0 does, and more.
SCHEDULED: tuple[RuleSet, ...] = (L0_TILES,)
SCHEDULED_ALTERNATIVES: tuple[RuleSet, ...] = (L0_TILES_TO_MAT,)

OPT_IN: tuple[RuleSet, ...] = (REASSOCIATION,)

ALL: dict[str, RuleSet] = {
    r.name: r for r in (*LOWERING, *ALTERNATIVES, *SCHEDULED, *SCHEDULED_ALTERNATIVES, *OPT_IN)
}


def without(rulesets: Sequence[RuleSet], names: Sequence[str]) -> tuple[RuleSet, ...]:
    """The rulesets minus those named.

    Raises:
        OptionError: a name is not that of a ruleset.
    """
    for name in names:
        if name not in ALL:
            known = ", ".join(ALL)
            raise OptionError(f"there is no ruleset '{name}'", hint=f"the rulesets are: {known}")
    return tuple(r for r in rulesets if r.name not in names)
