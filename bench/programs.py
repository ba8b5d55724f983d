"""PyPTO programs whose size is a parameter."""

from __future__ import annotations


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
