"""The result of a lowering as a file."""

from __future__ import annotations

import pytest
from kernels import kernel, tensor

import pypto_egg


@pytest.mark.parametrize("as_text", [True, False])
def test_a_saved_program_reads_back_as_the_same_program(tmp_path, as_text):
    result = pypto_egg.optimize(
        kernel({"x": tensor([32, 32], "FP32")}, "y = pl.exp(x)\nreturn y", tensor([32, 32], "FP32"))
    )
    path = tmp_path / "exp_tile.py"
    result.save(str(path) if as_text else path)
    assert path.read_bytes() == result.text.encode("utf-8")
    again = pypto_egg.parse_file(path)
    assert pypto_egg.print_program(again) == result.text
    assert pypto_egg.verify_program(again, stage="tile") is None
