"""The tensor side of the e-graph: sorts, constructors and facts.

Two kinds of value live in it. A `Tensor` is what the user's program computes; a `Tile`, of
`tile_language`, is a way of holding it on chip. `demand(t, f)` says that somebody wants tensor `t`
as a tile of form `f`; `realize(t, f)` is the e-class of all tiles that are `t` in form `f`. A
lowering rule turns a demand for a result into demands for operands and unions the tile op into
the realisation.

Every constructor's `egg_fn` is the name under which the snapshot reads it back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from egglog import (
    Expr,
    StringLike,
    Vec,
    function,
    i64,
    i64Like,
    method,
)
from egglog import String as String
from egglog import relation as egglog_relation


def relation(name: str, *sorts: Any) -> Callable[..., Any]:
    """A relation; egglog's own signature stops at four columns."""
    return egglog_relation(name, *sorts)


class Index(Expr):
    """An integer expression: extents, offsets. Symbols are names of scalar expressions."""

    @method(egg_fn="index")
    def __init__(self, value: i64Like) -> None: ...

    @method(egg_fn="index.sym")
    @classmethod
    def sym(cls, name: StringLike) -> Index: ...


class Scalar(Expr):
    """A scalar operand, by the loader's key for the IR expression."""

    @method(egg_fn="scalar")
    def __init__(self, key: StringLike) -> None: ...


class Gm(Expr):
    """A handle on global memory that a load can name."""

    @method(egg_fn="gm.handle")
    def __init__(self, name: StringLike) -> None: ...

    @method(egg_fn="gm.transposed")
    def transposed(self) -> Gm:
        """The DN view: the same bytes read with the two axes exchanged."""


class Tensor(Expr):
    """A value of the tensor program."""


# --- tensors -----------------------------------------------------------------------------------


@function(egg_fn="tensor.gm")
def gm(name: StringLike, point: i64Like) -> Tensor:
    """The content of a GM window; `point` tells reads of written memory apart, 0 is read-only."""


@function(egg_fn="tensor.value")
def value(number: i64Like) -> Tensor:
    """A name for a value of the program, so that terms built from it stay shallow."""


@function(egg_fn="tensor.unary")
def unary(op: StringLike, attrs: StringLike, x: Tensor) -> Tensor:
    """An op over one tensor, element by element; `attrs` are its keyword arguments."""


@function(egg_fn="tensor.binary")
def binary(op: StringLike, attrs: StringLike, x: Tensor, y: Tensor) -> Tensor:
    """An op over two tensors, row_expand_* and col_expand_* included."""


@function(egg_fn="tensor.with_scalar")
def with_scalar(op: StringLike, attrs: StringLike, x: Tensor, s: Scalar) -> Tensor:
    """An op over a tensor and a scalar."""


@function(egg_fn="tensor.cast")
def cast(x: Tensor, dtype: StringLike, mode: StringLike) -> Tensor:
    """`x` converted to `dtype`, rounded as `mode` says."""


@function(egg_fn="tensor.reduce")
def reduce(op: StringLike, x: Tensor) -> Tensor:
    """Each row of `x` reduced to one element: [M, 1]."""


@function(egg_fn="tensor.transpose")
def transpose(x: Tensor) -> Tensor:
    """The last two axes exchanged."""


@function(egg_fn="tensor.matmul")
def matmul(x: Tensor, y: Tensor, a_trans: i64Like, b_trans: i64Like, dtype: StringLike) -> Tensor:
    """x @ y with each operand transposed where its flag is 1, rounded to `dtype`."""


@function(egg_fn="tensor.matmul_acc")
def matmul_acc(acc: Tensor, x: Tensor, y: Tensor, a_trans: i64Like, b_trans: i64Like) -> Tensor:
    """acc + x @ y, with each operand transposed where its flag is 1."""


@function(egg_fn="tensor.matmul_acc_from")
def matmul_acc_from(
    acc: Tensor, x: Tensor, y: Tensor, a_trans: i64Like, b_trans: i64Like, first: Scalar
) -> Tensor:
    """matmul_acc that starts from zero where `first` holds (init_cond)."""


