"""Rows of every command, as the harness writes them, for the tests of plots and pages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pypto_egg.bench.schema import TABLES, Row
from pypto_egg.bench.store import Run
from pypto_egg.extract.cost.model import PIPES


def row(command: str, **values: Any) -> Row:
    """A row with these values and nothing else."""
    return {**dict.fromkeys(TABLES[command].names), **values}


def run_of(command: str, rows: list[Row], **values: Any) -> Run:
    """The run that such rows are of."""
    usual = {
        "name": f"{command}-1",
        "command": command,
        "arguments": {"target": ["a2a3"], "jobs": 2},
        "tasks": 4,
        "state": "finished",
        "started": datetime(2026, 1, 2, 3, 4, 5),
        "ended": datetime(2026, 1, 2, 3, 5, 6),
        "revision": "abc1234",
        "versions": {"egglog": "13.2.0", "python": "3.11"},
        "done": 4,
        "rows": len(rows),
    }
    return Run(**{**usual, **values})


def pipes(total: float) -> dict[str, float]:
    """Cycles on each pipe: half in mte2, the rest in mte1 and cube."""
    shares = {"mte2": 0.5, "mte1": 0.3, "cube": 0.2}
    return {f"{pipe}_cycles": total * shares.get(pipe, 0.0) for pipe in PIPES}


def alignment(workloads: tuple[str, ...] = ("qkv", "gate up")) -> list[Row]:
    """Choices 16, 32 and full for M and N; 16 is illegal for the M of the last workload."""
    rows = []
    for number, workload in enumerate(workloads):
        least = 1000.0 * (number + 1)
        for i, m_align in enumerate(("16", "32", "full")):
            for j, n_align in enumerate(("16", "32", "full")):
                legal = not (m_align == "16" and number == len(workloads) - 1)
                cycles = least * (1 + 0.2 * i + 0.05 * j)
                rows.append(
                    row(
                        "alignment", workload=workload, op="matmul", m=5, n=100, k=64, batch=1,
                        dtype_a="BF16", layout="nd", target="a2a3", model="mte2_mad",
                        m_align=m_align, n_align=n_align, legal=legal,
                        reason="" if legal else "5 rows are not whole fractals",
                        physical_m=16 << i, physical_n=16 << j, cycles=cycles if legal else None,
                        mat_bytes=4096 >> (i if legal else 0), acc_bytes=1024 << j,
                        ratio_best=cycles / least if legal else None,
                        ratio_pypto=cycles / least if legal else None,
                        pypto=legal and i == j == 0, chosen=legal and i == j == 1, **pipes(cycles),
                    )
                )  # fmt: skip
    return rows


def models() -> list[Row]:
    """Two models on two programs; and one measured program."""
    regrets = {("a", "a"): 0.0, ("a", "b"): 0.21, ("b", "a"): 0.1, ("b", "b"): 0.0}
    rows = [
        row("models", program=program, target="a2a3", chosen_by=chosen, priced_by=priced,
            legal=True, cycles=1000 * (1 + regret), own_cycles=1000.0, regret=regret)
        for program, scale in (("p", 1), ("q", 0))
        for (chosen, priced), whole in regrets.items()
        for regret in (whole * scale,)
    ]  # fmt: skip
    rows += [
        row("models", program="gemm", target="a2a3", chosen_by="given", priced_by=model,
            legal=True, cycles=said, measured_cycles=10000.0, error=said / 10000 - 1)
        for model, said in (("a", 9500.0), ("b", 20000.0))
    ]  # fmt: skip
    return rows


def baseline() -> list[Row]:
    """A win, a tie, and a program that could not be compared."""
    rows = [
        row("baseline", program=name, target="a2a3", model="mte2_mad", against="reference",
            verdict=verdict, cycles=1000.0, other_cycles=1000 * ratio, speedup=ratio,
            **pipes(1000.0), mte2_saved=1000 * (ratio - 1))
        for name, verdict, ratio in (("bias", "win", 1.5), ("plain", "equal", 1.0))
    ]  # fmt: skip
    none = row("baseline", program="odd", target="a2a3", model="mte2_mad", against="reference",
               verdict="E402", reason="not aligned")  # fmt: skip
    return [*rows, none]


def scaling() -> list[Row]:
    """Times that grow as size to the power of 1.5, e-nodes linearly."""
    return [
        row("scaling", family="layers", size=size, target="a2a3", model="mte2_mad",
            e_nodes=100 * size, nodes=10 * size, saturation_seconds=0.001 * size**1.5,
            total_seconds=0.01 * size**1.5, memory_bytes=1 << 20)
        for size in (1, 10, 100)
    ]  # fmt: skip


def extraction() -> list[Row]:
    """Two graphs, three extractors."""
    return [
        row("extraction", graph=graph, extractor=name, classes=10, nodes=20, status="optimal",
            cost=ratio * 10, bound=10.0, gap=ratio - 1, ratio_best=ratio, seconds=seconds)
        for graph in ("one.json", "two.json")
        for name, ratio, seconds in (("tree", 1.4, 0.001), ("dag", 1.1, 0.01), ("exact", 1.0, 1.0))
    ]  # fmt: skip


def of_command(command: str) -> list[Row]:
    """Some rows of a command."""
    made = {
        "alignment": alignment,
        "models": models,
        "baseline": baseline,
        "scaling": scaling,
        "extraction": extraction,
    }
    return made[command]()
