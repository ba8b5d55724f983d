"""Calls of tile operators as PTO operations."""

from __future__ import annotations

from collections.abc import Callable

from pypto_egg.emit.pto_cube import accumulated, product
from pypto_egg.emit.pto_instructions import instruction_of
from pypto_egg.emit.pto_kernel import Kernel
from pypto_egg.emit.pto_operands import Global, Tile
from pypto_egg.emit.pto_scalars import INDEX_TYPE, Value, scalar_type
from pypto_egg.emit.pto_types import element_type
from pypto_egg.emit.pto_vector import vector
from pypto_egg.ir.dtype import INDEX
from pypto_egg.ir.enums import AtomicType, CachePolicy, Mem, TensorLayout
from pypto_egg.ir.expr import BinOp, Call, Expr, Var, as_expr, dims_of
from pypto_egg.ir.fold import Dim, fold
from pypto_egg.ir.types import TensorType, tile_type
from pypto_egg.ops.windows import align_right
from pypto_egg.source import Span

# Keywords that change what a transfer does, with the values that change nothing.
_PLAIN: dict[str, tuple[object, ...]] = {
    "clamp": (None, False),
    "cache": (None, CachePolicy.DEFAULT),
    "atomic": (None, AtomicType.None_),
}


def write_call(kernel: Kernel, var: Var | None, call: Call, span: Span | None) -> None:
    """Write a call, and bind the variable that takes its result.

    Raises:
        PtoTextError: the operator, or a keyword of it, has no form.
    """
    name = f" for '{var.name}'" if var is not None else ""
    for keyword, plain in _PLAIN.items():
        if call.kwarg(keyword) not in plain:
            raise kernel.refused(f"{call.op} with {keyword}", span, f"leave {keyword} out")
    if call.op in _WRITES:
        _WRITES[call.op](kernel, var, call, span)
    elif var is None:
        raise kernel.refused(call.op, span)
    elif call.op in _MAKES:
        _MAKES[call.op](kernel, var, call, span)
    elif (instruction := instruction_of(call)) is not None:
        vector(kernel, var, call, instruction, span)
    else:
        raise kernel.refused(f"{call.op}{name}", span)


# --- global memory -------------------------------------------------------------------------------


