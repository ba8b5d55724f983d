"""Tables that compare the extractors, and solvers for what the exact one leaves to a solver.

    python -m pypto_egg.bench.extraction_solvers methods
    python -m pypto_egg.bench.extraction_solvers solvers

The problems are those of our own e-graphs (every kernel of `kernels/`, chains of layers) and
made-up families that are harder. CP-SAT is the product's solver; HiGHS is measured where `highspy`
is installed. Both get the same graphs, the same landmarks, the same start and one thread: what is
left of a made-up problem after all reductions and decomposition, and our own problems as they
are, because reductions leave nothing of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np

from pypto_egg import optimize
from pypto_egg.bench.egraph_families import FAMILIES
from pypto_egg.bench.programs import layer_chain
from pypto_egg.extract import Problem, extract, extractor_names
from pypto_egg.extract.cp_sat import SMALL_GROUP, solve_with_cp_sat
from pypto_egg.extract.dag import solve_piece_greedily
from pypto_egg.extract.decompose import Answer, solve
from pypto_egg.extract.graph import Graph, graph_of, real_number
from pypto_egg.extract.landmarks import PROOF_WORK, Landmarks, find_landmarks
from pypto_egg.extract.reduce import reduce_graph
from pypto_egg.extract.structure import cycle_groups

Solver = Callable[[Graph, Landmarks, dict[int, int], float], Answer]


@dataclass(frozen=True)
class Part:
    """One irreducible part, with a known selection to start from."""

    graph: Graph
    landmarks: Landmarks
    known: dict[int, int]


KERNELS = Path(__file__).resolve().parent / "kernels"


def problems_of(name: str, text: str) -> Iterator[tuple[str, Problem]]:
    """The problem of each function of a program, with the limits that its chosen answer met."""
    result = optimize(text, verify=False)
    for report in result.functions:
        title = f"{name}: {report.name}" if len(result.functions) > 1 else name
        yield title, report.account.problem


def all_problems(seeds: int) -> Iterator[tuple[str, Problem]]:
    """Those of our own e-graphs first, then `seeds` of each made-up family."""
    yield from own_problems()
    for family, make in FAMILIES.items():
        for seed in range(seeds):
            yield f"{family} #{seed}", make(seed)


def own_problems() -> Iterator[tuple[str, Problem]]:
    """Those of every kernel and of two chains of layers."""
    for path in sorted(KERNELS.glob("*.py")):
        yield from problems_of(path.stem, path.read_text(encoding="utf-8"))
    for depth in (25, 100):
        yield from problems_of(f"{depth} layers", layer_chain(depth))


def whole(problem: Problem) -> Part:
    """All of a problem, nothing decided."""
    graph = graph_of(problem)
    known = solve_piece_greedily(graph, 20_000)
    return Part(graph, find_landmarks(graph, PROOF_WORK), known.choice)


def parts_for_solvers(seeds: int) -> Iterator[tuple[str, Part]]:
    """What both solvers are given; see the module's text."""
    for title, problem in own_problems():
        yield title, whole(problem)
    for family, make in FAMILIES.items():
        for seed in range(seeds):
            for part in irreducible_parts(make(seed)):
                yield f"{family} #{seed}", part


def irreducible_parts(problem: Problem) -> list[Part]:
    """What is left for a solver, as the exact extractor would hand it over without its sweep."""
    found: list[Part] = []

    def keep(graph: Graph) -> Answer:
        known = solve_piece_greedily(graph, 20_000)
        reduce_graph(graph, upper=known.cost)
        if len(graph.nodes) > 1:
            landmarks = find_landmarks(graph, PROOF_WORK)
            found.append(Part(graph, landmarks, known.choice))
        return known

    solve(graph_of(problem), keep)
    return found


def solve_with_highs(
    graph: Graph, landmarks: Landmarks, known: dict[int, int], seconds: float
) -> Answer:
    """The answer of HiGHS for the model that CP-SAT gets, with levels as continuous variables."""
    import highspy

    column = {node: i for i, node in enumerate(sorted(graph.cost))}
    group = cycle_groups(graph)
    members: dict[int, list[int]] = {}
    for cls, number in group.items():
        members.setdefault(number, []).append(cls)
    large = [cls for cls in graph.nodes if len(members[group[cls]]) > SMALL_GROUP]
    level = {cls: len(column) + i for i, cls in enumerate(large)}
    model = highspy.HighsLp()
    model.num_col_ = len(column) + len(level)
    model.col_cost_ = [real_number(graph.cost[n], graph.shift) for n in column] + [0.0] * len(level)
    model.col_lower_ = [0.0] * model.num_col_
    model.col_upper_ = [1.0] * len(column) + [len(members[group[c]]) - 1.0 for c in large]
    integer, real = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    model.integrality_ = [integer] * len(column) + [real] * len(level)
    rows = list(_rows(graph, landmarks, column, level, members, group))
    model.num_row_ = len(rows)
    model.row_lower_ = [low for low, _, _ in rows]
    model.row_upper_ = [high for _, high, _ in rows]
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0, *(len(row) for _, _, row in rows)]).tolist()
    model.a_matrix_.index_ = [i for _, _, row in rows for i in row]
    model.a_matrix_.value_ = [v for _, _, row in rows for v in row.values()]
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    options = {"threads": 1, "random_seed": 0, "mip_rel_gap": 0.0, "time_limit": seconds}
    # Whole costs prove an answer that is less than 1 above the bound.
    for name, value in {**options, "mip_abs_gap": 1e-6 if graph.shift else 0.999}.items():
        highs.setOptionValue(name, value)
    highs.passModel(model)
    start = highspy.HighsSolution()
    values = [0.0] * model.num_col_
    for node in known.values():
        if node in column:
            values[column[node]] = 1.0
    start.col_value = values
    highs.setSolution(start)
    highs.run()
    info = highs.getInfo()
    best = info.objective_function_value
    cost = round(best * 2.0**graph.shift) if np.isfinite(best) else None
    bound = info.mip_dual_bound * 2.0**graph.shift
    return Answer({}, cost, int(np.ceil(bound - 1e-6)) if np.isfinite(bound) else 0)


