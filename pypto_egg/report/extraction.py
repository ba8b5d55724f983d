"""What was selected from an e-graph, as text and as plain data."""

from __future__ import annotations

from typing import Any

from pypto_egg.extract import Problem, Ranking, Selection
from pypto_egg.report.table import Table, plain

SHOWN = 40
"""Selected classes that are listed; the JSON form has all."""

SCHEMA = 1


def extraction_text(problem: Problem, ranking: Ranking) -> str:
    """A line for each selection, then the classes of the cheapest, children first."""
    lines = [_line(selection) for selection in ranking.selections]
    if len(lines) > 1:
        lines = [f"{number}: {line}" for number, line in enumerate(lines, start=1)]
    first = ranking.selections[0]
    order = first.order(problem)
    rows = tuple(_row(problem, first, cls) for cls in order[:SHOWN])
    text = "\n".join(lines) + "\n\n" + plain(Table(("class", "node", "op", "cost"), rows))
    left = len(order) - SHOWN
    return text + (f"and {left} more classes\n" if left > 0 else "")


def extraction_record(problem: Problem, ranking: Ranking) -> dict[str, Any]:
    """Costs, bounds and choices: class name -> node name, children first.

    `bound` at the top is that of all other selections, None where there are none.
    """
    bound = ranking.bound if len(ranking.selections) > 1 else None
    return {
        "schema": SCHEMA,
        "selections": [
            {
                "cost": selection.cost,
                "bound": _finite(selection.bound),
                "status": selection.status,
                "method": selection.method,
                "seconds": selection.seconds,
                "choices": {
                    problem.class_name[cls]: problem.node_name[selection.choice[cls]]
                    for cls in selection.order(problem)
                },
            }
            for selection in ranking.selections
        ],
        "bound": None if bound is None else _finite(bound),
    }


def _line(selection: Selection) -> str:
    return (
        f"cost {selection.cost:,.10g}, bound {selection.bound:,.10g}, {selection.status}; "
        f"{len(selection.choice)} classes; {selection.method}, {selection.seconds:.2f} s"
    )


def _row(problem: Problem, selection: Selection, cls: int) -> tuple[str, ...]:
    node = selection.choice[cls]
    cost = f"{float(problem.node_cost[node]):,.10g}"
    return problem.class_name[cls], problem.node_name[node], problem.node_op[node], cost


def _finite(value: float) -> float | None:
    return value if abs(value) != float("inf") else None
