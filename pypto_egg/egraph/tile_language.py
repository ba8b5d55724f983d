"""The tile side of the e-graph: forms, demands, tiles and the statements that consume them.

A `Form` carries physical extents, not boxes: two boxes that round an extent to the same size are
the same tile, and so the same form. It also carries the region (loop or branch) in which the
tile exists, so that hoisting is a choice between e-nodes like any other.
"""

from __future__ import annotations

from egglog import Expr, StringLike, Vec, function, i64, i64Like, method
from egglog import String as String

from pypto_egg.egraph.language import Gm, Index, Scalar, Tensor, relation


class Form(Expr):
    """Physical properties of a tile.

    Orders: "nd" row-major, "nz" fractals of the tensor as it is, "zn" fractals of the tensor's
    transpose, read without moving a byte.
    """

    @method(egg_fn="form")
    def __init__(
        self, space: StringLike, rows: Index, cols: Index, order: StringLike, region: i64Like
    ) -> None: ...


class Tile(Expr):
    """A value of the tile program."""


class Stmt(Expr):
    """A statement of the skeleton that consumes a tile; the roots of extraction."""

    @method(egg_fn="stmt")
    def __init__(self, key: i64Like) -> None: ...


# --- demands and realisations ------------------------------------------------------------------

demand = relation("demand", Tensor, Form)
"""Somebody wants the tensor as a tile of this form."""


@function(egg_fn="realize", unextractable=True)
def realize(t: Tensor, f: Form) -> Tile:
    """The e-class of all tiles that are tensor `t` in form `f`."""


vec_need = relation("vec_need", Tensor, Index, Index, i64)
"""A demand for a Vec tile whose lines are whole 32-byte blocks: rows, cols, region."""


mat_need = relation("mat_need", Tensor, Index, Index, String, i64)
"""A demand for a Mat tile of whole fractals: rows, cols, order, region."""


def vec(rows: Index, cols: Index, region: i64Like) -> Form:
    """A row-major tile in Vec ([M, 1] is column-major, which is the same bytes)."""
    return Form("Vec", rows, cols, "nd", region)


def mat(rows: Index, cols: Index, order: StringLike, region: i64Like) -> Form:
    """A boxed tile in Mat; rows and cols are the tensor's own axes, whatever the order."""
    return Form("Mat", rows, cols, order, region)


def acc(rows: i64Like, cols: i64Like, region: i64Like) -> Form:
    """An accumulator in L0C."""
    return Form("Acc", Index(rows), Index(cols), "nz", region)


# --- tiles -------------------------------------------------------------------------------------


@function(egg_fn="load")
def load(
    source: Gm,
    offsets: Vec[Index],
    shape: Vec[Index],
    valid: Vec[Index],
    space: StringLike,
    region: i64Like,
    point: i64Like,
) -> Tile:
    """The window of a GM handle, loaded into `space`.

    `point` tells reads of written memory apart.
    """


@function(egg_fn="tile.1")
def tile1(op: StringLike, attrs: StringLike, x: Tile) -> Tile:
    """A tile op over one tile; `attrs` are its keyword arguments."""


@function(egg_fn="tile.2")
def tile2(op: StringLike, attrs: StringLike, x: Tile, y: Tile) -> Tile:
    """A tile op over two tiles."""


@function(egg_fn="tile.3")
def tile3(op: StringLike, attrs: StringLike, x: Tile, y: Tile, z: Tile) -> Tile:
    """A tile op over three tiles."""


@function(egg_fn="tile.with_scalar")
def tile_with_scalar(op: StringLike, attrs: StringLike, x: Tile, s: Scalar) -> Tile:
    """A tile op over a tile and a scalar."""


@function(egg_fn="tile.cast")
def tile_cast(x: Tile, dtype: StringLike, mode: StringLike) -> Tile:
    """A Vec tile converted to `dtype`, rounded as `mode` says."""


@function(egg_fn="tile.insert")
def tile_insert(x: Tile, dtype: StringLike) -> Tile:
    """An accumulator put into a fresh Mat tile, rounded to `dtype` on the way."""


