"""One InCore function from tensors to tiles."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pypto_egg.account import Account
from pypto_egg.analysis.blocking import Room, blocked_functions, why_not_blocked
from pypto_egg.analysis.cache_policy import ATTRIBUTE as CACHE_POLICY
from pypto_egg.analysis.dead import is_pure_tensor_op, without_dead_values
from pypto_egg.analysis.local_writes import with_local_write_versions
from pypto_egg.analysis.overlaps import Pairs
from pypto_egg.block_costs import BlockCosts
from pypto_egg.diagnose import check_feasible
from pypto_egg.egraph.direct import direct_outputs
from pypto_egg.egraph.load import Loaded, load_function
from pypto_egg.egraph.saturate import Limits, RuleGroup, session
from pypto_egg.egraph.snapshot import Snapshot
from pypto_egg.egraph.tilegraph import TileGraph, tile_graph
from pypto_egg.emit.emit import Emitted
from pypto_egg.errors import (
    CapacityError,
    ExtractionError,
    InternalError,
    LoweringError,
    OptionError,
)
from pypto_egg.extract.cost.model import ZERO, CostModel, CostVector
from pypto_egg.extract.problem import Problem
from pypto_egg.extract.registry import FORBIDDEN
from pypto_egg.extract.result import Selection
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.visit import expressions_of, subexpressions, walk
from pypto_egg.lowering import FunctionReport, Kernel
from pypto_egg.ops.registry import lookup
from pypto_egg.price import Priced, cheapest, price
from pypto_egg.rulesets.catalogue import ALL
from pypto_egg.scheduling import L0Mode, schedule_of, with_schedules
from pypto_egg.simulated import Simulated, shortest
from pypto_egg.target.target import Target
from pypto_egg.trial import Trial, try_selection

# Each round rules out tiles that do not fit together or ops that destroy a value; more rounds than
# this means that limits and alternatives are at odds in a way that further cuts will not settle.
ROUNDS = 64

BLOCKINGS = 4
"""Blockings of too large products that are lowered and compared."""


@dataclass(frozen=True)
class Options:
    """What a lowering is asked for; see `optimize`."""

    target: Target
    model: CostModel
    extractor: str
    groups: tuple[RuleGroup, ...]
    limits: Limits
    alternatives: bool
    deadline_seconds: float | None
    l0: L0Mode = "leave"


def has_tensor_work(function: Function) -> bool:
    """Whether lowering has something to do: tensor operators, or a declared cache policy."""
    if function.attr(CACHE_POLICY) is not None:
        return True
    for stmt in walk(function.body):
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                decl = lookup(part.op) if isinstance(part, Call) else None
                if decl is not None and decl.namespace == "tensor":
                    return True
    return False


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - started


def lower_function(
    function: Function, source: Program, chosen: Options, overlapping: Pairs = frozenset()
) -> tuple[Emitted, FunctionReport]:
    """The lowered function and the report on it.

    Args:
        overlapping: parameters that callers may give the same memory.

    Raises:
        PyptoEggError: no legal lowering, or no choice that fits on chip; see `optimize`.
    """
    function = with_local_write_versions(without_dead_values(function, is_pure_tensor_op))
    try:
        made = _lowered(function, source, chosen, overlapping)
    except CapacityError as error:
        blocked, refusals = _blocked(function, source, chosen, overlapping, _room(chosen))
        if blocked is None:
            reasons = [*why_not_blocked(function, source, overlapping, _room(chosen)), *refusals]
            error.message = "; ".join((error.message, *reasons))
            raise
        return blocked
    made = _or_assembled_on_chip(made, function, source, chosen, overlapping)
    if not chosen.alternatives or chosen.model.objective != "simulated" or chosen.l0 == "leave":
        return made
    # What overlaps is seen: blocks may be worth it though the whole product fits.
    room = replace(_room(chosen), every=True)
    return _blocked(function, source, chosen, overlapping, room, made)[0] or made


_Made = tuple[Emitted, FunctionReport]


def _cheapest(value: str, made: list[tuple[str, _Made]], refused: Sequence[Kernel] = ()) -> _Made:
    """The lowering of least cost, the first of equals, with the account of the others.

    Args:
        value: what the lowerings make in different ways.
        made: what is special about each lowering, and the lowering.
        refused: ways in which there is none.
    """
    ordered = sorted(made, key=lambda one: one[1][1].cycles)
    found = [Kernel(what, report.cost, report.cycles) for what, (_, report) in ordered]
    emitted, best = ordered[0][1]
    return emitted, replace(best, kernels=(value, (*found, *refused)))


def _or_assembled_on_chip(
    made: _Made, function: Function, source: Program, chosen: Options, overlapping: Pairs
) -> _Made:
    """The lowering, or the one that assembles returned tensors on chip and stores each once.

    The reference stores the parts in the loop (C-042), so this is an alternative.
    """
    outputs = direct_outputs(function)
    if not chosen.alternatives or not outputs:
        return made
    names = ", ".join(direct.result.name for direct in outputs)
    in_loop, on_chip = "each part stored in the loop", "assembled on chip and stored once"
    try:
        other = _lowered(function, source, chosen, overlapping, direct=False)
    except LoweringError as error:
        refused = Kernel(on_chip, refused=f"{error.code}: {error.message}")
        return _cheapest(f"stores of {names}", [(in_loop, made)], [refused])
    return _cheapest(f"stores of {names}", [(in_loop, made), (on_chip, other)])


def _blocked(
    function: Function,
    source: Program,
    chosen: Options,
    overlapping: Pairs,
    room: Room,
    whole: _Made | None = None,
) -> tuple[_Made | None, list[str]]:
    """The cheapest version whose too large products are made in blocks, and why the first that
    cannot be lowered was refused.

    The reference takes the first that can, which loads the fewest bytes.

    Args:
        whole: the lowering without blocks, where there is one.
    """
    found: list[tuple[str, _Made]] = [] if whole is None else [("as a whole", whole)]
    refused: list[Kernel] = []
    value = ""
    rank = BlockCosts(chosen.model, chosen.target) if chosen.alternatives else None
    for version in blocked_functions(function, source, overlapping, room, BLOCKINGS, rank):
        value = "blocks of " + ", ".join(name for name, _ in version.blocks)
        what = ", ".join(f"{b.m} x {b.n} in steps of K {b.k}" for _, b in version.blocks)
        try:
            found.append((what, _lowered(version.function, source, chosen, overlapping)))
        except LoweringError as error:
            refused.append(Kernel(what, refused=f"{error.code}: {error.message}"))
            continue
        if not chosen.alternatives:
            break
    if not value:
        return whole, []
    reasons = [f"in blocks: {kernel.refused}" for kernel in refused[:1]]
    return (_cheapest(value, found, refused) if found else None), reasons


def _room(chosen: Options) -> Room:
    mat, acc, vec = (chosen.target.capacity_bytes(s) for s in (Mem.Mat, Mem.Acc, Mem.Vec))
    return Room(mat, acc, by_tiles=chosen.l0 != "leave", vec=vec)


def _lowered(
    function: Function,
    source: Program,
    chosen: Options,
    overlapping: Pairs,
    *,
    direct: bool = True,
) -> _Made:
    seconds: dict[str, float] = {}
    with _timed(seconds, "load"):
        more = chosen.alternatives
        loaded = load_function(
            function, source, overlapping, hoist=more, duplicate=more, direct=direct
        )
    with session(chosen.target, chosen.groups) as egraph:
        with _timed(seconds, "register"):
            egraph.register(loaded.actions)
        with _timed(seconds, "saturate"):
            saturation = egraph.saturate(chosen.limits)
        with _timed(seconds, "snapshot"):
            snapshot = Snapshot(egraph.egraph)
    with _timed(seconds, "type"):
        graph = _typed_graph(function, snapshot, loaded, chosen)
    with _timed(seconds, "schedule"):
        known = _scheduled(graph, chosen)
    check_feasible(function, loaded, graph, saturation, chosen.target)
    with _timed(seconds, "price"):
        priced = price(graph, loaded.skeleton, chosen.model, chosen.target, known)
    selection, trial, problem = _fitting(function, loaded, graph, priced, chosen, seconds)
    status, bound = selection.status, selection.bound
    if chosen.model.objective == "simulated" and chosen.alternatives:
        with _timed(seconds, "simulate"):
            found = _shortest(function, loaded, graph, priced, chosen, selection, trial, problem)
        if found is not None:
            selection, trial = found.selection, found.trial
            status, bound = found.status, found.bound
    # Nodes that destroy a value stay ruled out when somebody asks for other choices.
    priced = replace(priced, problem=replace(priced.problem, forbidden=problem.forbidden))
    cost = ZERO
    for node in selection.choice.values():
        cost = cost + priced.vectors[node]
    report = FunctionReport(
        function.name, cost, len(graph.classes), len(priced.nodes), saturation, status, bound,
        seconds, {space.value: peak.size_bytes for space, peak in trial.used.items()},
        Account(function, loaded.skeleton, graph, priced, selection, chosen.target, chosen.model,
                tuple(problem.constraints)),
    )  # fmt: skip
    return trial.emitted, report


def _shortest(
    function: Function,
    loaded: Loaded,
    graph: TileGraph,
    priced: Priced,
    chosen: Options,
    selection: Selection,
    trial: Trial,
    problem: Problem,
) -> Simulated | None:
    """The selection whose kernel simulates shortest; None where it cannot be simulated."""

    def attempt(choice: Mapping[int, int]) -> Trial:
        return try_selection(function, loaded.skeleton, graph, priced, choice, chosen.target)

    model, target, seconds = chosen.model, chosen.target, chosen.deadline_seconds
    schedules = {at: schedule_of(node) for at, node in enumerate(priced.nodes)}
    orders = {at: str(schedule) for at, schedule in schedules.items() if schedule is not None}
    return shortest(problem, selection, trial, attempt, model, target, seconds, orders)


def _scheduled(graph: TileGraph, chosen: Options) -> dict[int, CostVector]:
    """What the L0 schedules cost that were put in the place of products, if that is asked for."""
    if chosen.l0 == "leave":
        return {}
    return with_schedules(graph, chosen.model, chosen.target, chosen.l0)


def _typed_graph(
    function: Function, snapshot: Snapshot, loaded: Loaded, chosen: Options
) -> TileGraph:
    """The tile graph; what contradicts itself there is the fault of the user's rules, if any."""
    try:
        return tile_graph(snapshot, loaded)
    except InternalError as error:
        own = [group.name for group in chosen.groups if ALL.get(group.name) is not group]
        if not own:
            raise
        raise OptionError(
            f"function '{function.name}': {error}; a rule of {', '.join(map(repr, own))} equates "
            "values of different types",
            span=function.span,
        ) from error


