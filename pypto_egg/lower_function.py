"""One InCore function from tensors to tiles."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pypto_egg.account import Account
from pypto_egg.analysis.blocking import Room, blocked_functions, why_not_blocked
from pypto_egg.analysis.cache_policy import ATTRIBUTE as CACHE_POLICY
from pypto_egg.analysis.dead import is_pure_tensor_op, without_dead_values
from pypto_egg.analysis.local_writes import with_local_write_versions
from pypto_egg.analysis.overlaps import Pairs
from pypto_egg.diagnose import check_feasible
from pypto_egg.egraph.direct import direct_outputs
from pypto_egg.egraph.load import Loaded, load_function
from pypto_egg.egraph.saturate import Limits, RuleGroup, session
from pypto_egg.egraph.skeleton import Skeleton
from pypto_egg.egraph.snapshot import Snapshot
from pypto_egg.egraph.tilegraph import TileGraph, tile_graph
from pypto_egg.emit.emit import Emitted, emit_function
from pypto_egg.emit.gaps import reshaped_gaps
from pypto_egg.emit.hazards import hazards
from pypto_egg.emit.liveness import Peak, peaks
from pypto_egg.emit.names import base_of
from pypto_egg.errors import (
    CapacityError,
    ExtractionError,
    InternalError,
    LoweringError,
    OptionError,
)
from pypto_egg.extract.cost.model import ZERO, CostModel
from pypto_egg.extract.problem import Constraint, Problem
from pypto_egg.extract.registry import FORBIDDEN
from pypto_egg.extract.result import Selection
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.visit import expressions_of, subexpressions, walk
from pypto_egg.lowering import FunctionReport
from pypto_egg.ops.registry import lookup
from pypto_egg.price import Priced, cheapest, price
from pypto_egg.rulesets.catalogue import ALL
from pypto_egg.target.target import Target

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
        blocked = _blocked(function, source, chosen, overlapping)
        if blocked is None:
            reasons = why_not_blocked(function, source, overlapping, _room(chosen.target))
            error.message = "; ".join((error.message, *reasons))
            raise
        return blocked
    on_chip = _assembled_on_chip(function, source, chosen, overlapping)
    return made if on_chip is None else _cheapest([made, on_chip], chosen)


_Made = tuple[Emitted, FunctionReport]


def _cheapest(made: list[_Made], chosen: Options) -> _Made:
    """The lowering of least cost; the first of equals."""
    return min(made, key=lambda one: chosen.model.fold([one[1].cost]))


def _assembled_on_chip(
    function: Function, source: Program, chosen: Options, overlapping: Pairs
) -> _Made | None:
    """The lowering that assembles returned tensors on chip and stores each once, if it fits.

    The reference stores the parts in the loop (C-042), so this is an alternative.
    """
    if not chosen.alternatives or not direct_outputs(function):
        return None
    try:
        return _lowered(function, source, chosen, overlapping, direct=False)
    except LoweringError:
        return None


def _blocked(
    function: Function, source: Program, chosen: Options, overlapping: Pairs
) -> _Made | None:
    """The cheapest version whose too large products are made in blocks, if one can be lowered.

    The reference takes the first, which loads the fewest bytes.
    """
    found: list[_Made] = []
    room = _room(chosen.target)
    for version in blocked_functions(function, source, overlapping, room, BLOCKINGS):
        try:
            found.append(_lowered(version, source, chosen, overlapping))
        except LoweringError:
            continue
        if not chosen.alternatives:
            break
    return _cheapest(found, chosen) if found else None


def _room(target: Target) -> Room:
    return Room(target.capacity_bytes(Mem.Mat), target.capacity_bytes(Mem.Acc))


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
    check_feasible(function, loaded, graph, saturation, chosen.target)
    with _timed(seconds, "price"):
        priced = price(graph, loaded.skeleton, chosen.model, chosen.target)
    emitted, selection, used, problem = _fitting(function, loaded, graph, priced, chosen, seconds)
    # Nodes that destroy a value stay ruled out when somebody asks for other choices.
    priced = replace(priced, problem=replace(priced.problem, forbidden=problem.forbidden))
    cost = ZERO
    for node in selection.choice.values():
        cost = cost + priced.vectors[node]
    report = FunctionReport(
        function.name, cost, len(graph.classes), len(priced.nodes), saturation, selection.status,
        selection.bound, seconds, {space.value: peak.size_bytes for space, peak in used.items()},
        Account(function, loaded.skeleton, graph, priced, selection, chosen.target, chosen.model,
                tuple(problem.constraints)),
    )  # fmt: skip
    return emitted, report


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
) -> tuple[Emitted, Selection, dict[Mem, Peak], Problem]:
    """The cheapest selection whose buffers fit on chip and are not overwritten too early.

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
            return trial.emitted, selection, trial.used, problem
        problem = trial.ruled_out(problem)
        lost.extend(trial.lost)
    raise CapacityError(
        f"function '{function.name}': no fitting choice among {ROUNDS} tried",
        span=function.span,
        hint="use smaller tiles, or split the function",
    )