@function(egg_fn="tensor.slice")
def window(x: Tensor, offsets: Vec[Index], shape: Vec[Index], valid: Vec[Index]) -> Tensor:
    """The part of `x` at these offsets; `valid` are its valid extents."""


@function(egg_fn="tensor.reshape")
def reshape(x: Tensor, shape: Vec[Index]) -> Tensor:
    """The same elements in row-major order under another shape."""


@function(egg_fn="tensor.set_validshape")
def set_validshape(x: Tensor, rows: Index, cols: Index) -> Tensor:
    """`x` with these valid extents on its last two axes."""


@function(egg_fn="tensor.create")
def create(key: i64Like) -> Tensor:
    """A buffer of undefined content; each has a key of its own, two are never the same."""


@function(egg_fn="tensor.full")
def full(value: Scalar, shape: Vec[Index], dtype: StringLike) -> Tensor:
    """A tensor of this shape with `value` in every element."""


@function(egg_fn="tensor.write")
def write(x: Tensor, indices: Vec[Index], value: Scalar) -> Tensor:
    """`x` with one element replaced."""


@function(egg_fn="tensor.assemble")
def assemble(target: Tensor, source: Tensor, offsets: Vec[Index]) -> Tensor:
    """`target` with `source` written over it at these offsets."""


@function(egg_fn="tensor.iter_arg")
def iter_arg(loop: i64Like, position: i64Like) -> Tensor:
    """What the loop carries into an iteration at this position."""


@function(egg_fn="tensor.loop_result")
def loop_result(loop: i64Like, position: i64Like) -> Tensor:
    """What the loop carries out of its last iteration at this position."""


@function(egg_fn="tensor.phi")
def phi(branch: i64Like, position: i64Like) -> Tensor:
    """What the branch yields at this position."""


# --- facts about tensors -----------------------------------------------------------------------


@function(egg_fn="rows")
def rows(t: Tensor) -> Index:
    """The logical extent of the second-last axis (1 for rank 1), equal to some index."""


@function(egg_fn="cols")
def cols(t: Tensor) -> Index:
    """The logical extent of the last axis, equal to some index."""


@function(egg_fn="lead", merge=lambda old, new: old)
def lead(t: Tensor) -> Vec[Index]:
    """The axes before the last two."""


@function(egg_fn="valid", merge=lambda old, new: old)
def valid(t: Tensor) -> Vec[Index]:
    """The valid extents of all axes."""


@function(egg_fn="dtype")
def dtype(t: Tensor) -> String:
    """The element type, by the DSL's name."""


at = relation("at", Tensor, i64)
"""The tensor may be computed in this region: its operands are there."""

located = relation("located", Tensor, Gm, Vec[Index])
"""The tensor is the window of a GM handle that starts at these offsets."""

floating = relation("floating", Tensor)
"""A located tensor whose memory is never written: any place for its load is right."""

pinned = relation("pinned", Tensor, i64)
"""A located tensor whose memory is written: it is loaded at this point and nowhere else."""

transposable = relation("transposable", Gm)
"""A handle of a whole rank-2 ND tensor, which `tensor.view` can read as DN."""

computed = relation("computed", Tensor)
"""A tensor that is the result of a computation, so no load can produce it."""

defined = relation("defined", Tensor)
"""A tensor whose content does not depend on memory that the program never wrote."""

boxable = relation("boxable", Tensor)
"""A located tensor whose load may be padded: every consumer asks, or each has its own (C-144)."""

seeded = relation("seeded", i64, i64, i64, Scalar)
"""Loop region and position of an accumulator that starts at zero and is only accumulated into;
the key of a buffer to seed it with; the condition that holds in the first iteration."""

carry = relation("carry", i64, i64, i64, Tensor, Tensor)
"""Loop region, position, the region around it, initial value, yielded value."""

arms = relation("arms", i64, i64, i64, i64, Tensor, Tensor)
"""Branch key, position, then-region, else-region, and the value each arm yields."""

named = relation("named", Tensor, i64)
"""The number of a source name for the tensor; the least is used."""

whole = relation("whole", Tensor)
"""The valid region is the whole tensor."""


