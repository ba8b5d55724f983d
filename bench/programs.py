"""PyPTO programs whose size is a parameter."""

from __future__ import annotations

from pypto_egg.bench.workloads import Workload


def layer_chain(layers: int, *, size: int = 32) -> str:
    """The text of one InCore function with this many layers in a row.

    A layer is a product with FP32 accumulator, an exponential and a rounding back to FP16, on
    `size` x `size` tensors: three statements, of which the first is on the cube.
    """
    tensor = f"pl.Tensor[[{size}, {size}], pl.FP16]"
    lines = [
        "import pypto.language as pl",
        "",
        "",
        "@pl.program",
        "class Layers:",
        "    @pl.function(type=pl.FunctionType.InCore)",
        f"    def layers(self, x0: {tensor}, w: {tensor}) -> {tensor}:",
    ]
    for i in range(layers):
        lines += [
            f"        p{i} = pl.matmul(x{i}, w, out_dtype=pl.FP32)",
            f"        e{i} = pl.exp(p{i})",
            f'        x{i + 1} = pl.cast(e{i}, target_type=pl.FP16, mode="rint")',
        ]
    lines.append(f"        return x{layers}")
    return "\n".join(lines) + "\n"


def product(workload: Workload, *, nz: bool = False) -> str:
    """The text of one InCore function that computes one product of a workload's size.

    Args:
        nz: the right operand lies in GM in NZ order.
    """
    w = workload
    a = (w.k, w.m) if w.a_trans else (w.m, w.k)
    b = (w.n, w.k) if w.b_trans else (w.k, w.n)
    order = ", pl.NZ" if nz else ""
    flags = f", a_trans={w.a_trans}, b_trans={w.b_trans}" if w.a_trans or w.b_trans else ""
    out = f"pl.Tensor[[{w.m}, {w.n}], pl.{w.dtype_out}]"
    return "\n".join(
        (
            "import pypto.language as pl",
            "",
            "",
            "@pl.program",
            "class Product:",
            "    @pl.function(type=pl.FunctionType.InCore)",
            "    def product(",
            "        self,",
            f"        a: pl.Tensor[[{a[0]}, {a[1]}], pl.{w.dtype_a}],",
            f"        b: pl.Tensor[[{b[0]}, {b[1]}], pl.{w.dtype_b}{order}],",
            f"    ) -> {out}:",
            f"        c = pl.matmul(a, b{flags}, out_dtype=pl.{w.dtype_out})",
            "        return c",
            "",
        )
    )


def shared_operand(count: int, *, size: int = 32) -> str:
    """The text of one InCore function with this many products of one left operand, added up.

    Each product has a weight of its own, a window of one large tensor, on `size` x `size` tensors.
    """
    tensor = f"pl.Tensor[[{size}, {size}], pl.FP16]"
    lines = [
        "import pypto.language as pl",
        "",
        "",
        "@pl.program",
        "class Shared:",
        "    @pl.function(type=pl.FunctionType.InCore)",
        f"    def shared(self, x: {tensor}, w: pl.Tensor[[{size}, {size * count}], pl.FP16]) -> "
        f"pl.Tensor[[{size}, {size}], pl.FP32]:",
    ]
    total = ""
    for i in range(count):
        lines += [
            f"        w{i} = w[:, {i * size}:{(i + 1) * size}]",
            f"        p{i} = pl.matmul(x, w{i}, out_dtype=pl.FP32)",
            f"        e{i} = pl.exp(p{i})",
        ]
        lines += [f"        s{i} = pl.add({total}, e{i})"] if total else []
        total = f"s{i}" if total else f"e{i}"
    lines.append(f"        return {total}")
    return "\n".join(lines) + "\n"
