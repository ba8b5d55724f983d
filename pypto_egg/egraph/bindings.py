"""What variables stand for while a function is loaded, and what is asked of the e-graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pypto_egg.analysis.effects import Effects
from pypto_egg.analysis.regions import Region
from pypto_egg.egraph.bulk import fact, node
from pypto_egg.egraph.facts import Facts
from pypto_egg.egraph.terms import WIDEST_EXACT
from pypto_egg.egraph.values import Local, Value, deepest
from pypto_egg.egraph.windows import Windows, barrier_of
from pypto_egg.errors import LoweringError
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.stmt import Stmt
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import free_vars


@dataclass
class Bindings:
    """The values of one function's variables.

    Args:
        hoist: whether a read-only load may leave the loop in which it is written.
        values: variable -> the computed tensor or the window of memory that it is.
        roots: statement keys whose e-classes must be extracted.
    """

    effects: Effects
    facts: Facts
    windows: Windows
    hoist: bool
    values: dict[Var, Value] = field(default_factory=dict)
    roots: list[int] = field(default_factory=list)

    def operand(self, call: Call, index: int, stmt: Stmt) -> Value | None:
        """What an operand of a call stands for; None for one that is not a tensor."""
        if index >= len(call.args) or not isinstance(call.args[index].type, TensorType):
            return None
        return self.value(call.args[index], stmt)

    def value(self, expr: Expr, stmt: Stmt) -> Value:
        """What an expression stands for.

        Raises:
            LoweringError: it is not a variable that a statement before has defined.
        """
        if isinstance(expr, Var) and expr in self.values:
            return self.values[expr]
        raise LoweringError(
            "an operand that is not a variable defined before", span=stmt.span,
            hint="give nested calls statements of their own",
        )  # fmt: skip

    def local(self, value: Value, stmt: Stmt, name: str, consumer: str) -> Local:
        """The value as a term; a window becomes the content of the memory that it is."""
        local = value if isinstance(value, Local) else self.windows.load(value, stmt, name)
        self.windows.used_by(local, consumer)
        return local

    def home(self, region: Region, operands: list[Region], call: Call) -> Region:
        """The outermost region in which a call's result can be computed."""
        if not self.hoist or not operands:
            return region
        regions = self.effects.regions
        scalars = [regions.region_of_var(v) for arg in call.args for v in free_vars(arg)
                   if not isinstance(v.type, TensorType)]  # fmt: skip
        return deepest(barrier_of(region), *operands, *scalars)

    def computed(self, local: Local, name: str | None) -> Local:
        """The value, described to the rules as one that the function computes."""
        self.facts.describe(local, name)
        self.facts.add(fact("computed", local.term))
        return local

    def converted(self, local: Local, dtype: DType, name: str | None) -> Local:
        """The value in another element type, rounded to nearest even where it must be."""
        if local.type.dtype == dtype:
            return local
        term = self.facts.bind(node("tensor.cast", local.term, dtype.name, WIDEST_EXACT))
        type_ = replace(local.type, dtype=dtype)
        return self.computed(Local(term, type_, local.home, defined=local.defined), name)

    def store_root(self, local: Local, target: TensorType, region: Region) -> int:
        """The key of a store into memory of this type."""
        key = self.root_key()
        stored = self.converted(local, target.dtype, None)
        self.facts.add(fact("store_root", key, stored.term, region.id, target.dtype.name))
        return key

    def root_key(self) -> int:
        """A new key for something that must be extracted."""
        self.roots.append(len(self.roots) + 1)
        return self.roots[-1]
