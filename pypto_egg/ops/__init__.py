"""The operator registry with every operator of PyPTO declared in it.

Importing this package registers all declarations; `registry` looks them up.
"""

from pypto_egg.ops import (
    cross_core,
    distributed,
    other,
    tensor_elementwise,
    tensor_gather,
    tensor_matmul,
    tensor_memory,
    tensor_reduce,
    tensor_shape,
    tile_elementwise,
    tile_gather,
    tile_matmul,
    tile_memory,
    tile_reduce,
    tile_shape,
)

__all__ = [
    "cross_core",
    "distributed",
    "other",
    "tensor_elementwise",
    "tensor_gather",
    "tensor_matmul",
    "tensor_memory",
    "tensor_reduce",
    "tensor_shape",
    "tile_elementwise",
    "tile_gather",
    "tile_matmul",
    "tile_memory",
    "tile_reduce",
    "tile_shape",
]
