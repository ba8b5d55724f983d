"""All checks of a stage, in the order in which their messages help most."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg.errors import OptionError, VerifyError
from pypto_egg.ir.program import Function, Program
from pypto_egg.verify.aiv_split import check_aiv_split
from pypto_egg.verify.boxes import check_boxes
from pypto_egg.verify.compact import check_acc_compact
from pypto_egg.verify.finding import Finding
from pypto_egg.verify.incore_tiles import check_incore_tiles
from pypto_egg.verify.ssa import check_ssa
from pypto_egg.verify.structure import check_structure
from pypto_egg.verify.types import check_types

STAGES = ("tensor", "tile")


def verify_program(program: Program, *, stage: str = "tensor") -> None:
    """Nothing, if the program keeps all properties of its stage.

    Before lowering ("tensor") these are SSAForm, UseBeforeDef, SplitIncoreOrch,
    NormalizedStmtStructure and TypeCheck (C-004 to C-006, C-009); after it ("tile") also
    IncoreTileOps, BoxShape, AccCompactValid and AivSplitValid (C-010 to C-013, C-126, C-153).

    Raises:
        VerifyError: the first finding; its message starts with the property's name.
        OptionError: the stage is not known.
    """
    findings = verify_findings(program, stage)
    if not findings:
        return
    error: VerifyError = findings[0].error()
    if len(findings) > 1:
        error.message += f" (and {len(findings) - 1} more findings)"
    raise error


def verify_findings(program: Program, stage: str = "tensor") -> list[Finding]:
    """Everything that breaks a property of the stage, function by function.

    Types are checked only where the structure holds, because a broken structure has no types.

    Raises:
        OptionError: the stage is not known.
    """
    if stage not in STAGES:
        raise OptionError(
            f"unknown verification stage '{stage}'", hint=f"stages are {', '.join(STAGES)}"
        )
    return [found for function in program.functions for found in _check(function, program, stage)]


def _check(function: Function, program: Program, stage: str) -> Iterator[Finding]:
    broken = [*check_ssa(function, program), *check_structure(function)]
    yield from broken
    if not broken:
        yield from check_types(function, program, tiles=stage == "tile")
    if stage == "tile":
        yield from check_incore_tiles(function)
        yield from check_boxes(function)
        yield from check_acc_compact(function)
        yield from check_aiv_split(function)
