"""Element types of PyPTO and how they combine (PyPTO language reference, dtypes)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: its PyPTO name, its width in bits and its kind."""

    name: str
    bits: int
    kind: str  # "bool", "int", "uint", "float" or "opaque"

    @property
    def bytes(self) -> int:
        """Bytes that one element takes in an unpacked buffer."""
        return (self.bits + 7) // 8

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        """Whether it is an integer type, INDEX included."""
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        """Whether it is an integer type with negative values."""
        return self.kind == "int"

    @property
    def is_index_like(self) -> bool:
        """INT64, UINT64 and INDEX: usable as an index without a cast."""
        return self.name in ("INT64", "UINT64", "INDEX")

    def __repr__(self) -> str:
        return self.name


BOOL = DType("BOOL", 1, "bool")
INT4 = DType("INT4", 4, "int")
INT8 = DType("INT8", 8, "int")
INT16 = DType("INT16", 16, "int")
INT32 = DType("INT32", 32, "int")
INT64 = DType("INT64", 64, "int")
INDEX = DType("INDEX", 64, "int")
UINT4 = DType("UINT4", 4, "uint")
UINT8 = DType("UINT8", 8, "uint")
UINT16 = DType("UINT16", 16, "uint")
UINT32 = DType("UINT32", 32, "uint")
UINT64 = DType("UINT64", 64, "uint")
FP4 = DType("FP4", 4, "float")
HF4 = DType("HF4", 4, "float")
FP8E4M3FN = DType("FP8E4M3FN", 8, "float")
FP8E5M2 = DType("FP8E5M2", 8, "float")
FP8E8M0 = DType("FP8E8M0", 8, "float")
HF8 = DType("HF8", 8, "float")
FP16 = DType("FP16", 16, "float")
BF16 = DType("BF16", 16, "float")
FP32 = DType("FP32", 32, "float")
TASK_ID = DType("TASK_ID", 64, "opaque")

DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        BOOL, INT4, INT8, INT16, INT32, INT64, INDEX, UINT4, UINT8, UINT16, UINT32, UINT64,
        FP4, HF4, FP8E4M3FN, FP8E5M2, FP8E8M0, HF8, FP16, BF16, FP32, TASK_ID,
    )
}  # fmt: skip


def promote(lhs: DType, rhs: DType) -> DType:
    """The dtype of an elementwise result (PyPTO operator reference, dtype promotion).

    Float beats int, then more bits win, then signed beats unsigned, then the first operand.
    """
    if lhs == rhs:
        return lhs
    if lhs.is_float != rhs.is_float:
        return lhs if lhs.is_float else rhs
    if lhs.bits != rhs.bits:
        return lhs if lhs.bits > rhs.bits else rhs
    if lhs.is_int and rhs.is_int and lhs.is_signed != rhs.is_signed:
        return lhs if lhs.is_signed else rhs
    return lhs
