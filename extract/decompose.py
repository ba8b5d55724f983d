"""Splits a reduced problem into independent parts, solves each, and puts the answers together.

Two kinds of independence are used. Parts that share no class (once what is selected anyway is taken
out) and no constraint are solved apart. A class that all users of the classes below it go through
(a dominator that closes its cone) has a cheapest cone whatever the rest selects: it is solved
first and becomes a node without children.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pypto_egg.extract.deadline import Deadline, passed, share
from pypto_egg.extract.graph import Graph, reachable_classes
from pypto_egg.extract.reduce import reduce_graph
from pypto_egg.extract.structure import class_edges, dominator_tree

MAX_DEPTH = 20
"""Cones inside cones are solved apart up to this depth; deeper ones go to the solver whole."""


@dataclass
class Answer:
    """What is known of a part's cheapest selection, in the graph's units.

    Args:
        choice: class -> node, closed under what is needed; may hold classes not needed.
        cost: cost of the selection; None when none was found.
        bound: no selection costs less; None when none exists (proven).
    """

    choice: dict[int, int] = field(default_factory=dict)
    cost: int | None = 0
    bound: int | None = 0

    def add(self, other: Answer) -> None:
        """Joins the answer of an independent part."""
        self.choice.update(other.choice)
        self.cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        self.bound = None if self.bound is None or other.bound is None else self.bound + other.bound


IMPOSSIBLE = (None, None)


class PieceSolver(Protocol):
    """Solves one irreducible part; a known selection is its fallback."""

    def __call__(self, graph: Graph) -> Answer:
        """The answer for `graph`, which it may change."""
        ...


def solve(
    graph: Graph, solve_piece: PieceSolver, deadline: Deadline = None, depth: int = 0
) -> Answer:
    """The answer for a graph, put together from those of its parts; changes `graph`.

    After the deadline nothing more is reduced or split, and `solve_piece` gets what is left.
    """
    fixed = reduce_graph(graph, deadline=share(deadline, 0.3))
    if fixed is None:
        return Answer({}, *IMPOSSIBLE)
    answer = Answer(fixed.choice, fixed.base, fixed.base)
    for part in split(graph):
        answer.add(_solve_part(part, solve_piece, deadline, depth))
        if answer.bound is None:
            break
    return answer


def _solve_part(part: Graph, solve_piece: PieceSolver, deadline: Deadline, depth: int) -> Answer:
    cones = _cones(part) if depth < MAX_DEPTH and not passed(deadline) else []
    if not cones:
        return solve_piece(part)
    inner: dict[int, int] = {}
    slack = 0
    for top in cones:
        below = reachable_classes(part.nodes, part.children, part.requires, [top])
        found = solve(part.part(below, [top]), solve_piece, deadline, depth + 1)
        if found.cost is None or found.bound is None:
            return solve_piece(part)
        inner.update(found.choice)
        slack += found.cost - found.bound
        _make_leaf(part, top, found.choice[top], found.cost)
    outer = solve(part, solve_piece, deadline, depth + 1)
    outer.choice = {**inner, **outer.choice}
    if outer.bound is not None:
        outer.bound -= slack
    return outer


def _make_leaf(graph: Graph, cls: int, node: int, cost: int) -> None:
    graph.nodes[cls] = [node]
    graph.children[node] = ()
    graph.requires[node] = ()
    graph.cost[node] = cost


def split(graph: Graph) -> list[Graph]:
    """The independent parts: they share no class, no constraint and no forbidden set."""
    leader = {cls: cls for cls in graph.nodes}

    def find(cls: int) -> int:
        while leader[cls] != cls:
            leader[cls] = leader[leader[cls]]
            cls = leader[cls]
        return cls

    def join(group: list[int]) -> None:
        for other in group[1:]:
            a, b = find(group[0]), find(other)
            leader[max(a, b)] = min(a, b)

    owner = graph.owner()
    for cls, targets in class_edges(graph, requires=True).items():
        join([cls, *targets])
    for row in graph.weights:
        join([owner[node] for node, weight in row.items() if weight])
    for group in graph.forbidden:
        join([owner[node] for node in group])
    members: dict[int, list[int]] = {}
    for cls in graph.nodes:
        members.setdefault(find(cls), []).append(cls)
    roots: dict[int, list[int]] = {}
    for root in graph.roots:
        roots.setdefault(find(root), []).append(root)
    return [graph.part(members[top], roots[top]) for top in sorted(roots)]


def _cones(graph: Graph) -> list[int]:
    """Classes that close a cone worth solving apart, inner ones first."""
    edges = class_edges(graph, requires=True)
    order, parent = dominator_tree(edges, graph.roots)
    below: dict[int, list[int]] = {cls: [] for cls in order}
    for cls in order:
        above = parent[cls]
        if above is not None:
            below[above].append(cls)
    first = _preorder([cls for cls in order if parent[cls] is None], below)
    bound = {n for row in graph.weights for n, w in row.items() if w}
    bound.update(n for group in graph.forbidden for n in group)
    size: dict[int, int] = {}
    low: dict[int, int] = {}
    high: dict[int, int] = {}
    coupled: dict[int, bool] = {}
    cones = []
    for cls in reversed(order):
        inner = below[cls]
        size[cls] = 1 + sum(size[c] for c in inner)
        own = [first[cls], *(first[target] for target in edges[cls])]
        low[cls] = min([*own, *(low[c] for c in inner)])
        high[cls] = max([*own, *(high[c] for c in inner)])
        coupled[cls] = any(coupled[c] for c in inner) or not bound.isdisjoint(graph.nodes[cls])
        inside = low[cls] == first[cls] and high[cls] < first[cls] + size[cls]
        if inside and not coupled[cls] and 1 < size[cls] < len(order):
            cones.append(cls)
    return cones


def _preorder(tops: list[int], below: Mapping[int, list[int]]) -> dict[int, int]:
    number: dict[int, int] = {}
    stack = tops[::-1]
    while stack:
        cls = stack.pop()
        number[cls] = len(number)
        stack.extend(reversed(below[cls]))
    return number
