"""The harness has one name."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import pypto_egg.bench


def test_the_folder_is_refused_under_another_name():
    init = Path(pypto_egg.bench.__file__)
    spec = spec_from_file_location("bench", init)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=r"'bench'; its only name is 'pypto_egg\.bench'"):
        spec.loader.exec_module(module_from_spec(spec))
