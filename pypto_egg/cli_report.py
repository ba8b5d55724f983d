"""`pypto-egg bench report` and `bench plot`: runs as pages, and as plots for papers."""

from __future__ import annotations

import click

from pypto_egg.cli_streams import STANDARD, write_text

_RUN = click.argument("run", default="last")
_DB = click.option(
    "--db", metavar="FILE", help="DuckDB file of the results.  [default: in the user's cache]"
)


@click.command(short_help="Write a run as a web page.")
@_RUN
@click.option("-o", "--output", metavar="OUT", help="The page.  [default: RUN.html]")
@_DB
def report(run: str, output: str | None, db: str | None) -> None:
    """Write RUN, by default the newest one, as one page with plots and tables that sort.

    The page works offline. "-" for OUT is standard output.
    """
    from pypto_egg.bench.results import results

    found = results(run, db)
    path = output if output is not None else f"{found.run.name}.html"
    write_text(path, found.to_html())
    if path != STANDARD:
        click.echo(f"{found.run.name}: {found.run.rows} rows in {path}")


@click.command(short_help="Write a run's plots as files.")
@_RUN
@click.option(
    "-o", "--output", default="plots", show_default=True, metavar="DIR", help="Where they go."
)
@click.option(
    "--format",
    "formats",
    default="png,svg",
    show_default=True,
    metavar="LIST",
    help="png, svg, pdf, with commas.",
)
@_DB
def plot(run: str, output: str, formats: str, db: str | None) -> None:
    """Write the plots of RUN, by default the newest one, as files for papers."""
    from pypto_egg.bench.results import results

    names = tuple(dict.fromkeys(part.strip() for part in formats.split(",")))
    for path in results(run, db).save_plots(output, names):
        click.echo(str(path))
