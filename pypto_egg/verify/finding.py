"""What a verifier reports: the property that is broken, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pypto_egg.errors import VerifyError
from pypto_egg.source import Span


class Property(Enum):
    """The properties that verifiers check, under PyPTO's names where PyPTO has one."""

    SSA_FORM = "SSAForm"
    USE_BEFORE_DEF = "UseBeforeDef"
    SPLIT_INCORE_ORCH = "SplitIncoreOrch"
    NORMALIZED_STMT_STRUCTURE = "NormalizedStmtStructure"
    TYPE_CHECK = "TypeCheck"
    INCORE_TILE_OPS = "IncoreTileOps"
    BOX_SHAPE = "BoxShape"
    ACC_COMPACT_VALID = "AccCompactValid"
    AIV_SPLIT_VALID = "AivSplitValid"


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a program breaks a property."""

    property: Property
    message: str
    span: Span | None = None
    hint: str | None = None

    def error(self) -> VerifyError:
        """The finding as an error whose message names the property."""
        return VerifyError(f"{self.property.value}: {self.message}", span=self.span, hint=self.hint)
