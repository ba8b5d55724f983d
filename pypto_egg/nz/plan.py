"""What the host packs, and what packing is worth."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from pypto_egg.ir.dtype import DType
from pypto_egg.ir.fold import Dim


@dataclass(frozen=True, slots=True)
class PackedParameter:
    """One parameter of an entry function that the host passes in NZ order (`pypto_egg.nz.pack`).

    Args:
        function, parameter: whose argument it is, and its name.
        shape: logical shape `[.., R, C]`; the array is packed from it.
        blocked: shape of the packed array, `[B, C/c0, R/16, 16, c0]`.
    """

    function: str
    parameter: str
    shape: tuple[Dim, ...]
    blocked: tuple[Dim, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the loads of an operand move in one run of its kernels: contiguous runs and bytes."""

    runs: int
    size_bytes: int

    @property
    def run_bytes(self) -> float:
        """The mean length of a run."""
        return self.size_bytes / self.runs if self.runs else 0.0


@dataclass(frozen=True, slots=True)
class NzAdvice:
    """What it means to pass one cube operand in NZ order.

    Args:
        operands: parameters of kernels, "w of k", that are one tensor or passed in one place.
        parameters: what the host would pack; empty where there is no legal way.
        cycles: of the program as it is, one run of each kernel.
        packed_cycles: of the same program with the operand in NZ order; None if it is refused.
        rows, fractals: what its loads move row by row, and in NZ order.
        pack_cycles: of a one-time pass on the device that reads the tensor by rows and writes it
            in NZ order; None where an extent is known at run time only.
        packed: whether the returned program takes it in NZ order.
        refused: why there is no legal way, or why it was left as it is.
    """

    operands: tuple[str, ...]
    parameters: tuple[PackedParameter, ...]
    cycles: float
    packed_cycles: float | None
    rows: Traffic
    fractals: Traffic | None
    pack_cycles: float | None
    packed: bool = False
    refused: str = ""

    @property
    def saved(self) -> float:
        """Cycles that each run of the kernels saves; negative if NZ order is dearer."""
        return 0.0 if self.packed_cycles is None else self.cycles - self.packed_cycles

    @property
    def uses(self) -> int | None:
        """After how many runs the one-time pack has paid; None if it never does or is unknown."""
        if self.pack_cycles is None or self.saved <= 0:
            return None
        return max(1, ceil(self.pack_cycles / self.saved))
