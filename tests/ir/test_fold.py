"""Folding keeps values; proofs about dimensions hold for every value of the variables."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.ir.dtype import BOOL, FP16, FP32, INDEX, INT8, INT32, INT64, UINT8
from pypto_egg.ir.expr import BinOp, Cast, ConstBool, ConstFloat, ConstInt, TupleExpr, UnOp, Var
from pypto_egg.ir.fold import (
    const_value,
    difference,
    dim_add,
    dim_ceildiv,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mul,
    dim_round_up,
    dim_sub,
    fold,
    provably_equal,
    provably_le,
    provably_lt,
    provably_unequal,
    same_dims,
)
from pypto_egg.ir.types import ScalarType

X, Y = Var("x", ScalarType(INDEX)), Var("y", ScalarType(INDEX))
PYTHON = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": min,
    "max": max,
}


def value_of(expr, env):
    """The integer value of an index expression."""
    match expr:
        case int():
            return expr
        case ConstInt():
            return expr.value
        case Var():
            return env[expr]
        case UnOp():
            return -value_of(expr.operand, env)
        case BinOp():
            return PYTHON[expr.op](value_of(expr.lhs, env), value_of(expr.rhs, env))


def binop(op, lhs, rhs):
    return BinOp(op, lhs, rhs, INDEX)


def build(parts):
    op, lhs, rhs = parts
    if op in ("//", "%") and not (isinstance(rhs, ConstInt) and rhs.value > 0):
        op = "+"
    return binop(op, lhs, rhs)


LEAVES = st.sampled_from([X, Y]) | st.integers(-4, 40).map(ConstInt)
INDEXES = st.recursive(
    LEAVES,
    lambda inner: (
        st.tuples(st.sampled_from(sorted(PYTHON)), inner, inner).map(build)
        | inner.map(lambda e: UnOp("-", e, INDEX))
    ),
    max_leaves=10,
)
ENVS = [{X: x, Y: y} for x, y in itertools.product((0, 1, 5, 16, 33), (0, 2, 7, 64))]


@given(INDEXES)
def test_folding_keeps_the_value(expr):
    folded = fold(expr)
    assert [value_of(folded, env) for env in ENVS] == [value_of(expr, env) for env in ENVS]


@given(INDEXES)
def test_folding_twice_changes_nothing_more(expr):
    folded = fold(expr)
    assert fold(folded) == folded


@given(INDEXES, INDEXES)
def test_what_is_proven_holds_for_every_value(a, b):
    pairs = [(value_of(a, env), value_of(b, env)) for env in ENVS]
    gap = difference(a, b)
    if gap is not None:
        assert {x - y for x, y in pairs} == {gap}
    if provably_equal(a, b):
        assert all(x == y for x, y in pairs)
    if provably_unequal(a, b):
        assert all(x != y for x, y in pairs)
    if provably_le(a, b):
        assert all(x <= y for x, y in pairs)
    if provably_lt(a, b):
        assert all(x < y for x, y in pairs)


@given(INDEXES)
def test_every_expression_is_provably_itself(expr):
    assert provably_equal(expr, fold(expr))
    assert provably_le(expr, expr)


@given(INDEXES, INDEXES, st.integers(1, 64))
def test_dimension_arithmetic_is_arithmetic(a, b, unit):
    for env in ENVS:
        x, y = value_of(a, env), value_of(b, env)
        assert value_of(dim_add(a, b), env) == x + y
        assert value_of(dim_sub(a, b), env) == x - y
        assert value_of(dim_mul(a, b), env) == x * y
        assert value_of(dim_min(a, b), env) == min(x, y)
        assert value_of(dim_max(a, b), env) == max(x, y)
        assert value_of(dim_floordiv(a, unit), env) == x // unit
        assert value_of(dim_ceildiv(a, unit), env) == -(-x // unit)
        assert value_of(dim_round_up(a, unit), env) == -(-x // unit) * unit


def test_equal_dimensions_need_not_look_alike():
    twice = binop("*", X, ConstInt(2))
    assert provably_equal(binop("-", binop("+", twice, ConstInt(16)), X), dim_add(X, 16))
    assert provably_equal(binop("//", binop("*", X, ConstInt(32)), ConstInt(16)), twice)
    assert provably_equal(binop("*", X, Y), binop("*", Y, X))
    assert provably_equal(binop("min", X, Y), binop("min", Y, X))


def test_distinct_variables_of_one_name_are_different_dimensions():
    other = Var("x", ScalarType(INDEX))
    assert not provably_equal(X, other)
    assert not provably_unequal(X, other)


def test_order_looks_through_min_and_max():
    assert provably_le(binop("min", X, ConstInt(16)), 16)
    assert provably_le(0, binop("max", dim_sub(X, 8), ConstInt(0)))
    assert provably_le(binop("min", X, ConstInt(16)), binop("max", X, Y))
    assert not provably_le(X, 16)
    assert dim_min(binop("min", X, ConstInt(16)), 16) == binop("min", X, ConstInt(16))
    assert dim_min(X, X) is X


def test_results_are_plain_integers_where_they_are_constant():
    assert dim_add(3, 4) == 7
    assert dim_sub(dim_add(X, 12), X) == 12
    assert dim_mul(X, 0) == 0
    assert dim_add(dim_add(X, 3), -3) is X
    assert const_value(binop("-", dim_add(X, 5), X)) == 5
    assert const_value(X) is None


def test_shapes_are_the_same_if_rank_and_dimensions_agree():
    assert same_dims((X, 16), (X, 16))
    assert not same_dims((X, 16), (Y, 16))
    assert not same_dims((16,), (16, 1))


@pytest.mark.parametrize(
    ("expr", "folded"),
    [
        (BinOp("<", ConstInt(2), ConstInt(3), BOOL), ConstBool(True)),
        (BinOp("and", ConstBool(True), ConstBool(False), BOOL), ConstBool(False)),
        (UnOp("not", ConstBool(True), BOOL), ConstBool(False)),
        (UnOp("~", ConstInt(5, UINT8), UINT8), ConstInt(250, UINT8)),
        (UnOp("~", ConstInt(5, INT8), INT8), ConstInt(-6, INT8)),
        (UnOp("-", ConstFloat(1.5), FP32), ConstFloat(-1.5)),
        (Cast(ConstInt(3), INT32), ConstInt(3, INT32)),
        (Cast(ConstInt(3), FP16), ConstFloat(3.0, FP16)),
        (Cast(X, INDEX), X),
        (BinOp("<<", ConstInt(3), ConstInt(4), INDEX), ConstInt(48)),
        (TupleExpr((BinOp("*", ConstInt(2), ConstInt(3), INDEX), X)), TupleExpr((ConstInt(6), X))),
    ],
)
def test_constants_fold(expr, folded):
    assert fold(expr) == folded


@pytest.mark.parametrize(
    "expr",
    [
        BinOp("+", ConstInt(100, INT8), ConstInt(100, INT8), INT8),
        BinOp("//", ConstInt(1), ConstInt(0), INDEX),
        BinOp("/", ConstInt(7), ConstInt(2), INDEX),
        BinOp("+", ConstFloat(0.1), ConstFloat(0.2), FP32),
        Cast(ConstInt(300), INT8),
        Cast(ConstInt(2049), FP16),
    ],
)
def test_overflow_division_by_zero_and_rounding_are_left_alone(expr):
    assert fold(expr) == expr


def test_int64_and_index_are_the_same_for_a_proof_and_narrow_casts_are_not():
    wide, narrow = Var("w", ScalarType(INT64)), Var("n", ScalarType(INT32))
    assert provably_equal(Cast(wide, INDEX), wide)
    assert provably_equal(Cast(narrow, INDEX), Cast(narrow, INDEX))
    assert not provably_equal(Cast(narrow, INDEX), narrow)


def test_deep_chains_do_not_exhaust_the_stack():
    deep = X
    for _ in range(5000):
        deep = binop("+", deep, ConstInt(1))
    assert difference(deep, X) == 5000
    folded = fold(UnOp("-", deep, INDEX))
    assert difference(folded, binop("-", ConstInt(-5000), X)) == 0
