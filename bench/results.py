"""A run's results as an object: `results("alignment-1")`, shown by notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_egg.bench.schema import Row
from pypto_egg.bench.store import LAST, Run, Store

if TYPE_CHECKING:
    from pypto_egg.bench.plots.drawing import Plot

FORMATS = ("png", "svg")


@dataclass(frozen=True, repr=False)
class Results:
    """A run and its rows, by the columns of `schema.TABLES`."""

    run: Run
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        return f"<Results of {self.run.name}: {len(self.rows):,} rows, {self.run.state}>"

    def _repr_html_(self) -> str:
        """How a notebook shows it: some plots and the first rows."""
        from pypto_egg.bench.report_page import results_cell

        return results_cell(self.run, self.rows)

    @property
    def plots(self) -> tuple[Plot, ...]:
        """The plots of the run."""
        from pypto_egg.bench.plots.catalogue import plots

        return plots(self.run.command, self.rows)

    def to_html(self) -> str:
        """The run as one self-contained page; the same bytes for the same run."""
        from pypto_egg.bench.report_page import report_page

        return report_page(self.run, self.rows)

    def save_plots(self, folder: str | Path, formats: tuple[str, ...] = FORMATS) -> list[Path]:
        """Write each plot as files for papers, and return their paths.

        Args:
            formats: "png", "svg" or "pdf".

        Raises:
            OptionError: there is no such format, or the folder cannot be written.
        """
        from pypto_egg.bench.plots.render import save_plots

        return save_plots(self.plots, Path(folder), formats)


def results(name: str = LAST, db: str | Path | None = None) -> Results:
    """The results of a run in a file, by default the user's own.

    Args:
        name: of the run, or the beginning of one; "last" is the newest.

    Raises:
        OptionError: there is no such run, or the file cannot be read.
    """
    store = Store(db)
    run = store.run(name)
    return Results(run, tuple(store.rows(run)))