@function(egg_fn="batch", merge=lambda old, new: old)
def batch(t: Tensor) -> i64:
    """The product of the axes before the last two; 0 for rank 2 and below."""


# --- facts about the machine -------------------------------------------------------------------


@function(egg_fn="line")
def line(dtype: StringLike) -> i64:
    """Elements in one 32-byte line (c0) of this dtype."""


@function(egg_fn="fractal_rows")
def fractal_rows() -> i64:
    """Rows of a fractal: 16 on every target."""


@function(egg_fn="element_bytes")
def element_bytes(dtype: StringLike) -> i64:
    """Bytes of one element."""


@function(egg_fn="capacity")
def capacity(space: StringLike) -> i64:
    """Bytes of an on-chip memory space."""


@function(egg_fn="block_limit")
def block_limit(axis: StringLike) -> i64:
    """Extent of the full L0 block along "m" or "n"; boxes never grow beyond it."""


@function(egg_fn="accumulator")
def accumulator(x: StringLike, y: StringLike) -> String:
    """The dtype in which the cube accumulates a product of these two; absent if it cannot."""


@function(egg_fn="bias_bytes")
def bias_bytes() -> i64:
    """A row of the bias table is a whole number of these bytes."""


drains = relation("drains", String, String)
"""An accumulator of the first dtype can be stored to GM as the second, rounding to even."""

inserts = relation("inserts", String, String)
"""An accumulator of the first dtype can be put into Mat as the second, rounding to even."""

box = relation("box", i64)
"""A granularity to which extents may be rounded besides the least legal one."""

# --- facts about operators and regions ---------------------------------------------------------


@function(egg_fn="lowers_to")
def lowers_to(op: StringLike) -> String:
    """The tile op of a tensor op that converts one to one."""


@function(egg_fn="family")
def family(op: StringLike) -> String:
    """The registry's family of an op."""


@function(egg_fn="row_form")
def row_form(op: StringLike) -> String:
    """The row_expand op of a broadcasting binary op with a [M, 1] right operand."""


@function(egg_fn="col_form")
def col_form(op: StringLike) -> String:
    """The col_expand op of a broadcasting binary op with a [1, N] right operand."""


@function(egg_fn="around")
def around(region: i64Like) -> i64:
    """The region that encloses this one."""


inside = relation("inside", i64, i64)
"""The first region lies strictly inside the second."""

# --- facts about products and statements -------------------------------------------------------


@function(egg_fn="acc_dtype", merge=lambda old, new: old)
def acc_dtype(t: Tensor) -> String:
    """The element type of the accumulator in which the cube can leave this tensor.

    An accumulator holds the value before it is rounded to the tensor's own dtype; whoever takes
    it out of L0C rounds.
    """


extents = relation("extents", Tensor, Index, Index)
"""Physical extents that some producer of this tensor offers."""

product = relation("product", Tensor, Tensor, Tensor, i64, i64)
"""A cube product, its operands and their transpose flags."""

operands = relation("operands", Tensor, Tensor, Tensor, i64, String, i64, String, i64)
"""A product whose K is whole lines: the result, the left and the right operand, then the flag and
the order in which each is read, and K."""


@function(egg_fn="read_order")
def read_order(trans: i64Like) -> String:
    """The order in which the cube reads an operand with this transpose flag: "nz" or "zn"."""


pads_n = relation("pads_n", Tensor)
"""A cube product whose N may be padded."""


@function(egg_fn="seed_rows")
def seed_rows(t: Tensor) -> Index:
    """The valid rows with which a created accumulator starts: the tensor's own, or fewer where
    the products added to it are provably narrower (C-270..C-272)."""


@function(egg_fn="m_granularity", merge=lambda old, new: old)
def m_granularity(t: Tensor) -> i64:
    """The number of rows of which this product's box is a multiple."""


@function(egg_fn="n_granularity", merge=lambda old, new: old)
def n_granularity(t: Tensor) -> i64:
    """The number of columns of which this product's box is a multiple."""


store_root = relation("store_root", i64, Tensor, i64, String)
"""Statement key, the stored tensor, its region, and the element type of the destination."""

read_root = relation("read_root", i64, Tensor, i64)
"""Statement key, a tensor of which one element is read as a scalar, the region."""
