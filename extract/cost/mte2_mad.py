"""`mte2_mad`: the additive model built from the MTE2 and MAD rules.

MTE2 moves valid bytes and the cube runs passes over valid extents (C-129, C-130), so boxing is
free in time; every other transfer and vector op has its own law (docs/cost.md). Costs add up:
nothing is assumed to overlap.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pypto_egg.errors import InternalError
from pypto_egg.extract.cost.l0_schedules import schedule_vectors
from pypto_egg.extract.cost.model import (
    ZERO,
    CostModel,
    CostVector,
    OpInstance,
    register_cost_model,
)
from pypto_egg.extract.cost.movement import (
    price_assemble,
    price_cross_core,
    price_gather_row,
    price_load,
    price_mgather,
    price_move,
    price_mscatter,
    price_pop,
    price_push,
    price_store,
)
from pypto_egg.extract.cost.product import PRODUCTS, price_product
from pypto_egg.extract.cost.vector import Pricer, vector_pricers
from pypto_egg.l0 import CubeProduct, Schedules
from pypto_egg.target import Target


def _free(op: OpInstance, target: Target) -> CostVector:
    """A view, an allocation or metadata: no instruction (K-05, K-06)."""
    return ZERO


def _scalar_instruction(op: OpInstance, target: Target) -> CostVector:
    return CostVector(scalar=target.scalar.instruction_cycles)


def _scalar_gm_access(op: OpInstance, target: Target) -> CostVector:
    return CostVector(scalar=target.scalar.gm_access_cycles)


_FREE = (
    "tile.alloc", "tile.create", "tile.reinterpret_view", "tile.reshape", "tile.set_validshape",
    "tile.slice", "tile.transpose_view",
    "tensor.alloc", "tensor.create", "tensor.dim", "tensor.reinterpret_view", "tensor.reshape",
    "tensor.set_validshape", "tensor.slice", "tensor.view",
)  # fmt: skip
_SCALAR = (
    "tile.read", "tile.write", "tile.get_block_idx", "tile.get_block_num", "tile.get_subblock_idx",
    "tile.tget_scale_addr",
    "tensor.get_block_idx", "tensor.get_block_num", "tensor.get_subblock_idx",
    "array.create", "array.get_element", "array.update_element",
)  # fmt: skip
_PRICERS: dict[str, Pricer] = {
    **vector_pricers(),
    **dict.fromkeys(PRODUCTS, price_product),
    **dict.fromkeys(_FREE, _free),
    **dict.fromkeys(_SCALAR, _scalar_instruction),
    "tensor.read": _scalar_gm_access,
    "tensor.write": _scalar_gm_access,
    "tile.load": price_load,
    "tile.store": price_store,
    "tile.move": price_move,
    "tile.extract": price_move,
    "tile.assemble": price_assemble,
    "tile.gather_row": price_gather_row,
    "tile.mgather": price_mgather,
    "tile.mscatter": price_mscatter,
    "tile.aiv_shard": price_cross_core,
    "tile.aic_gather": price_cross_core,
    "tile.tpush_to_aiv": price_push,
    "tile.tpush_to_aic": price_push,
    "tile.tpop_from_aic": price_pop,
    "tile.tpop_from_aiv": price_pop,
}


@register_cost_model
class Mte2Mad(CostModel):
    """The first model: additive, from the MTE2 and MAD rules."""

    name: ClassVar[str] = "mte2_mad"

    def price(self, op: OpInstance, target: Target) -> CostVector:
        pricer = _PRICERS.get(op.op)
        if pricer is None:
            raise InternalError(f"cost model {self.name} has no price for {op.op}")
        return pricer(op, target)

    def price_schedules(
        self, product: CubeProduct, among: Schedules, target: Target
    ) -> NDArray[np.float64] | None:
        if type(self).price is not Mte2Mad.price:
            return None  # a model that prices instructions in another way
        return schedule_vectors(product, among, target)

    @staticmethod
    def known_ops() -> tuple[str, ...]:
        """IR names of all ops the model prices, sorted."""
        return tuple(sorted(_PRICERS))
