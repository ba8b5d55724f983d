"""BoxShape: whole fractals, and operands of matrix multiplications that agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.errors import VerifyError
from pypto_egg.ir.dtype import BF16, FP16, FP32, INDEX, INT8, INT32, UINT8, DType
from pypto_egg.ir.enums import FunctionType, Mem, TileLayout
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Eval
from pypto_egg.ir.types import ScalarType, tile_type
from pypto_egg.text import parse
from pypto_egg.verify import Property, verify_program
from pypto_egg.verify.boxes import broken_boxes, check_boxes

ROW, COL, NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
ROWS = Var("m", ScalarType(INDEX))


def legal(shape: tuple[int | Expr, ...], dtype: DType, space: Mem | None, **view: object) -> bool:
    made = tile_type(shape, dtype, space)
    return broken_boxes(made.with_view(**view) if view else made) is None


@pytest.mark.parametrize(
    ("dtype", "width"), [(FP32, 8), (FP16, 16), (BF16, 16), (INT8, 32), (UINT8, 32)]
)
@pytest.mark.req("C-125", "C-155", "C-156")
def test_a_box_is_16_lines_of_32_bytes(dtype: DType, width: int) -> None:
    assert legal((16, width), dtype, Mem.Mat)
    assert not legal((16, width // 2), dtype, Mem.Mat)
    assert not legal((8, width), dtype, Mem.Mat)
    assert legal((width, 16), dtype, Mem.Right)
    assert not legal((width // 2, 16), dtype, Mem.Right)
    assert not legal((width, 8), dtype, Mem.Right)


@given(st.integers(1, 300), st.integers(1, 300))
@pytest.mark.req("C-157")
def test_accumulators_hold_16_by_16_blocks(rows: int, cols: int) -> None:
    whole = (rows == 1 or rows % 16 == 0) and cols % 16 == 0
    assert legal((rows, cols), FP32, Mem.Acc) == whole
    assert legal((rows, cols), INT32, Mem.Acc) == whole


@pytest.mark.req("C-126", "C-171")
def test_the_finding_names_tile_extents_box_and_remedy() -> None:
    a = Var("a_mat", tile_type((100, 250), FP16, Mem.Mat))
    made = Program("P", (Function("k", FunctionType.InCore, (Param(a),), (), ()),))
    with pytest.raises(VerifyError) as caught:
        verify_program(made, stage="tile")
    assert caught.value.message == (
        "BoxShape: tile 'a_mat' of function 'k' in Mat has physical extents 100 x 250, "
        "not whole FP16 boxes of 16 rows and 16 columns"
    )
    assert caught.value.hint == ("allocate 112 x 256 and keep the true extents as valid_shape")


@pytest.mark.req("C-126", "C-128")
def test_the_rounded_tile_with_valid_extents_is_legal() -> None:
    assert legal((112, 256), FP16, Mem.Mat, valid_shape=(100, 250))


EXTRACTING = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[100, 64], pl.FP16]):
        a_mat = pl.tile.load(a, [0, 0], [{rows}, 64], [100, 64], target_memory=pl.Mem.Mat)
        part = pl.tile.extract(a_mat, 0, 0, [{part}, 64], target_memory=pl.Mem.Left)
"""


@pytest.mark.req("C-127")
@pytest.mark.parametrize("part", [16, 64])
def test_what_is_extracted_from_must_be_whole_boxes_whatever_the_part_is(part: int) -> None:
    """The part alone is whole; the source of 100 rows is what TExtract does not compile."""
    with pytest.raises(VerifyError, match="100 x 64") as caught:
        verify_program(parse(EXTRACTING.format(rows=100, part=part)), stage="tile")
    assert "tile 'a_mat'" in caught.value.message
    assert "allocate 112 x 64" in (caught.value.hint or "")
    verify_program(parse(EXTRACTING.format(rows=112, part=part)), stage="tile")


