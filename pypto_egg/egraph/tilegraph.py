"""The tile side of a snapshot: typed e-classes and e-nodes with their calls, ready to be priced.

An e-class of tiles has one type: every way of holding a tensor in one form has the same shape,
valid region, dtype, space and layout. A rule that breaks this is wrong, so it is checked here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from pypto_egg.egraph.load import Loaded
from pypto_egg.egraph.recipes import Recipe, Recipes, Step, check_stored, product_step
from pypto_egg.egraph.skeleton import (
    Branch,
    Exit,
    ExitStore,
    Item,
    Loop,
    ScalarRead,
    ScopeBlock,
    Store,
)
from pypto_egg.egraph.snapshot import Node, Snapshot
from pypto_egg.errors import InternalError, PyptoEggError
from pypto_egg.ir.enums import CompactMode, Mem
from pypto_egg.ir.expr import Var, tuple_of
from pypto_egg.ir.types import FRACTAL_ROWS, TileType, Type
from pypto_egg.ops.registry import make_call
from pypto_egg.text import print_type

STATEMENTS = ("store", "store.product", "read")
TRANSPARENT = ("outer",)
CARRIES = ("looped", "carried", "merged")
NAMES = ("realize", "loop_carry", "stmt")  # what names an e-class and makes nothing


# Where a constructor without tile operands says in which region it is.
REGION_ARGUMENT = {"load": 5, "tile.create": 6, "tile.full": 5, "carried": 0}


@dataclass(eq=False)
class TileNode:
    """One way of making the tile of a class.

    Args:
        source: the e-node; its `op` is the constructor's name.
        cls: the position of its class.
        children: positions of child classes, in operand order.
        recipe: the calls that make the tile; None for control flow and for `outer`.
        key: the statement key of a root; (region or branch, position) of a carry; the point of a
            load, 0 for one of read-only memory.
        requires: classes that must be selected with this node without being its operands.
    """

    source: Node
    cls: int
    children: tuple[int, ...]
    recipe: Recipe | None = None
    key: tuple[int, ...] = ()
    requires: tuple[int, ...] = ()
    typed: bool = False

    @property
    def op(self) -> str:
        """The name of its constructor in the e-graph."""
        return self.source.op


@dataclass
class TileClass:
    """All ways of holding one tensor in one form.

    Args:
        region: where the tile exists.
        name: the source name of the tensor, "" for an intermediate tile.
        form: the class of the form in the snapshot, "" for an intermediate tile.
        var: the placeholder that stands for the tile in the recipes of other nodes.
    """

    id: str
    region: int = -1
    name: str = ""
    form: str = ""
    var: Var | None = None
    nodes: list[TileNode] = field(default_factory=list)


@dataclass
class TileGraph:
    """Classes and nodes that the roots can reach, in a fixed order.

    Args:
        refused: nodes that a tile op's type rule refused, with the reason.
    """

    classes: list[TileClass]
    nodes: list[TileNode]
    roots: dict[int, int]
    refused: list[tuple[str, str, str]] = field(default_factory=list)


def tile_graph(snapshot: Snapshot, loaded: Loaded) -> TileGraph:
    """The tile graph below the function's statements.

    Raises:
        InternalError: a class has nodes of different types.
    """
    return _Builder(snapshot, loaded).build()


class _Builder:
    def __init__(self, snapshot: Snapshot, loaded: Loaded) -> None:
        self.snapshot = snapshot
        self.recipes = Recipes(snapshot, loaded.keys)
        self.targets = _store_targets(loaded.skeleton.items)
        self.index: dict[str, int] = {}
        self.classes: list[TileClass] = []
        self.refused: list[tuple[str, str, str]] = []
        self.carries = {
            (tuple(snapshot.integer(c) for c in node.children[:2]), node.children[2]): cls
            for cls, node in snapshot.rows("loop_carry")
        }
        self.forms = _forms(snapshot, loaded)

    def build(self) -> TileGraph:
        roots = {}
        for cls, node in self.snapshot.rows("stmt"):
            roots[self.snapshot.integer(node.children[0])] = self._visit(cls)
        position = 0
        while position < len(self.classes):
            self._expand(position)
            position += 1
        self._type_classes()
        self._drop_untyped()
        nodes = [node for cls in self.classes for node in cls.nodes]
        return TileGraph(self.classes, nodes, roots, self.refused)

    def _visit(self, cls: str) -> int:
        if cls not in self.index:
            self.index[cls] = len(self.classes)
            self.classes.append(TileClass(cls, *self.forms.get(cls, ())))
        return self.index[cls]

    def _expand(self, position: int) -> None:
        cls = self.classes[position]
        for source in self.snapshot.classes[cls.id]:
            if source.op in NAMES:
                continue
            children = tuple(self._visit(c) for c in source.children if self._is_tile(c))
            node = TileNode(source, position, children)
            if source.op in CARRIES:
                node.key = tuple(self.snapshot.integer(c) for c in source.children[:2])
            if source.op == "load":
                node.key = (self.snapshot.integer(source.children[6]),)
            if source.op in STATEMENTS:
                node.key = (self.snapshot.integer(source.children[0]),)
            if source.op == "carried":
                node.requires = (self._visit(self.carries[(node.key, source.children[2])]),)
            cls.nodes.append(node)

    def _is_tile(self, cls: str) -> bool:
        return any(node.op in CARRIES or node.op in NAMES or node.op in TRANSPARENT
                   or self.recipes.has(node.op) for node in self.snapshot.classes[cls])  # fmt: skip

    def _type_classes(self) -> None:
        """Bottom up: a node is typed when its operands are, a class with its first node."""
        waiting: dict[int, list[TileNode]] = {}
        ready: deque[TileNode] = deque()
        missing: dict[int, int] = {}
        for cls in self.classes:
            for node in cls.nodes:
                needs = set(self._typed_by(node))
                missing[id(node)] = len(needs)
                for need in needs:
                    waiting.setdefault(need, []).append(node)
                if not needs:
                    ready.append(node)
        while ready:
            node = ready.popleft()
            if not self._type_node(node):
                continue
            for user in waiting.pop(node.cls, ()):
                missing[id(user)] -= 1
                if missing[id(user)] == 0:
                    ready.append(user)

    def _typed_by(self, node: TileNode) -> tuple[int, ...]:
        """The classes whose types a node's own type follows from."""
        if node.op == "carried":
            return node.requires
        return node.children[:1] if node.op == "looped" else node.children

    def _type_node(self, node: TileNode) -> bool:
        """Type a node and, if it is the first, its class; False if its op refuses it."""
        cls = self.classes[node.cls]
        type_ = self._node_type(node)
        if type_ is None:
            return False
        node.typed = True
        if cls.var is None:
            cls.var = Var("_", type_)
            if cls.region < 0:
                cls.region = self._region_of(node)
            return True
        if node.op not in STATEMENTS and type_ != cls.var.type:
            raise InternalError(
                f"'{cls.name}' has tiles of two types: {print_type(cls.var.type)} and "
                f"{print_type(type_)} ({node.op})"
            )
        return False

    def _node_type(self, node: TileNode) -> Type | None:
        if node.op in CARRIES or node.op in TRANSPARENT:
            child = self.classes[self._typed_by(node)[0]]
            return child.var.type if child.var is not None else None
        tiles = [self._var(child) for child in node.children]
        try:
            if node.op == "store.product":
                product = product_step(tiles)
                stored = self.targets[node.key[0]](product.var)
                node.recipe = Recipe((product, *stored.steps))
            elif node.op in STATEMENTS:
                node.recipe = self.targets[node.key[0]](tiles[0])
            else:
                node.recipe = self.recipes.build(node.source, tiles)
        except PyptoEggError as error:
            self.refused.append((self.classes[node.cls].name, node.op, error.message))
            return None
        return node.recipe.type

    def _var(self, position: int) -> Var:
        var = self.classes[position].var
        assert var is not None
        return var

    def _region_of(self, node: TileNode) -> int:
        """Where a tile that is no realisation of its own exists: with its operands."""
        if node.op == "looped":
            return self.classes[node.children[0]].region
        if node.op in REGION_ARGUMENT:
            return self.snapshot.integer(node.source.children[REGION_ARGUMENT[node.op]])
        return max((self.classes[child].region for child in node.children), default=0)

    def _drop_untyped(self) -> None:
        """Remove the nodes that cannot be made, until none is left that needs one of them."""
        changed = True
        while changed:
            changed = False
            finite = self._finite()
            for cls in self.classes:
                kept = [n for n in cls.nodes if finite.issuperset(n.children) and self._typed(n)]
                changed |= len(kept) != len(cls.nodes)
                cls.nodes = kept

    def _finite(self) -> set[int]:
        """The classes of which a tile can be made without that tile itself."""
        waiting: dict[int, list[TileNode]] = {}
        missing: dict[int, int] = {}
        ready: list[TileNode] = []
        for node in (node for cls in self.classes for node in cls.nodes):
            needs = set(node.children)
            missing[id(node)] = len(needs)
            for need in needs:
                waiting.setdefault(need, []).append(node)
            if not needs:
                ready.append(node)
        found: set[int] = set()
        while ready:
            node = ready.pop()
            found.add(node.cls)
            for user in waiting.pop(node.cls, ()):
                missing[id(user)] -= 1
                if missing[id(user)] == 0:
                    ready.append(user)
        return found

    def _typed(self, node: TileNode) -> bool:
        """Whether a node and all that it needs have types which fit."""
        needed = (*node.children, *node.requires)
        if not node.typed or any(self.classes[c].var is None for c in needed):
            return False
        if not all(self.classes[c].nodes for c in node.requires):
            return False
        if node.op not in ("looped", "merged"):
            return True
        first, second = (self._var(child).type for child in node.children)
        if first == second or (node.op == "looped" and _is_one_fractal(first, second)):
            return True
        made = f"{print_type(first)} and {print_type(second)}"
        self.refused.append((self.classes[node.cls].name, node.op, made))
        return False


