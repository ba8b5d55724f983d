"""Calibration: constants that are in the data are found, and what the fit is worth is said."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto_egg
from pypto_egg.errors import OptionError
from pypto_egg.extract.cost import cost_model
from pypto_egg.extract.cost.simulate import kernel_of
from pypto_egg.target import load_target

A2A3 = load_target("a2a3")
DATA = Path(str(files("pypto_egg.target"))) / "data"

COPY = """# pypto.program: Copy
import pypto.language as pl

@pl.program
class Copy:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(
        x: pl.Tensor[[{rows}, {cols}], pl.FP32], y: pl.Out[pl.Tensor[[{rows}, {cols}], pl.FP32]]
    ) -> pl.Tensor[[{rows}, {cols}], pl.FP32]:
        for i, (c,) in pl.range(0, {rows}, 8, init_values=(y,)):
            a = pl.tile.load(x, [i, 0], [8, {cols}], target_memory=pl.Mem.Vec)
            b = pl.tile.exp(a)
            r: pl.Tensor[[{rows}, {cols}], pl.FP32] = pl.tile.store(b, [i, 0], c)
            d: pl.Tensor[[{rows}, {cols}], pl.FP32] = pl.yield_(r)
        return d
"""
SIZES = ((8, 64), (32, 64), (64, 512), (8, 1024), (128, 256), (256, 128))


@pytest.fixture
def kernels(tmp_path):
    """Programs of several sizes, and a function that writes measurements of them."""
    for rows, cols in SIZES:
        (tmp_path / f"copy_{rows}_{cols}.txt").write_text(COPY.format(rows=rows, cols=cols))

    def measure(target, model="mte2_mad", columns=("cycles",), sizes=SIZES, error=None):
        lines = [",".join(("program", *columns))]
        for number, (rows, cols) in enumerate(sizes):
            path = tmp_path / f"copy_{rows}_{cols}.txt"
            said = cost_model(model).kernel_cost(kernel_of(pypto_egg.parse_file(path)), target)
            factor = 1.0 if error is None else error[number]
            cells = (repr(said(target)[column] * factor) for column in columns)
            lines.append(",".join((path.name, *cells)))
        (tmp_path / "measured.csv").write_text("\n".join(lines) + "\n")
        return tmp_path / "measured.csv"

    return measure


KEYS = ("gm.burst_overhead_bytes", "path.DDR.Vec.gib_per_s")


@settings(max_examples=8)
@given(st.floats(0.3, 3.0), st.floats(0.3, 3.0))
def test_constants_that_made_the_measurements_are_found(tmp_path_factory, overhead, rate):
    folder = tmp_path_factory.mktemp("kernels")
    truth = A2A3.with_(**dict(zip(KEYS, (28.0 * overhead, 100.9 * rate), strict=True)))
    lines = ["program,cycles"]
    for rows, cols in SIZES:
        path = folder / f"copy_{rows}_{cols}.txt"
        path.write_text(COPY.format(rows=rows, cols=cols))
        said = cost_model("mte2_mad").kernel_cost(kernel_of(pypto_egg.parse_file(path)), truth)
        lines.append(f"{path.name},{said(truth)['cycles']!r}")
    (folder / "measured.csv").write_text("\n".join(lines))
    found = pypto_egg.calibrate(folder / "measured.csv", "mte2_mad", constants=KEYS)
    for key in KEYS:
        assert found.constants[key] == pytest.approx(truth.numbers()[key], rel=0.01)
    assert found.worst_error < 1e-3
    assert found.worst_error_out < 1e-2
    assert found.rank_correlation == found.rank_correlation_out == 1.0
    assert found.target == A2A3.with_(**found.constants)


def test_a_constant_that_starts_at_zero_can_be_fitted(kernels):
    truth = A2A3.with_(**{"gm.burst_overhead_bytes": 40.0})
    start = A2A3.with_(**{"gm.burst_overhead_bytes": 0.0})
    found = pypto_egg.calibrate(kernels(truth), "mte2_mad", constants=KEYS[:1], target=start)
    assert found.constants[KEYS[0]] == pytest.approx(40.0, rel=0.02)
    assert found.start == {KEYS[0]: 0.0}


def test_busy_columns_tell_constants_apart(kernels):
    """The total alone cannot say on which pipe a serial model spends its time."""
    keys = ("path.DDR.Vec.gib_per_s", "path.Vec.DDR.gib_per_s")
    truth = A2A3.with_(**{keys[0]: 60.0, keys[1]: 250.0})
    path = kernels(truth, columns=("cycles", "mte2", "mte3"))
    found = pypto_egg.calibrate(path, "mte2_mad", constants=keys)
    assert found.constants[keys[0]] == pytest.approx(60.0, rel=1e-3)
    assert found.constants[keys[1]] == pytest.approx(250.0, rel=1e-3)


def test_an_outlier_shows_out_of_sample_more_than_in_sample(kernels):
    noisy = kernels(A2A3, error=(1.0, 1.0, 1.0, 1.0, 1.5, 1.0))
    found = pypto_egg.calibrate(noisy, "mte2_mad", constants=KEYS)
    outlier = found.predictions[4]
    assert outlier.name == "copy_128_256.txt"
    assert abs(outlier.error_out) > abs(outlier.error) > 0.05
    assert found.worst_error == max(abs(p.error) for p in found.predictions)


def test_a_constant_that_no_measurement_depends_on_keeps_its_value(kernels):
    keys = (*KEYS, "l0.issue_cycles")
    found = pypto_egg.calibrate(kernels(A2A3), "mte2_mad", constants=keys)
    assert found.undetermined == ("l0.issue_cycles",)
    assert found.constants["l0.issue_cycles"] == 21.0


def test_a_prior_holds_the_start_against_few_measurements(kernels):
    truth = A2A3.with_(**{KEYS[1]: 50.0})
    path = kernels(truth)
    free, tied, stiff = (
        pypto_egg.calibrate(path, "mte2_mad", constants=KEYS[1:], prior_weight=weight)
        for weight in (0.0, 0.5, 100.0)
    )
    assert free.constants[KEYS[1]] == pytest.approx(50.0, rel=1e-3)
    assert 50.0 < tied.constants[KEYS[1]] < stiff.constants[KEYS[1]]
    assert stiff.constants[KEYS[1]] == pytest.approx(100.9, rel=1e-2)


def test_a_row_is_not_predicted_from_too_few_others(kernels):
    path = kernels(A2A3, sizes=SIZES[:2])
    found = pypto_egg.calibrate(path, "mte2_mad", constants=KEYS)
    assert [p.out_of_sample for p in found.predictions] == [None, None]
    assert found.worst_error_out is None
    assert found.rank_correlation_out is None


def test_what_was_fitted_can_be_saved_and_read_back(kernels, tmp_path):
    truth = A2A3.with_(**{KEYS[0]: 40.0})
    found = pypto_egg.calibrate(kernels(truth), "mte2_mad", constants=KEYS)
    found.save(tmp_path / "fitted.toml")
    assert pypto_egg.load_overrides(tmp_path / "fitted.toml") == dict(found.constants)
    again = A2A3.with_(**pypto_egg.load_overrides(tmp_path / "fitted.toml"))
    assert again == found.target
    assert "copy_8_64.txt" in found.to_toml()


GEMM_KEYS = tuple(pypto_egg.load_overrides(DATA / "gemm_a2a3_start.toml"))


@pytest.fixture(scope="module")
def device_fit():
    """The fit of [schedule.device] as the data files say it is done."""
    start = A2A3.with_(**pypto_egg.load_overrides(DATA / "gemm_a2a3_start.toml"))
    return pypto_egg.calibrate(
        DATA / "gemm_a2a3.csv", "schedule", constants=GEMM_KEYS, target=start, prior_weight=0.02
    )


def test_each_device_gemm_is_predicted_from_the_other_three(device_fit):
    assert len(device_fit.predictions) == 4
    for prediction in device_fit.predictions:
        assert abs(prediction.error_out) < 0.06
    assert device_fit.worst_error < 0.02
    assert device_fit.rank_correlation_out == 1.0
    assert device_fit.undetermined == ()


def test_the_targets_device_constants_are_this_fit(device_fit):
    numbers = A2A3.numbers()
    for key, value in device_fit.constants.items():
        assert numbers[key] == pytest.approx(value, rel=0.01), key


def test_a_gemm_that_took_no_part_in_the_fit_is_predicted():
    """pto-isa, kernels/manual/a2a3/gemm_ar: 368.1 us alone on 24 cores; the clock is 1.85 GHz."""
    program = pypto_egg.parse_file(DATA / "gemm_a2a3" / "gemm_ar.py.txt")
    found = pypto_egg.simulate(program, A2A3, "device", cores=24)
    assert found.total_cycles / A2A3.clock.hz == pytest.approx(368.1e-6, rel=0.06)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel,cycles\na.txt,3\n", "has no column 'program'"),
        ("program\na.txt\n", "has no column 'cycles'"),
        ("program,cycles\n", "has no measurements"),
        ("program,cycles\na.txt,3\n", "row 1: there is no program"),
        ("program,cycles\ncopy_8_64.txt,\n", "'cycles' is ''; it must be a positive number"),
        ("program,cycles\ncopy_8_64.txt,-3\n", "'cycles' is '-3'"),
        ("program,cycles,mte7\ncopy_8_64.txt,3,4\n", "the model says nothing of 'mte7'"),
        ("program,cycles\ncopy_8_64.txt,3\n", "has 1 numbers, too few to fit 2 constants"),
        ("program,cycles,function\ncopy_8_64.txt,3,paste\n", "does not have a kernel 'paste'"),
    ],
)
def test_measurements_that_cannot_be_used_are_refused(kernels, tmp_path, text, message):
    kernels(A2A3)
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(OptionError, match=message):
        pypto_egg.calibrate(tmp_path / "bad.csv", "mte2_mad", constants=KEYS)


def test_constants_that_cannot_be_fitted_are_refused(kernels, tmp_path):
    path = kernels(A2A3)
    with pytest.raises(OptionError, match=r"has no number 'gm\.speed'"):
        pypto_egg.calibrate(path, "mte2_mad", constants=["gm.speed"])
    with pytest.raises(OptionError, match="whole number of the hardware"):
        pypto_egg.calibrate(path, "mte2_mad", constants=["memory.Acc.usable_bytes"])
    with pytest.raises(OptionError, match="no constants to fit"):
        pypto_egg.calibrate(path, "mte2_mad", constants=[])
    with pytest.raises(OptionError, match="prior_weight is -1"):
        pypto_egg.calibrate(path, "mte2_mad", constants=KEYS, prior_weight=-1)
    with pytest.raises(OptionError, match="cannot read measurements"):
        pypto_egg.calibrate(tmp_path / "nothing.csv", "mte2_mad", constants=KEYS)
