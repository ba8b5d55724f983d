"""What stays outside the e-graph: control flow and effects, in program order.

Pure values are e-classes that hang from the skeleton; it keeps stores, scalar code, loops,
branches and the return. Emission walks it and puts the selected tiles where they are first used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from pypto_egg.ir.expr import Expr, TupleExpr, Var
from pypto_egg.ir.stmt import For, If, Return, Stmt, While
from pypto_egg.ir.types import TensorType


class CarryKind(Enum):
    """What a carried value is after lowering."""

    KEPT = "kept"  # scalars, tiles of a tile program, handles of global memory
    TENSOR = "tensor"  # a computed tensor, which becomes one tile for each form in use


@dataclass(frozen=True, slots=True)
class Keep:
    """A statement that lowering does not change."""

    stmt: Stmt


@dataclass(frozen=True, slots=True)
class Pin:
    """The place where memory that is written later or before is read: loads of this point."""

    point: int


@dataclass(frozen=True, slots=True)
class Store:
    """A tile written to global memory.

    Args:
        key: the statement's key in the e-graph.
        target: the handle that is written.
        result: the variable that names the written tensor afterwards, if there is one.
    """

    key: int
    target: Expr
    offsets: TupleExpr
    kwargs: tuple[tuple[str, object], ...]
    result: Var | None
    stmt: Stmt


@dataclass(frozen=True, slots=True)
class ScalarRead:
    """One element of a tile read into a scalar variable."""

    key: int
    indices: TupleExpr
    result: Var
    stmt: Stmt


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop; `carries` says of each iter_arg what becomes of it."""

    stmt: For | While
    region: int
    body: tuple[Item, ...]
    carries: tuple[CarryKind, ...]
    yields: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch with its arms; each result is carried as a tile or kept as it is."""

    stmt: If
    then_region: int
    else_region: int | None
    then: tuple[Item, ...]
    orelse: tuple[Item, ...]
    results: tuple[CarryKind, ...]
    then_yields: tuple[Expr, ...]
    else_yields: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ScopeBlock:
    """A `with` scope inside the function."""

    stmt: Stmt
    region: int
    body: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """The return. An `ExitStore` stands for a tensor that leaves through a new Out parameter; a
    `DirectExit` for one whose parts were stored there already."""

    values: tuple[Expr | ExitStore | DirectExit, ...]
    stmt: Return


@dataclass(frozen=True, slots=True)
class DirectExit:
    """A returned tensor that a loop stored part by part: `out` stands for `ret{number}__out`."""

    value: Expr
    number: int
    out: Var


@dataclass(frozen=True, slots=True)
class ExitStore:
    """A returned tensor that became a tile: `ret{number}__out` receives it (C-040, C-041)."""

    key: int
    number: int
    type: TensorType


Item = Keep | Pin | Store | ScalarRead | Loop | Branch | ScopeBlock | Exit


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The items of a function's body, and the regions they open.

    Args:
        around: region -> the region that encloses it.
        multiplicity: region -> how often it runs when the function runs once.
    """

    items: tuple[Item, ...]
    around: dict[int, int] = field(default_factory=dict)
    multiplicity: dict[int, int] = field(default_factory=dict)