def _fitting(
    function: Function,
    loaded: Loaded,
    graph: TileGraph,
    priced: Priced,
    chosen: Options,
    seconds: dict[str, float],
) -> tuple[Selection, Trial, Problem]:
    """The cheapest selection whose buffers fit on chip and are not overwritten too early, what it
    makes, and the problem with the limits that led to it.

    Both are matters of live ranges, which are known once a selection is emitted; each set of
    tiles that does not fit and each op that destroys a value becomes a limit on the next
    extraction.
    """
    problem = priced.problem
    lost: list[str] = []
    for _ in range(ROUNDS):
        with _timed(seconds, "extract"):
            first = problem is priced.problem
            method = chosen.extractor if first else "exact"
            try:
                selection = cheapest(problem, chosen.model, method, chosen.deadline_seconds)
            except ExtractionError as error:
                if first:
                    raise
                raise _destroyed(function, lost) from error
        if not selection.found:
            raise _no_selection(function, selection, problem, lost)
        with _timed(seconds, "emit"):
            trial = try_selection(
                function, loaded.skeleton, graph, priced, selection.choice, chosen.target
            )
        if trial.fits:
            return selection, trial, problem
        problem = trial.ruled_out(problem)
        lost.extend(trial.lost)
    raise CapacityError(
        f"function '{function.name}': no fitting choice among {ROUNDS} tried",
        span=function.span,
        hint="use smaller tiles, or split the function",
    )


def _no_selection(
    function: Function, selection: Selection, problem: Problem, lost: list[str]
) -> LoweringError:
    if selection.conflict and set(selection.conflict) <= {FORBIDDEN}:
        return _destroyed(function, lost)
    named = [name for name in selection.conflict if name != FORBIDDEN]
    first, *others = named or [cut.name for cut in problem.constraints]
    tried = f"; nor does any of {len(others)} other choices" if others else ""
    return CapacityError(
        f"no choice of lowerings fits on chip: {first}{tried}",
        span=function.span,
        hint="use smaller tiles: slice the operands in a loop, or split the function",
    )


def _destroyed(function: Function, lost: list[str]) -> LoweringError:
    return LoweringError(
        f"function '{function.name}': {'; '.join(dict.fromkeys(lost))}, which is still needed "
        "afterwards and cannot be copied",
        span=function.span,
        hint="store the value before it is accumulated into and load it again, or add a product of "
        "its own to it with tensor.add",
    )
