"""The advice on NZ order in words, and as plain data for JSON."""

from __future__ import annotations

from typing import Any

from pypto_egg.ir.expr import Expr
from pypto_egg.lowering import Lowering
from pypto_egg.nz.plan import NzAdvice, PackedParameter, Traffic
from pypto_egg.ops.site import show_dim, show_shape
from pypto_egg.report.words import SAME_CYCLES, cycles


def packing_lines(lowering: Lowering) -> tuple[str, ...]:
    """What packing each cube operand is worth, and what the host packs; empty for nz="keep"."""
    return (
        *(_advice(advice, lowering) for advice in lowering.nz_advice),
        *(f"to be packed by the host: {_plan(item)}" for item in lowering.packing),
    )


def _advice(advice: NzAdvice, lowering: Lowering) -> str:
    names = " and ".join(advice.operands)
    if advice.fractals is None:
        return f"{names} stays ND: {advice.refused}"
    worth = f"{names}: {_worth(advice)} ({_traffic(advice.rows, advice.fractals)}); {_pays(advice)}"
    if advice.packed:
        return f"{worth}; packed"
    return f"{worth}; left ND: {advice.refused}" if advice.refused else worth


def _worth(advice: NzAdvice) -> str:
    whole = f"of {cycles(advice.cycles)} cycles a run"
    if advice.saved >= SAME_CYCLES:
        return f"NZ order saves {cycles(advice.saved)} {whole}"
    if advice.saved <= -SAME_CYCLES:
        return f"NZ order costs {cycles(-advice.saved)} on top {whole}"
    return f"NZ order saves nothing {whole}"


def _traffic(rows: Traffic, fractals: Traffic) -> str:
    return f"{_runs(rows)} by rows, {_runs(fractals)} in NZ order"


def _runs(traffic: Traffic) -> str:
    return f"{traffic.runs:,} runs of {traffic.run_bytes:,.0f} bytes"


def _pays(advice: NzAdvice) -> str:
    if advice.pack_cycles is None:
        return "what packing takes depends on extents that are known at run time"
    once = f"packing once takes {cycles(advice.pack_cycles)} cycles"
    if advice.uses is None:
        return f"{once} and never pays"
    return f"{once} and pays after {advice.uses:,} run{'s' if advice.uses != 1 else ''}"


def _plan(item: PackedParameter) -> str:
    return (
        f"{item.parameter} of {item.function}, {item.dtype.name} {show_shape(item.shape)} to "
        f"{show_shape(item.blocked)}"
    )


def packing_record(lowering: Lowering) -> dict[str, Any]:
    """`packing` and `advice` as lists of objects; both empty for nz="keep"."""
    return {
        "packing": [_plan_record(item) for item in lowering.packing],
        "advice": [_advice_record(advice) for advice in lowering.nz_advice],
    }


def _plan_record(item: PackedParameter) -> dict[str, Any]:
    return {
        "function": item.function,
        "parameter": item.parameter,
        "dtype": item.dtype.name,
        "shape": [_dim(dim) for dim in item.shape],
        "blocked": [_dim(dim) for dim in item.blocked],
    }


def _dim(dim: int | Expr) -> int | str:
    return dim if isinstance(dim, int) else show_dim(dim)


def _advice_record(advice: NzAdvice) -> dict[str, Any]:
    return {
        "operands": list(advice.operands),
        "parameters": [_plan_record(item) for item in advice.parameters],
        "cycles": advice.cycles,
        "packed_cycles": advice.packed_cycles,
        "saved": advice.saved,
        "pack_cycles": advice.pack_cycles,
        "uses": advice.uses,
        "rows": _traffic_record(advice.rows),
        "fractals": None if advice.fractals is None else _traffic_record(advice.fractals),
        "packed": advice.packed,
        "refused": advice.refused or None,
    }


def _traffic_record(traffic: Traffic) -> dict[str, int]:
    return {"runs": traffic.runs, "bytes": traffic.size_bytes}
