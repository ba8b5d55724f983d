"""How vector instructions, scalars and elements are spelled."""

from __future__ import annotations

import re

import pytest
from pto_reader import check

from pypto_egg.emit.pto_text import pto_text
from pypto_egg.text import parse

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
"""


def text_of(body: str, params: str = "x: pl.Tensor[[32, 64], pl.FP32]") -> str:
    """The PTO text of a kernel of tiles, in one line an operation."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    text = pto_text(parse(f"{HEAD}    def f(self, {params}):\n{lines}"))
    check(text)
    return re.sub(r"\s+", " ", text)


LOAD = "t = pl.tile.load(x, [0, 0], [32, 64])\n"
TMP = "tmp = pl.tile.create([32, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)\n"


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("pl.tile.add(t, t)", r"pto\.tadd ins\(%t, %t : "),
        ("pl.tile.muls(t, 0.5)", r"pto\.tmuls ins\(%t, %cst : .*, f32\)"),
        ("pl.tile.div(t, t, high_precision=True)",
         r"pto\.tdiv .*pad=0>\) \{precisionType = #pto<div_precision high_precision>\}"),
        ("pl.tile.cast(t, target_type=pl.INT32, mode='floor')",
         r"pto\.tcvt ins\(%t \{rmode = #pto<round_mode FLOOR>, "
         r"satmode = #pto<saturation_mode ON>\} : "),
        ("pl.tile.cast(t, target_type=pl.BF16, mode='rint')",
         r"pto\.tcvt ins\(%t \{rmode = #pto<round_mode RINT>\} : "),
        ("pl.tile.cmps(t, 1.0, cmp_type=4)",
         r"pto\.tcmps ins\(%t, %cst \{cmpMode = #pto<cmp gt>\}"),
        ("pl.tile.row_max(t, tmp)", r"pto\.trowmax ins\(%t, %tmp : .*v_row=32, v_col=1,"),
        ("pl.tile.col_sum(t)", r"pto\.tcolsum ins\(%t : "),
        ("pl.tile.col_sum(t, tmp)", r"pto\.tcolsum ins\(%t, %tmp \{isBinary = true\} : "),
        ("pl.tile.full([32, 64], dtype=pl.FP32, value=2.0)", r"pto\.texpands ins\(%cst : f32\)"),
        ("pl.tile.transpose(t, 0, 1)", r"pto\.ttrans ins\(%t, %e_tmp : "),
        ("pl.tile.reshape(t, [16, 128])", r"%e = pto\.treshape %t : .*rows=16, cols=128"),
        ("pl.tile.slice(t, [8, 64], [16, 0])",
         r"%e = pto\.subview %t\[%c16, %c0\] sizes \[8, 64\] valid \[%c8, %c64\] : "),
    ],
)  # fmt: skip
def test_an_instruction_is_spelled_as_the_assembler_reads_it(step: str, found: str) -> None:
    assert re.search(found, text_of(f"{LOAD}{TMP}e = {step}\n"))


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        ("UINT8", "ui8"), ("UINT16", "ui16"), ("UINT32", "ui32"), ("INT16", "i16"),
        ("FP8E4M3FN", "f8E4M3FN"), ("FP8E5M2", "f8E5M2"), ("HF8", "!pto.hif8"),
    ],
)  # fmt: skip
def test_elements_are_spelled_as_pypto_does(dtype: str, element: str) -> None:
    text = text_of(
        "t = pl.tile.load(x, [0, 0], [32, 64])\nr = pl.tile.store(t, [0, 0], y)\nreturn r",
        f"x: pl.Tensor[[32, 64], pl.{dtype}], y: pl.Out[pl.Tensor[[32, 64], pl.{dtype}]]",
    )
    assert f"%arg0: !pto.ptr<{element}>" in text
    assert f"!pto.partition_tensor_view<32x64x{element}>" in text
    assert f"dtype={element}, " in text


