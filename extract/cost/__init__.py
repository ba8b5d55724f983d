"""Cost models: what one tile operation costs on one target, as busy cycles of each pipe."""

from pypto_egg.extract.cost.model import (
    PIPES,
    CostModel,
    CostVector,
    OpInstance,
    cost_model,
    cost_model_names,
    register_cost_model,
)

__all__ = [
    "PIPES",
    "CostModel",
    "CostVector",
    "OpInstance",
    "cost_model",
    "cost_model_names",
    "register_cost_model",
]
