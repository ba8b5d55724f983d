"""In which buffer a value of a loop or branch is made, so that it need not be copied at the end."""

from __future__ import annotations

from pypto_egg.emit.pto_kernel import Kernel
from pypto_egg.emit.pto_operands import Tile
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.stmt import Assign, Block, For, If, Stmt
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import defined_by, expressions_of, free_vars, walk, yields_of
from pypto_egg.ops.registry import OpDecl, lookup


def left_in(value: Expr, block: Block) -> Var | None:
    """The variable from outside of a block in whose buffer a value of it is left by operators that
    work in place; None if none is."""
    makers = {var: stmt for stmt in block for var in defined_by(stmt)}
    in_place = False
    while isinstance(value, Var):
        maker = makers.get(value)
        if maker is None:
            return value if in_place else None
        kept = _kept(maker, value)
        if kept is None:
            return None
        value, in_place = kept, True
    return None


def _kept(maker: Stmt, value: Var) -> Expr | None:
    """What a statement leaves `value` in the buffer of."""
    if isinstance(maker, For):
        place = maker.results.index(value)
        # Other loops copy what they carry, and leave their first value as it was.
        kept = left_in(yields_of(maker.body)[place], maker.body)
        return maker.inits[place] if kept is maker.iter_args[place] else None
    if isinstance(maker, If):
        place = maker.results.index(value)
        arms = [arm for arm in (maker.then, maker.orelse) if arm]
        return next(
            (kept for arm in arms if (kept := left_in(yields_of(arm)[place], arm)) is not None),
            None,
        )
    call = maker.value if isinstance(maker, Assign) else None
    decl = _operator(call)
    if decl is None or decl.reuses_input != 0:
        return None
    assert isinstance(call, Call)
    return call.args[0]


def _operator(value: Expr | None) -> OpDecl | None:
    return lookup(value.op) if isinstance(value, Call) else None


def place_value(kernel: Kernel, block: Block, value: Expr, target: Tile) -> None:
    """Have a value of a block made in a buffer, if nothing reads the buffer from there on."""
    maker = next((stmt for stmt in block if value in defined_by(stmt)), None)
    if maker is None or not isinstance(value, Var) or not isinstance(value.type, TileType):
        return
    kept = left_in(value, block)
    if kept is not None:
        # It is left there anyway; a branch is told, as one of its arms may not be.
        if isinstance(maker, If) and kernel.tiles.get(kept) == target:
            kernel.placed[value] = target
        return
    if isinstance(maker, Assign):
        decl = _operator(maker.value)
        if decl is None or decl.inherits_memory or decl.reuses_input is not None:
            return
    elif not isinstance(maker, If):
        return
    behind = block[next(i for i, stmt in enumerate(block) if stmt is maker) :]
    names = _names_of(kernel, block, target)
    read = {var for s in walk(behind) for e in expressions_of(s) for var in free_vars(e)}
    if not names & read:
        kernel.placed[value] = target


def _names_of(kernel: Kernel, block: Block, target: Tile) -> set[Var]:
    """The variables that stand for a buffer, or a view of it, inside a block."""
    names = {var for var, tile in kernel.tiles.items() if tile.buffer == target.buffer}
    for stmt in walk(block):
        if isinstance(stmt, Assign):
            decl = _operator(stmt.value)
            alias = isinstance(stmt.value, Var) or (
                decl is not None and (decl.inherits_memory or decl.reuses_input == 0)
            )
            source = stmt.value.args[0] if isinstance(stmt.value, Call) and alias else stmt.value
            if alias and source in names:
                names.add(stmt.var)
        elif isinstance(stmt, For):
            for arg, init, result in zip(stmt.iter_args, stmt.inits, stmt.results, strict=True):
                if init in names:
                    names.update((arg, result))
    return names
