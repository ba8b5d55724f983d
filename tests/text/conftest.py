"""Texts around the statement under test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pypto_egg.ir.program import Program
from pypto_egg.text import parse, print_program

PARAMS = (
    "x: pl.Tensor[[16, 64], pl.FP32], h: pl.Tensor[[16, 64], pl.FP16], "
    "z: pl.Tensor[[16, 64], pl.INT32], idx: pl.Tensor[[16, 8], pl.INT32], "
    "src: pl.Tensor[[16, 8], pl.FP32], n: pl.Scalar[pl.INDEX], b: pl.Scalar[pl.INT32], "
    "u: pl.Scalar[pl.INT8], f: pl.Scalar[pl.FP16], c: pl.Scalar[pl.BOOL], t: pl.Scalar[pl.TASK_ID]"
)
# The first line of a body in the texts below.
FIRST_LINE = 7


@pytest.fixture
def text() -> Callable[..., str]:
    """A program with one function of the given body and type."""

    def build(body: str, kind: str = "InCore", arguments: str = "") -> str:
        lines = "\n".join("        " + line for line in body.split("\n"))
        return (
            "import pypto.language as pl\n"
            "import pypto.language.distributed as pld\n"
            "@pl.program\n"
            "class P:\n"
            f"    @pl.function(type=pl.FunctionType.{kind}{arguments})\n"
            f"    def k(self, {PARAMS}):\n"
            f"{lines}\n"
        )

    return build


@pytest.fixture
def canonical(text: Callable[..., str]) -> Callable[..., str]:
    """The printed body of a function; checks that reading the print changes nothing."""

    def build(body: str, kind: str = "InCore", arguments: str = "") -> str:
        return printed_body(parse(text(body, kind, arguments)))

    return build


def printed_body(program: Program) -> str:
    printed = print_program(program)
    assert print_program(parse(printed)) == printed
    lines = printed.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("    def k("))
    return "\n".join(line[8:] for line in lines[first + 1 : -1])
