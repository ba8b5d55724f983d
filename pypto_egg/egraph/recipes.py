"""E-nodes as tile calls: what an e-node costs and what emission writes are the same calls.

A recipe is a short list of calls over placeholder variables. Most e-nodes are one call; a few
PyPTO ops need a scratch tile or a destination created first, and those are part of the recipe,
so that they are priced and counted against the capacity of their memory space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pypto_egg.egraph.attrs import decode
from pypto_egg.egraph.gm import in_nz_order
from pypto_egg.egraph.snapshot import Node, Snapshot
from pypto_egg.egraph.values import Keys
from pypto_egg.errors import InternalError, NzError
from pypto_egg.ir.dtype import DTYPES, UINT8, DType
from pypto_egg.ir.enums import Mem, TensorLayout
from pypto_egg.ir.expr import Call, ConstFloat, ConstInt, Expr, Var, as_expr, tuple_of
from pypto_egg.ir.fold import same_dims
from pypto_egg.ir.types import TensorType, TileType, Type, implicit_view, tile_type
from pypto_egg.l0.schedule import L0Schedule
from pypto_egg.ops.registry import lookup, make_call
from pypto_egg.ops.site import show_shape
from pypto_egg.ops.windows import align_right

Dim = int | Expr

# PyPTO raises the last axis of a row reduction's scratch tile to at least this many elements.
_LEAST_SCRATCH_COLS = 128
_SELECT_SCRATCH = (1, 32)
# What PyPTO calls a tile that is moved to these spaces.
_ROLES = {Mem.Mat: "mat", Mem.Vec: "vec", Mem.Bias: "bias"}


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a recipe, and the placeholder that stands for its result.

    Args:
        role: how emission names the result: "tile" for the value itself, else a helper's name.
    """

    var: Var
    call: Call
    role: str = "tile"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The calls of one e-node, in order; the last one's result is the e-node's tile.

    Args:
        schedule: how the product among the calls is cut into L0 tiles; None leaves that to
            PyPTO's AutoTileMatmulL0.
    """

    steps: tuple[Step, ...]
    schedule: L0Schedule | None = None

    @property
    def type(self) -> Type:
        return self.steps[-1].call.type


class Recipes:
    """Builds the recipe of an e-node from the variables that stand for its child classes."""

    def __init__(self, snapshot: Snapshot, keys: Keys) -> None:
        self._snapshot = snapshot
        self._keys = keys
        self._builders: dict[str, Callable[[Node, list[Var]], Recipe]] = {
            "load": self._load,
            "tile.1": self._over_tiles,
            "tile.2": self._over_tiles,
            "tile.3": self._over_tiles,
            "tile.with_scalar": self._with_scalar,
            "tile.cast": self._cast,
            "tile.copy": self._copy,
            "tile.insert": self._insert,
            "tile.insert_product": self._insert_product,
            "tile.slice": self._slice,
            "tile.reshape": self._reshape,
            "tile.expand": self._expand,
            "tile.set_validshape": self._set_validshape,
            "tile.create": self._create,
            "tile.full": self._full,
            "tile.assemble": self._assemble,
            "tile.write": self._write,
            "tile.accumulate_from": self._accumulate_from,
        }

    def has(self, op: str) -> bool:
        """Whether nodes of this constructor are calls (and not control flow or a realisation)."""
        return op in self._builders

    def build(self, node: Node, tiles: list[Var]) -> Recipe:
        """The calls of a node.

        Args:
            tiles: placeholders for the node's tile children, in order.

        Raises:
            TypeCheckError: the tile op refuses these operands.
        """
        return self._builders[node.op](node, tiles)

    # --- readers -------------------------------------------------------------------------------

    def dim(self, value: int | str) -> Dim:
        return value if isinstance(value, int) else self._keys.expressions[value]

    def dims(self, cls: str) -> tuple[Dim, ...]:
        return tuple(self.dim(value) for value in self._snapshot.indices(cls))

    def _scalar(self, cls: str) -> Expr:
        (node,) = self._snapshot.nodes(cls, "scalar")
        return self._keys.expressions[self._snapshot.string(node.children[0])]

    def _dtype(self, cls: str) -> DType:
        return DTYPES[self._snapshot.string(cls)]

    # --- builders ------------------------------------------------------------------------------

    def _load(self, node: Node, tiles: list[Var]) -> Recipe:
        source, offsets_, shape_, valid_, space, _, _ = node.children
        offsets, shape, valid = (self.dims(c) for c in (offsets_, shape_, valid_))
        rank = len(offsets)
        handle, before = self._handle(source)
        memory = Mem[self._snapshot.string(space)]
        if in_nz_order(handle) and memory is not Mem.Mat:
            raise NzError(f"NZ tensor '{handle.name}' can be loaded into Mat only")
        window = (align_right(shape[-rank:], rank, 1), align_right(valid, rank, 1))
        args: tuple[Expr, ...] = (handle, tuple_of(offsets), *map(tuple_of, window))
        kwargs: dict[str, object] = {"target_memory": memory}
        policy = self._keys.cache.get(self._handle_key(source))
        if policy is not None:
            kwargs["cache"] = policy
        call = make_call("tile.load", args, kwargs)
        if rank > len(valid):
            call = replace(call, result_type=_matrix(call, shape[-2:], valid))
        # PyPTO names a parameter brought to the cube x_mat, and a slice that is loaded s__tile.
        bridge = memory is Mem.Mat and _is_whole(handle, offsets, window[1])
        return Recipe((*before, Step(_stand_in(call), call, "mat" if bridge else "tile")))

    def _handle_key(self, cls: str) -> str:
        for plain in self._snapshot.nodes(cls, "gm.handle"):
            return self._snapshot.string(plain.children[0])
        (transposed,) = self._snapshot.nodes(cls, "gm.transposed")
        return self._handle_key(transposed.children[0])

    def _handle(self, cls: str) -> tuple[Var, tuple[Step, ...]]:
        for plain in self._snapshot.nodes(cls, "gm.handle"):
            return self._keys.handles[self._snapshot.string(plain.children[0])], ()
        (transposed,) = self._snapshot.nodes(cls, "gm.transposed")
        base, _ = self._handle(transposed.children[0])
        call = make_call("tensor.view", (base,), {"layout": TensorLayout.DN})
        view = _stand_in(call)
        return view, (Step(view, call, "dn"),)

    def _over_tiles(self, node: Node, tiles: list[Var]) -> Recipe:
        op = self._snapshot.string(node.children[0])
        kwargs = decode(self._snapshot.string(node.children[1]))
        if op == "tile.transpose":
            return _single(make_call(op, (*tiles, as_expr(0), as_expr(1)), kwargs))
        if op == "tile.cmp":
            return _comparison(op, (tiles[0], tiles[1]), kwargs)
        if op == "tile.move" and kwargs["target_memory"] is Mem.Vec:
            # One column lies in Vec column-major, as if it were created or loaded there.
            kwargs["blayout"] = implicit_view(_tile(tiles[0]).shape, Mem.Vec).blayout
        precise = op == "tile.rsqrt" and bool(kwargs.pop("high_precision", False))
        scratch = _scratch(op, tiles, precise)
        args: tuple[Expr, ...] = (*tiles, *(step.var for step in scratch))
        call = make_call(op, args, kwargs)
        space = kwargs.get("target_memory")
        role = _ROLES.get(space, "tile") if isinstance(space, Mem) else "tile"
        if op == "tile.transpose_view":
            role = "mat_t"
        return Recipe((*scratch, Step(_stand_in(call), call, role)))

    def _with_scalar(self, node: Node, tiles: list[Var]) -> Recipe:
        op = self._snapshot.string(node.children[0])
        kwargs = decode(self._snapshot.string(node.children[1]))
        scalar = self._scalar(node.children[3])
        if op == "tile.cmps":
            return _comparison(op, (tiles[0], scalar), kwargs)
        scratch = _scratch(op, tiles)
        args = (*tiles, scalar, *(step.var for step in scratch))
        call = make_call(op, args, kwargs)
        return Recipe((*scratch, Step(_stand_in(call), call)))

    def _cast(self, node: Node, tiles: list[Var]) -> Recipe:
        dtype, mode = self._dtype(node.children[1]), self._snapshot.string(node.children[2])
        return _single(make_call("tile.cast", tuple(tiles), {"target_type": dtype, "mode": mode}))

    def _copy(self, node: Node, tiles: list[Var]) -> Recipe:
        return _single(make_call("tile.move", tuple(tiles), {"target_memory": Mem.Vec}))

    def _insert(self, node: Node, tiles: list[Var]) -> Recipe:
        source = _tile(tiles[0])
        dtype = self._dtype(node.children[1])
        made = _created(source.shape, dtype, Mem.Mat, source.valid_shape)
        zeros = tuple_of((0,) * source.rank)
        call = make_call("tile.assemble", (made[-1].var, tiles[0], zeros))
        return Recipe((*made, Step(_stand_in(call), call, "mat")))

    def _insert_product(self, node: Node, tiles: list[Var]) -> Recipe:
        product = product_step(tiles)
        source, dtype = _tile(product.var), self._dtype(node.children[2])
        # Tiles go into a tile that is valid as a whole: parts of it could not be told otherwise.
        kwargs = {"dtype": dtype, "target_memory": Mem.Mat}
        made = make_call("tile.create", (tuple_of(source.shape),), kwargs)
        storage = Step(_stand_in(made), made, "storage")
        whole = Var("_", replace(source, view=None))
        call = make_call("tile.assemble", (storage.var, whole, tuple_of((0, 0))))
        steps = [product, storage, Step(_stand_in(call), call, "mat")]
        if not same_dims(source.valid_shape, source.shape):
            extents = (as_expr(extent) for extent in source.valid_shape)
            narrowed = make_call("tile.set_validshape", (steps[-1].var, *extents))
            steps.append(Step(_stand_in(narrowed), narrowed, "mat"))
        return Recipe(tuple(steps))

    def _slice(self, node: Node, tiles: list[Var]) -> Recipe:
        shape, offsets, valid = (self.dims(cls) for cls in node.children[1:4])
        args: list[Expr] = [tiles[0], tuple_of(shape), tuple_of(offsets)]
        if valid != shape:
            args.append(tuple_of(valid))
        call = make_call("tile.slice", tuple(args))
        type_ = call.type
        assert isinstance(type_, TileType)
        if len(shape) != 2 or same_dims(type_.valid_shape, valid):
            return _single(call)
        # A padded source bounds the window by an expression where the tensor is known to fill it.
        window = Step(_stand_in(call), call)
        rows, cols = map(as_expr, valid)
        exact = make_call("tile.set_validshape", (window.var, rows, cols))
        return Recipe((window, Step(_stand_in(exact), exact)))

    def _reshape(self, node: Node, tiles: list[Var]) -> Recipe:
        return _single(make_call("tile.reshape", (tiles[0], tuple_of(self.dims(node.children[1])))))

    def _expand(self, node: Node, tiles: list[Var]) -> Recipe:
        """The rest is filled with zeros, which nothing reads: it is not valid."""
        shape = tuple_of(self.dims(node.children[1]))
        expanded = make_call("tile.fillpad_expand", (tiles[0], shape))
        storage = Step(_stand_in(expanded), expanded, "rows")
        rows, cols = map(as_expr, _tile(tiles[0]).valid_shape)
        narrowed = make_call("tile.set_validshape", (storage.var, rows, cols))
        return Recipe((storage, Step(_stand_in(narrowed), narrowed)))

    def _set_validshape(self, node: Node, tiles: list[Var]) -> Recipe:
        rows, cols = (as_expr(self.dim(self._snapshot.index(cls))) for cls in node.children[1:3])
        return _single(make_call("tile.set_validshape", (tiles[0], rows, cols)))

    def _create(self, node: Node, tiles: list[Var]) -> Recipe:
        _, shape_, rows, cols, dtype, space, _ = node.children
        rank = self._keys.created[self._snapshot.integer(node.children[0])].rank
        shape = self.dims(shape_)[-rank:]
        valid = self._valid(shape, rows, cols)
        memory = Mem[self._snapshot.string(space)]
        return Recipe(_created(shape, self._dtype(dtype), memory, valid))

    def _full(self, node: Node, tiles: list[Var]) -> Recipe:
        value, shape_, valid_, rows, dtype_, _ = node.children
        valid, dtype = self.dims(valid_), self._dtype(dtype_)
        if len(valid) > 1:
            valid = (*valid[:-2], self.dim(self._snapshot.index(rows)), valid[-1])
        shape = tuple_of(self.dims(shape_)[-len(valid) :])
        call = make_call("tile.full", (shape, self._scalar(value)), {"dtype": dtype})
        return Recipe(_declared_valid(call, valid))

    def _valid(self, shape: tuple[Dim, ...], rows: str, cols: str) -> tuple[Dim, ...]:
        last = (self.dim(self._snapshot.index(rows)), self.dim(self._snapshot.index(cols)))
        return (*shape[:-2], *last)[-len(shape) :]

    def _assemble(self, node: Node, tiles: list[Var]) -> Recipe:
        offsets = tuple_of(self.dims(node.children[2]))
        return _single(make_call("tile.assemble", (*tiles, offsets)))

    def _write(self, node: Node, tiles: list[Var]) -> Recipe:
        indices = tuple_of(self.dims(node.children[1]))
        value = self._scalar(node.children[2])
        return _single(make_call("tile.write", (*tiles, indices, value)))

    def _accumulate_from(self, node: Node, tiles: list[Var]) -> Recipe:
        return _single(make_call("tile.matmul_acc", (*tiles, self._scalar(node.children[3]))))


def _is_whole(handle: Var, offsets: tuple[Dim, ...], valid: tuple[Dim, ...]) -> bool:
    assert isinstance(handle.type, TensorType)
    return not any(offsets) and same_dims(valid, handle.type.valid_shape)


def _matrix(load: Call, shape: tuple[Dim, ...], valid: tuple[Dim, ...]) -> TileType:
    """The tile of a window without its leading unit axes, as FlattenTileNdTo2D leaves it."""
    tile = load.type
    assert isinstance(tile, TileType)
    view = replace(implicit_view(shape, tile.space), valid_shape=valid)
    return tile_type(shape, tile.dtype, tile.space, view)


def product_step(tiles: list[Var]) -> Step:
    """The product of two operands, which leaves L0C in the same e-node."""
    call = make_call("tile.matmul", tuple(tiles))
    return Step(_stand_in(call), call, "acc")


def check_stored(tile: Var, target: Expr) -> None:
    """Nothing, if a whole accumulator is stored or the target is not in NZ order.

    Raises:
        NzError: NZ memory is written from a tile in another space, or from one that is valid in
            part (N-029, N-037, N-045).
    """
    if not isinstance(target, Var) or not in_nz_order(target):
        return
    stored = _tile(tile)
    if stored.space is not Mem.Acc:
        where = "Vec" if stored.space is None else stored.space.name
        raise NzError(
            f"NZ tensor '{target.name}' is written with a value that is made in {where}; only "
            "accumulators (Acc) can be written to NZ"
        )
    if not same_dims(stored.valid_shape, stored.shape):
        raise NzError(
            f"NZ tensor '{target.name}' is written from a padded tile, valid in "
            f"{show_shape(stored.valid_shape)}; it must be valid as a whole"
        )


def _single(call: Call) -> Recipe:
    return Recipe((Step(_stand_in(call), call),))


def _stand_in(call: Call) -> Var:
    return Var("_", call.type)


def _tile(var: Var) -> TileType:
    if not isinstance(var.type, TileType):
        raise InternalError(f"{var.name} stands for {var.type}, not for a tile")
    return var.type


def _created(
    shape: tuple[Dim, ...], dtype: DType, memory: Mem, valid: tuple[Dim, ...]
) -> tuple[Step, ...]:
    """A fresh tile; a partly valid one is declared so, and compact in L0C (C-147, C-152)."""
    kwargs: dict[str, Any] = {"dtype": dtype, "target_memory": memory}
    if memory is Mem.Acc and valid != shape:
        kwargs["compact"] = True
    return _declared_valid(make_call("tile.create", (tuple_of(shape),), kwargs), valid)


def _declared_valid(call: Call, valid: tuple[Dim, ...]) -> tuple[Step, ...]:
    var = _stand_in(call)
    tile = _tile(var)
    if tuple(tile.shape) == tuple(valid):
        return (Step(var, call),)
    view = make_call("tile.set_validshape", (var, *(as_expr(dim) for dim in valid)))
    return Step(var, call, "storage"), Step(_stand_in(view), view)


def _comparison(op: str, operands: tuple[Expr, ...], kwargs: dict[str, object]) -> Recipe:
    """1 where the comparison holds and 0 elsewhere: a mask that selects from two filled tiles."""
    assert isinstance(operands[0], Var)
    source = _tile(operands[0])
    mask = make_call(op, operands, kwargs)
    steps = [Step(_stand_in(mask), mask, "mask")]
    filled = []
    for value, role in ((1, "one"), (0, "zero")):
        constant = (
            ConstFloat(float(value), source.dtype)
            if source.dtype.is_float
            else ConstInt(value, source.dtype)
        )
        full = make_call("tile.full", (tuple_of(source.shape), constant), {"dtype": source.dtype})
        made = _declared_valid(full, source.valid_shape)
        steps.extend(replace(step, role=role) for step in made)
        filled.append(made[-1].var)
    kwargs_tmp = {"dtype": UINT8, "target_memory": Mem.Vec}
    tmp = make_call("tile.create", (tuple_of(_SELECT_SCRATCH),), kwargs_tmp)
    steps.append(Step(_stand_in(tmp), tmp, "tmp"))
    call = make_call("tile.sel", (steps[0].var, *filled, steps[-1].var))
    return Recipe((*steps, Step(_stand_in(call), call)))


def _scratch(op: str, tiles: list[Var], precise: bool = False) -> tuple[Step, ...]:
    """The scratch tile that an op wants as its last operand (PyPTO, op conversion table)."""
    decl = lookup(op)
    family = "" if decl is None else decl.family
    source = _tile(tiles[0])
    shape = source.shape
    if family == "row_reduce":
        cols = shape[-1]
        least = _LEAST_SCRATCH_COLS
        shape = (*shape[:-1], max(cols, least) if isinstance(cols, int) else least)
    elif family != "arg_reduce" and op not in ("tile.xor", "tile.xors") and not precise:
        return ()
    kwargs = {"dtype": source.dtype, "target_memory": Mem.Vec}
    call = make_call("tile.create", (tuple_of(shape),), kwargs)
    return (Step(_stand_in(call), call, "tmp"),)
