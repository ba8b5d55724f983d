"""`Target`: every hardware fact the rules, checks and cost models read, from the TOML files."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from importlib.resources import files
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar, cast

from pypto_egg.errors import InternalError, OptionError
from pypto_egg.ir.dtype import DTYPES, INT32, DType
from pypto_egg.ir.enums import Mem, PipeType
from pypto_egg.target.facts import (
    Clock,
    Cores,
    DeviceLaw,
    FlatLaw,
    Fractal,
    GlobalMemory,
    Hop,
    L0Constants,
    Limits,
    MemorySpace,
    Path,
    Scalar,
    SpaceLayout,
    TransferLaw,
    VectorLaw,
)
from pypto_egg.target.tables import VectorTable, load_vector_table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")
Table = dict[str, object]
GIB = 2**30
_TARGETS = ("a2a3", "a5")
# Numbers that mean something when they are 0: absent, free, or not stated.
_MAY_BE_ZERO = (
    "_cycles", "head", "slope", "tail", "gib_per_s",
    "usable_bytes", "physical_bytes", "burst_overhead_bytes", "reorder_line_bytes",
    "l2_bytes",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """The facts of one Ascend target, by attribute; equal if name and overrides are equal."""

    name: str
    overrides: tuple[tuple[str, float], ...]
    chip: str = field(compare=False)
    aliases: tuple[str, ...] = field(compare=False)
    clock: Clock = field(compare=False)
    cores: Cores = field(compare=False)
    gm: GlobalMemory = field(compare=False)
    memory: Mapping[str, MemorySpace] = field(compare=False, repr=False)
    hops: Mapping[tuple[str, str], Hop] = field(compare=False, repr=False)
    fractal: Fractal = field(compare=False, repr=False)
    layouts: Mapping[str, SpaceLayout] = field(compare=False, repr=False)
    limits: Limits = field(compare=False, repr=False)
    cube_pairs: Mapping[tuple[str, str], str] = field(compare=False, repr=False)
    mx_pairs: Mapping[tuple[str, str], str] = field(compare=False, repr=False)
    drains: Mapping[str, frozenset[tuple[str, str]]] = field(compare=False, repr=False)
    quantised_drains: Mapping[str, frozenset[tuple[str, str]]] = field(compare=False, repr=False)
    conversions: frozenset[tuple[str, str]] = field(compare=False, repr=False)
    bias_pairs: frozenset[tuple[str, str]] = field(compare=False, repr=False)
    bias_bytes_multiple: int = field(compare=False, repr=False)
    scaling_bytes_multiple: int = field(compare=False, repr=False)
    l0: L0Constants = field(compare=False, repr=False)
    vector_laws: Mapping[str, VectorLaw] = field(compare=False, repr=False)
    vector_table: VectorTable = field(compare=False, repr=False)
    copy_burst_cycles: float = field(compare=False, repr=False)
    copy_block_cycles: float = field(compare=False, repr=False)
    transpose_repeat_cycles: float = field(compare=False, repr=False)
    scalar: Scalar = field(compare=False, repr=False)
    flat_laws: Mapping[str, FlatLaw] = field(compare=False, repr=False)
    device_law: DeviceLaw = field(compare=False, repr=False)

    def with_(self, **overrides: float) -> Target:
        """A what-if copy: `target.with_(**{"memory.Acc.usable_bytes": 65536})`.

        Keys are the dotted keys of the target files. Equal overrides give the same object.

        Raises:
            OptionError: no number has that key, or the value is not a number of its kind.
        """
        merged = {**dict(self.overrides), **overrides}
        return _build(self.name, tuple(sorted(merged.items())))

    def numbers(self) -> dict[str, float]:
        """Every number that `with_` can replace, by dotted key, in the order of the files."""
        table = _read(self.name)
        for key, value in self.overrides:
            _replace(table, key, value, self.name)
        return dict(_leaves(table, ""))

    def fingerprint(self) -> str:
        """Twelve hex digits that stand for all facts of the target, the overridden ones too."""
        table = _read(self.name)
        for key, value in self.overrides:
            _replace(table, key, value, self.name)
        cycles = files("pypto_egg.target").joinpath(f"data/{_section(table, 'vector')['table']}")
        facts = json.dumps(table, sort_keys=True).encode() + cycles.read_bytes()
        return hashlib.sha256(facts).hexdigest()[:12]

    def capacity_bytes(self, space: Mem) -> int:
        """Bytes that tiles may occupy in an on-chip space of one core (0 if it is absent)."""
        if space.value not in self.memory:
            raise InternalError(f"memory space {space.value} has no capacity on {self.name}")
        return self.memory[space.value].usable_bytes

    def path(self, source: Mem, target: Mem) -> Path | None:
        """The pipes that carry a tile from `source` to `target`, through GM if there is no
        direct path; None if there is no way at all."""
        direct = self.hops.get((source.value, target.value))
        if direct is not None:
            return Path((PipeType(direct.pipe),), via_gm=False)
        out = self.hops.get((source.value, Mem.DDR.value))
        back = self.hops.get((Mem.DDR.value, target.value))
        if out is None or back is None:
            return None
        return Path((PipeType(out.pipe), PipeType(back.pipe)), via_gm=True)

    def bytes_per_cycle(self, source: Mem, target: Mem) -> float:
        """Flat rate of a direct path for one core, from its GiB/s and the clock."""
        hop = self.hops.get((source.value, target.value))
        if hop is None or hop.gib_per_s <= 0:
            raise InternalError(
                f"no flat rate from {source.value} to {target.value} on {self.name}"
            )
        return hop.gib_per_s * GIB / self.clock.hz

    def cube_accumulator(self, lhs: DType, rhs: DType, *, mx: bool = False) -> DType | None:
        """The accumulator of the product lhs x rhs, or None if the cube has no such product.

        Args:
            mx: for the product with block scales (TMATMUL_MX).
        """
        name = (self.mx_pairs if mx else self.cube_pairs).get((lhs.name, rhs.name))
        return None if name is None else DTYPES[name]

    def drain_supported(
        self, acc: DType, dst: DType, space: Mem = Mem.DDR, *, quantised: bool = False
    ) -> bool:
        """True if FIXPIPE can write accumulator dtype `acc` as `dst` into `space`."""
        pairs = (self.quantised_drains if quantised else self.drains).get(space.value)
        return pairs is not None and (acc.name, dst.name) in pairs

    def converts(self, source: DType, target: DType) -> bool:
        """True if one TCVT converts `source` to `target`."""
        return (source.name, target.name) in self.conversions

    def bias_supported(self, source: DType, target: DType) -> bool:
        """True if Mat -> Bias can turn `source` into `target`."""
        return (source.name, target.name) in self.bias_pairs

    def alignment_rows_acc(self, dtype: DType) -> int:
        """Rows of which an accumulator's physical row count is a multiple (PyPTO, L0C)."""
        return self.l0.acc_row_align_int32 if dtype == INT32 else self.l0.acc_row_align

    def c0_elems(self, dtype: DType) -> int:
        """Elements in one 32-byte line of a box."""
        return self.fractal.c0_bytes * 8 // dtype.bits


