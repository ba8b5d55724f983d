"""The PTO MLIR text of lowered kernels, and what has none."""

from __future__ import annotations

import re

import pytest
from pto_reader import check

import pypto_egg
from pypto_egg.emit.pto_text import pto_text
from pypto_egg.errors import LoweringError, NzError, OptionError, PtoTextError
from pypto_egg.scheduling import L0Mode
from pypto_egg.text import parse

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
"""

DOCUMENT = """%w_view = pto.make_tensor_view %arg1,
    shape = [%c1, %c16, %c16, %c16, %c32],
    strides = [%c131072, %c8192, %c512, %c32, %c1]
    {layout = #pto.layout<nz>} : !pto.tensor_view<?x?x?x?x?xi8>
%w_pview = pto.partition_view %w_view,
    offsets = [%c0, %c0, %c0, %c0, %c0], sizes = [%c1, %c16, %c16, %c16, %c32]
    : !pto.tensor_view<?x?x?x?x?xi8> -> !pto.partition_tensor_view<1x16x16x16x32xi8>
pto.tload ins(%w_pview : !pto.partition_tensor_view<1x16x16x16x32xi8>)
          outs(%wt : !pto.tile_buf<loc=mat, dtype=i8, rows=256, cols=512,
                                   blayout=col_major, slayout=row_major, fractal=512, ...>)
"""

WEIGHT = (
    HEAD
    + """    def project(
        self,
        x: pl.Tensor[[16, 256], pl.INT8],
        w: pl.Tensor[[256, 512], pl.INT8, pl.NZ],
        out: pl.Out[pl.Tensor[[16, 512], pl.INT32]],
    ) -> pl.Tensor[[16, 512], pl.INT32]:
        xt = pl.tile.load(x, [0, 0], [16, 256], target_memory=pl.Mem.Mat)
        wt = pl.tile.load(w, [0, 0], [256, 512], target_memory=pl.Mem.Mat)
        y = pl.tile.matmul(xt, wt)
        r = pl.tile.store(y, [0, 0], out)
        return r
"""
)


def lowered(text: str, l0: L0Mode = "schedule", **options: str) -> str:
    """The PTO text of a program, lowered first."""
    return pto_text(pypto_egg.optimize(text, verify=False, l0=l0).program, **options)


def of_tiles(body: str, params: str = "x: pl.Tensor[[64, 64], pl.FP16]") -> str:
    """The PTO text of a kernel that is written in tiles, as it stands."""
    out = "out: pl.Out[pl.Tensor[[64, 64], pl.FP16]]"
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    text = f"{HEAD}    def f(self, {params}, {out}):\n{lines}"
    return pto_text(parse(text))


def undented(text: str) -> str:
    return re.sub(r"^ {4}", "", text, flags=re.MULTILINE)


@pytest.mark.req("N-083")
@pytest.mark.req("N-084")
def test_the_example_of_the_document_comes_out_exactly() -> None:
    before, after = DOCUMENT.split("...")
    text = undented(lowered(WEIGHT))
    start = text.index(before)
    elided, rest = text[start + len(before) :].split(">)", 1)
    assert elided == "v_row=256, v_col=512, pad=0"
    assert (">)" + rest).startswith(after)
    check(lowered(WEIGHT))


@pytest.mark.req("N-011")
@pytest.mark.req("N-142")
def test_an_nz_view_of_another_rank_is_refused_as_the_assembler_does() -> None:
    with pytest.raises(
        NzError, match=r"'pto\.make_tensor_view' op user-specified layout=nz"
    ) as got:
        pto_text(parse(WEIGHT))
    assert "rank 2" in got.value.message
    assert got.value.span is not None


@pytest.mark.req("N-141")
@pytest.mark.req("N-143")
@pytest.mark.req("N-145")
@pytest.mark.parametrize("version", ["0.60", "v0.60.9", "0.7"])
def test_assemblers_that_infer_layouts_take_no_nz_tensor(version: str) -> None:
    with pytest.raises(NzError, match="layout mismatch") as got:
        lowered(WEIGHT, assembler=version)
    assert "'w' of 'project'" in got.value.message
    assert "layout = #pto.layout<nd>" in lowered(WEIGHT.replace(", pl.NZ", ""), assembler=version)


@pytest.mark.req("N-142")
@pytest.mark.parametrize("version", ["0.61", "v0.61.0", "0.100", "1.0"])
def test_assemblers_that_believe_layouts_take_them(version: str) -> None:
    assert lowered(WEIGHT, assembler=version) == lowered(WEIGHT)


def test_a_version_is_numbers() -> None:
    with pytest.raises(OptionError, match="'new'"):
        lowered(WEIGHT, assembler="new")


def test_the_first_round_of_a_product_in_blocks_sets_its_accumulator() -> None:
    text = lowered(
        HEAD
        + """    def f(
        self,
        n: pl.Scalar[pl.INDEX],
        a: pl.Tensor[[64, 2048], pl.FP16],
        w: pl.Tensor[[2048, 256], pl.FP16],
    ) -> pl.Tensor[[64, 128], pl.FP32]:
        p = w[:, n * 16 : n * 16 + 128]
        y = pl.matmul(a, p, out_dtype=pl.FP32)
        return y
""",
        l0="leave",
    )
    check(text)
    loop = text[text.index("step %c512") :]
    found = re.search(
        r"(%\w+) = arith\.cmpi eq, %y__k\w*, %c0 : index.*?"
        r"scf\.if (%\w+) \{\s+(pto\.tmatmul ins).*?\} else \{\s+pto\.tmatmul\.acc ins",
        loop,
        re.DOTALL,
    )
    assert found is not None
    assert found[1] == found[2]
    assert re.search(r"(%\w+) = arith\.muli %arg0, %c16 : index", text)


def test_moves_extracts_and_dynamic_extents() -> None:
    text = of_tiles(
        "m = pl.tile.load(x, [0, 0], [64, 64], [n, 64], target_memory=pl.Mem.Mat)\n"
        "l = pl.tile.extract(m, 16, 0, [32, 64], target_memory=pl.Mem.Left)\n"
        "v = pl.tile.load(x, [n // 2, n % 7], [32, 32], target_memory=pl.Mem.Vec)\n"
        "r = pl.tile.store(v, [0, 32], out)\n"
        "return r",
        "n: pl.Scalar[pl.INT32], x: pl.Tensor[[64, 64], pl.FP16]",
    )
    check(text)
    assert "func.func @f(%arg0: i32, %arg1: !pto.ptr<f16>, %arg2: !pto.ptr<f16>) {" in text
    assert re.search(
        r"%m = pto\.alloc_tile valid_row = %\w+ valid_col = %c64 : .*v_row=\?, v_col=\?", text
    )
    assert "!pto.partition_tensor_view<?x64xf16>" in text
    assert re.search(r"pto\.textract ins\(%m, %c16, %c0 : .*, index, index\)", text)
    offset = re.search(r"(%\w+) = arith\.floordivsi (%\w+), %c2 : index", text)
    assert offset is not None
    assert f"{offset[2]} = arith.index_cast %arg0 : i32 to index" in text
    assert f"offsets = [{offset[1]}, " in text


@pytest.mark.req("N-078")
def test_offsets_wrap_in_their_own_dtype_before_they_become_an_index() -> None:
    text = of_tiles(
        "t = pl.tile.load(x, [n * n, 0], [16, 64])\nr = pl.tile.store(t, [0, 0], out)\nreturn r",
        "n: pl.Scalar[pl.INT32], x: pl.Tensor[[64, 64], pl.FP16]",
    )
    product = re.search(r"(%\w+) = arith\.muli %arg0, %arg0 : i32", text)
    assert product is not None
    assert f"arith.index_cast {product[1]} : i32 to index" in text


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (
            "t = pl.tile.load(x, [0, 0], [64, 64])\nc = pl.tile.cast(t, target_type=pl.FP32)\n"
            "e = pl.tile.sin(c)\n",
            "tile.sin for 'e'",
        ),
        (
            "m = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Mat)\ne = pl.tile.exp(m)\n",
            "tile.exp on 'm', which lies in boxes,",
        ),
        (
            "t = pl.tile.load(x, [0, 0], [64, 64])\n"
            "h = pl.tile.load(x, [0, 0], [64, 48], [64, 32], target_memory=pl.Mem.Vec)\n"
            "s = pl.tile.assemble(t, h, [0, 32])\n",
            "'s_part' is a window of 48 from 32 on of a tile of 64",
        ),
        (
            "a = pl.tile.create([64, 64], dtype=pl.FP16, target_memory=pl.Mem.Vec)\n"
            "e = pl.tile.exp(a)\n",
            "the value of tile 'a'",
        ),
        ("n = -16\nt = pl.tile.load(x, [n, 0], [16, 64])\n", "the offset of 'x' is -16"),
        (
            "t = pl.tile.create([64, 64], dtype=pl.FP16, target_memory=pl.Mem.Vec)\n"
            "r = pl.tile.store(t, [0, 0], out)\n",
            "the value of tile 't'",
        ),
        (
            "t = pl.tile.load(x, [0, 0], [64, 64])\n"
            "r = pl.tile.store(t, [0, 0], out, atomic=pl.AtomicType.Add)\n",
            "tile.store with atomic",
        ),
        (
            "for j in pl.range(2):\n    for i in pl.spmd(4):\n"
            "        t = pl.tile.load(x, [0, 0], [64, 64])\n",
            "the spmd loop over 'i'",
        ),
        (
            "for i in pl.range(2):\n    if i == 0:\n        return\n",
            "a return inside a loop or branch",
        ),
    ],
)
def test_what_has_no_form_is_refused_by_name(body: str, name: str) -> None:
    with pytest.raises(PtoTextError, match=re.escape(name)) as got:
        of_tiles(body)
    assert isinstance(got.value, LoweringError)
    assert (got.value.code, got.value.span is not None) == ("E411", True)
    assert got.value.hint


def test_a_program_without_kernels_has_no_text() -> None:
    text = HEAD.replace("InCore", "Orchestration") + (
        "    def f(self, x: pl.Tensor[[16, 16], pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:\n"
        "        return x\n"
    )
    with pytest.raises(PtoTextError, match="'P' has no function that runs in a core"):
        pto_text(parse(text))
