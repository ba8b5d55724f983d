"""Extraction: the cheapest DAG of an e-graph under side constraints.

Knows classes, nodes, costs and capacities only; nothing of PyPTO. `Problem` goes in, `Selection`
comes out, `extract` picks the method by name.
"""

if __name__ != "pypto_egg.extract":
    raise ImportError(
        f"this package was imported as {__name__!r}; its only name is 'pypto_egg.extract' "
        "(write `from pypto_egg.extract import ...`)"
    )

from pypto_egg.extract.pareto import ParetoFront, ParetoPoint, pareto
from pypto_egg.extract.problem import Constraint, Problem
from pypto_egg.extract.ranking import InOrder, Ranking, k_best
from pypto_egg.extract.registry import extract, extractor, extractor_names
from pypto_egg.extract.result import Selection, Status
from pypto_egg.extract.serialize import (
    problem_from_json,
    problem_to_json,
    read_problem,
    write_problem,
)

__all__ = [
    "Constraint",
    "InOrder",
    "ParetoFront",
    "ParetoPoint",
    "Problem",
    "Ranking",
    "Selection",
    "Status",
    "extract",
    "extractor",
    "extractor_names",
    "k_best",
    "pareto",
    "problem_from_json",
    "problem_to_json",
    "read_problem",
    "write_problem",
]
