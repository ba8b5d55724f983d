"""What loops start their accumulators with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pypto_egg.analysis.effects import Effects
from pypto_egg.analysis.regions import trip_count
from pypto_egg.egraph.accumulators import product_valid
from pypto_egg.egraph.values import static_extents
from pypto_egg.ir.expr import Call, ConstFloat, ConstInt, Expr, Var
from pypto_egg.ir.flows import flow_graph, sources_of
from pypto_egg.ir.fold import provably_equal, same_dims
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, For, While
from pypto_egg.ir.types import FRACTAL_ROWS, TensorType
from pypto_egg.ir.visit import expressions_of, free_vars, walk


@dataclass(frozen=True)
class Seeds:
    """The initial values of a function's loops; `seeds_of` makes it.

    Args:
        variables: variables that some loop starts with.
        uses: how often each variable is read.
        flows: variables and those whose value they may take over directly.
    """

    effects: Effects
    variables: frozenset[Expr]
    uses: Counter[Expr]
    flows: dict[Var, list[Var]]

    def is_created(self, stmt: For | While, position: int) -> bool:
        """Whether a carry starts from a fresh buffer, or from one filled with a constant."""
        seed = self._definition(stmt.inits[position])
        return isinstance(seed, Call) and seed.op in ("tensor.create", "tensor.full")

    def rows(
        self, stmt: For | While, position: int, init: TensorType, yielded: Expr
    ) -> int | Expr | None:
        """With how many valid rows a created accumulator starts (C-270, C-272); None: others.

        `mad` writes with the pitch of the valid rows, so a full-box seed of a narrower product
        would be read with another one. A single fractal has one pitch only (C-275), and rows that
        are computed in the loop cannot be named before it (C-276): these stay as they are.
        """
        if init.rank != 2 or not self.is_created(stmt, position):
            return None
        rows = static_extents(init)[0]
        shared = self.uses[stmt.inits[position]] > 1
        if shared or not isinstance(rows, int) or rows <= FRACTAL_ROWS:
            return rows
        valid = self.accumulated_valid(stmt.inits[position], yielded)
        if valid is None or not provably_equal(valid[1], init.shape[1]):
            return rows
        inside = self.effects.regions.opened_by(stmt)[0]
        used = free_vars(valid[0]) if isinstance(valid[0], Expr) else ()
        regions = [self.effects.regions.region_of_var(var) for var in used]
        if any(self.effects.regions.is_ancestor(inside, region) for region in regions):
            return rows
        return valid[0]

    def accumulated_valid(self, init: Expr, yielded: Expr) -> tuple[int | Expr, int | Expr] | None:
        """The valid rows and columns of the products that a yielded sum ends with, if they agree.

        Branches and inner loops are looked through, as any of their products may be the last one.
        A path without a product leaves what the loop started with, `init`.
        """
        if not (isinstance(init, Var) and isinstance(yielded, Var)):
            return None
        found: list[tuple[int | Expr, int | Expr]] = []
        starts = sources_of(init, self.flows)
        for source in sources_of(yielded, self.flows):
            if source in starts:
                continue
            call = self._definition(source)
            if not (isinstance(call, Call) and call.op in ("tensor.matmul", "tensor.matmul_acc")):
                return None
            found.append(product_valid(call))
        agreed = found and all(same_dims(found[0], valid) for valid in found[1:])
        return found[0] if agreed else None

    def starts_at_zero(self, stmt: For | While, position: int, yielded: Expr) -> bool:
        """Whether the carry is a zeroed accumulator that the body only accumulates into."""
        if not isinstance(stmt, For) or not (trip_count(stmt) or 0) > 0:
            return False
        arg, seed = stmt.iter_args[position], self._definition(stmt.inits[position])
        if not (isinstance(seed, Call) and seed.op == "tensor.full" and _is_zero(seed.args[1])):
            return False
        accumulated = self._definition(yielded)
        if not (isinstance(accumulated, Call) and accumulated.op == "tensor.matmul_acc"):
            return False
        uses = sum(free_vars(e).count(arg) for s in walk(stmt.body) for e in expressions_of(s))
        return uses == 1 and accumulated.args[0] is arg

    def _definition(self, expr: Expr) -> Expr:
        if not isinstance(expr, Var):
            return expr
        for stmt in self.effects.regions.statements:
            if isinstance(stmt, Assign) and stmt.var is expr:
                return stmt.value
        return expr


def seeds_of(function: Function, effects: Effects) -> Seeds:
    """The loops' initial values."""
    uses: Counter[Expr] = Counter()
    inits: set[Expr] = set()
    for stmt in walk(function.body):
        uses.update(var for expr in expressions_of(stmt) for var in free_vars(expr))
        if isinstance(stmt, For | While):
            inits.update(init for init in stmt.inits if isinstance(init, Var))
    return Seeds(effects, frozenset(inits), uses, flow_graph(effects.regions.statements))


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, ConstInt | ConstFloat) and expr.value == 0
