"""Small builders of IR programs for the interpreter's tests."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pypto_egg.interp import run
from pypto_egg.interp.poison import numpy_dtype
from pypto_egg.ir.dtype import FP32, INDEX, DType
from pypto_egg.ir.enums import Direction, FunctionType, LoopKind, Mem, TensorLayout
from pypto_egg.ir.expr import Call, Expr, FunctionCall, Var, as_expr, tuple_of
from pypto_egg.ir.program import Function, Param, Program
from pypto_egg.ir.stmt import Assign, Eval, For, Return, Stmt, Yield
from pypto_egg.ir.types import ScalarType, TensorView, TupleType, Type, tensor_type
from pypto_egg.ops.registry import make_call


def operand(value):
    """Lists are shapes or offsets, numbers are constants."""
    if isinstance(value, list):
        return tuple_of(tuple(value))
    return as_expr(value)


def op(name: str, *args, **kwargs) -> Call:
    return make_call(name, tuple(operand(a) for a in args), kwargs)


def tensor(shape: list, dtype: DType, layout=TensorLayout.ND, valid=None, stride=()) -> Type:
    valid = tuple(valid) if valid is not None else None
    view = TensorView(valid_shape=valid, stride=tuple(stride), layout=layout)
    return tensor_type(tuple(shape), dtype, view)


@dataclass
class Body:
    """A list of statements under construction."""

    stmts: list[Stmt] = field(default_factory=list)
    counter: list[int] = field(default_factory=lambda: [0])

    def let(self, value: Expr, name: str = "", type_: Type | None = None) -> Var:
        """Assign a value to a new variable."""
        self.counter[0] += 1
        var = Var(name or f"v{self.counter[0]}", type_ or value.type)
        self.stmts.append(Assign(var=var, value=value))
        return var

    def op(self, name: str, *args, **kwargs) -> Var:
        return self.let(op(name, *args, **kwargs))

    def do(self, value: Expr) -> None:
        self.stmts.append(Eval(value=value))

    def loop(self, start, stop, step, inits, build, kind=LoopKind.range, types=None):
        """A loop whose body `build(body, index, *carried)` returns the yielded values."""
        index = Var("i", ScalarType(INDEX))
        types = types or [init.type for init in inits]
        carried = tuple(Var(f"c{n}", t) for n, t in enumerate(types))
        inner = Body(counter=self.counter)
        values = tuple(build(inner, index, *carried) or ())
        if values:
            inner.stmts.append(Yield(values=values))
        results = tuple(Var(f"r{n}", t) for n, t in enumerate(types))
        self.stmts.append(
            For(
                kind=kind,
                var=index,
                start=as_expr(start),
                stop=as_expr(stop),
                step=as_expr(step),
                body=tuple(inner.stmts),
                iter_args=carried,
                inits=tuple(inits),
                results=results,
            )
        )
        return results


def params(**types) -> dict[str, Param]:
    """Parameters by name: a type, or a (type, Direction) pair."""
    made = {}
    for name, given in types.items():
        kind, direction = given if isinstance(given, tuple) else (given, Direction.In)
        made[name] = Param(Var(name, kind), direction)
    return made


def function(
    name: str,
    parameters: dict[str, Param],
    body: Body,
    returns: list[Expr],
    kind: FunctionType = FunctionType.InCore,
    attrs=(),
) -> Function:
    stmts = (*body.stmts, Return(values=tuple(returns)))
    types = tuple(value.type for value in returns)
    return Function(name, kind, tuple(parameters.values()), types, stmts, attrs=attrs)


def kernel(parameters: dict[str, Param], build, kind=FunctionType.InCore) -> Program:
    """A program of one function; `build(body, *parameter variables)` returns the results."""
    body = Body()
    returns = build(body, *(p.var for p in parameters.values()))
    returns = returns if isinstance(returns, list) else [returns]
    return Program("P", (function("kernel", parameters, body, returns, kind),))


def call_of(callee: Function, *args: Expr, attrs=()) -> FunctionCall:
    types = callee.returns
    result = types[0] if len(types) == 1 else TupleType(types)
    return FunctionCall(callee.name, tuple(args), result, attrs=attrs)


def out(kind: Type) -> tuple[Type, Direction]:
    return kind, Direction.Out


def inout(kind: Type) -> tuple[Type, Direction]:
    return kind, Direction.InOut


VEC, MAT, LEFT, RIGHT, ACC = Mem.Vec, Mem.Mat, Mem.Left, Mem.Right, Mem.Acc


def floats(shape, seed=0, dtype=FP32):
    """Random numbers in [-1, 1), the same for the same seed."""
    source = np.random.default_rng(seed)
    return source.uniform(-1, 1, shape).astype(np.float32).astype(numpy_dtype(dtype))


def run_kernel(types, build, kind=FunctionType.InCore, **inputs):
    """What one kernel returns and writes; `types` are those of its parameters."""
    return run(kernel(params(**types), build, kind), inputs)
