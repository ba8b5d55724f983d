"""Improves a selection of a large graph by solving small neighbourhoods of it exactly.

A neighbourhood is some selected classes that lie close together, its zone, and classes that are not
selected but that the zone's nodes could use. What is selected outside of it stays and costs nothing
more. Each neighbourhood is a small extraction problem of its own; only selections that cost less
than the present one are looked for, so most are refuted by reductions and landmarks in milliseconds
(large neighbourhood search, Shaw 1998).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from pypto_egg.extract.deadline import Deadline, passed
from pypto_egg.extract.decompose import Answer, split
from pypto_egg.extract.graph import Graph, children_first, selected_nodes
from pypto_egg.extract.reduce import reduce_graph
from pypto_egg.extract.structure import cycle_groups

ZONES = (40, 120)
"""Selected classes in a neighbourhood: small ones first, larger ones once those pay no more."""

BORDER = 2
"""Classes that are not selected, for each class of the zone, that a neighbourhood may hold."""

LEAST_GAIN = 1e-3
"""Share of the cost that a pass over all neighbourhoods has to gain for another one to follow."""

PartSolver = Callable[[Graph, int], Answer]
"""From a part and the most that its selection may cost to the answer; None costs: nothing found."""


def improve_by_neighbourhoods(
    graph: Graph, start: Mapping[int, int], solve_part: PartSolver, deadline: Deadline
) -> dict[int, int]:
    """A selection (class -> node) at most as dear as `start`, which meets all constraints.

    Without a deadline it ends when a pass over all neighbourhoods gains less than LEAST_GAIN.
    """
    search = _Search(graph, start, solve_part)
    for zone in ZONES:
        gained = True
        while gained and not passed(deadline):
            before = search.cost()
            search.sweep(zone, deadline)
            gained = before - search.cost() > LEAST_GAIN * before
    return search.picked


class _Search:
    def __init__(self, graph: Graph, start: Mapping[int, int], solve_part: PartSolver) -> None:
        self.graph = graph
        self.picked = dict(start)
        self.solve_part = solve_part
        self.random = random.Random(0)
        group = cycle_groups(graph)
        self.group = group
        sizes: dict[int, int] = {}
        for number in group.values():
            sizes[number] = sizes.get(number, 0) + 1
        self.cyclic = {number for number, size in sizes.items() if size > 1}

    def cost(self) -> int:
        return sum(self.graph.cost[node] for node in self.picked.values())

    def sweep(self, size: int, deadline: Deadline) -> None:
        """Solves neighbourhoods until every selected class with a choice was in one."""
        left = [cls for cls in sorted(self.picked) if len(self.graph.nodes[cls]) > 1]
        self.random.shuffle(left)
        covered: set[int] = set()
        users = self._users()
        while left and not passed(deadline):
            centre = left.pop()
            if centre in covered or centre not in self.picked:
                continue
            zone = self._zone(centre, size, users)
            covered |= zone
            if self._improve(zone, users):
                users = self._users()

    def _users(self) -> dict[int, list[int]]:
        """Class -> selected classes whose nodes need it."""
        users: dict[int, list[int]] = {cls: [] for cls in self.picked}
        for cls, node in sorted(self.picked.items()):
            for need in {*self.graph.children[node], *self.graph.requires[node]}:
                users[need].append(cls)
        return users

    def _zone(self, centre: int, size: int, users: Mapping[int, list[int]]) -> set[int]:
        """Selected classes around the centre, breadth first, over operands and users."""
        graph, zone, queue = self.graph, {centre}, [centre]
        for cls in queue:
            near = {c for n in graph.nodes[cls] for c in graph.children[n] if c in self.picked}
            near.update(users[cls])
            fresh = sorted(near - zone)
            self.random.shuffle(fresh)
            fresh = fresh[: max(0, size - len(zone))]
            zone.update(fresh)
            queue += fresh
            if len(zone) >= size:
                break
        return zone

    def _improve(self, zone: set[int], users: Mapping[int, list[int]]) -> bool:
        """Whether a cheaper way to select the zone was found, and taken."""
        part = self._part(zone, users)
        most = sum(part.cost[self.picked[cls]] for cls in zone) - 1
        if most < 0:
            return False
        found = self._solve(part, most)
        if found is None:
            return False
        graph = self.graph
        choice = {**self.picked, **found}
        after = selected_nodes(choice, graph.children, graph.requires, graph.roots)
        cost = sum(graph.cost[node] for node in after.values())
        if cost >= self.cost() or children_first(after, graph.children) is None:
            return False
        if not graph.allows(set(after.values())):
            return False
        self.picked = after
        return True

    def _solve(self, part: Graph, most: int) -> dict[int, int] | None:
        fixed = reduce_graph(part, upper=most)
        if fixed is None or fixed.base > most:
            return None
        choice, left = dict(fixed.choice), most - fixed.base
        parts = split(part)
        for piece in parts:
            answer = self.solve_part(piece, left)
            if answer.cost is None or answer.cost > left:
                return None
            left -= answer.cost
            choice.update(answer.choice)
        return choice

    def _part(self, zone: set[int], users: Mapping[int, list[int]]) -> Graph:
        """The problem of selecting the zone anew, with everything else as it is."""
        graph, picked = self.graph, self.picked
        inside = self._with_border(zone)
        nodes: dict[int, list[int]] = {}
        children: dict[int, tuple[int, ...]] = {}
        requires: dict[int, tuple[int, ...]] = {}
        behind = self._behind(zone)
        for cls in sorted(inside):
            nodes[cls] = []
            for node in graph.nodes[cls]:
                needs = (*graph.children[node], *graph.requires[node])
                if any(c not in inside and c not in picked for c in needs):
                    continue
                nodes[cls].append(node)
                below: set[int] = set()
                for child in graph.children[node]:
                    below |= {child} if child in inside else behind.get(child, frozenset())
                children[node] = tuple(sorted(below))
                requires[node] = tuple(sorted({c for c in graph.requires[node] if c in inside}))
        outside = {n for c, n in picked.items() if c not in zone}
        roots = set(graph.roots)
        return Graph(
            nodes=nodes,
            children=children,
            requires=requires,
            cost={node: graph.cost[node] for node in children},
            weights=[{n: w for n, w in row.items() if n in children} for row in graph.weights],
            limits=[
                limit - sum(row.get(n, 0) for n in outside)
                for row, limit in zip(graph.weights, graph.limits, strict=True)
            ],
            limit_names=list(graph.limit_names),
            forbidden=_still_forbidden(graph, children, outside),
            roots=tuple(c for c in sorted(zone) if c in roots or not zone.issuperset(users[c])),
            shift=graph.shift,
        )

    def _with_border(self, zone: set[int]) -> set[int]:
        """The zone and classes that are not selected but that its nodes could use."""
        inside, most = set(zone), (1 + BORDER) * len(zone)
        queue = sorted(zone)
        for cls in queue:
            for node in self.graph.nodes[cls]:
                for need in (*self.graph.children[node], *self.graph.requires[node]):
                    if need not in inside and need not in self.picked and len(inside) < most:
                        inside.add(need)
                        queue.append(need)
        return inside

    def _behind(self, zone: set[int]) -> dict[int, frozenset[int]]:
        """Selected class outside of the zone -> classes of the zone that it reaches.

        Only within cycle groups: elsewhere no cycle can close.
        """
        groups = {self.group[cls] for cls in zone} & self.cyclic
        if not groups:
            return {}
        near = {c: n for c, n in self.picked.items() if self.group[c] in groups}
        inner = {n: tuple(c for c in self.graph.children[n] if c in near) for n in near.values()}
        order = children_first(near, inner)
        assert order is not None, "the present selection has no cycle"
        reached: dict[int, frozenset[int]] = {}
        nothing: frozenset[int] = frozenset()
        for cls in order:
            found = nothing
            for child in inner[near[cls]]:
                more = frozenset((child,)) if child in zone else reached[child]
                found = found | more if found else more
            reached[cls] = found
        return reached


def _still_forbidden(
    graph: Graph, inside: Mapping[int, object], outside: set[int]
) -> list[tuple[int, ...]]:
    """The forbidden sets that the nodes inside could complete, without what is selected anyway."""
    found = []
    for group in graph.forbidden:
        if all(node in inside or node in outside for node in group):
            rest = tuple(node for node in group if node in inside)
            if rest:
                found.append(rest)
    return found
