"""`bench baseline`: `optimize` against the lowering of PyPTO's own passes.

A program that is dearer than the reference under the very model that it was chosen by is a loss,
and a fault of pypto-egg. Where the tiles of L0 are left to PyPTO, both programs are priced anew
from their text; where they are chosen, tiles overlap in a way that no sum over the text says, and
the cycles are those of the two lowerings' own accounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pypto_egg import optimize
from pypto_egg.bench.figures import SAME, Table, geometric_mean
from pypto_egg.bench.inputs import Source
from pypto_egg.bench.pricing import Priced, priced
from pypto_egg.bench.schema import BASELINE, Row
from pypto_egg.errors import PyptoEggError
from pypto_egg.extract.cost import PIPES, cost_model
from pypto_egg.scheduling import L0Mode
from pypto_egg.target import Target, load_target

REFERENCE, L0_CHOOSER = "reference", "l0_chooser"
"""Against the lowering of ConvertTensorToTileOps, the tiles of L0 left to a later pass in both; and
against that lowering with the tiles of PyPTO's chooser, where ours are chosen by the search."""
WIN, EQUAL, LOSS, ALONE = "win", "equal", "loss", "alone"
_MOST_TOLD = 10


def tasks(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One task for each program, target and cost model, in that order."""
    return [
        {"program": program, "target": target, "model": model,
         "overrides": arguments["overrides"]}
        for program in arguments["programs"]
        for target in arguments["targets"]
        for model in arguments["models"]
    ]  # fmt: skip


def arguments_of(programs: Iterable[Source]) -> dict[str, Any]:
    """What tasks need of programs."""
    return {"programs": [one.to_json() for one in programs]}


def rows(task: Mapping[str, Any]) -> list[Row]:
    """The comparison of one program with its reference."""
    target = load_target(task["target"]).with_(**task["overrides"])
    model = task["model"]
    same: Row = {
        **dict.fromkeys(BASELINE.names),
        "program": task["program"]["name"], "target": target.name,
        "constants": target.fingerprint(), "model": model, "reason": "",
    }  # fmt: skip
    text = task["program"]["text"]
    return [
        same | {"against": against} | _compared_with(against, text, model, target)
        for against in (REFERENCE, L0_CHOOSER)
    ]


def _compared_with(against: str, text: str, model: str, target: Target) -> Row:
    mode: L0Mode = "leave" if against == REFERENCE else "schedule"
    try:
        best = optimize(text, target=target, cost_model=model, verify=False, l0=mode)
    except PyptoEggError as error:
        return {"verdict": error.code, "reason": error.message}
    both = [one for one in (best, best.baseline) if one is not None]
    if against == REFERENCE:
        own, *others = priced(both, cost_model(model), target)
    else:
        own, *others = (Priced(one.cycles, one.cost) for one in both)
    row: Row = {"cycles": own.cycles}
    row |= {f"{pipe}_cycles": cycles for pipe, cycles in own.cost.by_pipe().items()}
    if not others:
        return row | {"verdict": ALONE, "reason": best.baseline_refused}
    return row | compared(own, others[0])


def compared(own: Priced, other: Priced) -> dict[str, Any]:
    """The columns that say how a program compares with another one."""
    slack = SAME * max(own.cycles, other.cycles)
    verdict = EQUAL
    if own.cycles < other.cycles - slack:
        verdict = WIN
    elif own.cycles > other.cycles + slack:
        verdict = LOSS
    saved = {pipe: getattr(other.cost, pipe) - getattr(own.cost, pipe) for pipe in PIPES}
    return {
        "verdict": verdict,
        "other_cycles": other.cycles,
        "speedup": other.cycles / own.cycles if own.cycles else None,
        **{f"{pipe}_saved": value for pipe, value in saved.items()},
    }


def failures(rows: Sequence[Row]) -> list[str]:
    """A line for each loss; there is none as long as pypto-egg is right."""
    return [
        f"{row['program']} on {row['target']} by {row['model']}: {row['cycles']:,.1f} cycles, "
        f"{row['against']} {row['other_cycles']:,.1f}"
        for row in rows
        if row["verdict"] == LOSS
    ]


def summary(rows: Sequence[Row]) -> list[Table]:
    """Wins and losses by model, cycles saved by pipe, the greatest wins, and what was refused."""
    tables = [_verdicts(rows), _pipes(rows)]
    wins = sorted((r for r in rows if r["verdict"] == WIN), key=lambda r: -float(r["speedup"] or 0))
    if wins:
        tables.append(_wins(wins[:_MOST_TOLD]))
    known = (WIN, EQUAL, LOSS)
    others = {
        (str(r["program"]), str(r["target"]), str(r["verdict"]), str(r["reason"]))
        for r in rows if r["verdict"] not in known
    }  # fmt: skip
    if others:
        header = ("program", "target", "verdict", "why")
        tables.append(Table(header, tuple(sorted(others)), title="not compared"))
    return tables


def _groups(rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = tuple(str(row[name]) for name in ("target", "model", "against"))
        groups.setdefault(key, []).append(row)
    return groups


def _verdicts(rows: Sequence[Row]) -> Table:
    lines = []
    for key, found in _groups(rows).items():
        counts = {v: sum(row["verdict"] == v for row in found) for v in (WIN, EQUAL, LOSS)}
        speedups = [float(row["speedup"]) for row in found if row["speedup"]]
        refused = len(found) - sum(counts.values())
        lines.append(
            (*key, *map(str, counts.values()), str(refused), f"{geometric_mean(speedups):.4f}",
             f"{max(speedups, default=1.0):.3f}")
        )  # fmt: skip
    header = (
        "target", "model", "against", "wins", "equal", "losses", "not compared",
        "geometric mean speedup", "greatest",
    )  # fmt: skip
    return Table(header, tuple(lines), title="optimize against the reference lowering")


def _pipes(rows: Sequence[Row]) -> Table:
    lines = []
    for key, found in _groups(rows).items():
        cells = []
        for pipe in PIPES:
            saved = sum(float(row[f"{pipe}_saved"] or 0.0) for row in found)
            cells.append(f"{saved:+,.0f}" if abs(saved) >= 0.5 else "0")
        lines.append((*key, *cells))
    return Table(("target", "model", "against", *PIPES), tuple(lines), title="cycles saved by pipe")


def _wins(rows: Sequence[Row]) -> Table:
    header = ("program", "target", "model", "against", "cycles", "other", "speedup")
    lines = tuple(
        (*(str(row[name]) for name in header[:4]), f"{row['cycles']:,.0f}",
         f"{row['other_cycles']:,.0f}", f"{row['speedup']:.3f}")
        for row in rows
    )  # fmt: skip
    return Table(header, lines, title="greatest wins")
