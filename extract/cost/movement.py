"""Prices of transfers: loads, stores, moves, extracts and row gathers, by the path they take.

The law of a transfer with GM: (valid bytes + bursts * overhead + lines * re-ordering) / rate. A
burst is one descriptor of the DMA: a row of the window, so short rows cost more than long ones at
equal bytes. A line is 32 bytes that a load of rows into Mat puts in their place in a fractal; what
lies in GM in NZ order is copied in whole column blocks, and nothing is re-ordered (N-004). Both
overheads are bytes and come with the target (`gm.burst_overhead_bytes`, `gm.reorder_line_bytes`);
the rate is the path's flat rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from pypto_egg.errors import InternalError
from pypto_egg.extract.cost.extents import Matrix, ceil_div, extents, matrix, round_up
from pypto_egg.extract.cost.l0 import drain_cycles
from pypto_egg.extract.cost.model import ZERO, CostVector, OpInstance
from pypto_egg.ir.dtype import FP32, INT32, DType
from pypto_egg.ir.enums import Mem, PipeType, TensorLayout
from pypto_egg.ir.types import TensorType, TileType, Type
from pypto_egg.target import Target

LINE_BITS = 256
_FIELD = {
    PipeType.MTE1: "mte1",
    PipeType.MTE2: "mte2",
    PipeType.MTE3: "mte3",
    PipeType.FIX: "fixpipe",
    PipeType.V: "vector",
}


def price_load(op: OpInstance, target: Target) -> CostVector:
    """tile.load: MTE2 moves the valid bytes from GM into Mat or Vec (C-129, K-01, K-19)."""
    tensor, tile = tensor_of(op.operands[0], op.op), tile_of(op.result, op.op)
    return _transfer(Mem.DDR, space_of(tile), _gm_traffic(tensor, matrix(tile, op.op)), target)


def price_store(op: OpInstance, target: Target) -> CostVector:
    """tile.store: FIXPIPE drains an accumulator, MTE3 writes valid bytes of Vec and Mat tiles."""
    tile = tile_of(op.operands[0], op.op)
    if space_of(tile) is Mem.Acc:
        return CostVector(fixpipe=_drain(tile, op.op, target))
    tensor = tensor_of(op.operands[2], op.op)
    traffic = _gm_traffic(tensor, matrix(tile, op.op))
    return _transfer(space_of(tile), Mem.DDR, traffic, target)


def price_move(op: OpInstance, target: Target) -> CostVector:
    """tile.move and tile.extract: the result's bytes along the path between the two spaces.

    Where the target has no direct path the tile goes out to GM and back (a2a3: Acc to Vec, Vec to
    Mat), and both transfers are paid.
    """
    source, tile = tile_of(op.operands[0], op.op), tile_of(op.result, op.op)
    return transfer_tile(space_of(source), tile, source.dtype, op.op, target)


def transfer_tile(
    origin: Mem, tile: TileType, source_dtype: DType, op: str, target: Target
) -> CostVector:
    """The cost of bringing the valid part of `tile` from space `origin` to its own space."""
    goal, moved = space_of(tile), matrix(tile, op)
    path = target.path(origin, goal)
    if path is None:
        raise InternalError(f"{op}: {target.name} has no path from {origin.value} to {goal.value}")
    if path.via_gm:
        out = _leave(origin, tile, source_dtype, op, target)
        return out + _transfer(Mem.DDR, goal, _rows(moved), target)
    if origin is Mem.Acc:
        return CostVector(fixpipe=_drain_matrix(moved, source_dtype, target))
    if goal in (Mem.Left, Mem.Right):
        return CostVector(mte1=_to_l0(moved, goal, tile.dtype, target))
    if origin is goal:
        return CostVector(vector=copy_cycles(tile, op, target))
    return _transfer(origin, goal, _Traffic(_on_chip_bytes(moved, goal, target)), target)


def price_assemble(op: OpInstance, target: Target) -> CostVector:
    """tile.assemble: the source's valid part is copied into the target tile."""
    whole, part = tile_of(op.operands[0], op.op), tile_of(op.operands[1], op.op)
    window = TileType(part.shape, part.dtype, space_of(whole), part.view)
    return transfer_tile(space_of(part), window, part.dtype, op.op, target)


