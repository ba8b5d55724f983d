"""The tables of the harness: what every column of a result row means, and in which unit.

A row is a mapping from column name to value, `None` where there is none. The columns are those of
the table of its command, in the order given here; `bench/store.py` adds which run a row is of.
Cycles are those of a cost model on one core, never measurements, unless a column says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_egg.extract.cost.model import PIPES

VERSION = 1
"""Of the tables' form; a file with another one is refused."""

Value = str | int | float | bool | None
Row = dict[str, Value]
"""Column name -> value."""

TEXT, INT, FLOAT, BOOL = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"
SPACES = ("mat", "left", "right", "acc", "bias", "vec")
"""On-chip memory spaces with a column of bytes each, `mat_bytes` and so on."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        type: as in SQL.
        what: what it means, with its unit.
        measured: a time or a size of this very process, which differs from run to run.
    """

    name: str
    type: str
    what: str
    measured: bool = False


@dataclass(frozen=True)
class Table:
    """The rows of one command.

    Args:
        key: the columns that tell two rows of a run apart; rows of two runs are compared by them.
    """

    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def _pipes(what: str) -> tuple[Column, ...]:
    return tuple(Column(f"{pipe}_cycles", FLOAT, f"busy cycles of {pipe}{what}") for pipe in PIPES)


_TARGET = (
    Column("target", TEXT, "the NPU"),
    Column("constants", TEXT, "hash of all of the target's constants"),
)

ALIGNMENT = Table(
    "alignment",
    ("workload", "dtype_a", "layout", "target", "m_align", "n_align", "model"),
    (
        Column("workload", TEXT, "name in the workloads table, or MxNxK"),
        Column("op", TEXT, "what it is: matmul, attention_qk, ..."),
        Column("m", INT, "logical rows of the result"),
        Column("n", INT, "logical columns of the result"),
        Column("k", INT, "logical extent that is summed over"),
        Column("batch", INT, "such products in one step of the model; all figures are of one"),
        Column("dtype_a", TEXT, "element type of the left operand"),
        Column("dtype_b", TEXT, "element type of the right operand"),
        Column("dtype_out", TEXT, "element type that is written to GM"),
        Column("a_trans", BOOL, "the left operand is stored [K, M]"),
        Column("b_trans", BOOL, "the right operand is stored [N, K]"),
        Column("layout", TEXT, "order of the right operand in GM: nd or nz"),
        *_TARGET,
        Column("m_align", TEXT, "choice for M: pypto, a number of rows, pow2 or full"),
        Column("n_align", TEXT, "choice for N: pypto, a number of columns, pow2 or full"),
        Column("model", TEXT, "cost model"),
        Column("legal", BOOL, "a kernel exists with these extents"),
        Column("reason", TEXT, "why not; empty where it is legal"),
        Column("block_m", INT, "logical rows of one cube product of the kernel"),
        Column("block_n", INT, "logical columns of one cube product"),
        Column("block_k", INT, "extent summed over by one cube product"),
        Column("products", INT, "cube products that the kernel runs"),
        Column("physical_m", INT, "rows of one product's accumulator, padding included"),
        Column("physical_n", INT, "columns of one product's accumulator, padding included"),
        Column("physical_k", INT, "columns of the left operand's tile, padding included"),
        *(Column(f"{s}_bytes", INT, f"bytes in use in {s} at the worst place") for s in SPACES),
        Column("load_bytes", INT, "bytes that DMA brings from GM, each load as often as it runs"),
        Column("store_bytes", INT, "bytes that are written to GM"),
        Column("cube_passes", INT, "fractal products of the cube, by valid extents"),
        *_pipes("; fixpipe is what draining the accumulator takes"),
        Column("cycles", FLOAT, "what the model says of the kernel, by its own fold"),
        Column("ratio_best", FLOAT, "cycles over the least of all legal choices of the product"),
        Column("ratio_pypto", FLOAT, "cycles over those of PyPTO's rule, the least legal extents"),
        Column("pypto", BOOL, "these are the extents of PyPTO's rule"),
        Column("chosen", BOOL, "these are the extents that extraction took"),
    ),
)

