"""What a function reads and writes in global memory, where, by which path, in which order.

Effects come from the operator registry, call by call because keyword arguments decide some of
them, and reach the buffers through aliases, loops, branches and calls (C-026 to C-030, C-044 to
C-053). From them follow the memory versions that tell whether two reads see the same data
(C-054 to C-062) and the check that bulk and scalar stores never meet on one tensor (C-065).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from pypto_egg.analysis.overlaps import Pairs, near
from pypto_egg.analysis.provenance import (
    Provenance,
    Root,
    RootKind,
    aliased_operand,
    callees_first,
    provenance_of,
)
from pypto_egg.analysis.regions import Region, RegionKind, RegionTree, regions_of
from pypto_egg.errors import CoherenceError
from pypto_egg.ir.enums import Direction, FunctionType
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Submit
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Stmt
from pypto_egg.ir.visit import expressions_of, subexpressions
from pypto_egg.ops.registry import Channel, Effect, OpDecl, Required, lookup

DEVICE_FUNCTIONS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One operand of one call reading or writing one buffer.

    Args:
        operand: the index of the operand in `call.args`.
        channel: the path of a write; None for reads, and for writes inside a called function
            whose body is not known.
    """

    root: Root
    stmt: Stmt
    call: Call | FunctionCall | Submit
    operand: int
    effect: Effect
    channel: Channel | None = None


@dataclass(frozen=True, slots=True)
class ParamEffects:
    """What a function does to each parameter's buffer, and whether it does more than that.

    Args:
        channels: for each parameter, the paths by which the function's body writes it.
    """

    effects: tuple[Effect, ...]
    opaque: bool
    channels: tuple[tuple[Channel, ...], ...] = ()


@dataclass(slots=True)
class Effects:
    """All reads and writes of one function.

    Args:
        overlapping: parameters that may name the same memory (see `overlapping_params`).
        accesses: in program order; one access may name a buffer that a handle only may alias.
        opaque_calls: calls whose effects the registry cannot tell.
    """

    function: Function
    provenance: Provenance
    regions: RegionTree
    overlapping: Pairs = frozenset()
    accesses: list[Access] = field(default_factory=list)
    opaque_calls: list[tuple[Stmt, Expr]] = field(default_factory=list)
    _to: dict[Root, list[Access]] = field(default_factory=dict)
    _versions: dict[Root, tuple[list[int], list[int]]] = field(default_factory=dict)

    @property
    def opaque(self) -> bool:
        """Whether some call has side effects that nothing tells (C-030)."""
        return bool(self.opaque_calls)

    @property
    def written_roots(self) -> tuple[Root, ...]:
        """The buffers that the function may write, by root id."""
        written = {access.root for access in self.accesses if access.effect.writes}
        return tuple(sorted(written, key=lambda root: root.id))

    def is_written(self, root: Root) -> bool:
        """Whether the function may write a buffer by a call whose effects are known."""
        return any(
            access.effect.writes for near in self.near(root) for access in self.accesses_to(near)
        )

    def writes(self, stmt: Stmt, handle: Expr) -> bool:
        """Whether a statement may write the memory of a handle."""
        roots = [near for root in self.provenance.roots_of(handle) for near in self.near(root)]
        return any(
            access.stmt is stmt and access.effect.writes
            for root in roots
            for access in self.accesses_to(root)
        )

    def near(self, root: Root) -> tuple[Root, ...]:
        """The buffer, and the parameters that may be the same memory under another name."""
        return near(root, self.provenance, self.overlapping)

    def is_read_only(self, handle: Expr) -> bool:
        """Whether all reads through a tensor handle see the same data, wherever they are.

        False if the function writes any buffer that the handle may alias (C-027 to C-029) and
        false for every handle if a call has opaque side effects (C-030).
        """
        if self.opaque:
            return False
        return not any(root in self._versions for root in self.provenance.roots_of(handle))

    def accesses_to(self, root: Root) -> tuple[Access, ...]:
        """The accesses to one buffer, in program order."""
        return tuple(self._to.get(root, ()))

    def read_version(self, stmt: Stmt, handle: Expr) -> int:
        """The number of the memory version that a read of `handle` in `stmt` sees.

        Two reads through one handle see the same data if their numbers are equal. The number of
        a handle that is never written is 0. A handle that is written gets a new number at every
        write, and at the start of every loop body and branch arm and after each of them, so that
        reads never share across those borders (C-060 to C-062).
        """
        position = self.regions.position_of(stmt)
        newest = 0
        for root in self.provenance.roots_of(handle):
            positions, numbers = self._versions.get(root, ([], []))
            at = bisect_right(positions, position)
            newest = max(newest, numbers[at - 1] if at else 0)
        return newest

    def param_effects(self) -> ParamEffects:
        """What the body does to each parameter, whatever directions are declared."""
        effects, channels = [], []
        for i in range(len(self.function.params)):
            root = self.provenance.root_of_param(i)
            made = () if root is None else self.accesses_to(root)
            effects.append(
                effect_of(any(a.effect.reads for a in made), any(a.effect.writes for a in made))
            )
            taken = dict.fromkeys(a.channel for a in made if a.channel is not None)
            channels.append(tuple(taken))
        return ParamEffects(tuple(effects), self.opaque, tuple(channels))


