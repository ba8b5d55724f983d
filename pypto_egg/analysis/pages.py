"""Batched products of NZ memory, as loops over their pages.

A cube operand from NZ memory is one matrix: a blocked window of several planes lies plane after
plane, which is not the order of a Mat tile that stacks their rows (N-041, N-060 say the same of
stores). PyPTO unrolls a batched product into its pages behind the conversion (C-169). Where an
operand is NZ, each page is a product of its own here, with a window of its own of each operand,
and its result is assembled where the whole result would have been.

A sum over K is carried page by page too: the loop over pages stands around the loop over K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pypto_egg.analysis.dead import is_pure_tensor_op
from pypto_egg.analysis.effects import Effects, analyse_effects
from pypto_egg.analysis.overlaps import Pairs
from pypto_egg.analysis.page_statements import (
    PRODUCTS,
    Page,
    batch_of,
    batched_product,
    is_create,
    rank_of,
)
from pypto_egg.analysis.provenance import RootKind
from pypto_egg.ir.dtype import INDEX
from pypto_egg.ir.enums import LoopKind, TensorLayout
from pypto_egg.ir.expr import Call, ConstInt, Expr, Var, dims_of, tuple_of
from pypto_egg.ir.fold import Dim, dim_add, dim_product, same_dims
from pypto_egg.ir.names import VersionNames
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Block, For, Stmt, Yield, with_fields
from pypto_egg.ir.types import ScalarType, TensorType
from pypto_egg.ir.visit import blocks_of, defined_by, expressions_of, free_vars, walk, yields_of
from pypto_egg.ops.registry import lookup, make_call


def with_pages(function: Function, program: Program, overlapping: Pairs) -> Function:
    """The function with its batched products of NZ memory made page by page.

    Args:
        program: where called functions are looked up.
        overlapping: parameters that callers may give the same memory.

    Raises:
        NzError: the pages of a sum are not sums of their own; names the operand and the sum.
    """
    if not any(_reads_nz_pages(stmt) for stmt in walk(function.body)):
        return function
    effects = analyse_effects(function, program, overlapping)
    return replace(function, body=_Pager(function, effects).block(function.body))


def _reads_nz_pages(stmt: Stmt) -> bool:
    call = batched_product(stmt)
    if call is None:
        return False
    factors = [call.args[place].type for place in PRODUCTS[call.op]]
    tensors = [kind for kind in factors if isinstance(kind, TensorType)]
    # Pages that are not valid have no form of their own.
    whole = all(same_dims(kind.valid_shape[:-2], kind.shape[:-2]) for kind in tensors)
    return whole and any(kind.layout is TensorLayout.NZ and kind.rank > 2 for kind in tensors)


@dataclass
class _Group:
    """Statements of one block that make sums over K together, and are paged together.

    Args:
        links: what starts the sums: created tensors and earlier products, in program order.
        root: the product or the loop that makes the results.
        results: the results.
    """

    links: list[Stmt]
    root: Assign | For
    results: tuple[Var, ...]


class _Pager:
    """Rewrites one function."""

    def __init__(self, function: Function, effects: Effects) -> None:
        self.names = VersionNames(function)
        self.effects = effects
        self.readers: dict[Var, list[Stmt]] = {}
        self.position: dict[int, int] = {}
        for stmt in walk(function.body):
            self.position[id(stmt)] = len(self.position)
            for expr in expressions_of(stmt):
                for var in free_vars(expr):
                    self.readers.setdefault(var, []).append(stmt)

    def block(self, body: Block) -> Block:
        groups = self._groups(body)
        linked = {id(stmt) for group in groups for stmt in group.links}
        by_root = {id(group.root): group for group in groups}
        sinks = {id(sink): group for group in groups if (sink := self._sink(group, body))}
        out: list[Stmt] = []
        for stmt in body:
            if id(stmt) in linked:
                continue
            if id(stmt) in by_root:
                group = by_root[id(stmt)]
                if group not in sinks.values():
                    out.extend(self._created(group))
            elif id(stmt) in sinks:
                out.append(self._assembled(sinks[id(stmt)], stmt))
            else:
                inner = {name: self.block(nested) for name, nested in blocks_of(stmt)}
                out.append(with_fields(stmt, **inner) if inner else stmt)
        return tuple(out)

    def _in_memory(self, value: Var) -> bool:
        roots = self.effects.provenance.roots_of(value)
        return bool(roots) and all(root.kind is RootKind.PARAM for root in roots)

    # --- what belongs together -------------------------------------------------------------------

    def _groups(self, body: Block) -> list[_Group]:
        found: list[_Group] = []
        makers = {stmt.var: stmt for stmt in body if isinstance(stmt, Assign)}
        for stmt in body:
            if isinstance(stmt, For):
                if not any(map(_reads_nz_pages, walk(stmt.body))) or not self._is_sum(stmt):
                    continue
                group = _Group([], stmt, stmt.results)
                starts: Sequence[Expr] = stmt.inits
            elif isinstance(stmt, Assign) and _reads_nz_pages(stmt):
                group, starts = _Group([], stmt, (stmt.var,)), _starts(stmt)
            else:
                continue
            for start in starts:
                self._link(start, group, found, makers)
            found.append(group)
        return found

    def _link(
        self, start: Expr, group: _Group, found: list[_Group], makers: dict[Var, Assign]
    ) -> None:
        """Take what starts a sum into its group, if nobody else reads it."""
        if not isinstance(start, Var) or len(self.readers[start]) != 1:
            return
        before = next((other for other in found if other.results == (start,)), None)
        if before is not None and self._may_move(before.root):
            found.remove(before)
            group.links += [*before.links, before.root]
            return
        maker = makers.get(start)
        if maker is None or before is not None:
            return
        if is_create(maker) or (batched_product(maker) and self._may_move(maker)):
            group.links.append(maker)
            for earlier in _starts(maker):
                self._link(earlier, group, found, makers)
            group.links.sort(key=lambda stmt: self.position[id(stmt)])

    def _may_move(self, stmt: Stmt) -> bool:
        """Whether a product reads the same wherever it stands."""
        return all(
            self.effects.is_read_only(call.args[place])
            for inner in walk((stmt,))
            if (call := batched_product(inner)) is not None
            for place in PRODUCTS[call.op]
        )

    def _is_sum(self, loop: For) -> bool:
        """Whether a loop does nothing but add products to the batched sums that it carries."""
        if not loop.iter_args or any(rank_of(var) < 3 for var in loop.iter_args):
            return False
        first = batch_of(loop.iter_args[0])
        if not all(same_dims(batch_of(var), first) for var in loop.iter_args):
            return False
        for stmt in loop.body:
            if isinstance(stmt, For):
                if not self._is_sum(stmt):
                    return False
            elif isinstance(stmt, Assign):
                if batched_product(stmt) is None and not _is_pure(stmt.value):
                    return False
            elif not isinstance(stmt, Yield):
                return False
        return all(self._is_carried(var, loop) for var in loop.iter_args) and all(
            isinstance(value, Var) and self._is_made_by_product(value, loop)
            for value in yields_of(loop.body)
        )

    def _is_carried(self, var: Var, loop: For) -> bool:
        """Whether a sum is read once, by the product or the loop that adds to it."""
        readers = self.readers.get(var, [])
        if len(readers) != 1 or not any(readers[0] is stmt for stmt in loop.body):
            return False
        reader = readers[0]
        return var in (reader.inits if isinstance(reader, For) else _starts(reader))

    def _is_made_by_product(self, value: Var, loop: For) -> bool:
        makers = [stmt for stmt in loop.body if isinstance(stmt, For) or batched_product(stmt)]
        return any(value in defined_by(stmt) for stmt in makers)

    def _sink(self, group: _Group, body: Block) -> Assign | None:
        """The statement of the same block that assembles the only result into another tensor."""
        if len(group.results) != 1 or len(self.readers.get(group.results[0], [])) != 1:
            return None
        if not all(map(self._may_move, (*group.links, group.root))):
            return None
        (reader,) = self.readers[group.results[0]]
        call = reader.value if isinstance(reader, Assign) else None
        if not isinstance(call, Call) or call.op != "tensor.assemble":
            return None
        assert isinstance(reader, Assign)
        plain = call.args[1] is group.results[0] and call.kwarg("atomic") is None
        here = any(reader is stmt for stmt in body)
        return reader if plain and here and rank_of(call) == rank_of(group.results[0]) else None

    # --- the loop over pages ---------------------------------------------------------------------

    def _created(self, group: _Group) -> list[Stmt]:
        """The results as tensors of their own, filled page by page."""
        out: list[Stmt] = []
        seeds = []
        for result in group.results:
            kind = result.type
            assert isinstance(kind, TensorType)
            call = make_call("tensor.create", (tuple_of(kind.shape),), {"dtype": kind.dtype})
            seeds.append(Var(self.names.fresh(result.name, "pages"), call.type))
            out.append(Assign(seeds[-1], call, span=group.root.span))
        zero = (0,) * rank_of(group.results[0])
        return [*out, self._loop(group, seeds, [zero] * len(seeds), group.results)]

    def _assembled(self, group: _Group, sink: Stmt) -> Stmt:
        """The pages of the only result, assembled into the tensor that would have taken it."""
        assert isinstance(sink, Assign)
        assert isinstance(sink.value, Call)
        whole, _, offsets = sink.value.args
        return self._loop(group, [whole], [dims_of(offsets)], (sink.var,))

    def _loop(
        self,
        group: _Group,
        wholes: Sequence[Expr],
        offsets: Sequence[tuple[Dim, ...]],
        results: tuple[Var, ...],
    ) -> For:
        base = group.results[0]
        index = Var(self.names.fresh(base.name, "page"), ScalarType(INDEX))
        paged = Page(self.names, self._in_memory, index, batch_of(base))
        body: list[Stmt] = []
        for stmt in (*group.links, group.root):
            paged.statement(stmt, body)
        carried, stored = [], []
        for result, whole, start in zip(group.results, wholes, offsets, strict=True):
            taken = Var(self.names.fresh(base.name, "whole"), whole.type)
            place = (*map(dim_add, start, (*paged.at, 0, 0)),)
            store = make_call("tensor.assemble", (taken, paged.parts[result], tuple_of(place)))
            carried.append(taken)
            stored.append(Var(self.names.fresh(base.name, "stored"), store.type))
            body.append(Assign(stored[-1], store, span=group.root.span))
        body.append(Yield(tuple(stored)))
        count = dim_product(batch_of(base))
        stop = count if isinstance(count, Expr) else ConstInt(count, INDEX)
        zero, one = ConstInt(0, INDEX), ConstInt(1, INDEX)
        return For(
            LoopKind.range, index, zero, stop, one, tuple(body), tuple(carried), tuple(wholes),
            results, span=group.root.span,
        )  # fmt: skip


def _starts(stmt: Stmt) -> tuple[Expr, ...]:
    """The sum that a product adds to."""
    call = batched_product(stmt)
    return call.args[:1] if call is not None and call.op == "tensor.matmul_acc" else ()


def _is_pure(value: Expr) -> bool:
    decl = lookup(value.op) if isinstance(value, Call) else None
    return not isinstance(value, Call) or (decl is not None and is_pure_tensor_op(decl))
