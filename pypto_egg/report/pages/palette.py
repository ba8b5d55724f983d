"""Colours of pipes and of series, on pages and in plots.

They are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), which readers with any colour
vision tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#f0e442")

QUEUE_COLOURS: Mapping[str, str] = {
    "scalar": "#999999",
    "mte2": "#0072b2",
    "mte1": "#56b4e9",
    "cube": "#d55e00",
    "fixpipe": "#cc79a7",
    "mte2_aiv": "#009e73",
    "vector": "#e69f00",
    "mte3": "#f0e442",
}
"""Queue of the simulation -> colour; a pipe has that of the queue of its name."""
