"""Products into NZ memory that are too large for L0C: pieces of columns, each over all rows."""

from __future__ import annotations

import numpy as np
import pytest
from nz_programs import calls, operands

from pypto_egg import optimize
from pypto_egg.errors import LoweringError, NzError
from pypto_egg.interp import run
from pypto_egg.ir.dtype import FP32
from pypto_egg.nz import pack, unpack
from pypto_egg.nz.layout import blocked_shape

L0C_BYTES = 128 * 1024


def product(m: int, n: int, k: int) -> str:
    x, w, y = (f"pl.Tensor[[{r}, {c}], pl.FP32" for r, c in ((m, k), (k, n), (m, n)))
    return (
        "import pypto.language as pl\n\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def kernel(self, x: {x}], w: {w}, pl.NZ], y: pl.Out[{y}, pl.NZ]]) -> {y}, pl.NZ]:\n"
        "        t = pl.matmul(x, w, out_dtype=pl.FP32)\n"
        "        y1 = pl.assemble(y, t, [0, 0])\n"
        "        return y1\n"
    )


@pytest.mark.req("N-048", "N-049", "N-050", "N-051", "N-052", "N-053")
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (64, 1024, 32),
        (256, 512, 64),
        (512, 512, 128),
        (64, 1040, 32),
        (16, 8192, 16),
        (16, 4112, 16),
    ],
)
def test_a_large_product_is_written_in_column_pieces(m, n, k):
    """Twice L0C and more, 65 column fractals, N beyond 4095."""
    result = optimize(product(m, n, k), verify=False)
    for store in calls(result.program, "tile.store"):
        rows, cols = store.args[0].type.shape
        assert rows == m
        assert cols % 16 == 0
        assert rows * cols * 4 <= L0C_BYTES
        assert cols <= 4080
        (window,) = operands(store, 3)
        assert window == [1, cols // 8, m // 16, 16, 8]
    random = np.random.default_rng(0)
    x, w = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    y = np.full(blocked_shape((m, n), FP32), np.nan, np.float32)
    got = run(result.program, {"x": x, "w": pack(w), "y": y}).params["y"]
    assert np.array_equal(unpack(got, (m, n)), x @ w)


@pytest.mark.req("N-054", "N-055")
@pytest.mark.parametrize("n", [16, 64])
def test_rows_that_fit_in_no_piece(n):
    """2064 rows of 16 columns are more than L0C holds, and a piece has all rows."""
    with pytest.raises(LoweringError) as caught:
        optimize(product(2064, n, 16), verify=False)
    assert "2064" in caught.value.message
    assert caught.value.hint


def test_a_refusal_names_the_parameter_that_the_pieces_go_to():
    """And its place: the handles that loops over pieces carry are no names of the source."""
    with pytest.raises(NzError, match="'y' is written on a5") as caught:
        optimize(product(64, 1024, 32), target="a5")
    assert caught.value.span is not None
