"""Structure of the class graph: strongly connected components, must-sets, dominators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pypto_egg.extract.graph import Graph

MUST_SET_CLASSES = 8192
"""Must-sets take memory quadratic in the number of classes; beyond this they are not formed."""


def class_edges(graph: Graph, *, requires: bool) -> dict[int, list[int]]:
    """Class -> the classes that its nodes have as children (and require), ascending."""
    edges: dict[int, list[int]] = {}
    for cls, nodes in graph.nodes.items():
        targets = {child for node in nodes for child in graph.children[node]}
        if requires:
            targets.update(child for node in nodes for child in graph.requires[node])
        edges[cls] = sorted(targets)
    return edges


def components(edges: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Strongly connected components, each after those that it reaches (Tarjan, iterative)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_stack: list[int] = []
    is_open: set[int] = set()
    found: list[list[int]] = []
    for start in edges:
        if start in index:
            continue
        work = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        open_stack.append(start)
        is_open.add(start)
        while work:
            cls, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    open_stack.append(target)
                    is_open.add(target)
                    work.append((target, iter(edges[target])))
                    break
                if target in is_open:
                    low[cls] = min(low[cls], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[cls])
                if low[cls] == index[cls]:
                    found.append(_close(cls, open_stack, is_open))
    return found


def _close(top: int, open_stack: list[int], is_open: set[int]) -> list[int]:
    group = []
    while True:
        cls = open_stack.pop()
        is_open.discard(cls)
        group.append(cls)
        if cls == top:
            return sorted(group)


def cycle_groups(graph: Graph) -> dict[int, int]:
    """Class -> number of its strongly connected component over children.

    Only classes with the same number can form a cycle; the numbers are children first.
    """
    groups = components(class_edges(graph, requires=False))
    return {cls: number for number, group in enumerate(groups) for cls in group}


class MustSets:
    """For every class and node, classes that are selected in every selection that has it.

    Sets are bit masks over `position`. Greatest fixpoint of
    must(c) = {c} + intersection over nodes of the union over children of must(child), as for
    dominators of an and-or graph; `by_children` follows children only, `by_all` also requires.
    """

    def __init__(self, graph: Graph) -> None:
        self.classes = list(graph.nodes)
        self.position = {cls: i for i, cls in enumerate(self.classes)}
        self.exact = len(self.classes) <= MUST_SET_CLASSES
        self._graph = graph
        nothing = {cls: 1 << self.position[cls] if self.exact else 0 for cls in self.classes}
        self.by_children = self._fixpoint({}) if self.exact else nothing
        self.by_all = self.by_children
        if self.exact and any(graph.requires.values()):
            self.by_all = self._fixpoint(self.by_children)

    def node_children(self, node: int) -> int:
        """Classes that are selected below `node` through children."""
        return _union(self.by_children, self._graph.children[node])

    def node_all(self, node: int) -> int:
        """Classes that are selected with `node`, its own class left out."""
        mask = _union(self.by_all, self._graph.children[node])
        return mask | _union(self.by_children, self._graph.requires[node])

    def mask(self, classes: Sequence[int]) -> int:
        """The bit mask of some classes; 0 when must-sets are not formed."""
        if not self.exact:
            return 0
        result = 0
        for cls in classes:
            result |= 1 << self.position[cls]
        return result

    def members(self, mask: int) -> list[int]:
        """The classes of a bit mask, ascending."""
        found = []
        while mask:
            low = mask & -mask
            found.append(self.classes[low.bit_length() - 1])
            mask ^= low
        return found

    def _fixpoint(self, required: Mapping[int, int]) -> dict[int, int]:
        graph = self._graph
        everything = (1 << len(self.classes)) - 1
        must = dict.fromkeys(self.classes, everything)
        for group in components(class_edges(graph, requires=False)):
            changed = True
            while changed:
                changed = False
                for cls in group:
                    mask = everything
                    for node in graph.nodes[cls]:
                        below = _union(must, graph.children[node])
                        if required:
                            below |= _union(required, graph.requires[node])
                        mask &= below
                    mask |= 1 << self.position[cls]
                    changed |= mask != must[cls]
                    must[cls] = mask
                changed &= len(group) > 1
        return must


def _union(masks: Mapping[int, int], classes: Sequence[int]) -> int:
    result = 0
    for cls in classes:
        result |= masks[cls]
    return result


def dominator_tree(
    edges: Mapping[int, Sequence[int]], roots: Sequence[int]
) -> tuple[list[int], dict[int, int | None]]:
    """Classes in reverse post-order, and the immediate dominator of each (None: the entry).

    The entry is a virtual class above all roots.
    """
    import networkx  # takes a fifth of a second, and most problems are solved by reduction

    entry = -1
    graph = networkx.DiGraph((entry, root) for root in roots)
    graph.add_edges_from((cls, target) for cls, targets in edges.items() for target in targets)
    above = networkx.immediate_dominators(graph, entry)
    order = [cls for cls in networkx.dfs_postorder_nodes(graph, entry) if cls != entry][::-1]
    return order, {cls: None if above[cls] == entry else above[cls] for cls in order}


ORDER_WORK = 500_000
"""Comparisons before the search for a good order ends: about 0.5 s."""


def users_first_order(graph: Graph) -> list[list[int]] | None:
    """Cycle groups, users before what they use, chosen to keep few classes open at once.

    None when so many groups could come next, again and again, that ORDER_WORK is used up.
    """
    edges = class_edges(graph, requires=False)
    groups = components(edges)
    number = {cls: i for i, group in enumerate(groups) for cls in group}
    targets = [sorted({t for cls in group for t in edges[cls]} - set(group)) for group in groups]
    waiting = [0] * len(groups)
    for row in targets:
        for other in {number[target] for target in row}:
            waiting[other] += 1
    opened: dict[int, int] = {}
    ready = [i for i in range(len(groups)) if waiting[i] == 0]
    order = []
    work = ORDER_WORK
    while ready:
        work -= len(ready)
        if work < 0:
            return None
        best = min(
            ready,
            key=lambda i: (
                sum(target not in opened for target in targets[i])
                - sum(cls in opened for cls in groups[i]),
                -max(opened.get(cls, 0) for cls in groups[i]),
                i,
            ),
        )
        ready.remove(best)
        order.append(groups[best])
        for target in targets[best]:
            opened.setdefault(target, len(order))
        for other in sorted({number[target] for target in targets[best]}):
            waiting[other] -= 1
            if waiting[other] == 0:
                ready.append(other)
    return order
