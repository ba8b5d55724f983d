"""Products that are too large for on-chip memory, as loops over blocks.

A product whose operands do not fit in Mat, or whose result does not fit in Acc, is made block by
block: each block of the result is a sum over blocks of K, and is stored where the whole would have
been. That is the outer loop nest that PyPTO leaves to the kernel's author; the rest of the
lowering then decides boxes, hoisting and the like for the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from itertools import islice, product

from pypto_egg.analysis.effects import Effects, analyse_effects
from pypto_egg.analysis.overlaps import Pairs
from pypto_egg.ir.dtype import FP32, INDEX, INT32, DType
from pypto_egg.ir.enums import LoopKind, TensorLayout
from pypto_egg.ir.expr import BinOp, Call, ConstInt, Expr, Var, dims_of, tuple_of
from pypto_egg.ir.fold import dim_add, dim_floordiv, dim_mul, fold
from pypto_egg.ir.names import VersionNames
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Block, For, Return, Stmt, Yield, with_fields
from pypto_egg.ir.types import FRACTAL_ROWS, ScalarType, TensorType
from pypto_egg.ir.visit import blocks_of, expressions_of, free_vars, substitute, walk
from pypto_egg.ops.registry import lookup, make_call
from pypto_egg.ops.snapshots import snapshots

_ELEMENTWISE = ("unary", "cast", "binary_scalar")


@dataclass(frozen=True)
class Room:
    """On-chip memory for one product, in bytes: for its operands in Mat, for its result in Acc."""

    mat: int
    acc: int


@dataclass(frozen=True)
class Blocks:
    """The extents of one block of a product [m, k] @ [k, n], in elements."""

    m: int
    n: int
    k: int


@dataclass(frozen=True)
class _Chain:
    """A product, the elementwise ops on it, and the statement that takes the result away."""

    product: Assign
    steps: tuple[Assign, ...]
    sink: Stmt


@dataclass(frozen=True)
class Blocked:
    """A function whose too large products are made in blocks.

    Args:
        blocks: the name of each such product, and the extents of its blocks.
    """

    function: Function
    blocks: tuple[tuple[str, Blocks], ...]


def blocked_functions(
    function: Function, program: Program, overlapping: Pairs, room: Room, limit: int
) -> Iterator[Blocked]:
    """Versions of a function whose too large products are blocked, the least traffic first.

    Args:
        program: where called functions are looked up.
        overlapping: parameters that callers may give the same memory.
        limit: how many versions at most.
    """
    for place in range(limit):
        blocked = _blocked_at(function, program, overlapping, room, place)
        if blocked is None:
            return
        yield blocked


def _blocked_at(
    function: Function, program: Program, overlapping: Pairs, room: Room, place: int
) -> Blocked | None:
    """The function with each large product in its blocking number `place`; None past the last."""
    names, made = VersionNames(function), list[tuple[str, Blocks]]()
    while True:
        effects = analyse_effects(function, program, overlapping)
        chain = _first_too_large(function, effects, room)
        if chain is None:
            break
        shape = _extents(chain.product)
        assert shape is not None
        blocks = next(islice(_candidates(chain, shape, room), place, None), None)
        if blocks is None:
            return None
        made.append((chain.product.var.name, blocks))
        function = replace(function, body=_with_chain(function.body, chain, blocks, names))
    return Blocked(function, tuple(made)) if made else None


def _first_too_large(function: Function, effects: Effects, room: Room) -> _Chain | None:
    taken = snapshots(function)
    for chain in _chains(function):
        call = chain.product.value
        assert isinstance(call, Call)
        if not all(_unchanged(operand, chain, effects, taken) for operand in call.args[:2]):
            continue
        shape = _extents(chain.product)
        # A single column is held as a vector, which no loop of cube products carries.
        if shape and shape[1] > 1 and not _fits(chain.product, Blocks(*shape), room, looped=False):
            return chain
    return None


def _unchanged(operand: Expr, chain: _Chain, effects: Effects, taken: Set[Expr]) -> bool:
    """Whether blocks of an operand may be loaded where the blocks of the result are stored.

    What they are loaded from must not change from the product to its sink, nor by the sink.
    """
    if effects.is_read_only(operand):
        return True
    if operand in taken or effects.opaque:
        return False
    before = effects.read_version(chain.product, operand)
    return before == effects.read_version(chain.sink, operand) and not effects.writes(
        chain.sink, operand
    )


def why_not_blocked(
    function: Function, program: Program, overlapping: Pairs, room: Room
) -> Iterator[str]:
    """For each too large product that is not made in blocks: what keeps it from being so."""
    effects = analyse_effects(function, program, overlapping)
    taken = snapshots(function)
    for block in _blocks(function):
        for stmt in block:
            if _op(stmt) != "tensor.matmul" or not isinstance(stmt, Assign):
                continue
            shape = _extents(stmt)
            if shape is None or _fits(stmt, Blocks(*shape), room, looped=False):
                continue
            reason = _obstacle(stmt, shape, _chain(stmt, block, function), effects, taken, room)
            if reason:
                yield f"'{stmt.var.name}' is not made in blocks, because {reason}"


def _obstacle(
    stmt: Assign,
    shape: tuple[int, int, int],
    chain: _Chain | None,
    effects: Effects,
    taken: Set[Expr],
    room: Room,
) -> str:
    assert isinstance(stmt.value, Call)
    if shape[1] == 1:
        return "a single column is held as a vector"
    if chain is None:
        return (
            "only elementwise ops and casts of it, each with one user in the same block, may come "
            "before the one statement that stores or returns it"
        )
    for operand in stmt.value.args[:2]:
        if not _unchanged(operand, chain, effects, taken):
            name = operand.name if isinstance(operand, Var) else "an operand"
            return (
                f"blocks of '{name}' would be loaded while its memory is written: store the result "
                "to another tensor, and before other writes"
            )
    if next(_candidates(chain, shape, room), None) is None:
        m, n, k = shape
        return f"M = {m}, N = {n} and K = {k} have no equal parts of whole fractals that fit"
    return ""


# --- what is blocked ---------------------------------------------------------------------------


def _chains(function: Function) -> list[_Chain]:
    blocks = _blocks(function)
    chains = (_chain(stmt, block, function) for block in blocks for stmt in block)
    return [chain for chain in chains if chain is not None]


def _blocks(function: Function) -> Iterator[Block]:
    stack: list[Block] = [function.body]
    while stack:
        block = stack.pop()
        yield block
        stack.extend(inner for stmt in block for _, inner in blocks_of(stmt))


def _chain(stmt: Stmt, block: Block, function: Function) -> _Chain | None:
    if _op(stmt) != "tensor.matmul":
        return None
    assert isinstance(stmt, Assign)
    steps: list[Assign] = []
    at: Stmt = stmt
    while True:
        assert isinstance(at, Assign)
        users = [s for s in walk(function.body) if at.var in _read(s)]
        if len(users) != 1 or not any(users[0] is s for s in block):
            return None
        user = users[0]
        if _takes_away(user, at.var):
            return _Chain(stmt, tuple(steps), user)
        decl = lookup(_op(user))
        if decl is None or decl.family not in _ELEMENTWISE or not isinstance(user, Assign):
            return None
        steps.append(user)
        at = user


def _takes_away(stmt: Stmt, value: Var) -> bool:
    """Whether a statement returns the value alone or assembles it into another tensor."""
    if isinstance(stmt, Return):
        return stmt.values.count(value) == 1
    if _op(stmt) != "tensor.assemble" or not isinstance(stmt, Assign):
        return False
    assert isinstance(stmt.value, Call)
    return stmt.value.args[1] is value and stmt.value.kwarg("atomic") is None


def _extents(stmt: Assign) -> tuple[int, int, int] | None:
    """M, N and K of a product of whole matrices; None for others."""
    call = stmt.value
    assert isinstance(call, Call)
    left, right, result = call.args[0].type, call.args[1].type, call.type
    assert isinstance(left, TensorType)
    assert isinstance(right, TensorType)
    assert isinstance(result, TensorType)
    for type_ in (left, right):
        whole = type_.rank == 2 and type_.valid_shape == type_.shape
        if not whole or not all(isinstance(extent, int) for extent in type_.shape):
            return None
    m, n = result.shape[-2:]
    k = left.shape[-2] if call.kwarg("a_trans") else left.shape[-1]
    assert isinstance(m, int)
    assert isinstance(n, int)
    assert isinstance(k, int)
    return m, n, k


# --- which blocks ------------------------------------------------------------------------------


def _candidates(chain: _Chain, shape: tuple[int, int, int], room: Room) -> Iterator[Blocks]:
    """The blockings that fit, by the bytes that they load, then by how few blocks they make."""
    m, n, k = shape
    # A store into NZ memory covers all rows from the first on (N-048).
    rows = [m] if _stores_nz(chain.sink) else _parts(m)
    fitting = [
        blocks
        for blocks in (Blocks(*b) for b in product(rows, _parts(n), _parts(k)))
        if _fits(chain.product, blocks, room, looped=True)
    ]

    def key(blocks: Blocks) -> tuple[int, int, int, int]:
        loaded = m * k * (n // blocks.n) + k * n * (m // blocks.m)
        made = (m // blocks.m) * (n // blocks.n)
        return loaded, made, -blocks.k, -blocks.n

    best: dict[tuple[int, int], Blocks] = {}
    for blocks in sorted(fitting, key=key):
        best.setdefault((blocks.m, blocks.n), blocks)
    return iter(best.values())


def _stores_nz(sink: Stmt) -> bool:
    value = sink.value if isinstance(sink, Assign) else None
    kind = value.args[0].type if isinstance(value, Call) else None
    return isinstance(kind, TensorType) and kind.layout is TensorLayout.NZ


def _parts(extent: int) -> list[int]:
    """The extents of equal parts of an axis that are whole fractals, and the axis itself.

    K of 8-bit operands needs twice that: such a block is refused by the lowering, and the next
    one is tried.
    """
    parts = [e for e in range(FRACTAL_ROWS, extent, FRACTAL_ROWS) if extent % e == 0]
    return [*parts, extent]


def _fits(stmt: Assign, blocks: Blocks, room: Room, *, looped: bool) -> bool:
    """Whether a block's result fits in Acc and its operands, two of each in a loop, in Mat."""
    call = stmt.value
    assert isinstance(call, Call)
    left = call.args[0].type
    assert isinstance(left, TensorType)
    m, n = (-(-extent // FRACTAL_ROWS) * FRACTAL_ROWS for extent in (blocks.m, blocks.n))
    operands = (m + n) * blocks.k * left.dtype.bits // 8
    result = m * n * FP32.bits // 8
    in_mat = operands * (2 if looped else 1) <= room.mat
    return in_mat and result <= room.acc


# --- the loops ---------------------------------------------------------------------------------


def _with_chain(body: Block, chain: _Chain, blocks: Blocks, names: VersionNames) -> Block:
    gone = (chain.product, *chain.steps)
    out: list[Stmt] = []
    for stmt in body:
        if any(stmt is s for s in gone):
            continue
        if stmt is chain.sink:
            out.extend(_Nest(chain, blocks, names).statements())
            continue
        inner = {name: _with_chain(b, chain, blocks, names) for name, b in blocks_of(stmt)}
        out.append(with_fields(stmt, **inner) if inner else stmt)
    return tuple(out)


@dataclass
class _Nest:
    """The loops of one blocked product."""

    chain: _Chain
    blocks: Blocks
    names: VersionNames

    def statements(self) -> list[Stmt]:
        """A loop over the blocks of the result, and what takes the whole result away."""
        value = self.chain.steps[-1].var if self.chain.steps else self.chain.product.var
        assert isinstance(value.type, TensorType)
        sink = self.chain.sink
        if isinstance(sink, Assign):
            assert isinstance(sink.value, Call)
            whole, part, offsets = sink.value.args
            return [self._loop(whole, sink.var, dims_of(offsets), part)]
        shape = {"dtype": value.type.dtype}
        created = make_call("tensor.create", (tuple_of(value.type.shape),), shape)
        seed = Var(self.names.fresh(value.name, "blocks"), created.type)
        result = Var(self.names.fresh(value.name, "rv"), created.type)
        (taken,) = _substituted((sink,), value, result)
        return [Assign(seed, created), self._loop(seed, result, (0, 0), value), taken]

    def _loop(self, whole: Expr, result: Var, offsets: tuple[int | Expr, ...], value: Expr) -> Stmt:
        m, n = self._grid()
        base = self.chain.product.var.name
        index = Var(self.names.fresh(base, "block"), ScalarType(INDEX))
        carried = Var(self.names.fresh(base, "whole"), whole.type)
        row, column = dim_floordiv(index, n), fold(BinOp("%", index, ConstInt(n, INDEX), INDEX))
        at = dim_mul(row, self.blocks.m), dim_mul(column, self.blocks.n)
        if m == 1:
            at = 0, dim_mul(index, self.blocks.n)
        if n == 1:
            at = dim_mul(index, self.blocks.m), 0
        statements, made = self._block(*at)
        lead = (0,) * (len(offsets) - len(at))
        place = tuple(dim_add(a, b) for a, b in zip(offsets, (*lead, *at), strict=True))
        store = make_call("tensor.assemble", (carried, made, tuple_of(place)))
        stored = Var(self.names.fresh(base, "stored"), store.type)
        body = (*statements, Assign(stored, store), Yield((stored,)))
        zero, one = ConstInt(0, INDEX), ConstInt(1, INDEX)
        return For(
            LoopKind.range, index, zero, ConstInt(m * n, INDEX), one, body,
            (carried,), (whole,), (result,),
        )  # fmt: skip

    def _grid(self) -> tuple[int, int]:
        shape = _extents(self.chain.product)
        assert shape is not None
        return shape[0] // self.blocks.m, shape[1] // self.blocks.n

    def _block(self, row: int | Expr, column: int | Expr) -> tuple[list[Stmt], Var]:
        """The statements of one block of the result, and their last value."""
        statements, value = self._product(row, column)
        for step in self.chain.steps:
            assert isinstance(step.value, Call)
            call = make_call(step.value.op, (value, *step.value.args[1:]), dict(step.value.kwargs))
            value = Var(self.names.fresh(step.var.name, "part"), call.type)
            statements.append(Assign(value, call, span=step.span))
        return statements, value

    def _product(self, row: int | Expr, column: int | Expr) -> tuple[list[Stmt], Var]:
        call, shape = self.chain.product.value, _extents(self.chain.product)
        assert isinstance(call, Call)
        assert shape is not None
        base, k = self.chain.product.var.name, shape[2]
        if self.blocks.k == k:
            statements, x, y = self._operands(row, column, 0)
            made = make_call("tensor.matmul", (x, y), dict(call.kwargs))
            value = Var(self.names.fresh(base, "part"), made.type)
            return [*statements, Assign(value, made, span=self.chain.product.span)], value
        return self._sum(call, row, column, k)

    def _sum(
        self, call: Call, row: int | Expr, column: int | Expr, k: int
    ) -> tuple[list[Stmt], Var]:
        """The block as a sum over blocks of K, two of which are in flight."""
        base = self.chain.product.var.name
        dtype = _accumulator(call.args[0])
        shape = tuple_of((self.blocks.m, self.blocks.n))
        created = make_call("tensor.create", (shape,), {"dtype": dtype})
        seed = Var(self.names.fresh(base, "acc"), created.type)
        acc = Var(self.names.fresh(base, "acc"), created.type)
        at = Var(self.names.fresh(base, "k"), ScalarType(INDEX))
        statements, x, y = self._operands(row, column, at)
        flags = {f: call.kwarg(f) for f in ("a_trans", "b_trans") if call.kwarg(f)}
        added = make_call("tensor.matmul_acc", (acc, x, y), flags)
        step = Var(self.names.fresh(base, "acc"), added.type)
        total = Var(self.names.fresh(base, "sum"), created.type)
        loop = For(
            LoopKind.pipeline, at, ConstInt(0, INDEX), ConstInt(k, INDEX),
            ConstInt(self.blocks.k, INDEX),
            (*statements, Assign(step, added, span=self.chain.product.span), Yield((step,))),
            (acc,), (seed,), (total,), (("stage", 2),),
        )  # fmt: skip
        out: list[Stmt] = [Assign(seed, created), loop]
        assert isinstance(call.type, TensorType)
        if call.type.dtype == dtype:
            return out, total
        drained = make_call(
            "tensor.cast", (total,), {"target_type": call.type.dtype, "mode": "rint"}
        )
        value = Var(self.names.fresh(base, "part"), drained.type)
        return [*out, Assign(value, drained)], value

    def _operands(
        self, row: int | Expr, column: int | Expr, at: int | Expr
    ) -> tuple[list[Stmt], Expr, Expr]:
        call = self.chain.product.value
        assert isinstance(call, Call)
        x, y = call.args[:2]
        left = (x, (self.blocks.m, self.blocks.k), (row, at), "a_trans")
        right = (y, (self.blocks.k, self.blocks.n), (at, column), "b_trans")
        statements: list[Stmt] = []
        made = []
        for operand, shape, offsets, flag in (left, right):
            turn = -1 if call.kwarg(flag) else 1
            made.append(self._window(operand, shape[::turn], offsets[::turn], statements))
        return statements, made[0], made[1]

    def _window(
        self, operand: Expr, shape: tuple[int, ...], offsets: tuple[int | Expr, ...],
        statements: list[Stmt],
    ) -> Expr:  # fmt: skip
        assert isinstance(operand, Var)
        assert isinstance(operand.type, TensorType)
        if operand.type.shape == shape:
            return operand
        call = make_call("tensor.slice", (operand, tuple_of(shape), tuple_of(offsets)))
        var = Var(self.names.fresh(operand.name, "part"), call.type)
        statements.append(Assign(var, call))
        return var


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


def _read(stmt: Stmt) -> list[Var]:
    return [var for expr in expressions_of(stmt) for var in free_vars(expr)]


def _op(stmt: Stmt) -> str:
    return stmt.value.op if isinstance(stmt, Assign) and isinstance(stmt.value, Call) else ""
