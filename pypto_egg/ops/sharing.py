"""Which operand's buffer a tile op may leave its result in.

PyPTO operator reference: ops marked as not in-place-safe need a buffer of their own, broadcasting
ops may not overwrite the vector that they spread, selections not their mask and scratch.
"""

from __future__ import annotations

from pypto_egg.ops.registry import lookup

_ELEMENTWISE = ("unary", "binary", "binary_scalar", "row_expand", "col_expand", "cast", "fill")
_OWN_BUFFER = (
    "tile.ands", "tile.ors", "tile.xors", "tile.xor", "tile.fmod", "tile.fmods", "tile.recip",
    "tile.rsqrt", "tile.prelu",
)  # fmt: skip


def may_overwrite(op: str, operand: int) -> bool:
    """Whether the result of a tile op may lie in the buffer of one of its operands."""
    decl = lookup(op)
    if decl is None or decl.family not in _ELEMENTWISE or op in _OWN_BUFFER:
        return False
    spread = decl.family in ("row_expand", "col_expand")
    return operand == 0 if spread else operand < 2