MODELS = Table(
    "models",
    ("program", "target", "chosen_by", "priced_by"),
    (
        Column("program", TEXT, "kernel, workload or measured program"),
        *_TARGET,
        Column("chosen_by", TEXT, "cost model whose choice is priced; 'given' for measured ones"),
        Column("priced_by", TEXT, "cost model that prices it"),
        Column("legal", BOOL, "there is such a kernel"),
        Column("reason", TEXT, "why not; empty where there is one"),
        Column("text_hash", TEXT, "hash of the chosen program's text: equal choices, equal hash"),
        *_pipes(", by the pricing model"),
        Column("cycles", FLOAT, "what the pricing model says of the kernel"),
        Column("own_cycles", FLOAT, "what it says of its own choice"),
        Column("regret", FLOAT, "cycles / own_cycles - 1"),
        Column("measured_cycles", FLOAT, "what was measured on a device"),
        Column("error", FLOAT, "cycles / measured_cycles - 1"),
    ),
)

BASELINE = Table(
    "baseline",
    ("program", "target", "model", "against"),
    (
        Column("program", TEXT, "kernel or workload"),
        *_TARGET,
        Column("model", TEXT, "cost model of both"),
        Column("against", TEXT, "reference: PyPTO's lowering; l0_chooser: and its tiles of L0"),
        Column("verdict", TEXT, "win, equal, loss, or the code of why there is no comparison"),
        Column("reason", TEXT, "what the code stands for"),
        Column("cycles", FLOAT, "of the optimized program"),
        Column("other_cycles", FLOAT, "of what it is compared with"),
        Column("speedup", FLOAT, "other_cycles / cycles"),
        *_pipes(" of the optimized program"),
        *(Column(f"{p}_saved", FLOAT, f"cycles less on {p} than in the other") for p in PIPES),
    ),
)


def _seconds(name: str, what: str) -> Column:
    return Column(f"{name}_seconds", FLOAT, f"wall time of {what}", measured=True)


SCALING = Table(
    "scaling",
    ("family", "size", "target", "model"),
    (
        Column("family", TEXT, "how the program grows"),
        Column("size", INT, "layers, blocks or products: what the family counts"),
        *_TARGET,
        Column("model", TEXT, "cost model"),
        Column("statements", INT, "of the tensor program's InCore functions"),
        Column("e_nodes", INT, "after saturation"),
        Column("classes", INT, "of the tile graph that is extracted from"),
        Column("nodes", INT, "of the tile graph that is extracted from"),
        Column("iterations", INT, "rounds of saturation"),
        _seconds("load", "reading the program's values into the e-graph"),
        _seconds("saturation", "the rules"),
        _seconds("snapshot", "reading the e-graph out and typing its tiles"),
        _seconds("price", "the cost model"),
        _seconds("extraction", "the search for the cheapest selection"),
        _seconds("emission", "the tile program"),
        _seconds("reference", "the reference lowering that is compared with"),
        _seconds("verification", "executing both programs and comparing"),
        _seconds("total", "optimize, verification left out"),
        Column(
            "memory_bytes",
            INT,
            "peak memory of a process that ran it, libraries included",
            measured=True,
        ),
        Column("cycles", FLOAT, "of the optimized program"),
    ),
)

EXTRACTION = Table(
    "extraction",
    ("graph", "extractor"),
    (
        Column("graph", TEXT, "name of the file"),
        Column("digest", TEXT, "hash of the file"),
        Column("extractor", TEXT, "tree, dag or exact"),
        Column("classes", INT, "of the e-graph"),
        Column("nodes", INT, "of the e-graph"),
        Column(
            "status", TEXT, "optimal, feasible, infeasible, unknown, timeout or an error's code"
        ),
        Column("reason", TEXT, "what the code stands for"),
        Column("cost", FLOAT, "of the selection that was found"),
        Column("bound", FLOAT, "that no selection undercuts, by this extractor"),
        Column("gap", FLOAT, "cost over the best bound of all extractors, less 1"),
        Column("ratio_best", FLOAT, "cost over the least that any extractor found"),
        Column("seconds", FLOAT, "wall time of the search", measured=True),
    ),
)

TABLES: Mapping[str, Table] = {
    table.name: table for table in (ALIGNMENT, MODELS, BASELINE, SCALING, EXTRACTION)
}
"""Name of the command -> its table."""
