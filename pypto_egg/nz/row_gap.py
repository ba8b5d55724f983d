"""A guard against one fault of pto-isa, to be removed with it (hw-native-sys/pto-isa#317).

`TLoadGm2L1Nz2nz` computes the gap between neighbouring column blocks in 32 bits and passes it on
in 16 bits without a check. A larger gap wraps, and the load reads a wrong fractal without any
error. In blocks of 32 bytes the gap of a blocked view is the number of rows that a load skips,
R - TR, whatever the dtype (N-111, N-112). One column block is one burst, and the gap matters
between bursts only (N-118).
"""

from __future__ import annotations

from pypto_egg.nz.layout import Named
from pypto_egg.target.target import Target


def check_row_gap(
    rows: int, loaded_rows: int | None, column_blocks: int, target: Target, about: Named
) -> None:
    """Nothing, if the gap between the column blocks of a load fits its field.

    Args:
        rows: R, all rows of the tensor.
        loaded_rows: TR, the rows that the load's partition takes; None if they are dynamic, which
            counts as none, so that what passes holds for any number (N-116, N-117).
        column_blocks: how many column blocks the load takes, or may take.

    Raises:
        NzError: the gap is larger than the field; names the tensor (N-110, N-113).
    """
    limit = target.limits.load_gap_blocks
    gap = rows - (loaded_rows or 0)
    if column_blocks <= 1 or gap <= limit:
        return
    taken = "a dynamic number of" if loaded_rows is None else str(loaded_rows)
    least = -(-(rows - limit) // 16) * 16
    raise about.error(
        f"has {rows} rows, of which a load of {column_blocks} column blocks takes {taken}: it "
        f"skips {gap} 32-byte blocks between column blocks, and the field holds {limit} "
        "(pto-isa#317)",
        f"load at least {least} rows at once (fewer rows skip more), load one column block at a "
        "time, or stack the rows as a leading axis, [LAYERS, R, C]",
    )
