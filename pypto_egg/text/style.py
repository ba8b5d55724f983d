"""How a text is spelled: prefix, names, mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pypto_egg.ir.expr import Var


@dataclass(frozen=True, slots=True)
class Style:
    """How to spell things: the language prefix, names of variables, where the text stands.

    Args:
        names: printed name of each variable; others print their own name.
        typed: constants print as pl.const(...), so that reading does not fold them.
        in_program: functions are called as self.f.
        in_split: inside of pl.split_aiv, whose mode its shards inherit.
    """

    prefix: str = "pl"
    concise: bool = False
    names: Mapping[Var, str] = field(default_factory=dict)
    typed: bool = False
    in_program: bool = True
    in_split: bool = False

    def name(self, var: Var) -> str:
        return self.names.get(var, var.name)

    def with_typed(self) -> Style:
        return self if self.typed else replace(self, typed=True)
