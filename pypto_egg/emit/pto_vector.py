"""Vector operators that are one PTO instruction each."""

from __future__ import annotations

from pypto_egg.emit.pto_instructions import Instruction
from pypto_egg.emit.pto_kernel import Kernel
from pypto_egg.emit.pto_operands import Tile
from pypto_egg.emit.pto_scalars import Value
from pypto_egg.ir.enums import TileLayout
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.fold import const_value, provably_equal
from pypto_egg.ir.types import ScalarType, TileType, tile_type
from pypto_egg.ops.registry import lookup
from pypto_egg.source import Span

_SCRATCH = "tmp"


def vector(
    kernel: Kernel, var: Var, call: Call, instruction: Instruction, span: Span | None
) -> None:
    """Write a call that is one instruction.

    Raises:
        PtoTextError: a tile that lies in boxes or by columns where rows are walked, or a scalar
            of a dtype that has no form.
    """
    declared = lookup(call.op)
    assert declared is not None
    operands: list[Tile | Value] = []
    for position in instruction.operands:
        arg = call.args[position]
        if isinstance(arg.type, ScalarType):
            operands.append(_scalar(kernel, var, call, arg, span))
            continue
        scratch = declared.operands[position].name == _SCRATCH
        tile = kernel.buffer(arg, span) if scratch else kernel.tile(arg, span)
        operands.append(_row(kernel, tile, call, span) if instruction.flat else tile)
    out = kernel.result(var, span)
    if instruction.flat:
        out = _row(kernel, out, call, span)
    kernel.operands.instruction(
        instruction.name, operands, out, span, instruction.inside, instruction.behind
    )


def _scalar(kernel: Kernel, var: Var, call: Call, arg: Expr, span: Span | None) -> Value:
    """A scalar operand in the dtype of the tiles it meets."""
    first = next((a.type for a in call.args if isinstance(a.type, TileType)), kernel.type_of(var))
    if call.op == "tile.sels":
        first = kernel.type_of(var)
    given = kernel.scalars.element(arg, first.dtype, f"the scalar of '{var.name}'", span)
    if given is None:
        raise kernel.refused(f"{call.op} for '{var.name}' on {first.dtype.name}", span)
    return given


def _row(kernel: Kernel, tile: Tile, call: Call, span: Span | None) -> Tile:
    """The tile as an instruction reads it that walks tiles as one run: a column as a row."""
    view, (rows, cols) = tile.kind.layout, tile.kind.shape
    name = tile.handle.removeprefix("%")
    if view.slayout is not TileLayout.none_box:
        raise kernel.refused(
            f"{call.op} on '{name}', which lies in boxes,", span,
            "move it into a tile of plain rows first",
        )  # fmt: skip
    if view.blayout is TileLayout.row_major:
        return tile
    valid = tile.kind.valid_shape
    if const_value(cols) != 1 or const_value(valid[0]) is None or not provably_equal(valid[1], 1):
        raise kernel.refused(f"{call.op} on '{name}', which lies by columns,", span)
    kind = tile_type((1, rows), tile.kind.dtype, tile.kind.space).with_view(
        valid_shape=(1, valid[0])
    )
    return kernel.operands.reshaped(tile, f"{name}_row", kind, span)