def effect_of(reads: bool, writes: bool) -> Effect:
    """The effect that reads, writes, does both or neither."""
    if reads and writes:
        return Effect.READ_WRITE
    if writes:
        return Effect.WRITE
    return Effect.READ if reads else Effect.NONE


def analyse_effects(
    function: Function, program: Program | None = None, overlapping: Pairs = frozenset()
) -> Effects:
    """The effects of a function on the buffers that its handles stand for.

    Args:
        program: where called functions are looked up. A call of a function that is not there has
            opaque effects; of one without a body, the effects that its directions declare.
        overlapping: parameters that callers may give the same memory.
    """
    known: dict[str, ParamEffects] = {}
    for callee in callees_first(function, program)[:-1]:
        known[callee.name] = _effects_for_callers(callee, program, known)
    return _analyse(function, program, known, overlapping)


def check_store_paths(
    function: Function, program: Program | None = None, overlapping: Pairs = frozenset()
) -> None:
    """Nothing, if no tensor in global memory is stored both in bulk and by scalars.

    The paths may not meet on one tensor in one device function even where their offsets look
    disjoint, because a barrier does not keep a cache line coherent between them (C-065 to C-068).
    What a device function allocates or computes itself lives on chip and is free to mix.

    Raises:
        CoherenceError: names the tensor, both paths and the statements that take them.
    """
    if function.type not in DEVICE_FUNCTIONS:
        return
    effects = analyse_effects(function, program, overlapping)
    for root in effects.provenance.roots:
        if root.kind not in (RootKind.PARAM, RootKind.CALL):
            continue
        accesses = [access for near in effects.near(root) for access in effects.accesses_to(near)]
        writes = [access for access in accesses if access.effect.writes]
        bulk = next((access for access in writes if access.channel is Channel.DMA), None)
        scalar = next((access for access in writes if access.channel is Channel.SCALAR), None)
        if bulk is not None and scalar is not None:
            raise _mixed_paths(function, root, bulk, scalar)


def _mixed_paths(function: Function, root: Root, bulk: Access, scalar: Access) -> CoherenceError:
    def described(access: Access) -> str:
        assert access.channel is not None
        place = f" at {access.stmt.span}" if access.stmt.span else ""
        name = access.call.op if isinstance(access.call, Call) else f"self.{access.call.name}"
        return f"{name}{place}, a {access.channel.value}"

    return CoherenceError(
        f"tensor '{root.var.name}' of function '{function.name}' is written by two store paths: "
        f"{described(bulk)}, and {described(scalar)} (C-065, on every target by Q-02)",
        span=scalar.stmt.span or bulk.stmt.span,
        hint="write every element with tensor.write, or make the scalar updates on a local "
        "tensor.full value and assign that to the tensor once",
    )


def _effects_for_callers(
    callee: Function, program: Program | None, known: dict[str, ParamEffects]
) -> ParamEffects:
    declared = tuple(_DECLARED[param.direction] for param in callee.params)
    if callee.external_source is not None or not callee.body:
        return ParamEffects(declared, opaque=False)
    found = _analyse(callee, program, known).param_effects()
    effects = tuple(
        made if param.direction is Direction.In else said
        for param, said, made in zip(callee.params, declared, found.effects, strict=True)
    )
    return ParamEffects(effects, found.opaque, found.channels)


