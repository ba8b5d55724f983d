"""The closed vocabularies of the IR; every member is spelled as PyPTO prints it."""

from __future__ import annotations

from enum import Enum


class Mem(Enum):
    """Memory spaces (`pl.Mem.X`)."""

    DDR = "DDR"
    Vec = "Vec"
    Mat = "Mat"
    Left = "Left"
    Right = "Right"
    Acc = "Acc"
    Bias = "Bias"
    ScalarLocal = "ScalarLocal"
    LeftScale = "LeftScale"
    RightScale = "RightScale"


class TensorLayout(Enum):
    """Byte order of a GM tensor (`pl.TensorLayout.X`)."""

    ND = "ND"
    DN = "DN"
    NZ = "NZ"
    MX_A_ZZ = "MX_A_ZZ"
    MX_B_NN = "MX_B_NN"


class TileLayout(Enum):
    """Order of blocks (blayout) or of elements in a box (slayout): `pl.TileLayout.X`."""

    none_box = "none_box"
    row_major = "row_major"
    col_major = "col_major"


class PadValue(Enum):
    """What lies outside the valid extents: `pl.PadValue.x`."""

    null = "null"
    zero = "zero"
    max = "max"
    min = "min"


class CompactMode(Enum):
    """How a partly valid tile is laid out: `pl.CompactMode.x`."""

    null = "null"
    normal = "normal"


class AtomicType(Enum):
    """How a store combines with what is there: `pl.AtomicType.X`."""

    None_ = "None_"
    Add = "Add"


class SplitMode(Enum):
    """How work is split over the vector cores of a cube core: `pl.SplitMode.X`."""

    NONE = "NONE"
    UP_DOWN = "UP_DOWN"
    LEFT_RIGHT = "LEFT_RIGHT"


class PipeType(Enum):
    """The pipes of a core that synchronise: `pl.PipeType.X`."""

    MTE1 = "MTE1"
    MTE2 = "MTE2"
    MTE3 = "MTE3"
    M = "M"
    V = "V"
    S = "S"
    FIX = "FIX"
    ALL = "ALL"


class CachePolicy(Enum):
    """GM cache policy of one load (`pl.CachePolicy.X`)."""

    DEFAULT = "DEFAULT"
    BYPASS = "BYPASS"


class ArgDirection(Enum):
    """Directions of call arguments (`pl.adir.x`)."""

    input = "input"
    output = "output"
    output_existing = "output_existing"
    inout = "inout"
    no_dep = "no_dep"
    scalar = "scalar"


class ScopeMode(Enum):
    """Kinds of the runtime's task scopes: `pl.ScopeMode.X`."""

    AUTO = "AUTO"
    MANUAL = "MANUAL"


class FunctionType(Enum):
    """Where a function runs and what it is: `pl.FunctionType.X`."""

    Opaque = "Opaque"
    Orchestration = "Orchestration"
    InCore = "InCore"
    AIC = "AIC"
    AIV = "AIV"
    Group = "Group"
    Spmd = "Spmd"
    Inline = "Inline"
    Graph = "Graph"


class Level(Enum):
    """A level of the machine's hierarchy: `pl.Level.X`."""

    AIV = "AIV"
    AIC = "AIC"
    CORE_GROUP = "CORE_GROUP"
    CHIP_DIE = "CHIP_DIE"
    CHIP = "CHIP"
    HOST = "HOST"
    CLUSTER_0 = "CLUSTER_0"
    CLUSTER_1 = "CLUSTER_1"
    CLUSTER_2 = "CLUSTER_2"
    GLOBAL = "GLOBAL"


LEVEL_ALIASES: dict[str, Level] = {
    "L2CACHE": Level.CHIP_DIE,
    "PROCESSOR": Level.CHIP,
    "UMA": Level.CHIP,
    "NODE": Level.HOST,
    "POD": Level.CLUSTER_0,
    "CLOS1": Level.CLUSTER_1,
    "CLOS2": Level.CLUSTER_2,
}


class Role(Enum):
    """A function's part in a level: `pl.Role.X`."""

    Orchestrator = "Orchestrator"
    SubWorker = "SubWorker"


class Direction(Enum):
    """Direction of a function parameter."""

    In = "In"
    Out = "Out"
    InOut = "InOut"


class LoopKind(Enum):
    """Kinds of for loops; the value is the `pl.<kind>` that prints it."""

    range = "range"
    parallel = "parallel"
    unroll = "unroll"
    pipeline = "pipeline"
    spmd = "spmd"


# The level and role that a function type implies (PyPTO language reference, functions).
IMPLIED_LEVEL_ROLE: dict[FunctionType, tuple[Level | None, Role | None]] = {
    FunctionType.Opaque: (None, None),
    FunctionType.Orchestration: (Level.CHIP, Role.Orchestrator),
    FunctionType.InCore: (Level.CHIP_DIE, Role.SubWorker),
    FunctionType.AIC: (Level.AIC, Role.SubWorker),
    FunctionType.AIV: (Level.AIV, Role.SubWorker),
    FunctionType.Group: (Level.CORE_GROUP, Role.SubWorker),
    FunctionType.Spmd: (None, None),
    FunctionType.Inline: (None, None),
    FunctionType.Graph: (Level.CHIP, Role.Orchestrator),
}
