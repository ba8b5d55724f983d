"""PyPTO's L0 law: what a product costs whose operands are in L1, cut into L0 tiles.

Source: PyPTO, src/ir/transforms/utils/l0_tile_chooser.cpp. The terms of the law stand here;
`pypto_l0.choose` is PyPTO's own choice by them, which charges tiles at the edge as full tiles.

`product_cycles` and `drain_cycles` are what `mte2_mad` charges, in the base regime (the output
stays in L0C, one accumulator, operands double-buffered): the same terms, but passes, transfers and
rows are those of the valid extents (C-129, C-130, C-131), so rounding an extent up to whole boxes
is free in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pypto_egg.errors import CapacityError
from pypto_egg.extract.cost.extents import ceil_div, round_up
from pypto_egg.ir.dtype import DType
from pypto_egg.target import Target

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
ACC_BYTES = 4
BUFFERS = 2  # each operand has two L0 buffers (ping-pong)


@dataclass(frozen=True, slots=True)
class Product:
    """One matrix product: valid extents, physical extents, operand and accumulator types.

    `lhs_in_l0` and `rhs_in_l0` say which operand has been moved to Left or Right already.
    """

    valid: tuple[int, int, int]
    physical: tuple[int, int, int]
    lhs: DType
    rhs: DType
    acc: DType
    lhs_in_l0: bool = False
    rhs_in_l0: bool = False


@lru_cache(maxsize=65536)
def product_cycles(product: Product, target: Target) -> tuple[float, float]:
    """(MTE1, cube) cycles of a product under the L0 tile with the least sum of the two.

    Operands that are in L0 already cost no MTE1; if both are, the product is one instruction.
    The last block of K may be partial, as PyPTO's automatic pass allows.
    """
    vm, vn, vk = product.valid
    issue, k_fractal = target.l0.issue_cycles, k_fractal_elems(target, product.lhs)
    passes = passes_of(target, product.lhs) * ceil_div(vm, 16) * ceil_div(vn, 16)
    if product.lhs_in_l0 and product.rhs_in_l0:
        return 0.0, float(issue + passes * ceil_div(vk, k_fractal))
    tm, tn, tk = _tiles_within(product, target)
    rows, cols = -(-vm // tm), -(-vn // tn)
    lhs_bits = 0 if product.lhs_in_l0 else product.lhs.bits
    rhs_bits = 0 if product.rhs_in_l0 else product.rhs.bits
    m, n = round_up(vm, 16), round_up(vn, 16)
    k = round_up(vk, target.c0_elems(product.lhs))
    lhs, rhs = operand_cycles(m, n, k, lhs_bits, rhs_bits, target)
    one_stays = np.minimum(lhs + rhs * rows, lhs * cols + rhs)
    load = np.where(tk >= vk, one_stays, lhs * cols + rhs * rows)
    whole, tail = vk // tk, vk % tk
    k_passes = whole * -(-tk // k_fractal) + -(-tail // k_fractal)
    cube = rows * cols * (whole + (tail > 0)) * issue + passes * k_passes
    best = int(np.argmin(load + cube))
    return float(load[best]), float(cube[best])


@lru_cache(maxsize=65536)
def drain_cycles(
    valid: tuple[int, int], physical: tuple[int, int], acc: DType, target: Target
) -> float:
    """FIXPIPE cycles to drain an accumulator of `valid` rows and columns, to GM, Mat or Vec.

    It is drained in a grid of tiles that each fit L0C, by the grid that costs least. Only valid
    rows are written (C-131); the last column tile is charged as a full one, as in PyPTO.
    """
    step, align = target.l0.step, target.alignment_rows_acc(acc)
    rows, cols = (max(step, round_up(extent, step)) for extent in physical)
    room = target.memory["Acc"].usable_bytes // ACC_BYTES
    n = np.arange(step, min(cols, max(step, room // align)) + 1, step)
    m = np.minimum(np.maximum(room // n // align, 1) * align, rows)
    tiles_across = -(-valid[1] // n)
    tiles = -(-valid[0] // m) * tiles_across
    fixed = tiles * target.l0.drain_fixed_cycles
    return float(np.min(fixed + valid[0] * tiles_across * drain_row(n, target)))


def _tiles_within(product: Product, target: Target) -> tuple[Ints, Ints, Ints]:
    """The L0 tiles that are legal for a product of these physical extents."""
    step = target.l0.step
    pm, pn, pk = (max(step, round_up(extent, step)) for extent in product.physical)
    align = target.alignment_rows_acc(product.acc)
    tm, tn, tk = legal_tiles(target, product.lhs.bits, product.rhs.bits, align)
    legal = (tm <= pm) & (tn <= pn) & (tk <= pk)
    return tm[legal], tn[legal], tk[legal]


@lru_cache(maxsize=256)
def legal_tiles(
    target: Target,
    lhs_bits: int,
    rhs_bits: int,
    acc_row_align: int,
    depths: tuple[int, int] = (BUFFERS, BUFFERS),
    accumulators: int = 1,
) -> tuple[Ints, Ints, Ints]:
    """All (m, n, k) in steps of 16 that fit L0A, L0B and L0C, in order of m, n, k.

    Args:
        depths: number of buffers in L0A and in L0B.
        accumulators: number of accumulators in L0C (dbC).
    """
    step = target.l0.step
    left, right, acc = (target.memory[s].usable_bytes for s in ("Left", "Right", "Acc"))
    lhs_room = left * 8 // (lhs_bits * depths[0]) // step**2
    rhs_room = right * 8 // (rhs_bits * depths[1]) // step**2
    acc_room = acc // (ACC_BYTES * accumulators) // step
    m, n = np.meshgrid(np.arange(1, lhs_room + 1), np.arange(1, rhs_room + 1), indexing="ij")
    rows = -(-m * step // acc_row_align) * acc_row_align
    deepest = np.where(rows * n <= acc_room, np.minimum(lhs_room // m, rhs_room // n), 0).ravel()
    if not deepest.any():
        raise CapacityError(
            f"{target.name}: not one {step} x {step} x {step} product fits the L0 buffers "
            f"(Left {left}, Right {right}, Acc {acc} bytes)",
            hint="raise the capacities that were overridden",
        )
    first = np.cumsum(deepest) - deepest
    k = np.arange(deepest.sum()) - np.repeat(first, deepest) + 1
    return np.repeat(m.ravel(), deepest) * step, np.repeat(n.ravel(), deepest) * step, k * step


def operand_cycles(
    m: int, n: int, k: int, lhs_bits: int, rhs_bits: int, target: Target
) -> tuple[float, float]:
    """MTE1 cycles to bring the whole left and the whole right operand into L0 once."""
    lhs = lhs_bits / 8 * m * k / target.l0.left_bytes_per_cycle
    rhs = rhs_bits / 8 * k * n / target.l0.right_bytes_per_cycle
    return lhs, rhs


def drain_row(n: Ints, target: Target) -> Floats:
    """FIXPIPE cycles for one row of n columns: a floor or the throughput, and a penalty unless
    the number of 32-byte fractals is a power of two."""
    fractals = -(-n // max(1, target.l0.drain_fractal_bytes // ACC_BYTES))
    odd = fractals // (fractals & -fractals)
    stream = np.maximum(target.l0.drain_row_cycles, ACC_BYTES * n / target.l0.drain_bytes_per_cycle)
    return stream + target.l0.drain_odd_cycles * (odd - 1)


def k_fractal_elems(target: Target, dtype: DType) -> int:
    return max(1, target.l0.k_fractal_bytes // dtype.bytes)


def passes_of(target: Target, dtype: DType) -> int:
    """Cycles of the cube for one fractal product."""
    return target.l0.fp32_passes if dtype.bits == 32 else max(1, dtype.bytes // 2)
