"""The operator registry: one declaration an operator, and the calls built from it.

A declaration states the operands (with the memory space each must be in and the effect on it),
the keyword arguments in printed order, the type rule and how the operator behaves towards
memory. Parser, verifier, analysis, rulesets, emission and interpreter all read it; none keeps a
list of operators of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from pypto_egg.errors import InternalError, TypeCheckError
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import (
    AtomicType,
    CachePolicy,
    Mem,
    PadValue,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto_egg.ir.expr import Call, Expr
from pypto_egg.ir.types import Type
from pypto_egg.source import Span


class Effect(Enum):
    """What an operator does to an argument's memory (C-047, C-049)."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    READ_WRITE = "read_write"

    @property
    def reads(self) -> bool:
        """Whether the operand's content is looked at."""
        return self in (Effect.READ, Effect.READ_WRITE)

    @property
    def writes(self) -> bool:
        """Whether the operand's content is changed."""
        return self in (Effect.WRITE, Effect.READ_WRITE)


class Channel(Enum):
    """The path by which an operator writes global memory (C-065)."""

    DMA = "bulk store (MTE3)"
    SCALAR = "scalar store (D-cache)"


class Required:
    """Marks a keyword argument without a default."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = Required()
Kwargs = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Operand:
    """One positional operand.

    Args:
        kind: "tensor", "tile", "scalar", "tuple", or "any" where several are accepted.
        optional: may be missing at the end, or be an empty tuple in the middle.
        spaces: memory spaces that a tile operand must be in when the op executes; empty = any.
        effect: on the operand's memory; a function of the kwargs where they decide (C-050).
        keyword: the name under which PyPTO prints this operand as a keyword, if it does.
    """

    name: str
    kind: str
    optional: bool = False
    spaces: frozenset[Mem] = frozenset()
    effect: Effect | Callable[[Kwargs], Effect] = Effect.READ
    keyword: str | None = None

    def effect_for(self, kwargs: Kwargs) -> Effect:
        """What a call with these keyword arguments does to the operand."""
        return self.effect if isinstance(self.effect, Effect) else self.effect(kwargs)


@dataclass(frozen=True, slots=True)
class Kwarg:
    """One keyword argument.

    Args:
        kind: "bool", "int", "float", "str", "dtype", "mem", "tensor_layout", "tile_layout",
            "pad", "atomic", "cache", "split" or "any".
        default: its value when not given, or REQUIRED. A call stores the kwargs that PyPTO's own
            DSL would store: those given, and the defaulted ones with `always=True`.
    """

    name: str
    kind: str
    default: object = REQUIRED
    always: bool = False


TypeRule = Callable[[tuple[Expr, ...], Kwargs], Type]


@dataclass(frozen=True, slots=True)
class OpDecl:
    """Everything that pypto-egg knows of one operator.

    Args:
        name: IR name, "tensor.add" or "tile.load".
        infer: the type rule; raises TypeCheckError.
        family: the group that rulesets and interpreter treat alike: "unary", "binary",
            "binary_scalar", "row_expand", "col_expand", "row_reduce", "col_reduce", "matmul",
            "view", "memory", "create", ... ; see the ops modules.
        output_space: where a tile result lives: a space, "inherit" (first shaped operand),
            "kwarg" (the `target_memory` keyword) or None (not a tile).
        inherits_memory: the result aliases operand 0's storage and costs nothing (C-020).
        reuses_input: index of the operand whose buffer the result is, or None.
        channel: how it writes global memory, or None.
        lowers_to: for a tensor op with a one-to-one conversion, the tile op's name.
        instruction: False for views and metadata that emit no instruction.
        opaque_effects: True where the registry cannot say what memory is touched (C-030).
        pure: True if equal operands give equal results and nothing else happens.
        open_kwargs: further keyword arguments are stored as given; only for operators that are
            passed through and never rewritten.
    """

    name: str
    operands: tuple[Operand, ...]
    kwargs: tuple[Kwarg, ...]
    infer: TypeRule
    family: str
    output_space: Mem | str | None = None
    inherits_memory: bool = False
    reuses_input: int | None = None
    channel: Channel | None = None
    lowers_to: str | None = None
    instruction: bool = True
    opaque_effects: bool = False
    pure: bool = True
    open_kwargs: bool = False

    @property
    def namespace(self) -> str:
        """The part of its name before the first dot: "tensor", "tile", "system"."""
        return self.name.split(".", 1)[0]


_DECLS: dict[str, OpDecl] = {}


def register(decl: OpDecl) -> OpDecl:
    """Add a declaration; a second one of the same name is a fault."""
    if decl.name in _DECLS:
        raise InternalError(f"operator {decl.name} is registered twice")
    _DECLS[decl.name] = decl
    return decl


def lookup(name: str) -> OpDecl | None:
    """The declaration of operator `name`, or None."""
    return _DECLS.get(name)


def declared() -> Iterator[OpDecl]:
    """All declarations, in order of registration."""
    return iter(tuple(_DECLS.values()))


def make_call(
    name: str,
    args: tuple[Expr, ...],
    kwargs: Kwargs | None = None,
    *,
    attrs: tuple[tuple[str, object], ...] = (),
    span: Span | None = None,
) -> Call:
    """A call of a registered operator with its inferred type.

    Raises:
        TypeCheckError: unknown or missing kwargs, wrong operand count, or the type rule refuses;
            carries `span`.
    """
    decl = lookup(name)
    if decl is None:
        raise InternalError(f"make_call of the unregistered operator {name}")
    given = dict(kwargs or {})
    stored = _stored_kwargs(decl, given, span)
    _check_count(decl, args, span)
    try:
        result = decl.infer(args, {**_defaults(decl), **given})
    except TypeCheckError as error:
        if error.span is None:
            error.span = span
        raise
    return Call(name, args, stored, result, attrs, span)


def _defaults(decl: OpDecl) -> dict[str, object]:
    return {k.name: k.default for k in decl.kwargs if not isinstance(k.default, Required)}


def _stored_kwargs(
    decl: OpDecl, given: dict[str, object], span: Span | None
) -> tuple[tuple[str, object], ...]:
    known = {k.name for k in decl.kwargs}
    for name in given:
        if name not in known and not decl.open_kwargs:
            listed = ", ".join(sorted(known)) or "none"
            raise TypeCheckError(
                f"{decl.name} has no keyword argument '{name}' (it has: {listed})", span=span
            )
    stored = []
    for kwarg in decl.kwargs:
        if kwarg.name in given:
            _check_kwarg_kind(decl, kwarg, given[kwarg.name], span)
            stored.append((kwarg.name, given[kwarg.name]))
        elif isinstance(kwarg.default, Required):
            raise TypeCheckError(
                f"{decl.name} needs the keyword argument '{kwarg.name}'", span=span
            )
        elif kwarg.always:
            stored.append((kwarg.name, kwarg.default))
    stored += [(name, value) for name, value in given.items() if name not in known]
    return tuple(stored)


_KWARG_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "dtype": (DType,),
    "mem": (Mem,),
    "tensor_layout": (TensorLayout,),
    "tile_layout": (TileLayout,),
    "pad": (PadValue,),
    "atomic": (AtomicType,),
    "cache": (CachePolicy,),
    "split": (SplitMode,),
    "any": (object,),
}


def _check_kwarg_kind(decl: OpDecl, kwarg: Kwarg, value: object, span: Span | None) -> None:
    if value is None and kwarg.default is None:
        return
    number = kwarg.kind in ("int", "float")
    if isinstance(value, _KWARG_KINDS[kwarg.kind]) and not (number and isinstance(value, bool)):
        return
    raise TypeCheckError(
        f"{decl.name}: keyword argument '{kwarg.name}' must be of kind {kwarg.kind}, got {value!r}",
        span=span,
    )


def _check_count(decl: OpDecl, args: tuple[Expr, ...], span: Span | None) -> None:
    least = sum(1 for operand in decl.operands if not operand.optional)
    most = len(decl.operands)
    if not least <= len(args) <= most:
        takes = str(most) if least == most else f"{least} to {most}"
        names = ", ".join(o.name for o in decl.operands)
        raise TypeCheckError(
            f"{decl.name} takes {takes} operands ({names}), got {len(args)}", span=span
        )
