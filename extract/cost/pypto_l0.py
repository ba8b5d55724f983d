"""PyPTO's choice of an L0 tile for a product whose operands are in L1, and the model built on it.

Source: PyPTO, src/ir/transforms/utils/l0_tile_chooser.cpp. A roofline of three engines: MTE1 loads
and the cube computes at the same time, and with two accumulators FIXPIPE drains at that time, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pypto_egg.extract.cost.extents import matrix, round_up
from pypto_egg.extract.cost.l0 import (
    ACC_BYTES,
    Floats,
    Ints,
    drain_cycles,
    drain_row,
    k_fractal_elems,
    legal_tiles,
    operand_cycles,
    passes_of,
)
from pypto_egg.extract.cost.model import PIPES, CostVector, OpInstance, register_cost_model
from pypto_egg.extract.cost.mte2_mad import Mte2Mad
from pypto_egg.extract.cost.product import PRODUCTS, Operands, operands_of, side_operands
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import Mem
from pypto_egg.l0 import CubeProduct, L0Schedule, Schedules
from pypto_egg.l0.schedule import DEPTHS, Stationary
from pypto_egg.target import Target


@dataclass(frozen=True, slots=True)
class Gates:
    """Which regimes the chooser may use beside output-stationary with one accumulator.

    Args:
        a_stationary, b_stationary: one operand stays in a single L0 buffer; needs the whole of K.
        double_accumulator: two accumulators, so that one is drained while the other is filled.
        k_boundary: k need not divide K; the last K block is partial.
        bias_windows: a bias that is rebuilt for each window; its slots in the bias table limit n
            (1 slot with B held, 2 with A held or columns outermost, 4 with columns innermost).
    """

    a_stationary: bool = False
    b_stationary: bool = False
    double_accumulator: bool = False
    k_boundary: bool = False
    bias_windows: bool = False


CLOSED = Gates()
OPEN = Gates(a_stationary=True, b_stationary=True, double_accumulator=True, k_boundary=True)


@dataclass(frozen=True, slots=True)
class L0Choice:
    """A tile, how it is walked, and the cycles of the whole product.

    Args:
        m, n, k: the tile.
        stationary: what stays in L0: the output in L0C, the left operand (A) or the right one (B).
        accumulators: 1 or 2 (dbC).
        rows_outer: rows are the outer loop, so that A is kept between column tiles ("hoist").
        load_cycles, cube_cycles, drain_cycles: MTE1, cube and FIXPIPE, each by itself.
        wall_cycles: all of it with what overlaps, to the nearest whole cycle.
    """

    m: int
    n: int
    k: int
    stationary: Stationary
    accumulators: int
    rows_outer: bool
    load_cycles: float
    cube_cycles: float
    drain_cycles: float
    wall_cycles: int

    @property
    def compute_cycles(self) -> float:
        """Loading and multiplying, which overlap."""
        return max(self.load_cycles, self.cube_cycles)


@lru_cache(maxsize=4096)
def choose(
    m: int,
    n: int,
    k: int,
    lhs: DType,
    rhs: DType,
    acc: DType,
    target: Target,
    *,
    gates: Gates = CLOSED,
) -> L0Choice | None:
    """PyPTO's tile for C[m,n] = A[m,k] B[k,n] with operands in L1, and its wall.

    The best tile of the base regime is taken unless a further regime has a strictly shorter wall;
    a base tile that is the whole product ends the search.

    Returns:
        None if there is no legal tile: m or n below 16, k not a multiple of 16, or an operand of
        less than 8 bits.
    """
    if min(lhs.bits, rhs.bits) < 8:
        return None
    product = _Product(m, n, k, lhs, rhs, acc, target)
    best = _best(product, "output", 1, gates)
    if best is None or (best.m, best.n, best.k) == (m, n, k):
        return best
    for stationary, accumulators in _further(gates):
        found = _best(product, stationary, accumulators, gates)
        if found is not None and found.wall_cycles < best.wall_cycles:
            best = found
    return best


def _further(gates: Gates) -> list[tuple[Stationary, int]]:
    """The regimes that the gates allow beside the base, in the order in which they are tried."""
    kinds: list[tuple[Stationary, bool]] = [
        ("output", True),
        ("A", gates.a_stationary),
        ("B", gates.b_stationary),
    ]
    depths = (1, 2) if gates.double_accumulator else (1,)
    regimes = [(kind, d) for kind, allowed in kinds if allowed for d in depths]
    return regimes[1:]


@dataclass(frozen=True, slots=True)
class _Product:
    m: int
    n: int
    k: int
    lhs: DType
    rhs: DType
    acc: DType
    target: Target


def _best(p: _Product, stationary: Stationary, accumulators: int, gates: Gates) -> L0Choice | None:
    """The first tile of the least rank within one regime; None if it has no legal tile."""
    tm, tn, tk = legal_tiles(
        p.target,
        p.lhs.bits,
        p.rhs.bits,
        p.target.alignment_rows_acc(p.acc),
        DEPTHS[stationary],
        accumulators,
    )
    legal = (tm <= p.m) & (tn <= p.n) & (tk <= p.k)
    if gates.k_boundary and p.k % p.target.l0.step == 0:
        legal &= (stationary == "output" and accumulators == 1) | (tk == p.k)
    else:
        legal &= (p.k % tk == 0) & ((stationary == "output" and accumulators == 1) | (tk == p.k))
    tm, tn, tk = tm[legal], tn[legal], tk[legal]
    rows, cols, blocks = -(-p.m // tm), -(-p.n // tn), -(-p.k // tk)
    load, rows_outer = _load(p, stationary, tk, rows, cols)
    allowed = _allowed(p, stationary, accumulators, gates, tm, tn, tk, rows_outer)
    if not allowed.any():
        return None
    tm, tn, tk, rows, cols = tm[allowed], tn[allowed], tk[allowed], rows[allowed], cols[allowed]
    blocks, load, rows_outer = blocks[allowed], load[allowed], rows_outer[allowed]
    cube = _cube(p, tm, tn, tk, rows * cols)
    drain = rows * cols * (p.target.l0.drain_fixed_cycles + tm * drain_row(tn, p.target))
    wall = np.floor(_wall(np.maximum(load, cube), drain, rows * cols, accumulators) + 0.5)
    work = rows * tm * cols * tn * blocks * tk
    at = np.lexsort((-tk, -tm * tn, load, blocks, work, wall))[0]
    return L0Choice(
        int(tm[at]), int(tn[at]), int(tk[at]), stationary, accumulators, bool(rows_outer[at]),
        float(load[at]), float(cube[at]), float(drain[at]), int(wall[at]),
    )  # fmt: skip


def _load(
    p: _Product, stationary: Stationary, tk: Ints, rows: Ints, cols: Ints
) -> tuple[Floats, NDArray[np.bool_]]:
    """MTE1 cycles, and whether rows are the outer loop."""
    lhs, rhs = operand_cycles(p.m, p.n, p.k, p.lhs.bits, p.rhs.bits, p.target)
    a_held: Floats = lhs + rhs * rows
    b_held: Floats = lhs * cols + rhs
    if stationary != "output":
        a_stays = stationary == "A"
        return (a_held if a_stays else b_held), np.full(len(rows), a_stays)
    rows_outer: NDArray[np.bool_] = a_held <= b_held
    whole_k = np.where(rows_outer, a_held, b_held)
    moved: Floats = np.where(tk >= p.k, whole_k, lhs * cols + rhs * rows)
    return moved, rows_outer


def _allowed(
    p: _Product,
    stationary: Stationary,
    accumulators: int,
    gates: Gates,
    tm: Ints,
    tn: Ints,
    tk: Ints,
    rows_outer: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Two accumulators need two full tiles along the inner loop; bias slots limit n."""
    allowed = np.ones(len(tm), dtype=bool)
    if accumulators == 2:
        allowed &= np.where(rows_outer, p.n // tn, p.m // tm) >= 2
    if gates.bias_windows:
        slots = np.where(rows_outer, 4, 2) if stationary == "output" else np.full(len(tm), 2)
        slots = np.where((stationary == "B") | (tk < p.k), 1, slots)
        allowed &= tn * slots <= p.target.memory["Bias"].usable_bytes // ACC_BYTES
    return allowed


def _cube(p: _Product, tm: Ints, tn: Ints, tk: Ints, tiles: Ints) -> Floats:
    """Cube cycles; the last K block counts at its own width, edge rows and columns in full."""
    fractal = k_fractal_elems(p.target, p.lhs)
    whole, tail = p.k // tk, p.k % tk
    k_fractals = whole * -(-tk // fractal) + -(-tail // fractal)
    passes = passes_of(p.target, p.lhs) * -(-tm // 16) * k_fractals * -(-tn // 16)
    cycles: Floats = tiles * ((whole + (tail > 0)) * p.target.l0.issue_cycles + passes).astype(
        float
    )
    return cycles


def _wall(compute: Floats, drain: Floats, tiles: Ints, accumulators: int) -> Floats:
    """With two accumulators all but the first tile's compute, or the last one's drain, overlaps."""
    if accumulators == 1:
        return compute + drain
    longer: Floats = np.maximum(compute, drain) + np.minimum(compute, drain) / tiles
    return longer


@register_cost_model
class PyptoL0(Mte2Mad):
    """Products by PyPTO's wall, everything else as in `mte2_mad`.

    A product that makes an accumulator and the op that drains it cost the wall together: the drain
    keeps its price (`drain_cycles`), the product has the rest of the wall, on the cube as far as
    the cube is busy and on MTE1 beyond that. A product that adds to an accumulator drains nothing
    and costs its compute part. Extents are the valid ones rounded up to 16, which is what PyPTO
    sees once a tile is boxed, so boxing stays free (C-130).
    """

    name: ClassVar[str] = "pypto_l0"

    def price(self, op: OpInstance, target: Target) -> CostVector:
        if op.op not in PRODUCTS:
            return super().price(op, target)
        return _price_product(op, operands_of(op, target), target) or super().price(op, target)

    def price_schedules(
        self, product: CubeProduct, among: Schedules, target: Target
    ) -> NDArray[np.float64] | None:
        if type(self).price is not PyptoL0.price:
            return None
        return wall_vectors(product, among, target)


def wall_vectors(product: CubeProduct, among: Schedules, target: Target) -> NDArray[np.float64]:
    """PyPTO's wall of each schedule, as cycles on MTE1, the cube and FIXPIPE.

    Extents are the valid ones rounded up to 16; tiles at the edge count as full ones. A tile that
    leaves L0C has its drain on FIXPIPE, and what of the wall is left is the cube's as far as it is
    busy, and MTE1's beyond.
    """
    m, n, k = (round_up(extent, target.l0.step) for extent in product.valid)
    p = _Product(m, n, k, product.lhs, product.rhs, product.acc, target)
    rows, cols = -(-m // among.m), -(-n // among.n)
    lhs, rhs = operand_cycles(m, n, k, product.lhs.bits, product.rhs.bits, target)
    whole = among.k >= product.physical[2]
    load = lhs * np.where(whole & among.rows_outer, 1, cols)
    load = load + rhs * np.where(whole & ~among.rows_outer, 1, rows)
    cube = _cube(p, among.m, among.n, among.k, rows * cols)
    share = np.maximum(load, cube)
    vectors = np.zeros((len(among), len(PIPES)))
    if product.leaves:
        drain = rows * cols * (target.l0.drain_fixed_cycles + among.m * drain_row(among.n, target))
        shorter, longer = np.minimum(share, drain), np.maximum(share, drain)
        wall = np.where(among.accumulators == 1, share + drain, longer + shorter / (rows * cols))
        share = np.floor(wall + 0.5) - drain
        vectors[:, PIPES.index("fixpipe")] = drain
    vectors[:, PIPES.index("cube")] = np.minimum(cube, share)
    vectors[:, PIPES.index("mte1")] = share - np.minimum(cube, share)
    return vectors


def pypto_choice(product: CubeProduct, among: Schedules, target: Target) -> int | None:
    """The place of the schedule that PyPTO's automatic pass takes; None if there is no schedule.

    A result that stays in L0C as a whole has one tile, so the choice is that of k alone. Where the
    boxes of the operands rule out the tile that the chooser names (it counts in steps of 16 for
    every dtype), it is the schedule with the shortest wall.
    """
    if not len(among):
        return None
    if product.leaves:
        m, n, k = product.physical
        found = choose(m, n, k, product.lhs, product.rhs, product.acc, target, gates=OPEN)
        same = [] if found is None else [at for at, s in enumerate(among) if _is(s, found)]
        if found is not None and same:
            return min(same, key=lambda at: among[at].rows_outer != found.rows_outer)
    walls = wall_vectors(product, among, target).sum(axis=1)
    blocks = -(-product.physical[2] // among.k)
    return int(np.lexsort((-among.k, -among.m * among.n, blocks, walls))[0])


def _is(schedule: L0Schedule, found: L0Choice) -> bool:
    """Whether a schedule is the chooser's; the order of loops says nothing where K is cut."""
    tile = (found.m, found.n, found.k, found.stationary, found.accumulators)
    own = (schedule.m, schedule.n, schedule.k, schedule.stationary, schedule.accumulators)
    return own == tile


def _price_product(op: OpInstance, at: Operands, target: Target) -> CostVector | None:
    """None where PyPTO's chooser has no say: operands in L0, or narrower than 8 bits."""
    if Mem.Left is at.lhs.space or Mem.Right is at.rhs.space:
        return None
    a, b, c = (matrix(shaped, op.op) for shaped in (at.lhs, at.rhs, op.result))
    m, n, k = (round_up(extent, target.l0.step) for extent in (a.rows, b.cols, a.cols))
    gates = Gates(
        a_stationary=True,
        b_stationary=True,
        double_accumulator=not at.accumulates,
        k_boundary=True,
        bias_windows=at.has_bias,
    )
    found = choose(m, n, k, at.lhs.dtype, at.rhs.dtype, at.acc, target, gates=gates)
    if found is None:
        return None
    share = found.compute_cycles
    if not at.accumulates:
        box = (c.physical_rows, c.physical_cols)
        drain = drain_cycles((c.rows, c.cols), box, at.acc, target)
        share = max(found.wall_cycles - drain, 0.0)
    cube = min(found.cube_cycles, share)
    return c.batch * CostVector(mte1=share - cube, cube=cube) + side_operands(op, target)
