"""Write-back of accumulators to NZ tensors (A2/A3).

A store writes whole rows of one panel: `TStoreAccNz2nz` takes the distance between column blocks
from the height of the partition, not from the tensor, and folds a larger batch into its columns
(N-057 to N-060). What it may write at once is checked on each store that is emitted
(`check_actual_stores`), since a larger result may still be split (N-048, N-053).
"""

from __future__ import annotations

from pypto_egg.errors import CapacityError
from pypto_egg.ir.dtype import FP32
from pypto_egg.ir.enums import AtomicType, Mem
from pypto_egg.ir.expr import Call, Var, tuple_of
from pypto_egg.ir.fold import const_value, dim_add, provably_equal, provably_lt, same_dims
from pypto_egg.ir.program import Program
from pypto_egg.ir.stmt import Assign, Eval
from pypto_egg.ir.types import FRACTAL_ROWS, TensorType, TileType
from pypto_egg.ir.visit import walk
from pypto_egg.nz.access import Access, blocked_offset
from pypto_egg.nz.layout import Named, block_type, fold_offsets, is_nz
from pypto_egg.ops.rules import Shape
from pypto_egg.ops.site import show_dim, show_shape
from pypto_egg.target.target import Target

_WRITES_NZ = ("a2a3",)
_STEP = 16  # rows and columns of what the cube drains to NZ, also where c0 is 8
# Conversions that a store can make on its way; none of them is possible to NZ memory.
_CONVERSIONS = ("pre_quant", "pre_relu")


