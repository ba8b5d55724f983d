"""The body of a loop or the arm of a branch, and how its values leave it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from pypto_egg.emit.pto_kernel import Kernel
from pypto_egg.emit.pto_operands import Global, Tile
from pypto_egg.emit.pto_places import place_value
from pypto_egg.emit.pto_scalars import Value
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Expr, Var
from pypto_egg.ir.stmt import Block, For, If, While, Yield
from pypto_egg.ir.types import ScalarType
from pypto_egg.ir.visit import yields_of
from pypto_egg.source import Span

WriteBlock = Callable[[Kernel, Block, Sequence[Var]], None]


def without_yield(block: Block) -> Block:
    """A block up to its yield."""
    return tuple(takewhile(lambda stmt: not isinstance(stmt, Yield), block))


def write_arm(
    kernel: Kernel,
    block: Block,
    targets: Sequence[Tile | None],
    region: For | While | If,
    write: WriteBlock,
) -> None:
    """Write a block whose values end in `targets` (tiles), or are handed on (scalars, tensors)."""
    values, span = yields_of(block), region.span
    own = () if isinstance(region, If) else region.iter_args
    names = region.results if isinstance(region, If) else own
    for value, target in zip(values, targets, strict=True):
        if target is not None:
            place_value(kernel, block, value, target)
    write(kernel, without_yield(block), own)
    handed: list[Value] = []
    moves: list[tuple[Tile, Tile, str]] = []
    for value, target, name in zip(values, targets, names, strict=True):
        if target is not None:
            moves.append((kernel.tile(value, span), target, name.name))
        elif isinstance(name.type, ScalarType):
            given = kernel.scalars.element(value, name.type.dtype, f"'{name.name}'", span)
            assert given is not None
            handed.append(given)
        else:
            _hand_on_tensor(kernel, value, name, span)
    _copy_all(kernel, moves, span)
    if handed:
        ssas, kinds = (", ".join(parts) for parts in zip(*handed, strict=True))
        kernel.emit(f"scf.yield {ssas} : {kinds}")


def _hand_on_tensor(kernel: Kernel, value: Expr, name: Var, span: Span | None) -> None:
    """Tensors are parameters: each arm, and each round, must hand on the same one."""
    given = kernel.memory(value, span)
    known: Global | None = kernel.globals.get(name)
    if known is not None and known != given:
        raise kernel.refused(f"the carried '{name.name}'", span, "hand on the tensor it was handed")
    kernel.globals[name] = given


def _copy_all(kernel: Kernel, moves: list[tuple[Tile, Tile, str]], span: Span | None) -> None:
    """Copy values to their buffers as if at once: what is overwritten is set aside first."""
    moves = [move for move in moves if move[0].handle != move[1].handle]
    overwritten = {target.buffer for _, target, _ in moves}
    staged = []
    for source, target, name in moves:
        if source.buffer in overwritten:
            aside = kernel.operands.alloc(f"{name}_aside", source.kind, span)
            copy(kernel, source, aside, name, span)
            source = aside
        staged.append((source, target, name))
    for source, target, name in staged:
        copy(kernel, source, target, name, span)


def copy(kernel: Kernel, source: Tile, target: Tile, name: str, span: Span | None) -> None:
    """Copy a tile of Vec into another one.

    Raises:
        PtoTextError: they lie elsewhere; names the variable that is carried.
    """
    if target.kind.space is not Mem.Vec or source.kind.space is not Mem.Vec:
        raise kernel.refused(
            f"the carried '{name}'", span,
            "a round or an arm must leave it in the buffer it was handed, as products that "
            "accumulate do: outside of Vec nothing copies a tile to its own memory",
        )  # fmt: skip
    kernel.operands.instruction("pto.tmov", (source,), target, span)
    kernel.unset.pop(target.buffer, None)
