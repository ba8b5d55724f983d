"""Tensor programs whose decisions are known, for the tests of accounts."""

from __future__ import annotations


def program(params: str, result: str, body: str) -> str:
    """A program with one InCore function `f`."""
    lines = "\n".join("        " + line for line in body.strip().split("\n"))
    return (
        "import pypto.language as pl\n\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def f(self, {params}) -> {result}:\n{lines}\n"
    )


def product(m: int, n: int, k: int, dtype: str = "BF16", *, a_trans: bool = False) -> str:
    """c = a @ b, [m, k] x [k, n], accumulated and returned in FP32."""
    a = f"{k}, {m}" if a_trans else f"{m}, {k}"
    return program(
        f"a: pl.Tensor[[{a}], pl.{dtype}], b: pl.Tensor[[{k}, {n}], pl.{dtype}]",
        f"pl.Tensor[[{m}, {n}], pl.FP32]",
        f"c = pl.matmul(a, b, a_trans={a_trans}, out_dtype=pl.FP32)\nreturn c",
    )


BIASED = program(
    "a: pl.Tensor[[100, 64], pl.FP32], b: pl.Tensor[[64, 48], pl.FP32],"
    " bias: pl.Tensor[[1, 48], pl.FP32]",
    "pl.Tensor[[100, 48], pl.FP32]",
    "c = pl.matmul(a, b)\nd = pl.col_expand_add(c, bias)\nreturn d",
)

SUM = program(
    "a: pl.Tensor[[64, 64], pl.BF16], b: pl.Tensor[[64, 64], pl.BF16],"
    " c: pl.Tensor[[64, 64], pl.BF16]",
    "pl.Tensor[[64, 64], pl.FP32]",
    "p = pl.matmul(a, b, out_dtype=pl.FP32)\nq = pl.matmul(c, b, out_dtype=pl.FP32)\n"
    "s = pl.add(p, q)\nreturn s",
)

TRANSPOSED = program(
    "a: pl.Tensor[[64, 64], pl.BF16], b: pl.Tensor[[64, 64], pl.BF16]",
    "pl.Tensor[[64, 64], pl.FP32]",
    "c = pl.matmul(a, b, b_trans=True, out_dtype=pl.FP32)\nreturn c",
)

LOOP = program(
    "a: pl.Tensor[[64, 256], pl.BF16], b: pl.Tensor[[256, 1024], pl.BF16],"
    " out: pl.Out[pl.Tensor[[64, 1024], pl.FP32]]",
    "pl.Tensor[[64, 1024], pl.FP32]",
    "for n0, (o,) in pl.range(0, 1024, 128, init_values=(out,)):\n"
    "    bn = b[:, n0 : n0 + 128]\n"
    "    c = pl.matmul(a, bn, out_dtype=pl.FP32)\n"
    "    o1 = pl.assemble(o, c, [0, n0])\n"
    "    r = pl.yield_(o1)\n"
    "return r",
)

TWO_IN_A_LOOP = program(
    "a: pl.Tensor[[64, 256], pl.BF16], b: pl.Tensor[[256, 1024], pl.BF16],"
    " d: pl.Tensor[[64, 256], pl.BF16], e: pl.Tensor[[256, 1024], pl.BF16],"
    " out: pl.Out[pl.Tensor[[64, 1024], pl.FP32]], more: pl.Out[pl.Tensor[[64, 1024], pl.FP32]]",
    "pl.Tuple[pl.Tensor[[64, 1024], pl.FP32], pl.Tensor[[64, 1024], pl.FP32]]",
    "for n0, (o, p) in pl.range(0, 1024, 128, init_values=(out, more)):\n"
    "    bn = b[:, n0 : n0 + 128]\n"
    "    c = pl.matmul(a, bn, out_dtype=pl.FP32)\n"
    "    o1 = pl.assemble(o, c, [0, n0])\n"
    "    en = e[:, n0 : n0 + 128]\n"
    "    f = pl.matmul(d, en, out_dtype=pl.FP32)\n"
    "    p1 = pl.assemble(p, f, [0, n0])\n"
    "    r, s = pl.yield_(o1, p1)\n"
    "return r, s",
)


def narrowed(mode: str) -> str:
    """A product cast to BF16 in a rounding mode."""
    return program(
        "a: pl.Tensor[[64, 128], pl.BF16], b: pl.Tensor[[128, 64], pl.BF16]",
        "pl.Tensor[[64, 64], pl.BF16]",
        "c = pl.matmul(a, b, out_dtype=pl.FP32)\n"
        f"e = pl.cast(c, target_type=pl.BF16, mode='{mode}')\nreturn e",
    )


SOFTMAX = program(
    "x: pl.Tensor[[64, 128], pl.FP32]",
    "pl.Tensor[[64, 128], pl.FP32]",
    "m = pl.row_max(x)\nc = pl.row_expand_sub(x, m)\ne = pl.exp(c)\nd = pl.row_sum(e)\n"
    "y = pl.row_expand_div(e, d)\nreturn y",
)
