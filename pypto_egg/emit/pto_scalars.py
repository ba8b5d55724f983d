"""Scalars of a kernel as `arith` operations, and the lines they are written to.

Each operation is made in the dtype that the expression has, so that it wraps where the program
wraps (N-077 to N-080); only the finished value becomes an `index`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from pypto_egg.emit.pto_types import Names
from pypto_egg.errors import PtoTextError
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.expr import BinOp, Cast, ConstBool, ConstFloat, ConstInt, Expr, UnOp, Var
from pypto_egg.ir.fold import Dim, fold
from pypto_egg.ir.types import ScalarType
from pypto_egg.ir.visit import children, subexpressions
from pypto_egg.source import Span

INDEX_TYPE = "index"
_TYPES = {
    "INDEX": INDEX_TYPE, "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64", "BOOL": "i1",
    "FP16": "f16", "BF16": "bf16", "FP32": "f32",
}  # fmt: skip
_FLOATS = {"f16": 16, "bf16": 16, "f32": 32}
_INTEGERS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
_ARITHMETIC = {
    "+": "addi", "-": "subi", "*": "muli", "//": "floordivsi", "min": "minsi", "max": "maxsi",
    "and": "andi", "or": "ori",
}  # fmt: skip
_FLOAT_ARITHMETIC = {
    "+": "addf", "-": "subf", "*": "mulf", "/": "divf", "min": "minimumf", "max": "maximumf",
}  # fmt: skip
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
_FLOAT_COMPARISONS = {"==": "oeq", "!=": "one", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}

Value = tuple[str, str]


class Scalars:
    """The scalar values of one function: constants at its head, the rest where it is needed.

    Args:
        emit: takes each line of the body.
    """

    def __init__(self, names: Names, emit: Callable[[str], None]) -> None:
        self._names = names
        self._emit = emit
        self._constants: dict[Value, int] = {}
        self._floats: dict[Value, str] = {}
        self._bound: dict[Var, Value] = {}

    def constant_lines(self) -> list[str]:
        """One line a constant, by type and value."""
        ordered = sorted(self._constants.items(), key=lambda item: (item[0][1], item[1]))
        whole = [f"{ssa} = arith.constant {value} : {kind}" for (ssa, kind), value in ordered]
        real = [f"{ssa} = arith.constant {text} : {kind}"
                for (text, kind), ssa in sorted(self._floats.items())]  # fmt: skip
        return [*whole, *real]

    def bind(self, var: Var, value: Value) -> None:
        """Say what a variable of the program is called."""
        self._bound[var] = value

    def constant(self, value: int, kind: str = INDEX_TYPE) -> str:
        """The name of a constant: %c16, %cm16 for -16, %c16_i32 for another type."""
        sign, suffix = ("m" if value < 0 else ""), ("" if kind == INDEX_TYPE else f"_{kind}")
        ssa = f"%c{sign}{abs(value)}{suffix}"
        self._constants[(ssa, kind)] = value
        return ssa

    def real(self, value: float, kind: str) -> str:
        """The name of a floating-point constant: %cst and so on."""
        key = (_float_text(value, kind), kind)
        if key not in self._floats:
            self._floats[key] = self._names.claim("cst")
        return self._floats[key]

    def index(self, dim: Dim, what: str, span: Span | None) -> str:
        """An extent or offset as an `index`.

        Raises:
            PtoTextError: a negative constant, which PyPTO's code generation would take for 0, or
                arithmetic without a form.
        """
        expr = fold(dim) if isinstance(dim, Expr) else ConstInt(dim)
        value = self.value(expr, what, span)
        constant = self._constants.get(value, 0)
        if constant < 0:
            raise PtoTextError(
                f"{what} is {constant}; offsets and extents start at 0",
                span=span,
                hint="count from the start of the tensor",
            )
        return self._converted(value, INDEX_TYPE)

    def element(self, expr: Expr, dtype: DType, what: str, span: Span | None) -> Value | None:
        """A scalar as an element of a tile; None where elements of this dtype are no scalars."""
        kind = dtype_type(dtype)
        if kind is None:
            return None
        if isinstance(expr, ConstInt | ConstFloat):
            value = expr.value
            return (self.real(value, kind) if kind in _FLOATS else self.constant(int(value), kind),
                    kind)  # fmt: skip
        return self._converted(self.value(expr, what, span), kind), kind

    def value(self, expr: Expr, what: str, span: Span | None) -> Value:
        """The name and type of an expression's value; its operations are written out.

        Raises:
            PtoTextError: an operation or a dtype without a form.
        """
        done: dict[int, Value] = {}
        for node in subexpressions(expr):
            below = [done[id(child)] for child in children(node)]
            made = self._made(node, below)
            if made is None:
                raise PtoTextError(
                    f"{what} has a part without PTO text: {_shown(node)}",
                    span=span,
                    hint="use parameters, loop variables, and sums, products, quotients, "
                    "remainders, minima, maxima and comparisons of numbers",
                )
            done[id(node)] = made
        return done[id(expr)]

    def _made(self, node: Expr, below: list[Value]) -> Value | None:
        if isinstance(node, Var):
            return self._bound.get(node)
        kind = scalar_type(node)
        if kind is None:
            return None
        match node:
            case ConstInt():
                return self.constant(node.value, kind), kind
            case ConstBool():
                return self.constant(int(node.value), kind), kind
            case ConstFloat():
                return self.real(node.value, kind), kind
            case Cast() if kind != "i1" and below[0][1] != "i1":
                return self._converted(below[0], kind), kind
            case UnOp(op="-") if kind in _FLOATS:
                return self._written(f"arith.negf {self._converted(below[0], kind)} : {kind}", kind)
            case UnOp(op="-"):
                zero = (self.constant(0, kind), kind)
                return self._operation("subi", zero, below[0], kind)
            case UnOp(op="not") if below[0][1] == "i1":
                return self._operation("xori", below[0], (self.constant(1, "i1"), "i1"), "i1")
            case BinOp():
                return self._binary(node.op, below[0], below[1], kind)
            case _:
                return None

    def _binary(self, op: str, lhs: Value, rhs: Value, kind: str) -> Value | None:
        if op in _COMPARISONS:
            shared = lhs[1] if lhs[1] == rhs[1] else INDEX_TYPE
            names = _FLOAT_COMPARISONS if shared in _FLOATS else _COMPARISONS
            return self.compared(names[op], lhs, rhs, shared)
        if kind in _FLOATS:
            name = _FLOAT_ARITHMETIC.get(op)
            return None if name is None else self._operation(name, lhs, rhs, kind)
        if op == "%":
            # The remainder of a floor quotient has the divisor's sign; arith.remsi does not.
            quotient = self._operation("floordivsi", lhs, rhs, kind)
            return self._operation("subi", lhs, self._operation("muli", quotient, rhs, kind), kind)
        if op not in _ARITHMETIC:
            return None
        return self._operation(_ARITHMETIC[op], lhs, rhs, kind)

    def compared(self, predicate: str, lhs: Value, rhs: Value, kind: str) -> Value:
        """A comparison of two values in the type `kind`."""
        left, right = self._converted(lhs, kind), self._converted(rhs, kind)
        op = "cmpf" if kind in _FLOATS else "cmpi"
        ssa = self._names.claim("is")
        self._emit(f"{ssa} = arith.{op} {predicate}, {left}, {right} : {kind}")
        return ssa, "i1"

    def _operation(self, name: str, lhs: Value, rhs: Value, kind: str) -> Value:
        left, right = self._converted(lhs, kind), self._converted(rhs, kind)
        return self._written(f"arith.{name} {left}, {right} : {kind}", kind)

    def _written(self, operation: str, kind: str) -> Value:
        ssa = self._names.claim("i" if kind not in _FLOATS else "f")
        self._emit(f"{ssa} = {operation}")
        return ssa, kind

    def _converted(self, value: Value, kind: str) -> str:
        ssa, given = value
        if given == kind:
            return ssa
        between = _between(given, kind)
        if between is not None:
            return self._converted((self._converted(value, between), between), kind)
        return self._written(f"arith.{_conversion(given, kind)} {ssa} : {given} to {kind}", kind)[0]


def _between(given: str, kind: str) -> str | None:
    """The type through which a conversion goes that `arith` has no operation for."""
    if INDEX_TYPE in (given, kind) and (given in _FLOATS or kind in _FLOATS):
        return "i64"
    halves = given in _FLOATS and kind in _FLOATS and _FLOATS[given] == _FLOATS[kind]
    return "f32" if halves else None


def _conversion(given: str, kind: str) -> str:
    if INDEX_TYPE in (given, kind):
        return "index_cast"
    if given in _FLOATS:
        if kind not in _FLOATS:
            return "fptosi"
        return "extf" if _FLOATS[kind] > _FLOATS[given] else "truncf"
    if kind in _FLOATS:
        return "sitofp"
    return "extsi" if _INTEGERS[kind] > _INTEGERS[given] else "trunci"


def _float_text(value: float, kind: str) -> str:
    """A literal as MLIR reads it: with a point; infinities and NaN by their bits."""
    if math.isfinite(value):
        text = repr(float(value))
        mantissa, mark, exponent = text.partition("e")
        return text if "." in mantissa else f"{mantissa}.0{mark}{exponent}"
    if kind == "f16":
        return f"0x{struct.unpack('>H', struct.pack('>e', value))[0]:04X}"
    bits = struct.unpack(">I", struct.pack(">f", value))[0]
    return f"0x{bits:08X}" if kind == "f32" else f"0x{bits >> 16:04X}"


def scalar_type(expr: Expr) -> str | None:
    """The MLIR type of a scalar expression; None where it has none here."""
    kind = expr.type
    return dtype_type(kind.dtype) if isinstance(kind, ScalarType) else None


def dtype_type(dtype: DType) -> str | None:
    """The MLIR type of a scalar's dtype; None where it has none here."""
    return _TYPES.get(dtype.name)


def _shown(node: Expr) -> str:
    match node:
        case Var():
            return f"'{node.name}'"
        case BinOp() | UnOp():
            return f"the operation '{node.op}' in {node.dtype.name}"
        case _:
            return type(node).__name__
