"""Functions and programs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pypto_egg.ir.enums import Direction, FunctionType, Level, Role
from pypto_egg.ir.expr import Var
from pypto_egg.ir.stmt import Block
from pypto_egg.ir.types import Type
from pypto_egg.source import Span


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter and its direction."""

    var: Var
    direction: Direction = Direction.In


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a program.

    Args:
        attrs: what PyPTO prints as `pl.func_attr({...})`, in order.
        level, role: None where the function type implies none.
        external_source: set for functions whose body lives elsewhere.
    """

    name: str
    type: FunctionType
    params: tuple[Param, ...]
    returns: tuple[Type, ...]
    body: Block
    level: Level | None = None
    role: Role | None = None
    attrs: tuple[tuple[str, object], ...] = ()
    auto_scope: bool = True
    external_source: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def attr(self, name: str, default: object = None) -> object:
        """The attribute of that name, or `default`."""
        for key, value in self.attrs:
            if key == name:
                return value
        return default


@dataclass(frozen=True, slots=True)
class Program:
    """A named set of functions, in source order. A bare function has an empty program name."""

    name: str
    functions: tuple[Function, ...]

    def function(self, name: str) -> Function:
        """The function of that name.

        Raises:
            KeyError: there is none.
        """
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)

    def with_functions(self, functions: tuple[Function, ...]) -> Program:
        """The same program with other functions."""
        return replace(self, functions=functions)