_DECLARED = {
    Direction.In: Effect.READ,
    Direction.Out: Effect.WRITE,
    Direction.InOut: Effect.READ_WRITE,
}


def _analyse(
    function: Function,
    program: Program | None,
    known: dict[str, ParamEffects],
    overlapping: Pairs = frozenset(),
) -> Effects:
    effects = Effects(function, provenance_of(function, program), regions_of(function), overlapping)
    for stmt in effects.regions.statements:
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                if isinstance(part, Call | FunctionCall | Submit):
                    _record(effects, stmt, part, known)
    _number_versions(effects)
    return effects


def _record(
    effects: Effects,
    stmt: Stmt,
    call: Call | FunctionCall | Submit,
    known: dict[str, ParamEffects],
) -> None:
    if isinstance(call, Call):
        decl = lookup(call.op)
        opaque = decl is None or decl.opaque_effects
        made = _operand_effects(call, decl)
        paths: list[tuple[Channel | None, ...]] = [
            (None if decl is None else decl.channel,) for _ in made
        ]
    else:
        callee = known.get(call.name)
        opaque = callee is None or callee.opaque
        said = () if callee is None else callee.effects
        made = [said[i] if i < len(said) else Effect.READ for i in range(len(call.args))]
        known_paths = () if callee is None else callee.channels
        paths = [
            (known_paths[i] if i < len(known_paths) else ()) or (None,) for i in range(len(made))
        ]
    if opaque:
        effects.opaque_calls.append((stmt, call))
    for i, effect in enumerate(made):
        for root in effects.provenance.roots_of(call.args[i]) if effect is not Effect.NONE else ():
            for channel in paths[i] if effect.writes else (None,):
                access = Access(root, stmt, call, i, effect, channel)
                effects.accesses.append(access)
                effects._to.setdefault(root, []).append(access)


def _operand_effects(call: Call, decl: OpDecl | None) -> list[Effect]:
    """The effect on each operand. An operand that a zero-copy view only renames is not accessed."""
    if decl is None:
        return [Effect.READ] * len(call.args)
    defaults = {k.name: k.default for k in decl.kwargs if not isinstance(k.default, Required)}
    kwargs = {**defaults, **dict(call.kwargs)}
    renamed = aliased_operand(call) if decl.inherits_memory else None
    made = []
    for i in range(len(call.args)):
        operand = decl.operands[i] if i < len(decl.operands) else None
        effect = Effect.READ if operand is None else operand.effect_for(kwargs)
        made.append(Effect.NONE if i == renamed and not effect.writes else effect)
    return made


def _number_versions(effects: Effects) -> None:
    """Give every root that may change a list of (position, number): its versions, in order."""
    regions = effects.regions
    written = dict.fromkeys(near for root in effects.written_roots for near in effects.near(root))
    mutable = effects.provenance.roots if effects.opaque else tuple(written)
    events: list[tuple[int, int, tuple[Root, ...]]] = []
    for stmt, _ in effects.opaque_calls:
        events.append((regions.position_of(stmt) + 1, 0, tuple(mutable)))
    for access in effects.accesses:
        if access.effect.writes:
            changed = effects.near(access.root)
            events.append((regions.position_of(access.stmt) + 1, 0, changed))
    for position in _borders(regions):
        events.append((position, 1, tuple(mutable)))
    events.sort(key=lambda event: event[:2])
    for root in mutable:
        effects._versions[root] = ([], [])
    for number, (position, _, roots) in enumerate(events, start=1):
        for root in roots:
            positions, numbers = effects._versions[root]
            positions.append(position)
            numbers.append(number)


def _borders(regions: RegionTree) -> Iterator[int]:
    """The positions at which control enters or leaves a loop, a branch or an arm."""
    for region in regions.regions:
        if region.parent is not None and _is_conditional(region):
            yield regions.start_of(region)
            yield regions.end_of(region)


def _is_conditional(region: Region) -> bool:
    return region.kind not in (RegionKind.FUNCTION, RegionKind.SCOPE)
