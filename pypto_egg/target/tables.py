"""Fitted cycles of vector operations, read from pto-isa's tables (see data/README.md)."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from pypto_egg.ir.dtype import DType

# The name a dtype has in the tables. The vector unit's time depends on the element width, so a
# dtype without rows of its own is looked up under the float of its width.
_TABLE_NAMES = {
    "FP8E4M3FN": "fp8_e4m3", "FP8E5M2": "fp8_e5m2", "HF8": "hif8", "FP4": "fp4_e2m1",
    "FP32": "fp32", "INT32": "fp32", "UINT32": "fp32",
    "FP16": "fp16", "BF16": "fp16", "INT16": "fp16", "UINT16": "fp16",
    "INT8": "int8", "UINT8": "int8",
}  # fmt: skip

Line = tuple[int, float, float]  # columns, cycles for an element, constant cycles


@dataclass(frozen=True, slots=True)
class VectorShape:
    """The work of one vector op: valid rows and columns, and whether they are contiguous.

    `column` marks a tile that is stored column by column; its columns are the rows here.
    """

    rows: int
    cols: int
    contiguous: bool
    column: bool = False


class VectorTable(ABC):
    """Cycles of the ops that were profiled; None for the others."""

    @abstractmethod
    def cycles(self, op: str, dtype: DType, shape: VectorShape, target: DType) -> float | None:
        """Cycles of PTO instruction `op` on `dtype`; `target` is the result's dtype (for TCVT)."""


@dataclass(frozen=True)
class WidthTable(VectorTable):
    """a2a3: one line `slope * rows * cols + bias` for each width that was profiled.

    Between two profiled widths the cycles are interpolated. A tile narrower than all of them
    costs what the narrowest costs with as many rows (a row is at least one vector repeat); a
    wider one follows the line of the widest. Column-major tiles were not profiled.
    """

    lines: Mapping[tuple[str, str], tuple[Line, ...]]

    def cycles(self, op: str, dtype: DType, shape: VectorShape, target: DType) -> float | None:
        free = self.lines.get((op, "any"))
        if free is not None:
            _, slope, bias = free[0]
            return slope * shape.rows * shape.cols + bias
        lines = self.lines.get((op, _TABLE_NAMES.get(dtype.name, "")))
        if lines is None or shape.column:
            return None
        at = bisect_left(lines, (shape.cols,))
        if at == len(lines):
            _, slope, bias = lines[-1]
            return slope * shape.rows * shape.cols + bias
        upper, above = lines[at][0], _line(lines[at], shape.rows)
        if at == 0 or upper == shape.cols:
            return above
        lower, below = lines[at - 1][0], _line(lines[at - 1], shape.rows)
        return below + (above - below) * (shape.cols - lower) / (upper - lower)


def _line(line: Line, rows: int) -> float:
    cols, slope, bias = line
    return slope * rows * cols + bias


@dataclass(frozen=True)
class LoopTable(VectorTable):
    """a5: lines over the number of vector repeats, for contiguous (1D) and row-wise (2D) tiles.

    A contiguous tile without a 1D line is one row of the 2D line.
    """

    fits: Mapping[tuple[str, ...], tuple[str, float, float, float]]

    def cycles(self, op: str, dtype: DType, shape: VectorShape, target: DType) -> float | None:
        name, to = _TABLE_NAMES.get(dtype.name, ""), "none"
        if op == "TCVT":
            name, to = _cast_name(dtype), _cast_name(target)
        path = "1D" if shape.contiguous else "2D"
        per = _elems_per_repeat(op, dtype, target, path)
        rows, cols = (1, shape.rows * shape.cols) if shape.contiguous else (shape.rows, shape.cols)
        inner = -(-cols // per)
        tail = "tail" if cols % per else "full"
        fit = self.fits.get((op, name, to, path, tail, _params(op, dtype, path, inner)))
        if fit is None and path == "1D":
            fit = self.fits.get((op, name, to, "2D", tail, _params(op, dtype, "2D", inner)))
        if fit is None:
            return None
        kind, p0, p1, p2 = fit
        return p0 * inner * rows + p1 if kind == "linear" else (p0 * inner + p1) * rows + p2


def _cast_name(dtype: DType) -> str:
    return "bf16" if dtype.name == "BF16" else _TABLE_NAMES.get(dtype.name, "")


def _elems_per_repeat(op: str, dtype: DType, target: DType, path: str) -> int:
    """Elements in one vector repeat (pto-isa's a5 vector model)."""
    if op == "TCVT" and path == "2D" and dtype.bits == 32 and target.bits <= 16:
        return 128
    if op == "TCVT" and target.bits == 32:
        return 64
    if dtype.bits == 32 or (op == "TCVT" and dtype.bits == 8 and dtype.is_float):
        return 64
    return 128 if dtype.bits == 16 else 256


def _params(op: str, dtype: DType, path: str, inner: int) -> str:
    if op == "TRECIP":
        return "default"
    if op == "TCVT":
        return "CAST_RINT_SAT_ON_normal"
    if op != "TSEL":
        return ""
    if dtype.bits != 32:
        return "TSel_b16_8"
    if path == "2D":
        return "TSel_b32"
    return "TSel_b32_odd" if inner % 2 else "TSel_b32_even"


@lru_cache(maxsize=8)
def load_vector_table(name: str) -> VectorTable:
    """The table in data/`name`."""
    text = files("pypto_egg.target").joinpath("data", name).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    if "cols" in rows[0]:
        return WidthTable(_widths(rows))
    return LoopTable(_loops(rows))


def _widths(
    rows: list[dict[str, str]],
) -> dict[tuple[str, str], tuple[tuple[int, float, float], ...]]:
    lines: dict[tuple[str, str], list[Line]] = {}
    for row in rows:
        cols = 0 if row["cols"] == "*" else int(row["cols"])
        line = (cols, float(row["slope"]), float(row["bias"]))
        lines.setdefault((row["op"], row["dtype"]), []).append(line)
    return {key: tuple(sorted(found)) for key, found in lines.items()}


def _loops(rows: list[dict[str, str]]) -> dict[tuple[str, ...], tuple[str, float, float, float]]:
    """The fits of the default implementation: post-update in 1D and not in 2D, TCVT the other
    way round, TSEL its own. A line that falls with the number of repeats is no law and is left
    out (fp16 and bf16 to fp32 in 1D)."""
    fits = {}
    for row in rows:
        one = row["shape_path"] == "1D"
        default = "POST_UPDATE" if one != (row["op"] == "TCVT") else "NO_POST_UPDATE"
        if row["op"] == "TSEL":
            default = "NO_POST_UPDATE" if one else "DEFAULT"
        if row["vf_impl_kind"] != default or float(row["param0"]) < 0:
            continue
        key = tuple(
            row[c] for c in ("op", "src_dtype", "dst_dtype", "shape_path", "tail_kind", "op_params")
        )
        p0, p1, p2 = (float(row[f"param{i}"]) for i in range(3))
        fits[key] = (row["formula_kind"], p0, p1, p2)
    return fits
