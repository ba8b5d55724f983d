"""Why a function has no legal lowering, in the user's names."""

from __future__ import annotations

from pypto_egg.analysis.provenance import Provenance, Root, RootKind, provenance_of
from pypto_egg.egraph.load import Loaded
from pypto_egg.egraph.saturate import Limits, Saturation, StopReason
from pypto_egg.egraph.tilegraph import TileGraph
from pypto_egg.egraph.values import Window
from pypto_egg.errors import (
    AlignmentError,
    CapacityError,
    LoweringError,
    NzError,
    SaturationLimitError,
    UnsupportedDTypeError,
)
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call, Expr, Var
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, For, If, Stmt, While
from pypto_egg.ir.types import TensorType
from pypto_egg.ir.visit import defined_by, walk
from pypto_egg.ops.registry import lookup
from pypto_egg.ops.site import show_dim
from pypto_egg.target.target import Target


def check_feasible(
    function: Function,
    loaded: Loaded,
    graph: TileGraph,
    saturation: Saturation,
    target: Target,
) -> None:
    """Nothing, if every statement of the function can be made from tiles.

    Raises:
        LoweringError: names the op that stands in the way, the size needed and the limit.
    """
    roots = [graph.roots.get(key) for key in loaded.roots]
    if all(root is not None and graph.classes[root].nodes for root in roots):
        return
    if saturation.stop is not StopReason.SATURATED:
        raise SaturationLimitError(
            f"function '{function.name}': saturation stopped at its {saturation.stop.value} after "
            f"{saturation.iterations} iterations, before a lowering was complete",
            span=function.span,
            hint=_raise_limit(saturation.stop),
        )
    provenance = provenance_of(function)
    for stmt in walk(function.body):
        if not (isinstance(stmt, Assign) and isinstance(stmt.value, Call)):
            continue
        call = stmt.value
        viewed = provenance.roots_of(call.args[0]) if call.op in _VIEWS else ()
        if call.op in _VIEWS and all(root.kind is RootKind.PARAM for root in viewed):
            continue
        obstacle = _obstacle(call, stmt.var, target)
        if obstacle is not None:
            raise obstacle
    made = _made(graph)
    seed = _seed_obstacle(function, provenance, made)
    if seed is not None:
        raise seed
    for window in loaded.shared:
        raise _shared_window(function, window, target)
    raise _unmade(function, graph, made)


_LIMITS = {
    StopReason.NODE_LIMIT: ("--node-limit", "nodes"),
    StopReason.ITERATION_LIMIT: ("--iteration-limit", "iterations"),
    StopReason.TIME_LIMIT: ("--time-limit", "seconds"),
}


def _raise_limit(stop: StopReason) -> str:
    option, field = _LIMITS[stop]
    usual = getattr(Limits(), field)
    return f"raise {option}, or limits=Limits({field}=...) from Python; the default is {usual}"


def _made(graph: TileGraph) -> dict[str, bool]:
    """Name of a value that some statement needs -> whether a tile of it can be made."""
    made: dict[str, bool] = {}
    for cls in graph.classes:
        made[cls.name] = made.get(cls.name, False) or bool(cls.nodes)
    return made


def _seed_obstacle(
    function: Function, provenance: Provenance, made: dict[str, bool]
) -> LoweringError | None:
    """The first product whose accumulator starts somewhere else than in L0C."""
    defined = {s.var: s.value for s in walk(function.body) if isinstance(s, Assign)}
    for var, call in defined.items():
        if not isinstance(call, Call) or call.op != "tensor.matmul_acc":
            continue
        if made.get(var.name, True) or not all(made.get(_name(x), True) for x in call.args[1:3]):
            continue
        for root in provenance.roots_of(call.args[0]):
            where = _outside_acc(root, defined.get(root.var))
            if where is not None:
                return LoweringError(
                    f"function '{function.name}': {call.op} accumulates into '{root.var.name}', "
                    f"which {where}; nothing brings it into L0C",
                    span=call.span,
                    hint="start with tensor.create or a product, and add "
                    f"'{root.var.name}' to the result",
                )
    return None


def _outside_acc(root: Root, value: Expr | None) -> str | None:
    """Where a buffer is that is no accumulator."""
    if root.kind in (RootKind.PARAM, RootKind.CALL):
        return "lies in global memory"
    if root.kind is RootKind.CREATE or not isinstance(value, Call):
        return None
    decl = lookup(value.op)
    if decl is not None and decl.family in ("matmul", "matmul_acc"):
        return None
    return f"{value.op} makes in UB"


