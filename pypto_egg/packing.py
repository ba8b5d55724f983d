"""Whether a cube operand should be packed: `optimize(..., nz="suggest" | "pack")`.

What packing saves is the difference of two lowerings of the same program under the same cost
model, with the operand by rows and in NZ order (N-004).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from pypto_egg.analysis.provenance import RootKind, provenance_of
from pypto_egg.errors import OptionError, PyptoEggError
from pypto_egg.extract.cost.kernel import executed_calls
from pypto_egg.extract.cost.model import ZERO, CostModel, CostVector, OpInstance
from pypto_egg.ir.enums import FunctionType, Mem, TensorLayout
from pypto_egg.ir.expr import Call, Var, dims_of, tuple_of
from pypto_egg.ir.fold import const_value
from pypto_egg.ir.program import Function, Program
from pypto_egg.ir.types import FRACTAL_ROWS, TensorType, tensor_type
from pypto_egg.ir.visit import expressions_of, subexpressions, walk
from pypto_egg.lowering import Lowering
from pypto_egg.nz.annotate import Handles, Tensors, in_nz_order, in_nz_type, packed_parameters
from pypto_egg.nz.layout import LINE_BITS, is_nz
from pypto_egg.nz.plan import NzAdvice, PackedParameter, Traffic
from pypto_egg.ops.registry import make_call
from pypto_egg.target.target import Target

NzMode = Literal["keep", "suggest", "pack"]
MODES = ("keep", "suggest", "pack")
# Sums of the same prices in another order may differ by this share.
_ROUNDING = 1e-12

Lower = Callable[[Program], Lowering]
Parameters = frozenset[tuple[str, str]]

# Product -> positions of its left and its right operand.
_SIDES = {"tensor.matmul": (0, 1), "tensor.matmul_acc": (1, 2)}


def check_mode(mode: str) -> None:
    """Nothing, if there is such a mode.

    Raises:
        OptionError: there is none; lists them.
    """
    if mode not in MODES:
        raise OptionError(f"nz is one of {', '.join(MODES)}, not {mode!r}")


def weigh_packing(
    result: Lowering, mode: str, lower: Lower, model: CostModel, target: Target
) -> Lowering:
    """The result with advice for each ND cube operand and, for "pack", with those packed that
    are right operands and cheaper so.

    Args:
        lower: lowers a tensor program as `result` was.

    The source of a packed result is still the ND program, which takes the arrays as they were.
    """
    if mode == "keep":
        return result
    weigher = _Weigher(result, lower, model, target)
    return weigher.packed() if mode == "pack" else weigher.suggested()


@dataclass(frozen=True)
class _Weigher:
    result: Lowering
    lower: Lower
    model: CostModel
    target: Target

    def suggested(self) -> Lowering:
        """Each operand is weighed against the program as it is."""
        tensors = Tensors(self.result.source)
        advice = [
            self._weighed(self.result, handles, tensors)[0]
            for handles in _operands(self.result, tensors)
        ]
        return replace(self.result, nz_advice=tuple(advice))

    def packed(self) -> Lowering:
        """Operands are packed one after the other, each weighed against what was packed before."""
        tensors = Tensors(self.result.source)
        weights = _product_operands(self.result.source)[1]
        at, names = self.result, [_names(h) for h in _operands(self.result, tensors)]
        advice: list[NzAdvice] = []
        plan: list[PackedParameter] = []
        for operand in names:
            # Handles are variables of the program that is lowered now.
            tensors = Tensors(at.source)
            found, trial = self._weighed(at, tensors.of(*operand[0]), tensors)
            if trial is None:
                advice.append(found)
            elif not weights.intersection(operand):
                advice.append(replace(found, refused=_ACTIVATION))
            elif found.saved < -_ROUNDING * found.cycles:
                advice.append(replace(found, refused="NZ order is dearer"))
            else:
                advice.append(replace(found, packed=True))
                plan.extend(found.parameters)
                at = trial
        return replace(
            at,
            source=self.result.source,
            baseline=self.result.baseline,
            baseline_refused=self.result.baseline_refused,
            nz_advice=tuple(advice),
            packing=tuple(plan),
        )

    def _weighed(
        self, at: Lowering, handles: Handles, tensors: Tensors
    ) -> tuple[NzAdvice, Lowering | None]:
        """The advice for one tensor, and the lowering with it in NZ order if that is legal."""
        names = _names(handles)
        advice = NzAdvice(
            tuple(f"{parameter} of {function}" for function, parameter in names),
            (), at.cycles, None, traffic_of(at.program, names), None, None,
        )  # fmt: skip
        try:
            tensors.check_packable(handles, at.program)
            parameters = packed_parameters(handles)
            trial = self.lower(in_nz_order(at.source, handles.variables))
        except PyptoEggError as error:
            return replace(advice, refused=error.message), None
        advice = replace(
            advice,
            parameters=parameters,
            packed_cycles=trial.cycles,
            fractals=traffic_of(trial.program, names),
            pack_cycles=self._pack_cycles(parameters),
        )
        return advice, trial

    def _pack_cycles(self, parameters: Iterable[PackedParameter]) -> float | None:
        total = ZERO
        for parameter in parameters:
            cost = pack_cost(parameter, self.model, self.target)
            if cost is None:
                return None
            total = total + cost
        return self.model.fold([total])


_ACTIVATION = (
    "it is a left operand: data that changes with each call would have to be packed for each call"
)


def _names(handles: Handles) -> tuple[tuple[str, str], ...]:
    return tuple(
        (function.name, param.var.name)
        for function, param in handles.params
        if function.type is FunctionType.InCore
    )


# --- what is weighed ------------------------------------------------------------------------------


def _operands(result: Lowering, tensors: Tensors) -> Iterator[Handles]:
    """The ND parameters that products of lowered functions load into Mat, in program order."""
    seen: set[Var] = set()
    multiplied = frozenset().union(*_product_operands(result.source))
    for report in result.functions:
        for parameter, load in _mat_loads(result.program.function(report.name)):
            if (report.name, parameter) not in multiplied:
                continue
            handles = tensors.of(report.name, parameter)
            kind = next(p.var.type for f, p in handles.params if f.name == report.name)
            first = handles.params[0][1].var
            if first in seen or _layout(kind) is not TensorLayout.ND or is_nz(load.args[0].type):
                continue
            seen.add(first)
            yield handles


def _layout(kind: object) -> TensorLayout | None:
    return kind.layout if isinstance(kind, TensorType) and not kind.distributed else None


def _mat_loads(function: Function) -> Iterator[tuple[str, Call]]:
    """The loads of a lowered function into Mat, each with the parameter that it reads."""
    for parameter, load, _ in _counted_loads(function):
        yield parameter, load


def _counted_loads(function: Function) -> Iterator[tuple[str, Call, int]]:
    provenance = provenance_of(function)
    for call, times in executed_calls(function):
        if call.op != "tile.load" or call.kwarg("target_memory") is not Mem.Mat:
            continue
        for root in provenance.roots_of(call.args[0]):
            if root.kind is RootKind.PARAM:
                yield root.var.name, call, times


def _product_operands(source: Program) -> tuple[Parameters, Parameters]:
    """(function, parameter) of what stands on the left and on the right of products."""
    found: tuple[set[tuple[str, str]], set[tuple[str, str]]] = set(), set()
    for function in source.functions:
        if function.type is not FunctionType.InCore:
            continue
        provenance = provenance_of(function, source)
        for call in _products(function):
            for side, index in zip(found, _SIDES[call.op], strict=True):
                side.update(
                    (function.name, root.var.name)
                    for root in provenance.roots_of(call.args[index])
                    if root.kind is RootKind.PARAM
                )
    return frozenset(found[0]), frozenset(found[1])


def _products(function: Function) -> Iterator[Call]:
    for stmt in walk(function.body):
        for expr in expressions_of(stmt):
            for part in subexpressions(expr):
                if isinstance(part, Call) and part.op in _SIDES:
                    yield part


# --- what it moves --------------------------------------------------------------------------------


def traffic_of(program: Program, parameters: Iterable[tuple[str, str]]) -> Traffic:
    """What the loads of the given (function, parameter) pairs into Mat move in one run.

    A row of a window is a contiguous run; of a window in NZ order, a column block is one.
    """
    wanted = set(parameters)
    runs = size_bytes = 0
    for function in program.functions:
        for parameter, load, times in _counted_loads(function):
            if (function.name, parameter) in wanted:
                count, length = _runs(load)
                runs += times * count
                size_bytes += times * count * length
    return Traffic(runs, size_bytes)


def _runs(load: Call) -> tuple[int, int]:
    """How many runs a load reads, and the bytes of each; a dynamic extent counts in full."""
    kind, window = load.args[0].type, _window(load)
    assert isinstance(kind, TensorType)
    if is_nz(kind):
        batch, blocks, *fractal = window
        return batch * blocks, prod(fractal) * kind.dtype.bits // 8
    *outer, inner = window if kind.layout is TensorLayout.ND else (*window[:-2], *window[:-3:-1])
    return prod(outer), inner * kind.dtype.bits // 8


def _window(load: Call) -> list[int]:
    """The extents that a load moves: the valid ones, and the tile's where they are dynamic."""
    sizes = dims_of(load.args[2])
    moved = dims_of(load.args[3]) if len(load.args) > 3 else sizes
    known = zip(map(const_value, moved), map(const_value, sizes), strict=True)
    return [next((extent for extent in pair if extent is not None), 1) for pair in known]