Row = tuple[float, float, dict[int, float]]


def _rows(
    graph: Graph,
    landmarks: Landmarks,
    column: dict[int, int],
    level: dict[int, int],
    members: dict[int, list[int]],
    group: dict[int, int],
) -> Iterator[Row]:
    roots = set(graph.roots)
    for cls, nodes in graph.nodes.items():
        yield float(cls in roots), 1.0, {column[node]: 1.0 for node in nodes}
        users: dict[int, list[int]] = {}
        for node in nodes:
            for target in {*graph.children[node], *graph.requires[node]}:
                users.setdefault(target, []).append(node)
            for child in graph.children[node]:
                if cls in level and group[child] == group[cls]:
                    size = float(len(members[group[cls]]))
                    row = {level[cls]: 1.0, level[child]: -1.0, column[node]: -size}
                    yield 1.0 - size, np.inf, row
        for child in sorted(set(users) - roots):
            yield 0.0, np.inf, _difference(graph.nodes[child], users[child], column)
    for classes in members.values():
        sizes = range(2, len(classes) + 1) if len(classes) <= SMALL_GROUP else [len(classes)]
        for subset in (s for size in sizes for s in combinations(classes, size) if size > 1):
            entries = [
                node
                for cls in subset
                for node in graph.nodes[cls]
                if not set(subset) & set(graph.children[node])
            ]
            for cls in subset:
                yield 0.0, np.inf, _difference(entries, graph.nodes[cls], column)
    for weights, limit in zip(graph.weights, graph.limits, strict=True):
        yield -np.inf, float(limit), {column[node]: float(w) for node, w in weights.items() if w}
    for together in graph.forbidden:
        yield -np.inf, len(together) - 1.0, {column[node]: 1.0 for node in together}
    for landmark in landmarks.sets:
        yield 1.0, np.inf, {column[node]: 1.0 for node in landmark if node in column}


def _difference(plus: list[int], minus: list[int], column: dict[int, int]) -> dict[int, float]:
    row = {column[node]: 1.0 for node in plus}
    for node in minus:
        row[column[node]] = row.get(column[node], 0.0) - 1.0
    return {i: value for i, value in row.items() if value}


def compare_solvers(seconds: float, seeds: int) -> None:
    """Prints one line for each part and solver: size, cost, bound and seconds."""
    solvers: dict[str, Solver] = {"CP-SAT": solve_with_cp_sat}
    if find_spec("highspy") is not None:
        solvers["HiGHS"] = solve_with_highs
    else:
        print("highspy is not installed: CP-SAT only", file=sys.stderr)
    print("| part | classes | nodes | solver | cost | bound | seconds |")
    print("|---|---|---|---|---|---|---|")
    for title, part in parts_for_solvers(seeds):
        for name, run in solvers.items():
            start = time.perf_counter()
            answer = run(part.graph, part.landmarks, part.known, seconds)
            taken = time.perf_counter() - start
            print(
                f"| {title} | {len(part.graph.nodes)} | {len(part.graph.cost)} "
                f"| {name} | {_cycles(answer.cost, part)} | {_cycles(answer.bound, part)} "
                f"| {taken:.3f} |",
                flush=True,
            )


def _cycles(cost: int | None, part: Part) -> str:
    return "none" if cost is None else f"{real_number(cost, part.graph.shift):.10g}"


def compare_methods(seconds: float, seeds: int) -> None:
    """Prints one line for each problem and extractor: size, cost, bound, status and seconds."""
    print("| problem | classes | nodes | extractor | cost | bound | status | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for title, problem in all_problems(seeds):
        for name in extractor_names():
            found = extract(problem, name, deadline_seconds=seconds)
            found.check(problem)
            print(
                f"| {title} | {problem.class_count} | {problem.node_count} | {name} "
                f"| {found.cost:g} | {found.bound:g} | {found.status} | {found.seconds:.3f} |",
                flush=True,
            )


def main() -> None:
    """Prints a comparison of solvers or of extractors as a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["solvers", "methods"], help="what to compare")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of each solve")
    parser.add_argument("--seeds", type=int, default=2, help="problems of each family")
    options = parser.parse_args()
    import_module("ortools.sat.python.cp_model")  # loading it is not part of any measured time
    run = compare_solvers if options.what == "solvers" else compare_methods
    run(options.seconds, options.seeds)


if __name__ == "__main__":
    main()
