"""Terms and actions in egglog's own representation, for loading many of them at once.

The typed functions of the language cost a good part of a millisecond for each action; a function
with hundreds of statements loads thousands. What is built here has the same names, those that
`egg_fn` gives (relations have none and get their module's prefix), and goes to the engine as it
is. This is the only user of egglog's low-level bindings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from egglog import EGraph, Ruleset, bindings
from egglog import run as run_schedule

from pypto_egg.egraph import language, tile_language

RELATION_PREFIX = language.__name__.replace(".", "_") + "_"

Term = Any
Action = Any
_SPAN = bindings.RustSpan("load", 0, 0)


def node(name: str, *children: Term | int | str) -> Term:
    """The term of a constructor; Python ints and strings are literals."""
    return bindings.Call(_SPAN, name, [_term(child) for child in children])


def vector(terms: Sequence[Term]) -> Term:
    """A vector of terms."""
    return node("vec-of", *terms) if terms else node("vec-empty")


def fact(relation: str, *children: Term | int | str) -> Action:
    """The action that asserts a relation."""
    call = node(RELATION_PREFIX + relation, *children)
    return bindings.ActionCommand(bindings.Expr_(_SPAN, call))


def equal(left: Term, right: Term) -> Action:
    """The action that makes two terms one e-class."""
    return bindings.ActionCommand(bindings.Union(_SPAN, left, right))


def assign(function: str, argument: Term | int | str, value: Term | int | str) -> Action:
    """The action that gives a function of one argument its value."""
    return bindings.ActionCommand(bindings.Set(_SPAN, function, [_term(argument)], _term(value)))


def assign_constant(function: str, value: int | str) -> Action:
    """The action that gives a function without arguments its value."""
    return bindings.ActionCommand(bindings.Set(_SPAN, function, [], _term(value)))


def assign_pair(function: str, first: str, second: str, value: int | str) -> Action:
    """The action that gives a function of two arguments its value."""
    arguments = [_term(first), _term(second)]
    return bindings.ActionCommand(bindings.Set(_SPAN, function, arguments, _term(value)))


def mention(term: Term) -> Action:
    """The action that puts a term into the e-graph."""
    return bindings.ActionCommand(bindings.Expr_(_SPAN, term))


def run(egraph: EGraph, actions: Iterable[Action]) -> None:
    """Carry the actions out."""
    egraph._egraph.run_program(*actions)


class Step:
    """One round in which every rule of a ruleset may fire, as a command made once.

    The high-level `run` hashes every declaration each time, which costs more than the round.
    """

    def __init__(self, egraph: EGraph, ruleset: Ruleset) -> None:
        egraph.run(ruleset)
        self._command = egraph._state.run_schedule_to_egg(run_schedule(ruleset).schedule)

    def __call__(self, egraph: EGraph) -> tuple[bool, dict[str, int]]:
        """Whether anything changed, and how often each rule matched."""
        (output,) = egraph._egraph.run_program(self._command)
        assert isinstance(output, bindings.RunScheduleOutput)
        report = output.report
        return report.updated, report.num_matches_per_rule


def declare(egraph: EGraph) -> None:
    """Make every function of the language known to the engine, whether a rule uses it or not."""
    for module in (language, tile_language):
        for _, function in sorted(vars(module).items()):
            if type(function).__name__ == "RuntimeFunction":
                egraph._callable_to_egg(function)
    for function in (language.Index, language.Index.sym, language.Scalar, language.Gm,
                     language.Gm.transposed, tile_language.Form, tile_language.Stmt):  # fmt: skip
        egraph._callable_to_egg(function)


def _term(value: Term | int | str) -> Term:
    if isinstance(value, int):
        return bindings.Lit(_SPAN, bindings.Int(value))
    if isinstance(value, str):
        return bindings.Lit(_SPAN, bindings.String(value))
    return value