def _unmade(function: Function, graph: TileGraph, made: dict[str, bool]) -> LoweringError:
    """The first value that no tile form serves."""
    refused = {name: f"{op}: {message}" for name, op, message in graph.refused}
    unmade = [s for s in walk(function.body)
              if isinstance(s, Assign) and not made.get(s.var.name, True)]  # fmt: skip
    # A view demands one exact form of what it views, so it is the cause rather than its source.
    unmade.sort(key=lambda s: not (isinstance(s.value, Call) and s.value.op in _VIEWS))
    for stmt in unmade[:1]:
        op = stmt.value.op if isinstance(stmt.value, Call) else "a value"
        why = refused.get(stmt.var.name, "its operands and its users have no tile form in common")
        return LoweringError(
            f"function '{function.name}': '{stmt.var.name}', {op}, cannot be lowered: {why}",
            span=stmt.span or function.span,
            hint="a padded tile (M and N of a product, columns that are not whole 32-byte blocks) "
            "cannot be reshaped or sliced on chip: store it and read it through memory",
        )
    for name, op, why in graph.refused:
        if op in ("looped", "merged"):
            return LoweringError(
                f"function '{function.name}': values of two types meet in '{name}': {why}",
                span=function.span,
                hint="give the values that a loop or a branch passes on the same valid_shape",
            )
        if op == "store":
            kind = NzError if why.startswith("NZ tensor") else LoweringError
            return kind(
                f"function '{function.name}': {why}",
                span=function.span,
                hint="store the product itself, in extents that need no padding, or keep the "
                "result ND",
            )
    for at in walk(function.body):
        for var in defined_by(at) if isinstance(at, For | While | If) else ():
            if not made.get(var.name, True):
                return _passed_on(function, at, var)
    return LoweringError(f"function '{function.name}' has no legal lowering", span=function.span)


def _passed_on(function: Function, stmt: Stmt, var: Var) -> LoweringError:
    """A value that a loop or a branch passes on, and of which no tile form serves all users."""
    what = "the arms yield" if isinstance(stmt, If) else "the loop starts from and yields"
    return LoweringError(
        f"function '{function.name}': what {what} for '{var.name}' and what reads it have no tile "
        "form in common",
        span=stmt.span or function.span,
        hint="a product's rows are padded in L0C and come so to the vector unit: give the values "
        "whole fractals, or store the product and read it through memory",
    )


def _obstacle(call: Call, result: Var, target: Target) -> LoweringError | None:
    """What keeps this call from being lowered, if it can be told from the call alone."""
    if call.op in ("tensor.matmul", "tensor.matmul_acc"):
        return _product_obstacle(call, result, target)
    if call.op in _VIEWS:
        return _view_obstacle(call, result, target)
    if call.op.split(".")[1] in _BROADCAST:
        return _broadcast_obstacle(call)
    return None


_VIEWS = ("tensor.reshape", "tensor.slice")
_BROADCAST = ("add", "sub", "mul", "div", "maximum", "minimum", "fmod")


def _shared_window(function: Function, window: Window, target: Target) -> AlignmentError:
    rows = window.type.shape[-2] if window.type.rank > 1 else 1
    return AlignmentError(
        f"function '{function.name}': a product and a vector op both read the window "
        f"{list(window.type.shape)} of '{window.handle.name}', so it is not padded, and its "
        f"{rows} rows are not whole fractals of {target.fractal.rows} (C-144, C-171, Q-11)",
        span=function.span,
        hint="use optimize, which loads it once for each consumer",
    )


def _name(expr: Expr) -> str:
    return expr.name if isinstance(expr, Var) else "operand"


