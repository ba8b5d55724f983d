"""Exact extraction by a sweep over the classes, users first: dynamic programming on the frontier.

A state is the set of classes that are needed and not yet decided; of the partial selections with
the same state only the cheapest matters. The number of states depends on how many classes are open
at once, not on how many there are: a chain of layers takes time linear in its length.

Classes that can form a cycle are decided in every order in which a class comes before its
children, so that no cycle can close. A class that a node decided later may require is tried both
selected and not.
"""

from __future__ import annotations

from typing import NamedTuple

from pypto_egg.extract.deadline import Deadline, passed
from pypto_egg.extract.decompose import Answer
from pypto_egg.extract.graph import Graph
from pypto_egg.extract.landmarks import Landmarks
from pypto_egg.extract.structure import MustSets, class_edges, users_first_order
from pypto_egg.extract.tree import cheapest_trees

SWEEP_STEPS = 30_000
"""Extensions of partial selections before the sweep gives up: about 0.2 s of work."""

BEAM_STEPS = 2_000_000
"""The same for a beam, which looks at the classes needed too: about a second."""

SWEEP_GROUP = 12
"""The orders of a cycle group of more classes than this are too many for a sweep."""


BEAM_LABELS = 12
"""Partial selections that a beam keeps for one state: between the cheapest and the lightest."""


class _State(NamedTuple):
    """What the rest of the sweep has to know of a partial selection, as bit masks.

    `needed`: classes to select, not decided yet. `done`: decided classes of the current cycle
    group, which nothing may need any more. `kept`: selected classes that later nodes may require.
    `picked`: selected nodes of forbidden sets.
    """

    needed: int
    done: int
    kept: int
    picked: int


class _Label(NamedTuple):
    """A partial selection: its cost and weights, its last node and what came before.

    `met` is the mask of the landmarks that it has a node of, `least` what it costs when completed.
    """

    cost: int
    weights: tuple[int, ...]
    node: int
    before: _Label | None
    met: int
    least: int


class _Move(NamedTuple):
    """A node as the sweep sees it, as bit masks: `after` and `early` are what it requires."""

    node: int
    cost: int
    weights: tuple[int, ...]
    children: int
    after: int
    early: int
    picked: int
    met: int


class GaveUp(Exception):
    """The sweep met more states than it may; another method has to solve the problem."""


def solve_by_sweep(
    graph: Graph,
    upper: int | None,
    landmarks: Landmarks,
    deadline: Deadline,
    steps: int = SWEEP_STEPS,
) -> Answer:
    """The cheapest selection of `graph` that costs at most `upper`; impossible if there is none.

    Raises:
        GaveUp: a cycle group is larger than SWEEP_GROUP, there is no good order of the groups, the
            steps are used up, or the deadline has passed.
    """
    return _Sweep(graph, upper, landmarks, None, deadline, steps).run()


def solve_by_beam(graph: Graph, width: int, deadline: Deadline = None) -> Answer:
    """A cheap selection: the sweep with only the `width` most promising states kept at each step.

    It is the cheapest, and its bound says so, when no state had to be left out.

    Raises:
        GaveUp: as `solve_by_sweep`, after BEAM_STEPS.
    """
    return _Sweep(graph, None, None, width, deadline, BEAM_STEPS).run()


