"""What results look like in a notebook's cell."""

from __future__ import annotations

from pypto_egg.lowering import Lowering
from pypto_egg.report.differences import differences
from pypto_egg.report.pages.page import fragment
from pypto_egg.report.table import cost_table


def lowering_cell(lowering: Lowering) -> str:
    """Cycles by pipe, what is unlike the reference, and the program, folded, as HTML."""
    changes = [line for lines in differences(lowering).values() for line in lines]
    return fragment(
        "lowering_cell.html.j2", lowering=lowering, costs=cost_table(lowering), changes=changes
    )
