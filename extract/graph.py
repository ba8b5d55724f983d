"""The working form of a problem: exact whole numbers, and only what a selection can use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pypto_egg.errors import ExtractionError
from pypto_egg.extract.problem import Problem


@dataclass
class Graph:
    """Classes and nodes still in play. Ids are the problem's; every number is a whole number.

    Args:
        nodes: class -> its nodes, ascending; classes ascending.
        children, requires: node -> classes.
        cost: node -> cost times 2**shift, exactly.
        weights, limits: one entry for each constraint that can be broken, scaled to whole numbers.
        limit_names: the constraints' names.
        forbidden: node sets that may not be selected together.
        roots: classes to select.
        shift: the binary scale of `cost`.
    """

    nodes: dict[int, list[int]]
    children: dict[int, tuple[int, ...]]
    requires: dict[int, tuple[int, ...]]
    cost: dict[int, int]
    weights: list[dict[int, int]]
    limits: list[int]
    limit_names: list[str]
    forbidden: list[tuple[int, ...]]
    roots: tuple[int, ...]
    shift: int

    def part(self, classes: Iterable[int], roots: Iterable[int]) -> Graph:
        """A copy of some classes, closed under children and requires, without the others."""
        nodes = {cls: list(self.nodes[cls]) for cls in sorted(classes)}
        alive = {node for members in nodes.values() for node in members}
        rows = [{n: w for n, w in row.items() if n in alive} for row in self.weights]
        used = [number for number, row in enumerate(rows) if any(row.values())]
        return Graph(
            nodes=nodes,
            children={node: self.children[node] for node in sorted(alive)},
            requires={node: self.requires[node] for node in sorted(alive)},
            cost={node: self.cost[node] for node in sorted(alive)},
            weights=[rows[number] for number in used],
            limits=[self.limits[number] for number in used],
            limit_names=[self.limit_names[number] for number in used],
            forbidden=[group for group in self.forbidden if alive.issuperset(group)],
            roots=tuple(roots),
            shift=self.shift,
        )

    def owner(self) -> dict[int, int]:
        """Class of each node in play."""
        return {node: cls for cls, nodes in self.nodes.items() for node in nodes}

    def allows(self, selected: set[int]) -> bool:
        """Whether a set of selected nodes meets all limits and forbidden sets."""
        return self.excess(selected) == 0 and not any(
            selected.issuperset(group) for group in self.forbidden
        )

    def excess(self, selected: set[int]) -> int:
        """Sum over the constraints of what a set of selected nodes weighs above the limit."""
        over = 0
        for row, limit in zip(self.weights, self.limits, strict=True):
            over += max(0, sum(row.get(node, 0) for node in selected) - limit)
        return over

    def keep_nodes(self, keep: Mapping[int, Sequence[int]]) -> None:
        """Restricts the graph, in place, to the nodes of `keep` (class -> nodes)."""
        self.nodes = {cls: list(keep[cls]) for cls in sorted(keep) if keep[cls]}
        alive = self.owner()
        self.children = {node: self.children[node] for node in alive}
        self.requires = {node: self.requires[node] for node in alive}
        self.cost = {node: self.cost[node] for node in alive}
        self.weights = [{n: w for n, w in row.items() if n in alive} for row in self.weights]
        self.forbidden = [group for group in self.forbidden if all(n in alive for n in group)]


def graph_of(problem: Problem) -> Graph:
    """The working form of a problem, without nodes that no selection can hold.

    Raises:
        ExtractionError: a root class has no finite term at all.
    """
    graph = _working_form(problem)
    for root in graph.roots:
        if root not in graph.nodes:
            raise ExtractionError(
                f"root class {problem.class_name[root]!r} has no finite term: "
                + _why_unusable(problem, root),
                hint="add a rule that gives the class a node whose operands can all be extracted",
            )
    return graph


def graph_or_none(problem: Problem) -> Graph | None:
    """As `graph_of`; None where a root class has no finite term."""
    graph = _working_form(problem)
    return graph if all(root in graph.nodes for root in graph.roots) else None


def _working_form(problem: Problem) -> Graph:
    cost, shift = whole_numbers(problem.node_cost.tolist())
    graph = Graph(
        nodes={cls: list(nodes) for cls, nodes in enumerate(problem.class_nodes)},
        children={node: tuple(row) for node, row in enumerate(problem.node_children)},
        requires={
            node: tuple(c for c in row if c != problem.node_class[node])
            for node, row in enumerate(problem.node_requires)
        },
        cost=dict(enumerate(cost)),
        weights=[],
        limits=[],
        limit_names=[],
        forbidden=[tuple(group) for group in problem.forbidden],
        roots=tuple(problem.roots),
        shift=shift,
    )
    for constraint in problem.constraints:
        values, _ = whole_numbers([*constraint.weights.values(), constraint.limit])
        graph.weights.append(dict(zip(constraint.weights, values[:-1], strict=True)))
        graph.limits.append(values[-1])
        graph.limit_names.append(constraint.name)
    drop_unusable(graph)
    return graph


def whole_numbers(values: Iterable[float]) -> tuple[list[int], int]:
    """The values times 2**shift as exact whole numbers, and the smallest such shift."""
    ratios = [float(value).as_integer_ratio() for value in values]
    shift = max((den.bit_length() - 1 for _, den in ratios), default=0)
    return [num << (shift - den.bit_length() + 1) for num, den in ratios], shift


def real_number(value: int, shift: int, *, down: bool = False) -> float:
    """`value` / 2**shift as a float: the nearest, or with `down` never above the exact value."""
    if shift < 0:
        value, shift = value << -shift, 0
    nearest = value / (1 << shift)
    if not down:
        return nearest
    num, den = nearest.as_integer_ratio()
    return math.nextafter(nearest, -math.inf) if num << shift > value * den else nearest


def drop_unusable(graph: Graph) -> None:
    """Removes, in place, what no selection can hold.

    That is: forbidden nodes, nodes that occur only in cycles or need a class that cannot be had,
    and classes that the roots do not reach.
    """
    banned = {group[0] for group in graph.forbidden if len(group) == 1}
    alive = {cls: [n for n in nodes if n not in banned] for cls, nodes in graph.nodes.items()}
    while True:
        done = derivable_classes(alive, graph.children)
        kept = {
            cls: [
                n
                for n in nodes
                if all(c in done for c in graph.children[n])
                and all(c in done for c in graph.requires[n])
                and cls not in graph.children[n]
            ]
            for cls, nodes in alive.items()
        }
        if sum(map(len, kept.values())) == sum(map(len, alive.values())):
            break
        alive = kept
    reached = reachable_classes(alive, graph.children, graph.requires, graph.roots)
    graph.keep_nodes({cls: alive[cls] for cls in reached if cls in alive})


def derivable_classes(
    nodes: Mapping[int, Sequence[int]], children: Mapping[int, Sequence[int]]
) -> set[int]:
    """Classes that have a finite term over `nodes`; linear in the size of the graph."""
    waiting: dict[int, int] = {}
    users: dict[int, list[tuple[int, int]]] = {}
    ready = []
    for cls, members in nodes.items():
        for node in members:
            needed = set(children[node])
            waiting[node] = len(needed)
            for child in needed:
                users.setdefault(child, []).append((node, cls))
            if not needed:
                ready.append(cls)
    done: set[int] = set()
    while ready:
        cls = ready.pop()
        if cls in done:
            continue
        done.add(cls)
        for node, owner in users.get(cls, ()):
            waiting[node] -= 1
            if waiting[node] == 0:
                ready.append(owner)
    return done


def reachable_classes(
    nodes: Mapping[int, Sequence[int]],
    children: Mapping[int, Sequence[int]],
    requires: Mapping[int, Sequence[int]],
    roots: Iterable[int],
) -> set[int]:
    """Classes that the roots reach through any node."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        for node in nodes.get(stack.pop(), ()):
            for cls in (*children[node], *requires[node]):
                if cls not in seen:
                    seen.add(cls)
                    stack.append(cls)
    return seen


