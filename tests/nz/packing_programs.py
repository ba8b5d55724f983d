"""Programs with operands that could be packed, and readers of what is said of them."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from pypto_egg import optimize

NUMPY = {"INT8": np.int8, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "FP32": np.float32}


ACC = {"INT8": "INT32"}


def typed(shape, dtype) -> str:
    return f"pl.Tensor[{list(shape)}, pl.{dtype}]"


def function(name, params, body, returns, kind="InCore"):
    """The text of one function; `body` is a list of lines."""
    lines = "".join(f"        {line}\n" for line in body)
    return (
        f"    @pl.function(type=pl.FunctionType.{kind})\n"
        f"    def {name}(self, {params}) -> {returns}:\n{lines}"
    )


def program(*functions) -> str:
    return "import pypto.language as pl\n\n@pl.program\nclass P:\n" + "\n".join(functions)


def product(dtype="FP16", m=32, k=128, n=64, name="k", trans=False, w_shape=None):
    acc = ACC.get(dtype, "FP32")
    shape = w_shape or ((n, k) if trans else (k, n))
    return function(
        name,
        f"x: {typed((m, k), dtype)}, w: {typed(shape, dtype)}",
        [f"y = pl.matmul(x, w, b_trans={trans}, out_dtype=pl.{acc})", "return y"],
        typed((m, n), acc),
    )


def data(shape, dtype, seed=0):
    """Small whole numbers: every product and sum of them is exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(NUMPY[dtype])


def advice_for(result, operand):
    (found,) = (item for item in result.nz_advice if operand in item.operands)
    return found


def stays_nd(text, operand, why, **options):
    """Packing leaves the program as it is and says why."""
    result = optimize(text, nz="pack", **options)
    plain = optimize(text, **options)
    assert result.packing == ()
    assert result.text == plain.text
    found = advice_for(result, operand)
    assert not found.packed
    assert re.search(why, found.refused), found.refused
    assert found.refused in result.explain()


def grouped(dtype, *, m=16, n=128, k=256, n_tile=32, k_tile=64, experts=3):
    """The grouped-matmul weight path: blocks of N, K in a loop, one expert of a stack."""
    acc = ACC.get(dtype, "FP32")
    return program(
        function(
            "k",
            f"x: {typed((m, k), dtype)}, w: {typed((experts, n, k), dtype)}, "
            f"y: pl.Out[{typed((m, n), acc)}]",
            [
                f"for nb, (o,) in pl.range({n // n_tile}, init_values=(y,)):",
                f"    n0 = nb * {n_tile}",
                f"    x0 = x[0:{m}, 0:{k_tile}]",
                f"    w0 = w[1, n0 : n0 + {n_tile}, 0:{k_tile}]",
                f"    acc = pl.matmul(x0, w0, b_trans=True, out_dtype=pl.{acc})",
                f"    for k0, (a,) in pl.pipeline({k_tile}, {k}, {k_tile}, stage=2, "
                "init_values=(acc,)):",
                f"        xt = x[0:{m}, k0 : k0 + {k_tile}]",
                f"        wt = w[1, n0 : n0 + {n_tile}, k0 : k0 + {k_tile}]",
                "        a1 = pl.matmul_acc(a, xt, wt, b_trans=True)",
                "        r = pl.yield_(a1)",
                "    o1 = pl.assemble(o, r, [0, n0])",
                "    o2 = pl.yield_(o1)",
                "return o2",
            ],
            typed((m, n), acc),
        )
    )
