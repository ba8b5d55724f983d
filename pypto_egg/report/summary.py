"""The short account of a lowering that the command prints."""

from __future__ import annotations

from typing import TextIO

from pypto_egg.lowering import FunctionReport, Lowering
from pypto_egg.report.differences import boxes, differences
from pypto_egg.report.packing import packing_lines
from pypto_egg.report.table import cost_table, show
from pypto_egg.report.words import fold_words

NOTHING = "nothing to lower: no InCore function holds tensor operators"


def write_summary(lowering: Lowering, stream: TextIO) -> None:
    """Cycles for each pipe beside the reference, what differs, and whether it was verified."""
    if not lowering.functions:
        stream.write(f"{NOTHING}\n{verified(lowering)}\n")
        return
    show(cost_table(lowering), stream)
    model = lowering.functions[0].account.model
    if model.objective != "serial":
        stream.write(f"total of {model.name}: {fold_words(model)}\n")
    changes = differences(lowering)
    for report in lowering.functions:
        stream.write(f"\n{report.name}: {statistics(report)}\n")
        for line in boxes(report.account):
            stream.write(f"  {line}\n")
        for line in changes.get(report.name, ()):
            stream.write(f"  unlike the reference: {line}\n")
        if changes.get(report.name) == ():
            stream.write("  nothing is unlike the reference\n")
    if lowering.fallback:
        stream.write(f"this is the reference lowering: {lowering.fallback}\n")
    if lowering.baseline_refused:
        stream.write(f"the reference lowering refuses this program: {lowering.baseline_refused}\n")
    for line in packing_lines(lowering):
        stream.write(f"{line}\n")
    stream.write(f"{verified(lowering)}\n")


def statistics(report: FunctionReport) -> str:
    """Saturation, extraction and time of one function in a line."""
    saturation, seconds = report.saturation, sum(report.seconds.values())
    return (
        f"{saturation.stop.value} after {saturation.iterations} iterations, "
        f"{saturation.nodes} nodes; extraction {report.extraction}; {seconds:.2f} s"
    )


def verified(lowering: Lowering) -> str:
    """Whether both programs were executed and agreed, in a line."""
    if not lowering.verified:
        return f"not verified: {lowering.verification}"
    return f"verified by execution: {lowering.comparison}"
