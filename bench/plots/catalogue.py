"""The plots of each command of the harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pypto_egg.bench.plots.alignment import alignment_plots
from pypto_egg.bench.plots.baseline import baseline_plots
from pypto_egg.bench.plots.drawing import Plot
from pypto_egg.bench.plots.extraction import extraction_plots
from pypto_egg.bench.plots.models import models_plots
from pypto_egg.bench.plots.scaling import scaling_plots
from pypto_egg.bench.schema import Row

_PLOTS: Mapping[str, Callable[[Sequence[Row]], tuple[Plot, ...]]] = {
    "alignment": alignment_plots,
    "models": models_plots,
    "baseline": baseline_plots,
    "scaling": scaling_plots,
    "extraction": extraction_plots,
}


def plots(command: str, rows: Sequence[Row]) -> tuple[Plot, ...]:
    """The plots of a run's rows; none where there are no rows."""
    return _PLOTS[command](rows) if rows else ()