def price_gather_row(op: OpInstance, target: Target) -> CostVector:
    """tile.gather_row: MTE2 brings each row as a burst of its own.

    The window is `valid_shape` or `shapes` where they are known, else the whole destination.
    """
    tile = tile_of(op.result, op.op)
    window = op.kwargs.get("valid_shape") or op.kwargs.get("shapes")
    moved = matrix(tile, op.op)
    rows, width = moved.batch * moved.rows, moved.cols
    if isinstance(window, tuple) and window:
        *outer, width = extents(window)
        rows = outer[-1] if outer else 1
    elif op.kwargs.get("transpose"):
        rows, width = width, rows
    return _transfer(Mem.DDR, space_of(tile), _runs(rows, width, tile.dtype.bits), target)


def price_mgather(op: OpInstance, target: Target) -> CostVector:
    """tile.mgather: MTE2 brings each row of the result as a burst of its own."""
    tile = tile_of(op.result, op.op)
    return _transfer(Mem.DDR, space_of(tile), _rows(matrix(tile, op.op)), target)


def price_mscatter(op: OpInstance, target: Target) -> CostVector:
    """tile.mscatter: MTE3 writes each row of the source as a burst of its own."""
    tile = tile_of(op.operands[0], op.op)
    return _transfer(space_of(tile), Mem.DDR, _rows(matrix(tile, op.op)), target)


def price_cross_core(op: OpInstance, target: Target) -> CostVector:
    """tile.aiv_shard and aic_gather: the whole source leaves its core; on a2a3 the result is loaded
    from the slot in GM, on a5 it lands in the consumer's memory."""
    source, result = tile_of(op.operands[0], op.op), tile_of(op.result, op.op)
    origin, goal = space_of(source), space_of(result)
    path = target.path(origin, goal)
    if path is not None and path.via_gm:
        out = _leave(origin, source, source.dtype, op.op, target)
        return out + _transfer(Mem.DDR, goal, _rows(matrix(result, op.op)), target)
    sent = TileType(source.shape, source.dtype, goal, source.view)
    return transfer_tile(origin, sent, source.dtype, op.op, target)


def price_push(op: OpInstance, target: Target) -> CostVector:
    """tile.tpush_to_aiv and tpush_to_aic: the producer's half of a cross-core transfer."""
    tile = tile_of(op.operands[0], op.op)
    goal = Mem.Vec if space_of(tile) is Mem.Acc else Mem.Mat
    path = target.path(space_of(tile), goal)
    if path is not None and not path.via_gm:
        sent = TileType(tile.shape, tile.dtype, goal, tile.view)
        return transfer_tile(space_of(tile), sent, tile.dtype, op.op, target)
    return _leave(space_of(tile), tile, tile.dtype, op.op, target)


def price_pop(op: OpInstance, target: Target) -> CostVector:
    """tile.tpop_from_aic and tpop_from_aiv: the consumer re-loads from GM on a2a3; on a5 the slot
    is in its own memory."""
    tile = tile_of(op.result, op.op)
    origin = Mem.Acc if space_of(tile) is Mem.Vec else Mem.Vec
    path = target.path(origin, space_of(tile))
    if path is None or not path.via_gm:
        return ZERO
    return _transfer(Mem.DDR, space_of(tile), _rows(matrix(tile, op.op)), target)


