"""A selection tried out: emitted, and looked at for what keeps it from running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pypto_egg.egraph.skeleton import Skeleton
from pypto_egg.egraph.tilegraph import TileGraph
from pypto_egg.emit.emit import Emitted, emit_function
from pypto_egg.emit.gaps import reshaped_gaps
from pypto_egg.emit.hazards import hazards
from pypto_egg.emit.liveness import Peak, peaks
from pypto_egg.emit.names import base_of
from pypto_egg.errors import LoweringError
from pypto_egg.extract.problem import Constraint, Problem
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.program import Function
from pypto_egg.price import Priced
from pypto_egg.target.target import Target


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
    cuts = _cuts(function, emitted, used, position, graph, target)
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
    graph: TileGraph,
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
        held = []
        for buffer in peak.buffers:
            node = emitted.origin.get(buffer.var)
            name = base_of(buffer.var.name)
            if node is None:
                fixed += buffer.size_bytes
            else:
                weights[position[id(node)]] = weights.get(position[id(node)], 0) + buffer.size_bytes
                name = graph.classes[node.cls].name or name
            held.append(f"'{name}' ({buffer.size_bytes} bytes)")
        label = (
            f"{space.value} of function '{function.name}': {peak.size_bytes} bytes needed at "
            f"once, {limit} available: {', '.join(held)}"
        )
        cuts.append(Constraint(label, weights, limit - fixed))
    return cuts