def blocked_store(access: Access) -> Call:
    """A `tile.store` of an accumulator in blocked coordinates, with its partition as 4th operand.

    The tile, the keywords and the attributes stay; the result is still the target (N-031, N-034,
    N-035).

    Raises:
        NzError: a condition of the write-back does not hold (N-036, N-037, N-040 to N-046).
    """
    rows, cols = _checked_tile(access)
    _check_attributes(access)
    offsets = access.dims(1)
    _check_window(access, offsets, rows, cols)
    extents = access.kind.shape
    batch = fold_offsets(offsets[:-2], extents[:-2])
    column = blocked_offset(access, offsets[-1], access.c0, "column offset")
    partition: Shape = (1, cols // access.c0, rows // FRACTAL_ROWS, FRACTAL_ROWS, access.c0)
    result = block_type(access.kind, access.about)
    assert isinstance(result, TensorType)
    tile, _, out = access.call.args[:3]
    operands = [tile, tuple_of((batch, column, 0, 0, 0)), out, tuple_of(partition)]
    return access.rebuilt(operands, result)


def _checked_tile(access: Access) -> tuple[int, int]:
    """Rows and columns of a tile that can be written back."""
    tile = access.call.args[0].type
    assert isinstance(tile, TileType)
    target = access.target.name
    if target not in _WRITES_NZ:
        raise access.error(
            f"is written on {target}; accumulators can be written to NZ on "
            f"{', '.join(_WRITES_NZ)} only",
            "keep the result ND",
        )
    if tile.space is not Mem.Acc:
        where = "no memory space yet" if tile.space is None else tile.space.name
        raise access.error(
            f"is written from a tile in {where}; only accumulators (Acc) can be written to NZ",
            "store the matmul's accumulator itself, or keep the result ND",
        )
    if tile.dtype != FP32 or access.kind.dtype != FP32:
        raise access.error(
            f"of {access.kind.dtype.name} is written from an accumulator of {tile.dtype.name}; "
            "both must be FP32, and nothing is converted on the way",
            "keep the result ND",
        )
    return _checked_extents(access, tile)


def _checked_extents(access: Access, tile: TileType) -> tuple[int, int]:
    extents = [const_value(dim) for dim in tile.shape]
    static = [extent for extent in extents if extent is not None]
    if len(extents) != 2 or len(static) != 2:
        raise access.error(
            f"is written from a tile of {show_shape(tile.shape)}; two static extents are needed",
            "flatten the tile to two axes of fixed extent",
        )
    rows, cols = static
    if not same_dims(tile.valid_shape, tile.shape):
        raise access.error(
            f"is written from a tile that is valid in {show_shape(tile.valid_shape)} of "
            f"{show_shape(tile.shape)}; it must be valid as a whole",
            "write to ND, or choose extents that need no padding",
        )
    if rows <= 0 or cols <= 0 or rows % _STEP or cols % _STEP:
        raise access.error(
            f"is written from a tile of {rows} x {cols}; rows and columns must be multiples of "
            f"{_STEP}, also where one column block is narrower",
            f"write {_rounded(rows)} x {_rounded(cols)}",
        )
    return rows, cols


def _rounded(extent: int) -> int:
    return max(_STEP, -(-extent // _STEP) * _STEP)


def _check_attributes(access: Access) -> None:
    for name, value in (*access.call.kwargs, *access.call.attrs):
        adds = name == "atomic" and value not in (None, AtomicType.None_)
        converts = name.startswith(_CONVERSIONS) and value not in (None, False)
        if adds or converts:
            shown = value.name if isinstance(value, AtomicType) else value
            raise access.error(
                f"is written with {name}={shown}, which a store to NZ memory cannot do",
                f"store without {name}, or keep the result ND",
            )


def _check_window(access: Access, offsets: Shape, rows: int, cols: int) -> None:
    extents = access.kind.shape
    if len(offsets) != len(extents):
        raise access.error(
            f"of shape {show_shape(extents)} is written at {show_shape(offsets)}",
            "give one offset for each axis",
        )
    window = access.dims(3) or (*(1,) * (len(extents) - 2), rows, cols)
    if len(window) != len(extents) or not same_dims(window[-2:], (rows, cols)):
        raise access.error(
            f"is written in a window of {show_shape(window)} from a tile of {rows} x {cols}",
            "let the last two extents of the window be those of the tile",
        )
    _check_panel(access, offsets, window)
    whole = provably_equal(extents[-2], rows) and access.proofs.constant(offsets[-2]) == 0
    if not whole:
        raise access.error(
            f"of {show_dim(extents[-2])} rows is written in {rows} rows from row "
            f"{show_dim(offsets[-2])}; a store must cover all rows from row 0",
            "write whole rows, split by columns instead, or stack panels on a leading axis, "
            "[PANELS, R, C]",
        )
    if provably_lt(extents[-1], dim_add(offsets[-1], cols)):
        raise access.error(
            f"of {show_dim(extents[-1])} columns is written in {cols} columns from column "
            f"{show_dim(offsets[-1])}, beyond its end",
            "write fewer columns",
        )


def _check_panel(access: Access, offsets: Shape, window: Shape) -> None:
    if not all(provably_equal(size, 1) for size in window[:-2]):
        raise access.error(
            f"is written in {show_shape(window[:-2])} panels at once; a store writes one",
            "store each panel on its own, at its batch offset",
        )
    for axis, start in enumerate(offsets[:-2]):
        limit = access.kind.shape[axis]
        if provably_lt(start, 0) or provably_lt(limit, dim_add(start, 1)):
            raise access.error(
                f"is written at {show_dim(start)} on axis {axis} of extent {show_dim(limit)}",
                "choose a panel inside the tensor",
            )


def check_actual_stores(program: Program, target: Target) -> None:
    """Nothing, if each accumulator that is stored to NZ memory fits the store and L0C.

    To be called on the program whose stores are emitted, after results were split.

    Raises:
        NzError: more rows or columns than the store's fields hold (N-038).
        CapacityError: a tile larger than L0C (N-039, N-053, N-055).
    """
    for function in program.functions:
        for stmt in walk(function.body):
            if not isinstance(stmt, Assign | Eval) or not isinstance(stmt.value, Call):
                continue
            call = stmt.value
            if call.op == "tile.store" and is_nz(call.args[2].type):
                _check_actual(call, function.name, target, Named(_name(call), call.span))


def _name(call: Call) -> str:
    out = call.args[2]
    return out.name if isinstance(out, Var) else "(tensor)"


def _check_actual(call: Call, function: str, target: Target, about: Named) -> None:
    tile = call.args[0].type
    assert isinstance(tile, TileType)
    rows, cols = (const_value(dim) for dim in tile.shape)
    if rows is None or cols is None:
        raise about.error("is written from a tile of dynamic extents", "give them fixed extents")
    limits = target.limits
    most = (limits.acc_store_rows_nz // _STEP * _STEP, limits.acc_store_cols // _STEP * _STEP)
    if rows > most[0] or cols > most[1]:
        raise about.error(
            f"is written in one store of {rows} x {cols}; the store's fields hold {most[0]} rows "
            f"and {most[1]} columns",
            "split the result by columns",
        )
    needed, available = rows * cols * tile.dtype.bytes, target.capacity_bytes(Mem.Acc)
    if needed > available:
        raise CapacityError(
            f"the accumulator stored to NZ tensor '{about.name}' in function '{function}' is "
            f"{rows} x {cols} {tile.dtype.name}, {needed} bytes; L0C has {available}",
            span=about.span,
            hint="split the result by columns, each part over all rows",
        )