def bias_cycles(bias: TileType, op: str, target: Target) -> float:
    """MTE1 cycles to bring a bias row from Mat into the bias table, in whole bursts."""
    bytes_ = matrix(bias, op).valid_bytes
    whole = round_up(int(-(-bytes_ // 1)), target.bias_bytes_multiple)
    return whole / target.bytes_per_cycle(Mem.Mat, Mem.Bias)


def copy_cycles(tile: TileType, op: str, target: Target, *, row_by_row: bool = False) -> float:
    """Cycles of a copy inside UB: each contiguous run has a fixed part and one for each block.

    A tile of whole rows is one run, unless its rows go apart (`row_by_row`).
    """
    moved = matrix(tile, op)
    row_bytes = ceil_div(moved.cols * moved.bits, 8)
    runs = moved.batch * moved.rows
    if moved.cols == moved.physical_cols and not row_by_row:
        runs, row_bytes = min(runs, 1), row_bytes * runs
    blocks = runs * ceil_div(row_bytes, target.fractal.c0_bytes)
    return runs * target.copy_burst_cycles + blocks * target.copy_block_cycles


def tile_of(shaped: Type, op: str) -> TileType:
    if not isinstance(shaped, TileType):
        raise InternalError(f"{op}: expected a tile, got {shaped}")
    return shaped


def tensor_of(shaped: Type, op: str) -> TensorType:
    if not isinstance(shaped, TensorType):
        raise InternalError(f"{op}: expected a tensor in global memory, got {shaped}")
    return shaped


def space_of(tile: TileType) -> Mem:
    """The tile's space; Vec if it is not decided, as `target_memory` defaults to it."""
    return Mem.Vec if tile.space is None else tile.space


@dataclass(frozen=True, slots=True)
class _Traffic:
    """What a transfer moves: bytes, contiguous runs in GM, 32-byte lines to be put in place."""

    size_bytes: float
    bursts: int = 0
    lines: int = 0


def _gm_traffic(tensor: TensorType, moved: Matrix) -> _Traffic:
    """The traffic of a window of `tensor` with the extents of `moved`.

    ND has a burst for each row and DN for each column, also where rows happen to follow each other
    without a gap. NZ has whole 32-byte lines in their places, and a burst for each column block.
    """
    if tensor.layout is TensorLayout.NZ:
        blocks = moved.batch * ceil_div(moved.cols, LINE_BITS // tensor.dtype.bits)
        return _Traffic(blocks * moved.rows * LINE_BITS / 8, blocks)
    run, count = moved.cols, moved.rows
    if tensor.layout is TensorLayout.DN:
        run, count = count, run
    return _runs(moved.batch * count, run, tensor.dtype.bits)


def _rows(moved: Matrix) -> _Traffic:
    """The traffic of a matrix in a GM buffer of its own, row by row."""
    return _runs(moved.batch * moved.rows, moved.cols, moved.bits)


def _runs(count: int, elems: int, bits: int) -> _Traffic:
    """So many runs of so many elements."""
    return _Traffic(count * elems * bits / 8, count, count * ceil_div(elems * bits, LINE_BITS))


def _transfer(origin: Mem, goal: Mem, traffic: _Traffic, target: Target) -> CostVector:
    path = target.path(origin, goal)
    if path is None or path.via_gm:
        raise InternalError(f"{target.name} has no direct path {origin.value} -> {goal.value}")
    moved_bytes = traffic.size_bytes + traffic.bursts * target.gm.burst_overhead_bytes
    if (origin, goal) == (Mem.DDR, Mem.Mat):
        moved_bytes += traffic.lines * target.gm.reorder_line_bytes
    return CostVector(**{_FIELD[path.pipes[0]]: moved_bytes / target.bytes_per_cycle(origin, goal)})


def _leave(origin: Mem, tile: TileType, source_dtype: DType, op: str, target: Target) -> CostVector:
    """The cost of writing the tile to a GM buffer of its own."""
    moved = matrix(tile, op)
    if origin is Mem.Acc:
        return CostVector(fixpipe=_drain_matrix(moved, source_dtype, target))
    return _transfer(origin, Mem.DDR, _rows(moved), target)


def _drain(tile: TileType, op: str, target: Target) -> float:
    return _drain_matrix(matrix(tile, op), tile.dtype, target)


def _drain_matrix(moved: Matrix, dtype: DType, target: Target) -> float:
    acc = INT32 if dtype == INT32 else FP32
    valid, physical = (moved.rows, moved.cols), (moved.physical_rows, moved.physical_cols)
    return moved.batch * drain_cycles(valid, physical, acc, target)


def _to_l0(moved: Matrix, goal: Mem, dtype: DType, target: Target) -> float:
    """MTE1 cycles into L0: whole fractals of the valid part at PyPTO's measured rates."""
    c0 = target.c0_elems(dtype)
    box = (target.fractal.rows, c0) if goal is Mem.Left else (c0, target.fractal.rows)
    elems = round_up(moved.rows, box[0]) * round_up(moved.cols, box[1])
    l0 = target.l0
    rate = l0.left_bytes_per_cycle if goal is Mem.Left else l0.right_bytes_per_cycle
    return moved.batch * elems * moved.bits / 8 / rate


def _on_chip_bytes(moved: Matrix, goal: Mem, target: Target) -> float:
    """Bytes of a transfer between on-chip spaces; bias and scaling rows move in whole bursts."""
    if goal is Mem.Bias:
        return round_up(ceil_div(moved.elems * moved.bits, 8), target.bias_bytes_multiple)
    return moved.valid_bytes
