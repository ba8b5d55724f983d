"""Builders of kernels in PyPTO text, and readers of the tile programs that come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pypto_egg import lower, optimize
from pypto_egg.ir.enums import FunctionType, Mem
from pypto_egg.ir.expr import Call, Var
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Eval, For
from pypto_egg.ir.types import TensorType, TileType, box_shape
from pypto_egg.ir.visit import defined_by, expressions_of, subexpressions, walk
from pypto_egg.lowering import Lowering
from pypto_egg.scheduling import L0Mode
from pypto_egg.target.target import load_target
from pypto_egg.verify import verify_program

CUBE_SPACES = (Mem.Mat, Mem.Left, Mem.Right, Mem.Acc)


def tensor(shape: Sequence[object], dtype: str) -> str:
    return f"pl.Tensor[[{', '.join(map(str, shape))}], pl.{dtype}]"


def out(shape: Sequence[object], dtype: str) -> str:
    return f"pl.Out[{tensor(shape, dtype)}]"


def inout(shape: Sequence[object], dtype: str) -> str:
    return f"pl.InOut[{tensor(shape, dtype)}]"


def function(
    params: Mapping[str, str], body: str, returns: str, name: str = "kernel", kind: str = "InCore"
) -> str:
    """One function; `body` is indented from column 0."""
    signature = ", ".join(["self", *(f"{p}: {t}" for p, t in params.items())])
    arrow = f" -> {returns}" if returns else ""
    head = f"    @pl.function(type=pl.FunctionType.{kind})\n    def {name}({signature}){arrow}:\n"
    lines = [line for line in body.strip("\n").splitlines() if line.strip()]
    least = min(len(line) - len(line.lstrip()) for line in lines)
    return head + "".join(f"        {line[least:]}\n" for line in lines)


def program(*functions: str, before: str = "") -> str:
    return f"import pypto.language as pl\n{before}\n@pl.program\nclass P:\n" + "".join(functions)


def kernel(params: Mapping[str, str], body: str, returns: str) -> str:
    """A program of one InCore function."""
    return program(function(params, body, returns))


def both(text: str, target: str = "a2a3", l0: L0Mode = "schedule") -> tuple[Lowering, Lowering]:
    """The reference lowering and the optimized one, each executed against the tensor program."""
    reference = executed(lower(text, target=target, verify=True))
    best = executed(optimize(text, target=target, l0=l0, verify=True))
    assert best.baseline is not None
    assert best.cycles <= best.baseline.cycles * (1 + 1e-9)
    return reference, best


def executed(result: Lowering) -> Lowering:
    """The result, after it was found that it was run and that something was compared."""
    assert result.verified
    assert result.comparison.equal
    assert result.comparison.compared > 0
    verify_program(result.program, stage="tile")
    return result


def incore(result: Lowering | Program, name: str = "") -> Function:
    """The InCore function of that name, or the only one."""
    lowered = result.program if isinstance(result, Lowering) else result
    found = [f for f in lowered.functions if f.type is FunctionType.InCore]
    if name:
        found = [f for f in found if f.name == name]
    (one,) = found
    return one


def calls(result: Lowering | Program | Function, op: str = "") -> list[Call]:
    """The calls of one op in program order, or all calls."""
    where = result if isinstance(result, Function) else incore(result)
    return [
        part
        for stmt in walk(where.body)
        for expr in expressions_of(stmt)
        for part in subexpressions(expr)
        if isinstance(part, Call) and op in ("", part.op)
    ]


def ops(result: Lowering | Program | Function) -> list[str]:
    return [call.op for call in calls(result)]


def tiles(result: Lowering | Program) -> Iterator[tuple[str, TileType]]:
    """Every tile variable of the InCore functions with its type."""
    lowered = result.program if isinstance(result, Lowering) else result
    for one in lowered.functions:
        if one.type is not FunctionType.InCore:
            continue
        for stmt in walk(one.body):
            for var in defined_by(stmt):
                if isinstance(var.type, TileType):
                    yield var.name, var.type


def assigned(result: Lowering, name: str) -> Call:
    """The call that a variable stands for."""
    for stmt in walk(incore(result).body):
        if isinstance(stmt, Assign) and stmt.var.name == name and isinstance(stmt.value, Call):
            return stmt.value
    raise AssertionError(f"no variable {name} in\n{result.text}")


def lines(result: Lowering) -> list[str]:
    """The lines of the tile program without indentation."""
    return [line.strip() for line in result.text.splitlines()]


def assert_whole_boxes(result: Lowering) -> None:
    """Every cube tile of constant extents is whole fractals; every Vec line is 32-byte blocks.

    The rows of a tile of rank 3 and more are packed over its batch, which is what must be whole.
    """
    target = load_target(result.target)
    for name, type_ in tiles(result):
        *lead, rows, cols = (1, *type_.shape) if type_.rank == 1 else type_.shape
        packed = rows
        for extent in lead:
            packed = packed * extent
        if type_.space in CUBE_SPACES and type_.layout.slayout.value != "none_box":
            high, wide = box_shape(type_.layout, type_.dtype)
            if isinstance(packed, int):
                assert packed % high == 0, (name, type_)
            if isinstance(cols, int):
                assert cols % wide == 0, (name, type_)
        elif type_.space is Mem.Vec and isinstance(cols, int) and isinstance(packed, int):
            line = packed if cols == 1 else cols
            assert line % target.c0_elems(type_.dtype) == 0, (name, type_)


def loads_of(result: Lowering, name: str) -> list[Call]:
    """The loads whose source is the GM tensor of that name."""
    return [
        call
        for call in calls(result, "tile.load")
        if isinstance(call.args[0], Var) and call.args[0].name == name
    ]


def shape_of(call: Call) -> list[object]:
    assert isinstance(call.type, TileType)
    return list(call.type.shape)


def valid_of(call: Call) -> list[object]:
    assert isinstance(call.type, TileType)
    return list(call.type.valid_shape)


def stores(result: Lowering) -> list[Call]:
    return calls(result, "tile.store")


def loops(result: Lowering) -> list[For]:
    return [stmt for stmt in walk(incore(result).body) if isinstance(stmt, For)]


def evals(result: Lowering) -> list[Call]:
    """Calls for their effect alone."""
    return [
        stmt.value
        for stmt in walk(incore(result).body)
        if isinstance(stmt, Eval) and isinstance(stmt.value, Call)
    ]


def shape_of_tensor(type_: object) -> list[object]:
    assert isinstance(type_, TensorType)
    return list(type_.shape)
