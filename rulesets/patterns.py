"""Vocabulary that the rulesets share: how a realisation is stated, how an extent is rounded."""

from __future__ import annotations

from typing import Any

from egglog import i64, union

from pypto_egg.egraph.attrs import encode
from pypto_egg.egraph.language import Tensor
from pypto_egg.egraph.tile_language import Form, Tile, realize
from pypto_egg.ir.enums import Mem, TileLayout

# Out of a boxed space into Vec, the mover also undoes the boxes: Vec ops want plain rows.
TO_VEC = encode(
    {
        "target_memory": Mem.Vec,
        "blayout": TileLayout.row_major,
        "slayout": TileLayout.none_box,
    }
)
TO_MAT = encode({"target_memory": Mem.Mat})
TO_BIAS = encode({"target_memory": Mem.Bias})


def becomes(t: Tensor, f: Form, tile: Tile) -> Any:
    """The action that makes `tile` one way of holding `t` in form `f`."""
    return union(realize(t, f)).with_(tile)


def round_up(extent: i64, granularity: i64) -> i64:
    """The smallest multiple of `granularity` that is not below `extent`."""
    return ((extent + granularity - 1) / granularity) * granularity