def _is_one_fractal(init: Type, yielded: Type) -> bool:
    """Whether an accumulator of one fractal is carried that yields fewer valid rows than it has.

    It is packed by its physical rows, whatever the valid ones (C-275).
    """
    if not isinstance(init, TileType) or not isinstance(yielded, TileType):
        return False
    full = {"valid_shape": None, "compact": CompactMode.null}
    same = init.with_view(**full) == yielded.with_view(**full)
    rows = init.shape[-2] if init.rank > 1 else None
    return init.space is Mem.Acc and same and isinstance(rows, int) and rows <= FRACTAL_ROWS


def _forms(snapshot: Snapshot, loaded: Loaded) -> dict[str, tuple[int, str, str]]:
    """Class of tiles -> region, source name and form, from the realisations in it."""
    names: dict[str, int] = {}
    for _, row in snapshot.rows("named"):
        tensor, number = row.children[0], snapshot.integer(row.children[1])
        names[tensor] = min(number, names.get(tensor, number))
    forms: dict[str, tuple[int, str, str]] = {}
    for cls, node in snapshot.rows("realize"):
        tensor, form = node.children
        name = loaded.keys.names[names[tensor]] if tensor in names else ""
        (made,) = snapshot.nodes(form, "form")
        region = snapshot.integer(made.children[4])
        found = (region, name, form)
        forms[cls] = min(forms.get(cls, found), found, key=lambda f: (f[0], f[1] == "", f[1]))
    return forms


