"""All checks of a stage, in the order in which their messages help most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pypto_egg.analysis.overlaps import Pairs, overlapping_params
from pypto_egg.errors import OptionError
from pypto_egg.ir.program import Function, Program
from pypto_egg.verify.aiv_split import check_aiv_split
from pypto_egg.verify.boxes import check_boxes
from pypto_egg.verify.compact import check_acc_compact
from pypto_egg.verify.finding import Finding, Property
from pypto_egg.verify.incore_tiles import check_incore_tiles
from pypto_egg.verify.ssa import check_ssa
from pypto_egg.verify.store_coherence import check_store_coherence
from pypto_egg.verify.structure import check_structure
from pypto_egg.verify.types import check_types

STAGES = ("tensor", "tile")
_STRUCTURE = (
    Property.SSA_FORM,
    Property.USE_BEFORE_DEF,
    Property.SPLIT_INCORE_ORCH,
    Property.NORMALIZED_STMT_STRUCTURE,
)
_AFTER_LOWERING = (
    Property.INCORE_TILE_OPS,
    Property.BOX_SHAPE,
    Property.ACC_COMPACT_VALID,
    Property.AIV_SPLIT_VALID,
)


def properties_of(stage: str) -> tuple[Property, ...]:
    """What is verified of a program at a stage.

    Before lowering ("tensor") these are SSAForm, UseBeforeDef, SplitIncoreOrch,
    NormalizedStmtStructure, TypeCheck and GmStoreCoherence (C-004 to C-006, C-009, C-065); after
    it ("tile") also IncoreTileOps, BoxShape, AccCompactValid and AivSplitValid (C-010 to C-013,
    C-126, C-153).

    Raises:
        OptionError: the stage is not known.
    """
    if stage not in STAGES:
        raise OptionError(
            f"unknown verification stage '{stage}'", hint=f"stages are {', '.join(STAGES)}"
        )
    both = (*_STRUCTURE, Property.TYPE_CHECK, Property.GM_STORE_COHERENCE)
    return both if stage == "tensor" else (*both, *_AFTER_LOWERING)


def verify_program(program: Program, *, stage: str = "tensor") -> None:
    """Nothing, if the program keeps all properties of its stage but GmStoreCoherence.

    Lowering asks for that one itself and raises `CoherenceError`.

    Raises:
        VerifyError: the first finding; its message starts with the property's name.
        OptionError: the stage is not known.
    """
    wanted = [p for p in properties_of(stage) if p is not Property.GM_STORE_COHERENCE]
    findings = verify_findings(program, stage, wanted)
    if not findings:
        return
    error = findings[0].error()
    if len(findings) > 1:
        error.message += f" (and {len(findings) - 1} more findings)"
    raise error


def verify_findings(
    program: Program, stage: str = "tensor", properties: Iterable[Property] | None = None
) -> list[Finding]:
    """Everything that breaks a property of the stage, function by function.

    Args:
        properties: the ones that are asked for; by default all of the stage. Types and stores are
            looked at only where the structure holds, because a broken structure has none; then
            what breaks the structure is found instead.

    Raises:
        OptionError: the stage is not known, or a property is not one of it.
    """
    known = properties_of(stage)
    wanted = tuple(known if properties is None else properties)
    for one in wanted:
        if one not in known:
            raise OptionError(
                f"{one.value} is not verified at the {stage} stage",
                hint=f"there it is {', '.join(p.value for p in known)}",
            )
    overlaps = overlapping_params(program) if Property.GM_STORE_COHERENCE in wanted else {}
    return [
        found
        for function in program.functions
        for found in _check(function, program, stage, wanted, overlaps)
    ]


def _check(
    function: Function,
    program: Program,
    stage: str,
    wanted: tuple[Property, ...],
    overlaps: Mapping[str, Pairs],
) -> Iterator[Finding]:
    broken = [*check_ssa(function, program), *check_structure(function)]
    asked = [found for found in broken if found.property in wanted]
    yield from asked
    sound = not broken
    if broken and not asked and set(wanted) & {Property.TYPE_CHECK, Property.GM_STORE_COHERENCE}:
        yield from broken
    if sound and Property.TYPE_CHECK in wanted:
        yield from check_types(function, program, tiles=stage == "tile")
    if sound and Property.GM_STORE_COHERENCE in wanted:
        overlapping = overlaps.get(function.name, frozenset())
        yield from check_store_coherence(function, program, overlapping, stage)
    for one, check in _TILE_CHECKS.items():
        if one in wanted:
            yield from check(function)


_TILE_CHECKS = {
    Property.INCORE_TILE_OPS: check_incore_tiles,
    Property.BOX_SHAPE: check_boxes,
    Property.ACC_COMPACT_VALID: check_acc_compact,
    Property.AIV_SPLIT_VALID: check_aiv_split,
}
