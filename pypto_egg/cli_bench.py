"""`pypto-egg bench`: the harness' commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_egg.cli_target import OVERRIDES
from pypto_egg.errors import OptionError

if TYPE_CHECKING:
    from pypto_egg.bench.store import Run, Store

_FORMATS = ("csv", "json", "markdown")
_RUN_OPTIONS = ("db", "csv", "json", "markdown", "jobs", "executor", "resume", "quiet")
_DB = click.option(
    "--db",
    metavar="FILE",
    help="DuckDB file of the results.  [default: $PYPTO_EGG_BENCH, or in the user's cache]",
)


@click.group(short_help="Compare alignments and cost models.")
def bench() -> None:
    """Compare alignments, cost models, extractors and programs of growing size.

    Every row goes into a DuckDB file as soon as it is there. A run that was interrupted goes on
    with `--resume RUN`; `show` prints a run again, `diff` compares two.
    """


def _formats(callback: Callable[..., None]) -> Callable[..., None]:
    for name in reversed(_FORMATS):
        text = f"Write all rows as {name.upper() if name != 'markdown' else 'Markdown'}."
        callback = click.option(f"--{name}", metavar="OUT", help=f"{text} - is stdout.")(callback)
    return _DB(callback)


def _of_a_run(callback: Callable[..., None]) -> Callable[..., None]:
    """The options that every command has which measures something."""
    options = (
        click.option(
            "--jobs",
            type=click.IntRange(min=1),
            help="Worker processes.  [default: one for each core]",
        ),
        click.option(
            "--executor",
            type=click.Choice(["local", "ray"]),
            default="local",
            show_default=True,
            help="Where tasks run; ray needs pypto-egg[ray], RAY_ADDRESS names a cluster.",
        ),
        click.option("--resume", metavar="RUN", help="Go on with an interrupted run."),
        click.option("-q", "--quiet", is_flag=True, help="No progress and no tables."),
    )
    for option in reversed(options):
        callback = option(callback)
    return _formats(callback)


_MODELS = click.option(
    "--cost-model",
    metavar="NAMES",
    help="Cost models, with commas.  [default: all that do not simulate whole kernels]",
)
_TARGETS = click.option(
    "--target", default="a2a3", show_default=True, metavar="NAMES", help="Targets, with commas."
)
_SHAPES = click.option(
    "--shapes",
    metavar="SHAPES",
    help="MxNxK,..., names of workloads, or a CSV file.  [default: all workloads]",
)


@bench.command(short_help="What each alignment of M and N costs.")
@_SHAPES
@click.option("--m", metavar="LIST", help="Alignments of M.  [default: 16,32,64,128,pow2,full]")
@click.option("--n", metavar="LIST", help="Alignments of N; as for M.")
@click.option("--layout", metavar="LIST", help="nd, nz or both.  [default: each workload's own]")
@click.option("--dtype", metavar="LIST", help="Element types.  [default: each workload's own]")
@_TARGETS
@_MODELS
@OVERRIDES
@_of_a_run
@click.pass_context
def alignment(ctx: click.Context, **given: Any) -> None:
    """Price every alignment of M and N of each product under each cost model.

    Without --shapes the whole table of workloads is run.
    """

    def arguments() -> dict[str, Any]:
        from pypto_egg.bench.alignment import LAYOUTS, choices
        from pypto_egg.bench.workloads import shapes

        sizes = shapes(given["shapes"])
        if given["dtype"]:
            sizes = tuple(
                one.with_dtype(dtype) for one in sizes for dtype in given["dtype"].split(",")
            )
        return {
            "workloads": [one.to_json() for one in sizes],
            "layouts": _listed(given["layout"], "--layout", LAYOUTS),
            "m": choices(given["m"]),
            "n": choices(given["n"]),
            **_targets_and_models(given),
        }

    _measure(ctx, "alignment", arguments, given)


_PROGRAMS = click.option(
    "--programs",
    metavar="NAMES",
    help="Kernels, workloads, MxNxK or files, with commas.  [default: all kernels and products]",
)


@bench.command(short_help="What each cost model chooses, and what the others say.")
@_PROGRAMS
@click.option(
    "--measurements",
    metavar="FILE",
    help='CSV file of measured kernels, as `calibrate` reads it; "published" for those of a2a3.',
)
@_TARGETS
@_MODELS
@OVERRIDES
@_of_a_run
@click.pass_context
def models(ctx: click.Context, **given: Any) -> None:
    """Lower each program by each cost model, and price every choice by every model.

    Prints regrets, rank correlations, the greatest disagreements and errors against measurements.
    """

    def arguments() -> dict[str, Any]:
        from pypto_egg.bench.inputs import measurements, sources
        from pypto_egg.bench.models import arguments_of

        measured = measurements(given["measurements"])
        return {
            **arguments_of(sources(given["programs"]), measured),
            **_targets_and_models(given),
        }

    _measure(ctx, "models", arguments, given)


@bench.command(short_help="optimize against PyPTO's own lowering.")
@_PROGRAMS
@_TARGETS
@_MODELS
@OVERRIDES
@_of_a_run
@click.pass_context
def baseline(ctx: click.Context, **given: Any) -> None:
    """Compare what optimize makes of each program with the reference lowering.

    Exits with 70 if it is dearer anywhere, which is a fault of pypto-egg.
    """

    def arguments() -> dict[str, Any]:
        from pypto_egg.bench.baseline import arguments_of
        from pypto_egg.bench.inputs import sources

        return {**arguments_of(sources(given["programs"])), **_targets_and_models(given)}

    run, store = _measure(ctx, "baseline", arguments, given)
    from pypto_egg.bench.baseline import failures

    lost = failures(store.rows(run))
    for line in lost:
        click.echo(f"loss: {line}", err=True)
    if lost:
        raise click.exceptions.Exit(70)


@bench.command(short_help="Time and memory of growing programs.")
@click.option("--sizes", metavar="LIST", help="Sizes, with commas.  [default: 5,10,25,50,100]")
@click.option("--families", metavar="LIST", help="layers, shared or both.  [default: both]")
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@_TARGETS
@click.option("--cost-model", default="mte2_mad", show_default=True, metavar="NAMES")
@OVERRIDES
@_of_a_run
@click.pass_context
def scaling(ctx: click.Context, **given: Any) -> None:
    """Measure how the stages of optimize grow with the program.

    Each size gets a process of its own, one after the other.
    """

    def arguments() -> dict[str, Any]:
        from pypto_egg.bench.scaling import FAMILIES
        from pypto_egg.bench.scaling import sizes as sizes_of

        known = tuple(FAMILIES)
        return {
            "families": _listed(given["families"], "--families", known) or list(known),
            "sizes": sizes_of(given["sizes"]),
            "repeats": given["repeats"],
            **_targets_and_models(given),
        }

    _measure(ctx, "scaling", arguments, given)


@bench.command(short_help="All extractors on a folder of e-graphs.")
@click.argument("folder", metavar="DIR", required=False)
@click.option("--extractors", metavar="LIST", help="Extractors, with commas.  [default: all]")
@click.option("--deadline", type=float, default=60.0, show_default=True, help="Seconds for each.")
@_of_a_run
@click.pass_context
def extraction(ctx: click.Context, **given: Any) -> None:
    """Run all extractors on the e-graphs in DIR, files in egraph-serialize JSON."""

    def arguments() -> dict[str, Any]:
        from pypto_egg.bench.extraction import arguments_of, known_extractors

        if given["folder"] is None:
            raise click.UsageError("name a folder of e-graphs, or --resume a run")
        if not given["deadline"] > 0:
            raise click.BadParameter("it is above 0", param_hint="--deadline")
        names = known_extractors(given["extractors"])
        return arguments_of(given["folder"], names, given["deadline"])

    _measure(ctx, "extraction", arguments, given)


@bench.command(short_help="List the runs in the file.")
@_DB
def runs(db: str | None) -> None:
    """List the runs in the file, oldest first."""
    from pypto_egg.bench.store import Store
    from pypto_egg.report.table import Table, show

    store = Store(db)
    found = [
        (run.name, run.state, f"{run.done}/{run.tasks}", str(run.rows),
         f"{run.started:%Y-%m-%d %H:%M}", run.revision)
        for run in store.runs()
    ]  # fmt: skip
    if not found:
        click.echo(f"no runs in {store.path}")
        return
    header = ("run", "state", "tasks", "rows", "started (UTC)", "revision")
    show(Table(header, tuple(found)), sys.stdout)


@bench.command(short_help="Print a run again.")
@click.argument("run")
@_formats
def show(run: str, db: str | None, **formats: str | None) -> None:
    """Print the tables of RUN again, or write its rows; "last" is the newest run."""
    from pypto_egg.bench.store import Store

    store = Store(db)
    _tell(store, store.run(run), formats, quiet=False)


@bench.command(short_help="Compare two runs row by row.")
@click.argument("before")
@click.argument("after")
@click.option("--measured", is_flag=True, help="Compare times and memory, too.")
@click.option("--all", "everything", is_flag=True, help="Print all changes, not the first 20.")
@_DB
def diff(before: str, after: str, measured: bool, everything: bool, db: str | None) -> None:
    """Print what differs between two runs of one command; exit with 1 if anything does."""
    from pypto_egg.bench.diff import changes, changes_table
    from pypto_egg.bench.output import write_tables
    from pypto_egg.bench.store import Store

    store = Store(db)
    old, new = store.run(before), store.run(after)
    found = changes((old, store.rows(old)), (new, store.rows(new)), measured=measured)
    click.echo(f"{old.name} -> {new.name}: {len(found)} differences")
    if found:
        write_tables([changes_table(found, None if everything else 20)], sys.stdout)
        raise click.exceptions.Exit(1)


# --- shared by the commands ----------------------------------------------------------------------


def _measure(
    ctx: click.Context,
    command: str,
    arguments: Callable[[], Mapping[str, Any]],
    given: Mapping[str, Any],
) -> tuple[Run, Store]:
    """Run a command or go on with a run of it, and tell what came out."""
    from rich.console import Console

    from pypto_egg.bench.executors import cores
    from pypto_egg.bench.store import Store
    from pypto_egg.bench.sweep import How, resume, start

    _check_streams(given)
    store = Store(given["db"])
    console = None if given["quiet"] else Console(stderr=True)
    how = How(given["executor"], given["jobs"] or cores(), console)
    try:
        if given["resume"] is None:
            run = start(store, command, arguments(), how)
        else:
            run = resume(store, _resumed(ctx, store, command, given["resume"]), how)
    except KeyboardInterrupt:
        name = store.run("last").name if given["resume"] is None else given["resume"]
        click.echo(f"interrupted; go on with: pypto-egg bench {command} --resume {name}", err=True)
        raise
    _tell(store, run, given, quiet=given["quiet"])
    return run, store


def _resumed(ctx: click.Context, store: Store, command: str, name: str) -> Run:
    run = store.run(name)
    if run.command != command:
        raise OptionError(
            f"{run.name} is a run of another command",
            hint=f"pypto-egg bench {run.command} --resume {run.name}",
        )
    for option in ctx.params:
        source = ctx.get_parameter_source(option)
        if option not in _RUN_OPTIONS and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--resume takes '{option}' from the run: leave it out")
    return run


def _tell(store: Store, run: Run, formats: Mapping[str, Any], *, quiet: bool) -> None:
    """Write the rows as they are wanted; the tables to read unless stdout has something else."""
    from importlib import import_module

    from pypto_egg.bench import output

    rows = store.rows(run)
    for name in _FORMATS:
        path = formats.get(name)
        if path is not None:
            _write(path, getattr(output, f"to_{name}")(run, rows))
    if quiet or "-" in [formats.get(name) for name in _FORMATS]:
        return
    tables = import_module(f"pypto_egg.bench.{run.command}").summary(rows)
    output.write_tables(tables, sys.stdout)
    state = "" if run.state == "finished" else f" ({run.state}, {run.done} of {run.tasks} tasks)"
    click.echo(f"\n{run.name}: {run.rows} rows{state}")


def _write(path: str, text: str) -> None:
    if path == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None


def _check_streams(given: Mapping[str, Any]) -> None:
    if [given.get(name) for name in _FORMATS].count("-") > 1:
        raise click.UsageError("two of --csv, --json and --markdown would write to stdout")


def _targets_and_models(given: Mapping[str, Any]) -> dict[str, Any]:
    """Targets, cost models and changed constants, all of them known."""
    from pypto_egg.extract.cost import cost_model, cost_model_names
    from pypto_egg.target import load_overrides, load_target

    overrides = load_overrides(given["constants"]) if given.get("constants") else {}
    targets = [load_target(name).name for name in given["target"].split(",")]
    for name in targets:
        load_target(name).with_(**overrides)
    # A simulation of a large kernel takes seconds, and there is one for every choice.
    usual = [name for name in cost_model_names() if cost_model(name).objective != "simulated"]
    models = given["cost_model"].split(",") if given["cost_model"] else usual
    for model in models:
        cost_model(model)
    return {
        "targets": list(dict.fromkeys(targets)),
        "models": list(dict.fromkeys(models)),
        "overrides": overrides,
    }


def _listed(text: str | None, option: str, known: tuple[str, ...]) -> list[str]:
    found = [part.strip() for part in text.split(",")] if text else []
    for one in found:
        if one not in known:
            raise OptionError(f"{option}: no '{one}'", hint=f"known: {', '.join(known)}")
    return list(dict.fromkeys(found))