def pack_cost(parameter: PackedParameter, model: CostModel, target: Target) -> CostVector | None:
    """What it costs to bring a tensor into NZ order once, on the device: bands of 16 rows are
    read into Vec and written as column blocks. None if an extent is dynamic.
    """
    extents = [const_value(dim) for dim in parameter.shape]
    known = [extent for extent in extents if extent is not None]
    if len(known) < len(extents):
        return None
    *lead, rows, cols = known
    line = LINE_BITS // parameter.dtype.bits
    most = target.capacity_bytes(Mem.Vec) * 8 // (FRACTAL_ROWS * parameter.dtype.bits)
    width = min(cols, most // line * line)
    bands = prod(lead) * (rows // FRACTAL_ROWS)
    cost = _band_cost(width, parameter, model, target) * (bands * (cols // width))
    if cols % width:
        cost = cost + _band_cost(cols % width, parameter, model, target) * bands
    return cost


def _band_cost(
    width: int, parameter: PackedParameter, model: CostModel, target: Target
) -> CostVector:
    nd = tensor_type((FRACTAL_ROWS, width), parameter.dtype)
    nz = in_nz_type(nd)
    window = (tuple_of((0, 0)), tuple_of((FRACTAL_ROWS, width)))
    load = make_call("tile.load", (Var("rows", nd), *window), {"target_memory": Mem.Vec})
    store = make_call("tile.store", (Var("band", load.type), window[0], Var("fractals", nz)))
    return _price(load, model, target) + _price(store, model, target)


def _price(call: Call, model: CostModel, target: Target) -> CostVector:
    operands = tuple(arg.type for arg in call.args)
    return model.price(OpInstance(call.op, operands, dict(call.kwargs), call.type), target)
