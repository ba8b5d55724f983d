"""The PTO MLIR text of lowered kernels: views, partitions, loads, stores, moves and products.

A tile variable becomes a buffer, `pto.alloc_tile` at the head of the function; what accumulates in
place keeps the buffer of its accumulator. A GM parameter becomes one view, made before it is first
used, and each access a partition of it. An operand of a product that lies in Mat is moved to L0
first, whole: cutting it to what L0 holds is a pass of PyPTO before this form. Everything that has
no form here is refused by name. Source: PyPTO, BlockNzTensorViews ("generated code").
"""

from __future__ import annotations

from pypto_egg.emit.pto_operands import Global, Operands, Tile
from pypto_egg.emit.pto_scalars import INDEX_TYPE, Scalars, dtype_type
from pypto_egg.emit.pto_types import Names, check_assembler, element_type, tile_buf
from pypto_egg.errors import PtoTextError
from pypto_egg.ir.enums import AtomicType, CachePolicy, FunctionType, LoopKind, Mem
from pypto_egg.ir.expr import Call, ConstBool, Expr, Var, dims_of
from pypto_egg.ir.fold import const_value
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.stmt import Assign, Block, Eval, For, Return, Stmt, Yield
from pypto_egg.ir.types import (
    ScalarType,
    TensorType,
    TileType,
    tile_type,
)
from pypto_egg.ir.visit import expressions_of, subexpressions, walk, yields_of
from pypto_egg.source import Span

ASSEMBLER = "0.61"
_KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
_LOOPS = (LoopKind.range, LoopKind.parallel, LoopKind.pipeline, LoopKind.unroll)
# Keywords that change what a transfer does, with the values that change nothing.
_PLAIN: dict[str, tuple[object, ...]] = {
    "clamp": (None, False),
    "cache": (None, CachePolicy.DEFAULT),
    "atomic": (None, AtomicType.None_),
}
_FORMS = (
    "loads, stores, moves, extracts, transposed views and products have forms, and range loops "
    "around them"
)


def pto_text(program: Program, *, assembler: str = ASSEMBLER) -> str:
    """The PTO MLIR text of a lowered program's kernels, one `func.func` each.

    Args:
        program: of tiles. Functions that run outside the cores are not part of this form.
        assembler: the version of PTOAS that is to read the text.

    Raises:
        PtoTextError: there is no kernel, or a part of one has no form.
        NzError: an NZ tensor that is not of rank 5, or that this assembler does not take.
        OptionError: `assembler` is no version.
    """
    kernels = [function for function in program.functions if function.type in _KERNELS]
    if not kernels:
        raise PtoTextError(
            f"program '{program.name}' has no function that runs in a core",
            hint="PTO text is made of functions of type InCore, AIC or AIV",
        )
    check_assembler(kernels, assembler)
    lines = ["module {"]
    for function in kernels:
        lines.extend(_Kernel(function).lines())
    return "\n".join((*lines, "}", ""))


