"""A product that is made in blocks, as loops.

Around are loops over the blocks of the result, its last rows and columns peeled where they are no
whole block. A block is a product of windows, or a sum of such products over blocks of K. The
innermost loop that loads is a software pipeline of two stages: the next block is loaded while one
is multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto_egg.ir.dtype import FP32, INDEX, INT32, DType
from pypto_egg.ir.enums import LoopKind
from pypto_egg.ir.expr import Call, ConstInt, Expr, Var, dims_of, tuple_of
from pypto_egg.ir.fold import dim_add
from pypto_egg.ir.names import VersionNames
from pypto_egg.ir.stmt import Assign, Block, For, Return, Stmt, Yield, with_fields
from pypto_egg.ir.types import ScalarType, TensorType
from pypto_egg.ir.visit import blocks_of, substitute
from pypto_egg.ops.registry import make_call

Dim = int | Expr
_ROWS, _COLUMNS = 0, 1
_STAGES = (("stage", 2),)


@dataclass(frozen=True)
class Blocks:
    """The extents of one block of a product [m, k] @ [k, n], in elements.

    Args:
        rows_outer: rows of blocks are the outer loop, so that a left operand with all of K is
            loaded once for each of them.
    """

    m: int
    n: int
    k: int
    rows_outer: bool = True


@dataclass(frozen=True)
class Chain:
    """A product, the elementwise ops on it, and the statement that takes the result away.

    Args:
        extents: M, N and K of the product.
    """

    product: Assign
    steps: tuple[Assign, ...]
    sink: Stmt
    extents: tuple[int, int, int]

    @property
    def call(self) -> Call:
        """The product."""
        assert isinstance(self.product.value, Call)
        return self.product.value

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The tensors that blocks take windows of: those of the product and of the ops on it."""
        found = list(self.call.args[:2])
        for step in self.steps:
            assert isinstance(step.value, Call)
            found += [arg for arg in step.value.args[1:] if isinstance(arg.type, TensorType)]
        return tuple(found)


@dataclass(frozen=True)
class _Part:
    """A stretch of an axis: where it starts, and how much it covers."""

    start: Dim
    size: int


Body = Callable[[_Part, Expr, Var], list[Stmt]]


def with_blocks(body: Block, chain: Chain, blocks: Blocks, names: VersionNames) -> Block:
    """The body with a product and what is done with it made block by block."""
    gone = (chain.product, *chain.steps)
    out: list[Stmt] = []
    for stmt in body:
        if any(stmt is s for s in gone):
            continue
        if stmt is chain.sink:
            out.extend(_Nest(chain, blocks, names).statements())
            continue
        inner = {name: with_blocks(b, chain, blocks, names) for name, b in blocks_of(stmt)}
        out.append(with_fields(stmt, **inner) if inner else stmt)
    return tuple(out)


