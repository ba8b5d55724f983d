"""`pypto-egg optimize`, `lower` and `emit`: programs lowered, with their account.

The program goes to stdout and the account to stderr; with `-o` the account goes to stdout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from pypto_egg.cli_streams import FILE, Destinations, read_program, write_egraphs, write_lowering
from pypto_egg.cli_target import OVERRIDES, chosen_target

if TYPE_CHECKING:
    from pypto_egg.egraph.saturate import Limits
    from pypto_egg.packing import NzMode
    from pypto_egg.scheduling import L0Mode

_VERIFY: dict[str, Any] = {"auto": "auto", "always": True, "never": False}


def _of_lowering(callback: Callable[..., None]) -> Callable[..., None]:
    """The options that `optimize` and `lower` have in common."""
    options = (
        click.option("--target", default="a2a3", show_default=True, help="a2a3, a5 or an alias."),
        click.option(
            "--cost-model",
            default="mte2_mad",
            show_default=True,
            help="mte2_mad, pypto_l0, roofline or schedule.",
        ),
        OVERRIDES,
        click.option(
            "--verify",
            type=click.Choice(list(_VERIFY)),
            default="auto",
            show_default=True,
            help="Execute both programs and compare; auto: where that is quick.",
        ),
        click.option("-o", "--output", metavar="OUT", help="Write the tile program to a file."),
        click.option("--json", "json_file", metavar="OUT", help="Write the account as JSON."),
        click.option("--html", "html_file", metavar="OUT", help="Write the account as a web page."),
        click.option(
            "--trace",
            "trace_file",
            metavar="OUT",
            help="Write the simulated schedule for Perfetto or Chrome.",
        ),
        click.option("--explain", is_flag=True, help="Print decisions, runners-up and reasons."),
        click.option("-q", "--quiet", is_flag=True, help="Print the program only."),
    )
    for option in reversed(options):
        callback = option(callback)
    return callback


@click.command(short_help="Print the cheapest tile program for FILE.")
@FILE
@_of_lowering
@click.option(
    "--extractor",
    type=click.Choice(["exact", "dag", "tree"]),
    default="exact",
    show_default=True,
    help="How the cheapest program is searched for.",
)
@click.option(
    "--egraphs",
    metavar="DIR",
    help="Write each function's e-graph with its prices, for extract and bench extraction.",
)
@click.option("--without-rules", multiple=True, metavar="NAME", help="Leave out a ruleset.")
@click.option("--allow-reassociation", is_flag=True, help="Use algebra that changes rounding.")
@click.option(
    "--nz",
    type=click.Choice(["keep", "suggest", "pack"]),
    default="keep",
    show_default=True,
    help="Say what packed cube operands would save, or take weights packed.",
)
@click.option(
    "--l0",
    type=click.Choice(["schedule", "pypto", "leave"]),
    default="schedule",
    show_default=True,
    help="Who cuts products into L0 tiles: the search, PyPTO's law, or PyPTO later.",
)
@click.option(
    "--deadline", type=float, metavar="S", help="Seconds for each extraction.  [default: no end]"
)
@click.option(
    "--node-limit",
    type=click.IntRange(min=1),
    help="E-nodes of saturation.  [default: 500000]",
)
@click.option(
    "--iteration-limit",
    type=click.IntRange(min=1),
    help="Rounds of saturation.  [default: 5000]",
)
@click.option("--time-limit", type=float, metavar="S", help="Seconds of saturation.  [default: 60]")
def optimize(
    file: str,
    target: str,
    cost_model: str,
    constants: str | None,
    extractor: str,
    egraphs: str | None,
    without_rules: tuple[str, ...],
    allow_reassociation: bool,
    verify: str,
    nz: NzMode,
    l0: L0Mode,
    deadline: float | None,
    node_limit: int | None,
    iteration_limit: int | None,
    time_limit: float | None,
    output: str | None,
    json_file: str | None,
    html_file: str | None,
    trace_file: str | None,
    explain: bool,
    quiet: bool,
) -> None:
    """Print the cheapest tile program that the rules find for FILE.

    The program goes to stdout and the account to stderr; with -o the account goes to stdout.
    """
    from pypto_egg.pipeline import optimize as run

    to = Destinations(output, json_file, html_file, trace_file)
    lowering = run(
        read_program(file),
        target=chosen_target(target, constants),
        cost_model=cost_model,
        extractor=extractor,
        without_rules=without_rules,
        allow_reassociation=allow_reassociation,
        limits=_limits(node_limit, iteration_limit, time_limit),
        deadline_seconds=deadline,
        verify=_VERIFY[verify],
        nz=nz,
        l0=l0,
    )
    if egraphs is not None:
        write_egraphs(lowering, egraphs)
    write_lowering(lowering, to, explain, quiet)


@click.command(short_help="Print the reference lowering of FILE.")
@FILE
@_of_lowering
def lower(
    file: str,
    target: str,
    cost_model: str,
    constants: str | None,
    verify: str,
    output: str | None,
    json_file: str | None,
    html_file: str | None,
    trace_file: str | None,
    explain: bool,
    quiet: bool,
) -> None:
    """Print the reference lowering of FILE: one fixed choice for each operator."""
    from pypto_egg.pipeline import lower as run

    to = Destinations(output, json_file, html_file, trace_file)
    lowering = run(
        read_program(file),
        target=chosen_target(target, constants),
        cost_model=cost_model,
        verify=_VERIFY[verify],
    )
    write_lowering(lowering, to, explain, quiet)


@click.command(short_help="Print FILE lowered, as PyPTO or PTO text.")
@FILE
@click.option(
    "--form",
    type=click.Choice(["pypto", "pto"]),
    default="pypto",
    show_default=True,
    help="PyPTO's text, or the PTO MLIR text of the kernels.",
)
@click.option("--target", default="a2a3", show_default=True, help="a2a3, a5 or an alias.")
@click.option(
    "--assembler",
    default="0.61",
    show_default=True,
    metavar="VERSION",
    help="The PTOAS that reads the PTO text; NZ tensors need 0.61.",
)
def emit(file: str, form: str, target: str, assembler: str) -> None:
    """Print the cheapest tile program that the rules find for FILE, without its account."""
    from pypto_egg.emit.pto_text import pto_text
    from pypto_egg.pipeline import optimize as run

    lowering = run(read_program(file), target=target)
    text = lowering.text if form == "pypto" else pto_text(lowering.program, assembler=assembler)
    click.echo(text, nl=False)


def _limits(nodes: int | None, iterations: int | None, seconds: float | None) -> Limits:
    from pypto_egg.egraph.saturate import Limits

    usual = Limits()
    return Limits(
        nodes=usual.nodes if nodes is None else nodes,
        iterations=usual.iterations if iterations is None else iterations,
        seconds=usual.seconds if seconds is None else seconds,
    )
