"""A selection as the body of a tile function.

The skeleton is walked in order; a tile is emitted when it is first needed, into the block of the
region that it belongs to. Since that block's open loops and branches are appended to it only
when they are complete, a tile of an enclosing region lands before them: it is hoisted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pypto_egg.analysis.cache_policy import ATTRIBUTE as CACHE_POLICY
from pypto_egg.analysis.dead import is_view, without_dead_values
from pypto_egg.egraph.skeleton import (
    Branch,
    CarryKind,
    DirectExit,
    Exit,
    ExitStore,
    Item,
    Keep,
    Loop,
    Pin,
    ScalarRead,
    ScopeBlock,
    Skeleton,
    Store,
)
from pypto_egg.egraph.tilegraph import TileGraph, TileNode
from pypto_egg.emit.names import Names
from pypto_egg.emit.scheduled import scheduled_tile, stored_by_tiles
from pypto_egg.errors import InternalError
from pypto_egg.ir.enums import Direction
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.program import Function, Param
from pypto_egg.ir.stmt import Assign, Block, Eval, Stmt, Yield, with_fields
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.ir.visit import defined_by, definitions, substitute, substitute_block, walk
from pypto_egg.ops.registry import lookup


@dataclass(frozen=True)
class Emitted:
    """A lowered function.

    Args:
        outputs: the Out parameters that it gained, in order.
        origin: emitted tile variable -> the node of the tile graph that made it.
    """

    function: Function
    outputs: tuple[Param, ...]
    origin: Mapping[Var, TileNode]


@dataclass
class Emitter:
    """Emits one function; `emit_function` is the entry."""

    function: Function
    graph: TileGraph
    choice: Mapping[int, TileNode]
    names: Names = field(init=False)
    blocks: dict[int, list[Stmt]] = field(default_factory=dict)
    tiles: dict[int, Var] = field(default_factory=dict)
    renamed: dict[Var, Expr] = field(default_factory=dict)
    outputs: list[Param] = field(default_factory=list)
    origin: dict[Var, TileNode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = Names(_kept_names(self.function))
        self._carries: dict[int, list[int]] = {}
        self._outputs: dict[int, Param] = {}
        for cls, node in sorted(self.choice.items(), key=lambda pair: pair[0]):
            if node.op in ("looped", "merged"):
                self._carries.setdefault(node.key[0], []).append(cls)
        for classes in self._carries.values():
            classes.sort(key=self._position)

    def emit(self, skeleton: Skeleton) -> Emitted:
        """The function that the choice makes of the skeleton."""
        for item in skeleton.items:
            if isinstance(item, Exit):
                self._claim_direct(item)
        body = self._region(0, skeleton.items)
        params = (*self.function.params, *self.outputs)
        # The policy is part of each load now (C-092).
        attrs = tuple(pair for pair in self.function.attrs if pair[0] != CACHE_POLICY)
        function = without_dead_values(
            replace(self.function, params=params, body=body, attrs=attrs), is_view
        )
        return Emitted(function, tuple(self.outputs), self.origin)

    # --- items ---------------------------------------------------------------------------------

    def _region(
        self, region: int, items: tuple[Item, ...], yields: tuple[tuple[int, str], ...] = ()
    ) -> Block:
        """The statements of a region; `yields` are the classes that must exist at its end, each
        with the name of the value that it is yielded for."""
        self.blocks[region] = []
        for item in items:
            self._item(item, region)
        for cls, name in yields:
            self._ensure(cls, name)
        return tuple(self.blocks.pop(region))

    def _item(self, item: Item, region: int) -> None:
        out = self.blocks[region].append
        match item:
            case Keep(stmt):
                out(self._kept(stmt))
            case Pin(point):
                for cls, node in sorted(self.choice.items(), key=lambda pair: pair[0]):
                    if node.op == "load" and node.key == (point,):
                        self._ensure(cls)
            case Store():
                self._store(item, region)
            case ScalarRead():
                call = self._statement(item.key)
                out(with_fields(item.stmt, value=call))
            case Loop():
                out(self._loop(item))
            case Branch():
                out(self._branch(item))
            case ScopeBlock():
                out(with_fields(item.stmt, body=self._region(item.region, item.body)))
            case Exit():
                self._exit(item, region)

    def _kept(self, stmt: Stmt) -> Stmt:
        (kept,) = substitute_block((stmt,), self.renamed)
        if isinstance(kept, Assign) and isinstance(kept.value, Call):
            decl = lookup(kept.value.op)
            if decl is not None and decl.family == "query" and decl.lowers_to is not None:
                return replace(kept, value=replace(kept.value, op=decl.lowers_to))
        return kept

    def _store(self, item: Store, region: int) -> None:
        call = self._statement(item.key)
        comments = item.stmt.comments
        if item.result is None and not self._is_scheduled(item.key):
            self.blocks[region].append(Eval(call, comments=comments))
            return
        base = item.result.name if item.result is not None else ""
        var = Var(self.names.fresh(base, "tile"), call.type)
        if item.result is not None:
            self.renamed[item.result] = var
        self._perform(item.key, var, call, region, comments)

    def _is_scheduled(self, key: int) -> bool:
        recipe = self.choice[self.graph.roots[key]].recipe
        return recipe is not None and recipe.schedule is not None

    def _perform(
        self, key: int, var: Var, call: Call, region: int, comments: tuple[str, ...] = ()
    ) -> None:
        """`var = call`, or the loops of a product whose tiles are stored as they are made."""
        node = self.choice[self.graph.roots[key]]
        if not self._is_scheduled(key):
            self.blocks[region].append(Assign(var, call, comments=comments))
            return
        assert node.recipe is not None
        of = partial(self._substituted, node)
        self._append_nest(region, node, stored_by_tiles(node.recipe, call, var, of, self.names))

    def _append_nest(self, region: int, node: TileNode, statements: Block) -> None:
        self.blocks[region].extend(statements)
        for stmt in walk(statements):
            for var in defined_by(stmt):
                if isinstance(var.type, TileType):
                    self.origin[var] = node

    def _statement(self, key: int) -> Call:
        """The call of a root, after the tile that it consumes."""
        cls = self.graph.roots[key]
        node = self.choice[cls]
        for child in node.children:
            self._ensure(child)
        assert node.recipe is not None
        return self._substituted(node, node.recipe.steps[-1].call)

    def _exit(self, item: Exit, region: int) -> None:
        stores = [value for value in item.values if isinstance(value, ExitStore)]
        stored = {value.key: self._exit_store(value, region) for value in self._in_order(stores)}
        self.outputs = [self._outputs[number] for number in sorted(self._outputs)]
        values = tuple(
            stored[value.key]
            if isinstance(value, ExitStore)
            else substitute(value.value if isinstance(value, DirectExit) else value, self.renamed)
            for value in item.values
        )
        self.blocks[region].append(replace(item.stmt, values=values))

    def _claim_direct(self, item: Exit) -> None:
        """Name the Out parameters that loops store into before the return is reached."""
        for value in item.values:
            if isinstance(value, DirectExit):
                out = Var(self.names.unique(f"ret{value.number}__out"), value.out.type)
                self._outputs[value.number] = Param(out, Direction.Out)
                self.renamed[value.out] = out

    def _in_order(self, stores: list[ExitStore]) -> list[ExitStore]:
        """A value before those that are made from it: they may be made in its place."""
        depth = self._depths([self.graph.roots[value.key] for value in stores])
        return sorted(stores, key=lambda v: (depth[self.graph.roots[v.key]], v.number))

    def _depths(self, roots: list[int]) -> dict[int, int]:
        """How many classes lie below each class, along the longest way."""
        depth: dict[int, int] = {}
        stack = list(roots)
        while stack:
            cls = stack[-1]
            children = self.choice[cls].children
            missing = [child for child in children if child not in depth]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            depth[cls] = 1 + max((depth[child] for child in children), default=0)
        return depth

    def _exit_store(self, value: ExitStore, region: int) -> Var:
        out = Var(self.names.unique(f"ret{value.number}__out"), value.type)
        self._outputs[value.number] = Param(out, Direction.Out)
        call = self._statement(value.key)
        stored = Var(self.names.unique(f"ret{value.number}__store"), call.type)
        call = replace(call, args=(*call.args[:2], out, *call.args[3:]))
        self._perform(value.key, stored, call, region)
        return stored

    # --- control flow --------------------------------------------------------------------------

    def _loop(self, item: Loop) -> Stmt:
        carried = self._carries.get(item.region, [])
        positions = [self._position(cls) for cls in carried]
        names = [item.stmt.iter_args[at].name for at in positions]
        for cls, name in zip(carried, names, strict=True):
            self._ensure(self.choice[cls].children[0], name)
        inits = [self.tiles[self.choice[cls].children[0]] for cls in carried]
        args = [self._carry_var(item.stmt.iter_args[at], init)
                for at, init in zip(positions, inits, strict=True)]  # fmt: skip
        for cls, arg in zip(carried, args, strict=True):
            self._bind_iter_arg(cls, arg)
        kept = self._kept_carries(item)
        yields = tuple(self.choice[cls].children[1] for cls in carried)
        body = self._region(item.region, item.body, tuple(zip(yields, names, strict=True)))
        results = [self._carry_var(item.stmt.results[at], init)
                   for at, init in zip(positions, inits, strict=True)]  # fmt: skip
        values = [*(substitute(item.yields[i], self.renamed) for i in kept),
                  *(self.tiles[cls] for cls in yields)]  # fmt: skip
        for cls, result in zip(carried, results, strict=True):
            self.tiles[cls] = result
            self.origin[result] = self.choice[cls]
        order = _source_order([*kept, *positions])
        iter_args = [*(item.stmt.iter_args[i] for i in kept), *args]
        starts = [*(substitute(item.stmt.inits[i], self.renamed) for i in kept), *inits]
        after = [*(item.stmt.results[i] for i in kept), *results]
        header = replace(
            item.stmt,
            iter_args=tuple(iter_args[n] for n in order),
            inits=tuple(starts[n] for n in order),
            results=tuple(after[n] for n in order),
            body=(*body, Yield(tuple(values[n] for n in order))) if values else body,
        )
        return self._header(header, item.stmt)

    def _header(self, header: Stmt, original: Stmt) -> Stmt:
        """A loop with its bounds or condition over emitted variables."""
        changes = {
            name: substitute(getattr(original, name), self.renamed)
            for name in ("start", "stop", "step", "cond")
            if hasattr(original, name)
        }
        return with_fields(header, **changes)

    def _position(self, cls: int) -> int:
        """Which of a loop's or branch's values the carry of a class is."""
        return self.choice[cls].key[1]

    def _kept_carries(self, item: Loop) -> list[int]:
        return [i for i, kind in enumerate(item.carries) if kind is CarryKind.KEPT]

    def _carry_var(self, original: Var, like: Var) -> Var:
        return Var(self.names.unique(original.name), like.type)

    def _bind_iter_arg(self, cls: int, arg: Var) -> None:
        """Let the `carried` nodes of a selected carry stand for its iter_arg."""
        for user, node in self.choice.items():
            if node.op == "carried" and cls in node.requires:
                self.tiles[user] = arg
                self.origin[arg] = node

    def _branch(self, item: Branch) -> Stmt:
        merged = self._carries.get(item.then_region, [])
        blocks: list[Block] = []
        arms = ((item.then_region, item.then, item.then_yields, 0),
                (item.else_region, item.orelse, item.else_yields, 1))  # fmt: skip
        kept = [i for i, kind in enumerate(item.results) if kind is CarryKind.KEPT]
        order = _source_order([*kept, *(self._position(cls) for cls in merged)])
        for region, items, originals, arm in arms:
            if region is None:
                blocks.append(())
                continue
            yields = tuple(self.choice[cls].children[arm] for cls in merged)
            names = (item.stmt.results[self._position(cls)].name for cls in merged)
            block = self._region(region, items, tuple(zip(yields, names, strict=True)))
            values = (*(substitute(originals[i], self.renamed) for i in kept),
                      *(self.tiles[cls] for cls in yields))  # fmt: skip
            yielded = Yield(tuple(values[n] for n in order))
            blocks.append((*block, yielded) if values else block)
        results = [item.stmt.results[i] for i in kept]
        for cls in merged:
            node = self.choice[cls]
            result = self._carry_var(item.stmt.results[node.key[1]], self._stand_in(cls))
            self.tiles[cls] = result
            self.origin[result] = node
            results.append(result)
        return replace(
            item.stmt,
            cond=substitute(item.stmt.cond, self.renamed),
            then=blocks[0],
            orelse=blocks[1],
            results=tuple(results[n] for n in order),
        )

    # --- tiles ---------------------------------------------------------------------------------

    def _ensure(self, wanted: int, name: str = "") -> None:
        """Emit the tile of a class and whatever it is made of, if it is not there yet.

        Args:
            name: the source name to use for tiles that have none of their own.
        """
        stack = [(wanted, self.graph.classes[wanted].name or name)]
        while stack:
            cls, name = stack[-1]
            if cls in self.tiles:
                stack.pop()
                continue
            node = self.choice[cls]
            if node.op in ("looped", "merged", "carried"):
                raise InternalError(f"'{name}' is used before the {node.op} value exists")
            missing = [child for child in node.children if child not in self.tiles]
            if missing:
                stack.extend(
                    (child, self.graph.classes[child].name or name) for child in reversed(missing)
                )
                continue
            stack.pop()
            self._emit_node(cls, node, self.graph.classes[cls].name or name)

    def _emit_node(self, cls: int, node: TileNode, name: str) -> None:
        if node.recipe is None:
            self.tiles[cls] = self.tiles[node.children[0]]
            return
        region = self.graph.classes[cls].region
        if node.recipe.schedule is not None:
            of = partial(self._substituted, node)
            self.tiles[cls], statements = scheduled_tile(node.recipe, name, of, self.names)
            self._append_nest(region, node, statements)
            return
        block = self.blocks[region]
        made: dict[Var, Expr] = {}
        var = None
        for step in node.recipe.steps:
            role = step.role
            label = self.names.unique("tmp_tile") if role == "tmp" else self.names.fresh(name, role)
            var = Var(label, step.call.type)
            block.append(Assign(var, self._substituted(node, step.call, made)))
            made[step.var] = var
            self.origin[var] = node
        assert var is not None
        self.tiles[cls] = var

    def _substituted(
        self, node: TileNode, call: Call, made: Mapping[Var, Expr] | None = None
    ) -> Call:
        mapping: dict[Var, Expr] = {**self.renamed, **(made or {})}
        for child in node.children:
            mapping[self._stand_in(child)] = self.tiles[child]
        result = substitute(call, mapping)
        assert isinstance(result, Call)
        return result

    def _stand_in(self, cls: int) -> Var:
        var = self.graph.classes[cls].var
        assert var is not None
        return var


def _source_order(positions: Sequence[int]) -> list[int]:
    """How to arrange carried values at these positions of the source so that they are in order."""
    return sorted(range(len(positions)), key=lambda n: positions[n])


def _kept_names(function: Function) -> list[str]:
    """Names that stay: parameters, scalars, and whatever else does not become a tile."""
    kept = [param.var.name for param in function.params]
    kept += [v.name for v in definitions(function) if not isinstance(v.type, TensorType)]
    return kept


def emit_function(
    function: Function, skeleton: Skeleton, graph: TileGraph, choice: Mapping[int, TileNode]
) -> Emitted:
    """The lowered function.

    Args:
        choice: class of the tile graph -> its selected node.
    """
    return Emitter(function, graph, choice).emit(skeleton)
