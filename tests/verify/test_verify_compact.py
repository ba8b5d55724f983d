"""AccCompactValid: accumulators with fewer valid than physical rows are compact."""

from __future__ import annotations

import pytest

from pypto_egg.ir.dtype import FP16, FP32, INDEX
from pypto_egg.ir.enums import CompactMode, FunctionType, Mem
from pypto_egg.ir.expr import Expr, Var
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.types import ScalarType, TileView, tile_type
from pypto_egg.verify import verify_findings

ROWS = Var("m", ScalarType(INDEX))


def acc(shape: tuple[int | Expr, ...], valid: tuple[int | Expr, ...], compact: bool) -> list[str]:
    mode = CompactMode.normal if compact else CompactMode.null
    layout = tile_type(shape, FP32, Mem.Acc).layout
    view = TileView(valid, (), None, layout.blayout, layout.slayout, layout.fractal, compact=mode)
    var = Var("acc", tile_type(shape, FP32, Mem.Acc, view))
    function = Function("k", FunctionType.InCore, (Param(ROWS), Param(var)), (), ())
    found = verify_findings(Program("P", (function,)), "tile")
    return [f"{finding.property.value}: {finding.message}" for finding in found]


@pytest.mark.req("C-152", "C-153")
def test_a_partly_valid_accumulator_is_compact() -> None:
    assert acc((112, 64), (100, 64), compact=True) == []
    (message,) = acc((112, 64), (100, 64), compact=False)
    assert message == (
        "AccCompactValid: accumulator 'acc' of function 'k' has 112 physical rows, not all of "
        "them valid, but is not compact"
    )


@pytest.mark.req("C-153", "C-270", "C-273")
def test_rows_known_at_run_time_only_count_as_partly_valid() -> None:
    assert len(acc((64, 128), (ROWS, 128), compact=False)) == 1
    assert acc((64, 128), (ROWS, 128), compact=True) == []


@pytest.mark.req("C-275")
def test_one_block_of_rows_needs_no_declaration() -> None:
    assert acc((16, 128), (5, 128), compact=False) == []
    assert acc((16, 128), (ROWS, 128), compact=False) == []


def test_fully_valid_rows_need_no_declaration() -> None:
    assert acc((64, 128), (64, 128), compact=False) == []
    assert acc((64, 128), (64, 100), compact=False) == []


def test_other_spaces_need_no_declaration() -> None:
    var = Var("a", tile_type((112, 64), FP16, Mem.Mat).with_view(valid_shape=(100, 64)))
    function = Function("k", FunctionType.InCore, (Param(var),), (), ())
    assert verify_findings(Program("P", (function,)), "tile") == []