class _Kernel:
    """Writes one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._names = Names()
        self._body: list[str] = []
        self._depth = 0
        self._scalars = Scalars(self._names, self._emit)
        self._operands = Operands(self._names, self._scalars, self._emit)
        self._globals: dict[Var, Global] = {}
        self._tiles: dict[Var, Tile] = {}
        # Accumulators without a value yet, with the loop whose first round gives them one.
        self._unset: dict[str, For | None] = {}

    def lines(self) -> list[str]:
        head = self._signature()
        if self._function.external_source is not None:
            raise self._refused("the external source", self._function.span)
        self._block(self._function.body)
        self._emit("return")
        inner = [*self._scalars.constant_lines(), *self._operands.allocated]
        return [f"  {head}", *(f"    {line}" for line in (*inner, *self._body)), "  }"]

    def _signature(self) -> str:
        arguments = []
        for position, param in enumerate(self._function.params):
            var, kind, argument = param.var, param.var.type, f"%arg{position}"
            if isinstance(kind, TensorType):
                element = element_type(kind.dtype, var.name, var.span)
                self._globals[var] = Global(argument, kind, var.name)
                arguments.append(f"{argument}: !pto.ptr<{element}>")
                continue
            scalar = dtype_type(kind.dtype) if isinstance(kind, ScalarType) else None
            if scalar is None:
                raise self._refused(f"parameter '{var.name}'", var.span)
            self._scalars.bind(var, (argument, scalar))
            arguments.append(f"{argument}: {scalar}")
        return f"func.func @{self._function.name}({', '.join(arguments)}) {{"

    def _emit(self, line: str) -> None:
        self._body.append("  " * self._depth + line)

    def _refused(self, what: str, span: Span | None, hint: str = _FORMS) -> PtoTextError:
        where = f"{what} of '{self._function.name}'"
        return PtoTextError(f"{where} has no PTO text", span=span or self._function.span, hint=hint)

    # --- statements ----------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for stmt in block:
            match stmt:
                case Assign():
                    self._assign(stmt)
                case Eval(value=Call(op="tile.store") as call):
                    self._store(call, stmt.span)
                case For():
                    self._loop(stmt)
                case Return():
                    self._return(stmt)
                case Yield():
                    pass
                case _:
                    raise self._refused(f"{_statement(stmt)}", stmt.span)

    def _assign(self, stmt: Assign) -> None:
        var, value = stmt.var, stmt.value
        span = stmt.span or var.span or self._function.span
        if isinstance(value, Call):
            self._call(var, value, value.span or span)
        elif isinstance(value, Var) and not isinstance(var.type, ScalarType):
            self._renamed(var, value, span)
        elif isinstance(var.type, ScalarType):
            self._scalars.bind(var, self._scalars.value(value, f"'{var.name}'", span))
        else:
            raise self._refused(f"the value of '{var.name}'", span)

    def _renamed(self, var: Var, value: Expr, span: Span | None) -> None:
        if isinstance(value, Var) and value in self._tiles:
            self._tiles[var] = self._tiles[value]
        else:
            self._globals[var] = self._global(value, span)

    def _return(self, stmt: Return) -> None:
        if self._depth:
            raise self._refused("a return inside a loop", stmt.span)
        for value in stmt.values:
            self._global(value, stmt.span)

    def _loop(self, loop: For) -> None:
        step = const_value(loop.step)
        if loop.kind not in _LOOPS or step is None or step < 1:
            raise self._refused(f"the {loop.kind.value} loop over '{loop.var.name}'", loop.span)
        self._views_before(loop)
        for arg, init in zip(loop.iter_args, loop.inits, strict=True):
            if isinstance(arg.type, ScalarType):
                raise self._refused(f"the carried scalar '{arg.name}'", loop.span)
            self._renamed(arg, init, loop.span)
        bounds = [
            self._scalars.index(bound, f"{what} of '{loop.var.name}'", loop.span)
            for what, bound in (("start", loop.start), ("stop", loop.stop), ("step", loop.step))
        ]
        self._first_round_sets(loop)
        ssa = self._names.claim(loop.var.name)
        self._scalars.bind(loop.var, (ssa, INDEX_TYPE))
        self._emit(f"scf.for {ssa} = {bounds[0]} to {bounds[1]} step {bounds[2]} {{")
        self._depth += 1
        self._block(loop.body)
        self._depth -= 1
        self._emit("}")
        self._carried(loop)

    def _views_before(self, loop: For) -> None:
        """Make the views that a loop uses where what follows the loop sees them too."""
        for stmt in walk((loop,)):
            for expr in expressions_of(stmt):
                for part in subexpressions(expr):
                    if isinstance(part, Var) and part in self._globals:
                        self._operands.view(self._globals[part], stmt.span)

    def _first_round_sets(self, loop: For) -> None:
        """Carried accumulators that are only created: the first round's product sets them."""
        start, stop = const_value(loop.start), const_value(loop.stop)
        for arg in loop.iter_args:
            tile = self._tiles.get(arg)
            if tile is None or tile.handle not in self._unset:
                continue
            if self._unset[tile.handle] is not None or start is None or stop is None:
                raise self._refused(f"the first value of '{arg.name}'", loop.span, _SET_FIRST)
            if start >= stop:
                raise self._refused(f"the first value of '{arg.name}'", loop.span, _SET_FIRST)
            self._unset[tile.handle] = loop

    def _carried(self, loop: For) -> None:
        """Results of a loop: what its body hands on must be what it was handed."""
        values = yields_of(loop.body)
        for arg, value, result in zip(loop.iter_args, values, loop.results, strict=True):
            same = isinstance(value, Var) and (
                self._tiles.get(value) == self._tiles.get(arg)
                if arg in self._tiles
                else self._globals.get(value) == self._globals[arg]
            )
            if not same:
                raise self._refused(
                    f"the carried '{arg.name}'",
                    loop.span,
                    "a round must hand on the buffer it was handed, as products that accumulate "
                    "and stores do",
                )
            self._renamed(result, arg, loop.span)

    # --- calls ---------------------------------------------------------------------------------

    def _call(self, var: Var, call: Call, span: Span | None) -> None:
        self._check_keywords(call, span)
        match call.op:
            case "tile.load":
                self._load(var, call, span)
            case "tile.store":
                self._globals[var] = self._store(call, span)
            case "tile.create":
                tile = self._operands.alloc(var.name, _tile_of(var), span)
                self._tiles[var], self._unset[tile.handle] = tile, None
            case "tile.move":
                self._moved(var, "pto.tmov", call, (), span)
            case "tile.extract":
                at = [self._scalars.index(e, "the extract's offset", span) for e in call.args[1:3]]
                self._moved(var, "pto.textract", call, tuple(at), span)
            case "tile.transpose_view":
                self._transposed(var, call, span)
            case "tile.matmul" | "tile.matmul_bias":
                self._tiles[var] = self._operands.alloc(var.name, _tile_of(var), span)
                self._product(call, call.args, self._tiles[var], span)
            case "tile.matmul_acc":
                self._accumulated(var, call, span)
            case _:
                raise self._refused(f"{call.op} for '{var.name}'", span)

    def _check_keywords(self, call: Call, span: Span | None) -> None:
        for name, plain in _PLAIN.items():
            if call.kwarg(name) not in plain:
                raise self._refused(f"{call.op} with {name}", span, f"leave {name} out")

    def _load(self, var: Var, call: Call, span: Span | None) -> None:
        source, offsets = self._global(call.args[0], span), dims_of(call.args[1])
        sizes = dims_of(call.args[3]) if len(call.args) > 3 else ()
        part, kind = self._operands.partition(source, offsets, sizes or dims_of(call.args[2]), span)
        tile = self._operands.alloc(var.name, _tile_of(var), span)
        self._tiles[var] = tile
        self._emit(f"pto.tload ins({part} : {kind})")
        self._operands.outs(tile, var.name, span)

    def _store(self, call: Call, span: Span | None) -> Global:
        self._check_keywords(call, span)
        tile, out = self._tile(call.args[0], span), self._global(call.args[2], span)
        sizes = dims_of(call.args[3]) if len(call.args) > 3 else ()
        sizes = sizes or tile.kind.valid_shape
        part, kind = self._operands.partition(out, dims_of(call.args[1]), sizes, span)
        self._emit(f"pto.tstore ins({tile.handle} : {self._operands.type(tile, span)})")
        self._emit(f"           outs({part} : {kind})")
        return out

    def _moved(self, var: Var, op: str, call: Call, at: tuple[str, ...], span: Span | None) -> None:
        source = self._tile(call.args[0], span)
        tile = self._operands.alloc(var.name, _tile_of(var), span)
        self._tiles[var] = tile
        kinds = ", ".join((self._operands.type(source, span), *(INDEX_TYPE for _ in at)))
        self._emit(f"{op} ins({', '.join((source.handle, *at))} : {kinds})")
        self._operands.outs(tile, var.name, span)

    def _transposed(self, var: Var, call: Call, span: Span | None) -> None:
        source = self._tile(call.args[0], span)
        tile = Tile(self._names.claim(var.name), _tile_of(var))
        self._tiles[var] = tile
        self._emit(
            f"{tile.handle} = pto.treshape {source.handle} : {self._operands.type(source, span)}"
        )
        self._emit(f"    -> {self._operands.type(tile, span)}")

    def _accumulated(self, var: Var, call: Call, span: Span | None) -> None:
        acc = self._tiles.get(call.args[0]) if isinstance(call.args[0], Var) else None
        if acc is None or tile_buf(_tile_of(var), var.name, span) != self._operands.type(acc, span):
            raise self._refused(
                f"tile.matmul_acc for '{var.name}'", span, "accumulate in a tile of one type"
            )
        self._tiles[var] = acc
        factors, given = call.args[1:3], call.args[3] if len(call.args) > 3 else None
        unset = acc.handle in self._unset
        loop = self._unset.pop(acc.handle, None)
        if given is None and unset and loop is None:
            self._product(call, factors, acc, span)
        elif given is None and not unset:
            self._product(call, factors, acc, span, accumulate=True)
        elif isinstance(given, ConstBool):
            self._product(call, factors, acc, span, accumulate=not given.value)
        else:
            first = self._first_round(loop, span) if given is None else self._condition(given, span)
            self._branched(call, factors, acc, first, span)

    def _first_round(self, loop: For | None, span: Span | None) -> str:
        assert loop is not None
        values = [self._scalars.value(e, "the loop", span) for e in (loop.var, loop.start)]
        return self._scalars.compared("eq", values[0], values[1], INDEX_TYPE)[0]

    def _condition(self, given: Expr, span: Span | None) -> str:
        return self._scalars.value(given, "init_cond", span)[0]

    def _branched(
        self, call: Call, factors: tuple[Expr, ...], acc: Tile, first: str, span: Span | None
    ) -> None:
        operands = self._factors(factors, span)
        self._emit(f"scf.if {first} {{")
        self._depth += 1
        self._operands.instruction("pto.tmatmul", operands, acc, span)
        self._depth -= 1
        self._emit("} else {")
        self._depth += 1
        self._operands.instruction("pto.tmatmul.acc", (acc, *operands), acc, span)
        self._depth -= 1
        self._emit("}")

    def _product(
        self,
        call: Call,
        factors: tuple[Expr, ...],
        out: Tile,
        span: Span | None,
        *,
        accumulate: bool = False,
    ) -> None:
        operands = self._factors(factors, span)
        op = "pto.tmatmul.bias" if call.op == "tile.matmul_bias" else "pto.tmatmul"
        if accumulate:
            op, operands = "pto.tmatmul.acc", (out, *operands)
        self._operands.instruction(op, operands, out, span)

    def _factors(self, factors: tuple[Expr, ...], span: Span | None) -> tuple[Tile, ...]:
        places = (Mem.Left, Mem.Right, Mem.Bias)
        return tuple(
            self._placed(self._tile(factor, span), place, span)
            for factor, place in zip(factors, places, strict=False)
        )

    def _placed(self, tile: Tile, space: Mem, span: Span | None) -> Tile:
        """An operand where the cube reads it: moved there if it lies in Mat."""
        if tile.kind.space is space:
            return tile
        name, kind = tile.handle.removeprefix("%"), tile.kind
        if kind.space is not Mem.Mat:
            raise self._refused(
                f"the product of '{name}', which is not in Mat or {space.name},", span
            )
        made = tile_type(kind.shape, kind.dtype, space).with_view(valid_shape=kind.valid_shape)
        moved = self._operands.alloc(f"{name}_{space.name.lower()}", made, span)
        self._operands.instruction("pto.tmov", (tile,), moved, span)
        return moved

    # --- parts ---------------------------------------------------------------------------------

    def _tile(self, value: Expr, span: Span | None) -> Tile:
        tile = self._tiles.get(value) if isinstance(value, Var) else None
        if tile is None or tile.handle in self._unset:
            name = value.name if isinstance(value, Var) else type(value).__name__
            raise self._refused(f"the value of tile '{name}'", span, _SET_FIRST)
        return tile

    def _global(self, value: Expr, span: Span | None) -> Global:
        found = self._globals.get(value) if isinstance(value, Var) else None
        if found is None:
            name = value.name if isinstance(value, Var) else type(value).__name__
            raise self._refused(f"'{name}', which is no view of a parameter,", span)
        return found


_SET_FIRST = (
    "a tile that is only created has no value: start it by a load or a product, or accumulate in "
    "it in a loop that surely runs"
)


def _tile_of(var: Var) -> TileType:
    assert isinstance(var.type, TileType)
    return var.type


def _statement(stmt: Stmt) -> str:
    value = getattr(stmt, "value", None)
    return value.op if isinstance(value, Call) else f"the statement {type(stmt).__name__}"
