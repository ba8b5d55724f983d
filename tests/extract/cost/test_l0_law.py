"""PyPTO's L0 law: the chooser's own answers, and the price of products and drains."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.extract.cost.l0 import Product, drain_cycles, l0_blocking, product_cycles
from pypto_egg.ir.dtype import BF16, FP16, FP32, INT8, INT32
from pypto_egg.target import load_target

A2A3, A5 = load_target("a2a3"), load_target("a5")

# Answers of PyPTO's own chooser with its default gates: target, M x N x K, operand dtype, tile,
# load, cube and drain cycles, wall.
CHOSEN = [
    ("a2a3", (128, 128, 128), FP16, (128, 128, 128), 636.3, 533, 733.6, 1370),
    ("a2a3", (256, 256, 256), FP16, (128, 256, 64), 4080.2, 4264, 2549.6, 6814),
    ("a2a3", (512, 512, 512), FP16, (128, 256, 64), 32641.4, 34112, 10198.2, 44310),
    ("a2a3", (1024, 1024, 1024), FP16, (128, 256, 64), 261131.5, 272896, 40792.9, 313689),
    ("a2a3", (4096, 4096, 4096), FP16, (128, 256, 64), 16712417.8, 17465344, 652687.2, 18118031),
    ("a2a3", (16, 256, 512), FP16, (16, 256, 64), 3195.9, 680, 302.8, 3499),
    ("a2a3", (512, 128, 2048), FP16, (256, 128, 64), 28447.7, 34112, 2606.4, 36718),
    ("a2a3", (256, 256, 64), FP16, (128, 256, 64), 636.3, 1066, 2549.6, 3616),
    ("a2a3", (272, 272, 64), FP16, (144, 128, 64), 1083.8, 1854, 4828.8, 6683),
    ("a2a3", (320, 320, 64), FP16, (160, 128, 64), 1275.1, 2046, 5256.0, 7302),
    ("a2a3", (100, 256, 512), FP16, (64, 256, 64), 6928.7, 4432, 1438.8, 8367),
    ("a2a3", (112, 256, 512), FP16, (112, 256, 64), None, None, None, 5090),
    ("a2a3", (16, 512, 128), FP16, (16, 512, 32), 1566.4, 340, 441.7, 2008),
    ("a2a3", (256, 1024, 128), FP16, (128, 256, 64), 8160.4, 8528, 10198.2, 18726),
    ("a2a3", (64, 64, 4096), FP16, (64, 64, 256), 10181.5, 4432, 448.8, 10630),
    ("a2a3", (96, 160, 240), FP16, (96, 128, 80), 1609.9, 1566, 1182.4, 2792),
    ("a2a3", (256, 256, 256), FP32, (128, 256, 32), 8160.4, 16720, 2549.6, 19270),
    ("a2a3", (256, 256, 256), INT8, (128, 256, 128), 2040.1, 2132, 2549.6, 4682),
    ("a5", (256, 256, 256), FP16, (256, 256, 64), 1221.0, 4196, 9081.5, 13278),
    ("a5", (256, 256, 256), FP32, (256, 256, 32), 2442.0, 65736, 9081.5, 74818),
    ("a5", (1024, 1024, 1024), FP16, (256, 256, 64), 78144.8, 268544, 145304.5, 413849),
]


@pytest.mark.parametrize(("name", "mnk", "dtype", "tile", "load", "cube", "drain", "wall"), CHOSEN)
def test_blocking_is_the_one_pypto_chooses(name, mnk, dtype, tile, load, cube, drain, wall):
    chosen = l0_blocking(*mnk, dtype, dtype, FP32, load_target(name))
    assert (chosen.m, chosen.n, chosen.k) == tile
    assert chosen.wall_cycles == wall
    if load is not None:
        assert round(chosen.load_cycles, 1) == load
        assert chosen.cube_cycles == cube
        assert round(chosen.drain_cycles, 1) == drain
