"""`bench models`: what each cost model chooses, and what the others say of it.

For every program each model's choice is lowered, then priced by every model. Regret is how much
dearer a choice is than the pricing model's own choice. The tiles of L0 are left to PyPTO: each
model prices a product in its box as it would cut it. Measured kernels are priced as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from pypto_egg import optimize
from pypto_egg.bench.figures import Table, geometric_mean
from pypto_egg.bench.inputs import Measured, Source, digest
from pypto_egg.bench.pricing import Priced, by_pipe, priced
from pypto_egg.bench.schema import MODELS, Row
from pypto_egg.errors import PyptoEggError
from pypto_egg.extract.cost import cost_model
from pypto_egg.extract.cost.simulate import kernel_of
from pypto_egg.lowering import Lowering
from pypto_egg.target import Target, load_target
from pypto_egg.text import parse

GIVEN = "given"
"""Who chose a kernel that was measured."""
_MOST_TOLD = 10


def tasks(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One task for each program and target; one for each measured kernel."""
    same = {"models": arguments["models"], "overrides": arguments["overrides"]}
    return [
        {"program": program, "target": target, **same}
        for program in arguments["programs"]
        for target in arguments["targets"]
    ] + [
        {"measured": measured, "target": arguments["targets"][0], **same}
        for measured in arguments["measured"]
    ]


def arguments_of(programs: Iterable[Source], measured: Iterable[Measured]) -> dict[str, Any]:
    """What tasks need of programs and measured kernels."""
    return {
        "programs": [one.to_json() for one in programs],
        "measured": [asdict(one) for one in measured],
    }


def rows(task: Mapping[str, Any]) -> list[Row]:
    """A row for each pair of a choosing and a pricing model."""
    target = load_target(task["target"]).with_(**task["overrides"])
    if "measured" in task:
        return _measured_rows(Measured(**task["measured"]), task["models"], target)
    same = {"program": task["program"]["name"], **_of(target)}
    chosen: dict[str, Lowering] = {}
    refused: dict[str, str] = {}
    for model in task["models"]:
        try:
            chosen[model] = optimize(
                task["program"]["text"], target=target, cost_model=model, verify=False, l0="leave"
            )
        except PyptoEggError as error:
            refused[model] = f"{error.code}: {error.message}"
    made: list[Row] = []
    for judge in task["models"]:
        said = priced(list(chosen.values()), cost_model(judge), target)
        by_choice = dict(zip(chosen, said, strict=True))
        own = by_choice.get(judge)
        for model in task["models"]:
            if model in refused:
                values: dict[str, Any] = {"legal": False, "reason": refused[model]}
            else:
                values = _values(by_choice[model], own, chosen[model].text)
            made.append(_row(same, model, judge, values))
    order = {model: i for i, model in enumerate(task["models"])}
    return sorted(made, key=lambda row: order[str(row["chosen_by"])])


def _values(one: Priced, own: Priced | None, text: str) -> dict[str, Any]:
    values: dict[str, Any] = {"legal": True, "reason": "", "text_hash": digest(text)}
    values |= {f"{pipe}_cycles": cycles for pipe, cycles in one.cost.by_pipe().items()}
    values["cycles"] = one.cycles
    if own is not None:
        values["own_cycles"] = own.cycles
        values["regret"] = one.cycles / own.cycles - 1.0 if own.cycles else None
    return values


def _measured_rows(one: Measured, models: Sequence[str], target: Target) -> list[Row]:
    same = {"program": one.name, **_of(target)}
    kernel = kernel_of(parse(one.text, one.name), one.function or None)
    made = []
    for name in models:
        said = cost_model(name).kernel_cost(kernel, target, one.cores)(target)
        values = _values(Priced(said["cycles"], by_pipe(said)), None, one.text)
        values["measured_cycles"] = one.cycles
        values["error"] = said["cycles"] / one.cycles - 1.0
        made.append(_row(same, GIVEN, name, values))
    return made


def _of(target: Target) -> dict[str, Any]:
    return {"target": target.name, "constants": target.fingerprint()}


def _row(same: Mapping[str, Any], chosen_by: str, priced_by: str, values: Mapping[str, Any]) -> Row:
    names = {"chosen_by": chosen_by, "priced_by": priced_by}
    return {**dict.fromkeys(MODELS.names), **same, **names, **values}


# --- what is told of it --------------------------------------------------------------------------


