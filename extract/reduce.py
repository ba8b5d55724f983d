"""Reductions that keep the optimum: what is left is only where there is a real choice.

`reduce_graph` works in place on a `Graph` until nothing changes any more:

- nodes that occur only in cycles and classes that the roots do not reach go;
- a node goes when another of its class costs no more and needs no more (`drop_dominated`);
- a class that every selection has becomes a root, and references to it go (`fix_forced`);
- a root with a single node is fixed: its cost becomes part of `base`;
- a class with a single node is merged into its users when that charges it once (`merge_single`);
- a node goes when every selection that has it costs more than a known one (`drop_expensive`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pypto_egg.extract.deadline import Deadline, passed
from pypto_egg.extract.graph import Graph, drop_unusable, selected_nodes
from pypto_egg.extract.structure import MustSets, cycle_groups
from pypto_egg.extract.tree import Trees, cheapest_trees

ROUNDS = 6
"""Rounds of reductions; what a longer chain of them would find is left to the decomposition."""


@dataclass
class Fixed:
    """What reductions have decided.

    Args:
        choice: class -> node, for classes no longer in the graph, if they are selected at all.
        base: cost of the classes that are selected for sure.
    """

    choice: dict[int, int] = field(default_factory=dict)
    base: int = 0


def reduce_graph(
    graph: Graph, *, upper: int | None = None, loads: int = 0, deadline: Deadline = None
) -> Fixed | None:
    """What was decided; `graph` is left with the rest. None: no selection meets the constraints.

    Args:
        upper: cost of a known selection of `graph`; cheaper and equally cheap ones are kept.
        loads: so many of the first weights are no limits but further costs. Then some selection is
            kept that is at least as good in all of them and in the cost as any that is dropped.
        deadline: after which nothing more is reduced.
    """
    fixed = Fixed()
    for _ in range(ROUNDS):
        size = _size(graph)
        if not _possible(graph):
            return None
        merge_single(graph, fixed)  # what follows takes time quadratic in the classes left
        if not _possible(graph):
            return None
        if passed(deadline):
            break
        trees = cheapest_trees(graph)
        known = None if upper is None else upper - fixed.base
        if not loads:
            known = _known_cost(graph, trees, known)
        must = MustSets(graph)
        drop_dominated(graph, must, trees)
        drop_too_heavy(graph, loads)
        drop_expensive(graph, must, known)
        if not _possible(graph):
            return None
        fix_forced(graph, fixed)
        merge_single(graph, fixed)
        if not _possible(graph):
            return None
        if _size(graph) == size:
            break
    return fixed


def _size(graph: Graph) -> tuple[int, int, int, int]:
    references = sum(map(len, graph.children.values())) + sum(map(len, graph.requires.values()))
    return len(graph.nodes), len(graph.cost), references, len(graph.roots)


def _possible(graph: Graph) -> bool:
    """Drops unusable nodes; whether a selection may be left."""
    if any(limit < 0 for limit in graph.limits) or () in graph.forbidden:
        return False
    drop_unusable(graph)
    return all(root in graph.nodes for root in graph.roots)


def _known_cost(graph: Graph, trees: Trees, known: int | None) -> int | None:
    """The smaller of `known` and the cost of selecting every class's tree, if that is allowed."""
    picked = selected_nodes(trees.choice, graph.children, graph.requires, graph.roots)
    nodes = set(picked.values())
    if not graph.allows(nodes):
        return known
    cost = sum(graph.cost[node] for node in nodes)
    return cost if known is None else min(known, cost)


