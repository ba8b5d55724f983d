"""Names in force while a function body is read."""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto_egg.ir.expr import Var
from pypto_egg.source import Span


@dataclass(slots=True)
class Scope:
    """The variables of one function, block by block.

    A block either leaks its names into the enclosing one when it ends (plain loops, branches and
    `with` regions, as PyPTO does before SSA) or forgets them (loops and branches with yields).
    Iteration arguments are never assigned to: assigning their name makes a new variable.
    """

    blocks: list[dict[str, Var]] = field(default_factory=lambda: [{}])
    iter_args: set[Var] = field(default_factory=set)
    gone: dict[str, Span | None] = field(default_factory=dict)

    def lookup(self, name: str) -> Var | None:
        for block in reversed(self.blocks):
            if name in block:
                return block[name]
        return None

    def define(self, name: str, var: Var) -> None:
        self.blocks[-1][name] = var

    def enter(self) -> None:
        self.blocks.append({})

    def leave(self, *, leak: bool) -> None:
        block = self.blocks.pop()
        if leak:
            self.blocks[-1].update(block)
            return
        for name, var in block.items():
            self.gone[name] = var.span

    def names(self) -> list[str]:
        """All names that can be used now, outermost first."""
        return list(dict.fromkeys(name for block in self.blocks for name in block))
