"""Reads packed bytes by what the document says of NZ order, element by element.

c0 elements follow each other and make one line of 32 bytes; 16 such lines, one a row, make a
fractal of 512 bytes; the fractals of a column block follow each other along the rows; column
blocks follow each other behind that; and matrices behind that, row-major over the leading axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

LINE_BYTES, ROWS = 32, 16
FRACTAL_BYTES = ROWS * LINE_BYTES


def place(index: Sequence[int], shape: Sequence[int], itemsize: int) -> int:
    """Where an element starts, in bytes from the start of the tensor."""
    *leading, row, col = index
    *extents, rows, cols = shape
    c0 = LINE_BYTES // itemsize
    matrix = 0
    for at, extent in zip(leading, extents, strict=True):
        matrix = matrix * extent + at
    column_block, inside_line = divmod(col, c0)
    fractal, line = divmod(row, ROWS)
    column_block_bytes = rows // ROWS * FRACTAL_BYTES
    matrix_bytes = cols // c0 * column_block_bytes
    return (
        matrix * matrix_bytes
        + column_block * column_block_bytes
        + fractal * FRACTAL_BYTES
        + line * LINE_BYTES
        + inside_line * itemsize
    )


def read(packed: bytes, shape: Sequence[int], itemsize: int) -> bytes:
    """The bytes of the row-major tensor that a packed one is of."""
    return b"".join(
        packed[at : at + itemsize]
        for index in product(*map(range, shape))
        for at in (place(index, shape, itemsize),)
    )
