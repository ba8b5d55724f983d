"""Programs of the PyPTO language reference (14) with the canonical lines that it states."""

from pathlib import Path

import pytest

from pypto_egg.text import parse, parse_file, print_program

PROGRAMS = Path(__file__).parent.parent / "programs" / "language"

STATED = {
    "scaled_matmul": (
        "        s: pl.Tensor[[64, 96], pl.FP32] = pl.tensor.matmul(q, k, a_trans=False, "
        "b_trans=True, c_matrix_nz=False, out_dtype=pl.FP32)",
        "        r: pl.Tensor[[64, 96], pl.FP32] = pl.tensor.muls(s, 0.125)",
    ),
    "split_k": (
        "            # one step of the sum",
        "            ak: pl.Tensor[[64, 128], pl.BF16] = pl.tensor.slice(a, [64, 128], [0, ko])",
        "            c: pl.Tensor[[64, 64], pl.FP32] = pl.yield_(nxt)",
    ),
    "softmax": (
        "        m: pl.Tensor[[32, 1], pl.FP32] = pl.tensor.row_max(x)",
        "        d: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.row_expand_sub(x, m)",
        "        p: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.row_expand_div(e, z)",
    ),
    "branchy": (
        "            u: pl.Tensor[[16, 64], pl.FP32] = pl.tensor.adds(y, 1.0)",
        "            w: pl.Tensor[[16, 64], pl.FP32] = pl.yield_(u)",
        "                g: pl.Tensor[[16, 64], pl.FP32] = pl.yield_(acc)",
    ),
    "blocks": (
        'ROWS = pl.dynamic("ROWS")',
        "        for blk in pl.spmd(8):",
        "            for r, (cur,) in pl.pipeline(0, 64, 16, stage=2, init_values=(o,)):",
        "                part: pl.Tensor[[16, 128], pl.FP32] = "
        "pl.tensor.slice(x, [16, 128], [base + r, 0])",
        "                o_1: pl.Tensor[[ROWS, 128], pl.FP32] = pl.yield_(upd)",
        "        return o_1",
    ),
    "tile_form": (
        "        xl: pl.Tile[[64, 64], pl.BF16, pl.Mem.Left] = "
        "pl.tile.move(xm, target_memory=pl.Mem.Left)",
        "        acc: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(xl, wr)",
    ),
}


def test_elementwise_program_is_already_canonical() -> None:
    path = PROGRAMS / "axpby.py.txt"
    assert print_program(parse_file(path)) == path.read_text()


@pytest.mark.parametrize("name", STATED)
def test_stated_lines(name: str) -> None:
    printed = print_program(parse_file(PROGRAMS / f"{name}.py.txt"))
    lines = printed.split("\n")
    for line in STATED[name]:
        assert line in lines
    assert print_program(parse(printed)) == printed


def test_a_reformatted_text_is_the_same_program() -> None:
    """The host may run a formatter over the text: wrapped lines, trailing commas, blank lines."""
    text = (PROGRAMS / "axpby.py.txt").read_text()
    wrapped = text.replace(", ", ",\n            ").replace("    @pl", "\n\n    @pl")
    assert print_program(parse(wrapped)) == text
