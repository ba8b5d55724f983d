"""Comparing what two programs compute.

Integers must be equal bit for bit. Floats may differ by rounding, because a lowering may
accumulate in another order. The tolerance of an output, relative to the larger of the two values
and to the output's root mean square, is

    FP32_STEP * (16 + 4 * sqrt(K)) + 4 * step

where K is the longest reduction of either program (matmul K times the trip counts around it),
FP32_STEP is the spacing of float32 at 1, and `step` is the spacing at 1 of the coarsest float type
to which either program rounds a computed value, or 0 if that is FP32.

Poison (NaN, or the integer sentinels) marks what a program leaves undefined. What the earlier
program defines, the later one must define; what the earlier one leaves undefined is unspecified,
and the later one may hold anything there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import sqrt

import ml_dtypes
import numpy as np

from pypto_egg.interp.poison import is_float_array, is_poison, numpy_dtype
from pypto_egg.interp.run import Input, Outputs, Result, entry_function, run
from pypto_egg.interp.work import longest_reduction
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk

FP32_STEP = 2.0**-23
# Operators whose results are their operands' values: they round nothing.
_COPIES = (
    *("load", "move", "extract", "slice", "reshape", "transpose", "transpose_view", "view"),
    *("create", "set_validshape", "concat", "assemble", "fillpad", "fillpad_expand", "full"),
    *("gather", "scatter", "row_expand", "col_expand", "expands", "read", "write"),
)


@dataclass(frozen=True)
class Difference:
    """The first place where two runs differ: which output, where in it, and both values."""

    output: str
    index: tuple[int, ...]
    before: float | int | bool | None
    after: float | int | bool | None
    reason: str

    def __str__(self) -> str:
        place = f"{self.output}{list(self.index)}" if self.index else self.output
        return f"{place}: {self.before} before, {self.after} after ({self.reason})"


@dataclass(frozen=True)
class Comparison:
    """The verdict over all outputs of the entry function.

    Args:
        max_abs_error, max_rel_error: over the elements that are valid in both.
        tolerance: the largest relative tolerance that was granted.
        poison_before, poison_after: how many output elements hold poison.
        compared: how many output elements the earlier program defines.
        where: the first difference, or None.
    """

    equal: bool
    max_abs_error: float
    max_rel_error: float
    tolerance: float
    poison_before: int
    poison_after: int
    compared: int
    where: Difference | None = None

    def __str__(self) -> str:
        verdict = "equal" if self.equal else f"different at {self.where}"
        return (
            f"{verdict}; {self.compared} elements, max error {self.max_abs_error:.3g} "
            f"({self.max_rel_error:.3g} relative), poison {self.poison_before} before, "
            f"{self.poison_after} after"
        )


@dataclass(frozen=True)
class Expected:
    """What the earlier version of a program computes from some inputs."""

    entry: Function
    inputs: Mapping[str, Input]
    outputs: Outputs


def compare(
    before: Program,
    after: Program,
    inputs: Mapping[str, Input],
    *,
    function: str | None = None,
) -> Comparison:
    """Whether two programs compute the same outputs from the same inputs.

    Raises:
        InterpretError: one of them cannot be run on these inputs.
    """
    entry = entry_function(before, function)
    wanted = Expected(entry, inputs, run(before, inputs, function=entry.name))
    return compare_with(wanted, after, tolerance_of(before, after))


def compare_with(
    wanted: Expected, after: Program, tolerance: float, budget: int | None = None
) -> Comparison:
    """Whether a program computes from the same inputs what an earlier version computed.

    Args:
        budget: for the run of `after`; see `run`.

    Raises:
        InterpretError: it cannot be run on these inputs.
        WorkLimitError: the budget is used up.
    """
    second = run(after, wanted.inputs, function=wanted.entry.name, budget=budget)
    second = _in_terms_of(wanted.outputs, second, wanted.entry)
    first = _with_untouched(wanted.outputs, second, wanted.inputs)
    second = _with_untouched(second, wanted.outputs, wanted.inputs)
    return compare_outputs(first, second, tolerance)


def defines_something(outputs: Outputs) -> bool:
    """Whether any element of what a run leaves behind is defined."""
    found = [*outputs.returns, *outputs.params.values()]
    return any(value is not None and not is_poison(np.asarray(value)).all() for value in found)


def over_all(comparisons: Sequence[Comparison]) -> Comparison:
    """The verdict over several runs; the first difference of the first run that has one."""
    return Comparison(
        equal=all(c.equal for c in comparisons),
        max_abs_error=max(c.max_abs_error for c in comparisons),
        max_rel_error=max(c.max_rel_error for c in comparisons),
        tolerance=max(c.tolerance for c in comparisons),
        poison_before=sum(c.poison_before for c in comparisons),
        poison_after=sum(c.poison_after for c in comparisons),
        compared=sum(c.compared for c in comparisons),
        where=next((c.where for c in comparisons if c.where is not None), None),
    )


def _in_terms_of(before: Outputs, after: Outputs, entry: Function) -> Outputs:
    """The later outputs without parameters that the earlier entry function does not have.

    A lowered entry function returns through Out parameters of its own. Blocked NZ results come
    back to their logical shape.
    """
    known = {param.var.name for param in entry.params}
    params = {
        name: _like(array, before.params.get(name))
        for name, array in after.params.items()
        if name in known
    }
    pairs = zip_longest(after.returns, before.returns[: len(after.returns)])
    returns = tuple(_like(a, b) if isinstance(a, np.ndarray) else a for a, b in pairs)
    return Outputs(returns, params)


def _with_untouched(outputs: Outputs, other: Outputs, inputs: Mapping[str, Input]) -> Outputs:
    """The outputs with the parameters that only the other run reports, as they were given.

    Which parameters a run reports depends on declared directions and on the path it took; a
    parameter that a run does not report still holds its input.
    """
    missing = {
        name: value
        for name in other.params
        if name not in outputs.params and isinstance(value := inputs.get(name), np.ndarray)
    }
    return Outputs(outputs.returns, {**outputs.params, **missing}) if missing else outputs


def _like(after: np.ndarray, before: Result) -> np.ndarray:
    """A blocked NZ array [B, C/c0, R/16, 16, c0] in the logical shape of its counterpart."""
    if not isinstance(before, np.ndarray):
        return after
    if after.ndim != 5 or after.shape == before.shape or after.size != before.size:
        return after
    return after.transpose(0, 2, 3, 1, 4).reshape(before.shape)


def tolerance_of(before: Program, after: Program) -> float:
    """The relative tolerance for two versions of a program (see the module's head)."""
    longest = max(longest_reduction(before), longest_reduction(after))
    coarsest = max(_coarsest_step(before), _coarsest_step(after))
    return FP32_STEP * (16 + 4 * sqrt(longest)) + 4 * coarsest


def _coarsest_step(program: Program) -> float:
    steps = [_rounding_step(call) for f in program.functions for call in _calls(f)]
    return max(steps, default=0.0)


def _calls(function: Function) -> list[Call]:
    return [
        node
        for stmt in walk(function.body)
        for expr in expressions_of(stmt)
        for node in subexpressions(expr)
        if isinstance(node, Call)
    ]


def _rounding_step(call: Call) -> float:
    """The spacing at 1 of the type to which an operator rounds its result; 0 for FP32."""
    kind = call.result_type
    name = call.op.split(".")[-1]
    if name == "store" and isinstance(call.args[0].type, TileType):
        if call.args[0].type.dtype == kind.dtype if isinstance(kind, TensorType) else True:
            return 0.0
    elif name in _COPIES:
        return 0.0
    if not isinstance(kind, TensorType | TileType) or not kind.dtype.is_float:
        return 0.0
    if kind.dtype.bits >= 32:
        return 0.0
    return float(ml_dtypes.finfo(numpy_dtype(kind.dtype)).eps)


def compare_outputs(before: Outputs, after: Outputs, tolerance: float) -> Comparison:
    """The verdict over two runs' outputs under a relative tolerance."""
    pairs = _paired(before, after)
    reports = [_compare_one(name, a, b, tolerance) for name, a, b in pairs]
    if len(before.returns) != len(after.returns):
        counts = f"{len(before.returns)} and {len(after.returns)} values are returned"
        reports.insert(0, _Report(where=Difference("returns", (), None, None, counts)))
    return Comparison(
        equal=all(report.where is None for report in reports),
        max_abs_error=max((r.abs_error for r in reports), default=0.0),
        max_rel_error=max((r.rel_error for r in reports), default=0.0),
        tolerance=tolerance,
        poison_before=sum(r.poison_before for r in reports),
        poison_after=sum(r.poison_after for r in reports),
        compared=sum(r.compared for r in reports),
        where=next((r.where for r in reports if r.where is not None), None),
    )


def _paired(before: Outputs, after: Outputs) -> list[tuple[str, Result, Result]]:
    """Outputs under their names: returned values, then parameters that both runs report."""
    returned = zip(before.returns, after.returns, strict=False)
    pairs: list[tuple[str, Result, Result]] = [
        (f"return {i}", a, b) for i, (a, b) in enumerate(returned)
    ]
    names = [*before.params, *(n for n in after.params if n not in before.params)]
    for name in names:
        pairs.append((name, before.params.get(name), after.params.get(name)))
    return pairs


@dataclass(frozen=True)
class _Report:
    where: Difference | None = None
    abs_error: float = 0.0
    rel_error: float = 0.0
    poison_before: int = 0
    poison_after: int = 0
    compared: int = 0


def _compare_one(name: str, before: Result, after: Result, tolerance: float) -> _Report:
    if before is None or after is None:
        if before is after:
            return _Report()
        only = "after" if before is None else "before"
        return _Report(where=Difference(name, (), None, None, f"written only {only}"))
    a, b = np.asarray(before), np.asarray(after)
    if a.shape != b.shape or a.dtype != b.dtype:
        reason = f"{a.dtype}{list(a.shape)} before, {b.dtype}{list(b.shape)} after"
        return _Report(where=Difference(name, (), None, None, reason))
    missing_a, missing_b = is_poison(a), is_poison(b)
    both = ~missing_a & ~missing_b
    error, scale, allowed = _errors(a, b, both, tolerance)
    wrong = (missing_b & ~missing_a) | (both & ~(error <= allowed))
    with np.errstate(all="ignore"):
        relative = np.where(scale > 0, error / np.where(scale > 0, scale, 1), 0)
    return _Report(
        where=_first(name, a, b, wrong, missing_b),
        abs_error=float(error.max(initial=0)),
        rel_error=float(relative.max(initial=0)),
        poison_before=int(missing_a.sum()),
        poison_after=int(missing_b.sum()),
        compared=int((~missing_a).sum()),
    )


def _errors(
    a: np.ndarray, b: np.ndarray, both: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Absolute error, scale and allowance of each element."""
    wide_a = np.where(both, a.astype(np.float64), 0)
    wide_b = np.where(both, b.astype(np.float64), 0)
    with np.errstate(all="ignore"):
        # Equal infinities differ by nothing.
        error = np.where(wide_a == wide_b, 0, np.abs(wide_a - wide_b))
    error = np.where(np.isnan(error), np.inf, error)
    scale = np.maximum(np.abs(wide_a), np.abs(wide_b))
    if not is_float_array(a):
        return np.where(both & (a != b), np.maximum(error, 1), 0), scale, np.zeros(a.shape)
    finite = scale[both & np.isfinite(scale)]
    floor = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    allowed = tolerance * (np.where(np.isfinite(scale), scale, 0) + floor)
    return error, scale, allowed


def _first(
    name: str,
    a: np.ndarray,
    b: np.ndarray,
    wrong: np.ndarray,
    missing_b: np.ndarray,
) -> Difference | None:
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    reason = "poison after only" if missing_b[index] else "values differ beyond rounding"
    return Difference(name, index, _number(a[index]), _number(b[index]), reason)


def _number(element: np.generic) -> float | int | bool:
    array = np.asarray(element)
    if array.dtype == np.bool_:
        return bool(array)
    return float(array) if is_float_array(array) else int(array)
