"""Tile programs with NZ tensors, written as text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pypto_egg.errors import NzError
from pypto_egg.ir.expr import Call, dims_of
from pypto_egg.ir.program import Program
from pypto_egg.ir.stmt import Assign, Eval
from pypto_egg.ir.visit import walk
from pypto_egg.nz import block_nz
from pypto_egg.target.target import load_target
from pypto_egg.text import parse

A2A3 = load_target("a2a3")
A5 = load_target("a5")


def function(params: str, *body: str, returns: str = "", kind: str = "InCore") -> str:
    """The text of one function `k`."""
    arrow = f" -> {returns}" if returns else ""
    lines = "".join(f"        {line}\n" for line in body)
    return (
        f"    @pl.function(type=pl.FunctionType.{kind})\n    def k(self, {params}){arrow}:\n{lines}"
    )


def program(*functions: str) -> Program:
    """A program of functions given as text."""
    return parse("import pypto.language as pl\n\n@pl.program\nclass P:\n" + "\n".join(functions))


def kernel(params: str, *body: str, returns: str = "", kind: str = "InCore") -> Program:
    """A program of one function `k`."""
    return program(function(params, *body, returns=returns, kind=kind))


def blocked(given: Program, target=A2A3) -> Program:
    return block_nz(given, target)


def calls(given: Program, op: str) -> Iterator[Call]:
    """The calls of one operator, in program order."""
    for item in given.functions:
        for stmt in walk(item.body):
            value = stmt.value if isinstance(stmt, Assign | Eval) else None
            if isinstance(value, Call) and value.op == op:
                yield value


def operands(call: Call, *indices: int) -> list[list]:
    """Shape and offset operands as lists."""
    return [list(dims_of(call.args[index])) for index in indices]


def load_operands(given: Program) -> list[list]:
    """Offsets, sizes and, if they are others, valid sizes of the load of a blocked program."""
    (call,) = calls(blocked(given), "tile.load")
    offsets, sizes, *valid = operands(call, *range(1, len(call.args)))
    return [offsets, sizes, *(part for part in valid if part != sizes)]


def refused(given: Program, target=A2A3) -> NzError:
    """The error that blocking a program raises."""
    with pytest.raises(NzError) as caught:
        block_nz(given, target)
    error = caught.value
    assert error.code == "E410"
    assert error.hint
    return error


def tensor(shape, dtype="INT8", layout=", pl.NZ") -> str:
    dims = ", ".join(str(dim) for dim in shape)
    return f"pl.Tensor[[{dims}], pl.{dtype}{layout}]"


def out(shape, dtype="FP32", layout=", pl.NZ") -> str:
    return f"pl.Out[{tensor(shape, dtype, layout)}]"
