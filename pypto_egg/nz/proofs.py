"""Proofs that the scalar expressions of a function are multiples of a number and not negative.

One scan in program order derives the facts of every scalar variable from the facts of what it is
bound to, so nothing is searched twice and depth costs no stack. The forms (N-061 to N-072):

    form                          a multiple of d if             not negative if
    constant                      the value is                   the value is >= 0
    name bound to an expression   the expression is              the expression is
    variable of a for loop        start and step are             start and step are
    a + b                         both are                       both are
    a - b, -a                     both are                       never
    a * b                         either is                      both are
    min(a, b)                     both are                       both are
    max(a, b)                     both are                       either is
    a % c, a // c; c constant > 0 unknown                        a is not
    block index, block count      unknown                        always

Nothing is known of parameters, of what memory holds, of branch results and of values that a loop
carries: what is yielded changes with every iteration (N-076).

Arithmetic wraps at the width of its dtype. A multiple of d stays one if d divides 2^width, so
only powers of two are proven (N-080).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto_egg.errors import InternalError
from pypto_egg.ir.affine import ARITHMETIC, DIVISION, bottom_up, keeps_index
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.expr import BinOp, Call, Cast, ConstInt, Expr, UnOp, Var
from pypto_egg.ir.fold import Dim
from pypto_egg.ir.program import Function
from pypto_egg.ir.stmt import Assign, For, If, While
from pypto_egg.ir.types import ScalarType
from pypto_egg.ir.visit import walk
from pypto_egg.ops.site import show_dim

PROVABLE_FORMS = (
    "constants",
    "names assigned from provable expressions",
    "variables of for loops with provable start and step",
    "sums and products",
    "min and max",
    "tile.get_block_idx and tile.get_block_num",
    "% and // by a positive constant",
)
_LANES = tuple(
    f"{space}.{query}"
    for space in ("tile", "tensor")
    for query in ("get_block_idx", "get_block_num")
)
_MOST = 1 << 64  # what zero is known as a multiple of: any power of two that a dtype holds


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a value: a power of two that divides it, its sign, its value."""

    divisor: int = 1
    non_negative: bool = False
    value: int | None = None


UNKNOWN = Fact()
_LANE = Fact(non_negative=True)


def _constant(value: int) -> Fact:
    divisor = _MOST if value == 0 else value & -value
    return Fact(divisor, value >= 0, value)


class Proofs:
    """What is provable of the scalar expressions of one function."""

    def __init__(self, function: Function) -> None:
        self._facts: dict[Var, Fact] = {}
        self._bound: dict[Var, Expr | For] = {}
        self._opaque: dict[Var, str] = {
            param.var: "a parameter, of which nothing is known" for param in function.params
        }
        for stmt in walk(function.body):
            match stmt:
                case Assign():
                    self._bind(stmt.var, stmt.value, _as_bound(stmt, self._fact(stmt.value)))
                case For():
                    self._bind(stmt.var, stmt, self._loop(stmt))
                    self._carried(stmt)
                case While() | If():
                    self._carried(stmt)

    def known_divisor(self, expr: Dim) -> int:
        """The largest power of two that provably divides the value: 1 if nothing is known, 2^64
        for zero."""
        return self._of(expr).divisor

    def is_multiple(self, expr: Dim, divisor: int) -> bool:
        """Whether the value is provably a multiple of `divisor`, a power of two."""
        if divisor < 1 or divisor & (divisor - 1):
            raise InternalError(f"a proof of multiples of {divisor} does not survive wrap-around")
        return self.known_divisor(expr) % divisor == 0

    def non_negative(self, expr: Dim) -> bool:
        """Whether the value is provably at least 0."""
        return self._of(expr).non_negative

    def constant(self, expr: Dim) -> int | None:
        """The value, if it is made of constants only, wrapped at the width of its dtype."""
        return self._of(expr).value

    def unproven_multiple(self, expr: Expr, divisor: int) -> str:
        """The part of an expression that stops the proof that it is a multiple of `divisor`."""
        return self._stop(
            expr, lambda part: self.is_multiple(part, divisor), _multiple_parts, _no_multiple
        )

    def unproven_sign(self, expr: Expr) -> str:
        """The part of an expression that stops the proof that it is not negative."""
        return self._stop(expr, self.non_negative, _sign_parts, _no_sign)

    # --- facts ---------------------------------------------------------------------------------

    def _bind(self, var: Var, value: Expr | For, fact: Fact) -> None:
        self._bound[var] = value
        self._facts[var] = fact

    def _carried(self, stmt: For | While | If) -> None:
        inside = "a value carried by a loop, which changes with every iteration"
        after = "the result of a branch" if isinstance(stmt, If) else "the result of a loop"
        if not isinstance(stmt, If):
            self._opaque.update(dict.fromkeys(stmt.iter_args, inside))
        self._opaque.update(dict.fromkeys(stmt.results, after))

    def _loop(self, loop: For) -> Fact:
        start, step = self._fact(loop.start), self._fact(loop.step)
        return Fact(min(start.divisor, step.divisor), start.non_negative and step.non_negative)

    def _of(self, expr: Dim) -> Fact:
        return _constant(expr) if isinstance(expr, int) else self._fact(expr)

    def _fact(self, expr: Expr) -> Fact:
        return bottom_up(expr, _operands, self._node)

    def _node(self, node: Expr, below: list[Fact]) -> Fact:
        match node:
            case ConstInt():
                return _constant(node.value)
            case Var():
                return self._facts.get(node, UNKNOWN)
            case BinOp():
                return _binary(node, *below)
            case UnOp() if node.op == "-":
                return _folded("-", _constant(0), below[0], node.dtype) or Fact(below[0].divisor)
            case Cast() if below:
                return below[0]
            case Call() if node.op in _LANES:
                return _LANE
            case _:
                return UNKNOWN

    # --- what stops a proof ------------------------------------------------------------------

    def _stop(
        self,
        expr: Expr,
        holds: Callable[[Expr], bool],
        parts: Callable[[Expr], tuple[Expr, ...]],
        reason: Callable[[Expr], str],
    ) -> str:
        """A description of the innermost part for which `holds` fails, following one path."""
        names: list[str] = []
        while True:
            if isinstance(expr, Var):
                if expr not in self._bound:
                    why = self._opaque.get(expr, "a value of which nothing is known")
                    return _chain(names, f"'{expr.name}' is {why}")
                names.append(f"'{expr.name}'")
                bound = self._bound[expr]
                around = _sources(bound)
            else:
                around = parts(expr)
            failing = next((part for part in around if not holds(part)), None)
            if failing is None:
                return _chain(names, reason(expr))
            expr = failing


