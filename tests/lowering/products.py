"""Products and sums of products in PyPTO text, and the boxes that the rules give them."""

from __future__ import annotations

import itertools

from kernels import kernel, tensor

MS = (1, 5, 17, 40, 100, 112, 250)
NS = (16, 24, 100, 256)
DTYPES = ("FP16", "BF16", "FP32", "INT8")
TRANSPOSES = tuple(itertools.product((False, True), repeat=2))
LINE = {"FP16": 16, "BF16": 16, "FP32": 8, "INT8": 32}
SUM = {"FP16": "FP32", "BF16": "FP32", "FP32": "FP32", "INT8": "INT32"}
TARGETS = ("a2a3", "a5")
L0C_BYTES = {"a2a3": 128 * 1024, "a5": 256 * 1024}


def round_up(extent: int, step: int) -> int:
    return -(-extent // step) * step


def m_step(dtype: str, a_trans: bool) -> int:
    """Rows of Acc and of an untransposed left tile are 16; a transposed one has M on columns."""
    return max(LINE[dtype], 16) if a_trans else 16


def n_step(dtype: str, b_trans: bool) -> int:
    """N is on Mat columns unless the right operand is transposed."""
    return 16 if b_trans else max(LINE[dtype], 16)


def operands(m: int, n: int, k: int, a_trans: bool, b_trans: bool) -> tuple[list[int], list[int]]:
    return ([k, m] if a_trans else [m, k]), ([n, k] if b_trans else [k, n])


def flags(a_trans: bool, b_trans: bool) -> str:
    return f"a_trans={a_trans}, b_trans={b_trans}"


def product(
    m: int, n: int, k: int, dtype: str, a_trans: bool, b_trans: bool, tail: str = ""
) -> str:
    a, b = operands(m, n, k, a_trans, b_trans)
    params = {"a": tensor(a, dtype), "b": tensor(b, dtype)}
    body = f"y = pl.matmul(a, b, {flags(a_trans, b_trans)}, out_dtype=pl.{SUM[dtype]})\n"
    return kernel(params, body + (tail or "return y"), tensor([m, n], SUM[dtype]))


def accumulation(m: int, n: int, dtype: str, a_trans: bool, b_trans: bool, start: str) -> str:
    """A sum over K = 192 in steps of 64, from a buffer, from zeros, or from a first product."""
    a, b = operands(m, n, 192, a_trans, b_trans)
    a_at = "[i:i + 64, :]" if a_trans else "[:, i:i + 64]"
    b_at = "[:, i:i + 64]" if b_trans else "[i:i + 64, :]"
    first = f"a0 = a{a_at}\nb0 = b{b_at}\n".replace("i:i + 64", "0:64")
    total = SUM[dtype]
    zero = "0" if total == "INT32" else "0.0"
    seeds = {
        "created": (f"z = pl.create_tensor([{m}, {n}], pl.{total})\n", 0),
        "zero": (f"z = pl.full([{m}, {n}], dtype=pl.{total}, value={zero})\n", 0),
        "peeled": (
            f"{first}z = pl.matmul(a0, b0, {flags(a_trans, b_trans)}, out_dtype=pl.{total})\n", 64,
        ),
    }  # fmt: skip
    seed, from_ = seeds[start]
    body = (
        seed
        + f"""
for i, (acc,) in pl.range({from_}, 192, 64, init_values=(z,)):
    ak = a{a_at}
    bk = b{b_at}
    nxt = pl.matmul_acc(acc, ak, bk, {flags(a_trans, b_trans)})
    r = pl.yield_(nxt)
return r"""
    )
    return kernel({"a": tensor(a, dtype), "b": tensor(b, dtype)}, body, tensor([m, n], total))
