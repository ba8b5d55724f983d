"""Local search: re-chooses one class at a time while that makes a selection better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pypto_egg.extract.deadline import Deadline, passed
from pypto_egg.extract.graph import Graph, selected_nodes
from pypto_egg.extract.structure import cycle_groups
from pypto_egg.extract.tree import cheapest_trees


def improve(
    graph: Graph, start: Mapping[int, int], visits: int, deadline: Deadline = None
) -> dict[int, int]:
    """A selection (class -> node) at least as good as `start`.

    Selections are ordered by what they exceed the constraints by, then by cost. A move gives one
    class another node; classes that this newly needs take the node of their cheapest tree, with
    what is selected already for nothing, and classes no longer needed are given up.

    Args:
        visits: work allowed, in classes visited (about a microsecond each). A count, so that the
            answer does not depend on the speed of the machine.
    """
    search = _LocalSearch(graph, start, visits, deadline)
    search.run()
    return search.picked


class _LocalSearch:
    def __init__(
        self, graph: Graph, start: Mapping[int, int], visits: int, deadline: Deadline
    ) -> None:
        self.graph = graph
        self.deadline = deadline
        self.picked = dict(start)
        self.visits = visits
        self.needs = {
            node: tuple(sorted({*children, *graph.requires[node]}))
            for node, children in graph.children.items()
        }
        self.carried = any(graph.requires.values())
        self.limited = bool(graph.weights or graph.forbidden)
        self.group = cycle_groups(graph)
        self.users = self._count_users()
        self.rest: Mapping[int, int] = {}

    def run(self) -> None:
        """Descends; then forces each single move in turn and keeps it if descending from it pays.

        Ends when no forced move pays or the visits are used up.
        """
        self._descend(None)
        improved = True
        while improved and self._may_go_on():
            improved = False
            for cls in sorted(self.picked):
                for node in self.graph.nodes[cls]:
                    if self._may_go_on() and self.picked.get(cls, node) != node:
                        improved |= self._kick(cls, node)

    def _may_go_on(self) -> bool:
        return self.visits > 0 and not passed(self.deadline)

    def _kick(self, cls: int, node: int) -> bool:
        """Whether giving `cls` that node and then descending made the selection better."""
        picked, users, score = self.picked, self.users, self._score()
        added, removed = self._exchange(cls, node)
        if self._closes_cycle(cls, added):
            return False
        self._take(added, removed)
        self._descend(cls)
        if self._score() < score:
            return True
        self.picked, self.users = picked, users
        return False

    def _descend(self, held: int | None) -> None:
        """Passes over the selected classes, without `held`, until a pass finds nothing."""
        improved = True
        while improved and self._may_go_on():
            improved = False
            self.rest = self._marginal_choice()
            for cls in list(self.picked):
                if cls != held and cls in self.picked and self._may_go_on():
                    improved |= self._improve_class(cls)

    def _improve_class(self, cls: int) -> bool:
        current = self._excess(self.picked)
        best = (current, 0)
        move: tuple[dict[int, int], set[int]] | None = None
        for node in self.graph.nodes[cls]:
            if node == self.picked[cls]:
                continue
            added, removed = self._exchange(cls, node)
            self.visits -= 1 + len(added) + len(removed)
            cost = self.graph.cost
            change = sum(cost[n] for n in added.values()) - cost[self.picked[cls]]
            change -= sum(cost[self.picked[gone]] for gone in removed)
            if not self.limited and change >= best[1]:
                continue
            if self._closes_cycle(cls, added):
                continue
            score = (self._excess(self._after(added, removed)), change)
            if score < best:
                best, move = score, (added, removed)
        if move is None:
            return False
        self._take(*move)
        return True

    def _take(self, added: dict[int, int], removed: set[int]) -> None:
        self.picked = self._after(added, removed)
        self.users = self._count_users()

    def _score(self) -> tuple[tuple[int, int], int]:
        cost = sum(self.graph.cost[node] for node in self.picked.values())
        return self._excess(self.picked), cost

    def _exchange(self, cls: int, node: int) -> tuple[dict[int, int], set[int]]:
        """What is selected anew, `cls` included, and what is given up when `cls` takes `node`."""
        if self.carried:
            return self._exchange_slowly(cls, node)
        added = {cls: node}
        change: dict[int, int] = {}
        stack = [node]
        while stack:
            for need in self.needs[stack.pop()]:
                change[need] = change.get(need, 0) + 1
                if need not in self.picked and need not in added:
                    added[need] = self.rest[need]
                    stack.append(added[need])
        removed = set()
        stack = [self.picked[cls]]
        while stack:
            for need in self.needs[stack.pop()]:
                change[need] = change.get(need, 0) - 1
                if need in self.picked and self.users[need] + change[need] == 0:
                    removed.add(need)
                    stack.append(self.picked[need])
        return added, removed

    def _exchange_slowly(self, cls: int, node: int) -> tuple[dict[int, int], set[int]]:
        """As `_exchange`, where loop carries may need each other: users cannot just be counted."""
        graph = self.graph
        choice = {**self.rest, **self.picked, cls: node}
        after = selected_nodes(choice, graph.children, graph.requires, graph.roots)
        self.visits -= len(after)
        added = {c: n for c, n in after.items() if c not in self.picked}
        added[cls] = node
        return added, set(self.picked) - set(after)

    def _closes_cycle(self, cls: int, added: Mapping[int, int]) -> bool:
        """Whether `cls` reaches itself; only classes of its own cycle group can lead back."""
        own = self.group[cls]
        seen: set[int] = set()
        stack = [cls]
        while stack:
            current = stack.pop()
            node = added[current] if current in added else self.picked[current]
            for child in self.graph.children[node]:
                if child == cls:
                    return True
                if self.group[child] == own and child not in seen:
                    seen.add(child)
                    stack.append(child)
        return False

    def _after(self, added: Mapping[int, int], removed: set[int]) -> dict[int, int]:
        kept = {c: n for c, n in self.picked.items() if c not in removed}
        return {**kept, **added}

    def _excess(self, picked: Mapping[int, int]) -> tuple[int, int]:
        if not self.limited:
            return (0, 0)
        nodes = set(picked.values())
        broken = sum(nodes.issuperset(group) for group in self.graph.forbidden)
        return broken, self.graph.excess(nodes)

    def _count_users(self) -> dict[int, int]:
        users = dict.fromkeys(self.picked, 0)
        for root in self.graph.roots:
            users[root] += 1
        for node in self.picked.values():
            for need in self.needs[node]:
                users[need] += 1
        return users

    def _marginal_choice(self) -> Mapping[int, int]:
        """For every class the top of its cheapest tree when what is selected costs nothing."""
        self.visits -= len(self.graph.cost)
        paid = set(self.picked.values())
        cost = {node: 0 if node in paid else c for node, c in self.graph.cost.items()}
        return cheapest_trees(replace(self.graph, cost=cost)).choice
