"""Scalar stores that can take the bulk path (C-069 to C-085).

Two forms are rewritten before bulk and scalar stores to one tensor are refused:

- a loop that fills a contiguous run with a constant becomes `tensor.full` and `tensor.assemble`;
- a tensor that is filled whole and then only updated by scalars is updated on a local value, which
  is stored once, at the end.

What meets none of the conditions stays as it is: scalar stores alone are legal (C-076).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from pypto_egg.analysis.overlaps import Pairs, near
from pypto_egg.analysis.provenance import Provenance, RootKind, provenance_of
from pypto_egg.ir.enums import LoopKind
from pypto_egg.ir.expr import Call, ConstFloat, ConstInt, Expr, Var, as_expr, dims_of, tuple_of
from pypto_egg.ir.fold import dim_add, dim_sub, fold, provably_le, same_dims
from pypto_egg.ir.names import VersionNames
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, Eval, For, Return, Stmt, with_fields
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import (
    blocks_of,
    expressions_of,
    free_vars,
    substitute_block,
    walk,
)
from pypto_egg.ops.registry import make_call

# A bulk store moves whole rows of this many bytes (C-075).
ROW_BYTES = 32


def with_bulk_stores(function: Function, overlapping: Pairs = frozenset()) -> Function:
    """The function with its constant fills and its staged updates on the bulk path.

    Args:
        overlapping: parameters that callers may give the same memory. Updates of those are not
            staged, as they may be seen under the other name before the end.
    """
    shared = frozenset(function.params[i].var for pair in overlapping for i in pair)
    return _with_staging(_with_fills(function, overlapping), shared)


# --- constant fill loops -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Fill:
    """What one `tensor.write` of a fill loop fills: a run of `extents` from `offsets`."""

    target: Var
    value: Expr
    offsets: tuple[int | Expr, ...]
    extents: tuple[int, ...]


def _with_fills(function: Function, overlapping: Pairs) -> Function:
    loops = {id(stmt): found for stmt in walk(function.body) if (found := _fills(stmt))}
    if not loops:
        return function
    memory = provenance_of(function)
    inside = {id(stmt) for loop in walk(function.body) if id(loop) in loops
              for _, body in blocks_of(loop) for stmt in body}  # fmt: skip
    others = [write_of(stmt) for stmt in walk(function.body) if id(stmt) not in inside]
    scalar = {root for call in others if call for root in memory.roots_of(call.args[0])}
    scalar |= {other for root in scalar for other in near(root, memory, overlapping)}
    loops = {
        at: fills
        for at, fills in loops.items()
        if all(_in_memory(fill.target, memory) for fill in fills)
        # Beside a scalar store that stays, a bulk store would be the mixture that is refused.
        and not any(root in scalar for fill in fills for root in memory.roots_of(fill.target))
        and all(_apart(one, other, memory, overlapping) for one, other in combinations(fills, 2))
    }
    if not loops:
        return function
    names = VersionNames(function)
    return replace(function, body=_replaced(function.body, loops, names))


def _in_memory(target: Var, memory: Provenance) -> bool:
    """Whether a tensor lies in global memory; what is on chip needs no store."""
    return all(r.kind in (RootKind.PARAM, RootKind.CALL) for r in memory.roots_of(target))


def _apart(one: _Fill, other: _Fill, memory: Provenance, overlapping: Pairs) -> bool:
    """Whether it does not matter which of two writes of a loop comes last on an element."""
    if one.value == other.value:
        return True
    if one.target != other.target:
        filled = {
            r for root in memory.roots_of(one.target) for r in near(root, memory, overlapping)
        }
        return filled.isdisjoint(memory.roots_of(other.target))
    pairs = zip(one.offsets, one.extents, other.offsets, other.extents, strict=True)
    return any(
        provably_le(dim_add(low, extent), start) or provably_le(dim_add(start, size), low)
        for low, extent, start, size in pairs
    )


def _fills(stmt: Stmt) -> tuple[_Fill, ...]:
    """What a loop fills; nothing if it is not a fill loop (C-071 to C-075)."""
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.range or stmt.iter_args or stmt.attrs:
        return ()
    trips = stmt.stop
    if not (_is(stmt.start, 0) and _is(stmt.step, 1) and isinstance(trips, ConstInt)):
        return ()
    found = [_fill(inner, stmt.var, trips.value) for inner in stmt.body]
    fills = tuple(fill for fill in found if fill is not None)
    return fills if trips.value > 0 and len(fills) == len(found) else ()


def _fill(stmt: Stmt, index: Var, trips: int) -> _Fill | None:
    call = write_of(stmt)
    if call is None or not isinstance(stmt, Eval) or not isinstance(call.args[0], Var):
        return None
    target, indices, value = call.args
    assert isinstance(target, Var)
    assert isinstance(target.type, TensorType)
    if not isinstance(value, ConstInt | ConstFloat):
        return None
    dims = dims_of(indices)
    moving = [i for i, dim in enumerate(dims) if isinstance(dim, Expr) and index in free_vars(dim)]
    if len(moving) != 1 or any(extent != 1 for extent in target.type.shape[moving[0] + 1 :]):
        return None
    axis = moving[0]
    start = dim_sub(dims[axis], index)
    if isinstance(start, Expr) and index in free_vars(fold(start)):
        return None
    if trips * target.type.dtype.bits % (8 * ROW_BYTES):
        return None
    offsets = (*dims[:axis], start, *dims[axis + 1 :])
    extents = tuple(trips if i == axis else 1 for i in range(len(dims)))
    return _Fill(target, value, offsets, extents)


def _replaced(block: Block, loops: dict[int, tuple[_Fill, ...]], names: VersionNames) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        if id(stmt) in loops:
            for fill in loops[id(stmt)]:
                out.extend(_bulk(fill, names))
            continue
        inner = {name: _replaced(body, loops, names) for name, body in blocks_of(stmt)}
        same = all(body is getattr(stmt, name) for name, body in inner.items())
        out.append(stmt if same else with_fields(stmt, **inner))
    return tuple(out) if len(out) != len(block) or any(
        a is not b for a, b in zip(out, block, strict=True)
    ) else block  # fmt: skip


def _bulk(fill: _Fill, names: VersionNames) -> list[Stmt]:
    assert isinstance(fill.target.type, TensorType)
    shape = tuple_of(tuple(as_expr(extent) for extent in fill.extents))
    full = make_call("tensor.full", (shape, fill.value), {"dtype": fill.target.type.dtype})
    part = Var(names.fresh("t", "fill"), full.type)
    store = make_call("tensor.assemble", (fill.target, part, tuple_of(fill.offsets)))
    return [Assign(part, full), Eval(store)]


# --- staged updates ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Staged:
    """A fill of a whole tensor that only scalar stores follow.

    Args:
        at: the position of the fill's store in the function's body.
        handles: the names of the tensor that the stores go through.
    """

    at: int
    local: Var
    handles: frozenset[Expr]


def _with_staging(function: Function, shared: frozenset[Var]) -> Function:
    for at, stmt in enumerate(function.body):
        staged = _staged(function, at, stmt, shared)
        if staged is not None:
            return _with_staging(_moved(function, staged), shared)
    return function


def _staged(function: Function, at: int, stmt: Stmt, shared: frozenset[Var]) -> _Staged | None:
    """The staging that starts with a statement, if one does (C-077 to C-083)."""
    store = stmt.value if isinstance(stmt, Assign | Eval) else None
    if not isinstance(store, Call) or store.op != "tensor.assemble" or store.kwarg("atomic"):
        return None
    target, local = store.args[:2]
    if not isinstance(local, Var) or not _covers(store) or not _is_parameter(function, target):
        return None
    if target in shared:
        return None
    made = next((s for s in function.body[:at] if isinstance(s, Assign) and s.var is local), None)
    if made is None or not isinstance(made.value, Call) or made.value.op != "tensor.full":
        return None
    if _uses(function.body, local) != 1:
        return None
    handles: set[Expr] = {target}
    if isinstance(stmt, Assign):
        handles.add(stmt.var)
    writes = 0
    for later in walk(function.body[at + 1 :]):
        write = write_of(later)
        if write is None or write.args[0] not in handles:
            continue
        writes += 1
        if isinstance(later, Assign):
            handles.add(later.var)
    if not writes or not _only_written(function, stmt, handles):
        return None
    return _Staged(at, local, frozenset(handles))


def _only_written(function: Function, first: Stmt, handles: set[Expr]) -> bool:
    """Whether the handles occur in scalar stores after the fill, in its store and in returns."""
    after = False
    for stmt in walk(function.body):
        if stmt is first:
            after = True
            continue
        if isinstance(stmt, Return):
            continue
        used = [v for expr in expressions_of(stmt) for v in free_vars(expr) if v in handles]
        write = write_of(stmt)
        allowed = 1 if after and write is not None and write.args[0] in handles else 0
        if len(used) != allowed:
            return False
    return True


def _moved(function: Function, staged: _Staged) -> Function:
    """The function whose scalar stores go to the local value, which is stored at the end."""
    body = list(function.body)
    store = body.pop(staged.at)
    result = store.var if isinstance(store, Assign) else None
    end = next((i for i, s in enumerate(body) if isinstance(s, Return)), len(body))
    last = body[end:]
    if result is not None:
        same = dict.fromkeys((h for h in staged.handles if isinstance(h, Var)), result)
        last = list(substitute_block(tuple(last), same))
    local = {h: staged.local for h in staged.handles if isinstance(h, Var)}
    before = [*body[: staged.at], *substitute_block(tuple(body[staged.at : end]), local)]
    return replace(function, body=(*before, store, *last))


def _covers(store: Call) -> bool:
    target, part = store.args[0].type, store.args[1].type
    assert isinstance(target, TensorType)
    assert isinstance(part, TensorType)
    at_start = all(dim == 0 for dim in dims_of(store.args[2]))
    whole = target.view is None and target.dtype == part.dtype
    return at_start and whole and same_dims(target.shape, part.shape)


def _is_parameter(function: Function, handle: Expr) -> bool:
    return any(param.var is handle or param.var == handle for param in function.params)


def _uses(block: Block, var: Var) -> int:
    return sum(free_vars(e).count(var) for stmt in walk(block) for e in expressions_of(stmt))


def write_of(stmt: Stmt) -> Call | None:
    """The scalar store that a statement makes, if it does."""
    value = stmt.value if isinstance(stmt, Assign | Eval) else None
    return value if isinstance(value, Call) and value.op == "tensor.write" else None


def _is(expr: Expr, value: int) -> bool:
    return isinstance(expr, ConstInt) and expr.value == value
