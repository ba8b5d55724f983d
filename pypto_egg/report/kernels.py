"""Decisions between versions of a function that were lowered as a whole."""

from __future__ import annotations

from pypto_egg.lowering import Decision, Kernel, Option
from pypto_egg.report.words import SAME_CYCLES, difference_words


def between_kernels(function: str, value: str, kernels: tuple[Kernel, ...]) -> Decision:
    """The decision between versions, the first of which was chosen."""
    chosen, *others = kernels
    taken = Option(chosen.what, chosen.cost, chosen.cycles, "chosen", "")
    return Decision(value, function, (taken, *(_option(other, chosen) for other in others)))


def _option(kernel: Kernel, chosen: Kernel) -> Option:
    if kernel.cycles is None or chosen.cycles is None:
        return Option(kernel.what, kernel.cost, None, "illegal", kernel.refused)
    more = kernel.cycles - chosen.cycles
    words = difference_words(more, kernel.cost, chosen.cost)
    if more > SAME_CYCLES:
        return Option(kernel.what, kernel.cost, kernel.cycles, "dearer", words)
    if more < -SAME_CYCLES:
        # The reference takes the first of several.
        words += "; the reference takes the first that fits"
        return Option(kernel.what, kernel.cost, kernel.cycles, "cheaper", words)
    return Option(kernel.what, kernel.cost, kernel.cycles, "equal", "the same cycles")