@dataclass
class _Nest:
    """The loops of one blocked product."""

    chain: Chain
    blocks: Blocks
    names: VersionNames

    def statements(self) -> list[Stmt]:
        """Loops over the blocks of the result, and what takes the whole result away."""
        value = self.chain.steps[-1].var if self.chain.steps else self.chain.product.var
        assert isinstance(value.type, TensorType)
        sink = self.chain.sink
        m, n, _ = self.chain.extents
        if isinstance(sink, Return) and self.blocks.m >= m and self.blocks.n >= n:
            statements, made = self._block(_Part(0, m), _Part(0, n))
            return [*statements, *_substituted((sink,), value, made)]
        if isinstance(sink, Assign):
            assert isinstance(sink.value, Call)
            whole, _, offsets = sink.value.args
            return self._all(whole, sink.var, dims_of(offsets), dict(sink.value.kwargs))
        shape = {"dtype": value.type.dtype}
        created = make_call("tensor.create", (tuple_of(value.type.shape),), shape)
        seed = Var(self.names.fresh(value.name, "blocks"), created.type)
        result = Var(self.names.fresh(value.name, "rv"), created.type)
        (taken,) = _substituted((sink,), value, result)
        return [Assign(seed, created), *self._all(seed, result, (0, 0)), taken]

    def _all(
        self,
        whole: Expr,
        result: Var,
        offsets: tuple[Dim, ...],
        stored_as: dict[str, object] | None = None,
    ) -> list[Stmt]:
        """All blocks, each assembled to its place; `stored_as`: keywords of these calls."""
        outer, inner = (_ROWS, _COLUMNS) if self.blocks.rows_outer else (_COLUMNS, _ROWS)

        def row(part: _Part, before: Expr, after: Var) -> list[Stmt]:
            def block(other: _Part, so_far: Expr, then: Var) -> list[Stmt]:
                rows, cols = (part, other) if self.blocks.rows_outer else (other, part)
                statements, made = self._block(rows, cols)
                lead = (0,) * (len(offsets) - 2)
                at = (*lead, rows.start, cols.start)
                place = tuple(dim_add(a, b) for a, b in zip(offsets, at, strict=True))
                store = make_call("tensor.assemble", (so_far, made, tuple_of(place)), stored_as)
                return [*statements, Assign(then, store)]

            return self._along(inner, before, after, block)

        return self._along(outer, whole, result, row)

    def _along(self, axis: int, whole: Expr, result: Var, body: Body) -> list[Stmt]:
        """The body for all stretches of an axis: a loop over whole blocks, and the rest."""
        size = self._size(axis)
        count, rest = divmod(self.chain.extents[axis], size)
        out: list[Stmt] = []
        if count:
            made = Var(self._fresh("whole"), result.type) if rest else result
            # What a loop assembles is stored part by part (C-042), so one block is a loop, too,
            # where others follow.
            if count > 1 or rest:
                out.append(self._loop(axis, count, whole, made, body))
            else:
                out.extend(body(_Part(0, size), whole, made))
            whole = made
        if rest:
            out.extend(body(_Part(count * size, rest), whole, result))
        return out

    def _loop(self, axis: int, count: int, whole: Expr, result: Var, body: Body) -> Stmt:
        size = self._size(axis)
        index = Var(self._fresh("row" if axis == _ROWS else "column"), ScalarType(INDEX))
        carried = Var(self._fresh("whole"), result.type)
        stored = Var(self._fresh("stored"), result.type)
        inside = body(_Part(index, size), carried, stored)
        pipelined = count > 1 and self._loads_innermost(axis)
        kind = LoopKind.pipeline if pipelined else LoopKind.range
        return For(
            kind, index, _const(0), _const(count * size), _const(size),
            (*inside, Yield((stored,))), (carried,), (whole,), (result,),
            _STAGES if pipelined else (),
        )  # fmt: skip

    def _loads_innermost(self, axis: int) -> bool:
        """Whether no loop within that over an axis loads blocks."""
        other = 1 - axis
        is_inner = (axis == _COLUMNS) == self.blocks.rows_outer
        return self.blocks.k >= self.chain.extents[2] and (
            is_inner or self._size(other) >= self.chain.extents[other]
        )

    def _size(self, axis: int) -> int:
        """Rows or columns of a whole block."""
        return self.blocks.m if axis == _ROWS else self.blocks.n

    # --- one block -----------------------------------------------------------------------------

    def _block(self, rows: _Part, cols: _Part) -> tuple[list[Stmt], Var]:
        """The statements of one block of the result, and their last value."""
        statements, value = self._product(rows, cols)
        for step in self.chain.steps:
            assert isinstance(step.value, Call)
            others = [self._part_of(arg, rows, cols, statements) for arg in step.value.args[1:]]
            call = make_call(step.value.op, (value, *others), dict(step.value.kwargs))
            value = Var(self.names.fresh(step.var.name, "part"), call.type)
            statements.append(Assign(value, call, span=step.span))
        return statements, value

    def _part_of(self, arg: Expr, rows: _Part, cols: _Part, statements: list[Stmt]) -> Expr:
        """What a block sees of an operand: its window of a matrix or of a row, else the same."""
        if not isinstance(arg.type, TensorType):
            return arg
        single = arg.type.shape[0] == 1 != self.chain.extents[0]
        return self._window(arg, (_Part(0, 1) if single else rows, cols), statements)

    def _product(self, rows: _Part, cols: _Part) -> tuple[list[Stmt], Var]:
        depth = self.chain.extents[2]
        if self.blocks.k < depth:
            return self._sum(rows, cols)
        statements, x, y = self._operands(rows, cols, _Part(0, depth))
        made = make_call("tensor.matmul", (x, y), dict(self.chain.call.kwargs))
        value = Var(self._fresh("part"), made.type)
        return [*statements, Assign(value, made, span=self.chain.product.span)], value

    def _sum(self, rows: _Part, cols: _Part) -> tuple[list[Stmt], Var]:
        """The block as a sum over blocks of K, two of which are in flight."""
        call = self.chain.call
        dtype = _accumulator(call.args[0])
        shape = tuple_of((rows.size, cols.size))
        created = make_call("tensor.create", (shape,), {"dtype": dtype})
        seed, acc, total = (Var(self._fresh(role), created.type) for role in ("acc", "acc", "sum"))
        count, rest = divmod(self.chain.extents[2], self.blocks.k)
        at = Var(self._fresh("k"), ScalarType(INDEX))
        inside, step = self._added(rows, cols, _Part(at, self.blocks.k), acc)
        loop = For(
            LoopKind.pipeline, at, _const(0), _const(count * self.blocks.k),
            _const(self.blocks.k), (*inside, Yield((step,))),
            (acc,), (seed,), (total,), _STAGES,
        )  # fmt: skip
        out: list[Stmt] = [Assign(seed, created), loop]
        if rest:
            more, total = self._added(rows, cols, _Part(count * self.blocks.k, rest), total)
            out.extend(more)
        assert isinstance(call.type, TensorType)
        if call.type.dtype == dtype:
            return out, total
        drained = make_call(
            "tensor.cast", (total,), {"target_type": call.type.dtype, "mode": "rint"}
        )
        value = Var(self._fresh("part"), drained.type)
        return [*out, Assign(value, drained)], value

    def _added(self, rows: _Part, cols: _Part, depth: _Part, acc: Var) -> tuple[list[Stmt], Var]:
        """A block of K added to what there is."""
        call = self.chain.call
        statements, x, y = self._operands(rows, cols, depth)
        flags = {f: call.kwarg(f) for f in ("a_trans", "b_trans") if call.kwarg(f)}
        added = make_call("tensor.matmul_acc", (acc, x, y), flags)
        step = Var(self._fresh("acc"), added.type)
        return [*statements, Assign(step, added, span=self.chain.product.span)], step

    def _operands(self, rows: _Part, cols: _Part, depth: _Part) -> tuple[list[Stmt], Expr, Expr]:
        call = self.chain.call
        left = (call.args[0], (rows, depth), "a_trans")
        right = (call.args[1], (depth, cols), "b_trans")
        statements: list[Stmt] = []
        made = []
        for operand, window, flag in (left, right):
            turned = window[::-1] if call.kwarg(flag) else window
            made.append(self._window(operand, turned, statements))
        return statements, made[0], made[1]

    def _window(self, operand: Expr, window: tuple[_Part, ...], statements: list[Stmt]) -> Expr:
        assert isinstance(operand, Var)
        assert isinstance(operand.type, TensorType)
        shape = tuple(part.size for part in window)
        if operand.type.shape == shape:
            return operand
        offsets = tuple_of(tuple(part.start for part in window))
        call = make_call("tensor.slice", (operand, tuple_of(shape), offsets))
        var = Var(self.names.fresh(operand.name, "part"), call.type)
        statements.append(Assign(var, call))
        return var

    def _fresh(self, role: str) -> str:
        return self.names.fresh(self.chain.product.var.name, role)


def _const(value: int) -> ConstInt:
    return ConstInt(value, INDEX)


def _accumulator(operand: Expr) -> DType:
    assert isinstance(operand.type, TensorType)
    return FP32 if operand.type.dtype.is_float else INT32


def _substituted(block: Block, old: Var, new: Var) -> Block:
    return tuple(
        with_fields(stmt, values=tuple(substitute(v, {old: new}) for v in stmt.values))
        if isinstance(stmt, Return)
        else stmt
        for stmt in block
    )
