"""AivSplitValid: what crosses between the cube core and the vector lanes is where they put it."""

from __future__ import annotations

from collections.abc import Iterator

from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import expressions_of, subexpressions, walk
from pypto_egg.verify.finding import Finding, Property

# Operator -> where its operand has to be, and what is there.
_SOURCES = {
    "tile.aiv_shard": (Mem.Acc, "hands a cube result to the vector lanes"),
    "tile.aic_gather": (Mem.Vec, "hands what the vector lanes made to the cube core"),
}


def check_aiv_split(function: Function) -> Iterator[Finding]:
    """Findings of AivSplitValid in one function (C-012, C-266).

    Tensors carry no memory space, so this can be asked of the tile forms only. It is no operand
    constraint: a move that satisfied one would hide the author's mistake.
    """
    for stmt in walk(function.body):
        for expr in expressions_of(stmt):
            for call in subexpressions(expr):
                if not isinstance(call, Call) or call.op not in _SOURCES:
                    continue
                space, purpose = _SOURCES[call.op]
                operand = call.args[0].type
                if isinstance(operand, TileType) and operand.space is not space:
                    found = operand.space.value if operand.space else "no memory space"
                    yield Finding(
                        Property.AIV_SPLIT_VALID,
                        f"pl.{call.op} in function '{function.name}' takes a tile in {found} "
                        f"instead of {space.value}",
                        call.span or stmt.span,
                        f"it {purpose}",
                    )
