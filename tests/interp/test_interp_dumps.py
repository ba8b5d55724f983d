"""Programs as PyPTO prints them at four stages of its own lowering compute the same values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pypto_egg.interp import compare, entry_function, random_inputs, run, work
from pypto_egg.text import parse_file

FOLDER = Path(__file__).parent.parent / "programs" / "pypto"
STAGES = ("1_tile", "2_flat", "3_l0")
NAMES = sorted(path.name.split(".")[0] for path in FOLDER.glob("*.0_input.py.txt"))
# That revision of PyPTO turns the scalar write after a load into a write to the loaded tile.
LOST_WRITE = "inout_write"


def verdict(name: str, stage: str):
    before = parse_file(FOLDER / f"{name}.0_input.py.txt")
    after = parse_file(FOLDER / f"{name}.{stage}.py.txt")
    inputs = random_inputs(entry_function(before), seed=1, program=before)
    return compare(before, after, inputs)


def test_all_twelve_programs_are_here():
    assert len(NAMES) == 12


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", [name for name in NAMES if name != LOST_WRITE])
def test_lowered_program_computes_the_same(name, stage):
    result = verdict(name, stage)
    assert result.equal, str(result)
    assert result.compared > 0


@pytest.mark.parametrize("name", NAMES)
def test_estimated_work_is_at_least_one_operation_an_output_element(name):
    program = parse_file(FOLDER / f"{name}.1_tile.py.txt")
    outputs = run(program, random_inputs(entry_function(program), program=program))
    assert work(program) >= sum(np.size(value) for value in outputs.returns)


@pytest.mark.req("C-055")
@pytest.mark.parametrize("stage", STAGES)
def test_lost_scalar_write_is_found(stage):
    result = verdict(LOST_WRITE, stage)
    assert not result.equal
    assert (result.where.output, result.where.index) == ("x", (0, 0))


def test_spmd_program_over_a_dynamic_extent():
    program = parse_file(FOLDER.parent / "language" / "blocks.py.txt")
    inputs = random_inputs(entry_function(program), symbols={"ROWS": 512}, program=program)
    outputs = run(program, inputs)
    expected = np.maximum(inputs["x"], 0)
    assert np.array_equal(outputs.params["o"], expected)
    assert np.array_equal(outputs.returns[0], expected)


def test_row_softmax_is_a_softmax():
    program = parse_file(FOLDER / "softmax_rows.3_l0.py.txt")
    inputs = random_inputs(entry_function(program), program=program)
    (x,) = inputs.values()
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    (got,) = run(program, inputs).returns
    assert np.allclose(got, weights / weights.sum(axis=1, keepdims=True), atol=1e-6)
