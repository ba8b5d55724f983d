"""The whole account of every kernel in `bench/kernels`, on both targets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pypto_egg

KERNELS = sorted((Path(__file__).resolve().parents[2] / "bench" / "kernels").glob("*.py"))


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_the_account_of_a_kernel_adds_up(path: Path, target: str) -> None:
    lowering = pypto_egg.optimize(path, target=target, verify=False)
    text, made = lowering.explain(), json.loads(lowering.to_json())
    assert made["cycles"] == pytest.approx(sum(f["cycles"] for f in made["functions"]))
    assert made["cost"]["total"] == pytest.approx(lowering.cycles)
    assert f"{lowering.cycles:,.0f}" in text
    for function in made["functions"]:
        assert f"\nfunction {function['name']}\n" in text
        for decision in function["decisions"]:
            assert f"    {decision['value']}\n" in text
            chosen = [o for o in decision["options"] if o["status"] == "chosen"]
            assert len(chosen) <= 1
            for option in chosen:
                assert option["total"] in (None, pytest.approx(function["cycles"]))
        for line in (*function["padded"], *function["unlike_reference"]):
            assert f"    {line}\n" in text