@dataclass(frozen=True)
class Trial:
    """A selection as a function, and what keeps it from being one that runs.

    Args:
        used: the worst place of each memory space.
        cuts: limits that rule out the sets of tiles that overfill a space.
        faulty: nodes that overwrite a value which is still needed, or read the gaps of a window,
            each in a set of its own.
        lost: what each of them does, in words.
    """

    emitted: Emitted
    used: dict[Mem, Peak]
    cuts: tuple[Constraint, ...]
    faulty: tuple[tuple[int, ...], ...]
    lost: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether it runs as it is: enough room, and no value lost."""
        return not self.cuts and not self.faulty

    def ruled_out(self, problem: Problem) -> Problem:
        """The problem without the selections that fail as this one does."""
        return replace(
            problem,
            constraints=(*problem.constraints, *self.cuts),
            forbidden=(*problem.forbidden, *self.faulty),
        )


def try_selection(
    function: Function,
    skeleton: Skeleton,
    graph: TileGraph,
    priced: Priced,
    choice: Mapping[int, int],
    target: Target,
) -> Trial:
    """The function that a selection (class -> node) makes, with its faults.

    Raises:
        LoweringError: a value of the source itself is overwritten while it is needed.
    """
    nodes = {cls: priced.nodes[node] for cls, node in choice.items()}
    emitted = emit_function(function, skeleton, graph, nodes)
    used = peaks(emitted.function)
    position = {id(node): i for i, node in enumerate(priced.nodes)}
    cuts = _cuts(function, emitted, used, position, target)
    faulty = _faulty(function, emitted, position)
    return Trial(emitted, used, tuple(cuts), tuple(faulty), tuple(faulty.values()))


def _faulty(
    function: Function, emitted: Emitted, position: dict[int, int]
) -> dict[tuple[int, ...], str]:
    """The nodes that make a program wrong where they stand, and what they do in words."""
    found: dict[tuple[int, ...], str] = {}
    for hazard in hazards(emitted.function):
        node = emitted.origin.get(hazard.by) if hazard.by is not None else None
        if node is None:
            raise LoweringError(
                f"function '{function.name}': '{hazard.lost.name}' is overwritten while its old "
                "value is still needed",
                span=function.span,
                hint="use a copy of the value",
            )
        assert node.recipe is not None
        op = node.recipe.steps[-1].call.op.replace("tile.", "tensor.")
        words = f"{op} leaves its result in the place of '{base_of(hazard.lost.name)}'"
        found.setdefault((position[id(node)],), words)
    for reshaped in reshaped_gaps(emitted.function):
        node = emitted.origin[reshaped]
        words = f"tensor.reshape gives '{base_of(reshaped.name)}' the gaps of a window"
        found.setdefault((position[id(node)],), words)
    return found


def _cuts(
    function: Function,
    emitted: Emitted,
    used: dict[Mem, Peak],
    position: dict[int, int],
    target: Target,
) -> list[Constraint]:
    """Limits that rule out the sets of tiles that overfill a memory space."""
    cuts = []
    for space, peak in used.items():
        limit = target.capacity_bytes(space)
        if peak.size_bytes <= limit:
            continue
        weights: dict[int, float] = {}
        fixed = 0.0
        for buffer in peak.buffers:
            node = emitted.origin.get(buffer.var)
            if node is None:
                fixed += buffer.size_bytes
                continue
            weights[position[id(node)]] = weights.get(position[id(node)], 0) + buffer.size_bytes
        names = ", ".join(
            f"{buffer.var.name} ({buffer.size_bytes} bytes)" for buffer in peak.buffers
        )
        label = (
            f"{space.value} of function '{function.name}': {peak.size_bytes} bytes needed at "
            f"once, {limit} available: {names}"
        )
        cuts.append(Constraint(label, weights, limit - fixed))
    return cuts


def _no_selection(
    function: Function, selection: Selection, problem: Problem, lost: list[str]
) -> LoweringError:
    if selection.conflict and set(selection.conflict) <= {FORBIDDEN}:
        return _destroyed(function, lost)
    named = [name for name in selection.conflict if name != FORBIDDEN]
    return CapacityError(
        "no choice of lowerings fits on chip: "
        + "; ".join(named or [cut.name for cut in problem.constraints]),
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
