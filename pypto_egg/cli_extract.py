"""`pypto-egg extract`: the cheapest selection of an e-graph in a JSON file."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from pypto_egg.cli_streams import STANDARD, standard_input, write_text

if TYPE_CHECKING:
    from pypto_egg.extract.registry import Objective


@click.command(short_help="Extract from an e-graph in JSON.")
@click.argument("file", metavar="FILE")
@click.option(
    "--method",
    type=click.Choice(["exact", "dag", "tree"]),
    default="exact",
    show_default=True,
    help="How the cheapest selection is searched for.",
)
@click.option(
    "--objective",
    type=click.Choice(["serial", "bottleneck"]),
    default="serial",
    show_default=True,
    help="The sum of costs, or the greatest sum over a pipe.",
)
@click.option(
    "--not-overlapped",
    multiple=True,
    metavar="PIPE",
    help="A pipe whose sum comes on top of the greatest; with bottleneck.",
)
@click.option("--deadline", type=float, metavar="S", help="Seconds.  [default: no end]")
@click.option(
    "--k-best",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="The N cheapest selections.",
)
@click.option("--json", "json_file", metavar="OUT", help="Write what is selected as JSON.")
def extract(
    file: str,
    method: str,
    objective: Objective,
    not_overlapped: tuple[str, ...],
    deadline: float | None,
    k_best: int,
    json_file: str | None,
) -> None:
    """Print the cheapest selection of the e-graph in FILE, with a proven bound of its cost.

    FILE is in the JSON form of the egraph-serialize crate; "-" is standard input, and for OUT
    standard output. Exits with 1 if no selection meets the constraints.
    """
    from pypto_egg.extract import Ranking, problem_from_json, read_problem
    from pypto_egg.extract import extract as run
    from pypto_egg.extract import k_best as rank
    from pypto_egg.report.extraction import extraction_record, extraction_text

    problem = problem_from_json(standard_input()) if file == STANDARD else read_problem(file)
    found = run(
        problem,
        method,
        objective=objective,
        not_overlapped=not_overlapped,
        deadline_seconds=deadline,
    )
    found.check(problem)
    ranking = Ranking((found,), found.bound)
    if k_best > 1:
        ranking = rank(
            problem,
            k_best,
            method,
            objective=objective,
            not_overlapped=not_overlapped,
            deadline_seconds=deadline,
        )
    if json_file is not None:
        write_text(json_file, json.dumps(extraction_record(problem, ranking), indent=2) + "\n")
    if json_file != STANDARD:
        sys.stdout.write(extraction_text(problem, ranking))