def drop_dominated(graph: Graph, must: MustSets, trees: Trees) -> None:
    """Drops every node that another of its class can replace in any selection at no extra cost.

    Node a replaces b when it costs no more, its weights are no larger, it is in no further
    forbidden set, what it requires is selected with b anyway, and so are its children (below b, so
    that no cycle arises); a child that is not may be paid for by the difference of the costs, if
    it cannot reach the class and its tree touches no constraint.
    """
    group = cycle_groups(graph)
    free = _free_trees(graph, trees)
    memberships: dict[int, set[int]] = {}
    for number, members in enumerate(graph.forbidden):
        for node in members:
            memberships.setdefault(node, set()).add(number)

    def needs(node: int) -> tuple[int, int]:
        return must.mask(graph.children[node]), must.mask(graph.requires[node])

    def replaces(a: int, b: int, cls: int) -> bool:
        if any(row.get(a, 0) > row.get(b, 0) for row in graph.weights):
            return False
        if not memberships.get(a, set()) <= memberships.get(b, set()):
            return False
        if not must.exact:
            below, required = set(graph.children[b]), set(graph.requires[b])
            return below.issuperset(graph.children[a]) and required.issuperset(graph.requires[a])
        children, requires = needs(a)
        if requires & ~must.node_all(b):
            return False
        spare = graph.cost[b] - graph.cost[a]
        for child in must.members(children & ~must.node_children(b)):
            if group[child] == group[cls] or child not in free:
                return False
            spare -= trees.cost[child]
            if spare < 0:
                return False
        return True

    keep: dict[int, list[int]] = {}
    for cls, nodes in graph.nodes.items():
        kept: list[int] = []
        for node in sorted(nodes, key=lambda n: (graph.cost[n], len(graph.children[n]), n)):
            if not any(replaces(other, node, cls) for other in kept):
                kept.append(node)
        keep[cls] = sorted(kept)
    graph.keep_nodes(keep)


def _free_trees(graph: Graph, trees: Trees) -> set[int]:
    """Classes whose tree holds no node with a weight, a forbidden set or a required class."""
    bound = {n for row in graph.weights for n, w in row.items() if w}
    bound.update(n for group in graph.forbidden for n in group)
    free: set[int] = set()
    for cls, node in trees.choice.items():
        if node in bound or graph.requires[node]:
            continue
        if all(child in free for child in graph.children[node]):
            free.add(cls)
    return free


def drop_too_heavy(graph: Graph, loads: int = 0) -> None:
    """Drops nodes that alone exceed a limit, and constraints that no selection can exceed.

    The first `loads` of the weights have no limit and stay.
    """
    rows = list(zip(graph.weights, graph.limits, graph.limit_names, strict=True))
    heavy = {n for row, limit, _ in rows[loads:] for n, w in row.items() if w > limit}
    graph.keep_nodes({c: [n for n in ns if n not in heavy] for c, ns in graph.nodes.items()})
    rows = list(zip(graph.weights, graph.limits, graph.limit_names, strict=True))
    binding = rows[:loads] + [e for e in rows[loads:] if _heaviest(graph, e[0]) > e[1]]
    graph.weights = [row for row, _, _ in binding]
    graph.limits = [limit for _, limit, _ in binding]
    graph.limit_names = [name for _, _, name in binding]


def _heaviest(graph: Graph, row: Mapping[int, int]) -> int:
    return sum(max(row.get(node, 0) for node in nodes) for nodes in graph.nodes.values())


def drop_expensive(graph: Graph, must: MustSets, upper: int | None) -> None:
    """Drops nodes whose every selection costs more than `upper`."""
    if upper is None or not must.exact:
        return
    cheapest = {
        cls: min(graph.cost[node] for node in graph.nodes[cls]) if cls in graph.nodes else 0
        for cls in must.classes
    }
    certain = 0
    for root in graph.roots:
        certain |= must.by_all.get(root, 0)
    floor = sum(cheapest[cls] for cls in must.members(certain))
    keep: dict[int, list[int]] = {}
    for cls, nodes in graph.nodes.items():
        own = 0 if certain >> must.position[cls] & 1 else cheapest[cls]
        kept = []
        for node in nodes:
            extra = must.node_all(node) & ~certain & ~(1 << must.position[cls])
            least = floor + own + graph.cost[node] - cheapest[cls]
            if least + sum(cheapest[c] for c in must.members(extra)) <= upper:
                kept.append(node)
        keep[cls] = kept
    graph.keep_nodes(keep)


