"""Products that are too large for on-chip memory, as loops over blocks.

A product whose operands do not fit in Mat, or whose result does not fit in Acc, is made block by
block: each block of the result is a sum over blocks of K, and is stored where the whole would have
been. That is the outer loop nest that PyPTO leaves to the kernel's author; the rest of the
lowering then decides boxes, hoisting and the like for the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pypto_egg.analysis.block_nest import Blocks, Chain, with_blocks
from pypto_egg.analysis.effects import Effects, analyse_effects
from pypto_egg.analysis.overlaps import Pairs
from pypto_egg.ir.dtype import FP32
from pypto_egg.ir.enums import TensorLayout
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.names import VersionNames
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Block, Return, Stmt
from pypto_egg.ir.types import FRACTAL_ROWS, TensorType
from pypto_egg.ir.visit import blocks_of, expressions_of, free_vars, walk
from pypto_egg.ops.registry import lookup
from pypto_egg.ops.snapshots import snapshots

Ints = NDArray[np.int64]
_ELEMENTWISE = ("unary", "cast", "binary", "binary_scalar")
_WITH_TENSOR = ("binary", "col_expand")


@dataclass(frozen=True)
class Room:
    """On-chip memory for one product, in bytes: for its operands in Mat, for its result in Acc.

    Args:
        by_tiles: a product that is stored may leave L0C tile by tile, whatever its size.
        every: products that fit are made in blocks, too, so that one is loaded while another is
            multiplied.
        vec: bytes in Vec for a result and the matrices that are added to it; None: not looked at.
    """

    mat: int
    acc: int
    by_tiles: bool = False
    every: bool = False
    vec: int | None = None


SHORTLIST = 128
"""Blockings of least traffic that are ranked by what a kernel with them costs."""

_DEPTHS = 4
"""Blocks of K that are ranked for the same rows and columns: the largest, and about half each;
beside them the largest that leaves no rest."""

Rank = Callable[[Chain, Blocks], float]
"""What a kernel with these blocks costs, as far as that can be told before it is lowered."""


@dataclass(frozen=True)
class Blocked:
    """A function whose too large products are made in blocks.

    Args:
        blocks: the name of each such product, and the extents of its blocks.
    """

    function: Function
    blocks: tuple[tuple[str, Blocks], ...]


def blocked_functions(
    function: Function, program: Program, overlapping: Pairs, room: Room, limit: int,
    rank: Rank | None = None,
) -> Iterator[Blocked]:  # fmt: skip
    """Versions of a function whose too large products are blocked, the least traffic first.

    Args:
        program: where called functions are looked up.
        overlapping: parameters that callers may give the same memory.
        limit: how many versions at most.
        rank: orders the blockings of least traffic anew.
    """
    for place in range(limit):
        blocked = _blocked_at(function, program, overlapping, room, place, rank)
        if blocked is None:
            return
        yield blocked


def _blocked_at(
    function: Function, program: Program, overlapping: Pairs, room: Room, place: int,
    rank: Rank | None,
) -> Blocked | None:  # fmt: skip
    """The function with each large product in its blocking number `place`; None past the last."""
    names, made = VersionNames(function), list[tuple[str, Blocks]]()
    pending = {chain.product.var for chain in _chains(function)}
    while True:
        effects = analyse_effects(function, program, overlapping)
        chain = _first_to_block(function, effects, room, pending)
        if chain is None:
            break
        offered = _ranked(chain, room, rank)
        if place >= len(offered):
            return None
        blocks = offered[place]
        pending.discard(chain.product.var)
        made.append((chain.product.var.name, blocks))
        function = replace(function, body=with_blocks(function.body, chain, blocks, names))
    return Blocked(function, tuple(made)) if made else None


def _first_to_block(
    function: Function, effects: Effects, room: Room, pending: Set[Var]
) -> Chain | None:
    taken = snapshots(function)
    for chain in _chains(function):
        if not all(_unchanged(operand, chain, effects, taken) for operand in chain.operands):
            continue
        # A single column is held as a vector, which no loop of cube products carries.
        if chain.extents[1] == 1 or chain.product.var not in pending:
            continue
        if room.every or _is_too_large(chain, room):
            return chain
    return None


def _unchanged(operand: Expr, chain: Chain, effects: Effects, taken: Set[Expr]) -> bool:
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
            shape, chain = _extents(stmt), _chain(stmt, block, function)
            if shape is None or not _is_too_large(chain or Chain(stmt, (stmt,), stmt, shape), room):
                continue
            reason = _obstacle(stmt, shape, chain, effects, taken, room)
            if reason:
                yield f"'{stmt.var.name}' is not made in blocks, because {reason}"


def _obstacle(
    stmt: Assign,
    shape: tuple[int, int, int],
    chain: Chain | None,
    effects: Effects,
    taken: Set[Expr],
    room: Room,
) -> str:
    assert isinstance(stmt.value, Call)
    if shape[1] == 1:
        return "a single column is held as a vector"
    if chain is None:
        return (
            "only casts and elementwise ops of it, scalars and parameters, each with one user in "
            "the same block, may come before the one statement that stores or returns it"
        )
    for operand in chain.operands:
        if not _unchanged(operand, chain, effects, taken):
            name = operand.name if isinstance(operand, Var) else "an operand"
            return (
                f"blocks of '{name}' would be loaded while its memory is written: store the result "
                "to another tensor, and before other writes"
            )
    if not _candidates(chain, room):
        m, n, k = shape
        return f"M = {m}, N = {n} and K = {k} have no blocks of whole fractals that fit"
    return ""


# --- what is blocked ---------------------------------------------------------------------------


def _chains(function: Function) -> list[Chain]:
    blocks = _blocks(function)
    chains = (_chain(stmt, block, function) for block in blocks for stmt in block)
    return [chain for chain in chains if chain is not None]


def _blocks(function: Function) -> Iterator[Block]:
    stack: list[Block] = [function.body]
    while stack:
        block = stack.pop()
        yield block
        stack.extend(inner for stmt in block for _, inner in blocks_of(stmt))


def _chain(stmt: Stmt, block: Block, function: Function) -> Chain | None:
    if _op(stmt) != "tensor.matmul":
        return None
    assert isinstance(stmt, Assign)
    extents = _extents(stmt)
    if extents is None:
        return None
    steps: list[Assign] = []
    at: Stmt = stmt
    while True:
        assert isinstance(at, Assign)
        users = [s for s in walk(function.body) if at.var in _read(s)]
        if len(users) != 1 or not any(users[0] is s for s in block):
            return None
        user = users[0]
        if _takes_away(user, at.var):
            return Chain(stmt, tuple(steps), user, extents)
        if not isinstance(user, Assign) or not _is_elementwise(user, at.var, extents, function):
            return None
        steps.append(user)
        at = user


def _is_elementwise(
    stmt: Assign, value: Var, extents: tuple[int, int, int], function: Function
) -> bool:
    """Whether each element is made from one of a value's own, and at most from one of a parameter
    of its shape or from its column's in a parameter of one row."""
    decl, call = lookup(_op(stmt)), stmt.value
    if decl is None:
        return False
    assert isinstance(call, Call)
    others = [arg for arg in call.args[1:] if isinstance(arg.type, TensorType)]
    if not others:
        return decl.family in _ELEMENTWISE
    m, n, _ = extents
    shape = (m, n) if decl.family == "binary" else (1, n)
    params = [param.var for param in function.params]
    return (
        decl.family in _WITH_TENSOR
        and call.args[0] is value
        and len(others) == 1
        and others[0] in params
        and isinstance(others[0].type, TensorType)
        and others[0].type.shape == others[0].type.valid_shape == shape
    )


