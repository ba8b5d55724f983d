"""Index arithmetic of a kernel as `arith` operations, and the lines they are written to.

Each operation is made in the dtype that the expression has, so that it wraps where the program
wraps (N-077 to N-080); only the finished value becomes an `index`.
"""

from __future__ import annotations

from collections.abc import Callable

from pypto_egg.emit.pto_types import Names
from pypto_egg.errors import PtoTextError
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.expr import BinOp, Cast, ConstBool, ConstInt, Expr, UnOp, Var
from pypto_egg.ir.fold import Dim, fold
from pypto_egg.ir.types import ScalarType
from pypto_egg.ir.visit import children, subexpressions
from pypto_egg.source import Span

INDEX_TYPE = "index"
_TYPES = {"INDEX": INDEX_TYPE, "INT32": "i32", "INT64": "i64", "BOOL": "i1"}
_ARITHMETIC = {
    "+": "addi", "-": "subi", "*": "muli", "//": "floordivsi", "min": "minsi", "max": "maxsi",
    "and": "andi", "or": "ori",
}  # fmt: skip
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}

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
        self._bound: dict[Var, Value] = {}

    def constant_lines(self) -> list[str]:
        """One line a constant, by type and value."""
        ordered = sorted(self._constants.items(), key=lambda item: (item[0][1], item[1]))
        return [f"{ssa} = arith.constant {value} : {kind}" for (ssa, kind), value in ordered]

    def bind(self, var: Var, value: Value) -> None:
        """Say what a variable of the program is called."""
        self._bound[var] = value

    def constant(self, value: int, kind: str = INDEX_TYPE) -> str:
        """The name of a constant: %c16, %cm16 for -16, %c16_i32 for another type."""
        sign, suffix = ("m" if value < 0 else ""), ("" if kind == INDEX_TYPE else f"_{kind}")
        ssa = f"%c{sign}{abs(value)}{suffix}"
        self._constants[(ssa, kind)] = value
        return ssa

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
                    hint="use whole numbers of INDEX, INT32 or INT64 that are parameters, loop "
                    "variables, or sums, products, floor quotients, remainders, minima and "
                    "maxima of them",
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
            case Cast() if kind != "i1" and below[0][1] != "i1":
                return self._converted(below[0], kind), kind
            case UnOp(op="-"):
                zero = (self.constant(0, kind), kind)
                return self._operation("subi", zero, below[0], kind)
            case BinOp():
                return self._binary(node.op, below[0], below[1], kind)
            case _:
                return None

    def _binary(self, op: str, lhs: Value, rhs: Value, kind: str) -> Value | None:
        if op in _COMPARISONS:
            shared = lhs[1] if lhs[1] == rhs[1] else INDEX_TYPE
            return self.compared(_COMPARISONS[op], lhs, rhs, shared)
        if op == "%":
            # The remainder of a floor quotient has the divisor's sign; arith.remsi does not.
            quotient = self._operation("floordivsi", lhs, rhs, kind)
            return self._operation("subi", lhs, self._operation("muli", quotient, rhs, kind), kind)
        if op not in _ARITHMETIC:
            return None
        return self._operation(_ARITHMETIC[op], lhs, rhs, kind)

    def compared(self, predicate: str, lhs: Value, rhs: Value, kind: str) -> Value:
        """An `arith.cmpi` of two values in the type `kind`."""
        left, right = self._converted(lhs, kind), self._converted(rhs, kind)
        ssa = self._names.claim("is")
        self._emit(f"{ssa} = arith.cmpi {predicate}, {left}, {right} : {kind}")
        return ssa, "i1"

    def _operation(self, name: str, lhs: Value, rhs: Value, kind: str) -> Value:
        left, right = self._converted(lhs, kind), self._converted(rhs, kind)
        ssa = self._names.claim("i")
        self._emit(f"{ssa} = arith.{name} {left}, {right} : {kind}")
        return ssa, kind

    def _converted(self, value: Value, kind: str) -> str:
        ssa, given = value
        if given == kind:
            return ssa
        casts = {("i32", "i64"): "extsi", ("i64", "i32"): "trunci"}
        made = self._names.claim("i")
        self._emit(f"{made} = arith.{casts.get((given, kind), 'index_cast')} {ssa} : "
                   f"{given} to {kind}")  # fmt: skip
        return made


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
