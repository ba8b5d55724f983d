"""Affine forms of index expressions: what proofs about dimensions compare.

An index expression is read as `const + sum(coefficient * atom)` over its non-affine parts, so
`n * 2 + 16 - n` and `n + 16` are the same although their trees differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pypto_egg.ir.dtype import INDEX, INT64, DType
from pypto_egg.ir.expr import BinOp, Cast, ConstInt, Expr, TupleExpr, UnOp, Var, as_expr
from pypto_egg.ir.types import ScalarType

Dim = int | Expr
Result = TypeVar("Result")

ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "min": min,
    "max": max,
}
DIVISION: dict[str, Callable[[int, int], int]] = {
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
_SAME_INDEX = (INDEX, INT64)  # PyPTO needs no cast between these two


def scalar_children(node: Expr) -> tuple[Expr, ...]:
    """The operands of scalar arithmetic; none for a leaf."""
    match node:
        case BinOp():
            return (node.lhs, node.rhs)
        case UnOp() | Cast():
            return (node.operand,)
        case TupleExpr():
            return node.items
        case _:
            return ()


def _dtype_of(expr: Expr) -> DType | None:
    return expr.type.dtype if isinstance(expr.type, ScalarType) else None


def bottom_up(
    expr: Expr,
    operands: Callable[[Expr], tuple[Expr, ...]],
    combine: Callable[[Expr, list[Result]], Result],
) -> Result:
    """What `combine` makes of an expression and the results of its operands, shared parts once."""
    done: dict[int, Result] = {}
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        below = operands(node)
        if below and not ready:
            stack.append((node, True))
            stack.extend((child, False) for child in below)
            continue
        done[id(node)] = combine(node, [done[id(child)] for child in below])
    return done[id(expr)]


def keeps_index(cast: Cast) -> bool:
    """Whether a cast is between the two index types, and so changes no value."""
    return cast.dtype in _SAME_INDEX and _dtype_of(cast.operand) in _SAME_INDEX


def _affine_children(node: Expr) -> tuple[Expr, ...]:
    return scalar_children(node) if not isinstance(node, TupleExpr) else ()


class Affine:
    """`const + sum(coefficient * atom)`; atoms are numbers that an `Atoms` handed out."""

    __slots__ = ("const", "terms")

    def __init__(self, const: int, terms: dict[int, int]) -> None:
        self.const = const
        self.terms = {atom: factor for atom, factor in terms.items() if factor != 0}

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """self + factor * other."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor * coefficient
        return Affine(self.const + factor * other.const, terms)

    def scaled(self, factor: int) -> Affine:
        """factor * self."""
        return Affine(0, {}).plus(self, factor)

    def divisible_by(self, divisor: int) -> bool:
        """Whether every value of it is a multiple, whatever the atoms are."""
        return self.const % divisor == 0 and all(c % divisor == 0 for c in self.terms.values())

    def divided_by(self, divisor: int) -> Affine:
        """The quotient, for a divisor of which it is a multiple."""
        return Affine(self.const // divisor, {a: c // divisor for a, c in self.terms.items()})

    @property
    def key(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        """Equal for equal forms, and hashable."""
        return self.const, tuple(sorted(self.terms.items()))


class Atoms:
    """Affine forms of expressions; equal non-affine parts get equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._held: list[Expr] = []  # keeps expressions alive whose id is a key

    def affine(self, dim: Dim) -> Affine:
        """The affine form of an extent."""
        return bottom_up(as_expr(dim), _affine_children, self._node)

    def _atom(self, key: object) -> Affine:
        number = self._numbers.setdefault(key, len(self._numbers))
        return Affine(0, {number: 1})

    def _node(self, node: Expr, below: list[Affine]) -> Affine:
        match node:
            case ConstInt():
                return Affine(node.value, {})
            case Var():
                self._held.append(node)
                return self._atom(("var", id(node)))
            case BinOp():
                return self._binop(node.op, below[0], below[1])
            case UnOp() if node.op == "-":
                return below[0].scaled(-1)
            case UnOp():
                return self._atom((node.op, below[0].key))
            case Cast():
                if keeps_index(node):
                    return below[0]
                return self._atom(("cast", node.dtype, below[0].key))
            case _:
                return self._atom(("expr", node))

    def _binop(self, op: str, lhs: Affine, rhs: Affine) -> Affine:
        if op == "+":
            return lhs.plus(rhs)
        if op == "-":
            return lhs.plus(rhs, -1)
        if op == "*" and not (lhs.terms and rhs.terms):
            return rhs.scaled(lhs.const) if not lhs.terms else lhs.scaled(rhs.const)
        if op in DIVISION and not lhs.terms and not rhs.terms and rhs.const != 0:
            return Affine(DIVISION[op](lhs.const, rhs.const), {})
        if op in ("//", "/") and not rhs.terms and rhs.const > 0 and lhs.divisible_by(rhs.const):
            return lhs.divided_by(rhs.const)
        if op == "%" and not rhs.terms and rhs.const > 0 and lhs.divisible_by(rhs.const):
            return Affine(0, {})
        if op in ("min", "max"):
            return self._extreme(op, lhs, rhs)
        if op == "*":
            return self._atom((op, *sorted((lhs.key, rhs.key))))
        return self._atom((op, lhs.key, rhs.key))

    def _extreme(self, op: str, lhs: Affine, rhs: Affine) -> Affine:
        gap = lhs.plus(rhs, -1)
        if not gap.terms:
            return lhs if (gap.const <= 0) == (op == "min") else rhs
        return self._atom((op, *sorted((lhs.key, rhs.key))))


def difference(a: Dim, b: Dim) -> int | None:
    """`a - b` where it is the same number whatever the variables are, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    atoms = Atoms()
    gap = atoms.affine(a).plus(atoms.affine(b), -1)
    return None if gap.terms else gap.const


def const_value(dim: Dim) -> int | None:
    """The number that an index expression is whatever its variables are, or None."""
    if isinstance(dim, int):
        return dim
    form = Atoms().affine(dim)
    return None if form.terms else form.const
