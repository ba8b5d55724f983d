"""What a blocked product costs under a model, before it is lowered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pypto_egg.analysis.block_nest import Blocks, Chain
from pypto_egg.errors import UnsupportedDTypeError
from pypto_egg.extract.cost.extents import ceil_div, round_up
from pypto_egg.extract.cost.model import ZERO, CostModel, CostVector, OpInstance
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call, tuple_of
from pypto_egg.ir.types import (
    FRACTAL_ROWS,
    TensorType,
    TileType,
    Type,
    implicit_view,
    tile_type,
)
from pypto_egg.l0 import CubeProduct
from pypto_egg.price import op_cost
from pypto_egg.scheduling import worth_weighing
from pypto_egg.target.target import Target

IMPOSSIBLE = float("inf")


@dataclass
class BlockCosts:
    """Ranks the blockings of a product: loads, products and stores of its blocks, as often as they
    are made; blocks at the edge count as whole ones."""

    model: CostModel
    target: Target
    _products: dict[CubeProduct, CostVector | None] = field(default_factory=dict)

    def __call__(self, chain: Chain, blocks: Blocks) -> float:
        """Cycles of the whole product by the model's own fold; infinite where a block has no
        schedule or no price.

        Where a kernel is simulated, the busiest pipe works all the time and the others overlap with
        it but for one block.
        """
        try:
            vectors = self._vectors(chain, blocks)
        except UnsupportedDTypeError:
            return IMPOSSIBLE
        if vectors is None:
            return IMPOSSIBLE
        if self.model.objective != "simulated":
            return self.model.fold(vectors)
        busy = sum(vectors, ZERO)
        longest = max(busy.by_pipe().values())
        count = 1
        for extent, size in zip(chain.extents, (blocks.m, blocks.n, blocks.k), strict=True):
            count *= ceil_div(extent, size)
        return longest + (busy.total - longest) / count

    def _vectors(self, chain: Chain, blocks: Blocks) -> list[CostVector] | None:
        m, n, k = chain.extents
        down, across, deep = ceil_div(m, blocks.m), ceil_div(n, blocks.n), ceil_div(k, blocks.k)
        left, right = _operands(chain.call)
        by_tiles = deep == 1 and not chain.steps
        made = self._block(blocks, left, right, deep, by_tiles=by_tiles)
        if made is None:
            return None
        left_times = down * deep * (1 if deep == 1 and blocks.rows_outer else across)
        right_times = across * deep * (down if deep > 1 or blocks.rows_outer else 1)
        return [
            left_times * self._load(left, (blocks.m, blocks.k), chain.call.kwarg("a_trans")),
            right_times * self._load(right, (blocks.k, blocks.n), chain.call.kwarg("b_trans")),
            down * across * made,
        ]

    def _block(
        self, blocks: Blocks, left: TensorType, right: TensorType, deep: int, *, by_tiles: bool
    ) -> CostVector | None:
        """One block of the result: its products, and its store."""
        ways: list[CostVector | None] = []
        whole = self._product(_product_of(blocks, left, right, self.target, leaves=False))
        if whole is not None:
            ways.append(deep * whole + self._store(blocks, left, right))
        if by_tiles:
            ways.append(self._product(_product_of(blocks, left, right, self.target, leaves=True)))
        found = [way for way in ways if way is not None]
        return min(found, key=lambda way: self.model.fold([way]), default=None)

    def _product(self, product: CubeProduct) -> CostVector | None:
        """The cheapest schedule of a product by itself."""
        if product not in self._products:
            offered = worth_weighing(product, self.model, self.target).vectors
            vectors = [CostVector(*map(float, vector)) for vector in offered]
            self._products[product] = min(
                vectors, key=lambda vector: self.model.fold([vector]), default=None
            )
        return self._products[product]

    def _load(self, source: TensorType, shape: tuple[int, int], turned: object) -> CostVector:
        shape = shape[::-1] if turned else shape
        place = tuple_of((0, 0)).type
        operands: tuple[Type, ...] = (source, place, place, place)
        tile = _boxed(shape, source.dtype, Mem.Mat)
        kwargs = {"target_memory": Mem.Mat}
        return op_cost(OpInstance("tile.load", operands, kwargs, tile), self.model, self.target)

    def _store(self, blocks: Blocks, left: TensorType, right: TensorType) -> CostVector:
        acc = self.target.cube_accumulator(left.dtype, right.dtype)
        assert acc is not None
        tile = _boxed((blocks.m, blocks.n), acc, Mem.Acc)
        out = TensorType((blocks.m, blocks.n), acc)
        operands: tuple[Type, ...] = (tile, tuple_of((0, 0)).type, out)
        return op_cost(OpInstance("tile.store", operands, {}, out), self.model, self.target)


def _operands(call: Call) -> tuple[TensorType, TensorType]:
    left, right = call.args[0].type, call.args[1].type
    assert isinstance(left, TensorType)
    assert isinstance(right, TensorType)
    return left, right


def _product_of(
    blocks: Blocks, left: TensorType, right: TensorType, target: Target, *, leaves: bool
) -> CubeProduct:
    acc = target.cube_accumulator(left.dtype, right.dtype)
    if acc is None:
        raise UnsupportedDTypeError(f"no product {left.dtype.name} x {right.dtype.name}")
    valid = (blocks.m, blocks.n, blocks.k)
    line = max(FRACTAL_ROWS, target.c0_elems(left.dtype), target.c0_elems(right.dtype))
    physical = (round_up(blocks.m, FRACTAL_ROWS), round_up(blocks.n, line), blocks.k)
    return CubeProduct(valid, physical, left.dtype, right.dtype, acc, leaves=leaves)


def _boxed(valid: tuple[int, int], dtype: DType, space: Mem) -> TileType:
    """A tile in whole fractals."""
    shape = tuple(round_up(extent, FRACTAL_ROWS) for extent in valid)
    return tile_type(shape, dtype, space, replace(implicit_view(shape, space), valid_shape=valid))
