"""What went into a run and what came out of it, as tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pypto_egg.interp import Outputs
from pypto_egg.interp.poison import is_poison
from pypto_egg.interp.run import Input, Result
from pypto_egg.report.table import Table

_HEADER = ("dtype", "shape", "least", "greatest", "mean", "undefined")


def inputs_table(inputs: Mapping[str, Input]) -> Table:
    """A row for each input: dtype, shape, range and mean."""
    rows = tuple((name, *_row(value)) for name, value in inputs.items())
    return Table(("input", *_HEADER), rows)


def outputs_table(outputs: Outputs) -> Table:
    """A row for each returned value and each written parameter; undefined elements are counted."""
    named = [(f"return {i}", value) for i, value in enumerate(outputs.returns)]
    rows = tuple((name, *_row(value)) for name, value in (*named, *outputs.params.items()))
    return Table(("output", *_HEADER), rows)


def _row(value: Input | Result) -> tuple[str, ...]:
    if value is None:
        return ("none", "", "", "", "", "")
    shape = "x".join(str(n) for n in np.shape(value)) or "scalar"
    array = np.atleast_1d(np.asarray(value))
    undefined = is_poison(array)
    known = array[~undefined].astype(np.float64)
    if known.size == 0:
        return (str(array.dtype), shape, "", "", "", str(int(undefined.sum())))
    numbers = (f"{x:.6g}" for x in (known.min(), known.max(), known.mean()))
    return (str(array.dtype), shape, *numbers, str(int(undefined.sum())))
