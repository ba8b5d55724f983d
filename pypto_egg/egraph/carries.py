"""What loops and branches carry: handles of memory, which stay, and computed tensors."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

from pypto_egg.analysis.provenance import RootKind
from pypto_egg.analysis.regions import Region
from pypto_egg.egraph.accumulators import with_valid
from pypto_egg.egraph.bindings import Bindings
from pypto_egg.egraph.bulk import Term, equal, fact, node
from pypto_egg.egraph.gm import whole_window
from pypto_egg.egraph.seeds import Seeds
from pypto_egg.egraph.skeleton import CarryKind
from pypto_egg.egraph.values import Local, Window, static_extents
from pypto_egg.errors import LoweringError
from pypto_egg.ir.dtype import BOOL
from pypto_egg.ir.expr import BinOp, Expr, Var
from pypto_egg.ir.flows import flow_graph, sources_of
from pypto_egg.ir.fold import same_dims
from pypto_egg.ir.stmt import For, Stmt, While
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import yields_of


@dataclass
class Carries:
    """The carried values of one function.

    Args:
        in_memory: variables whose buffer is an Out parameter that the function gains.
        reordered: variables that stand for memory read in another order, or at an earlier time.
        taken: views that are values: what their memory held where they are written down.
    """

    bindings: Bindings
    seeds: Seeds
    in_memory: Set[Var]
    reordered: Set[Var]
    taken: Set[Var]

    def __post_init__(self) -> None:
        self._flows = flow_graph(self.bindings.effects.regions.statements)

    def kind(self, var: Var) -> CarryKind:
        """Whether a carried variable is a handle, which stays, or a tensor that is computed.

        Raises:
            LoweringError: it is one or the other, depending on the path taken.
        """
        effects = self.bindings.effects
        if not isinstance(var.type, TensorType) or var in self.in_memory:
            return CarryKind.KEPT
        roots = effects.provenance.roots_of(var)
        in_memory = [root.kind in (RootKind.PARAM, RootKind.CALL) for root in roots]
        if all(in_memory) and var not in self.reordered:
            return CarryKind.KEPT
        source = self.written_source(var)
        if source is not None:
            raise LoweringError(
                f"'{var.name}' is a computed value on one path and '{source.name}' on another, "
                "a tensor in global memory that this function writes",
                span=var.span,
                hint=f"copy '{source.name}' into a computed value or a slice before, or write "
                "to it on every path",
            )
        return CarryKind.TENSOR

    def written_source(self, var: Var) -> Var | None:
        """A name of memory that the function writes and that the variable may stand for."""
        effects = self.bindings.effects
        for source in sources_of(var, self._flows):
            roots = effects.provenance.roots_of(source)
            named = any(root.kind in (RootKind.PARAM, RootKind.CALL) for root in roots)
            if named and source not in self.taken and not effects.is_read_only(source):
                return source
        return None

    def bind(
        self, var: Var, kind: CarryKind, term: Term, home: Region, *sources: Local | None
    ) -> None:
        """Let a variable of a loop or a branch stand for its handle, or for the term.

        Args:
            sources: what a branch merges, or what a loop starts from (see `seed`).
        """
        if not isinstance(var.type, TensorType):
            return
        if kind is CarryKind.KEPT:
            self.bindings.values[var] = whole_window(var, var.type)
            return
        known = [source for source in sources if source is not None]
        defined = len(known) == len(sources) and all(source.defined for source in known)
        settled = all(source.settled for source in known)
        type_ = replace(var.type, view=known[0].type.view) if known else var.type
        local = Local(term, type_, home, defined=defined, settled=settled)
        self.bindings.values[var] = self.bindings.computed(local, var.name)

    def seed(self, stmt: For | While, position: int) -> Local:
        """What a loop starts a carry from, valid in the rows that the loop's products have."""
        init = self.value(stmt.inits[position], stmt, stmt.iter_args[position])
        yielded = yields_of(stmt.body)[position]
        rows = self.seeds.rows(stmt, position, init.type, yielded)
        if rows is None:
            return init
        starts = (rows, init.type.shape[-1])
        valid = self.seeds.accumulated_valid(stmt.inits[position], yielded)
        settled = valid is None or same_dims(valid, starts)
        return replace(init, type=with_valid(init.type, *starts), settled=settled)

    def value(self, expr: Expr, stmt: Stmt, arg: Var) -> Local:
        """What is passed to a carry, as a computed tensor.

        Raises:
            LoweringError: its type is not the carry's.
        """
        value = self.bindings.value(expr, stmt)
        local = self.bindings.local(value, stmt, arg.name, "carry")
        assert isinstance(arg.type, TensorType)
        if local.type.dtype != arg.type.dtype or not same_dims(local.type.shape, arg.type.shape):
            raise LoweringError(
                f"loop carry '{arg.name}' changes its type from {arg.type} to {local.type}",
                span=stmt.span,
                hint="cast or slice the yielded value to the type of the initial one",
            )
        return local

    def yielded(self, expr: Expr, stmt: Stmt, arg: Var) -> Local:
        """What a block yields for a carry, as a computed tensor.

        Raises:
            LoweringError: it is memory that is written, or its type is not the carry's.
        """
        self._refuse_written(expr, stmt, arg)
        return self.value(expr, stmt, arg)

    def close(
        self,
        stmt: For | While,
        position: int,
        init: Local,
        yielded: Expr,
        inner: Region,
        region: Region,
    ) -> None:
        """State what a loop carries round, and how an accumulator starts."""
        facts = self.bindings.facts
        arg = stmt.iter_args[position]
        value = self.yielded(yielded, stmt, arg)
        facts.add(fact("carry", inner.id, position, region.id, init.term, value.term))
        if self.seeds.is_created(stmt, position):
            rows = static_extents(init.type)[0] if init.type.rank < 2 else init.type.valid_shape[-2]
            facts.add(equal(node("seed_rows", init.term), facts.keys.index(rows)))
        if self.seeds.starts_at_zero(stmt, position, yielded):
            assert isinstance(stmt, For)
            assert isinstance(arg.type, TensorType)
            key = len(facts.keys.created) + 1
            facts.keys.created[key] = arg.type
            first = facts.keys.scalar(BinOp("==", stmt.var, stmt.start, BOOL))
            facts.add(fact("seeded", inner.id, position, key, first))

    def _refuse_written(self, yielded: Expr, stmt: Stmt, arg: Var) -> None:
        value = self.bindings.value(yielded, stmt)
        if not isinstance(value, Window) or value.taken is not None:
            return
        if not self.bindings.effects.is_read_only(value.handle):
            raise LoweringError(
                f"'{arg.name}' is carried as a value, but tensor '{value.handle.name}', which is "
                "yielded for it, is written in this function",
                span=stmt.span,
                hint="yield a computed value, or carry the tensor itself on every path",
            )
