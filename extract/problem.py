"""The extraction problem: a flat, immutable description of an e-graph with costs and limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from pypto_egg.errors import ExtractionError


@dataclass(frozen=True)
class Constraint:
    """A limit on a sum: the weights of all selected nodes together are at most `limit`.

    Args:
        name: what is limited, for error messages ("Vec bytes").
        weights: node -> weight, finite and not negative; a node that is not listed weighs 0.
        limit: finite; in the unit of the weights.
    """

    name: str
    weights: Mapping[int, float]
    limit: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", MappingProxyType(dict(sorted(self.weights.items()))))


@dataclass(frozen=True, eq=False)
class Problem:
    """An e-graph to extract from. Node and class ids are positions 0, 1, 2, ...

    Args:
        node_class: class of each node.
        node_children: child classes of each node, in operand order; selected with the node, and
            no node may reach its own class through them.
        node_cost: cost of each node, finite and not negative, paid once however often it is used
            (a node in a loop already counts trip-count times).
        roots: classes that must be selected.
        node_requires: classes that must be selected with the node but may depend on it (loop
            carries): they do not count for acyclicity. Empty: none.
        node_op, node_name, class_name: names for messages and files. Empty: made up from the ids.
        node_vector, pipes: cost parts, float [nodes, pipes], and the names of the pipes.
        constraints: limits on sums over the selected nodes.
        forbidden: sets of nodes that may not all be selected together; a set of one node forbids
            that node, a set of two makes them incompatible.

    Raises:
        ExtractionError: an id is out of range, a length does not fit, a number is not usable.
    """

    node_class: Sequence[int]
    node_children: Sequence[Sequence[int]]
    node_cost: npt.NDArray[np.float64]
    roots: Sequence[int]
    node_requires: Sequence[Sequence[int]] = ()
    node_op: Sequence[str] = ()
    node_name: Sequence[str] = ()
    class_name: Sequence[str] = ()
    node_vector: npt.NDArray[np.float64] | None = None
    pipes: Sequence[str] = ()
    constraints: Sequence[Constraint] = ()
    forbidden: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        count = len(self.node_class)
        put = object.__setattr__
        put(self, "node_class", tuple(int(c) for c in self.node_class))
        put(self, "node_children", _rows(self.node_children))
        put(self, "node_requires", _rows(self.node_requires) or ((),) * count)
        put(self, "node_cost", _frozen_array(self.node_cost, "node_cost"))
        put(self, "roots", tuple(dict.fromkeys(int(c) for c in self.roots)))
        put(self, "class_name", tuple(self.class_name) or self._default_class_names())
        put(self, "node_name", tuple(self.node_name) or tuple(f"n{n}" for n in range(count)))
        put(self, "node_op", tuple(self.node_op) or self.node_name)
        put(self, "pipes", tuple(self.pipes))
        if self.node_vector is not None:
            put(self, "node_vector", _frozen_array(self.node_vector, "node_vector"))
        put(self, "constraints", tuple(self.constraints))
        put(self, "forbidden", tuple(tuple(sorted(set(group))) for group in self.forbidden))
        self._validate()

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.node_class)

    @property
    def class_count(self) -> int:
        """Number of classes."""
        return len(self.class_name)

    @cached_property
    def class_nodes(self) -> tuple[tuple[int, ...], ...]:
        """Nodes of each class, ascending."""
        nodes: list[list[int]] = [[] for _ in self.class_name]
        for node, owner in enumerate(self.node_class):
            nodes[owner].append(node)
        return tuple(map(tuple, nodes))

    def with_constraints(self, extra: Iterable[Constraint]) -> Problem:
        """The same problem with further constraints."""
        return replace(self, constraints=(*self.constraints, *extra))

    def describe(self, node: int) -> str:
        """A node in the user's names: its op, its id and its class."""
        owner = self.class_name[self.node_class[node]]
        return f"node {self.node_name[node]!r} (op {self.node_op[node]!r}, class {owner!r})"

    def _default_class_names(self) -> tuple[str, ...]:
        used = [*self.node_class, *self.roots]
        used += [c for row in self.node_children for c in row]
        used += [c for row in self.node_requires for c in row]
        return tuple(f"c{i}" for i in range(max(used, default=-1) + 1))

    def _validate(self) -> None:
        count = self.node_count
        lengths = {
            "node_children": len(self.node_children),
            "node_requires": len(self.node_requires),
            "node_cost": self.node_cost.size,
            "node_op": len(self.node_op),
            "node_name": len(self.node_name),
        }
        for field, length in lengths.items():
            if length != count:
                raise ExtractionError(
                    f"{field} has {length} entries but node_class has {count}",
                    hint="give every per-node array one entry for each node",
                )
        if self.node_cost.ndim != 1:
            raise ExtractionError(f"node_cost has {self.node_cost.ndim} axes, it must have 1")
        for kind, names in (("node", self.node_name), ("class", self.class_name)):
            if len(set(names)) != len(names):
                twice = next(name for i, name in enumerate(names) if name in names[:i])
                raise ExtractionError(f"two of the {kind} names are {twice!r}; names must differ")
        self._validate_classes()
        self._validate_costs()
        self._validate_vector()
        for constraint in self.constraints:
            self._validate_constraint(constraint)
        for group in self.forbidden:
            if not group:
                raise ExtractionError(
                    "a forbidden set is empty", hint="every forbidden set names at least one node"
                )
            for node in group:
                self._validate_node(node, "a forbidden set")

    def _validate_classes(self) -> None:
        limit = self.class_count
        for root in self.roots:
            if not 0 <= root < limit:
                raise ExtractionError(f"root class {root} does not exist; there are {limit}")
        for node, owner in enumerate(self.node_class):
            for cls in (owner, *self.node_children[node], *self.node_requires[node]):
                if not 0 <= cls < limit:
                    raise ExtractionError(
                        f"node {self.node_name[node]!r} names class {cls}, which does not exist; "
                        f"there are {limit}"
                    )

    def _validate_costs(self) -> None:
        bad = np.flatnonzero(~(np.isfinite(self.node_cost) & (self.node_cost >= 0)))
        if bad.size:
            node = int(bad[0])
            raise ExtractionError(
                f"{self.describe(node)} has cost {self.node_cost[node]}; "
                "a cost must be finite and not negative",
                hint="to keep a node from being selected, list it in `forbidden`",
            )

    def _validate_vector(self) -> None:
        if self.node_vector is None:
            return
        want = (self.node_count, len(self.pipes))
        if self.node_vector.shape != want:
            raise ExtractionError(
                f"node_vector has shape {self.node_vector.shape}, needed is {want} "
                "(nodes, pipe names)"
            )

    def _validate_constraint(self, constraint: Constraint) -> None:
        if not math.isfinite(constraint.limit):
            raise ExtractionError(
                f"constraint {constraint.name!r} has limit {constraint.limit}",
                hint="leave out a constraint that has no limit",
            )
        for node, weight in constraint.weights.items():
            self._validate_node(node, f"constraint {constraint.name!r}")
            if not (math.isfinite(weight) and weight >= 0):
                raise ExtractionError(
                    f"constraint {constraint.name!r} gives {self.describe(node)} the weight "
                    f"{weight}; a weight must be finite and not negative"
                )

    def _validate_node(self, node: int, where: str) -> None:
        if not 0 <= node < self.node_count:
            raise ExtractionError(
                f"{where} names node {node}, which does not exist; there are {self.node_count}"
            )


def _rows(rows: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(c) for c in row) for row in rows)


def _frozen_array(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ExtractionError(f"{name} is not an array of numbers: {error}") from error
    array.setflags(write=False)
    return array
