"""Whether a lowering computes what its source does: both are executed on random data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from pypto_egg.errors import InterpretError, OptionError, VerificationError, WorkLimitError
from pypto_egg.interp import random_inputs, run, work
from pypto_egg.interp.compare import (
    Comparison,
    Expected,
    compare_with,
    defines_something,
    over_all,
    tolerance_of,
)
from pypto_egg.interp.run import Input, Outputs, entry_functions
from pypto_egg.interp.work import input_elements
from pypto_egg.ir.program import Function, Program
from pypto_egg.lowering import Lowering

Verify = bool | Literal["auto"]

# What verify="auto" does not run: programs whose estimate is more scalar operations than this,
# about a second of numpy, and what turns out to be more, by the interpreter's own count.
AUTO_WORK = 2_000_000_000
AUTO_BUDGET = 500_000_000
# By how much integer scalars grow where small ones leave every result undefined.
LARGER_SCALARS = 64


class _LeftOut(Exception):
    """A function that "auto" does not run, and why."""


def verified(result: Lowering, verify: Verify) -> Lowering:
    """The result after every entry function of both programs was run, if that was asked for.

    Args:
        verify: True, False or "auto", which leaves out what cannot be run or takes long; the
            result says so.

    Raises:
        VerificationError: the two programs compute different values.
        InterpretError: one of them cannot be run; with "auto", the lowered one of them only.
    """
    if verify is not True and verify is not False and verify != "auto":
        raise OptionError(f"verify is True, False or 'auto', not {verify!r}")
    if verify is False:
        return replace(result, verification="not asked for")
    comparisons: list[Comparison] = []
    left_out: list[str] = []
    try:
        entries = entry_functions(result.source)
    except InterpretError as error:
        if verify is True:
            raise
        return replace(result, verification=f"left out: {error.message}")
    for entry in entries:
        try:
            comparisons.append(_compared(result, entry, auto=verify == "auto"))
        except _LeftOut as reason:
            left_out.append(f"'{entry.name}': {reason}" if len(entries) > 1 else str(reason))
    comparison = over_all(comparisons) if comparisons else None
    if left_out:
        reasons = "; ".join(left_out)
        return replace(result, verification=f"left out: {reasons}", comparison=comparison)
    if comparison is not None and comparison.poison_before and not comparison.compared:
        undefined = "left out: random data leaves every element of the results undefined"
        return replace(result, verification=undefined, comparison=comparison)
    return replace(result, verified=True, verification="executed", comparison=comparison)


def _compared(result: Lowering, entry: Function, auto: bool) -> Comparison:
    """The verdict over the runs that start with one function.

    Raises:
        _LeftOut: "auto" does not run it.
        VerificationError: the values differ.
        InterpretError: a program cannot be run.
    """
    wanted, tolerance = _expected(result, entry, auto)
    try:
        budget = AUTO_BUDGET if auto else None
        comparison = compare_with(wanted, result.program, tolerance, budget)
    except WorkLimitError as error:
        raise _LeftOut(error.message) from error
    if not comparison.equal:
        raise VerificationError(
            f"the tile program of '{entry.name}' does not compute what the tensor program does: "
            f"{comparison.where}"
        )
    return comparison


def _expected(result: Lowering, entry: Function, auto: bool) -> tuple[Expected, float]:
    """What the source computes from random data, and how far the lowering may be from it."""
    try:
        if auto:
            _check_effort(result, entry)
        tolerance = tolerance_of(result.source, result.program)
        budget = AUTO_BUDGET if auto else None
        inputs, outputs = _drawn(result.source, entry, budget)
    except InterpretError as error:
        if not auto:
            raise
        # Random data does not suit every program: offsets read from memory, for example.
        raise _LeftOut(error.message) from error
    return Expected(entry, inputs, outputs), tolerance


def _drawn(
    source: Program, entry: Function, budget: int | None
) -> tuple[Mapping[str, Input], Outputs]:
    """Random inputs and what the source computes from them.

    Where small scalars leave every element undefined, because no row is valid or no branch is
    taken, larger ones are tried.
    """
    inputs = random_inputs(entry, program=source)
    outputs = run(source, inputs, function=entry.name, budget=budget)
    if defines_something(outputs):
        return inputs, outputs
    larger = {name: _larger(value) for name, value in inputs.items()}
    try:
        others = run(source, larger, function=entry.name, budget=budget)
    except InterpretError:
        return inputs, outputs
    return (larger, others) if defines_something(others) else (inputs, outputs)


def _larger(value: Input) -> Input:
    if isinstance(value, int) and not isinstance(value, bool):
        return value * LARGER_SCALARS
    return value


def _check_effort(result: Lowering, entry: Function) -> None:
    effort = sum(work(program, function=entry.name) for program in (result.source, result.program))
    effort += input_elements(entry)
    if effort > AUTO_WORK:
        raise _LeftOut(f"about {effort:.1e} operations")