def fix_forced(graph: Graph, fixed: Fixed) -> None:
    """Makes roots of what every selection has; fixes roots with one node; drops references.

    A reference to a root asks for nothing more; it stays only where it could close a cycle.
    """
    must = MustSets(graph)
    forced = set(graph.roots)
    if must.exact:
        mask = 0
        for root in graph.roots:
            mask |= must.by_all[root]
        forced.update(must.members(mask))
    stack = sorted(forced)
    while stack:
        nodes = graph.nodes[stack.pop()]
        if len(nodes) > 1:
            continue
        needed = {*graph.children[nodes[0]], *graph.requires[nodes[0]]} - forced
        forced |= needed
        stack.extend(sorted(needed))
    group = cycle_groups(graph)
    users: dict[int, set[int]] = {}
    for cls, nodes in graph.nodes.items():
        for node in nodes:
            below = set(graph.children[node])
            kept = [c for c in below if c not in forced or group[c] == group[cls]]
            graph.children[node] = tuple(sorted(kept))
            graph.requires[node] = tuple(sorted(set(graph.requires[node]) - forced - {cls}))
            for child in kept:
                users.setdefault(child, set()).add(node)
    for cls in sorted(forced):
        if len(graph.nodes[cls]) == 1:
            _fix(graph, fixed, cls, users)
    graph.roots = tuple(cls for cls in sorted(forced) if cls in graph.nodes)


def _fix(graph: Graph, fixed: Fixed, cls: int, users: dict[int, set[int]]) -> None:
    """Takes a root with one node out of the graph; users get its children in its place."""
    node = graph.nodes[cls][0]
    fixed.choice[cls] = node
    fixed.base += graph.cost[node]
    for number, row in enumerate(graph.weights):
        graph.limits[number] -= row.get(node, 0)
    graph.forbidden = [tuple(n for n in group if n != node) for group in graph.forbidden]
    below = graph.children[node]
    above = users.get(cls, set()) - {node}
    for user in above:
        graph.children[user] = tuple(sorted({*graph.children[user], *below} - {cls}))
    for child in below:
        users[child] = (users[child] - {node}) | above
    _remove(graph, cls, node)


def merge_single(graph: Graph, fixed: Fixed) -> None:
    """Merges classes with one node into the nodes that use them, where that charges them once.

    That is so when all users are of one class, of which one node is selected, or when the class
    costs and weighs nothing.
    """
    users: dict[int, set[int]] = {}
    user_classes: dict[int, set[int]] = {}
    for cls, nodes in graph.nodes.items():
        for node in nodes:
            for target in (*graph.children[node], *graph.requires[node]):
                users.setdefault(target, set()).add(node)
                user_classes.setdefault(target, set()).add(cls)
    in_forbidden = {n for group in graph.forbidden for n in group}
    group = cycle_groups(graph)
    sizes: dict[int, int] = {}
    for number in group.values():
        sizes[number] = sizes.get(number, 0) + 1
    for cls in list(graph.nodes):
        if len(graph.nodes[cls]) > 1 or cls in graph.roots or cls not in users:
            continue
        node = graph.nodes[cls][0]
        cyclic = sizes[group[cls]] > 1
        nothing = not graph.cost[node] and not any(row.get(node) for row in graph.weights)
        if node in in_forbidden or not (nothing or len(user_classes[cls]) == 1):
            continue
        if cyclic and any(cls in graph.requires[user] for user in users[cls]):
            continue
        if cls in graph.children[node] or cls in graph.requires[node]:
            continue  # earlier merges closed a loop: the next round drops the node or the reference
        for target in (*graph.children[node], *graph.requires[node]):
            users[target] = (users[target] - {node}) | users[cls]
            user_classes[target] = (user_classes[target] - {cls}) | user_classes[cls]
        for user in users[cls]:
            _absorb(graph, user, cls, node)
        fixed.choice[cls] = node
        _remove(graph, cls, node)


def _absorb(graph: Graph, user: int, cls: int, node: int) -> None:
    children, requires = set(graph.children[user]), set(graph.requires[user])
    if cls in children:
        children |= set(graph.children[node])
        requires |= set(graph.requires[node])
    if cls in requires:
        requires |= {*graph.children[node], *graph.requires[node]}
    graph.children[user] = tuple(sorted(children - {cls}))
    graph.requires[user] = tuple(sorted(requires - {cls}))
    graph.cost[user] += graph.cost[node]
    for row in graph.weights:
        if row.get(node):
            row[user] = row.get(user, 0) + row[node]


def _remove(graph: Graph, cls: int, node: int) -> None:
    del graph.nodes[cls], graph.children[node], graph.requires[node], graph.cost[node]
    for row in graph.weights:
        row.pop(node, None)
