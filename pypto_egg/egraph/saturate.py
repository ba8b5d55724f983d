"""Saturation: rules applied until nothing changes or a limit is reached, and why it stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from egglog import EGraph, ruleset
from egglog.bindings import EggSmolError

from pypto_egg.egraph import bulk
from pypto_egg.egraph.machine import machine_facts
from pypto_egg.errors import OptionError
from pypto_egg.target.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on saturation, checked between iterations.

    An iteration that has begun cannot be interrupted, neither by a limit nor by a signal. So
    saturation also stops where one has multiplied the graph in such a way that another such would
    pass the limit of nodes by far. A rule that combines everything with everything in its first
    iteration is past that help.

    Args:
        nodes: e-nodes, facts included.
        iterations: rounds in which every rule may fire on everything new.
        seconds: wall time.
    """

    nodes: int = 500_000
    iterations: int = 5_000
    seconds: float = 60.0


class StopReason(Enum):
    """Why saturation stopped."""

    SATURATED = "saturated"
    NODE_LIMIT = "node limit"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"


@dataclass(frozen=True, slots=True)
class Saturation:
    """What saturation did.

    Args:
        nodes: rows of all tables at the end: e-nodes and facts.
        matches: rule name -> how often it matched.
    """

    stop: StopReason
    iterations: int
    nodes: int
    seconds: float
    matches: dict[str, int] = field(default_factory=dict)


class NamedRule(Protocol):
    """A rule as `pypto_egg.rulesets` states it."""

    @property
    def name(self) -> str: ...
    @property
    def egglog_rule(self) -> Any: ...


class RuleGroup(Protocol):
    """A group of rules as `pypto_egg.rulesets` states it."""

    @property
    def name(self) -> str: ...
    @property
    def rules(self) -> Sequence[NamedRule]: ...


# Counting the e-graph's rows costs as much as a small iteration, so it waits until the matches
# since the last count could have made enough of them. No rule asserts this many rows a match.
_ROWS_PER_MATCH = 32
# A rule that pairs what it made squares the graph: after growth by a factor, growth by its square.
# Where that would end at more than this multiple of the limit, saturation stops beforehand.
_FAR = 16
_KEPT = 8


class _Base:
    """An e-graph that holds the rules and the machine's facts, and is reused for every function."""

    def __init__(self, target: Target, groups: Sequence[RuleGroup]) -> None:
        self.rules = [rule for group in groups for rule in group.rules]
        self.ruleset = ruleset(*(rule.egglog_rule for rule in self.rules), name="lowering")
        self.egraph = EGraph()
        bulk.declare(self.egraph)
        bulk.run(self.egraph, machine_facts(target))
        try:
            self.step = bulk.Step(self.egraph, self.ruleset)
        except EggSmolError as error:
            raise _refused_rule(groups, error) from error


def _refused_rule(groups: Sequence[RuleGroup], error: EggSmolError) -> OptionError:
    """What to say of the first rule that egglog does not take."""
    for group in groups:
        for rule in group.rules:
            egraph = EGraph()
            bulk.declare(egraph)
            try:
                egraph.run(ruleset(rule.egglog_rule, name="one"))
            except EggSmolError as fault:
                reason = str(fault).splitlines()[-1]
                return OptionError(
                    f"rule '{rule.name}' of ruleset '{group.name}' is refused by egglog: {reason}",
                    hint="what the right side uses, the left side must bind",
                )
    return OptionError(f"the rules are refused by egglog: {error}")


_BASES: dict[tuple[Target, tuple[int, ...]], _Base] = {}  # by target and rules
_LOCK = threading.Lock()


@contextmanager
def session(target: Target, groups: Sequence[RuleGroup]) -> Iterator[Session]:
    """An empty e-graph with the machine's facts and these rules, for one function."""
    with _LOCK:
        base = _base(target, groups)
        base.egraph.push()
        try:
            yield Session(base)
        finally:
            base.egraph.pop()


def _base(target: Target, groups: Sequence[RuleGroup]) -> _Base:
    key = (target, tuple(id(rule) for group in groups for rule in group.rules))
    base = _BASES.get(key)
    if base is None:
        while len(_BASES) >= _KEPT:
            _BASES.pop(next(iter(_BASES)))
        base = _BASES[key] = _Base(target, groups)
    return base


class Session:
    """One function's use of a base e-graph."""

    def __init__(self, base: _Base) -> None:
        self._base = base
        self.egraph = base.egraph

    def register(self, actions: Iterable[Any]) -> None:
        """Add terms and facts."""
        bulk.run(self.egraph, actions)

    def saturate(
        self, limits: Limits, clock: Callable[[], float] = time.perf_counter
    ) -> Saturation:
        """Apply the rules until nothing changes or a limit is reached."""
        started = clock()
        matches: dict[str, int] = {}
        stop, iterations = StopReason.ITERATION_LIMIT, 0
        size, unseen = self._size(), 0
        while iterations < limits.iterations:
            changed, matched = self._base.step(self.egraph)
            iterations += 1
            for name, count in matched.items():
                matches[name] = matches.get(name, 0) + count
            if not changed:
                stop = StopReason.SATURATED
                break
            if clock() - started > limits.seconds:
                stop = StopReason.TIME_LIMIT
                break
            unseen += sum(matched.values()) * _ROWS_PER_MATCH
            if unseen <= min(size, limits.nodes - size):
                continue
            before, size, unseen = size, self._size(), 0
            if size > limits.nodes or size * (size / before) ** 2 > _FAR * limits.nodes:
                stop = StopReason.NODE_LIMIT
                break
        return Saturation(stop, iterations, self._size(), clock() - started, matches)

    def _size(self) -> int:
        return sum(size for _, size in self.egraph.all_function_sizes())
