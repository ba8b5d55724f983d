"""The cost vector, the law that a cost model obeys, and the registry of models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from pypto_egg.errors import InternalError, LoweringError, OptionError
from pypto_egg.extract.cost.kernel import executed_calls
from pypto_egg.ir.expr import Call
from pypto_egg.ir.program import Function
from pypto_egg.ir.types import Type
from pypto_egg.l0 import CubeProduct, Schedules
from pypto_egg.target import Target

PIPES = ("mte1", "mte2", "mte3", "fixpipe", "cube", "vector", "scalar")

ModelObjective = Literal["serial", "bottleneck", "simulated"]


@dataclass(frozen=True, slots=True)
class CostVector:
    """Busy cycles of each pipe, in cycles of the AI-core clock.

    MTE2 stands for the engine of the core that loads (AIC to L1, AIV to UB). Vectors add, and
    scale by a trip count or a probability; `total` is a number to compare by, not a time.

    >>> (CostVector(mte2=10.0) + 3 * CostVector(mte2=1.0, cube=2.0)).total
    19.0
    """

    mte1: float = 0.0
    mte2: float = 0.0
    mte3: float = 0.0
    fixpipe: float = 0.0
    cube: float = 0.0
    vector: float = 0.0
    scalar: float = 0.0

    def __post_init__(self) -> None:
        for pipe in PIPES:
            if not getattr(self, pipe) >= 0.0:
                raise InternalError(f"a cost of {getattr(self, pipe)} cycles on {pipe}")

    def __add__(self, other: CostVector) -> CostVector:
        return CostVector(
            self.mte1 + other.mte1,
            self.mte2 + other.mte2,
            self.mte3 + other.mte3,
            self.fixpipe + other.fixpipe,
            self.cube + other.cube,
            self.vector + other.vector,
            self.scalar + other.scalar,
        )

    def __mul__(self, times: float) -> CostVector:
        return CostVector(*(getattr(self, pipe) * times for pipe in PIPES))

    __rmul__ = __mul__

    @property
    def total(self) -> float:
        """The serial fold: the sum over the pipes, as if nothing overlapped."""
        return (
            self.mte1 + self.mte2 + self.mte3 + self.fixpipe + self.cube + self.vector + self.scalar
        )

    def by_pipe(self) -> dict[str, float]:
        """Cycles by pipe name, in the order of `PIPES`."""
        return {pipe: getattr(self, pipe) for pipe in PIPES}


ZERO = CostVector()

KernelCost = Callable[[Target], dict[str, float]]
"""From a target to the cycles of one kernel: "cycles" for all of it, and each pipe by name."""


@dataclass(frozen=True, slots=True)
class OpInstance:
    """One operation to price: its IR name, the types it works on, its keyword arguments.

    Args:
        op: "tile.load", "tile.matmul", ...
        operands: types of the operands, in IR order.
        kwargs: keyword arguments; a window operand that is constant (`shapes`, `valid_shape`)
            may be given here under its operand name, as a tuple of ints.
        result: type of the result.
    """

    op: str
    operands: tuple[Type, ...]
    kwargs: Mapping[str, object]
    result: Type


class CostModel(ABC):
    """Prices one operation on one target.

    The law that every model must obey, because extraction relies on it:

    - no component is negative, infinite or NaN;
    - the price depends on the operation instance and the target only: not on its users, on what
      was priced before, on the time or on a random number;
    - a view that emits no instruction costs nothing;
    - an operation that the model does not know raises InternalError: there is no default price.

    How often an operation runs (trip counts) and that a shared value is computed once is the
    extractor's business, not the model's.

    `fold` says what a kernel costs whose operations have these prices, and `objective` what
    extraction minimises: "serial" the sum over all pipes, "bottleneck" the greatest sum over a pipe
    plus the sums of the pipes in `not_overlapped`. The two must agree. With "simulated" the most
    promising selections by either sum are emitted, and the one is taken whose `kernel_cost` is
    least; a kernel costs at least `start_cycles` plus its busiest one of `queues`.
    """

    name: ClassVar[str]
    objective: ClassVar[ModelObjective] = "serial"
    not_overlapped: ClassVar[tuple[str, ...]] = ()
    queues: ClassVar[tuple[str, ...]] = PIPES

    @property
    def adds_up(self) -> bool:
        """Whether a kernel costs the sum of its operations, whatever overlaps."""
        return self.objective == "serial" and type(self).kernel_cost is CostModel.kernel_cost

    @abstractmethod
    def price(self, op: OpInstance, target: Target) -> CostVector:
        """The cost of executing `op` once on one core of `target`.

        Raises:
            InternalError: the model does not know the op.
            UnsupportedDTypeError: the target has no instruction for the op's dtypes.
        """

    def queue_cycles(self, op: OpInstance, target: Target) -> Mapping[str, float]:
        """The price of `op` by the queues that work at the same time; the pipes, unless a model
        tells more of them apart in `queues`."""
        return self.price(op, target).by_pipe()

    def start_cycles(self, target: Target) -> float:
        """Cycles that every kernel takes before its first operation."""
        return 0.0

    def price_schedules(
        self, product: CubeProduct, among: Schedules, target: Target
    ) -> NDArray[np.float64] | None:
        """Cycles of each schedule of a product: one row a schedule, columns as `PIPES`.

        None stands for the sum of the prices of its instructions, which is right for every model;
        one that prices them all at once is faster.
        """
        return None

    def fold(self, vectors: Iterable[CostVector]) -> float:
        """Cycles of a kernel whose operations cost `vectors`, each as often as it runs.

        The serial sum, as if nothing overlapped, unless a model overrides it.
        """
        return sum(vectors, ZERO).total

    def kernel_cost(self, kernel: Function, target: Target, cores: int = 1) -> KernelCost:
        """What a tile kernel costs on targets like `target`, on one of `cores` cores.

        The result maps such a target to "cycles" (the `fold` of all operations) and to the busy
        cycles of each pipe.

        Raises:
            LoweringError: an operation is not one of tile programs.
        """
        calls = list(executed_calls(kernel))

        def cost(chip: Target) -> dict[str, float]:
            vectors = [times * self._price_call(call, chip) for call, times in calls]
            return {"cycles": self.fold(vectors), **sum(vectors, ZERO).by_pipe()}

        return cost

    def _price_call(self, call: Call, target: Target) -> CostVector:
        operands = tuple(arg.type for arg in call.args)
        try:
            return self.price(OpInstance(call.op, operands, dict(call.kwargs), call.type), target)
        except InternalError as error:  # the program's fault: not tile form, or no such transfer
            raise LoweringError(
                f"{call.op} has no price: {error}",
                span=call.span,
                hint="lower the function first, and put operands where the operation reads them",
            ) from error


_MODELS: dict[str, type[CostModel]] = {}
_BUILT_IN = ("mte2_mad", "pypto_l0", "roofline", "schedule")
Model = TypeVar("Model", bound=CostModel)


def register_cost_model(cls: type[Model]) -> type[Model]:
    """Make `cls` available under its `name`; a decorator. A second one of a name is refused."""
    known = _MODELS.setdefault(cls.name, cls)
    if known is not cls:
        raise OptionError(
            f"cost model '{cls.name}' is registered twice", hint="give the class another `name`"
        )
    return cls


def cost_model_names() -> tuple[str, ...]:
    """Names of all registered models, sorted."""
    for module in _BUILT_IN:
        import_module(f"pypto_egg.extract.cost.{module}")
    return tuple(sorted(_MODELS))


def cost_model(model: str | CostModel) -> CostModel:
    """The model of that name; an instance is returned as it is.

    Raises:
        OptionError: no model of that name, or one whose class states what no model can be; the
            message lists what there is.
    """
    if isinstance(model, CostModel):
        _check_statements(model)
        return model
    names = cost_model_names()
    if model not in _MODELS:
        raise OptionError(f"no cost model '{model}'", hint=f"known models: {', '.join(names)}")
    return _MODELS[model]()


def _check_statements(model: CostModel) -> None:
    known = get_args(ModelObjective)
    if model.objective not in known:
        raise OptionError(
            f"cost model '{model.name}': its objective is {model.objective!r}",
            hint=f"use one of: {', '.join(map(repr, known))}",
        )
    for pipe in model.not_overlapped:
        if pipe not in model.queues:
            raise OptionError(
                f"cost model '{model.name}': not_overlapped names {pipe!r}, which is none of its "
                "queues",
                hint=f"its queues are: {', '.join(model.queues)}",
            )