def _sources(bound: Expr | For) -> tuple[Expr, ...]:
    return (bound.start, bound.step) if isinstance(bound, For) else (bound,)


def _as_bound(stmt: Assign, fact: Fact) -> Fact:
    """The fact of a value in the dtype of the name that it is bound to."""
    bound, given = stmt.var.type, stmt.value.type
    if not isinstance(bound, ScalarType) or not isinstance(given, ScalarType):
        return UNKNOWN
    if fact.value is not None and bound.dtype.is_int:
        return _constant(_wrapped(fact.value, bound.dtype))
    same_sign = bound.dtype.is_signed == given.dtype.is_signed
    kept = bound.dtype.bits > given.dtype.bits
    kept |= bound.dtype.bits == given.dtype.bits and same_sign
    return fact if kept else Fact(fact.divisor)


def _operands(node: Expr) -> tuple[Expr, ...]:
    match node:
        case BinOp():
            return (node.lhs, node.rhs)
        case UnOp():
            return (node.operand,)
        case Cast() if keeps_index(node):
            return (node.operand,)
        case _:
            return ()


def _folded(op: str, lhs: Fact, rhs: Fact, dtype: DType) -> Fact | None:
    """The fact of an operation on known values, wrapped to its dtype."""
    if lhs.value is None or rhs.value is None or not dtype.is_int:
        return None
    rule = ARITHMETIC.get(op)
    if rule is None and rhs.value != 0:
        rule = DIVISION.get(op)
    return None if rule is None else _constant(_wrapped(rule(lhs.value, rhs.value), dtype))


def _wrapped(value: int, dtype: DType) -> int:
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    return (value - low) % (1 << dtype.bits) + low


def _binary(node: BinOp, lhs: Fact, rhs: Fact) -> Fact:
    folded = _folded(node.op, lhs, rhs, node.dtype)
    if folded is not None:
        return folded
    both = lhs.non_negative and rhs.non_negative
    common = min(lhs.divisor, rhs.divisor)
    match node.op:
        case "+" | "min":
            return Fact(common, both)
        case "-":
            return Fact(common)
        case "*":
            return Fact(max(lhs.divisor, rhs.divisor), both)
        case "max":
            return Fact(common, lhs.non_negative or rhs.non_negative)
        case "%" | "//" if rhs.value is not None and rhs.value > 0:
            return Fact(non_negative=lhs.non_negative)
        case _:
            return UNKNOWN


def _multiple_parts(node: Expr) -> tuple[Expr, ...]:
    """The operands that must all be multiples for the node to be one; none where one suffices."""
    match node:
        case BinOp() if node.op in ("+", "-", "min", "max"):
            return (node.lhs, node.rhs)
        case UnOp() if node.op == "-":
            return (node.operand,)
        case Cast() if keeps_index(node):
            return (node.operand,)
        case _:
            return ()


def _sign_parts(node: Expr) -> tuple[Expr, ...]:
    match node:
        case BinOp() if node.op in ("+", "*", "min"):
            return (node.lhs, node.rhs)
        case BinOp() if node.op in ("//", "%") and isinstance(node.rhs, ConstInt):
            return (node.lhs,)
        case Cast() if keeps_index(node):
            return (node.operand,)
        case _:
            return ()


def _no_multiple(node: Expr) -> str:
    shown = show_dim(node)
    match node:
        case ConstInt():
            return f"there is the constant {node.value}"
        case BinOp() if node.op == "*":
            return f"no factor of {shown} is provably such a multiple"
        case BinOp() if node.op in ("//", "%"):
            return f"no multiple is known of {shown}"
        case _:
            return _no_form(node)


def _no_sign(node: Expr) -> str:
    shown = show_dim(node)
    match node:
        case ConstInt():
            return f"there is the constant {node.value}"
        case BinOp() | UnOp() if node.op == "-":
            return f"{shown} is a difference, whose sign is not provable"
        case BinOp() if node.op == "max":
            return f"neither side of {shown} is provably non-negative"
        case _:
            return _no_form(node)


def _no_form(node: Expr) -> str:
    if isinstance(node, Call):
        return f"nothing is known of the result of {node.op}"
    return f"{show_dim(node)} is of none of the provable forms"


def _chain(names: list[str], end: str) -> str:
    return end if not names else f"in {', from '.join(names)}: {end}"
