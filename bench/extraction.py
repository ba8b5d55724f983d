"""`bench extraction`: all extractors on a folder of e-graphs in egraph-serialize JSON."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_egg.bench.figures import Table, geometric_mean
from pypto_egg.bench.inputs import digest
from pypto_egg.bench.schema import EXTRACTION, Row
from pypto_egg.errors import OptionError, PyptoEggError
from pypto_egg.extract import Problem, extract, extractor_names
from pypto_egg.extract.serialize import problem_from_json

DEADLINE_SECONDS = 60.0


def arguments_of(folder: str, extractors: Sequence[str], deadline: float) -> dict[str, Any]:
    """What tasks need: the folder's files with their hashes, the extractors, the deadline.

    Raises:
        OptionError: there is no such folder, or no JSON file in it or below.
    """
    root = Path(folder)
    if not root.is_dir():
        raise OptionError(f"no folder {folder}")
    found = sorted(root.rglob("*.json"))
    if not found:
        raise OptionError(f"no .json files in {folder}")
    graphs = [
        {"name": path.relative_to(root).as_posix(), "path": str(path.resolve()),
         "digest": digest(path.read_bytes())}
        for path in found
    ]  # fmt: skip
    return {"graphs": graphs, "extractors": list(extractors), "deadline": deadline}


def tasks(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One task for each e-graph: the best of all extractors is what each is compared with."""
    return [
        {**graph, "extractors": arguments["extractors"], "deadline": arguments["deadline"]}
        for graph in arguments["graphs"]
    ]


def rows(task: Mapping[str, Any]) -> list[Row]:
    """A row for each extractor."""
    same = {"graph": task["name"], "digest": task["digest"]}
    try:
        problem = problem_from_json(_text(task))
    except PyptoEggError as error:
        refused = {"status": error.code, "reason": error.message}
        return [_row(same, name, refused) for name in task["extractors"]]
    same |= {"classes": problem.class_count, "nodes": problem.node_count}
    made = [
        _row(same, name, _extracted(problem, name, task["deadline"])) for name in task["extractors"]
    ]
    costs = [row["cost"] for row in made if row["cost"] is not None]
    bounds = [row["bound"] for row in made if row["bound"] is not None]
    least, proven = min(costs, default=None), max(bounds, default=None)
    for row in made:
        row["gap"] = _excess(row["cost"], proven)
        ratio = _excess(row["cost"], least)
        row["ratio_best"] = None if ratio is None else ratio + 1.0
    return made


def _text(task: Mapping[str, Any]) -> str:
    try:
        data = Path(task["path"]).read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read {task['path']}: {error}") from None
    if digest(data) != task["digest"]:
        raise OptionError(f"{task['path']} was changed after the run began")
    return text


def _extracted(problem: Problem, name: str, deadline: float) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        found = extract(problem, name, deadline_seconds=deadline)
    except PyptoEggError as error:
        return {"status": error.code, "reason": error.message}
    return {
        "status": found.status,
        "reason": ", ".join(found.conflict),
        "cost": found.cost if math.isfinite(found.cost) else None,
        "bound": found.bound if math.isfinite(found.bound) else None,
        "seconds": time.perf_counter() - started,
    }


def _excess(cost: Any, least: Any) -> float | None:
    """cost / least - 1; 0 where both are 0, None where that says nothing."""
    if cost is None or least is None:
        return None
    if cost == least:
        return 0.0
    return float(cost) / float(least) - 1.0 if least > 0 else None


def _row(same: Mapping[str, Any], extractor: str, values: Mapping[str, Any]) -> Row:
    return {**dict.fromkeys(EXTRACTION.names), **same, "extractor": extractor, **values}


def known_extractors(text: str | None) -> list[str]:
    """The extractors that a user names; all for None.

    Raises:
        OptionError: one is not known.
    """
    names = list(extractor_names())
    wanted = [part.strip() for part in text.split(",")] if text else names
    for one in wanted:
        if one not in names:
            raise OptionError(
                f"there is no extractor '{one}'", hint=f"the extractors are: {', '.join(names)}"
            )
    return list(dict.fromkeys(wanted))


_MOST_TOLD = 40


def summary(rows: Sequence[Row]) -> list[Table]:
    """How each extractor did over all e-graphs, and what each e-graph took, the largest first."""
    return [_by_extractor(rows), _by_graph(rows)]


def _by_extractor(rows: Sequence[Row]) -> Table:
    lines = []
    for name in dict.fromkeys(str(row["extractor"]) for row in rows):
        found = [row for row in rows if row["extractor"] == name]
        solved = [row for row in found if row["cost"] is not None]
        ratios = [float(row["ratio_best"]) for row in solved if row["ratio_best"]]
        gaps = [float(row["gap"]) for row in solved if row["gap"] is not None]
        seconds = [float(row["seconds"] or 0.0) for row in found]
        lines.append(
            (name, str(len(found)), str(len(solved)),
             str(sum(row["status"] == "optimal" for row in found)),
             f"{geometric_mean(ratios):.4f}", f"{max(gaps, default=0.0):.2%}",
             f"{sum(seconds):.2f}", f"{max(seconds, default=0.0):.2f}")
        )  # fmt: skip
    header = (
        "extractor", "e-graphs", "solved", "optimal", "mean cost / best", "greatest gap",
        "seconds", "longest",
    )  # fmt: skip
    return Table(header, tuple(lines), title="extractors")


def _by_graph(rows: Sequence[Row]) -> Table:
    graphs: dict[str, list[Row]] = {}
    for row in rows:
        graphs.setdefault(str(row["graph"]), []).append(row)
    order = sorted(graphs, key=lambda name: (-int(graphs[name][0]["nodes"] or 0), name))
    names = list(dict.fromkeys(str(row["extractor"]) for row in rows))
    lines = []
    for graph in order[:_MOST_TOLD]:
        first, cells = graphs[graph][0], []
        for row in graphs[graph]:
            cost = f"{row['cost']:,.6g}" if row["cost"] is not None else "-"
            cells.append(f"{cost} {row['status']}")
        lines.append((graph, str(first["classes"] or ""), str(first["nodes"] or ""), *cells))
    return Table(("e-graph", "classes", "nodes", *names), tuple(lines), title="cost and status")