def load_overrides(path: str | FilePath) -> dict[str, float]:
    """Numbers to give to `Target.with_`, from a TOML file of the same form as the target files.

    `load_target("a2a3").with_(**load_overrides("fitted.toml"))` is the target with these numbers.

    Raises:
        OptionError: the file cannot be read, is no TOML, or holds something other than numbers.
    """
    try:
        table = tomllib.loads(FilePath(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"cannot read overrides from {path}: {error}") from error
    strange = sorted(set(_dotted(table, "")) - {key for key, _ in _leaves(table, "")})
    if strange:
        raise OptionError(
            f"{path}: '{strange[0]}' is not a number", hint="overrides are numbers in sections"
        )
    return dict(_leaves(table, ""))


def target_names() -> tuple[str, ...]:
    """The names `load_target` knows, without aliases."""
    return _TARGETS


def load_target(name: str) -> Target:
    """The target called `name` ("a2a3", "a5", or an alias such as "910B" or "950").

    Raises:
        OptionError: no such target; the message lists the names.
    """
    wanted = name.lower()
    for known in _TARGETS:
        target = _build(known, ())
        if wanted == known or wanted in (alias.lower() for alias in target.aliases):
            return target
    listed = ", ".join(f"{n} ({', '.join(_build(n, ()).aliases)})" for n in _TARGETS)
    raise OptionError(f"no target '{name}'", hint=f"known targets and their aliases: {listed}")


@lru_cache(maxsize=128)
def _build(name: str, overrides: tuple[tuple[str, float], ...]) -> Target:
    table = _read(name)
    for key, value in overrides:
        _replace(table, key, value, name)
    cube, convert, vector = (_section(table, key) for key in ("cube", "convert", "vector"))
    bias, drain = _section(table, "bias"), _section(table, "drain")
    return Target(
        name=name,
        overrides=overrides,
        chip=str(table["chip"]),
        aliases=tuple(cast("list[str]", table["aliases"])),
        clock=_record(Clock, _section(table, "clock")),
        cores=_record(Cores, _section(table, "cores")),
        gm=_record(GlobalMemory, _section(table, "gm")),
        memory=_records(MemorySpace, _section(table, "memory")),
        hops=MappingProxyType(dict(_hops(_section(table, "path")))),
        fractal=_record(Fractal, _section(table, "fractal")),
        layouts=_records(SpaceLayout, _section(table, "layout")),
        limits=_record(Limits, _section(table, "limits")),
        cube_pairs=_products(cube, "pairs", "own_pairs"),
        mx_pairs=_products(cube, "mx_pairs"),
        drains=_drains(drain, "plain"),
        quantised_drains=_drains(drain, "quantised"),
        conversions=_arrows(convert, "pairs") | _arrows(convert, "own_pairs"),
        bias_pairs=_arrows(bias, "pairs"),
        bias_bytes_multiple=cast("int", bias["bytes_multiple"]),
        scaling_bytes_multiple=cast("int", _section(table, "scaling")["bytes_multiple"]),
        l0=_record(L0Constants, _section(table, "l0")),
        vector_laws=_records(VectorLaw, _section(vector, "law")),
        vector_table=load_vector_table(str(vector["table"])),
        copy_burst_cycles=cast("float", vector["copy_burst_cycles"]),
        copy_block_cycles=cast("float", vector["copy_block_cycles"]),
        transpose_repeat_cycles=cast("float", vector["transpose_repeat_cycles"]),
        scalar=_record(Scalar, _section(table, "scalar")),
        flat_laws=_flat_laws(_section(table, "schedule")),
        device_law=_record(DeviceLaw, _section(_section(table, "schedule"), "device")),
    )


def _read(name: str) -> Table:
    """The shared facts with the target's own laid over them, as one nested table."""
    folder = files("pypto_egg.target")
    shared = tomllib.loads(folder.joinpath("ascend.toml").read_text(encoding="utf-8"))
    own = tomllib.loads(folder.joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    _lay_over(shared, own)
    return shared


def _lay_over(below: Table, above: Table) -> None:
    for key, value in above.items():
        under = below.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            _lay_over(under, value)
        else:
            below[key] = value


def _replace(table: Table, key: str, value: float, name: str) -> None:
    """Put `value` at the dotted `key`, which must hold a number of the same kind."""
    *outer, last = key.split(".")
    inner: object = table
    for part in outer:
        inner = inner.get(part) if isinstance(inner, dict) else None
    old = inner.get(last) if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or not isinstance(old, int | float):
        known = [k for k, _ in _leaves(table, "")]
        near = [k for k in known if k.startswith(key.split(".")[0] + ".")]
        listed = near or list(dict.fromkeys(k.split(".")[0] + ".*" for k in known))
        raise OptionError(
            f"target {name} has no number '{key}'", hint=f"it has: {', '.join(listed)}"
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OptionError(f"target {name}: '{key}' is a number, got {value!r}")
    if isinstance(old, int) and not float(value).is_integer():
        raise OptionError(f"target {name}: '{key}' is a whole number, got {value!r}")
    least = "not negative" if key.endswith(_MAY_BE_ZERO) or old == 0 else "positive"
    if not 0 <= value < float("inf") or (value == 0 and least == "positive"):
        raise OptionError(f"target {name}: '{key}' must be finite and {least}, got {value!r}")
    inner[last] = int(value) if isinstance(old, int) else float(value)


def _leaves(table: Table, prefix: str) -> Iterator[tuple[str, float]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield prefix + key, value


def _dotted(table: Table, prefix: str) -> Iterator[str]:
    """The dotted keys of everything that is not a section."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield prefix + key


def _section(table: Table, key: str) -> Table:
    return cast("Table", table[key])


def _record(cls: type[Record], table: Table) -> Record:
    known = {f.name: f.default is MISSING for f in fields(cls)}
    wrong = [f"unknown key '{key}'" for key in table if key not in known]
    wrong += [f"no '{name}'" for name, needed in known.items() if needed and name not in table]
    if wrong:
        raise InternalError(f"target files, {cls.__name__}: {', '.join(wrong)}")
    return cls(**table)


def _records(cls: type[Record], table: Table) -> Mapping[str, Record]:
    return MappingProxyType({key: _record(cls, _section(table, key)) for key in table})


def _flat_laws(schedule: Table) -> Mapping[str, FlatLaw]:
    """The sets of constants that have pto-isa's form, by name."""
    laws: dict[str, FlatLaw] = {}
    for name in schedule:
        if name == "device":
            continue
        section = dict(_section(schedule, name))
        paths = {
            (source, goal): _record(TransferLaw, cast("Table", law))
            for source, goals in cast("Table", section.pop("path", {})).items()
            for goal, law in cast("Table", goals).items()
        }
        section["paths"] = MappingProxyType(paths)
        laws[name] = _record(FlatLaw, section)
    return MappingProxyType(laws)


def _hops(table: Table) -> Iterator[tuple[tuple[str, str], Hop]]:
    for source in table:
        for target, hop in _section(table, source).items():
            yield (source, target), _record(Hop, cast("Table", hop))


def _products(table: Table, *keys: str) -> Mapping[tuple[str, str], str]:
    rows = [row for key in keys for row in cast("list[list[str]]", table[key])]
    return MappingProxyType({(lhs, rhs): acc for lhs, rhs, acc in rows})


def _drains(table: Table, kind: str) -> Mapping[str, frozenset[tuple[str, str]]]:
    return MappingProxyType({space: _arrows(_section(table, space), kind) for space in table})


def _arrows(table: Table, key: str) -> frozenset[tuple[str, str]]:
    pairs = []
    for arrow in cast("list[str]", table[key]):
        source, target = arrow.split("->")
        pairs.append((DTYPES[source].name, DTYPES[target].name))
    return frozenset(pairs)
