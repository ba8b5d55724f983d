"""Kernels of products in the four ways of transposing: nn, nt, tn, tt."""

from __future__ import annotations

from kernels import kernel, tensor
from products import operands

LETTERS = {"nn": (False, False), "nt": (False, True), "tn": (True, False), "tt": (True, True)}


def flagged(letters: str) -> str:
    a_trans, b_trans = LETTERS[letters]
    return f"a_trans={a_trans}, b_trans={b_trans}"


def of(letters: str, body: str, rank: int = 2, **more: str) -> str:
    """A kernel over a, b, c, d of the shapes that the letters ask for; MM and ACC are calls."""
    a, b = operands(32, 48, 64, *LETTERS[letters])
    lead = [2] * (rank - 2)
    params = {n: tensor([*lead, *(a if n in "ac" else b)], "FP16") for n in "abcd"}
    body = body.replace("MM(", "pl.matmul(").replace("ACC(", "pl.matmul_acc(")
    lines = []
    for line in body.strip().splitlines():
        if "pl.matmul(" in line:
            line = f"{line[:-1]}, {flagged(letters)}, out_dtype=pl.FP32)"
        if "pl.matmul_acc(" in line:
            line = f"{line[:-1]}, {flagged(letters)})"
        lines.append(line)
    used = {n: t for n, t in params.items() if any(f"{n}," in x or f", {n}" in x for x in lines)}
    return kernel({**used, **more}, "\n".join(lines), tensor([*lead, 32, 48], "FP32"))
