"""Fitting a target's constants to measurements: `calibrate(csv, model, constants=[...])`.

The measurements are whole kernels: a CSV file with one row each. What the model says of a kernel is
compared with what was measured, as relative errors, and the constants are those of least squares.
Each row is also predicted from the others (leave-one-out).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pypto_egg.errors import OptionError
from pypto_egg.extract.cost.model import CostModel, KernelCost
from pypto_egg.extract.cost.model import cost_model as find_cost_model
from pypto_egg.extract.cost.simulate import kernel_of
from pypto_egg.target import Target, load_target
from pypto_egg.text import parse_file

TOTAL = "cycles"
_TEXT_COLUMNS = ("program", "function", "cores")
_START_SHARE = 0.01  # a constant that starts at 0 is scaled by this share of the median total
_STEP = 1e-3  # of the logarithm of a constant: beyond the rounding of whole-cycle durations


@dataclass(frozen=True, slots=True)
class Prediction:
    """One measured kernel, in cycles.

    Args:
        name: the program's file name.
        measured: what was measured.
        in_sample: what the model says with the constants fitted to all rows.
        out_of_sample: what it says with the constants fitted to all other rows; None if those
            have fewer numbers than there are constants.
    """

    name: str
    measured: float
    in_sample: float
    out_of_sample: float | None

    @property
    def error(self) -> float:
        """Relative error in sample."""
        return self.in_sample / self.measured - 1.0

    @property
    def error_out(self) -> float | None:
        """Relative error out of sample."""
        return None if self.out_of_sample is None else self.out_of_sample / self.measured - 1.0


@dataclass(frozen=True)
class Calibration:
    """Fitted constants and what they are worth.

    Args:
        target: the target with the fitted constants.
        constants: dotted key -> fitted value.
        start: dotted key -> the value before.
        predictions: one for each row of the measurements, in their order.
        undetermined: constants that no measurement depends on; they keep their value.
    """

    target: Target
    constants: Mapping[str, float]
    start: Mapping[str, float]
    predictions: tuple[Prediction, ...]
    undetermined: tuple[str, ...] = ()

    @property
    def worst_error(self) -> float:
        """The greatest relative error in sample, by size."""
        return max(abs(p.error) for p in self.predictions)

    @property
    def worst_error_out(self) -> float | None:
        """The greatest relative error out of sample, by size; None if a row has none."""
        errors = [p.error_out for p in self.predictions]
        known = [abs(error) for error in errors if error is not None]
        return max(known) if len(known) == len(errors) else None

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's, of predicted and measured cycles in sample; None if either is constant."""
        return _spearman([(p.in_sample, p.measured) for p in self.predictions])

    @property
    def rank_correlation_out(self) -> float | None:
        """Spearman's, out of sample."""
        pairs = [(p.out_of_sample, p.measured) for p in self.predictions]
        known = [(said, was) for said, was in pairs if said is not None]
        return _spearman(known) if len(known) == len(pairs) else None

    def to_toml(self) -> str:
        """The constants as `load_overrides` reads them, with the errors as comments."""
        lines = [f"# Fitted to {len(self.predictions)} measurements on {self.target.name}."]
        for p in self.predictions:
            out = "" if p.error_out is None else f", from the others {p.error_out:+.1%}"
            lines.append(f"# {p.name}: {p.measured:.0f} cycles, error {p.error:+.1%}{out}")
        section = None
        for key in sorted(self.constants, key=lambda key: key.rpartition(".")[::2]):
            at, _, name = key.rpartition(".")
            if at != section:
                lines += ["", f"[{at}]"]
                section = at
            lines.append(f"{name} = {self.constants[key]!r}")
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        """Write `to_toml()` to a file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")


@dataclass(frozen=True)
class _Row:
    """A measured kernel: what the model says of it, and the numbers to compare with."""

    name: str
    cost: KernelCost
    measured: Mapping[str, float]

    def errors(self, target: Target) -> list[float]:
        said = self.cost(target)
        return [said[column] / value - 1.0 for column, value in self.measured.items()]


def calibrate(
    measurements_csv: str | Path,
    model: str | CostModel,
    *,
    constants: Sequence[str],
    target: str | Target = "a2a3",
    prior_weight: float = 0.0,
) -> Calibration:
    """The constants that make a model's cycles of whole kernels agree best with measurements.

    Args:
        measurements_csv: columns `program` (a file with PyPTO text, relative to the CSV file) and
            `cycles`; if wanted, `function` (the kernel's name), `cores` (how many run it, 1) and
            busy cycles of any pipe that the model knows. A cell may be empty, `cycles` may not.
        model: a registered name, or a CostModel; its `kernel_cost` is what is fitted.
        constants: dotted keys of the target's numbers, as `Target.numbers` lists them.
        target: where the fit starts.
        prior_weight: how much the start is worth where the measurements say little: changing a
            constant by a factor of e counts as an error of this size. 0: nothing.

    Raises:
        OptionError: the file or a column cannot be used, a constant is not known or is a count, or
            there are fewer numbers than constants.
        PyptoEggError: a program cannot be read or has no price.
    """
    chip = load_target(target) if isinstance(target, str) else target
    rows = _read(Path(measurements_csv), find_cost_model(model), chip)
    start = _start(constants, chip)
    if not rows:
        raise OptionError(f"{measurements_csv} has no measurements")
    _check_enough(rows, start, str(measurements_csv))
    if not 0 <= prior_weight < math.inf:
        raise OptionError(f"prior_weight is {prior_weight}; it must be finite and not negative")
    fitted, undetermined = _fit(rows, start, chip, prior_weight)
    best = chip.with_(**fitted)
    predictions = []
    for at, row in enumerate(rows):
        others = [*rows[:at], *rows[at + 1 :]]
        out = None
        if _numbers(others) >= len(start):
            without, _ = _fit(others, start, chip, prior_weight)
            out = row.cost(chip.with_(**without))[TOTAL]
        predictions.append(Prediction(row.name, row.measured[TOTAL], row.cost(best)[TOTAL], out))
    frozen = MappingProxyType(dict(fitted))
    return Calibration(best, frozen, MappingProxyType(start), tuple(predictions), undetermined)


def _fit(
    rows: Sequence[_Row], start: Mapping[str, float], chip: Target, prior_weight: float
) -> tuple[dict[str, float], tuple[str, ...]]:
    """(constants of the least sum of squared relative errors, those that do not matter).

    A constant is fitted by its logarithm, so that it stays positive; one that starts at 0 by its
    square root, and without a prior.
    """
    import numpy as np
    from scipy.optimize import least_squares

    keys = list(start)
    scale = _START_SHARE * sorted(row.measured[TOTAL] for row in rows)[len(rows) // 2]
    weights = [prior_weight if start[key] else 0.0 for key in keys]

    def value(key: str, x: float) -> float:
        return start[key] * math.exp(x) if start[key] else scale * x * x

    def at(xs: Sequence[float]) -> dict[str, float]:
        return {key: value(key, float(x)) for key, x in zip(keys, xs, strict=True)}

    def errors(xs: Sequence[float]) -> list[float]:
        there = chip.with_(**at(xs))
        return [error for row in rows for error in row.errors(there)]

    def residuals(xs: Sequence[float]) -> list[float]:
        return [*errors(xs), *(w * float(x) for w, x in zip(weights, xs, strict=True))]

    begin = [0.0 if start[key] else 0.1 for key in keys]
    jac = _jacobian(residuals)
    found = least_squares(residuals, begin, jac=jac, xtol=1e-4, ftol=1e-6, gtol=1e-9)
    reach = np.linalg.norm(found.jac[: _numbers(rows)], axis=0)
    idle = tuple(key for key, much in zip(keys, reach, strict=True) if much < 1e-9)
    return {key: start[key] if key in idle else v for key, v in at(found.x).items()}, idle


def _jacobian(
    errors: Callable[[Sequence[float]], list[float]],
) -> Callable[[Sequence[float]], list[list[float]]]:
    """Forward differences with a step that durations cut to whole cycles can show."""

    def jacobian(xs: Sequence[float]) -> list[list[float]]:
        here = errors(xs)
        columns = []
        for i in range(len(xs)):
            moved = [float(x) + (_STEP if i == j else 0.0) for j, x in enumerate(xs)]
            columns.append([(b - a) / _STEP for a, b in zip(here, errors(moved), strict=True)])
        return [list(row) for row in zip(*columns, strict=True)]

    return jacobian


def _start(constants: Sequence[str], chip: Target) -> dict[str, float]:
    known = chip.numbers()
    if not constants:
        raise OptionError("no constants to fit", hint="name some keys of Target.numbers()")
    for key in constants:
        if key not in known:
            chip.with_(**{key: 0.0})  # says which keys there are
        if isinstance(known[key], int):
            raise OptionError(
                f"'{key}' is a whole number of the hardware and cannot be fitted",
                hint="fit rates and cycles",
            )
    return {key: float(known[key]) for key in dict.fromkeys(constants)}


def _numbers(rows: Sequence[_Row]) -> int:
    return sum(len(row.measured) for row in rows)


def _check_enough(rows: Sequence[_Row], start: Mapping[str, float], where: str) -> None:
    if _numbers(rows) < len(start):
        raise OptionError(
            f"{where} has {_numbers(rows)} numbers, too few to fit {len(start)} constants",
            hint="measure more kernels, or fit fewer constants",
        )


def _read(path: Path, model: CostModel, chip: Target) -> list[_Row]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read measurements from {path}: {error}") from error
    reader = csv.DictReader(text.splitlines())
    columns = reader.fieldnames or []
    for needed in ("program", TOTAL):
        if needed not in columns:
            raise OptionError(f"{path} has no column '{needed}'")
    return [
        _row(cells, f"{path}, row {number}", path.parent, model, chip)
        for number, cells in enumerate(reader, start=1)
    ]


def _row(
    cells: Mapping[str, str | None], where: str, folder: Path, model: CostModel, chip: Target
) -> _Row:
    program = folder / (cells["program"] or "")
    if not program.is_file():
        raise OptionError(f"{where}: there is no program {program}")
    cores = _number(cells.get("cores") or "1", "cores", where)
    kernel = kernel_of(parse_file(program), cells.get("function") or None)
    cost = model.kernel_cost(kernel, chip, int(cores))
    known = cost(chip)
    measured = {}
    for column, cell in cells.items():
        if column is None or column in _TEXT_COLUMNS or (not cell and column != TOTAL):
            continue
        if column not in known:
            raise OptionError(
                f"{where}: the model says nothing of '{column}'",
                hint=f"its columns are: {', '.join(known)}",
            )
        measured[column] = _number(cell or "", column, where)
    return _Row(program.name, cost, measured)


def _number(cell: str, column: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise OptionError(f"{where}: '{column}' is {cell!r}; it must be a positive number")
    return value


def _spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    from scipy.stats import rankdata

    if len({one for one, _ in pairs}) < 2 or len({other for _, other in pairs}) < 2:
        return None
    one, other = (rankdata(side) for side in zip(*pairs, strict=True))
    one, other = one - one.mean(), other - other.mean()
    return float((one @ other) / math.sqrt((one @ one) * (other @ other)))
