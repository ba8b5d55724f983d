"""The schedules of one product with operands in L1, ranked under a cost model."""

from __future__ import annotations

import json

import numpy as np

from pypto_egg.errors import OptionError
from pypto_egg.extract.cost.model import PIPES, CostModel, CostVector
from pypto_egg.extract.cost.pypto_l0 import pypto_choice
from pypto_egg.ir.dtype import DTYPES
from pypto_egg.l0 import CubeProduct, schedules
from pypto_egg.report.table import Table
from pypto_egg.report.words import cycles
from pypto_egg.scheduling import prices_of
from pypto_egg.target.target import Target

_SHOWN = ("mte1", "cube", "fixpipe")
_COLUMNS = (
    "rank", "m", "n", "k", "stays", "accumulators", "outer", *_SHOWN, "cycles", "/ best", "",
)  # fmt: skip


def product_from(shape: str, dtype: str, target: Target) -> CubeProduct:
    """The product "MxNxK" of a dtype in the least boxes, whose result leaves L0C tile by tile.

    Raises:
        OptionError: the text is no shape, or the cube has no such product.
    """
    parts = shape.lower().split("x")
    if len(parts) != 3 or not all(part.isdecimal() and int(part) for part in parts):
        raise OptionError(f"'{shape}' is no shape", hint="write M, N and K as in 128x256x512")
    m, n, k = map(int, parts)
    element = DTYPES.get(dtype.upper())
    acc = target.cube_accumulator(element, element) if element is not None else None
    if element is None or acc is None or element.bits < 8:
        raise OptionError(
            f"the cube of {target.name} has no product of '{dtype}' that is cut into L0 tiles",
            hint="use bf16, fp16, fp32 or int8",
        )
    steps = CubeProduct((m, n, k), (m, n, k), element, element, acc).steps
    if k % steps[2]:
        raise OptionError(
            f"K = {k} is no multiple of {steps[2]}, and K is never padded (C-168)",
            hint=f"pad both operands with zeros to K = {-(-k // steps[2]) * steps[2]}",
        )
    physical = (-(-m // steps[0]) * steps[0], -(-n // steps[1]) * steps[1], k)
    return CubeProduct((m, n, k), physical, element, element, acc, leaves=True)


def l0_table(product: CubeProduct, model: CostModel, target: Target, top: int) -> Table:
    """The cheapest schedules, and the one that PyPTO's chooser takes."""
    rows = [
        (*(_shown(row[name]) for name in _COLUMNS[:-2]), f"{row['ratio']:.4f}", str(row["note"]))
        for row in ranking(product, model, target, top)
    ]
    return Table(_COLUMNS, tuple(rows))


def l0_json(product: CubeProduct, model: CostModel, target: Target, top: int) -> str:
    """The same rows as JSON."""
    record = {
        "product": list(product.valid), "physical": list(product.physical),
        "dtype": product.lhs.name, "target": target.name, "cost_model": model.name,
        "considered": len(schedules(product, target)),
        "schedules": ranking(product, model, target, top),
    }  # fmt: skip
    return json.dumps(record, indent=2)


def ranking(
    product: CubeProduct, model: CostModel, target: Target, top: int
) -> list[dict[str, object]]:
    """The `top` cheapest schedules, and after them PyPTO's if it is not among them.

    Raises:
        OptionError: no tile of the product fits L0.
    """
    legal = schedules(product, target)
    if not len(legal):
        raise OptionError(f"no tile of {product.valid} fits L0 of {target.name}")
    vectors = prices_of(product, legal, model, target)
    totals = np.array([model.fold([CostVector(*map(float, vector))]) for vector in vectors])
    order = np.argsort(totals, kind="stable").tolist()
    theirs = pypto_choice(product, legal, target)
    shown = order[:top]
    if theirs is not None and theirs not in shown:
        shown.append(theirs)
    rows: list[dict[str, object]] = []
    for place in shown:
        schedule = legal[place]
        rows.append({
            "rank": order.index(place) + 1, "m": schedule.m, "n": schedule.n, "k": schedule.k,
            "stays": schedule.stationary, "accumulators": schedule.accumulators,
            "outer": "rows" if schedule.rows_outer else "columns",
            **{pipe: float(vectors[place, PIPES.index(pipe)]) for pipe in _SHOWN},
            "cycles": float(totals[place]), "ratio": float(totals[place] / totals.min()),
            "note": "PyPTO's chooser" if place == theirs else "",
        })  # fmt: skip
    return rows


def _shown(value: object) -> str:
    return cycles(value) if isinstance(value, float) else str(value)
