"""The yardstick of the field's benchmark suite: greedy DAG extraction by sets of costs.

Written from its description: every class holds the set of classes below its best node, with what
each of them costs; a class whose set becomes cheaper has its users looked at again.
"""

from __future__ import annotations

from collections import deque

from pypto_egg.extract import Problem


def greedy_dag_cost(problem: Problem) -> float:
    """What greedy DAG extraction finds; constraints and required classes are not seen."""
    children = [sorted(set(row)) for row in problem.node_children]
    users: list[list[int]] = [[] for _ in range(problem.class_count)]
    for node, row in enumerate(children):
        for child in row:
            users[child].append(node)
    below: dict[int, dict[int, float]] = {}
    chosen: dict[int, int] = {}
    queue = deque(node for node, row in enumerate(children) if not row)
    queued = set(queue)
    while queue:
        node = queue.popleft()
        queued.discard(node)
        cls = problem.node_class[node]
        if any(child not in below for child in children[node]):
            continue
        union: dict[int, float] = {}
        for child in sorted(children[node], key=lambda c: -len(below[c])):
            union = {**union, **below[child]}
        if cls in union:
            continue
        union[cls] = float(problem.node_cost[node])
        if cls not in below or sum(union.values()) < sum(below[cls].values()):
            below[cls], chosen[cls] = union, node
            fresh = [user for user in users[cls] if user not in queued]
            queue.extend(fresh)
            queued.update(fresh)
    return _cost(problem, chosen)


def _cost(problem: Problem, chosen: dict[int, int]) -> float:
    seen: dict[int, int] = {}
    stack = list(problem.roots)
    while stack:
        cls = stack.pop()
        if cls not in seen:
            seen[cls] = chosen[cls]
            stack.extend(problem.node_children[chosen[cls]])
    return sum(float(problem.node_cost[node]) for node in seen.values())