def _product_obstacle(call: Call, result: Var, target: Target) -> LoweringError | None:
    first = 1 if call.op == "tensor.matmul_acc" else 0
    a, b = call.args[first], call.args[first + 1]
    assert isinstance(a.type, TensorType)
    assert isinstance(b.type, TensorType)
    pair = f"{call.op} of '{_name(a)}' ({a.type.dtype}) and '{_name(b)}' ({b.type.dtype})"
    accumulator = target.cube_accumulator(a.type.dtype, b.type.dtype)
    if accumulator is None:
        known = ", ".join(f"{x} x {y}" for x, y in target.cube_pairs)
        return UnsupportedDTypeError(
            f"{pair}: the cube of {target.name} has no such product",
            span=call.span,
            hint=f"cast the operands; the cube multiplies {known}",
        )
    assert isinstance(result.type, TensorType)
    m, n = result.type.shape[-2:]
    a_trans, b_trans = bool(call.kwarg("a_trans")), bool(call.kwarg("b_trans"))
    k = a.type.shape[-2] if a_trans else a.type.shape[-1]
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return LoweringError(
            f"{pair}: M = {show_dim(m)}, N = {show_dim(n)}, K = {show_dim(k)}: a cube tile has "
            "constant physical extents",
            span=call.span,
            hint="slice a constant window and give its runtime extent as valid_shape",
        )
    line, rows = target.c0_elems(a.type.dtype), target.fractal.rows
    steps = {line, rows if a_trans else line, line if b_trans else rows}
    needed = max(steps)
    if k % needed:
        return AlignmentError(
            f"{pair}: K = {k} is not a multiple of {needed} elements, and K is never padded "
            "(C-168, C-171, Q-12)",
            span=call.span,
            hint=f"pad both operands to K = {-(-k // needed) * needed} with zeros beforehand",
        )
    m_step = max(line if a_trans else rows, rows)
    n_step = rows if b_trans else max(line, rows)
    return _size_obstacle(call, pair, m, n, m_step, n_step, accumulator.bytes, target)


def _size_obstacle(
    call: Call, pair: str, m: int, n: int, m_step: int, n_step: int, acc_bytes: int, target: Target
) -> LoweringError | None:
    assert isinstance(call.type, TensorType)
    if call.type.rank > 2 and (n % n_step or m % m_step):
        return AlignmentError(
            f"{pair}: M = {m} and N = {n} of a batched product are not padded, and must be "
            f"multiples of {m_step} and {n_step}",
            span=call.span,
            hint="pad M and N beforehand, or write a loop over the batch of rank-2 products",
        )
    if call.op == "tensor.matmul_acc" and n % n_step:
        return AlignmentError(
            f"{pair}: N = {n} is not a multiple of {n_step}, and the reference lowering never "
            "pads N of an accumulated product (C-167)",
            span=call.span,
            hint="use optimize, which pads it, or pad N beforehand",
        )
    physical_m, physical_n = -(-m // m_step) * m_step, -(-n // n_step) * n_step
    needed = physical_m * physical_n * acc_bytes
    limit = target.capacity_bytes(Mem.Acc)
    if needed > limit:
        columns = limit // (physical_m * acc_bytes) // n_step * n_step
        split = f"split N into slices of at most {columns} columns, or " if columns else ""
        return CapacityError(
            f"{pair}: the accumulator of {physical_m} x {physical_n} needs {needed} bytes of "
            f"L0C, which has {limit}",
            span=call.span,
            hint=f"{split}split M into row blocks",
        )
    return None


def _view_obstacle(call: Call, result: Var, target: Target) -> LoweringError | None:
    for side in (call.args[0], result):
        type_ = side.type
        if not isinstance(type_, TensorType) or not isinstance(type_.shape[-1], int):
            continue
        line = target.c0_elems(type_.dtype)
        rows = type_.shape[-2] if type_.rank > 1 else 1
        extent = rows if type_.shape[-1] == 1 else type_.shape[-1]
        if isinstance(extent, int) and extent % line:
            return AlignmentError(
                f"{call.op} of the computed value '{_name(call.args[0])}': '{_name(side)}' has "
                f"lines of {extent} elements of {type_.dtype}, {line} of which make a 32-byte "
                "block, and a padded tile cannot be read under another shape",
                span=call.span,
                hint=f"make the extent a multiple of {line}, or store and load it through memory",
            )
    return None


def _spreads(wide: tuple[object, ...], narrow: tuple[object, ...]) -> bool:
    """Whether `narrow` is `wide` itself, one column of it or one row."""
    if len(wide) != len(narrow) or wide[:-2] != narrow[:-2]:
        return False
    return narrow[-2:] in (wide[-2:], (wide[-2], 1), (1, wide[-1])) if len(wide) > 1 else True


def _broadcast_obstacle(call: Call) -> LoweringError | None:
    shapes: list[tuple[object, ...]] = [
        arg.type.shape for arg in call.args if isinstance(arg.type, TensorType)
    ]
    if len(shapes) < 2 or _spreads(*shapes) or _spreads(*reversed(shapes)):
        return None
    return LoweringError(
        f"{call.op}: shapes {list(shapes[0])} and {list(shapes[1])} of "
        f"'{_name(call.args[0])}' and '{_name(call.args[1])}' have no tile form",
        span=call.span,
        hint="a [M, 1] or [1, N] operand against [M, N] has one; expand other shapes first",
    )
