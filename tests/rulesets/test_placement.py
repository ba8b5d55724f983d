"""Where tiles are: legality, loads, stores, moves, views."""

from __future__ import annotations

import pytest
from firing import EXP, MATMUL, assert_fires, assert_silent, cube, dynamic, vector
from kernels import calls, executed, inout, kernel, out, tensor
from products import product

from pypto_egg import lower, optimize
from pypto_egg.ir.enums import Mem

WRITTEN = kernel(
    {"x": inout([16, 32], "FP32"), "dst": out([16, 1], "FP32")},
    "r = pl.row_max(x)\no = pl.assemble(dst, r, [0, 0])\n"
    "pl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))\nreturn o",
    tensor([16, 1], "FP32"),
)
WRITTEN_OPERAND = kernel(
    {"a": inout([32, 64], "FP16"), "b": tensor([64, 32], "FP16"), "dst": out([32, 32], "FP32")},
    "y = pl.matmul(a, b, out_dtype=pl.FP32)\no = pl.assemble(dst, y, [0, 0])\n"
    "pl.tensor.write(a, [0, 0], pl.const(1.0, pl.FP16))\nreturn o",
    tensor([32, 32], "FP32"),
)
SCALAR = vector("e = pl.exp(x)\nv = pl.tensor.read(e, [3, 5])\ny = pl.mul(x, v)\nreturn y")
READ_ONLY = kernel(
    {"x": tensor([16, 32], "FP32"), "dst": out([1, 8], "FP32")},
    "e = pl.exp(x)\nv = pl.tensor.read(e, [3, 5])\npl.tensor.write(dst, [0, 0], v)\nreturn dst",
    tensor([1, 8], "FP32"),
)
ONE_COLUMN = vector("y = pl.exp(c)\nreturn y", (16, 1), c=tensor([16, 1], "FP32"))
COLUMN = vector("m = pl.row_max(x)\nreturn m", (16, 1))
LOOP = vector("""
z = pl.exp(x)
for i, (c,) in pl.range(3, init_values=(z,)):
    d = pl.add(c, w)
    r = pl.yield_(d)
return r""", w=tensor([16, 32], "FP32"))  # fmt: skip
CUBE_LOOP = cube("""
z = pl.matmul(a, b, out_dtype=pl.FP32)
for i, (c,) in pl.range(3, init_values=(z,)):
    d = pl.matmul_acc(c, p, b)
    r = pl.yield_(d)
return r""", p=tensor([32, 64], "FP16"))  # fmt: skip
TRANSPOSED = product(32, 48, 64, "FP16", True, True)
VECTOR_OPERAND = cube("e = pl.abs(a)\ny = pl.matmul(e, b, out_dtype=pl.FP32)\nreturn y")
TAIL = cube("y = pl.matmul(a, b, out_dtype=pl.FP32)\ne = pl.exp(y)\nreturn e")
ROUNDED_TAIL = cube("y = pl.matmul(a, b, out_dtype=pl.FP16)\ne = pl.abs(y)\nreturn e", dtype="FP16")
CHAIN = cube("y = pl.matmul(a, b, out_dtype=pl.FP16)\nz = pl.matmul(y, c, out_dtype=pl.FP32)\n"
             "return z", (32, 64), c=tensor([32, 64], "FP16"))  # fmt: skip
PADDED = product(17, 48, 64, "FP16", False, False)

CASES = {
    "vec-lines-are-whole-blocks": (EXP, ONE_COLUMN),
    "vec-columns-are-whole-blocks": (COLUMN, EXP),
    "vec-takes-symbolic-columns": (
        dynamic({"x": tensor([16, "D"], "FP32")}, "y = pl.exp(x)\nreturn y",
                tensor([16, "D"], "FP32")), EXP,
    ),
    "vec-takes-symbolic-rows-of-a-column": (
        dynamic({"x": tensor(["D", 1], "FP32")}, "y = pl.exp(x)\nreturn y",
                tensor(["D", 1], "FP32")), COLUMN,
    ),
    "mat-holds-whole-fractals": (MATMUL, EXP),
    "store-from-vec": (EXP, READ_ONLY),
    "store-from-acc": (MATMUL, EXP),
    "scalar-read-from-vec": (SCALAR, EXP),
    "load-into-vec": (EXP, MATMUL),
    "load-into-mat": (MATMUL, EXP),
    "load-boxed-into-mat": (PADDED, EXP),
    "load-written-memory-into-vec": (WRITTEN, EXP),
    "load-written-memory-into-mat": (WRITTEN_OPERAND, MATMUL),
    "transposed-operand-is-a-view": (TRANSPOSED, MATMUL),
    "vector-result-to-mat": (VECTOR_OPERAND, MATMUL),
    "accumulator-to-vec": (TAIL, EXP),
    "accumulator-to-vec-rounds": (ROUNDED_TAIL, TAIL),
    "made-in-an-enclosing-region": (LOOP, EXP),
    "load-into-vec-at-use": (LOOP, EXP),
    "load-into-mat-at-use": (CUBE_LOOP, LOOP),
    "accumulator-to-mat": (CHAIN, VECTOR_OPERAND),
    "transposed-operand-is-loaded-transposed": (TRANSPOSED, MATMUL),
}  # fmt: skip


@pytest.mark.req("C-016", "C-019", "C-034", "C-115", "C-116", "C-117", "C-118", "C-125", "C-128")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])


@pytest.mark.req("C-021")
def test_a_chained_product_stays_on_the_cube_side() -> None:
    """Drained to Mat it needs no vector unit, which the reference does."""
    reference, best = lower(CHAIN), executed(optimize(CHAIN, verify=True))
    assert Mem.Vec in {c.type.space for c in calls(reference, "tile.move")}
    assert not [c for c in calls(best) if getattr(c.type, "space", None) is Mem.Vec]
    assert best.cost.total < reference.cost.total


def test_a_transposed_load_reads_a_dn_view() -> None:
    """One right operand, transposed: either way gives the same numbers."""
    with_view = executed(optimize(TRANSPOSED, verify=True, without_rules=["transposed-load"]))
    assert len(calls(with_view, "tile.transpose_view")) >= 1
    free = executed(optimize(TRANSPOSED, verify=True))
    assert free.cost.total <= with_view.cost.total
