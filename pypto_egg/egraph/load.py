"""An InCore function as e-graph actions and a skeleton.

Computed tensors become terms, tensors in global memory become windows of handles, and whatever
has an effect or steers control flow goes into the skeleton. What rules need to know of a tensor
(extents, dtype, where it may be computed, whether its memory is written) is asserted as facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pypto_egg.analysis.cache_policy import cache_policies, policy_of
from pypto_egg.analysis.effects import Effects, analyse_effects
from pypto_egg.analysis.overlaps import Pairs
from pypto_egg.analysis.regions import Region, RegionKind
from pypto_egg.egraph.accumulators import product_type, with_whole_factors
from pypto_egg.egraph.bindings import Bindings
from pypto_egg.egraph.bulk import Action, equal, fact, node
from pypto_egg.egraph.calls import check_passed
from pypto_egg.egraph.carries import Carries
from pypto_egg.egraph.direct import DirectOutput, direct_outputs
from pypto_egg.egraph.facts import Facts
from pypto_egg.egraph.gm import (
    changes_layout,
    reordered_views,
    view_window,
    whole_window,
)
from pypto_egg.egraph.seeds import seeds_of
from pypto_egg.egraph.skeleton import (
    Branch,
    CarryKind,
    DirectExit,
    Exit,
    ExitStore,
    Item,
    Keep,
    Loop,
    ScalarRead,
    ScopeBlock,
    Skeleton,
    Store,
)
from pypto_egg.egraph.terms import (
    check_holdable,
    computed_term,
    operand_dtype,
    unsupported,
)
from pypto_egg.egraph.values import Keys, Local, Window, static_extents
from pypto_egg.egraph.windows import Windows
from pypto_egg.errors import LoweringError
from pypto_egg.ir.enums import Direction
from pypto_egg.ir.expr import (
    Call,
    Expr,
    TupleExpr,
    Var,
    as_expr,
    dims_of,
    tuple_of,
)
from pypto_egg.ir.fold import const_value, dim_add
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Return, Scope, Stmt, While, Yield
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import walk, yields_of
from pypto_egg.ops.registry import lookup
from pypto_egg.ops.snapshots import VIEWS, snapshots


@dataclass
class Loaded:
    """A function ready for saturation.

    Args:
        actions: what is registered in the e-graph.
        skeleton: what emission walks.
        keys: what the strings in the e-graph stand for.
        roots: statement keys whose e-classes must be extracted.
        shared: windows that a product and a vector op both read and that may be loaded only once.
    """

    actions: list[Action]
    skeleton: Skeleton
    keys: Keys
    roots: list[int]
    shared: list[Window]


@dataclass
class Loader:
    """Loads one function; `load_function` is the entry.

    Args:
        hoist: whether a read-only load may leave the loop in which it is written.
        duplicate: whether a window with a cube and a vector consumer may be loaded twice.
        direct: whether a loop that assembles a returned tensor stores its parts to memory.
    """

    function: Function
    effects: Effects
    hoist: bool
    duplicate: bool
    direct: bool
    keys: Keys = field(default_factory=Keys)
    _direct: dict[Var, DirectOutput] = field(default_factory=dict)
    _seeded: dict[Var, Var] = field(default_factory=dict)
    _in_memory: set[Var] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.facts = Facts(self.keys)
        self._policies = cache_policies(self.function)
        self._windows = Windows(self.effects, self.facts, self._policies, self.hoist)
        self._seeds = seeds_of(self.function, self.effects)
        self.bindings = Bindings(self.effects, self.facts, self._windows, self.hoist)
        for direct in direct_outputs(self.function) if self.direct else ():
            self._direct[direct.result] = direct
            self._seeded[direct.seed] = direct.out
            self._in_memory.update((direct.seed, *direct.carried))
        self._taken = snapshots(self.function)
        reordered = reordered_views(self.function, self._written_views())
        self._carries = Carries(self.bindings, self._seeds, self._in_memory, reordered, self._taken)

    def load(self) -> Loaded:
        for param in self.function.params:
            if isinstance(param.var.type, TensorType):
                self.bindings.values[param.var] = whole_window(param.var, param.var.type)
        items = self._block(self.function.body, self.effects.regions.root)
        shared = self._windows.settle(self.duplicate)
        if self.duplicate:
            self._windows.join()
        regions = self.effects.regions
        around = {r.id: r.parent.id for r in regions.regions if r.parent is not None}
        self.facts.regions(regions)
        multiplicity = {r.id: regions.multiplicity(r) for r in regions.regions}
        skeleton = Skeleton(items, around, multiplicity)
        return Loaded(self.facts.actions, skeleton, self.keys, self.bindings.roots, shared)

    # --- statements ----------------------------------------------------------------------------

    def _block(self, block: Block, region: Region) -> tuple[Item, ...]:
        items: list[Item] = []
        for stmt in block:
            made = self._statement(stmt, region)
            items.extend(self._windows.pins)
            self._windows.pins.clear()
            items.extend(made)
        return tuple(items)

    def _statement(self, stmt: Stmt, region: Region) -> list[Item]:
        match stmt:
            case Assign():
                return self._assign(stmt, region)
            case Eval():
                return self._eval(stmt, region)
            case For() | While():
                return [self._loop(stmt, region)]
            case If():
                return [self._branch(stmt, region)]
            case Scope():
                inner = self.effects.regions.opened_by(stmt)[0]
                return [ScopeBlock(stmt, inner.id, self._block(stmt.body, inner))]
            case Return():
                return [self._exit(stmt, region)]
            case Yield():
                return []
            case _:
                return [Keep(stmt)]

    def _eval(self, stmt: Eval, region: Region) -> list[Item]:
        call = stmt.value
        if isinstance(call, Call) and call.op == "tensor.assemble":
            return [self._store(call, None, stmt, region)]
        check_passed(call, self.bindings.values, stmt)
        return [Keep(stmt)]

    def _assign(self, stmt: Assign, region: Region) -> list[Item]:
        value, var = stmt.value, stmt.var
        if isinstance(value, Var) and isinstance(var.type, TensorType):
            self.bindings.values[var] = self.bindings.value(value, stmt)
            return [] if isinstance(self.bindings.values[var], Local) else [Keep(stmt)]
        if not isinstance(value, Call):
            check_passed(value, self.bindings.values, stmt)
            if isinstance(var.type, TensorType):
                self.bindings.values[var] = whole_window(var, var.type)
            return [Keep(stmt)]
        decl = lookup(value.op)
        if decl is None or decl.namespace != "tensor":
            if isinstance(var.type, TensorType):
                self.bindings.values[var] = whole_window(var, var.type)
            return [Keep(self._with_policy(stmt, value))]
        return self._tensor_call(value, var, stmt, region)

    def _with_policy(self, stmt: Assign, call: Call) -> Assign:
        """A load that was there before, with its tensor's policy unless it states one (C-091)."""
        if call.op != "tile.load" or call.kwarg("cache") is not None:
            return stmt
        policy = policy_of(call.args[0], self._policies, self.effects.provenance)
        if policy is None:
            return stmt
        return replace(stmt, value=replace(call, kwargs=(*call.kwargs, ("cache", policy))))

    def _tensor_call(self, call: Call, var: Var, stmt: Assign, region: Region) -> list[Item]:
        decl = lookup(call.op)
        assert decl is not None
        if var in self._seeded:
            # Its buffer is the Out parameter that the function gains.
            out = self._seeded[var]
            assert isinstance(out.type, TensorType)
            self.bindings.values[var] = whole_window(out, out.type)
            return []
        first = self.bindings.operand(call, 0, stmt)
        if decl.family in ("read", "query"):
            return self._scalar_result(call, var, stmt, region)
        if decl.family == "write" and isinstance(first, Window):
            self.bindings.values[var] = first
            return [Keep(stmt)]
        if decl.family == "assemble" and isinstance(first, Window):
            return [self._store(call, var, stmt, region)]
        if decl.family in VIEWS and isinstance(first, Window) and not changes_layout(call):
            return self._view(call, first, var, stmt)
        self._compute(call, var, stmt, region)
        return []

    def _view(self, call: Call, source: Window, var: Var, stmt: Assign) -> list[Item]:
        window, made = view_window(call, source, var)
        window = replace(window, taken=source.taken, written=stmt)
        self.bindings.values[var] = (
            self._windows.taken(window, stmt) if var in self._taken else window
        )
        if made is not None:
            regions = self.effects.regions
            regions.define(made.var, regions.region_of(stmt))
        # The view itself stays for whoever returns it or writes through it.
        return [Keep(stmt)] if made is None else [Keep(made), Keep(stmt)]

    def _compute(self, call: Call, var: Var, stmt: Assign, region: Region) -> None:
        operands: dict[int, Local] = {}
        dtype = operand_dtype(call)
        for i, arg in enumerate(call.args):
            value = self.bindings.operand(call, i, stmt)
            if value is not None:
                name = arg.name if isinstance(arg, Var) else var.name
                local = self.bindings.local(value, stmt, name, family_of(call))
                operands[i] = (
                    local if dtype is None else self.bindings.converted(local, dtype, name)
                )
        assert isinstance(call.type, TensorType)
        settled = all(value.settled for value in operands.values())
        if family_of(call) == "matmul_acc" and not operands[0].settled:
            operands = with_whole_factors(call, operands, self.facts)
        type_ = product_type(call, operands)
        term = self.facts.bind(computed_term(call, operands, self.keys))
        home = self.bindings.home(region, [v.home for v in operands.values()], call)
        accumulates = family_of(call) == "matmul_acc"  # an undefined accumulator counts as zero
        defined = call.op != "tensor.create" and (
            accumulates or all(value.defined for value in operands.values())
        )
        check_holdable(call.type, var.name, stmt.span)
        made = Local(term, type_, home, defined=defined, settled=settled)
        local = self.bindings.computed(made, var.name)
        self.bindings.values[var] = local
        if family_of(call) in ("create", "full"):
            self.facts.offer_vec_extents(local)
            if var not in self._seeds.variables:
                rows = self.keys.index(static_extents(local.type)[0])
                self.facts.add(equal(node("seed_rows", term), rows))

    def _scalar_result(self, call: Call, var: Var, stmt: Assign, region: Region) -> list[Item]:
        source = self.bindings.operand(call, 0, stmt)
        if not isinstance(source, Local):
            return [Keep(stmt)]
        if call.op == "tensor.dim":
            axis = const_value(call.args[1])
            assert axis is not None
            return [Keep(replace(stmt, value=as_expr(source.type.shape[axis])))]
        key = self.bindings.root_key()
        indices_ = call.args[1]
        assert isinstance(indices_, TupleExpr)
        self.facts.add(fact("read_root", key, source.term, region.id))
        return [ScalarRead(key, indices_, var, stmt)]

    def _store(self, call: Call, var: Var | None, stmt: Stmt, region: Region) -> Store:
        target = self.bindings.operand(call, 0, stmt)
        source = self.bindings.operand(call, 1, stmt)
        if not isinstance(target, Window):
            raise unsupported(call, "an assemble without a result into a value on chip")
        if source is None:
            raise unsupported(call, "a source that is not a tensor")
        name = call.args[1].name if isinstance(call.args[1], Var) else "part"
        local = self.bindings.local(source, stmt, name, "store")
        self._check_settled(call, name, local)
        offsets = dims_of(call.args[2])
        if len(offsets) != len(target.offsets):
            raise unsupported(call, "offsets of another rank than the target's")
        moved = tuple(dim_add(a, b) for a, b in zip(target.offsets, offsets, strict=True))
        key = self.bindings.store_root(local, target.type, region)
        if var is not None:
            assert isinstance(var.type, TensorType)
            self.bindings.values[var] = whole_window(var, var.type)
        return Store(key, target.handle, tuple_of(moved), call.kwargs, var, stmt)

    def _check_settled(self, call: Call, name: str, stored: Local) -> None:
        """Refuse to overwrite memory with rows that only a loop knows to be undefined."""
        effects = self.effects
        for root in effects.provenance.roots_of(call.args[0]) if not stored.settled else ():
            read = any(access.effect.reads for access in effects.accesses_to(root))
            declared = None if root.param is None else self.function.params[root.param].direction
            if read or declared not in (Direction.In, Direction.Out):
                raise LoweringError(
                    f"'{name}' is summed in a loop by products of which only a part of the rows is "
                    "valid, and is stored with all of its rows (C-275, C-276), into memory whose "
                    "other rows must stay as they are",
                    span=call.span,
                    hint="store it into an Out parameter that is not read, or compute the valid "
                    "rows of more than one fractal before the loop",
                )

    # --- control flow --------------------------------------------------------------------------

    def _loop(self, stmt: For | While, region: Region) -> Loop:
        inner = self.effects.regions.opened_by(stmt)[0]
        kinds = tuple(self._carries.kind(v) for v in stmt.iter_args)
        inits: dict[int, Local] = {}
        for position, (arg, kind) in enumerate(zip(stmt.iter_args, kinds, strict=True)):
            if kind is CarryKind.TENSOR:
                inits[position] = self._carries.seed(stmt, position)
            term = node("tensor.iter_arg", inner.id, position)
            self._carries.bind(arg, kind, term, inner, inits.get(position))
        body = self._block(stmt.body, inner)
        yields = yields_of(stmt.body)
        for position, (result, kind) in enumerate(zip(stmt.results, kinds, strict=True)):
            term = node("tensor.loop_result", inner.id, position)
            self._carries.bind(result, kind, term, region, inits.get(position))
            if kind is CarryKind.TENSOR:
                self._carries.close(
                    stmt, position, inits[position], yields[position], inner, region
                )
        return Loop(self._with_direct_seeds(stmt), inner.id, body, kinds, yields)

    def _with_direct_seeds(self, stmt: For | While) -> For | While:
        """The loop with Out parameters in place of the tensors that it fills directly."""
        inits = (
            self._seeded.get(init, init) if isinstance(init, Var) else init for init in stmt.inits
        )
        return replace(stmt, inits=tuple(inits))

    def _branch(self, stmt: If, region: Region) -> Branch:
        arms = self.effects.regions.opened_by(stmt)
        then = self._block(stmt.then, arms[0])
        orelse = self._block(stmt.orelse, arms[1]) if len(arms) > 1 else ()
        yields = yields_of(stmt.then), yields_of(stmt.orelse)
        kinds = tuple(self._carries.kind(v) for v in stmt.results)
        for position, (result, kind) in enumerate(zip(stmt.results, kinds, strict=True)):
            values: list[Local] = []
            for arm in yields if kind is CarryKind.TENSOR else ():
                values.append(self._carries.yielded(arm[position], stmt, result))
            term = node("tensor.phi", arms[0].id, position)
            self._carries.bind(result, kind, term, region, *values)
            if values:
                regions = (arms[0].id, arms[1].id)
                self.facts.add(
                    fact("arms", arms[0].id, position, *regions, *(v.term for v in values))
                )
        return Branch(
            stmt, arms[0].id, arms[1].id if len(arms) > 1 else None, then, orelse, kinds, *yields
        )

    def _exit(self, stmt: Return, region: Region) -> Exit:
        values: list[Expr | ExitStore | DirectExit] = []
        number = 0
        for value, declared in zip(stmt.values, self.function.returns, strict=False):
            direct = self._direct.get(value) if isinstance(value, Var) else None
            tensor = (
                self.bindings.value(value, stmt) if isinstance(value.type, TensorType) else None
            )
            if direct is not None:
                values.append(DirectExit(value, number, direct.out))
                number += 1
                continue
            if isinstance(tensor, Window) and tensor.taken is not None:
                tensor = self._windows.load(tensor, stmt, _label(value))
            elif not isinstance(tensor, Local) or tensor.window is not None:
                values.append(value)
                continue
            elif isinstance(value, Var) and self._carries.written_source(value) is not None:
                raise LoweringError(
                    f"'{_label(value)}' is returned, but it is a re-ordered view of a tensor that "
                    "this function writes",
                    span=stmt.span,
                    hint="return the tensor itself, or a computed tensor",
                )
            assert isinstance(declared, TensorType)
            if region.kind is not RegionKind.FUNCTION:
                raise LoweringError(
                    f"'{_label(value)}' is computed and returned from inside of a loop or a branch",
                    span=stmt.span,
                    hint="yield it, and return what the loop or branch gives at the function's end",
                )
            key = self.bindings.store_root(tensor, declared, region)
            values.append(ExitStore(key, number, declared))
            number += 1
        return Exit(tuple(values), stmt)

    def _written_views(self) -> list[Var]:
        """Views that are values because their memory is written, in program order."""
        made = [s.var for s in walk(self.function.body) if isinstance(s, Assign)]
        return [v for v in made if v in self._taken and not self.effects.is_read_only(v)]


def load_function(
    function: Function,
    program: Program,
    overlapping: Pairs = frozenset(),
    *,
    hoist: bool = True,
    duplicate: bool = True,
    direct: bool = True,
) -> Loaded:
    """The function's terms, facts and skeleton.

    Args:
        overlapping: parameters that callers may give the same memory.

    Raises:
        LoweringError: an op or a use of memory that no ruleset lowers; names it.
    """
    effects = analyse_effects(function, program, overlapping)
    return Loader(function, effects, hoist, duplicate, direct).load()


def family_of(call: Call) -> str:
    """The registry's family of the op; "" for an op that it does not know."""
    decl = lookup(call.op)
    return "" if decl is None else decl.family


def _label(value: Expr) -> str:
    return value.name if isinstance(value, Var) else "a value"
