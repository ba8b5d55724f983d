"""`bench scaling`: how time, e-nodes and memory grow with the program.

Every size is measured in a process of its own, one after the other: a first small program warms it
(imports, rules); memory is the peak after the first run, all that is loaded included, and times are
those of the fastest of a few runs. Verification is timed apart.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_egg import Lowering, optimize
from pypto_egg.bench.figures import Table, fitted_exponent
from pypto_egg.bench.programs import layer_chain, shared_operand
from pypto_egg.bench.schema import SCALING, Row
from pypto_egg.bench.speed import Run, reference_seconds, stage_seconds, timed, verification_seconds
from pypto_egg.errors import OptionError
from pypto_egg.ir.visit import walk
from pypto_egg.target import load_target

FRESH = True
FAMILIES: Mapping[str, Callable[[int], str]] = {"layers": layer_chain, "shared": shared_operand}
"""How programs grow: layers in a row, or products that share an operand side by side."""
SIZES = (5, 10, 25, 50, 100)
REPEATS = 3
_STAGES = ("load", "saturation", "snapshot", "price", "extraction", "emission")
_WARM = 2


def sizes(text: str | None) -> list[int]:
    """The sizes that a user names, "10,20,40".

    Raises:
        OptionError: one is no whole number above 0.
    """
    found = [part.strip() for part in text.split(",")] if text else [str(size) for size in SIZES]
    for one in found:
        if not one.isdecimal() or not 0 < int(one) <= 10_000:
            raise OptionError(f"no size '{one}'", hint="whole numbers from 1 to 10000, with commas")
    return sorted({int(one) for one in found})


def tasks(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One task for each family, size, target and cost model."""
    return [
        {"family": family, "size": size, "target": target, "model": model,
         "repeats": arguments["repeats"], "overrides": arguments["overrides"]}
        for family in arguments["families"]
        for target in arguments["targets"]
        for model in arguments["models"]
        for size in arguments["sizes"]
    ]  # fmt: skip


def rows(task: Mapping[str, Any]) -> list[Row]:
    """What one program takes, by stage."""
    target = load_target(task["target"]).with_(**task["overrides"])
    text = FAMILIES[task["family"]](task["size"])

    def once(program: str = text) -> Lowering:
        return optimize(program, target=target, cost_model=task["model"], verify=False)

    once(FAMILIES[task["family"]](_WARM))
    first = timed(once)
    memory = peak_bytes()
    best = min([first, *(timed(once) for _ in range(task["repeats"] - 1))], key=_cpu_seconds)
    stages = stage_seconds(best.result)
    reports = best.result.functions
    statements = sum(1 for f in best.result.source.functions for _ in walk(f.body))
    return [
        {
            **dict.fromkeys(SCALING.names),
            "family": task["family"], "size": task["size"], "target": target.name,
            "constants": target.fingerprint(), "model": task["model"], "statements": statements,
            "e_nodes": sum(report.saturation.nodes for report in reports),
            "classes": sum(report.classes for report in reports),
            "nodes": sum(report.nodes for report in reports),
            "iterations": max(report.saturation.iterations for report in reports),
            **{f"{stage}_seconds": stages[stage] for stage in _STAGES},
            "reference_seconds": reference_seconds(best.result),
            "verification_seconds": verification_seconds(best.result),
            "total_seconds": best.wall, "memory_bytes": memory, "cycles": best.result.cycles,
        }
    ]  # fmt: skip


def _cpu_seconds(run: Run) -> float:
    return run.cpu


def peak_bytes() -> int | None:
    """The most memory that this process has had so far; None where the system does not say."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux starts a new process's ru_maxrss at what its parent had; VmHWM is its own.
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else None
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def summary(rows: Sequence[Row]) -> list[Table]:
    """A table for each family, target and model, whose last line holds the exponents."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = tuple(str(row[name]) for name in ("family", "target", "model"))
        groups.setdefault(key, []).append(row)
    return [_table(key, found) for key, found in groups.items()]


_TOLD = {
    "statements": "statements", "e_nodes": "e-nodes",
    **{f"{stage}_seconds": stage for stage in (*_STAGES, "reference", "verification", "total")},
    "memory_bytes": "memory MiB",
}  # fmt: skip


def _table(key: tuple[str, ...], rows: Sequence[Row]) -> Table:
    lines = [(str(row["size"]), *(_shown(name, row[name]) for name in _TOLD)) for row in rows]
    exponents = [exponent(rows, name) for name in _TOLD]
    lines.append(("size^", *("" if found is None else f"{found:.2f}" for found in exponents)))
    title = ", ".join(key) + "; seconds, and the exponent of the fitted power law"
    return Table(("size", *_TOLD.values()), tuple(lines), title=title)


def exponent(rows: Sequence[Row], name: str) -> float | None:
    """The exponent of the growth of a column with the size; None if it cannot be told."""
    points = [(float(row["size"] or 0), float(row[name] or 0)) for row in rows]
    return fitted_exponent(points)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "memory_bytes":
        return f"{value / 2**20:.1f}"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
