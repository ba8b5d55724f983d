"""`optimize` and `lower`: the stages in order, each followed by its check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pypto_egg import options
from pypto_egg.analysis.directions import upgraded_directions
from pypto_egg.analysis.effects import check_store_paths
from pypto_egg.analysis.overlaps import Pairs, overlapping_params
from pypto_egg.analysis.pages import with_pages
from pypto_egg.analysis.result_types import with_result_types
from pypto_egg.analysis.store_forms import with_bulk_stores
from pypto_egg.analysis.strides import check_views_are_of_packed_memory
from pypto_egg.analysis.window_versions import with_window_versions
from pypto_egg.egraph.saturate import Limits, RuleGroup
from pypto_egg.emit.callers import update_callers
from pypto_egg.emit.emit import Emitted
from pypto_egg.equivalence import Verify, verified
from pypto_egg.errors import LoweringError, OptionError, SaturationLimitError, VerifyError
from pypto_egg.extract.cost.model import CostModel
from pypto_egg.extract.registry import extractor as find_extractor
from pypto_egg.ir.enums import FunctionType
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Return
from pypto_egg.ir.visit import walk
from pypto_egg.lower_function import Options, has_tensor_work
from pypto_egg.lower_once import LowerOnce
from pypto_egg.lowering import FunctionReport, Lowering
from pypto_egg.nz import block_nz, check_actual_stores
from pypto_egg.packing import NzMode, check_mode, weigh_packing
from pypto_egg.rulesets.catalogue import (
    ALTERNATIVES,
    LOWERING,
    OPT_IN,
    SCHEDULED,
    SCHEDULED_ALTERNATIVES,
    without,
)
from pypto_egg.rulesets.ruleset import RuleSet
from pypto_egg.scheduling import L0Mode, check_l0_mode
from pypto_egg.target.target import Target
from pypto_egg.text import parse, parse_file
from pypto_egg.verify import verify_program


def optimize(
    program: Program | str | Path,
    *,
    target: str | Target = "a2a3",
    cost_model: str | CostModel = "mte2_mad",
    extractor: str = "exact",
    rules: Sequence[RuleGroup] = (),
    without_rules: Sequence[str] = (),
    allow_reassociation: bool = False,
    limits: Limits | None = None,
    deadline_seconds: float | None = None,
    verify: Verify = "auto",
    nz: NzMode = "keep",
    l0: L0Mode = "schedule",
) -> Lowering:
    """The cheapest lowering of a program's InCore functions that the rules can find.

    Args:
        program: a Program, PyPTO text, or the path of a file with PyPTO text.
        target: "a2a3", "a5" or a Target.
        cost_model: a registered name, or an instance of one's own CostModel.
        extractor: "exact", "dag" or "tree".
        rules: further rulesets beside our own.
        without_rules: names of our rulesets to leave out.
        allow_reassociation: also use algebra that changes rounding.
        limits: bounds on saturation.
        deadline_seconds: for each extraction; the best found so far is taken then.
        verify: True executes both programs and compares them, False does not, "auto" does where
            that is quick and random data suits the program. The result says whether it was done.
        nz: "keep" leaves `pl.NZ` annotations as they are, "suggest" says for each ND operand of
            the cube what packing it would save (`Lowering.nz_advice`), "pack" passes those in NZ
            order that are right operands and not dearer so; `Lowering.packing` says what the host
            packs.
        l0: "schedule" chooses how each cube product is cut into L0 tiles and writes the loops,
            "pypto" writes those that PyPTO's chooser would take, "leave" leaves the products as
            they are to PyPTO's AutoTileMatmulL0.

    Raises:
        PyptoEggError: bad input, no legal lowering, or no choice that fits on chip; the
            subclass and its code say which.
        VerificationError: the two programs computed different values.
    """
    left_out = options.checked_names(without_rules)
    check_mode(nz)
    more = () if check_l0_mode(l0) == "leave" else SCHEDULED_ALTERNATIVES
    groups = without((*LOWERING, *ALTERNATIVES, *_l0_rules(l0), *more), left_out)
    if options.checked_switch("allow_reassociation", allow_reassociation):
        groups = (*groups, *OPT_IN)
    groups = (*groups, *options.checked_rules(rules))
    chosen = _options(target, cost_model, extractor, groups, limits, True, deadline_seconds)
    chosen = replace(chosen, l0=l0)
    source = _read(program)
    baseline, refused = _baseline(source, chosen)
    once = LowerOnce(chosen)
    try:
        result = lower_program(source, chosen.target, chosen.model, once.function)
    except SaturationLimitError as error:
        if baseline is None:
            raise
        result = replace(baseline, fallback=error.message)
    except LoweringError as error:
        options.name_what_is_missing(error, left_out)
        raise
    if baseline is not None and baseline.cycles < result.cycles:
        # Saturation stopped early: what the reference finds is still ours to return.
        result = replace(baseline, fallback="what the search found is dearer")
    result = replace(result, baseline=baseline, baseline_refused=refused)

    def again(given: Program) -> Lowering:
        return lower_program(given, chosen.target, chosen.model, once.function)

    result = weigh_packing(result, nz, again, chosen.model, chosen.target)
    return verified(result, verify)


def lower(
    program: Program | str | Path,
    *,
    target: str | Target = "a2a3",
    cost_model: str | CostModel = "mte2_mad",
    limits: Limits | None = None,
    verify: Verify = "auto",
) -> Lowering:
    """The reference lowering: what the ConvertTensorToTileOps document says, by the same engine.

    Arguments and exceptions are those of `optimize`.
    """
    chosen = _options(target, cost_model, "exact", LOWERING, limits, False, None)
    once = LowerOnce(chosen)
    result = lower_program(_read(program), chosen.target, chosen.model, once.function)
    return verified(result, verify)


def _options(
    target: str | Target,
    model: str | CostModel,
    extractor_name: str,
    groups: Sequence[RuleGroup],
    limits: Limits | None,
    alternatives: bool,
    deadline_seconds: float | None,
) -> Options:
    find_extractor(extractor_name)
    return Options(
        options.checked_target(target),
        options.checked_cost_model(model),
        extractor_name,
        tuple(groups),
        options.checked_limits(limits),
        alternatives,
        options.checked_deadline(deadline_seconds),
    )


def _read(program: Program | str | Path) -> Program:
    """The program; a string with a line end is text, another one is a path."""
    if isinstance(program, Program):
        return program
    if isinstance(program, Path):
        return parse_file(program)
    if isinstance(program, str):
        several = "\n" in program or "\r" in program
        return parse(program) if several else parse_file(Path(program))
    raise OptionError(f"a program is a Program, text or a path, not {type(program).__name__}")


def _l0_rules(mode: L0Mode) -> tuple[RuleSet, ...]:
    return () if mode == "leave" else SCHEDULED


def _baseline(source: Program, chosen: Options) -> tuple[Lowering | None, str]:
    reference = replace(
        chosen,
        groups=(*LOWERING, *_l0_rules(chosen.l0)),
        alternatives=False,
        extractor="exact",
        l0="leave" if chosen.l0 == "leave" else "pypto",
    )
    try:
        once = LowerOnce(reference)
        return lower_program(source, reference.target, reference.model, once.function), ""
    except LoweringError as error:
        return None, f"{error.code}: {error.message}"


LowerFunction = Callable[[Function, Program, Pairs], tuple[Emitted, FunctionReport]]
"""Lowers one function of a program; see `lower_function`."""


def lower_program(
    source: Program, target: Target, model: CostModel, lower_one: LowerFunction
) -> Lowering:
    """The program with its InCore functions lowered one by one, and their callers updated."""
    source = with_result_types(with_window_versions(source))
    verify_program(source, stage="tensor")
    functions: list[Function] = []
    reports: list[FunctionReport] = []
    gained: dict[str, tuple[Param, ...]] = {}
    overlaps = overlapping_params(source)
    for function in source.functions:
        if function.type is not FunctionType.InCore:
            functions.append(function)
            continue
        _check_results(function)
        if not has_tensor_work(function):
            functions.append(function)
            continue
        overlapping = overlaps.get(function.name, frozenset())
        function = with_bulk_stores(function, overlapping)
        function = with_pages(function, source, overlapping)
        check_store_paths(function, source, overlapping)
        emitted, report = lower_one(function, source, overlapping)
        functions.append(emitted.function)
        reports.append(report)
        gained[function.name] = emitted.outputs
    lowered = update_callers(source.with_functions(tuple(functions)), gained)
    lowered = block_nz(_with_directions(lowered), target)
    check_actual_stores(lowered, target)
    check_views_are_of_packed_memory(lowered)
    verify_program(lowered, stage="tile")
    return Lowering(lowered, source, target.name, model.name, tuple(reports))


def _check_results(function: Function) -> None:
    if not function.returns or function.external_source is not None:
        return
    if not any(isinstance(stmt, Return) for stmt in walk(function.body)):
        raise VerifyError(
            f"function '{function.name}' declares {len(function.returns)} results and returns none",
            span=function.span,
            hint="end it with a return of what it declares",
        )


def _with_directions(program: Program) -> Program:
    """Parameters of device functions that are written say so (C-044..C-053)."""
    functions = []
    for function in program.functions:
        if function.type is FunctionType.InCore:
            directions = upgraded_directions(function, program)
            params = tuple(
                replace(param, direction=direction)
                for param, direction in zip(function.params, directions, strict=True)
            )
            function = replace(function, params=params)
        functions.append(function)
    return program.with_functions(tuple(functions))
