"""Prices of vector operations: profiled tables where they have a row, else a law of repeats.

Source: pto-isa's cost model. The law of one intrinsic over r repeats of 256 bytes is
head + slope * r + tail; r is the real number of repeats of the valid part, also where pto-isa's
own lowering switches to count mode and loses it. Ops that expand to several intrinsics are the sum
over them, each on an empty vector stream (a barrier between them).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from pypto_egg.extract.cost.extents import ceil_div, extents, matrix, vector_shape
from pypto_egg.extract.cost.model import CostVector, OpInstance
from pypto_egg.extract.cost.movement import copy_cycles, tile_of
from pypto_egg.ir.dtype import DType
from pypto_egg.target import Target
from pypto_egg.target.tables import VectorShape


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """Table rows to look up, first one found, and the law if there is none.

    A row of another instruction stands in where both have the same law: add and max for sub on
    a2a3, which has no rows of them.
    """

    law: str
    rows: tuple[str, ...] = ()


_INTRINSICS = {
    "add": Intrinsic("add", ("TADD", "TSUB")),
    "sub": Intrinsic("add", ("TSUB",)),
    "mul": Intrinsic("mul", ("TMUL",)),
    "div": Intrinsic("div"),
    "max": Intrinsic("max", ("TSUB",)),
    "and": Intrinsic("and", ("TADD",)),
    "not": Intrinsic("not", ("TNEG",)),
    "shift": Intrinsic("other"),
    "adds": Intrinsic("adds", ("TADDS", "TMINS")),
    "muls": Intrinsic("muls", ("TMULS", "TMINS")),
    "divs": Intrinsic("div", ("TDIVS",)),
    "maxs": Intrinsic("maxs", ("TMINS",)),
    "mins": Intrinsic("mins", ("TMINS",)),
    "neg": Intrinsic("muls", ("TNEG", "TMULS")),
    "abs": Intrinsic("abs", ("TNEG",)),
    "relu": Intrinsic("relu", ("TNEG",)),
    "lrelu": Intrinsic("lrelu", ("TMINS",)),
    "exp": Intrinsic("exp", ("TEXP",)),
    "ln": Intrinsic("ln"),
    "sqrt": Intrinsic("sqrt", ("TSQRT",)),
    "rsqrt": Intrinsic("rsqrt", ("TRSQRT",)),
    "recip": Intrinsic("div", ("TRECIP",)),
    "cast": Intrinsic("cast", ("TCVT",)),
    "copy": Intrinsic("copy"),
    "sel": Intrinsic("sel", ("TSEL",)),
    "cmp": Intrinsic("cmp"),
    "expand": Intrinsic("copy", ("TROWEXPAND",)),
    "mask_gather": Intrinsic("mask_gather"),
    "row_sum": Intrinsic("block_add", ("TROWSUM",)),
    "row_max": Intrinsic("block_max", ("TROWMAX",)),
    "row_prod": Intrinsic("mul", ("TROWSUM",)),
    "col_sum": Intrinsic("add", ("TCOLSUM",)),
    "col_max": Intrinsic("max", ("TCOLMAX",)),
    "col_prod": Intrinsic("mul", ("TCOLSUM",)),
}  # fmt: skip

# Elementwise ops as the intrinsics they run over the tile. Where PTO's own sequence is not
# published (remainders, sin and cos, random) the list is an estimate of its length.
_SIN = ("muls", "cast", "cast", *("mul", "adds") * 5)
ELEMENTWISE: dict[str, tuple[str, ...]] = {
    "add": ("add",), "sub": ("sub",), "mul": ("mul",), "div": ("div",),
    "maximum": ("max",), "minimum": ("max",),
    "part_add": ("add",), "part_mul": ("mul",), "part_max": ("max",), "part_min": ("max",),
    "fmod": ("div", "cast", "mul", "sub"), "rem": ("div", "cast", "mul", "sub"),
    "and": ("and",), "or": ("and",), "xor": ("and", "and", "not", "and"),
    "shl": ("shift",), "shr": ("shift",),
    "adds": ("adds",), "subs": ("adds",), "muls": ("muls",), "divs": ("divs",),
    "maximums": ("maxs",), "minimums": ("mins",),
    "fmods": ("divs", "cast", "muls", "sub"), "rems": ("divs", "cast", "muls", "sub"),
    "ands": ("copy", "and"), "ors": ("copy", "and"), "xors": ("copy", "and", "and", "not", "and"),
    "shls": ("shift",), "shrs": ("shift",),
    "addc": ("add", "add"), "subc": ("sub", "sub"),
    "addsc": ("adds", "add"), "subsc": ("adds", "sub"),
    "neg": ("neg",), "abs": ("abs",), "not": ("not",), "relu": ("relu",), "lrelu": ("lrelu",),
    "prelu": ("mul", "cmp", "sel"),
    "exp": ("exp",), "log": ("ln",), "sqrt": ("sqrt",), "recip": ("recip",),
    "rsqrt": ("rsqrt",), "sin": _SIN, "cos": ("adds", *_SIN), "cast": ("cast",),
    "cmp": ("cmp",), "cmps": ("cmp",), "sel": ("sel",), "sels": ("copy", "sel"),
    "expands": ("copy",), "full": ("copy",), "ci": ("copy", "adds"), "tri": ("copy", "cmp", "sel"),
    "random": ("mul", "mul", "and", "and") * 10,
    "gather_mask": ("mask_gather",), "gather_compare": ("cmp", "mask_gather"),
    "scatter_mask": ("mask_gather",),
}  # fmt: skip
_BY_FIRST_OPERAND = frozenset({"cmp", "cmps", "gather_mask", "gather_compare", "scatter_mask"})
_PRECISE = {"rsqrt": ("sqrt", "div"), "recip": ("div", "mul", "mul"), "log": ("ln", "mul", "mul")}

_EXPANDING = {
    "add": ("add",), "sub": ("sub",), "mul": ("mul",), "div": ("div",),
    "max": ("max",), "min": ("max",), "expdif": ("sub", "exp"),
}  # fmt: skip
Pricer = Callable[[OpInstance, Target], CostVector]


def price_elementwise(op: OpInstance, target: Target) -> CostVector:
    """An op that treats each element alike, over the valid part of its result."""
    short = op.op.removeprefix("tile.")
    steps = ELEMENTWISE[short]
    if op.kwargs.get("high_precision") or (short == "rsqrt" and len(op.operands) == 2):
        steps = _PRECISE.get(short, steps)
    worked = op.operands[0] if short in _BY_FIRST_OPERAND else op.result
    tile = tile_of(worked, op.op)
    source = tile_of(op.operands[0], op.op).dtype if short == "cast" else tile.dtype
    shape = vector_shape(tile, op.op)
    return CostVector(
        vector=sum(_cycles(step, source, shape, target, tile.dtype) for step in steps)
    )


def price_row_expand(op: OpInstance, target: Target) -> CostVector:
    """tile.row_expand_*: the column is broadcast into blocks, then the op runs row by row."""
    tile = tile_of(op.result, op.op)
    rowwise = replace(vector_shape(tile, op.op), contiguous=False)
    kind = op.op.removeprefix("tile.row_expand").removeprefix("_")
    if not kind:
        return CostVector(vector=_cycles("expand", tile.dtype, rowwise, target))
    broadcast = target.vector_laws["broadcast"].cycles(ceil_div(rowwise.rows, 8))
    steps = _EXPANDING[kind]
    return CostVector(
        vector=broadcast + sum(_cycles(s, tile.dtype, rowwise, target) for s in steps)
    )


def price_col_expand(op: OpInstance, target: Target) -> CostVector:
    """tile.col_expand_*: the op runs row by row against the same row vector."""
    tile = tile_of(op.result, op.op)
    rowwise = replace(vector_shape(tile, op.op), contiguous=False)
    kind = op.op.removeprefix("tile.col_expand").removeprefix("_")
    steps = _EXPANDING[kind] if kind else ("copy",)
    return CostVector(vector=sum(_cycles(s, tile.dtype, rowwise, target) for s in steps))


def price_row_reduce(op: OpInstance, target: Target) -> CostVector:
    """tile.row_*: the table, else a tree of block reductions, each an eighth of the one before.

    A product has no block reduction and no rows of its own: it takes the row of a sum, or halves
    the row in each step. An arg reduction runs the reduction, a comparison with its result and a
    second reduction over the indices.
    """
    tile, kind = tile_of(op.operands[0], op.op), op.op.removeprefix("tile.row_")
    shape = vector_shape(tile, op.op)
    step = f"row_{kind}" if kind in ("sum", "prod") else "row_max"
    once = _reduce(step, tile.dtype, shape, target)
    if not kind.startswith("arg"):
        return CostVector(vector=once)
    return CostVector(vector=2 * once + _cycles("cmp", tile.dtype, shape, target))


def price_col_reduce(op: OpInstance, target: Target) -> CostVector:
    """tile.col_*: the table, else one op for each row but the first."""
    tile, kind = tile_of(op.operands[0], op.op), op.op.removeprefix("tile.col_")
    shape = vector_shape(tile, op.op)
    step = f"col_{kind}" if kind in ("sum", "prod") else "col_max"
    once = _reduce(step, tile.dtype, shape, target)
    if not kind.startswith("arg"):
        return CostVector(vector=once)
    return CostVector(vector=2 * once + _cycles("cmp", tile.dtype, shape, target))


def price_transpose(op: OpInstance, target: Target) -> CostVector:
    """tile.transpose (TTRANS): the measured time of a repeat of 256 bytes."""
    repeats = _repeats(_bits(op), vector_shape(op.operands[0], op.op), target)
    return CostVector(vector=target.transpose_repeat_cycles * repeats)


def price_concat(op: OpInstance, target: Target) -> CostVector:
    """tile.concat: each source is copied row by row beside the other."""
    sources = (tile_of(operand, op.op) for operand in op.operands)
    return CostVector(
        vector=sum(copy_cycles(tile, op.op, target, row_by_row=True) for tile in sources)
    )


def price_fillpad(op: OpInstance, target: Target) -> CostVector:
    """tile.fillpad and fillpad_expand: the valid part is copied, the rest is filled.

    fillpad_inplace only fills. A tile without padding costs no fill.
    """
    source, result = tile_of(op.operands[0], op.op), tile_of(op.result, op.op)
    copied = 0.0 if op.op == "tile.fillpad_inplace" else copy_cycles(source, op.op, target)
    padding = prod(extents(result.shape)) - matrix(source, op.op).elems
    if padding <= 0:
        return CostVector(vector=copied)
    filled = VectorShape(1, padding, contiguous=True)
    return CostVector(vector=copied + _law("copy", result.dtype, filled, target))


def price_gather(op: OpInstance, target: Target) -> CostVector:
    """tile.gather, gatherb and scatter: one gather intrinsic for each row of the indices."""
    index = op.operands[2] if op.op == "tile.scatter" else op.operands[1]
    shape = vector_shape(index, op.op)
    row = replace(shape, rows=1, contiguous=True)
    bits = tile_of(op.result, op.op).dtype.bits
    each = target.vector_laws["gather"].cycles(_repeats(bits, row, target))
    return CostVector(vector=shape.rows * each)


def price_scatter_update(op: OpInstance, target: Target) -> CostVector:
    """tile.scatter_update: a read of the index and a copy for each source row."""
    source = tile_of(op.operands[2], op.op)
    moved = matrix(source, op.op)
    rows = moved.batch * moved.rows
    one = replace(source, shape=(1, moved.cols), view=None)
    return CostVector(
        vector=rows * copy_cycles(one, op.op, target),
        scalar=rows * target.scalar.instruction_cycles,
    )


def price_sort(op: OpInstance, target: Target) -> CostVector:
    """tile.sort32: one repeat for 32 elements; merge sorts: one for 4 x 32 pairs of 8 bytes."""
    if op.op == "tile.sort32":
        shape = vector_shape(op.operands[0], op.op)
        repeats = shape.rows * ceil_div(shape.cols, 32)
        return CostVector(vector=target.vector_laws["sort32"].cycles(repeats))
    pair_bits = 1024 * 8
    merged = matrix(op.result, op.op)
    repeats = ceil_div(merged.elems * merged.bits, pair_bits)
    return CostVector(vector=target.vector_laws["mrgsort"].cycles(repeats))


def _cycles(
    step: str, dtype: DType, shape: VectorShape, target: Target, result: DType | None = None
) -> float:
    """Cycles of one intrinsic over `shape`: its first table row, else its law."""
    to = dtype if result is None else result
    found = _tabulated(step, dtype, shape, to, target)
    if found is not None:
        return found
    widest = max(dtype, to, key=lambda d: d.bits)
    return _law(_INTRINSICS[step].law, widest, shape, target)


def _tabulated(
    step: str, dtype: DType, shape: VectorShape, result: DType, target: Target
) -> float | None:
    for row in _INTRINSICS[step].rows:
        found = target.vector_table.cycles(row, dtype, shape, result)
        if found is not None:
            return found
    return None


def _law(law: str, dtype: DType, shape: VectorShape, target: Target) -> float:
    return target.vector_laws[law].cycles(_repeats(dtype.bits, shape, target))


def _repeats(bits: int, shape: VectorShape, target: Target) -> int:
    """Vector repeats over a tile: of its elements if contiguous, else row by row."""
    per_repeat = target.limits.vector_repeat_bytes * 8 // bits
    if shape.contiguous:
        return ceil_div(shape.rows * shape.cols, per_repeat)
    return shape.rows * ceil_div(shape.cols, per_repeat)


def _reduce(step: str, dtype: DType, shape: VectorShape, target: Target) -> float:
    """Cycles of a reduction: its table row, else its steps by the law."""
    found = _tabulated(step, dtype, shape, dtype, target)
    if found is not None:
        return found
    law = _INTRINSICS[step].law
    if step.startswith("row"):
        return _tree(law, 2 if step == "row_prod" else 8, dtype, shape, target)
    rest = VectorShape(max(shape.rows - 1, 0), shape.cols, contiguous=False)
    return _law(law, dtype, rest, target)


def _tree(law: str, arity: int, dtype: DType, shape: VectorShape, target: Target) -> float:
    """Reductions of rows to one column, `arity` columns to one in each step."""
    cycles, cols = 0.0, shape.cols
    while cols > 1:
        width = cols if arity > 2 else ceil_div(cols, 2)
        step = VectorShape(shape.rows, width, contiguous=shape.contiguous)
        cycles += _law(law, dtype, step, target)
        cols = ceil_div(cols, arity)
    return cycles


def _bits(op: OpInstance) -> int:
    return tile_of(op.operands[0], op.op).dtype.bits


def vector_pricers() -> dict[str, Pricer]:
    """The pricing function of every vector op, by IR name."""
    pricers: dict[str, Pricer] = {f"tile.{name}": price_elementwise for name in ELEMENTWISE}
    for kind in ("", *(f"_{name}" for name in _EXPANDING)):
        pricers[f"tile.row_expand{kind}"] = price_row_expand
        pricers[f"tile.col_expand{kind}"] = price_col_expand
    for kind in ("sum", "max", "min", "prod", "argmax", "argmin"):
        pricers[f"tile.row_{kind}"] = price_row_reduce
        pricers[f"tile.col_{kind}"] = price_col_reduce
    pricers["tile.transpose"] = price_transpose
    pricers["tile.concat"] = price_concat
    for name in ("fillpad", "fillpad_expand", "fillpad_inplace"):
        pricers[f"tile.{name}"] = price_fillpad
    for name in ("gather", "gatherb", "scatter"):
        pricers[f"tile.{name}"] = price_gather
    pricers["tile.scatter_update"] = price_scatter_update
    for name in ("sort32", "mrgsort_format1", "mrgsort_format2"):
        pricers[f"tile.{name}"] = price_sort
    return pricers