class _Sweep:
    def __init__(
        self,
        graph: Graph,
        upper: int | None,
        landmarks: Landmarks | None,
        width: int | None,
        deadline: Deadline,
        steps: int,
    ) -> None:
        self.graph = graph
        self.upper = upper
        self.landmarks = landmarks or Landmarks((), (), graph.cost, 0)
        self.width = width
        self.deadline = deadline
        self.steps = steps
        self.complete = True
        groups = users_first_order(graph)
        if groups is None or max(map(len, groups), default=0) > SWEEP_GROUP:
            raise GaveUp
        self.position = {cls: i for i, cls in enumerate(c for group in groups for c in group)}
        self.classes = list(self.position)
        self.group_of = [number for number, group in enumerate(groups) for _ in group]
        self.group_mask = [self._mask(group) for group in groups]
        self.limits = tuple(graph.limits)
        members = sorted({node for group in graph.forbidden for node in group})
        self.picked_bit = {node: 1 << i for i, node in enumerate(members)}
        self.forbidden = [sum(self.picked_bit[n] for n in group) for group in graph.forbidden]
        self.early, self.kept_after, self.picked_after = self._lifetimes(len(groups))
        self.met: dict[int, int] = {}
        for number, nodes in enumerate(self.landmarks.sets):
            for node in nodes:
                self.met[node] = self.met.get(node, 0) | 1 << number
        self.moves = [self._moves(cls) for cls in self.classes]
        self.floors = self._floors()
        self.floor_of: dict[int, int] = {}
        self.guess = self._guesses()

    def run(self) -> Answer:
        start = _State(self._mask(self.graph.roots), 0, 0, 0)
        buckets: dict[int, dict[_State, list[_Label]]] = {}
        final: list[_Label] = []
        zero = _Label(0, (0,) * len(self.limits), -1, None, 0, self.landmarks.bound)
        first = self._next_group(start.needed, -1)
        if first is None:
            return Answer({}, 0, 0)
        buckets[first] = {start: [zero]}
        for number in range(len(self.group_mask)):
            states = buckets.pop(number, None)
            if states is None:
                continue
            if passed(self.deadline):
                raise GaveUp
            for state, labels in self._decide_group(number, states).items():
                later = self._next_group(state.needed, number)
                if later is None:
                    final += labels
                    continue
                bucket = buckets.setdefault(later, {})
                for label in labels:
                    _insert(bucket, state, label)
        if not final:
            return Answer({}, None, None if self.complete else 0)
        return self._answer(min(final, key=lambda label: label.cost))

    def _decide_group(
        self, number: int, states: dict[_State, list[_Label]]
    ) -> dict[_State, list[_Label]]:
        """All ways to decide the classes of one cycle group, as states without it."""
        mask = self.group_mask[number]
        left: dict[_State, list[_Label]] = {}
        while states:
            states = self._most_promising(states)
            following: dict[_State, list[_Label]] = {}
            for state, labels in states.items():
                if not state.needed & mask:
                    kept = state.kept & self.kept_after[number]
                    picked = state.picked & self.picked_after[number]
                    for label in labels:
                        _insert(left, _State(state.needed, 0, kept, picked), label)
                open_classes = (state.needed | self.early & ~state.done) & mask
                while open_classes:
                    bit = open_classes & -open_classes
                    open_classes ^= bit
                    self._decide(state, labels, bit, mask, following)
            states = following
        return left

    def _decide(
        self,
        state: _State,
        labels: list[_Label],
        bit: int,
        mask: int,
        following: dict[_State, list[_Label]],
    ) -> None:
        """Extends a state by every node of one class."""
        needed, done, kept, picked = state
        for move in self.moves[bit.bit_length() - 1]:
            self._spend(len(labels))
            if move.children & (done | bit):
                continue
            missing = move.early & ~(kept | bit)
            if missing & ~mask or missing & done:
                continue
            now_picked = picked | move.picked
            if move.picked and any(now_picked & bits == bits for bits in self.forbidden):
                continue
            now_needed = (needed & ~bit) | move.children | move.after | missing
            floor = self._floor(now_needed)
            after = _State(now_needed, done | bit, kept | bit & self.early, now_picked)
            for label in labels:
                cost = label.cost + move.cost
                least = label.least + self.landmarks.rest[move.node]
                twice = label.met & move.met
                while twice:
                    low = twice & -twice
                    twice ^= low
                    least += self.landmarks.shares[low.bit_length() - 1]
                if self.upper is not None and max(cost + floor, least) > self.upper:
                    continue
                weights = label.weights
                if weights:
                    weights = tuple(map(int.__add__, weights, move.weights))
                    if any(map(int.__gt__, weights, self.limits)):
                        continue
                met = label.met | move.met
                _insert(following, after, _Label(cost, weights, move.node, label, met, least))

    def _most_promising(self, states: dict[_State, list[_Label]]) -> dict[_State, list[_Label]]:
        """At most `width` states: those with the least cost so far and guessed to come."""
        if self.width is None:
            return states
        for state, labels in states.items():
            if len(labels) > BEAM_LABELS:
                self.complete = False
                states[state] = _spread(labels, BEAM_LABELS)
        if len(states) <= self.width:
            return states
        self.complete = False

        def promise(state: _State) -> int:
            total = min(label.cost for label in states[state])
            rest = state.needed
            self._spend(rest.bit_count())
            while rest:
                bit = rest & -rest
                rest ^= bit
                total += self.guess[bit.bit_length() - 1]
            return total

        best = sorted(states, key=lambda state: (promise(state), state))[: self.width]
        return {state: states[state] for state in best}

    def _spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise GaveUp

    def _guesses(self) -> list[int]:
        """For each position, the cost of its cheapest tree with each child shared by its users."""
        graph = self.graph
        if self.width is None:
            return []
        users: dict[int, int] = {}
        for targets in class_edges(graph, requires=True).values():
            for target in targets:
                users[target] = users.get(target, 0) + 1
        guess = cheapest_trees(graph, users).cost
        return [guess[cls] for cls in self.classes]

    def _next_group(self, needed: int, number: int) -> int | None:
        """The next group in which a state has something to decide."""
        ahead = needed
        if self.early:
            end = self.group_mask[number].bit_length() if number >= 0 else 0
            ahead |= self.early >> end << end
        if not ahead:
            return None
        return self.group_of[(ahead & -ahead).bit_length() - 1]

    def _floor(self, needed: int) -> int:
        """What the needed classes cost at least: the cheapest node of all that they imply."""
        known = self.floor_of.get(needed)
        if known is not None:
            return known
        implied = 0
        rest = needed
        while rest:
            bit = rest & -rest
            rest ^= bit
            implied |= self.floors[bit.bit_length() - 1][0]
        if self.width is not None:
            self._spend(implied.bit_count())
        total = 0
        while implied:
            bit = implied & -implied
            implied ^= bit
            total += self.floors[bit.bit_length() - 1][1]
        self.floor_of[needed] = total
        return total

    def _floors(self) -> list[tuple[int, int]]:
        """For each position: the classes that it implies, and the cost of its cheapest node.

        Through children only: those are decided later, so nothing is counted twice.
        """
        must = MustSets(self.graph)
        floors = []
        for cls in self.classes:
            implied = self._mask(must.members(must.by_children[cls]))
            floors.append((implied, min(self.graph.cost[n] for n in self.graph.nodes[cls])))
        return floors

    def _lifetimes(self, count: int) -> tuple[int, list[int], list[int]]:
        """Classes that a node may require after they are decided, and what to remember, when.

        The lists hold, for each group, the masks of `kept` and `picked` that matter after it.
        """
        early = 0
        kept_until = [0] * len(self.classes)
        picked_until: dict[int, int] = {}
        for cls in self.classes:
            own = self.group_of[self.position[cls]]
            for node in self.graph.nodes[cls]:
                for target in self.graph.requires[node]:
                    at = self.position[target]
                    if self.group_of[at] <= own:
                        early |= 1 << at
                        kept_until[at] = max(kept_until[at], own)
            for group in self.graph.forbidden:
                if not set(group).isdisjoint(self.graph.nodes[cls]):
                    for node in group:
                        picked_until[node] = own
        kept_after = [0] * count
        picked_after = [0] * count
        for at, until in enumerate(kept_until):
            for number in range(self.group_of[at], until):
                kept_after[number] |= 1 << at
        for node, until in picked_until.items():
            for number in range(until):
                picked_after[number] |= self.picked_bit[node]
        return early, kept_after, picked_after

    def _moves(self, cls: int) -> list[_Move]:
        own = self.group_of[self.position[cls]]
        moves = []
        for node in self.graph.nodes[cls]:
            required = self.graph.requires[node]
            early = [c for c in required if self.group_of[self.position[c]] <= own]
            moves.append(
                _Move(
                    node=node,
                    cost=self.graph.cost[node],
                    weights=tuple(row.get(node, 0) for row in self.graph.weights),
                    children=self._mask(self.graph.children[node]),
                    after=self._mask([c for c in required if c not in early]),
                    early=self._mask(early),
                    picked=self.picked_bit.get(node, 0),
                    met=self.met.get(node, 0),
                )
            )
        return moves

    def _mask(self, classes: tuple[int, ...] | list[int]) -> int:
        mask = 0
        for cls in classes:
            mask |= 1 << self.position[cls]
        return mask

    def _answer(self, label: _Label) -> Answer:
        owner = self.graph.owner()
        choice = {}
        last: _Label | None = label
        while last is not None and last.node >= 0:
            choice[owner[last.node]] = last.node
            last = last.before
        return Answer(choice, label.cost, label.cost if self.complete else 0)


def _spread(labels: list[_Label], count: int) -> list[_Label]:
    """`count` of the labels, evenly from the cheapest to the dearest, which weighs the least."""
    ordered = sorted(labels, key=lambda label: (label.cost, label.weights))
    last = len(ordered) - 1
    return [ordered[i * last // (count - 1)] for i in range(count)]


def _insert(states: dict[_State, list[_Label]], state: _State, label: _Label) -> None:
    """Adds a partial selection unless another with the same state is as good in all numbers."""
    labels = states.get(state)
    if labels is None:
        states[state] = [label]
        return
    if not label.weights:
        if label.cost < labels[0].cost:
            labels[0] = label
        return
    for other in labels:
        if other.cost <= label.cost and all(map(int.__le__, other.weights, label.weights)):
            return
    labels[:] = [
        other
        for other in labels
        if other.cost < label.cost or not all(map(int.__le__, label.weights, other.weights))
    ]
    labels.append(label)
