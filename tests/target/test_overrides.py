"""Numbers of a target read from a TOML file."""

import pytest

from pypto_egg.errors import OptionError
from pypto_egg.target import load_overrides, load_target


def test_a_file_of_overrides_has_the_form_of_the_target_files(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[l0]\nissue_cycles = 6.0\n\n[path.DDR.Vec]\ngib_per_s = 90\n")
    found = load_overrides(path)
    assert found == {"l0.issue_cycles": 6.0, "path.DDR.Vec.gib_per_s": 90}
    target = load_target("a2a3").with_(**found)
    assert target.l0.issue_cycles == 6.0
    assert load_overrides(str(path)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[l0]\nissue_cycles = 'six'\n", "'l0.issue_cycles' is not a number"),
        ("[l0]\nissue_cycles = true\n", "'l0.issue_cycles' is not a number"),
        ("[l0\n", "cannot read overrides"),
    ],
)
def test_what_is_no_override_is_refused(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(OptionError, match=message):
        load_overrides(path)
    with pytest.raises(OptionError, match="cannot read overrides"):
        load_overrides(tmp_path / "none.toml")


def test_unknown_keys_are_refused_when_they_are_used(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[l0]\nspeed = 6.0\n")
    with pytest.raises(OptionError, match=r"has no number 'l0\.speed'"):
        load_target("a5").with_(**load_overrides(path))


def test_every_number_of_the_schedule_can_be_replaced():
    target = load_target("a2a3")
    keys = [key for key in target.numbers() if key.startswith("schedule.")]
    assert "schedule.device.launch_cycles" in keys
    assert "schedule.hill.path.DDR.Mat.latency_cycles" in keys
    changed = target.with_(**{"schedule.hill.path.DDR.Mat.latency_cycles": 5.0})
    assert changed.flat_laws["hill"].paths["DDR", "Mat"].latency_cycles == 5.0
    assert changed.device_law == target.device_law
