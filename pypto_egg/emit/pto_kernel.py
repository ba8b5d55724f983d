"""One kernel on its way to PTO text: its names, what each variable stands for, its lines.

A tile variable is a buffer, or a view of one. `placed` says beforehand which buffer a value is to
be left in; all others get one of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pypto_egg.emit.pto_operands import Global, Operands, Tile
from pypto_egg.emit.pto_scalars import Scalars
from pypto_egg.emit.pto_types import Names, tile_buf
from pypto_egg.errors import PtoTextError
from pypto_egg.ir.expr import Expr, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import For, Stmt
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import expressions_of, free_vars, subexpressions, walk
from pypto_egg.source import Span

FORMS = (
    "loads, stores, moves, extracts, views, products, vector instructions, loops and branches have "
    "forms"
)
SET_FIRST = (
    "a tile that is only created has no value: start it by a load or a product, or accumulate in "
    "it in a loop that surely runs"
)


class Kernel:
    """The state of one function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.names = Names()
        self.body: list[str] = []
        self.depth = 0
        self.scalars = Scalars(self.names, self.emit)
        self.operands = Operands(self.names, self.scalars, self.emit)
        self.globals: dict[Var, Global] = {}
        self.tiles: dict[Var, Tile] = {}
        self.placed: dict[Var, Tile] = {}
        # Buffers without a value yet, with the loops in whose first rounds they get one.
        self.unset: dict[str, tuple[For, ...]] = {}
        # The variables that are defined in each of the blocks around the present statement.
        self.local: list[set[Var]] = []
        self.readers: dict[Var, list[Stmt]] = {}
        for stmt in walk(function.body):
            for expr in expressions_of(stmt):
                for var in free_vars(expr):
                    self.readers.setdefault(var, []).append(stmt)

    def emit(self, line: str) -> None:
        """Add a line at the present depth."""
        self.body.append("  " * self.depth + line)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """What is written inside is one level deeper."""
        self.depth += 1
        yield
        self.depth -= 1

    def refused(self, what: str, span: Span | None, hint: str = FORMS) -> PtoTextError:
        """The error that something of this kernel has no form, to be raised by the caller."""
        where = f"{what} of '{self.function.name}'"
        return PtoTextError(f"{where} has no PTO text", span=span or self.function.span, hint=hint)

    # --- variables -----------------------------------------------------------------------------

    def type_of(self, var: Var) -> TileType:
        """The type of a tile variable."""
        assert isinstance(var.type, TileType)
        return var.type

    def tile(self, value: Expr, span: Span | None) -> Tile:
        """The tile that is read.

        Raises:
            PtoTextError: it has no value.
        """
        tile = self.buffer(value, span)
        if tile.buffer in self.unset:
            raise self.refused(f"the value of tile '{_name(value)}'", span, SET_FIRST)
        return tile

    def buffer(self, value: Expr, span: Span | None) -> Tile:
        """The tile that is written to, with a value or without one."""
        tile = self.tiles.get(value) if isinstance(value, Var) else None
        if tile is None:
            raise self.refused(f"the value of tile '{_name(value)}'", span, SET_FIRST)
        return tile

    def result(self, var: Var, span: Span | None) -> Tile:
        """The tile that an instruction leaves its result in."""
        kind = self.type_of(var)
        tile = self.placed.get(var)
        if tile is None:
            tile = self.operands.alloc(var.name, kind, span)
        elif tile_buf(kind, var.name, span) != self.operands.type(tile, span):
            raise self.refused(
                f"'{var.name}', which must be left in a buffer of another type,", span,
                "carry one type of tile through the loop or branch",
            )  # fmt: skip
        self.tiles[var] = tile
        self.unset.pop(tile.buffer, None)
        return tile

    def memory(self, value: Expr, span: Span | None) -> Global:
        """The parameter, or the view of one, that a value is."""
        found = self.globals.get(value) if isinstance(value, Var) else None
        if found is None:
            raise self.refused(f"'{_name(value)}', which is no view of a parameter,", span)
        return found

    def renamed(self, var: Var, value: Expr, span: Span | None) -> None:
        """Let a variable stand for what another one stands for."""
        if isinstance(value, Var) and value in self.tiles:
            self.tiles[var] = self.tiles[value]
        else:
            self.globals[var] = self.memory(value, span)

    def views_before(self, stmts: Iterable[Stmt]) -> None:
        """Make the views that statements use where what follows them sees the views too."""
        for stmt in walk(tuple(stmts)):
            for expr in expressions_of(stmt):
                for part in subexpressions(expr):
                    if isinstance(part, Var) and part in self.globals:
                        self.operands.view(self.globals[part], stmt.span)


def _name(value: Expr) -> str:
    return value.name if isinstance(value, Var) else type(value).__name__
