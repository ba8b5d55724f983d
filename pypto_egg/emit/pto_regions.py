"""Loops and branches as `scf` operations.

Scalars pass through their borders as values. Tiles do not: a tile is a buffer, so a loop carries
one buffer that every round overwrites, and both arms of a branch leave their result in one. Where
a value is not made in that buffer, it is copied there at the end (PyPTO, PTO code generation of
control flow).
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto_egg.emit.pto_arms import WriteBlock, copy, write_arm
from pypto_egg.emit.pto_kernel import SET_FIRST, Kernel
from pypto_egg.emit.pto_operands import Tile
from pypto_egg.emit.pto_places import left_in
from pypto_egg.emit.pto_scalars import INDEX_TYPE, scalar_type
from pypto_egg.ir.enums import LoopKind
from pypto_egg.ir.expr import BinOp, Expr, Var
from pypto_egg.ir.fold import const_value
from pypto_egg.ir.stmt import For, If, While
from pypto_egg.ir.types import ScalarType, TileType
from pypto_egg.ir.visit import yields_of

_LOOPS = (LoopKind.range, LoopKind.parallel, LoopKind.pipeline, LoopKind.unroll)


def write_loop(kernel: Kernel, loop: For, write: WriteBlock) -> None:
    """Write a loop.

    Args:
        write: writes the statements of a block; further variables are as if made in it.

    Raises:
        PtoTextError: a loop of another kind, or a carried tile whose buffer cannot be kept.
    """
    step = const_value(loop.step)
    if loop.kind is LoopKind.spmd:
        _write_blocks(kernel, loop, write)
        return
    if loop.kind not in _LOOPS or step is None or step < 1:
        raise kernel.refused(f"the {loop.kind.value} loop over '{loop.var.name}'", loop.span)
    kernel.views_before((loop,))
    carried = _enter(kernel, loop)
    bounds = [
        kernel.scalars.index(bound, f"{what} of '{loop.var.name}'", loop.span)
        for what, bound in (("start", loop.start), ("stop", loop.stop), ("step", loop.step))
    ]
    ssa = kernel.names.claim(loop.var.name)
    kernel.scalars.bind(loop.var, (ssa, INDEX_TYPE))
    head = f"scf.for {ssa} = {bounds[0]} to {bounds[1]} step {bounds[2]}"
    results = _scalar_results(kernel, loop.results, [kind for _, _, kind in carried])
    if carried:
        pairs = ", ".join(f"{arg} = {init}" for arg, init, _ in carried)
        head = f"{results} = {head} iter_args({pairs}) -> ({_kinds(carried)})"
    kernel.emit(f"{head} {{")
    with kernel.deeper():
        targets = [kernel.tiles.get(arg) for arg in loop.iter_args]
        write_arm(kernel, loop.body, targets, loop, write)
    kernel.emit("}")
    for arg, result in zip(loop.iter_args, loop.results, strict=True):
        if not isinstance(arg.type, ScalarType):
            kernel.renamed(result, arg, loop.span)


def _write_blocks(kernel: Kernel, loop: For, write: WriteBlock) -> None:
    """A loop whose rounds run on a block each: its variable is the number of the block."""
    plain = const_value(loop.start) == 0 and const_value(loop.step) == 1
    if kernel.depth or not plain or loop.iter_args:
        raise kernel.refused(
            f"the spmd loop over '{loop.var.name}'", loop.span,
            "a loop over blocks stands outside of other loops, counts from 0, and carries nothing",
        )  # fmt: skip
    ssa = kernel.names.claim(loop.var.name)
    kernel.emit(f"{ssa} = pto.get_block_idx")
    kernel.scalars.bind(loop.var, (ssa, "i64"))
    write(kernel, loop.body, ())


def write_while(kernel: Kernel, loop: While, write: WriteBlock) -> None:
    """Write a loop that runs while a condition holds: the condition has a region of its own.

    Raises:
        PtoTextError: as for other loops.
    """
    kernel.views_before((loop,))
    carried = _enter(kernel, loop)
    kinds = _kinds(carried)
    scalars = [arg for arg in loop.iter_args if isinstance(arg.type, ScalarType)]
    results = _scalar_results(kernel, loop.results, [kind for _, _, kind in carried])
    pairs = ", ".join(f"{arg} = {init}" for arg, init, _ in carried)
    head = f"scf.while ({pairs}) : ({kinds}) -> ({kinds})" if carried else "scf.while : () -> ()"
    kernel.emit(f"{results}{' = ' if results else ''}{head} {{")
    with kernel.deeper():
        goes = kernel.scalars.value(loop.cond, "the condition", loop.span)[0]
        handed = ", ".join(arg for arg, _, _ in carried)
        kernel.emit(f"scf.condition({goes}){f' {handed} : {kinds}' if carried else ''}")
    kernel.emit("} do {")
    if carried:
        inner = [(kernel.names.claim(arg.name), kind) for arg, (_, _, kind) in zip(
            scalars, carried, strict=True)]  # fmt: skip
        kernel.emit(f"^bb0({', '.join(f'{name} : {kind}' for name, kind in inner)}):")
        for arg, value in zip(scalars, inner, strict=True):
            kernel.scalars.bind(arg, value)
    with kernel.deeper():
        targets = [kernel.tiles.get(arg) for arg in loop.iter_args]
        write_arm(kernel, loop.body, targets, loop, write)
        if not carried:
            kernel.emit("scf.yield")
    kernel.emit("}")
    for arg, result in zip(loop.iter_args, loop.results, strict=True):
        if not isinstance(arg.type, ScalarType):
            kernel.renamed(result, arg, loop.span)


def write_branch(kernel: Kernel, branch: If, write: WriteBlock) -> None:
    """Write a branch.

    Raises:
        PtoTextError: as for loops, or arms that hand on different tensors.
    """
    condition = kernel.scalars.value(branch.cond, "the condition", branch.span)[0]
    kernel.views_before((branch,))
    arms = [branch.then, branch.orelse] if branch.orelse or branch.results else [branch.then]
    targets = [_meeting_place(kernel, branch, i) for i in range(len(branch.results))]
    kinds = [_scalar_kind(kernel, v) for v in branch.results if isinstance(v.type, ScalarType)]
    names = _scalar_results(kernel, branch.results, kinds)
    typed = f" -> ({', '.join(kinds)})" if kinds else ""
    kernel.emit(f"{names}{' = ' if names else ''}scf.if {condition}{typed} {{")
    before = dict(kernel.unset)
    after: dict[str, tuple[For, ...]] = {}
    for number, arm in enumerate(arms):
        if number:
            kernel.emit("} else {")
        kernel.unset = {
            buffer: loops
            for buffer, loops in before.items()
            if not (number and _is_first_round(branch.cond, loops))
        }
        with kernel.deeper():
            write_arm(kernel, arm, targets, branch, write)
        after.update(kernel.unset)
    kernel.emit("}")
    kernel.unset = after if len(arms) > 1 else before
    for result, target in zip(branch.results, targets, strict=True):
        if target is not None:
            kernel.tiles[result] = target


def _is_first_round(cond: Expr, loops: Sequence[For]) -> bool:
    """Whether a condition holds in the first round of the only loop, and in no other."""
    if len(loops) != 1 or not isinstance(cond, BinOp) or cond.op != "==":
        return False
    (loop,) = loops
    start = const_value(loop.start)
    sides = (cond.lhs, cond.rhs)
    return loop.var in sides and start is not None and start in map(const_value, sides)


# --- what passes the borders ---------------------------------------------------------------------


def _enter(kernel: Kernel, loop: For | While) -> list[tuple[str, str, str]]:
    """Bind what a loop carries; the name, first value and type of each carried scalar."""
    scalars = []
    for arg, init in zip(loop.iter_args, loop.inits, strict=True):
        if isinstance(arg.type, ScalarType):
            kind = _scalar_kind(kernel, arg)
            given = kernel.scalars.element(init, arg.type.dtype, f"'{arg.name}'", loop.span)
            ssa = kernel.names.claim(arg.name)
            kernel.scalars.bind(arg, (ssa, kind))
            assert given is not None
            scalars.append((ssa, given[0], kind))
        elif isinstance(arg.type, TileType):
            kernel.tiles[arg] = _carried_buffer(kernel, loop, arg, init)
        else:
            kernel.renamed(arg, init, loop.span)
    return scalars


def _carried_buffer(kernel: Kernel, loop: For | While, arg: Var, init: Expr) -> Tile:
    """The buffer that a loop carries: that of its first value, if nobody else needs that."""
    given = kernel.buffer(init, loop.span)
    if given.buffer in kernel.unset:
        tile = given if _is_own(kernel, init) else kernel.operands.alloc(arg.name, given.kind, None)
        _first_round_sets(kernel, loop, arg, tile)
        return tile
    if _is_own(kernel, init):
        return given
    assert isinstance(arg.type, TileType)
    tile = kernel.operands.alloc(arg.name, arg.type, loop.span)
    copy(kernel, given, tile, arg.name, loop.span)
    return tile


def _is_own(kernel: Kernel, init: Expr) -> bool:
    """Whether a tile has a buffer of its own that only the loop reads, made where the loop is."""
    if not isinstance(init, Var) or len(kernel.readers.get(init, [])) != 1:
        return False
    return init in kernel.local[-1] and kernel.tiles[init].handle == kernel.tiles[init].buffer


def _first_round_sets(kernel: Kernel, loop: For | While, arg: Var, tile: Tile) -> None:
    """An accumulator that is only created: the first round's product sets it."""
    start = const_value(loop.start) if isinstance(loop, For) else None
    stop = const_value(loop.stop) if isinstance(loop, For) else None
    if start is None or stop is None or start >= stop or isinstance(loop, While):
        raise kernel.refused(f"the first value of '{arg.name}'", loop.span, SET_FIRST)
    kernel.unset[tile.buffer] = (*kernel.unset.get(tile.buffer, ()), loop)


