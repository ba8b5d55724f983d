"""Tile functions from the lines of their bodies."""

from __future__ import annotations

from pypto_egg import parse
from pypto_egg.ir.program import Function

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX],
          out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
"""
LOAD = "pl.tile.load(x, [0, 0], [16, 16], [16, 16], target_memory=pl.Mem.{space})"


def tile_function(body: str) -> Function:
    """A function over x, out [16, 16] FP32 and an index n; `LOAD x` in a line loads x into Vec,
    `LOAD x Mat` into Mat, and the last line's `STORE t` stores and returns a tile."""
    lines = []
    for line in body.strip("\n").splitlines():
        line = line.replace("LOAD x Mat", LOAD.format(space="Mat"))
        line = line.replace("LOAD x", LOAD.format(space="Vec"))
        head, stored, tile = line.partition("STORE ")
        if stored:
            lines += [f"{head}o = pl.tile.store({tile}, [0, 0], out)", f"{head}return o"]
        else:
            lines.append(line)
    least = min(len(line) - len(line.lstrip()) for line in lines)
    text = HEAD + "".join(f"        {line[least:]}\n" for line in lines)
    return parse(text).functions[0]
