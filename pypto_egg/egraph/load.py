"""An InCore function as e-graph actions and a skeleton.

Computed tensors become terms, tensors in global memory become windows of handles, and whatever
has an effect or steers control flow goes into the skeleton. What rules need to know of a tensor
(extents, dtype, where it may be computed, whether its memory is written) is asserted as facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pypto_egg.analysis.cache_policy import cache_policies, policy_of
from pypto_egg.analysis.effects import Effects, analyse_effects
from pypto_egg.analysis.provenance import RootKind
from pypto_egg.analysis.regions import Region, RegionKind
from pypto_egg.egraph.bulk import Action, Term, equal, fact, node
from pypto_egg.egraph.calls import check_passed
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
    WIDEST_EXACT,
    check_holdable,
    computed_term,
    operand_dtype,
    unsupported,
)
from pypto_egg.egraph.values import Keys, Local, Window, deepest, static_extents
from pypto_egg.egraph.windows import Windows, barrier_of
from pypto_egg.errors import LoweringError
from pypto_egg.ir.dtype import BOOL, DType
from pypto_egg.ir.expr import (
    BinOp,
    Call,
    Expr,
    TupleExpr,
    Var,
    as_expr,
    dims_of,
    tuple_of,
)
from pypto_egg.ir.fold import const_value, dim_add, same_dims
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Return, Scope, Stmt, While, Yield
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import free_vars, walk, yields_of
from pypto_egg.ops.registry import lookup
from pypto_egg.ops.snapshots import VIEWS, snapshots

Value = Local | Window


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
    roots: list[int] = field(default_factory=list)
    values: dict[Var, Value] = field(default_factory=dict)
    _direct: dict[Var, DirectOutput] = field(default_factory=dict)
    _in_memory: set[Var] = field(default_factory=set)
    _reordered: frozenset[Var] = frozenset()
    _taken: frozenset[Var] = frozenset()

    def __post_init__(self) -> None:
        self.facts = Facts(self.keys)
        self._policies = cache_policies(self.function)
        self._windows = Windows(self.effects, self.facts, self._policies, self.hoist)
        self._seeds = seeds_of(self.function, self.effects)

    def load(self) -> Loaded:
        for param in self.function.params:
            if isinstance(param.var.type, TensorType):
                self.values[param.var] = whole_window(param.var, param.var.type)
        self._taken = snapshots(self.function)
        self._reordered = reordered_views(self.function, self._written_views())
        for direct in direct_outputs(self.function) if self.direct else ():
            self._direct[direct.carried[1]] = direct
            self._in_memory.update((direct.seed, *direct.carried))
        items = self._block(self.function.body, self.effects.regions.root)
        shared = self._windows.settle(self.duplicate)
        if self.duplicate:
            self._windows.join()
        regions = self.effects.regions
        around = {r.id: r.parent.id for r in regions.regions if r.parent is not None}
        self.facts.regions(regions)
        multiplicity = {r.id: regions.multiplicity(r) for r in regions.regions}
        skeleton = Skeleton(items, around, multiplicity)
        return Loaded(self.facts.actions, skeleton, self.keys, self.roots, shared)

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
        check_passed(call, self.values, stmt)
        return [Keep(stmt)]

    def _assign(self, stmt: Assign, region: Region) -> list[Item]:
        value, var = stmt.value, stmt.var
        if isinstance(value, Var) and isinstance(var.type, TensorType):
            self.values[var] = self._value(value, stmt)
            return [] if isinstance(self.values[var], Local) else [Keep(stmt)]
        if not isinstance(value, Call):
            check_passed(value, self.values, stmt)
            if isinstance(var.type, TensorType):
                self.values[var] = whole_window(var, var.type)
            return [Keep(stmt)]
        decl = lookup(value.op)
        if decl is None or decl.namespace != "tensor":
            if isinstance(var.type, TensorType):
                self.values[var] = whole_window(var, var.type)
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
        if var in self._in_memory:
            return []  # its buffer is the Out parameter that the function gains
        first = self._operand(call, 0, stmt)
        if decl.family in ("read", "query"):
            return self._scalar_result(call, var, stmt, region)
        if decl.family == "write" and isinstance(first, Window):
            self.values[var] = first
            return [Keep(stmt)]
        if decl.family == "assemble" and isinstance(first, Window):
            return [self._store(call, var, stmt, region)]
        if decl.family in VIEWS and isinstance(first, Window) and not changes_layout(call):
            return self._view(call, first, var, stmt)
        self._compute(call, var, stmt, region)
        return []

    def _view(self, call: Call, source: Window, var: Var, stmt: Assign) -> list[Item]:
        window, made = view_window(call, source, var)
        if source.taken is not None:
            window = replace(window, taken=source.taken)
        self.values[var] = self._windows.taken(window, stmt) if var in self._taken else window
        if made is not None:
            regions = self.effects.regions
            regions.define(made.var, regions.region_of(stmt))
        # The view itself stays for whoever returns it or writes through it.
        return [Keep(stmt)] if made is None else [Keep(made), Keep(stmt)]

    def _compute(self, call: Call, var: Var, stmt: Assign, region: Region) -> None:
        operands: dict[int, Local] = {}
        dtype = operand_dtype(call)
        for i, arg in enumerate(call.args):
            value = self._operand(call, i, stmt)
            if value is not None:
                name = arg.name if isinstance(arg, Var) else var.name
                local = self._local(value, stmt, name, family_of(call))
                operands[i] = local if dtype is None else self._converted(local, dtype, name)
        term = self.facts.bind(computed_term(call, operands, self.keys))
        assert isinstance(call.type, TensorType)
        home = self._home(region, [v.home for v in operands.values()], call)
        accumulates = family_of(call) == "matmul_acc"  # an undefined accumulator counts as zero
        defined = call.op != "tensor.create" and (
            accumulates or all(value.defined for value in operands.values())
        )
        check_holdable(call.type, var.name, stmt.span)
        local = Local(term, call.type, home, defined=defined)
        self.values[var] = local
        self.facts.describe(local, var.name)
        self.facts.add(fact("computed", term))
        if family_of(call) in ("create", "full"):
            self.facts.offer_vec_extents(local)
            if var not in self._seeds.variables:
                rows = self.keys.index(static_extents(local.type)[0])
                self.facts.add(equal(node("seed_rows", term), rows))

    def _scalar_result(self, call: Call, var: Var, stmt: Assign, region: Region) -> list[Item]:
        source = self._operand(call, 0, stmt)
        if not isinstance(source, Local):
            return [Keep(stmt)]
        if call.op == "tensor.dim":
            axis = const_value(call.args[1])
            assert axis is not None
            return [Keep(replace(stmt, value=as_expr(source.type.shape[axis])))]
        key = self._root_key()
        indices_ = call.args[1]
        assert isinstance(indices_, TupleExpr)
        self.facts.add(fact("read_root", key, source.term, region.id))
        return [ScalarRead(key, indices_, var, stmt)]

    def _store(self, call: Call, var: Var | None, stmt: Stmt, region: Region) -> Store:
        target = self._operand(call, 0, stmt)
        source = self._operand(call, 1, stmt)
        if not isinstance(target, Window):
            raise unsupported(call, "an assemble without a result into a value on chip")
        if source is None:
            raise unsupported(call, "a source that is not a tensor")
        name = call.args[1].name if isinstance(call.args[1], Var) else "part"
        local = self._local(source, stmt, name, "store")
        offsets = dims_of(call.args[2])
        if len(offsets) != len(target.offsets):
            raise unsupported(call, "offsets of another rank than the target's")
        moved = tuple(dim_add(a, b) for a, b in zip(target.offsets, offsets, strict=True))
        key = self._store_root(local, target.type, region)
        if var is not None:
            assert isinstance(var.type, TensorType)
            self.values[var] = whole_window(var, var.type)
        return Store(key, target.handle, tuple_of(moved), call.kwargs, var, stmt)

    def _store_root(self, local: Local, target: TensorType, region: Region) -> int:
        key = self._root_key()
        stored = self._converted(local, target.dtype, None)
        self.facts.add(fact("store_root", key, stored.term, region.id, target.dtype.name))
        return key

    def _converted(self, local: Local, dtype: DType, name: str | None) -> Local:
        """The value in another element type, rounded to nearest even where it must be."""
        if local.type.dtype == dtype:
            return local
        term = self.facts.bind(node("tensor.cast", local.term, dtype.name, WIDEST_EXACT))
        type_ = replace(local.type, dtype=dtype)
        cast = Local(term, type_, local.home, defined=local.defined)
        self.facts.describe(cast, name)
        self.facts.add(fact("computed", term))
        return cast

    def _root_key(self) -> int:
        self.roots.append(len(self.roots) + 1)
        return self.roots[-1]

    # --- control flow --------------------------------------------------------------------------

    def _loop(self, stmt: For | While, region: Region) -> Loop:
        inner = self.effects.regions.opened_by(stmt)[0]
        kinds = tuple(self._carry_kind(v) for v in stmt.iter_args)
        inits: dict[int, Local] = {}
        for position, (arg, kind) in enumerate(zip(stmt.iter_args, kinds, strict=True)):
            if kind is CarryKind.TENSOR:
                inits[position] = self._carried_value(stmt.inits[position], stmt, arg)
            term = node("tensor.iter_arg", inner.id, position)
            self._bind_carried(arg, kind, term, inner, inits.get(position))
        body = self._block(stmt.body, inner)
        yields = yields_of(stmt.body)
        for position, (result, kind) in enumerate(zip(stmt.results, kinds, strict=True)):
            term = node("tensor.loop_result", inner.id, position)
            self._bind_carried(result, kind, term, region, inits.get(position))
            if kind is CarryKind.TENSOR:
                self._carry(stmt, position, inits[position], yields[position], inner, region)
        return Loop(self._with_direct_seeds(stmt), inner.id, body, kinds, yields)

    def _with_direct_seeds(self, stmt: For | While) -> For | While:
        """The loop with Out parameters in place of the tensors that it fills directly."""
        outs = {d.seed: d.out for d in self._direct.values()}
        inits = (outs.get(init, init) if isinstance(init, Var) else init for init in stmt.inits)
        return replace(stmt, inits=tuple(inits))

    def _carry(
        self,
        stmt: For | While,
        position: int,
        init: Local,
        yielded: Expr,
        inner: Region,
        region: Region,
    ) -> None:
        arg = stmt.iter_args[position]
        self._refuse_written_yield(yielded, stmt, arg)
        value = self._carried_value(yielded, stmt, arg)
        self.facts.add(fact("carry", inner.id, position, region.id, init.term, value.term))
        rows = self._seeds.rows(stmt, position, init.type, yielded)
        if rows is not None:
            self.facts.add(equal(node("seed_rows", init.term), self.keys.index(rows)))
        if self._seeds.starts_at_zero(stmt, position, yielded):
            assert isinstance(stmt, For)
            assert isinstance(arg.type, TensorType)
            key = len(self.keys.created) + 1
            self.keys.created[key] = arg.type
            first = self.keys.scalar(BinOp("==", stmt.var, stmt.start, BOOL))
            self.facts.add(fact("seeded", inner.id, position, key, first))

    def _refuse_written_yield(self, yielded: Expr, stmt: Stmt, arg: Var) -> None:
        value = self._value(yielded, stmt)
        if isinstance(value, Window) and not self.effects.is_read_only(value.handle):
            raise LoweringError(
                f"'{arg.name}' is carried as a value, but tensor '{value.handle.name}', which is "
                "yielded for it, is written in this function",
                span=stmt.span,
                hint="yield a computed value, or carry the tensor itself on every path",
            )

    def _carried_value(self, expr: Expr, stmt: Stmt, arg: Var) -> Local:
        value = self._value(expr, stmt)
        local = self._local(value, stmt, arg.name, "carry")
        assert isinstance(arg.type, TensorType)
        if local.type.dtype != arg.type.dtype or not same_dims(local.type.shape, arg.type.shape):
            raise LoweringError(
                f"loop carry '{arg.name}' changes its type from {arg.type} to {local.type}",
                span=stmt.span,
                hint="cast or slice the yielded value to the type of the initial one",
            )
        return local

    def _branch(self, stmt: If, region: Region) -> Branch:
        arms = self.effects.regions.opened_by(stmt)
        then = self._block(stmt.then, arms[0])
        orelse = self._block(stmt.orelse, arms[1]) if len(arms) > 1 else ()
        yields = yields_of(stmt.then), yields_of(stmt.orelse)
        kinds = tuple(self._carry_kind(v) for v in stmt.results)
        for position, (result, kind) in enumerate(zip(stmt.results, kinds, strict=True)):
            values: list[Local] = []
            for arm in yields if kind is CarryKind.TENSOR else ():
                self._refuse_written_yield(arm[position], stmt, result)
                values.append(self._carried_value(arm[position], stmt, result))
            term = node("tensor.phi", arms[0].id, position)
            self._bind_carried(result, kind, term, region, *values)
            if values:
                regions = (arms[0].id, arms[1].id)
                self.facts.add(
                    fact("arms", arms[0].id, position, *regions, *(v.term for v in values))
                )
        return Branch(
            stmt, arms[0].id, arms[1].id if len(arms) > 1 else None, then, orelse, kinds, *yields
        )

    def _carry_kind(self, var: Var) -> CarryKind:
        if not isinstance(var.type, TensorType) or var in self._in_memory:
            return CarryKind.KEPT
        roots = self.effects.provenance.roots_of(var)
        in_memory = [root.kind in (RootKind.PARAM, RootKind.CALL) for root in roots]
        if all(in_memory) and var not in self._reordered:
            return CarryKind.KEPT
        if any(in_memory) and any(self.effects.is_written(r) for r in roots if r.param is not None):
            raise LoweringError(
                f"'{var.name}' is either a tensor in global memory that is written or a computed "
                "value, depending on the path taken",
                span=var.span,
                hint="write to the parameter on both paths, or carry the computed value only",
            )
        return CarryKind.TENSOR

    def _bind_carried(
        self, var: Var, kind: CarryKind, term: Term, home: Region, *sources: Local | None
    ) -> None:
        if not isinstance(var.type, TensorType):
            return
        if kind is CarryKind.KEPT:
            self.values[var] = whole_window(var, var.type)
            return
        defined = all(source is not None and source.defined for source in sources)
        local = Local(term, var.type, home, defined=defined)
        self.values[var] = local
        self.facts.describe(local, var.name)
        self.facts.add(fact("computed", term))

    def _exit(self, stmt: Return, region: Region) -> Exit:
        values: list[Expr | ExitStore | DirectExit] = []
        number = 0
        for value, declared in zip(stmt.values, self.function.returns, strict=False):
            direct = self._direct.get(value) if isinstance(value, Var) else None
            tensor = self._value(value, stmt) if isinstance(value.type, TensorType) else None
            if direct is not None:
                values.append(DirectExit(value, number, direct.out))
                number += 1
                continue
            if isinstance(tensor, Window) and tensor.taken is not None:
                tensor = self._windows.load(tensor, stmt, _label(value))
            elif not isinstance(tensor, Local) or tensor.window is not None:
                values.append(value)
                continue
            elif self._is_written_view(value):
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
            key = self._store_root(tensor, declared, region)
            values.append(ExitStore(key, number, declared))
            number += 1
        return Exit(tuple(values), stmt)

    def _written_views(self) -> list[Var]:
        """Views that are values because their memory is written, in program order."""
        made = [s.var for s in walk(self.function.body) if isinstance(s, Assign)]
        return [v for v in made if v in self._taken and not self.effects.is_read_only(v)]

    def _is_written_view(self, value: Expr) -> bool:
        """Whether a copy of the value may differ from the memory that the value is a view of."""
        roots = self.effects.provenance.roots_of(value)
        viewed = any(r.kind in (RootKind.PARAM, RootKind.CALL) for r in roots)
        return viewed and not self.effects.is_read_only(value)

    # --- values --------------------------------------------------------------------------------

    def _operand(self, call: Call, index: int, stmt: Stmt) -> Value | None:
        if index >= len(call.args) or not isinstance(call.args[index].type, TensorType):
            return None
        return self._value(call.args[index], stmt)

    def _value(self, expr: Expr, stmt: Stmt) -> Value:
        if isinstance(expr, Var) and expr in self.values:
            return self.values[expr]
        raise LoweringError(
            "an operand that is not a variable defined before", span=stmt.span,
            hint="give nested calls statements of their own",
        )  # fmt: skip

    def _local(self, value: Value, stmt: Stmt, name: str, consumer: str) -> Local:
        """The value as a term; a window becomes the content of the memory that it is."""
        local = value if isinstance(value, Local) else self._windows.load(value, stmt, name)
        self._windows.used_by(local, consumer)
        return local

    def _home(self, region: Region, operands: list[Region], call: Call) -> Region:
        if not self.hoist or not operands:
            return region
        regions = self.effects.regions
        scalars = [regions.region_of_var(v) for arg in call.args for v in free_vars(arg)
                   if not isinstance(v.type, TensorType)]  # fmt: skip
        return deepest(barrier_of(region), *operands, *scalars)


def load_function(
    function: Function,
    program: Program,
    *,
    hoist: bool = True,
    duplicate: bool = True,
    direct: bool = True,
) -> Loaded:
    """The function's terms, facts and skeleton.

    Raises:
        LoweringError: an op or a use of memory that no ruleset lowers; names it.
    """
    effects = analyse_effects(function, program)
    return Loader(function, effects, hoist, duplicate, direct).load()


def family_of(call: Call) -> str:
    """The registry's family of the op; "" for an op that it does not know."""
    decl = lookup(call.op)
    return "" if decl is None else decl.family


def _label(value: Expr) -> str:
    return value.name if isinstance(value, Var) else "a value"
