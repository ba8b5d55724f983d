"""A scheduled cube product as loops over L0 tiles.

A tile of the result is a sum over blocks of K: both operands are extracted into L0 and multiplied,
in a software pipeline of two stages, and what is left of K is peeled. Loops over the tiles of a
result that leaves L0C tile by tile stand around it; the last rows and columns are peeled, too. A
loop over tiles is a pipeline where two buffers take turns in what its body makes, else a range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pypto_egg.ir.dtype import BOOL, INDEX
from pypto_egg.ir.enums import CompactMode, LoopKind, Mem
from pypto_egg.ir.expr import BinOp, Call, ConstInt, Expr, Var, as_expr, dims_of, tuple_of
from pypto_egg.ir.fold import dim_add, same_dims
from pypto_egg.ir.stmt import Assign, Block, For, Stmt, Yield
from pypto_egg.ir.types import ScalarType, TileType
from pypto_egg.l0.schedule import L0Schedule
from pypto_egg.ops.registry import make_call

Dim = int | Expr
_STAGES = (("stage", 2),)
# Axis of the product -> the operand that has it, and the axis there.
_ROWS, _COLUMNS = 0, 1


@dataclass(frozen=True)
class Part:
    """A stretch of M or N: the operand it is a window of, where it starts (elements), its physical
    extent and how much of that is valid."""

    operand: Var
    start: Dim
    extent: int
    valid: int


@dataclass(frozen=True)
class Begin:
    """What a sum over K starts from: nothing, an accumulator, or a row of the bias table.

    Args:
        first: where it holds, the product overwrites `acc`.
    """

    acc: Var | None = None
    first: Expr | None = None
    bias: Var | None = None


Leave = Callable[[Var, Var, Part, Part], Call]
"""The call that takes a tile out of L0C: (accumulator, whole so far, rows, columns) -> call."""
Body = Callable[[Part, Var, Var], None]
"""Builds one tile or one row of tiles: (stretch, whole so far, whole afterwards)."""


@dataclass
class Nest:
    """Builds the statements of one scheduled product.

    Args:
        left, right: the operands in Mat, [M, K] and [K, N].
        label: what the names of all tiles begin with.
        unique: makes a name one that is not in use.
    """

    left: Var
    right: Var
    schedule: L0Schedule
    label: str
    unique: Callable[[str], str]
    _blocks: list[list[Stmt]] = field(default_factory=lambda: [[]])

    def sum(self, result: Var, begin: Begin) -> Block:
        """The whole product as one tile, which stays in L0C as `result`."""
        parts = (self._whole(_ROWS), self._whole(_COLUMNS))
        self._tile(*parts, result, begin)
        return tuple(self._blocks[0])

    def leaving(self, whole: Var, leave: Leave, result: Var) -> Block:
        """All tiles of the product, each taken out of L0C by `leave`.

        Args:
            whole: what the tiles go into, before any did.
            result: it with all tiles.
        """
        outer, inner = (_ROWS, _COLUMNS) if self.schedule.rows_outer else (_COLUMNS, _ROWS)
        stays = self.schedule.k >= self._depth

        def row(part: Part, before: Var, after: Var) -> None:
            kept = self._extract(outer, part, 0, self._depth) if stays else None

            def tile(other: Part, so_far: Var, then: Var) -> None:
                streamed = self._extract(inner, other, 0, self._depth) if stays else None
                rows, cols, a, b = part, other, kept, streamed
                if outer == _COLUMNS:
                    rows, cols, a, b = other, part, streamed, kept
                made = self._tile_var("c", rows, cols)
                if a is not None and b is not None:
                    self._append(Assign(made, self._product(a, b, Begin())))
                else:
                    self._tile(rows, cols, made, Begin())
                self._append(Assign(then, leave(made, so_far, rows, cols)))

            self._along(inner, before, after, tile)

        self._along(outer, whole, result, row)
        return tuple(self._blocks[0])

    # --- loops over tiles -------------------------------------------------------------------------

    def _along(self, axis: int, whole: Var, result: Var, body: Body) -> None:
        """The body for all stretches of an axis: a loop over full tiles, and the tail."""
        step = self.schedule.m if axis == _ROWS else self.schedule.n
        count, tail = divmod(self._valid(axis), step)
        operand = self.left if axis == _ROWS else self.right
        if count > 1:
            made = result if not tail else self._like(whole)
            self._loop(axis, count, self._window(axis, count * step), whole, made, body)
        elif count:
            made = result if not tail else self._like(whole)
            body(Part(operand, 0, step, step), whole, made)
        else:
            made = whole
        if tail:
            start = count * step
            extent = min(step, self._extent(axis) - start)
            body(Part(operand, start, extent, tail), made, result)

    def _loop(
        self, axis: int, count: int, operand: Var, whole: Var, result: Var, body: Body
    ) -> None:
        step = self.schedule.m if axis == _ROWS else self.schedule.n
        index = Var(self._name("mo" if axis == _ROWS else "no"), ScalarType(INDEX))
        carried, made = self._like(whole), self._like(whole)
        self._blocks.append([])
        body(Part(operand, index, step, step), carried, made)
        inside = self._blocks.pop()
        kind = LoopKind.pipeline if self._takes_turns(axis) else LoopKind.range
        self._append(For(
            kind, index, _const(0), _const(count * step), _const(step), (*inside, Yield((made,))),
            (carried,), (whole,), (result,), _STAGES if kind is LoopKind.pipeline else (),
        ))  # fmt: skip

    def _takes_turns(self, axis: int) -> bool:
        """Whether two buffers take turns in what the loop's body makes: the accumulator and the
        streamed operand in the inner loop, the kept operand in the outer one."""
        if self.schedule.accumulators == 1:
            return False
        is_outer = (axis == _ROWS) == self.schedule.rows_outer
        return not is_outer or self.schedule.stationary == "output"

    def _window(self, axis: int, extent: int) -> Var:
        """The operand as far as full tiles of it are valid, so that their extents are constants."""
        operand = self.left if axis == _ROWS else self.right
        if self._valid(axis) == self._extent(axis):
            return operand
        assert isinstance(operand.type, TileType)
        shape = list(operand.type.shape)
        shape[axis] = extent
        call = make_call("tile.slice", (operand, tuple_of(tuple(shape)), tuple_of((0, 0))))
        return self._assign("rows" if axis == _ROWS else "cols", call)

    # --- one tile ---------------------------------------------------------------------------------

    def _tile(self, rows: Part, cols: Part, result: Var, begin: Begin) -> None:
        """One tile of the result, block by block of K."""
        depth, step = self._depth, self.schedule.k
        at = 0
        while at < depth:
            # A row of the bias table starts the sum by an instruction of its own.
            count = 1 if begin.bias is not None else (depth - at) // step
            size = step if count else depth - at
            into = result if at + max(count, 1) * size == depth else self._like(result)
            if count > 1:
                self._pipeline(rows, cols, (at, at + count * step), into, begin)
            else:
                self._append(Assign(into, self._block(rows, cols, at, size, begin)))
            at, begin = at + max(count, 1) * size, Begin(acc=into)

    def _pipeline(
        self, rows: Part, cols: Part, span: tuple[int, int], result: Var, begin: Begin
    ) -> None:
        """Blocks of K as a software pipeline; the first one overwrites a fresh accumulator."""
        index = Var(self._name("ko"), ScalarType(INDEX))
        overwrites: Expr | None = None
        if begin.acc is None or begin.first is not None:
            overwrites = BinOp("==", index, _const(span[0]), BOOL)
        if overwrites is not None and begin.first is not None:
            overwrites = BinOp("and", begin.first, overwrites, BOOL)
        seed = begin.acc if begin.acc is not None else self._fresh_accumulator(result)
        carried, made = self._like(result, "c"), self._like(result, "c_acc")
        self._blocks.append([])
        call = self._block(rows, cols, index, self.schedule.k, Begin(carried, overwrites))
        self._append(Assign(made, call))
        inside = self._blocks.pop()
        start, stop = map(_const, span)
        self._append(For(
            LoopKind.pipeline, index, start, stop, _const(self.schedule.k),
            (*inside, Yield((made,))), (carried,), (seed,), (result,), _STAGES,
        ))  # fmt: skip

    def _block(self, rows: Part, cols: Part, start: Dim, depth: int, begin: Begin) -> Call:
        a = self._extract(_ROWS, rows, start, depth)
        b = self._extract(_COLUMNS, cols, start, depth)
        return self._product(a, b, begin)

    def _product(self, a: Var, b: Var, begin: Begin) -> Call:
        if begin.bias is not None:
            return make_call("tile.matmul_bias", (a, b, begin.bias))
        if begin.acc is None:
            return make_call("tile.matmul", (a, b))
        more = () if begin.first is None else (begin.first,)
        return make_call("tile.matmul_acc", (begin.acc, a, b, *more))

    def _extract(self, axis: int, part: Part, start: Dim, depth: int) -> Var:
        """A block of an operand, in L0A or L0B."""
        role = "a" if axis == _ROWS else "b"
        return self._assign(role, self._window_of(axis, part, start, depth))

    def _window_of(self, axis: int, part: Part, start: Dim, depth: int) -> Call:
        place, shape, space = (part.start, start), (part.extent, depth), Mem.Left
        if axis == _COLUMNS:
            place, shape, space = place[::-1], shape[::-1], Mem.Right
        args = (part.operand, *map(as_expr, place), tuple_of(shape))
        return make_call("tile.extract", args, {"target_memory": space})

    def _fresh_accumulator(self, like: Var) -> Var:
        """An accumulator of the type that the product has."""
        assert isinstance(like.type, TileType)
        kwargs: dict[str, object] = {"dtype": like.type.dtype, "target_memory": Mem.Acc}
        if like.type.layout.compact is CompactMode.normal:
            kwargs["compact"] = True
        made = self._assign("init", make_call("tile.create", (tuple_of(like.type.shape),), kwargs))
        if same_dims(like.type.valid_shape, like.type.shape):
            return made
        extents = (as_expr(extent) for extent in like.type.valid_shape)
        return self._assign("init", make_call("tile.set_validshape", (made, *extents)))

    # --- names and types --------------------------------------------------------------------------

    def _valid(self, axis: int) -> int:
        """How much of M or N is computed; all of it where that is only known at run time."""
        operand = self.left if axis == _ROWS else self.right
        assert isinstance(operand.type, TileType)
        extent = operand.type.valid_shape[axis]
        return extent if isinstance(extent, int) else self._extent(axis)

    @property
    def _depth(self) -> int:
        assert isinstance(self.left.type, TileType)
        depth = self.left.type.shape[1]
        assert isinstance(depth, int)
        return depth

    def _extent(self, axis: int) -> int:
        operand = self.left if axis == _ROWS else self.right
        assert isinstance(operand.type, TileType)
        extent = operand.type.shape[axis]
        assert isinstance(extent, int)
        return extent

    def _whole(self, axis: int) -> Part:
        operand = self.left if axis == _ROWS else self.right
        return Part(operand, 0, self._extent(axis), self._valid(axis))

    def _tile_var(self, role: str, rows: Part, cols: Part) -> Var:
        """A variable for a tile of the result; its type is that of the product."""
        depth = self.schedule.k
        calls = self._window_of(_ROWS, rows, 0, depth), self._window_of(_COLUMNS, cols, 0, depth)
        a, b = (Var(role, call.type) for call in calls)
        return Var(self._name(role), self._product(a, b, Begin()).type)

    def _like(self, var: Var, role: str = "out") -> Var:
        return Var(self._name(role), var.type)

    def _assign(self, role: str, call: Call) -> Var:
        var = Var(self._name(role), call.type)
        self._append(Assign(var, call))
        return var

    def _name(self, role: str) -> str:
        return self.unique(f"{self.label}_l0_{role}")

    def _append(self, stmt: Stmt) -> None:
        self._blocks[-1].append(stmt)


def stored(store: Call) -> Leave:
    """Tiles go to global memory, each to its place in the window of `store`."""

    def leave(tile: Var, whole: Var, rows: Part, cols: Part) -> Call:
        *lead, row, col = dims_of(store.args[1])
        place = tuple_of((*lead, dim_add(row, rows.start), dim_add(col, cols.start)))
        return make_call(store.op, (tile, place, whole), dict(store.kwargs))

    return leave


def assembled(tile: Var, whole: Var, rows: Part, cols: Part) -> Call:
    """Tiles go to their places in a tile in Mat."""
    return make_call("tile.assemble", (whole, tile, tuple_of((rows.start, cols.start))))


def _const(value: int) -> ConstInt:
    return ConstInt(value, INDEX)