@function(egg_fn="tile.insert_product")
def insert_product(x: Tile, y: Tile, dtype: StringLike) -> Tile:
    """A product whose tiles are put into a fresh Mat tile as they are made, rounded to `dtype`."""


@function(egg_fn="tile.copy")
def tile_copy(x: Tile, user: Tensor) -> Tile:
    """A copy of a Vec tile that only the tile of `user` may write into."""


@function(egg_fn="tile.slice")
def tile_slice(x: Tile, shape: Vec[Index], offsets: Vec[Index], valid: Vec[Index]) -> Tile:
    """The part of a tile at these offsets; `valid` are its valid extents."""


@function(egg_fn="tile.reshape")
def tile_reshape(x: Tile, shape: Vec[Index]) -> Tile:
    """The same bytes under another shape."""


@function(egg_fn="tile.expand")
def tile_expand(x: Tile, shape: Vec[Index]) -> Tile:
    """A copy of a Vec tile in larger extents, of which it stays the valid part."""


@function(egg_fn="tile.set_validshape")
def tile_set_validshape(x: Tile, rows: Index, cols: Index) -> Tile:
    """The same tile with these valid extents on its last two axes."""


@function(egg_fn="tile.create")
def tile_create(
    key: i64Like,
    shape: Vec[Index],
    rows: Index,
    cols: Index,
    dtype: StringLike,
    space: StringLike,
    region: i64Like,
) -> Tile:
    """A fresh tile of these physical extents with valid rows and cols (last two axes)."""


@function(egg_fn="tile.full")
def tile_full(
    value: Scalar,
    shape: Vec[Index],
    valid: Vec[Index],
    rows: Index,
    dtype: StringLike,
    region: i64Like,
) -> Tile:
    """A tile of these physical extents filled with a value; `valid` is the tensor's shape, of
    which `rows` are valid on the second-last axis."""


@function(egg_fn="tile.write")
def tile_write(x: Tile, indices: Vec[Index], value: Scalar) -> Tile:
    """`x` with one element replaced in its buffer."""


@function(egg_fn="tile.assemble")
def tile_assemble(target: Tile, source: Tile, offsets: Vec[Index]) -> Tile:
    """`target` with `source` written into its buffer at these offsets."""


@function(egg_fn="tile.accumulate_from")
def tile_accumulate_from(acc: Tile, x: Tile, y: Tile, first: Scalar) -> Tile:
    """matmul_acc that overwrites the accumulator where `first` holds (init_cond)."""


@function(egg_fn="outer")
def outer(x: Tile, region: i64Like) -> Tile:
    """A tile made in an enclosing region, used in this one: no instruction."""


@function(egg_fn="carried")
def carried(loop: i64Like, position: i64Like, form: Form) -> Tile:
    """The iter_arg of a loop that carries a tile; it requires the loop to carry this form."""


@function(egg_fn="looped")
def looped(loop: i64Like, position: i64Like, form: Form, init: Tile, yielded: Tile) -> Tile:
    """A loop that carries a tile in this form."""


@function(egg_fn="loop_carry", unextractable=True)
def loop_carry(loop: i64Like, position: i64Like, form: Form) -> Tile:
    """The e-class of all ways in which a loop can carry a tile in this form."""


@function(egg_fn="merged")
def merged(branch: i64Like, position: i64Like, then: Tile, orelse: Tile) -> Tile:
    """The result of a branch whose arms yield tiles."""


# --- statements --------------------------------------------------------------------------------


@function(egg_fn="store")
def store(key: i64Like, tile: Tile) -> Stmt:
    """The skeleton's store number `key`, of this tile."""


@function(egg_fn="store.product")
def store_product(key: i64Like, x: Tile, y: Tile) -> Stmt:
    """The skeleton's store number `key`, of a product whose tiles are stored as they are made."""


@function(egg_fn="read")
def read(key: i64Like, tile: Tile) -> Stmt:
    """The skeleton's scalar read number `key`, from this tile."""