@pytest.mark.req("C-167")
def test_an_unaligned_right_operand_is_reported() -> None:
    assert not legal((128, 100), FP16, Mem.Mat)
    assert legal((128, 112), FP16, Mem.Mat, valid_shape=(128, 100))


def test_unboxed_tiles_of_any_extents_are_legal() -> None:
    assert legal((7, 13), FP32, Mem.Vec)
    assert legal((1, 100), FP16, Mem.Mat, slayout=NONE, blayout=ROW)
    assert legal((7, 13), FP32, Mem.Bias)


def test_rows_of_boxed_vec_tiles_and_of_one_row_tiles_are_free() -> None:
    boxed = {"blayout": COL, "slayout": ROW}
    assert legal((100, 64), FP32, Mem.Vec, **boxed)
    assert not legal((100, 60), FP32, Mem.Vec, **boxed)
    assert legal((1, 64), FP16, Mem.Left)


def test_the_transposed_view_has_the_transposed_box() -> None:
    flipped = {"blayout": ROW, "slayout": COL}
    assert legal((32, 16), INT8, Mem.Mat, **flipped)
    assert not legal((16, 32), INT8, Mem.Mat, **flipped)


@pytest.mark.req("C-169")
def test_leading_dimensions_are_packed_into_the_rows() -> None:
    assert legal((4, 100, 64), FP16, Mem.Mat)
    assert not legal((3, 100, 64), FP16, Mem.Mat)


@pytest.mark.req("C-170")
def test_dynamic_rows_are_not_judged_but_static_columns_are() -> None:
    assert legal((ROWS, 64), FP16, Mem.Mat)
    assert not legal((ROWS, 60), FP16, Mem.Mat)


def test_a_tile_without_a_space_is_not_judged() -> None:
    assert legal((7, 13), FP16, None)


def findings(op: str, **tiles: tuple[int, int]) -> list[str]:
    """Findings about extents of one call on tiles that are whole boxes themselves."""
    space = {"acc": Mem.Acc, "lhs": Mem.Left, "rhs": Mem.Right}
    dtype = {"acc": FP32, "lhs": FP16, "rhs": FP16}
    made = [Var(name, tile_type(shape, dtype[name], space[name])) for name, shape in tiles.items()]
    call = Call(op, tuple(made), (), tile_type((16, 16), FP32, Mem.Acc))
    params = tuple(map(Param, made))
    function = Function("k", FunctionType.InCore, params, (), (Eval(call),))
    found = list(check_boxes(function))
    assert {finding.property for finding in found} <= {Property.BOX_SHAPE}
    return [finding.message for finding in found]


@pytest.mark.req("C-138", "C-145")
def test_accumulator_and_left_operand_have_equal_physical_rows() -> None:
    assert findings("tile.matmul_acc", acc=(128, 64), lhs=(128, 32), rhs=(32, 64)) == []
    (message,) = findings("tile.matmul_acc", acc=(112, 64), lhs=(128, 32), rhs=(32, 64))
    assert message == (
        "pl.tile.matmul_acc in function 'k' needs equal physical extents for M of the "
        "accumulator and lhs, got 112 and 128"
    )


@pytest.mark.req("C-145")
def test_accumulator_and_right_operand_have_equal_physical_columns() -> None:
    (message,) = findings("tile.matmul_acc", acc=(16, 48), lhs=(16, 32), rhs=(32, 64))
    assert "N of the accumulator and rhs, got 48 and 64" in message


def test_the_reduced_axes_agree() -> None:
    (message,) = findings("tile.matmul", lhs=(16, 32), rhs=(64, 16))
    assert "K of lhs and rhs, got 32 and 64" in message
    assert findings("tile.matmul", lhs=(16, 32), rhs=(32, 16)) == []


def test_a_one_row_product_accumulates_into_a_block_of_rows() -> None:
    assert findings("tile.gemv_acc", acc=(16, 64), lhs=(1, 32), rhs=(32, 64)) == []
