"""The account of a lowering as plain data, for JSON; docs/record.md describes the fields."""

from __future__ import annotations

from typing import Any

from pypto_egg import __version__
from pypto_egg.extract.cost.model import CostVector
from pypto_egg.lowering import Decision, FunctionReport, Lowering
from pypto_egg.report.differences import boxes, differences
from pypto_egg.report.packing import packing_record

SCHEMA = 1


def record(lowering: Lowering) -> dict[str, Any]:
    """Dicts, lists, strings, numbers, booleans and None, with the same keys for every lowering.

    Everything but `seconds` is the same for the same input.
    """
    changes = differences(lowering)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "target": lowering.target,
        "cost_model": lowering.cost_model,
        "cycles": lowering.cycles,
        "program": lowering.text,
        "cost": _cost(lowering.cost),
        "baseline": {
            "cycles": lowering.baseline.cycles if lowering.baseline is not None else None,
            "cost": _cost(lowering.baseline.cost) if lowering.baseline is not None else None,
            "refused": lowering.baseline_refused or None,
        },
        "fallback": lowering.fallback or None,
        "nz": packing_record(lowering),
        "verification": _verification(lowering),
        "functions": [_function(report, changes) for report in lowering.functions],
    }


def _cost(cost: CostVector) -> dict[str, float]:
    return {**cost.by_pipe(), "total": cost.total}


def _verification(lowering: Lowering) -> dict[str, Any]:
    found = lowering.comparison
    return {
        "verified": lowering.verified,
        "how": lowering.verification,
        "compared": found.compared if found is not None else None,
        "max_abs_error": found.max_abs_error if found is not None else None,
        "max_rel_error": found.max_rel_error if found is not None else None,
        "tolerance": found.tolerance if found is not None else None,
    }


def _function(report: FunctionReport, changes: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    saturation = report.saturation
    return {
        "name": report.name,
        "cycles": report.cycles,
        "cost": _cost(report.cost),
        "roofline": {"pipe": report.busiest[0], "cycles": report.busiest[1]},
        "padded": list(boxes(report.account)),
        "unlike_reference": list(changes.get(report.name, ())),
        "decisions": [_decision(decision) for decision in report.decisions],
        "peak_bytes": dict(sorted(report.peak_bytes.items())),
        "extraction": {"status": report.extraction, "bound": report.bound},
        "saturation": {
            "stop": saturation.stop.value,
            "iterations": saturation.iterations,
            "nodes": saturation.nodes,
            "matches": {name: n for name, n in sorted(saturation.matches.items()) if n},
        },
        "tile_graph": {"classes": report.classes, "nodes": report.nodes},
        "seconds": dict(report.seconds),
    }


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "value": decision.value,
        "options": [
            {
                "what": option.what,
                "status": option.status,
                "cost": _cost(option.cost),
                "total": option.total,
                "why": option.why,
            }
            for option in decision.options
        ],
    }