def _meeting_place(kernel: Kernel, branch: If, place: int) -> Tile | None:
    """The buffer in which both arms leave a result; None for what is no tile."""
    result = branch.results[place]
    if not isinstance(result.type, TileType):
        return None
    if result in kernel.placed:
        return kernel.placed[result]
    for arm in (branch.then, branch.orelse):
        kept = left_in(yields_of(arm)[place], arm)
        if kept is not None and kept in kernel.tiles:
            return kernel.tiles[kept]
    return kernel.operands.alloc(result.name, result.type, branch.span)


def _scalar_kind(kernel: Kernel, var: Var) -> str:
    kind = scalar_type(var)
    if kind is None:
        raise kernel.refused(f"the carried scalar '{var.name}'", var.span)
    return kind


def _scalar_results(kernel: Kernel, results: Sequence[Var], kinds: Sequence[str]) -> str:
    """Names for the scalar results of a region, bound and listed."""
    scalars = [var for var in results if isinstance(var.type, ScalarType)]
    names = [kernel.names.claim(var.name) for var in scalars]
    for var, name, kind in zip(scalars, names, kinds, strict=True):
        kernel.scalars.bind(var, (name, kind))
    return ", ".join(names)


def _kinds(carried: Sequence[tuple[str, str, str]]) -> str:
    return ", ".join(kind for _, _, kind in carried)