def _store_targets(items: tuple[Item, ...]) -> dict[int, Callable[[Var], Recipe]]:
    """Statement key -> the recipe of its store or read, given the tile."""
    found: dict[int, Callable[[Var], Recipe]] = {}
    pending = list(items)
    while pending:
        item = pending.pop()
        match item:
            case Store():
                found[item.key] = partial(_store_recipe, item)
            case ScalarRead():
                found[item.key] = partial(_read_recipe, item)
            case Exit():
                stores = [value for value in item.values if isinstance(value, ExitStore)]
                found.update((value.key, partial(_exit_recipe, value)) for value in stores)
            case Loop() | ScopeBlock():
                pending.extend(item.body)
            case Branch():
                pending.extend((*item.then, *item.orelse))
    return found


def _store_recipe(item: Store, tile: Var) -> Recipe:
    check_stored(tile, item.target)
    call = make_call("tile.store", (tile, item.offsets, item.target), dict(item.kwargs))
    return Recipe((Step(Var("_", call.type), call, "store"),))


def _read_recipe(item: ScalarRead, tile: Var) -> Recipe:
    call = make_call("tile.read", (tile, item.indices))
    return Recipe((Step(Var("_", call.type), call, "read"),))


def _exit_recipe(item: ExitStore, tile: Var) -> Recipe:
    target = Var(f"ret{item.number}__out", item.type)
    check_stored(tile, target)
    zeros = tuple_of((0,) * item.type.rank)
    call = make_call("tile.store", (tile, zeros, target))
    return Recipe((Step(Var("_", call.type), call, "store"),))
