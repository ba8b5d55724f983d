"""Programs that the commands run: kernels of real models, products of workloads, users' files."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path

from pypto_egg.bench.programs import product
from pypto_egg.bench.workloads import shapes, workloads
from pypto_egg.errors import OptionError

PUBLISHED = "published"
"""The name that stands for the measurements that ship with pypto-egg."""


@dataclass(frozen=True)
class Source:
    """A program to lower, by name."""

    name: str
    text: str

    def to_json(self) -> dict[str, str]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class Measured:
    """A tile program that was run on a device.

    Args:
        function: which of its kernels; empty where there is one.
        cores: how many run it.
        cycles: of the AI-core clock, of the whole kernel.
    """

    name: str
    text: str
    cycles: float
    function: str = ""
    cores: int = 1


def kernels() -> Iterator[Source]:
    """The kernels of real models that ship with pypto-egg, by name."""
    folder = files("pypto_egg.bench").joinpath("kernels")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".py"):
            yield Source(entry.name.removesuffix(".py"), entry.read_text(encoding="utf-8"))


def sources(text: str | None) -> list[Source]:
    """What `--programs` names: kernels, workloads, sizes, files; None is all kernels and products.

    Raises:
        OptionError: a part is none of these.
    """
    if text is None:
        every = [one for one in workloads() if one.is_product]
        return [*kernels(), *(_of(one.name) for one in every)]
    found: list[Source] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        found += _named(part)
    if not found:
        raise OptionError(f"no programs in '{text}'", hint="a kernel, a workload, MxNxK or a file")
    return list({one.name: one for one in found}.values())


def _named(part: str) -> list[Source]:
    """The programs that one part of `--programs` names."""
    if Path(part).suffix == ".py":
        return [Source(Path(part).stem, _text_of(Path(part)))]
    named = [one for one in kernels() if fnmatchcase(one.name, part)]
    try:
        return named or [_of(one.name) for one in shapes(part) if one.is_product]
    except OptionError as error:
        names = ", ".join(one.name for one in kernels())
        raise OptionError(
            f"no program '{part}': {error.message}",
            hint=f"a file *.py, MxNxK, a name in the workloads table, or a kernel: {names}",
        ) from None


def _of(name: str) -> Source:
    (one,) = shapes(name)
    return Source(name, product(one, nz=one.layout_b == "NZ"))


def measurements(path: str | None) -> list[Measured]:
    """The measured kernels of a CSV file, in the form that `calibrate` reads; none for None.

    Raises:
        OptionError: the file, a column or a program cannot be used.
    """
    if path is None:
        return []
    if path == PUBLISHED:
        path = str(files("pypto_egg.target").joinpath("data/gemm_a2a3.csv"))
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read measurements from {path}: {error}") from None
    reader = csv.DictReader(lines)
    for column in ("program", "cycles"):
        if column not in (reader.fieldnames or ()):
            raise OptionError(f"{path}: no column '{column}'")
    return [_measured(row, Path(path), reader.line_num) for row in reader]


def _measured(row: dict[str, str], path: Path, line: int) -> Measured:
    try:
        cycles, cores = float(row["cycles"]), int(row.get("cores") or 1)
    except ValueError as error:
        raise OptionError(f"{path}, line {line}: {error}") from None
    if not 0 < cycles < float("inf") or cores < 1:
        raise OptionError(f"{path}, line {line}: cycles and cores are positive numbers")
    program = path.parent / row["program"]
    name = program.name.removesuffix(".txt").removesuffix(".py")
    return Measured(name, _text_of(program), cycles, row.get("function") or "", cores)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read {path}: {error}") from None


def digest(text: str | bytes) -> str:
    """Twelve hex digits that stand for a text."""
    data = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()[:12]