def test_a_column_is_walked_as_a_row() -> None:
    """PTOAS walks the tiles of these instructions as one run; a column by columns is not one."""
    text = text_of(f"{LOAD}{TMP}m = pl.tile.row_max(t, tmp)\ne = pl.tile.exp(m)\n")
    row = r"rows=1, cols=32, blayout=row_major"
    assert re.search(r"%m_row = pto\.treshape %m : .*?rows=32, cols=1, .*? -> .*?" + row, text)
    assert re.search(r"%e_row = pto\.treshape %e : ", text)
    assert re.search(r"pto\.texp ins\(%m_row : .*?\) outs\(%e_row : ", text)


def test_a_tile_without_a_value_is_made_with_its_extents() -> None:
    """`create` and `set_validshape` make one buffer, not a buffer and a view of it."""
    text = text_of(
        "a = pl.tile.create([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc, compact=True)\n"
        "v = pl.tile.set_validshape(a, 5, 64)\n"
        "l = pl.tile.load(x, [0, 0], [16, 64], [5, 64], target_memory=pl.Mem.Mat)\n"
        "r = pl.tile.load(w, [0, 0], [64, 64], target_memory=pl.Mem.Mat)\n"
        "s = pl.tile.matmul_acc(v, l, r)\n",
        "x: pl.Tensor[[5, 64], pl.FP16], w: pl.Tensor[[64, 64], pl.FP16]",
    )
    assert "%a = " not in text
    assert re.search(r"%v = pto\.alloc_tile : .*?v_row=5, v_col=64", text)
    assert "pto.subview" not in text


def test_scalars_are_computed_in_their_dtype() -> None:
    text = text_of(
        "t = pl.tile.load(x, [0, 0], [32, 64])\n"
        "k = s * 2.0 + 1.0\n"
        "e = pl.tile.adds(t, k)\n"
        "if s > 0.0:\n    w = pl.tile.write(e, [0, 3], k)\n",
        "x: pl.Tensor[[32, 64], pl.FP32], s: pl.Scalar[pl.FP32]",
    )
    assert re.search(r"(%\w+) = arith\.mulf %arg1, %cst\w* : f32", text)
    assert re.search(r"pto\.tadds ins\(%t, %f_1 : .*, f32\)", text)
    assert re.search(r"(%\w+) = arith\.cmpf ogt, %arg1, %cst\w* : f32 scf\.if \1 \{", text)
    assert re.search(r"pto\.tsetval ins\(%c3, %f_1 : index, f32\) outs\(%e : ", text)


def test_the_block_of_an_spmd_loop_is_its_number() -> None:
    text = text_of(
        "for i in pl.spmd(4):\n"
        "    t = pl.tile.load(x, [i * 8, 0], [8, 64])\n"
        "    r = pl.tile.store(t, [i * 8, 0], y)\n",
        "x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]",
    )
    assert "%i = pto.get_block_idx" in text
    assert re.search(r"(%\w+) = arith\.index_cast %i : i64 to index", text)
    assert "scf.for" not in text


def test_infinities_and_whole_numbers_are_literals_of_floats() -> None:
    text = text_of(
        "a = pl.tile.full([8, 64], dtype=pl.FP32, value=-3.4e38)\n"
        "b = pl.tile.full([8, 64], dtype=pl.FP16, value=2.0)\n"
        "c = pl.tile.full([8, 64], dtype=pl.FP32, value=1e-07)\n"
    )
    assert "arith.constant -3.4e+38 : f32" in text
    assert "arith.constant 2.0 : f16" in text
    assert "arith.constant 1.0e-07 : f32" in text


def test_names_are_those_that_mlir_reads_bare() -> None:
    text = text_of("größe = pl.tile.load(x, [0, 0], [32, 64])\nc0 = pl.tile.exp(größe)\n")
    assert "%gruf6udfe = pto.alloc_tile" in text
    assert "%c0_v = pto.alloc_tile" in text
    assert text.isascii()
