"""Matrix products as PTO operations.

An operand that lies in Mat is moved to L0 first, whole: cutting it to what L0 holds is a pass of
its own before this form. What accumulates in place keeps the buffer of its accumulator. The
hardware's bit that starts a sum anew is the choice between the two operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto_egg.emit.pto_kernel import Kernel
from pypto_egg.emit.pto_operands import Tile
from pypto_egg.emit.pto_types import tile_buf
from pypto_egg.ir.dtype import BOOL
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import BinOp, Call, ConstBool, Expr, Var
from pypto_egg.ir.stmt import For
from pypto_egg.ir.types import TileType, tile_type
from pypto_egg.source import Span


def product(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    """Write tile.matmul and tile.matmul_bias."""
    operands = _factors(kernel, call.args, span)
    op = "pto.tmatmul.bias" if call.op == "tile.matmul_bias" else "pto.tmatmul"
    kernel.operands.instruction(op, operands, kernel.result(var, span), span)


def accumulated(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    """Write tile.matmul_acc.

    Raises:
        PtoTextError: the accumulator is no tile of the result's type.
    """
    target = call.args[0]
    acc = kernel.tiles.get(target) if isinstance(target, Var) else None
    kind = var.type
    assert isinstance(kind, TileType)
    if acc is None or tile_buf(kind, var.name, span) != kernel.operands.type(acc, span):
        raise kernel.refused(
            f"tile.matmul_acc for '{var.name}'", span, "accumulate in a tile of one type"
        )
    kernel.tiles[var] = acc
    given = call.args[3] if len(call.args) > 3 else None
    unset = acc.buffer in kernel.unset
    loops = kernel.unset.pop(acc.buffer, ())
    factors = _factors(kernel, call.args[1:3], span)
    if given is None and unset and not loops:
        _multiply(kernel, factors, acc, span, anew=True)
    elif given is None and not unset:
        _multiply(kernel, factors, acc, span, anew=False)
    elif isinstance(given, ConstBool):
        _multiply(kernel, factors, acc, span, anew=given.value)
    else:
        anew = _condition(kernel, loops, given, span)
        kernel.emit(f"scf.if {anew} {{")
        with kernel.deeper():
            _multiply(kernel, factors, acc, span, anew=True)
        kernel.emit("} else {")
        with kernel.deeper():
            _multiply(kernel, factors, acc, span, anew=False)
        kernel.emit("}")


def _condition(kernel: Kernel, loops: Sequence[For], given: Expr | None, span: Span | None) -> str:
    """Where the sum starts anew: as the program says, or in the first round of the loops."""
    if given is not None:
        return kernel.scalars.value(given, "init_cond", span)[0]
    first: Expr | None = None
    for loop in loops:
        here = BinOp("==", loop.var, loop.start, BOOL)
        first = here if first is None else BinOp("and", first, here, BOOL)
    assert first is not None
    return kernel.scalars.value(first, "the first round", span)[0]


def _multiply(
    kernel: Kernel, factors: tuple[Tile, ...], acc: Tile, span: Span | None, *, anew: bool
) -> None:
    if anew:
        kernel.operands.instruction("pto.tmatmul", factors, acc, span)
    else:
        kernel.operands.instruction("pto.tmatmul.acc", (acc, *factors), acc, span)


def _factors(kernel: Kernel, factors: Sequence[Expr], span: Span | None) -> tuple[Tile, ...]:
    places = (Mem.Left, Mem.Right, Mem.Bias)
    return tuple(
        _in_l0(kernel, kernel.tile(factor, span), place, span)
        for factor, place in zip(factors, places, strict=False)
    )


def _in_l0(kernel: Kernel, tile: Tile, space: Mem, span: Span | None) -> Tile:
    """An operand where the cube reads it: moved there if it lies in Mat."""
    if tile.kind.space is space:
        return tile
    name, kind = tile.handle.removeprefix("%"), tile.kind
    if kind.space is not Mem.Mat:
        raise kernel.refused(f"the product of '{name}', which is not in Mat or {space.name},", span)
    made = tile_type(kind.shape, kind.dtype, space).with_view(valid_shape=kind.valid_shape)
    moved = kernel.operands.alloc(f"{name}_{space.name.lower()}", made, span)
    kernel.operands.instruction("pto.tmov", (tile,), moved, span)
    return moved