def summary(rows: Sequence[Row]) -> list[Table]:
    """Regret, rank correlations, the greatest disagreements, and errors against measurements."""
    chosen = [row for row in rows if row["chosen_by"] != GIVEN and row["legal"]]
    tables = []
    if chosen:
        tables += [_regret_table(chosen), _rank_table(chosen)]
    if any(row["regret"] for row in chosen):
        tables.append(_disagreements(chosen))
    measured = [row for row in rows if row["chosen_by"] == GIVEN]
    if measured:
        tables.append(_measured_table(measured))
    refused = {(str(r["program"]), str(r["target"]), str(r["reason"])) for r in rows
               if not r["legal"]}  # fmt: skip
    if refused:
        lines = tuple(sorted(refused))
        tables.append(Table(("program", "target", "why"), lines, title="refused"))
    return tables


def regrets(rows: Sequence[Row]) -> dict[tuple[str, str], list[float]]:
    """(choosing model, pricing model) -> regret of each program."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        pair = str(row["chosen_by"]), str(row["priced_by"])
        if row["regret"] is not None:
            found.setdefault(pair, []).append(float(row["regret"]))
    return found


def _regret_table(rows: Sequence[Row]) -> Table:
    found = regrets(rows)
    choosing = list(dict.fromkeys(str(row["chosen_by"]) for row in rows))
    pricing = list(dict.fromkeys(str(row["priced_by"]) for row in rows))
    lines = []
    for chosen_by in choosing:
        cells = []
        for priced_by in pricing:
            values = found.get((chosen_by, priced_by), [])
            mean = geometric_mean(1.0 + value for value in values) - 1.0
            cells.append(f"{mean:+.2%} / {max(values):+.1%}" if values else "")
        lines.append((chosen_by, *cells))
    title = "regret, mean / greatest: a row's choices under a column's prices"
    return Table(("chosen by", *pricing), tuple(lines), title=title)


def rank_correlation(rows: Sequence[Row], one: str, other: str) -> tuple[float | None, int]:
    """Spearman's correlation of two models' cycles over all kernels that were chosen, and how many.

    None if there are fewer than three, or one model gives them all the same.
    """
    from scipy.stats import spearmanr

    cycles: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:
        if row["cycles"] is not None:
            key = str(row["program"]), str(row["target"]), str(row["text_hash"])
            cycles.setdefault(key, {})[str(row["priced_by"])] = float(row["cycles"])
    pairs = [(by[one], by[other]) for by in cycles.values() if one in by and other in by]
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    if len(pairs) < 3 or len(set(xs)) < 2 or len(set(ys)) < 2:
        return None, len(pairs)
    return float(spearmanr(xs, ys).statistic), len(pairs)


def _rank_table(rows: Sequence[Row]) -> Table:
    lines = []
    for one, other in combinations(dict.fromkeys(str(row["priced_by"]) for row in rows), 2):
        found, count = rank_correlation(rows, one, other)
        lines.append((one, other, "" if found is None else f"{found:.4f}", str(count)))
    title = "rank correlation (Spearman) of cycles over all kernels that were chosen"
    return Table(("model", "model", "rho", "kernels"), tuple(lines), title=title)


def _disagreements(rows: Sequence[Row]) -> Table:
    worst = sorted(
        (row for row in rows if row["regret"]), key=lambda row: -float(row["regret"] or 0)
    )
    lines = tuple(
        (str(row["program"]), str(row["target"]), str(row["chosen_by"]), str(row["priced_by"]),
         f"{row['cycles']:,.0f}", f"{row['own_cycles']:,.0f}", f"{row['regret']:+.2%}")
        for row in worst[:_MOST_TOLD]
    )  # fmt: skip
    header = ("program", "target", "chosen by", "priced by", "cycles", "own choice", "regret")
    return Table(header, lines, title="where they disagree most")


def _measured_table(rows: Sequence[Row]) -> Table:
    from scipy.stats import spearmanr

    lines = []
    for model in dict.fromkeys(str(row["priced_by"]) for row in rows):
        of_model = [row for row in rows if row["priced_by"] == model]
        errors = [float(row["error"] or 0.0) for row in of_model]
        said = [float(row["cycles"] or 0.0) for row in of_model]
        was = [float(row["measured_cycles"] or 0.0) for row in of_model]
        rho = f"{float(spearmanr(said, was).statistic):.3f}" if len(set(was)) > 2 else ""
        worst = max(errors, key=abs)
        mean = sum(map(abs, errors)) / len(errors)
        lines.append((model, str(len(errors)), f"{mean:.1%}", f"{worst:+.1%}", rho))
    header = ("model", "kernels", "mean error", "worst error", "rho")
    return Table(header, tuple(lines), title="against measurements")
