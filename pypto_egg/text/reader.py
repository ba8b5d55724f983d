"""The state shared by everything that reads one text, and the way it reports faults."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

from pypto_egg.errors import ParseError, TypeCheckError
from pypto_egg.ir.dtype import DTYPES, INDEX
from pypto_egg.ir.enums import FunctionType, SplitMode
from pypto_egg.ir.expr import Var
from pypto_egg.ir.program import Param
from pypto_egg.ir.types import ScalarType, Type
from pypto_egg.source import Span
from pypto_egg.text.positions import Positions
from pypto_egg.text.scope import Scope

Literal = int | float | bool

DEVICE_FUNCTIONS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
ORCHESTRATION_FUNCTIONS = (FunctionType.Orchestration, FunctionType.Graph)

# Deeper nesting of expressions or blocks than this is refused: Python itself stops at 100
# indentation levels, so such a program could not be printed and read back.
MAX_DEPTH = 90


@dataclass(frozen=True, slots=True)
class Signature:
    """What a caller needs to know of a function of the text."""

    name: str
    type: FunctionType
    params: tuple[Param, ...]
    returns: tuple[Type, ...]


@dataclass(slots=True)
class ProgramScope:
    """Module-level names: language prefixes, dynamic symbols, constants, function signatures.

    Args:
        language: names bound to `pypto.language`.
        distributed: names bound to `pypto.language.distributed`.
        symbols: dynamic symbols by Python name.
        constants: numbers assigned at module level.
        signatures: functions of the text by name.
        derived_returns: result types of functions without a return annotation, once read.
        in_types: names of the dynamic symbols that some type mentions.
        in_bodies: dynamic symbols used as values, with the first place.
    """

    positions: Positions
    language: set[str] = field(default_factory=lambda: {"pl"})
    distributed: set[str] = field(default_factory=lambda: {"pld"})
    symbols: dict[str, Var] = field(default_factory=dict)
    constants: dict[str, Literal] = field(default_factory=dict)
    signatures: dict[str, Signature] = field(default_factory=dict)
    derived_returns: dict[str, tuple[Type, ...]] = field(default_factory=dict)
    in_types: set[Var] = field(default_factory=set)
    in_bodies: dict[Var, Span] = field(default_factory=dict)
    in_class: bool = False

    def symbol(self, name: str, span: Span | None = None) -> Var:
        """The dynamic symbol of that name, made on first use (PyPTO language reference, 1)."""
        if name not in self.symbols:
            self.symbols[name] = Var(name, ScalarType(INDEX), span)
        return self.symbols[name]


@dataclass(slots=True)
class Reader:
    """What is known at one point of a function while it is read."""

    program: ProgramScope
    function: str = ""
    type: FunctionType = FunctionType.Opaque
    scope: Scope = field(default_factory=Scope)
    strict_ssa: bool = False
    auto_scope: bool = True
    depth: int = 0
    comments: tuple[str, ...] = ()  # of statements that left nothing behind
    loops: list[str] = field(default_factory=list)
    splits: list[SplitMode] = field(default_factory=list)

    @property
    def on_device(self) -> bool:
        return self.type in DEVICE_FUNCTIONS

    def span(self, node: ast.AST) -> Span:
        return self.program.positions.span(node)

    def fault(self, node: ast.AST | Span, message: str, hint: str | None = None) -> ParseError:
        """The ParseError for a node, to be raised by the caller."""
        span = node if isinstance(node, Span) else self.span(node)
        return ParseError(message, span=span, hint=hint)

    def mismatch(
        self, node: ast.AST | Span, message: str, hint: str | None = None
    ) -> TypeCheckError:
        """The TypeCheckError for a node, to be raised by the caller."""
        span = node if isinstance(node, Span) else self.span(node)
        return TypeCheckError(message, span=span, hint=hint)

    def new_name(self, node: ast.AST, name: str) -> str:
        """The name of a new variable, unless it would hide the language or the program."""
        program = self.program
        if name in program.language or name in program.distributed or name == "self":
            raise self.fault(node, f"'{name}' is reserved and cannot name a variable")
        return name

    def deeper(self, node: ast.AST) -> None:
        """Enter one more level of nesting; the caller leaves it again with `shallower`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fault(
                node,
                f"nested more than {MAX_DEPTH} levels deep",
                "name intermediate results, or split the function",
            )

    def shallower(self) -> None:
        self.depth -= 1


def closest(name: str, known: Iterable[str]) -> str | None:
    """A hint that lists the known names most like `name`, or None."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else None


def dtype_hint(name: str) -> str:
    """A hint for a name that is no dtype: the one that is meant, if that can be told, and all."""
    meant = name.upper().replace("FLOAT", "FP").replace("BFP", "BF")
    near = [meant] if meant in DTYPES else difflib.get_close_matches(meant, DTYPES, n=2)
    question = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{question}the dtypes are: {', '.join(DTYPES)}"


def dotted(node: ast.AST) -> tuple[str, ...] | None:
    """The parts of `a.b.c`, or None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return tuple(reversed(parts))


def language_path(reader: Reader, node: ast.AST) -> tuple[str, ...] | None:
    """The parts of a name of the language: `pl.Mem.Vec` gives ("Mem", "Vec").

    Names of the distributed language keep a leading "pld"; other names give None. A variable that
    shadows the prefix hides the language.
    """
    parts = dotted(node)
    if parts is None:
        return None
    head = parts[0]
    if reader.scope.lookup(head) is not None:
        return None
    if head in reader.program.language and len(parts) > 1:
        return parts[1:]
    if head in reader.program.distributed and len(parts) > 1:
        return ("pld", *parts[1:])
    if parts[:2] == ("pypto", "language") and len(parts) > 2:
        return ("pld", *parts[3:]) if parts[2] == "distributed" else parts[2:]
    if len(parts) == 2 and head in ("tensor", "tile", "system", "array"):
        return parts  # spelled without the prefix, as PyPTO's own documents do
    return None


_CONSTRUCTS: dict[type[ast.AST], str] = {
    ast.Lambda: "a lambda",
    ast.IfExp: "a conditional expression",
    ast.NamedExpr: "an assignment expression (:=)",
    ast.JoinedStr: "an f-string",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.Starred: "a starred argument (*)",
    ast.Await: "await",
    ast.Yield: "Python's yield",
    ast.YieldFrom: "yield from",
    ast.Slice: "a slice outside of a subscript",
    ast.AugAssign: "an augmented assignment (+=)",
    ast.Delete: "del",
    ast.Raise: "raise",
    ast.Try: "try",
    ast.Assert: "assert",
    ast.Import: "an import inside a function",
    ast.ImportFrom: "an import inside a function",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.FunctionDef: "a nested function",
    ast.AsyncFunctionDef: "an async function",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
    ast.ClassDef: "a nested class",
    ast.Match: "match",
}


def construct_name(node: ast.AST) -> str:
    """What a user calls a piece of Python syntax."""
    return _CONSTRUCTS.get(type(node), f"Python's {type(node).__name__}")