def selected_nodes(
    choice: Mapping[int, int],
    children: Mapping[int, Sequence[int]] | Sequence[Sequence[int]],
    requires: Mapping[int, Sequence[int]] | Sequence[Sequence[int]],
    roots: Iterable[int],
) -> dict[int, int]:
    """The part of `choice` (class -> node) that the roots reach."""
    picked: dict[int, int] = {}
    stack = list(roots)
    while stack:
        cls = stack.pop()
        if cls in picked:
            continue
        node = choice[cls]
        picked[cls] = node
        stack.extend(children[node])
        stack.extend(requires[node])
    return picked


def children_first(
    picked: Mapping[int, int],
    children: Mapping[int, Sequence[int]] | Sequence[Sequence[int]],
) -> list[int] | None:
    """Selected classes with every class after its children, or None when they form a cycle."""
    waiting = {cls: len(set(children[node])) for cls, node in picked.items()}
    users: dict[int, list[int]] = {}
    for cls, node in picked.items():
        for child in set(children[node]):
            users.setdefault(child, []).append(cls)
    order = [cls for cls in sorted(picked) if waiting[cls] == 0]
    for cls in order:
        for user in users.get(cls, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                order.append(user)
    return order if len(order) == len(picked) else None


def _why_unusable(problem: Problem, root: int) -> str:
    nodes = problem.class_nodes[root]
    if not nodes:
        return "it has no node"
    banned = {group[0] for group in problem.forbidden if len(group) == 1}
    if all(node in banned for node in nodes):
        return "all of its nodes are forbidden"
    node = next(node for node in nodes if node not in banned)
    needs = (*problem.node_children[node], *problem.node_requires[node])
    names = ", ".join(repr(problem.class_name[cls]) for cls in dict.fromkeys(needs))
    return f"{problem.describe(node)} needs {names}, not all of which can be had without a cycle"
