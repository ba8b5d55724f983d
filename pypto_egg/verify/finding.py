"""What a verifier reports: the property that is broken, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pypto_egg.errors import CoherenceError, OptionError, PyptoEggError, VerifyError
from pypto_egg.source import Span


class Property(Enum):
    """The properties that verifiers check, under PyPTO's names where PyPTO has one.

    GmStoreCoherence is no name of PyPTO's, which makes that check in its conversion pass (C-065).
    """

    SSA_FORM = "SSAForm"
    USE_BEFORE_DEF = "UseBeforeDef"
    SPLIT_INCORE_ORCH = "SplitIncoreOrch"
    NORMALIZED_STMT_STRUCTURE = "NormalizedStmtStructure"
    TYPE_CHECK = "TypeCheck"
    INCORE_TILE_OPS = "IncoreTileOps"
    BOX_SHAPE = "BoxShape"
    ACC_COMPACT_VALID = "AccCompactValid"
    AIV_SPLIT_VALID = "AivSplitValid"
    GM_STORE_COHERENCE = "GmStoreCoherence"


def property_named(name: str) -> Property:
    """The property that PyPTO calls so, whatever the case of its letters.

    Raises:
        OptionError: there is none; the hint lists them.
    """
    for one in Property:
        if one.value.lower() == name.lower():
            return one
    raise OptionError(
        f"unknown property '{name}'", hint=f"properties are {', '.join(p.value for p in Property)}"
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a program breaks a property."""

    property: Property
    message: str
    span: Span | None = None
    hint: str | None = None

    def error(self) -> PyptoEggError:
        """The finding as an error whose message names the property."""
        incoherent = self.property is Property.GM_STORE_COHERENCE
        kind = CoherenceError if incoherent else VerifyError
        return kind(f"{self.property.value}: {self.message}", span=self.span, hint=self.hint)
