"""The operations of a kernel's text with how often each runs."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg.analysis.regions import UNKNOWN_TRIPS, trip_count
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, Block, Eval, For, While
from pypto_egg.ir.visit import blocks_of


def executed_calls(kernel: Function) -> Iterator[tuple[Call, int]]:
    """(call, how often it runs) for all calls that stand as statements, in program order.

    A loop of unknown trip count counts `UNKNOWN_TRIPS`; both arms of a branch count.
    """
    stack: list[tuple[Block, int]] = [(kernel.body, 1)]
    while stack:
        block, times = stack.pop()
        for at, stmt in enumerate(block):
            if isinstance(stmt, Assign | Eval) and isinstance(stmt.value, Call):
                yield stmt.value, times
            nested = blocks_of(stmt)
            if not nested:
                continue
            inner = times * _trips(stmt)
            stack.append((block[at + 1 :], times))
            stack.extend((body, inner) for _, body in reversed(nested))
            break


def _trips(stmt: object) -> int:
    if isinstance(stmt, While):
        return UNKNOWN_TRIPS
    if not isinstance(stmt, For):
        return 1
    trips = trip_count(stmt)
    return UNKNOWN_TRIPS if trips is None else trips
