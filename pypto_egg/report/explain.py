"""The account of a lowering as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg.ir.enums import Mem
from pypto_egg.lowering import Decision, FunctionReport, Lowering, Option
from pypto_egg.report.differences import boxes, differences
from pypto_egg.report.packing import packing_lines
from pypto_egg.report.summary import NOTHING, statistics, verified
from pypto_egg.report.table import Table, cost_table, plain
from pypto_egg.report.words import cycles, fold_words, roofline_words

_BUSIEST = 5


def explain(lowering: Lowering) -> str:
    """Cost by pipe, decisions with runners-up and reasons, memory, saturation and times.

    Ends with a line break. Two runs on the same program differ in the times only.
    """
    lines = [f"target {lowering.target}, cost model {lowering.cost_model}"]
    if not lowering.functions:
        return "\n".join((*lines, "", NOTHING, "", verified(lowering))) + "\n"
    lines += [f"total: {fold_words(lowering.functions[0].account.model)}", ""]
    lines += plain(cost_table(lowering)).splitlines()
    if lowering.fallback:
        lines += ["", f"this is the reference lowering: {lowering.fallback}"]
    if lowering.baseline_refused:
        lines += ["", f"the reference lowering refuses this program: {lowering.baseline_refused}"]
    changes = differences(lowering)
    for report in lowering.functions:
        lines += ["", f"function {report.name}"]
        if len(lowering.functions) > 1:
            lines += ["", *_indented(_pipes(report))]
        lines += _section("roofline", (roofline_words(report),))
        lines += _section("padded", boxes(report.account))
        lines += _section("unlike the reference lowering", changes.get(report.name, ()))
        lines += _section("decisions", tuple(_decisions(report.decisions)))
        lines += _section("memory at the worst place", tuple(_memory(report)))
        lines += _section("search", tuple(_search(report)))
    packing = packing_lines(lowering)
    if packing:
        lines += ["", "NZ order of cube operands:", *(f"  {line}" for line in packing)]
    lines += ["", verified(lowering)]
    return "\n".join(lines) + "\n"


def _section(title: str, lines: tuple[str, ...]) -> list[str]:
    return ["", f"  {title}:", *(f"    {line}" for line in lines)] if lines else []


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _pipes(report: FunctionReport) -> str:
    rows = [(pipe, cycles(value)) for pipe, value in report.cost.by_pipe().items() if value]
    return plain(Table(("pipe", "cycles"), (*rows, ("total", cycles(report.cycles)))))


def _decisions(decisions: tuple[Decision, ...]) -> Iterator[str]:
    for decision in decisions:
        yield decision.value
        for option in decision.options:
            yield f"  {option.status:<10} {_option(option)}"


def _option(option: Option) -> str:
    total = f"  [{cycles(option.total)} cycles]" if option.total is not None else ""
    why = f"  {option.why}" if option.why else ""
    return f"{option.what}{total}{why}"


def _memory(report: FunctionReport) -> Iterator[str]:
    for space, used in sorted(report.peak_bytes.items()):
        limit = report.account.target.capacity_bytes(Mem(space))
        share = f" ({100 * used / limit:.0f} %)" if limit else ""
        yield f"{space}: {used:,} of {limit:,} bytes{share}"


def _search(report: FunctionReport) -> Iterator[str]:
    yield statistics(report)
    busiest = sorted(report.saturation.matches.items(), key=lambda pair: (-pair[1], pair[0]))
    named = ", ".join(f"{name} {count}" for name, count in busiest[:_BUSIEST] if count)
    if named:
        yield f"busiest rules, matches: {named}"
    yield f"tile graph: {report.classes} e-classes, {report.nodes} e-nodes"
    yield "seconds: " + ", ".join(f"{stage} {s:.3f}" for stage, s in report.seconds.items())