def _takes_away(stmt: Stmt, value: Var) -> bool:
    """Whether a statement returns the value alone or assembles it into another tensor."""
    if isinstance(stmt, Return):
        return stmt.values.count(value) == 1
    if _op(stmt) != "tensor.assemble" or not isinstance(stmt, Assign):
        return False
    assert isinstance(stmt.value, Call)
    return stmt.value.args[1] is value


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


def _candidates(chain: Chain, room: Room, depths: int = 1) -> list[Blocks]:
    """The blockings that fit, by the bytes that they load, then by how few blocks they make.

    Args:
        depths: how many blocks of K are offered for the same rows and columns.
    """
    (m, n, k), bits = chain.extents, _bits(chain.product)
    line = max(FRACTAL_ROWS, 256 // bits)
    # A store into NZ memory covers all rows from the first on (N-048).
    rows = [m] if _stores_nz(chain.sink) else _parts(m, FRACTAL_ROWS)
    depths_of_k = np.array(_parts(k, line), dtype=np.int64)
    pairs = np.meshgrid(rows, _parts(n, line), indexing="ij")
    bm, bn = (axis.ravel().astype(np.int64) for axis in pairs)
    # A block fits with the least depth or with all of K, or with none in between.
    some = np.zeros(len(bm), dtype=np.bool_)
    for depth in (depths_of_k.min(), k):
        some |= _fits(chain, bm, bn, np.full(len(bm), depth), room, buffers=2)
    bm, bn = (np.repeat(axis[some], len(depths_of_k)) for axis in (bm, bn))
    bk = np.tile(depths_of_k, int(some.sum()))
    fits = _fits(chain, bm, bn, bk, room, buffers=2)
    fits &= (bm < m) | (bn < n) | (bk < k)
    bm, bn, bk = bm[fits], bn[fits], bk[fits]
    down, across = -(-m // bm), -(-n // bn)
    # With all of K in Mat the operand of the outer loop stays there.
    rows_outer = m * k + k * n * down <= m * k * across + k * n
    kept = np.minimum(m * k + k * n * down, m * k * across + k * n)
    loaded = np.where(bk == k, kept, m * k * across + k * n * down)
    best: dict[tuple[int, int], list[Blocks]] = {}
    for at in np.lexsort((-bn, -bk, down * across, loaded)).tolist():
        outer = bool(rows_outer[at]) or int(bk[at]) < k
        found = Blocks(int(bm[at]), int(bn[at]), int(bk[at]), outer)
        same = best.setdefault((found.m, found.n), [])
        whole = depths > 1 and k % found.k == 0 and all(k % other.k for other in same)
        if not same or whole or (len(same) < depths and 2 * found.k <= same[-1].k):
            same.append(found)
    return [blocks for same in best.values() for blocks in same]


def _ranked(chain: Chain, room: Room, rank: Rank | None) -> list[Blocks]:
    """The candidates, those of least traffic by what a kernel with them costs."""
    if rank is None:
        return _candidates(chain, room)
    found = _candidates(chain, room, _DEPTHS)
    short = found[:SHORTLIST]
    return [*sorted(short, key=lambda blocks: rank(chain, blocks)), *found[SHORTLIST:]]


def _stores_nz(sink: Stmt) -> bool:
    value = sink.value if isinstance(sink, Assign) else None
    kind = value.args[0].type if isinstance(value, Call) else None
    return isinstance(kind, TensorType) and kind.layout is TensorLayout.NZ


def _parts(extent: int, step: int) -> list[int]:
    """For each number of blocks of an axis the least whole ones that cover it, and the axis."""
    counts = np.arange(1, -(-extent // step) + 1)
    parts = np.unique(-(-extent // (counts * step)) * step)
    return [*parts[parts < extent].tolist(), extent]


def _fits(
    chain: Chain, m: Ints, n: Ints, k: Ints, room: Room, *, buffers: int
) -> NDArray[np.bool_]:
    """Whether the result of a block fits in Acc, and so many of its operands in Mat.

    A result that is stored as it is and a product of whole K may leave L0C tile by tile.
    """
    rows, cols = (-(-extent // FRACTAL_ROWS) * FRACTAL_ROWS for extent in (m, n))
    # What is left of K after whole blocks may be loaded ahead of the loop.
    deep = k * buffers + chain.extents[2] % k
    in_mat = (rows + cols) * deep * _bits(chain.product) // 8 <= room.mat
    in_acc = rows * cols * FP32.bits // 8 <= room.acc
    if room.by_tiles and not chain.steps:
        in_acc |= k == chain.extents[2]
    fits: NDArray[np.bool_] = in_mat & in_acc
    beside = _bits_beside(chain)
    if beside and room.vec is not None:
        fits &= rows * cols * (FP32.bits + buffers * beside) // 8 <= room.vec
    return fits


def _bits_beside(chain: Chain) -> int:
    """Bits of the matrices that are combined with each element of a result."""
    kinds = [operand.type for operand in chain.operands[2:]]
    return sum(
        kind.dtype.bits
        for kind in kinds
        if isinstance(kind, TensorType) and kind.shape == chain.extents[:2]
    )


def _is_too_large(chain: Chain, room: Room) -> bool:
    m, n, k = (np.array([extent]) for extent in chain.extents)
    return not bool(_fits(chain, m, n, k, room, buffers=1)[0])


def _bits(product: Assign) -> int:
    assert isinstance(product.value, Call)
    left = product.value.args[0].type
    assert isinstance(left, TensorType)
    return left.dtype.bits


def _read(stmt: Stmt) -> list[Var]:
    return [var for expr in expressions_of(stmt) for var in free_vars(expr)]


def _op(stmt: Stmt) -> str:
    return stmt.value.op if isinstance(stmt, Assign) and isinstance(stmt.value, Call) else ""