def _load(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    source, offsets = kernel.memory(call.args[0], span), dims_of(call.args[1])
    sizes = dims_of(call.args[3]) if len(call.args) > 3 else ()
    part, kind = kernel.operands.partition(source, offsets, sizes or dims_of(call.args[2]), span)
    tile = kernel.result(var, span)
    kernel.emit(f"pto.tload ins({part} : {kind})")
    kernel.operands.outs(tile, span)


def _store(kernel: Kernel, var: Var | None, call: Call, span: Span | None) -> None:
    tile, out = kernel.tile(call.args[0], span), kernel.memory(call.args[2], span)
    sizes = dims_of(call.args[3]) if len(call.args) > 3 else ()
    # A matrix stored to a stack is one of its matrices.
    sizes = sizes or align_right(tile.kind.valid_shape, out.kind.rank, 1)
    part, kind = kernel.operands.partition(out, dims_of(call.args[1]), sizes, span)
    kernel.emit(f"pto.tstore ins({tile.handle} : {kernel.operands.type(tile, span)})")
    kernel.emit(f"           outs({part} : {kind})")
    if var is not None:
        kernel.globals[var] = out


def _tensor_view(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    source, kind = kernel.memory(call.args[0], span), var.type
    assert isinstance(kind, TensorType)
    if TensorLayout.NZ in (source.kind.layout, kind.layout) or source.kind.dtype != kind.dtype:
        raise kernel.refused(f"{call.op} for '{var.name}'", span)
    kernel.globals[var] = Global(source.argument, kind, var.name)


def _flat(kernel: Kernel, indices: tuple[Dim, ...], shape: tuple[Dim, ...], what: str,
          span: Span | None) -> str:  # fmt: skip
    """The row-major number of an element."""
    total: Expr = as_expr(indices[0])
    for index, extent in zip(indices[1:], shape[1:], strict=True):
        total = BinOp("*", total, as_expr(extent), INDEX)
        total = BinOp("+", total, as_expr(index), INDEX)
    return kernel.scalars.index(fold(total), what, span)


def _read_memory(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    source, kind = kernel.memory(call.args[0], span), scalar_type(var)
    if kind is None or source.kind.layout is not TensorLayout.ND:
        raise kernel.refused(f"{call.op} for '{var.name}'", span)
    what = f"the place of '{var.name}'"
    at = _flat(kernel, dims_of(call.args[1]), source.kind.shape, what, span)
    ssa = kernel.names.claim(var.name)
    element = element_type(source.kind.dtype, var.name, span)
    kernel.emit(f"{ssa} = pto.load_scalar {source.argument}[{at}] : !pto.ptr<{element}> -> {kind}")
    kernel.scalars.bind(var, (ssa, kind))


def _write_memory(kernel: Kernel, var: Var | None, call: Call, span: Span | None) -> None:
    out = kernel.memory(call.args[0], span)
    at = _flat(kernel, dims_of(call.args[1]), out.kind.shape, f"the place in '{out.name}'", span)
    given = kernel.scalars.element(call.args[2], out.kind.dtype, "the value", span)
    if given is None or out.kind.layout is not TensorLayout.ND:
        raise kernel.refused(f"{call.op} to '{out.name}'", span)
    element = element_type(out.kind.dtype, out.name, span)
    kernel.emit(
        f"pto.store_scalar {given[0]}, {out.argument}[{at}] : !pto.ptr<{element}>, {given[1]}"
    )
    if var is not None:
        kernel.globals[var] = out


# --- tiles ---------------------------------------------------------------------------------------


def _create(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    tile = kernel.placed.get(var) or kernel.operands.alloc(var.name, kernel.type_of(var), span)
    kernel.tiles[var], kernel.unset[tile.buffer] = tile, ()


def _move(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    source = kernel.tile(call.args[0], span)
    kernel.operands.instruction("pto.tmov", (source,), kernel.result(var, span), span)


def _extract(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    source = kernel.tile(call.args[0], span)
    at = [kernel.scalars.index(e, "the extract's offset", span) for e in call.args[1:3]]
    operands: tuple[Tile | Value, ...] = (source, *((ssa, INDEX_TYPE) for ssa in at))
    kernel.operands.instruction("pto.textract", operands, kernel.result(var, span), span)


def _reshape(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    source = kernel.tile(call.args[0], span)
    kernel.tiles[var] = kernel.operands.reshaped(source, var.name, kernel.type_of(var), span)


def _set_valid(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    """A tile without a value is made with the extents at once; of another one it is a window."""
    source = kernel.buffer(call.args[0], span)
    if source.buffer in kernel.unset:
        _create(kernel, var, call, span)
        return
    kernel.tiles[var] = kernel.operands.window(source, var.name, kernel.type_of(var), (0, 0), span)


def _slice(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    source, at = kernel.tile(call.args[0], span), dims_of(call.args[2])
    if len(at) != 2 or call.kwarg("pad_value") is not None or kernel.type_of(var).rank != 2:
        raise kernel.refused(f"{call.op} for '{var.name}'", span)
    kernel.tiles[var] = kernel.operands.window(
        source, var.name, kernel.type_of(var), (at[0], at[1]), span
    )


def _assemble(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    target, source = kernel.buffer(call.args[0], span), kernel.tile(call.args[1], span)
    row, col = dims_of(call.args[2])
    kernel.tiles[var] = target
    kernel.unset.pop(target.buffer, None)
    if source.kind.space is Mem.Acc and target.kind.space is Mem.Mat:
        at = [kernel.scalars.index(dim, f"the place of '{var.name}'", span) for dim in (row, col)]
        operands: tuple[Tile | Value, ...] = (source, *((ssa, INDEX_TYPE) for ssa in at))
        kernel.operands.instruction("pto.tinsert", operands, target, span)
        return
    if source.kind.space is not target.kind.space:
        raise kernel.refused(f"{call.op} for '{var.name}'", span)
    view = target.kind.layout
    kind = tile_type(source.kind.shape, source.kind.dtype, source.kind.space).with_view(
        blayout=view.blayout, slayout=view.slayout, fractal=view.fractal,
        valid_shape=source.kind.valid_shape,
    )  # fmt: skip
    part = kernel.operands.window(target, f"{var.name}_part", kind, (row, col), span)
    kernel.operands.instruction("pto.tmov", (source,), part, span)


def _transpose(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    """The scratch is a tile of the source's type, made here where the program has none (C-173)."""
    source = kernel.tile(call.args[0], span)
    if len(call.args) > 3:
        scratch = kernel.buffer(call.args[3], span)
    else:
        scratch = kernel.operands.alloc(f"{var.name}_tmp", source.kind, span)
    operands = (source, scratch)
    kernel.operands.instruction("pto.ttrans", operands, kernel.result(var, span), span)


def _read_tile(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    source, kind = kernel.tile(call.args[0], span), scalar_type(var)
    if kind is None:
        raise kernel.refused(f"{call.op} for '{var.name}'", span)
    what = f"the place of '{var.name}'"
    at = _flat(kernel, dims_of(call.args[1]), source.kind.shape, what, span)
    ssa = kernel.names.claim(var.name)
    shown = kernel.operands.type(source, span)
    kernel.emit(f"{ssa} = pto.tgetval ins({source.handle}, {at} : {shown}, index) outs : {kind}")
    kernel.scalars.bind(var, (ssa, kind))


def _write_tile(kernel: Kernel, var: Var | None, call: Call, span: Span | None) -> None:
    target = kernel.tile(call.args[0], span)
    name = target.handle.removeprefix("%")
    at = _flat(kernel, dims_of(call.args[1]), target.kind.shape, f"the place in '{name}'", span)
    given = kernel.scalars.element(call.args[2], target.kind.dtype, "the value", span)
    if given is None:
        raise kernel.refused(f"{call.op} to '{name}'", span)
    kernel.operands.instruction("pto.tsetval", ((at, INDEX_TYPE), given), target, span)
    if var is not None:
        kernel.tiles[var] = target


def _block_number(kernel: Kernel, var: Var, call: Call, span: Span | None) -> None:
    ssa = kernel.names.claim(var.name)
    kernel.emit(f"{ssa} = pto.{call.op.removeprefix('tile.')}")
    kernel.scalars.bind(var, (ssa, "i64"))


_Maker = Callable[[Kernel, Var, Call, Span | None], None]
_Writer = Callable[[Kernel, Var | None, Call, Span | None], None]

_MAKES: dict[str, _Maker] = {
    "tile.load": _load,
    "tile.create": _create,
    "tile.move": _move,
    "tile.extract": _extract,
    "tile.transpose_view": _reshape,
    "tile.reshape": _reshape,
    "tile.set_validshape": _set_valid,
    "tile.slice": _slice,
    "tile.assemble": _assemble,
    "tile.transpose": _transpose,
    "tile.read": _read_tile,
    "tile.matmul": product,
    "tile.matmul_bias": product,
    "tile.matmul_acc": accumulated,
    "tile.get_block_idx": _block_number,
    "tile.get_block_num": _block_number,
    "tile.get_subblock_idx": _block_number,
    "tensor.view": _tensor_view,
    "tensor.reshape": _tensor_view,
    "tensor.read": _read_memory,
}
_WRITES: dict[str, _Writer] = {
    "tile.store": _store,
    "tile.write": _write_tile,
    "tensor.write": _write_memory,
}
