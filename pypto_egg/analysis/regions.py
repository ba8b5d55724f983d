"""The region tree of a function: which statements run together, and how often.

A region is a block of statements that control enters as a whole: the function's body, a loop's
body, an arm of a branch, the body of a `with` scope. Regions are numbered in program order, so
equal functions get equal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from pypto_egg.errors import VerifyError
from pypto_egg.ir.expr import Var
from pypto_egg.ir.fold import const_value, difference
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Block, For, If, Stmt, While
from pypto_egg.ir.visit import blocks_of, defined_by, defined_inside

UNKNOWN_TRIPS = 8
"""How often a loop is taken to run when its trip count is not a constant of the program.

Any number above one makes code in a loop dearer than the same code before it, which is all that
ranking needs; eight is small enough not to drown loops whose counts are known.
"""


class RegionKind(Enum):
    """The statement, or the part of one, that a region is the block of."""

    FUNCTION = "function"
    FOR = "for"
    WHILE = "while"
    THEN = "then"
    ELSE = "else"
    SCOPE = "scope"


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """One region.

    Args:
        id: its number in program order; the function's body is 0.
        parent: the region that holds `stmt`; None for the function's body.
        stmt: the loop, branch or scope whose block this is; None for the function's body.
        depth: how many regions enclose it.
        trips: how often it runs each time its parent runs, if that is a constant: the trip count
            of a loop, 1 for everything else. None where it is not known.
    """

    id: int
    kind: RegionKind
    parent: Region | None
    stmt: Stmt | None = field(repr=False)
    block: Block = field(repr=False)
    depth: int
    trips: int | None


class RegionTree:
    """The regions of one function and the place of every statement and variable in them.

    A statement's position is its number in program order, starting with 0.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.regions: list[Region] = []
        self.statements: list[Stmt] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._region_of: dict[int, Region] = {}
        self._position_of: dict[int, int] = {}
        self._opened_by: dict[int, list[Region]] = {}
        self._var_region: dict[Var, Region] = {}
        self._number()

    @property
    def root(self) -> Region:
        """The function's body."""
        return self.regions[0]

    def region_of(self, stmt: Stmt) -> Region:
        """The innermost region that holds a statement."""
        return self._region_of[id(stmt)]

    def position_of(self, stmt: Stmt) -> int:
        """The number of a statement in program order."""
        return self._position_of[id(stmt)]

    def opened_by(self, stmt: Stmt) -> tuple[Region, ...]:
        """The regions that a loop, branch or scope opens: (then, else) for a branch."""
        return tuple(self._opened_by.get(id(stmt), ()))

    def start_of(self, region: Region) -> int:
        """The position of the first statement in a region."""
        return self._starts[region.id]

    def end_of(self, region: Region) -> int:
        """The position that follows the last statement in a region."""
        return self._ends[region.id]

    def define(self, var: Var, region: Region) -> None:
        """Let a region define a variable that the function itself does not have."""
        self._var_region[var] = region

    def region_of_var(self, var: Var) -> Region:
        """The region that defines a variable.

        Parameters belong to the function's body, and so do symbols, which nothing defines. Loop
        variables and iter_args belong to the loop's body, results to the region of the loop.
        """
        return self._var_region.get(var, self.root)

    def is_ancestor(self, outer: Region, inner: Region) -> bool:
        """Whether `outer` encloses `inner` or is the same region."""
        at: Region | None = inner
        while at is not None and at.depth > outer.depth:
            at = at.parent
        return at is outer

    def multiplicity(self, region: Region) -> int:
        """How often a region runs each time the function runs.

        The product of the trip counts around it; a loop of unknown trip count counts
        UNKNOWN_TRIPS, an arm of a branch counts as if it were always taken.
        """
        times = 1
        at: Region | None = region
        while at is not None:
            times *= UNKNOWN_TRIPS if at.trips is None else at.trips
            at = at.parent
        return times

    def _number(self) -> None:
        root = self._open(RegionKind.FUNCTION, None, self.function.body, None)
        for param in self.function.params:
            self._var_region[param.var] = root
        pending: list[_Step] = [_Close(root), *_statements(root)]
        while pending:
            step = pending.pop()
            match step:
                case _Close(region):
                    self._ends[region.id] = len(self.statements)
                case _Place(stmt, region):
                    self._place(stmt, region)
                    pending.extend(reversed([_Enter(stmt, f, b) for f, b in blocks_of(stmt)]))
                case _Enter(stmt, name, block):
                    opened = self._open(_kind(stmt, name), stmt, block, self.region_of(stmt))
                    pending.extend((_Close(opened), *_statements(opened)))

    def _place(self, stmt: Stmt, region: Region) -> None:
        if id(stmt) in self._region_of:
            raise VerifyError(
                f"function '{self.function.name}' holds the same statement object twice",
                span=stmt.span,
                hint="build one statement object for each place where it runs",
            )
        self._region_of[id(stmt)] = region
        self._position_of[id(stmt)] = len(self.statements)
        self.statements.append(stmt)
        for var in defined_by(stmt):
            self._var_region[var] = region

    def _open(
        self, kind: RegionKind, stmt: Stmt | None, block: Block, parent: Region | None
    ) -> Region:
        depth = 0 if parent is None else parent.depth + 1
        region = Region(len(self.regions), kind, parent, stmt, block, depth, _trips(kind, stmt))
        self.regions.append(region)
        self._starts.append(len(self.statements))
        self._ends.append(len(self.statements))
        if stmt is not None:
            self._opened_by.setdefault(id(stmt), []).append(region)
            for var in defined_inside(stmt):
                self._var_region[var] = region
        return region


def regions_of(function: Function) -> RegionTree:
    """The region tree of a function.

    Raises:
        VerifyError: the same statement object occurs at two places.
    """
    return RegionTree(function)


def trip_count(loop: For) -> int | None:
    """How often a loop's body runs, or None where that is not a constant.

    Bounds that share a symbolic part, as in `range(i, i + 64, 16)`, have a constant count.
    """
    step = const_value(loop.step)
    distance = difference(loop.stop, loop.start)
    if distance is None or not step:
        return None
    return max(0, -(-distance // step))


def _trips(kind: RegionKind, stmt: Stmt | None) -> int | None:
    if isinstance(stmt, For):
        return trip_count(stmt)
    return None if kind is RegionKind.WHILE else 1


def _kind(stmt: Stmt, block_name: str) -> RegionKind:
    match stmt:
        case For():
            return RegionKind.FOR
        case While():
            return RegionKind.WHILE
        case If():
            return RegionKind.THEN if block_name == "then" else RegionKind.ELSE
        case _:
            return RegionKind.SCOPE


@dataclass(frozen=True, slots=True)
class _Place:
    stmt: Stmt
    region: Region


@dataclass(frozen=True, slots=True)
class _Enter:
    stmt: Stmt
    block_name: str
    block: Block


@dataclass(frozen=True, slots=True)
class _Close:
    region: Region


_Step = _Place | _Enter | _Close


def _statements(region: Region) -> list[_Place]:
    return [_Place(stmt, region) for stmt in reversed(region.block)]
