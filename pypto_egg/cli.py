"""The `pypto-egg` command.

Commands import what they need when they run, so that `--help` and shell completion stay instant.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from traceback import print_exception
from typing import IO, Any, NoReturn

import click

from pypto_egg import __version__
from pypto_egg.cli_bench import bench
from pypto_egg.cli_extract import extract
from pypto_egg.cli_l0 import l0
from pypto_egg.cli_lowering import emit, lower, optimize
from pypto_egg.cli_report import plot, report
from pypto_egg.cli_streams import FILE, read_program
from pypto_egg.errors import PyptoEggError

FAULT = 70
INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command with the process' arguments and exit with its code.

    Codes: 0 done, 1 an error in the input or findings of a verifier, 2 wrong usage, 70 a fault of
    pypto-egg itself, 130 interrupted.
    """
    try:
        code = command.main(standalone_mode=False)
        sys.stdout.flush()
    except PyptoEggError as error:
        click.echo(f"error: {error}", err=True)
        code = 1
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader went away, as `| head` does; the interpreter's own flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


class Fault(click.ClickException):
    """What is shown of an exception that nothing in the input accounts for."""

    exit_code = FAULT

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(
            f"error: {self.message}\nthis is a fault of pypto-egg; please report it with the "
            "program that caused it\nhint: `pypto-egg --traceback COMMAND ...` prints where it is",
            file=file,
            err=file is None,
        )


_TOLD = (PyptoEggError, click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError)


class Commands(click.Group):
    """The commands; an unexpected exception of one becomes a `Fault`."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except _TOLD:
            raise
        except Exception as error:
            # The outermost border: whatever was not foreseen is our fault, and is told as that.
            if ctx.params["traceback"]:
                print_exception(error)
            raise Fault(f"{type(error).__name__}: {error}") from error


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="pypto-egg")
@click.option("--traceback", is_flag=True, help="Print where a fault of pypto-egg happened.")
def command(traceback: bool) -> None:
    """Optimize PyPTO programs: tensor programs in, the cheapest tile program out.

    FILE holds PyPTO's Python-syntax text; "-" is standard input.
    """


@command.command(short_help="Run the verifiers on FILE.")
@FILE
@click.option(
    "--stage",
    type=click.Choice(["tensor", "tile"]),
    default="tensor",
    show_default=True,
    help="Before lowering, or after it.",
)
@click.option(
    "--property",
    "names",
    multiple=True,
    metavar="NAME",
    help="Verify this property alone, SSAForm or GmStoreCoherence for example (repeatable).",
)
def verify(file: str, stage: str, names: tuple[str, ...]) -> None:
    """Run the verifiers on FILE and print what they find; exit with 1 if there is anything."""
    from pypto_egg.analysis.result_types import with_result_types
    from pypto_egg.analysis.window_versions import with_window_versions
    from pypto_egg.verify import property_named, verify_findings

    wanted = [property_named(name) for name in names] or None
    # The forms that lowering accepts beside SSA form, as it brings them into it.
    program = with_result_types(with_window_versions(read_program(file)))
    findings = verify_findings(program, stage, wanted)
    for finding in findings:
        click.echo(str(finding.error()))
    count = f"{len(findings)} finding{'s' if len(findings) != 1 else ''}"
    click.echo(f"{file}: {count if findings else 'no findings'} ({stage} stage)")
    if findings:
        raise click.exceptions.Exit(1)


@command.command("print", short_help="Print FILE in canonical form.")
@FILE
def print_(file: str) -> None:
    """Print FILE in the canonical form of PyPTO's printer."""
    from pypto_egg.text import print_program

    click.echo(print_program(read_program(file)), nl=False)


@command.command(short_help="Execute FILE on random inputs.")
@FILE
@click.option("--seed", default=0, show_default=True, help="Of the random inputs.")
@click.option("--function", metavar="NAME", help="What to run; by default the entry.")
@click.option("--symbol", multiple=True, metavar="NAME=N", help="The extent of a dynamic axis.")
def run(file: str, seed: int, function: str | None, symbol: tuple[str, ...]) -> None:
    """Execute FILE on random inputs and print a summary of what comes out."""
    from pypto_egg.interp import entry_function, random_inputs
    from pypto_egg.interp import run as execute
    from pypto_egg.report.outputs import inputs_table, outputs_table
    from pypto_egg.report.table import show

    program = read_program(file)
    entry = entry_function(program, function)
    inputs = random_inputs(entry, seed=seed, symbols=_symbols(symbol), program=program)
    outputs = execute(program, inputs, function=entry.name)
    click.echo(f"{entry.name}, seed {seed}")
    show(inputs_table(inputs), sys.stdout)
    click.echo()
    show(outputs_table(outputs), sys.stdout)


@command.command(short_help="List operators: operands, keywords, unit.")
@click.argument("name", required=False)
def ops(name: str | None) -> None:
    """List the operators with the unit that runs them, or what is known of those called NAME."""
    from pypto_egg.report.operators import operators_text

    click.echo(operators_text(name), nl=False)


@command.command(short_help="List rulesets, or rules with their reasons.")
@click.argument("names", nargs=-1, metavar="[RULESET]...")
def rules(names: tuple[str, ...]) -> None:
    """List the rulesets, or the rules of those named, each with the reason why it holds."""
    from pypto_egg.report.rules import rules_text

    click.echo(rules_text(names), nl=False)


@command.command(short_help="List the targets.")
def targets() -> None:
    """List the targets with their clocks and on-chip memory."""
    from pypto_egg.report.table import show
    from pypto_egg.report.targets import targets_table

    show(targets_table(), sys.stdout)


@command.command(short_help="List requirement ids and their tests.")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tests", is_flag=True, help="Print the tests of each requirement too.")
def requirements(ids: tuple[str, ...], tests: bool) -> None:
    """List the requirement ids, what they say, and how many tests carry them (in a checkout)."""
    from pypto_egg.report.requirements import requirements_text

    click.echo(requirements_text(ids, tests=tests), nl=False)


@command.command(short_help="Try random programs.")
@click.option("--count", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first.")
@click.option(
    "--size",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Steps of an InCore function.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--target", multiple=True, help="Default: a2a3 and a5 in turns.")
@click.option(
    "--out",
    default="fuzz_failures",
    show_default=True,
    metavar="DIR",
    help="Where failed programs are saved.",
)
def fuzz(count: int, seed: int, size: int, jobs: int, target: tuple[str, ...], out: str) -> None:
    """Lower random programs both ways, execute and compare them; exit with 1 on a difference.

    A program that is refused with a stable code counts as refused. Everything else, such as an
    inequality or another exception, is saved with its seed.
    """
    from rich.console import Console

    from pypto_egg.bench.fuzz import fuzz as run
    from pypto_egg.bench.fuzz import report

    targets = target or ("a2a3", "a5")
    console = Console(stderr=True)
    summary = run(count, seed=seed, size=size, targets=targets, jobs=jobs, console=console)
    if report(summary, Path(out), sys.stdout):
        raise click.exceptions.Exit(1)


for subcommand in (optimize, lower, emit, extract, l0, bench):
    command.add_command(subcommand)
bench.add_command(report)
bench.add_command(plot)


def _symbols(given: tuple[str, ...]) -> dict[str, int]:
    symbols = {}
    for text in given:
        name, _, extent = text.partition("=")
        if not name or not extent.isdecimal() or int(extent) < 1:
            raise click.BadParameter(
                f"{text!r} is not NAME=N with a positive N", param_hint="--symbol"
            )
        symbols[name] = int(extent)
    return symbols
