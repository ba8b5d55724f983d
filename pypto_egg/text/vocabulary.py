"""The enums of the language by name, and the forms of attribute values."""

from __future__ import annotations

from enum import Enum

from pypto_egg.ir import enums

# The enums of the language under every name they have in the text.
ENUMS: dict[str, type[Enum]] = {
    "Mem": enums.Mem,
    "MemorySpace": enums.Mem,
    "TensorLayout": enums.TensorLayout,
    "TileLayout": enums.TileLayout,
    "PadValue": enums.PadValue,
    "CompactMode": enums.CompactMode,
    "AtomicType": enums.AtomicType,
    "SplitMode": enums.SplitMode,
    "PipeType": enums.PipeType,
    "CachePolicy": enums.CachePolicy,
    "adir": enums.ArgDirection,
    "ScopeMode": enums.ScopeMode,
    "FunctionType": enums.FunctionType,
    "Level": enums.Level,
    "Role": enums.Role,
}
PRINTED_ENUMS: dict[type[Enum], str] = {
    enum: name for name, enum in ENUMS.items() if name != "MemorySpace"
}


class Parenthesised(tuple[object, ...]):
    """A tuple that the text spells with parentheses; lists are plain tuples."""

    __slots__ = ()


def positional_key(index: int) -> str:
    """The kwarg name under which a call keeps a positional argument that is not an expression."""
    return f"#{index}"
