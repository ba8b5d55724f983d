"""Records of the facts in the target files; field names are the keys, units are in the names.

Where a number comes from is said beside it in ascend.toml, a2a3.toml and a5.toml.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pypto_egg.ir.enums import PipeType, TileLayout


@dataclass(frozen=True, slots=True)
class Clock:
    hz: float


@dataclass(frozen=True, slots=True)
class Cores:
    aic: int
    aiv_per_aic: int


@dataclass(frozen=True, slots=True)
class GlobalMemory:
    """Shape of the traffic with GM: granularities, and the price of one more contiguous run."""

    access_granularity_bytes: int
    l2_line_bytes: int
    burst_overhead_bytes: float
    reorder_line_bytes: float


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """Capacity of an on-chip space; `usable_bytes` is what tiles may occupy."""

    physical_bytes: int
    usable_bytes: int
    align_bytes: int
    alloc_align_bytes: int


@dataclass(frozen=True, slots=True)
class Hop:
    """One legal transfer between two spaces; 0 GiB/s where no flat rate is published."""

    pipe: str
    gib_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Path:
    """The way from one space to another: its pipes in order, two if it leads through GM."""

    pipes: tuple[PipeType, ...]
    via_gm: bool


@dataclass(frozen=True, slots=True)
class Fractal:
    c0_bytes: int
    rows: int
    k_step: int


@dataclass(frozen=True, slots=True)
class SpaceLayout:
    """Order of boxes and of elements in a box: "NZ" is columns of boxes, rows inside."""

    order: str
    box_bytes: int

    @property
    def blayout(self) -> TileLayout:
        return _ORDER[self.order[0]]

    @property
    def slayout(self) -> TileLayout:
        return _ORDER[self.order[1]]


_ORDER = {"Z": TileLayout.row_major, "N": TileLayout.col_major}


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest legal values of instruction fields; 0 where no limit is stated."""

    matmul_extent: int
    acc_store_cols: int
    acc_store_rows_nd: int
    acc_store_rows_nz: int
    load_nz_rows: int
    load_nz_cols: int
    load_nz_row_stride_elems: int
    load_bursts: int
    load_gap_blocks: int
    store_bursts: int
    vec_load_rows: int
    mat_load_elems: int
    vector_repeat_bytes: int
    vector_repeats: int
    vector_repeat_stride_blocks: int
    event_ids: int
    cross_core_flag_ids: int
    gemv_k_step_bytes: int


@dataclass(frozen=True, slots=True)
class L0Constants:
    """Constants of PyPTO's L0 tile chooser; its symbols stand beside the numbers in the files."""

    left_bytes_per_cycle: float
    right_bytes_per_cycle: float
    drain_bytes_per_cycle: float
    drain_fixed_cycles: float
    drain_row_cycles: float
    drain_odd_cycles: float
    drain_fractal_bytes: int
    issue_cycles: float
    k_fractal_bytes: int
    fp32_passes: int
    step: int
    acc_row_align: int
    acc_row_align_int32: int


@dataclass(frozen=True, slots=True)
class VectorLaw:
    """Cycles of a vector intrinsic over r repeats: head + slope * r + tail."""

    head: float
    slope: float
    tail: float

    def cycles(self, repeats: float) -> float:
        return self.head + self.slope * repeats + self.tail


@dataclass(frozen=True, slots=True)
class Scalar:
    instruction_cycles: float
    gm_access_cycles: float


@dataclass(frozen=True, slots=True)
class TransferLaw:
    """(latency) + bytes / rate: what replaces a flat rate of [path] in one set of constants."""

    bytes_per_cycle: float
    latency_cycles: float = 0.0


@dataclass(frozen=True, slots=True)
class FlatLaw:
    """pto-isa's durations of instructions, each intrinsic cut to whole cycles.

    Args:
        issue_cycles: added to each TMATMUL.
        setup_cycles: an intrinsic that only configures.
        binding_cycles: before the first instruction, for each buffer that is bound.
        elem_bytes: what an element counts in moves to L0A, transposing moves and drains.
        paths: (source, goal) -> law, where it is not the flat rate.
    """

    issue_cycles: float
    setup_cycles: float
    binding_cycles: float
    elem_bytes: int
    paths: Mapping[tuple[str, str], TransferLaw] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceLaw:
    """Constants fitted to whole kernels on a device, beside those of [l0], [gm] and [path].

    Args:
        launch_cycles: before the first instruction of a kernel.
        issue_cycles: added to each TMATMUL.
        l0_rate_scale: the rates L1 -> L0A and L1 -> L0B, as a share of their flat rates.
        drain_bytes_per_cycle: in PyPTO's law of a drain.
        load_bytes_per_cycle: GM -> L1, what L2 holds.
        miss_bytes_per_cycle: GM -> L1, what L2 does not hold.
        l2_bytes: what L2 holds; 0: everything.
    """

    launch_cycles: float
    issue_cycles: float
    l0_rate_scale: float
    drain_bytes_per_cycle: float
    load_bytes_per_cycle: float
    miss_bytes_per_cycle: float
    l2_bytes: float
