"""Sizes to try: the table of what people run, and what a user writes instead of it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pypto_egg.errors import OptionError
from pypto_egg.ir.dtype import DTYPES

PRODUCTS = (
    "matmul", "matmul_bias", "matmul_mx", "gemv", "batch_matmul", "grouped_matmul",
    "attention_qk", "attention_pv", "conv2d",
)  # fmt: skip
"""What is one product of the cube, or many of one size."""

_DTYPES = {
    **{name.lower(): name for name in DTYPES},
    "fp8e4m3": "FP8E4M3FN",
}
_ACCUMULATOR = {"INT8": "INT32"}
_SHAPE = re.compile(r"(\d+)\s*[xX]\s*(\d+)\s*[xX]\s*(\d+)")
_FORM = (
    "MxNxK such as 100x256x512, a name in the workloads table (* stands for any letters), "
    "or a CSV file with the columns m, n and k"
)


@dataclass(frozen=True)
class Workload:
    """One size: out[m, n] = a[m, k] @ b[k, n] for products; see bench/data/README.md.

    Args:
        dtype_a, dtype_b, dtype_out: names of element types as PyPTO writes them ("BF16").
        layout_b: "ND", "NZ", ... as in the table.
    """

    name: str
    m: int
    n: int
    k: int
    op: str = "matmul"
    batch: int = 1
    dtype_a: str = "BF16"
    dtype_b: str = "BF16"
    dtype_out: str = "FP32"
    a_trans: bool = False
    b_trans: bool = False
    layout_b: str = "ND"

    @property
    def is_product(self) -> bool:
        """Whether the cube computes it as one product, or as many of one size."""
        return self.op in PRODUCTS

    def with_dtype(self, dtype: str) -> Workload:
        """The same size with operands of another type, written as the cube accumulates them."""
        name = dtype_name(dtype)
        out = _ACCUMULATOR.get(name, "FP32")
        return replace(self, dtype_a=name, dtype_b=name, dtype_out=out)

    def to_json(self) -> dict[str, Any]:
        """The fields by name; `Workload(**fields)` gives it back."""
        return asdict(self)


def dtype_name(text: str) -> str:
    """The name of an element type as PyPTO writes it.

    Raises:
        OptionError: there is no such type.
    """
    found = _DTYPES.get(text.strip().lower())
    if found is None:
        raise OptionError(f"no element type '{text}'", hint=f"they are: {', '.join(_DTYPES)}")
    return found


@lru_cache(maxsize=1)
def workloads() -> tuple[Workload, ...]:
    """The table of sizes that people run, in its order."""
    text = files("pypto_egg.bench").joinpath("data/workloads.csv").read_text(encoding="utf-8")
    return tuple(_read(text.splitlines(), "workloads.csv"))


def shapes(text: str | None) -> tuple[Workload, ...]:
    """What `--shapes` names: sizes, names in the table, or a CSV file; None is the whole table.

    Raises:
        OptionError: a part is none of these, or the file cannot be used.
    """
    if text is None:
        return workloads()
    if Path(text).is_file():
        return _from_file(Path(text))
    found: list[Workload] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        found += _named(part)
    if not found:
        raise OptionError(f"no shapes in '{text}'", hint=f"write {_FORM}")
    return tuple(dict.fromkeys(found))


def _named(part: str) -> list[Workload]:
    size = _SHAPE.fullmatch(part)
    if size is not None:
        m, n, k = (_extent(number, part) for number in size.groups())
        return [Workload(f"{m}x{n}x{k}", m, n, k)]
    found = [one for one in workloads() if fnmatchcase(one.name, part)]
    if not found:
        raise OptionError(f"no shape '{part}'", hint=f"write {_FORM}")
    return found


def _from_file(path: Path) -> tuple[Workload, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read shapes from {path}: {error}") from None
    found = tuple(_read(lines, str(path)))
    if not found:
        raise OptionError(f"{path}: no shapes", hint="a header line, then one line for each size")
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise OptionError(f"{path}: '{twice[0]}' is there twice", hint="give each size a `name`")
    return found


def _read(lines: Iterable[str], where: str) -> Iterable[Workload]:
    reader = csv.DictReader(lines)
    columns = {(name or "").strip().lower(): name for name in reader.fieldnames or ()}
    missing = [name for name in "mnk" if name not in columns]
    if missing:
        raise OptionError(f"{where}: no column '{missing[0]}'", hint="it needs m, n and k")
    for row in reader:
        fields = {key: (row[name] or "").strip() for key, name in columns.items() if name}
        yield _workload(fields, f"{where}, line {reader.line_num}")


def _workload(fields: Mapping[str, str], where: str) -> Workload:
    def text(name: str, usual: str) -> str:
        return fields.get(name) or usual

    op = text("op", "matmul")
    needs_k = op in PRODUCTS
    m, n = (_extent(fields.get(axis, ""), f"{where}, {axis}") for axis in "mn")
    k = _extent(fields["k"], f"{where}, k") if fields.get("k") or needs_k else 0
    dtype_a = dtype_name(text("dtype_a", "bf16"))
    return Workload(
        name=text("name", f"{m}x{n}x{k}"),
        m=m,
        n=n,
        k=k,
        op=op,
        batch=_extent(text("batch", "1"), f"{where}, batch"),
        dtype_a=dtype_a,
        dtype_b=dtype_name(text("dtype_b", dtype_a)),
        dtype_out=dtype_name(text("dtype_out", _ACCUMULATOR.get(dtype_a, "FP32"))),
        a_trans=_flag(text("a_trans", "0"), f"{where}, a_trans"),
        b_trans=_flag(text("b_trans", "0"), f"{where}, b_trans"),
        layout_b=text("layout_b", "ND"),
    )


def _extent(text: str, where: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise OptionError(f"{where}: '{text}' is no extent", hint="a whole number from 1 to 2^31-1")
    return int(text)


def _flag(text: str, where: str) -> bool:
    if text.lower() not in ("0", "1", "false", "true"):
        raise OptionError(f"{where}: '{text}' is neither 0 nor 1")
    return text.lower() in ("1", "true")
